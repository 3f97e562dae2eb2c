"""`jurimetrics report`: results as one HTML file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurimetrics.cli.console import answering, one_line, say, warn
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from jurimetrics.experiment import Experiment
    from jurimetrics.results import Results
    from jurimetrics.variants.compare import Comparison


@answering
def report(
    source: Annotated[str, typer.Argument(help="A folder of results, an experiment, or the id of an MLflow run.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write; it ends in .html.")] = Path(
        "report.html"
    ),
    labels: Annotated[Path | None, typer.Option(help="What people said of the records: a table of labels.")] = None,
    selection: Annotated[
        str | None,
        typer.Option(help="How the labelled records were chosen: random, probabilities or by_label."),
    ] = None,
    calibration: Annotated[
        list[Path] | None, typer.Option(help="A calibration that was saved; may be given several times.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The variant that every other one is compared with; by default all pairs.")
    ] = None,
    primary: Annotated[
        list[str] | None,
        typer.Option(help="A metric decided on beforehand; may be given several times. Without it: all of them."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="Whose scores are read first; by default the panel's or the only judge's.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="What the page is called.")] = None,
    worst: Annotated[int, typer.Option(help="How many of the answers with the worst scores are shown.")] = 10,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser afterwards.")] = False,
) -> None:
    """Write results as one HTML file that needs nothing else: findings first, then what they rest on.

    Variants are compared, those of an experiment as its [compare] says, which options go before. Judges are held against
    people where labels are given, and what is not known is said. Exit status: 0 done, 2 bad input.
    """
    from jurimetrics.calibrate.calibration import Calibration
    from jurimetrics.cli.sources import experiment_of, open_results
    from jurimetrics.report.page import check_options
    from jurimetrics.report.page import report as write

    check_options(out, worst)  # before anything is loaded or computed
    people = _labels(labels, selection)
    fitted = [Calibration.load(path) for path in calibration or []]
    results, experiment = open_results(source), experiment_of(source)
    found = None
    if experiment is not None and experiment.study.compare is not None:
        given = {"baseline": baseline, "primary": primary or None, "judge": judge}
        experiment = _with_options(experiment, {name: value for name, value in given.items() if value is not None})
        judge = (experiment.study.compare or {}).get("judge")
        found = _compared(experiment, results, people)
    page = write(
        results, out, comparison=found, calibration=fitted, labels=people, baseline=baseline, primary=primary or None,
        judge=judge, title=title, worst=worst,
    )  # fmt: skip
    say(f"report   {one_line(str(page.resolve()), 500)} ({page.stat().st_size / 1000:,.0f} kB)")
    if show:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            warn("no browser could be opened; open the file by hand")


def _with_options(experiment: Experiment, given: dict[str, Any]) -> Experiment:
    """The experiment with what was asked for here in place of what its [compare] says."""
    study = experiment.study
    return replace(experiment, study=replace(study, compare={**(study.compare or {}), **given}))


def _compared(experiment: Experiment, results: Results, people: pd.DataFrame | None) -> Comparison | None:
    """The comparison as the experiment has it, corrected by `people` where they are given and allow it.

    None where nothing can be compared: the report then says why.
    """
    from jurimetrics.experiment import compare_experiment
    from jurimetrics.variants.compare import compare

    try:
        if people is not None and people.attrs.get("selection") in ("random", "probabilities"):
            return compare(results, labels=people, **(experiment.study.compare or {}))
        return compare_experiment(experiment, results)
    except InputError:
        return None


def _labels(path: Path | None, selection: str | None) -> pd.DataFrame | None:
    from jurimetrics.labels import load_labels

    if path is not None:
        return load_labels(path, selection=selection)  # type: ignore[arg-type]  # it says what it expects
    if selection is not None:
        raise InputError("--selection says how labelled records were chosen, and no --labels are given")
    return None
