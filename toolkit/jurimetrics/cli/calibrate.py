"""`jurimetrics calibrate`: from results and people's labels to how far each judge follows people, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from jurimetrics.cli.console import answering, in_options, one_line, say
from jurimetrics.cli.sources import open_results
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from jurimetrics.calibrate.calibration import Calibration
    from jurimetrics.results import Results

NOTHING = 1
_SELECTIONS = ("random", "probabilities", "by_label")
_OPTIONS = ("selection",)
_LEVELS = ("pooled", "group", "system")


@answering
def calibrate(
    source: Annotated[
        str, typer.Argument(metavar="RUN|DIR", help="A folder of results, an experiment, or the id of an MLflow run.")
    ],
    labels: Annotated[Path, typer.Option(help="What people said of the records: a table of labels.")],
    selection: Annotated[
        str | None,
        typer.Option(help="How the labelled records were chosen: random, probabilities or by_label."),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Only this metric; all that are labelled without it.")] = None,
    judge: Annotated[
        str | None, typer.Option(help="Calibrate this judge; the panel or the only judge without it, else each.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="linear, isotonic or platt map scores to labels; threshold fits no map.")
    ] = "linear",
    correlate: Annotated[
        str, typer.Option(help="Correlations over all rows (pooled), within groups (group) or of variants (system).")
    ] = "pooled",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the calibration into this JSON file.")] = None,
    log: Annotated[
        str | None, typer.Option(help="Log results, labels and calibration to MLflow, under this experiment.")
    ] = None,
    attach: Annotated[
        bool, typer.Option("--attach", help="Add the calibration to the MLflow run that was named.")
    ] = False,
) -> None:
    """Hold judges against people: agreement with its ceiling, a calibration with its held-out worth, corrected means.

    What labels do not allow is said in words, with how many would do. Exit status: 0 done, 1 no calibration came of these
    labels, 2 bad input.
    """
    from jurimetrics.labels import load_labels

    _check(source, selection, method, correlate, (log, attach))
    results = open_results(source)
    given = load_labels(labels, selection=selection)  # type: ignore[arg-type] # checked above
    chosen = _of_metric(given, metric)
    pairs = _pairs(results, chosen, judge)
    if out is not None and len(pairs) > 1:
        told = ", ".join(f"{name} by {by}" for name, by in pairs)
        raise InputError(
            f"--out holds one calibration, and there would be {len(pairs)}: {told}; say --metric and --judge"
        )
    from jurimetrics.cli.calibrated import agreement_text, calibration_text, corrected_text

    say(in_options(agreement_text(results, chosen, correlate), _OPTIONS))
    found = []
    for name, by in pairs:
        one, text = calibration_text(results, chosen, name, by, method)
        say(in_options(f"\n{text}", _OPTIONS))
        found += [one] if one is not None else []
    say(in_options(f"\n{corrected_text(results, chosen)}", _OPTIONS))
    _keep(results, given, found, source, out, (log, attach))
    if not found:
        raise typer.Exit(NOTHING)


def _check(source: str, selection: str | None, method: str, correlate: str, logs: tuple[str | None, bool]) -> None:
    from jurimetrics.calibrate.calibration import Method

    options: tuple[tuple[str, str | None, Sequence[str]], ...] = (
        ("--selection", selection, _SELECTIONS),
        ("--method", method, get_args(Method)),
        ("--correlate", correlate, _LEVELS),
    )
    for name, value, known in options:
        if value is not None and value not in known:
            raise InputError(f"{name}: expected one of {', '.join(known)}, found {value!r}")
    log, attach = logs
    if attach and Path(source).exists():
        raise InputError(
            f"--attach adds to a run of MLflow, and {source} is none; use --log with the name of an experiment"
        )
    if log is not None or attach:
        from jurimetrics.tracking.store import find_store, require_answer

        require_answer(find_store())


def _of_metric(labels: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    if metric is None:
        return labels
    if metric not in set(labels["metric"]):
        raise InputError(f"no label is of {metric!r}; labelled: {', '.join(dict.fromkeys(labels['metric']))}")
    chosen = labels[labels["metric"] == metric].reset_index(drop=True)
    chosen.attrs = labels.attrs
    return chosen


def _pairs(results: Results, labels: pd.DataFrame, judge: str | None) -> list[tuple[str, str]]:
    """The metrics and judges to calibrate: of each metric the named judge, the panel or only judge, else each but the
    baseline. Raises `InputError` where no label meets a row, or the judge scored nothing that is labelled."""
    from jurimetrics.calibrate.labels import join
    from jurimetrics.results.reading import headline_judge

    settings = results.settings
    rows = join(results, labels)
    rows = rows[rows["raters"] > 0]
    found = []
    for metric, mine in rows.groupby("metric", sort=False):
        judges = list(dict.fromkeys(mine["judge"]))
        kinds = settings.get("judges", {})
        one = judge or headline_judge(judges, settings)
        several = [name for name in judges if kinds.get(name, {}).get("kind") != "baseline"]
        found += [(str(metric), name) for name in ([one] if one is not None else several) if name in judges]
    if not found:
        raise InputError(
            f"no labelled record has a row of the judge {judge!r}; judges: {', '.join(sorted(set(rows['judge'])))}"
        )
    return found


def _keep(
    results: Results,
    labels: pd.DataFrame,
    found: Sequence[Calibration],
    source: str,
    out: Path | None,
    logs: tuple[str | None, bool],
) -> None:
    """Write and log what was found; where nothing was there is nothing to keep."""
    log, attach = logs
    if not found:
        if out is not None or log is not None or attach:
            say("\nnothing written or logged, since no calibration came of these labels")
        return
    if out is not None:
        say(f"\ncalibration  {found[0].save(out).resolve()}")
    if log is None and not attach:
        return
    from jurimetrics.calibrate.logged import log_calibration
    from jurimetrics.tracking.log import log_run

    runs = [source.removeprefix("runs:/")] if attach else []
    if log is not None:
        runs += log_run(results, experiment=log, labels=labels)
    for run_id in runs:
        for one in found:
            say(one_line(f"MLflow       run {run_id}  {log_calibration(one, run_id)}", 300))
