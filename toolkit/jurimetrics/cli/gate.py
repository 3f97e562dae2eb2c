"""`jurimetrics gate`: run an experiment and hold it against an earlier run, for continuous integration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurimetrics.cli.console import FAILED_ROWS, INTERRUPTED, answering, one_line, say, warn
from jurimetrics.cli.outcome import cost, failures, logged, of_budget, unjudged, writing
from jurimetrics.cli.sources import open_results
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.experiment import Experiment, Written
    from jurimetrics.results import Results

INCONCLUSIVE = 3


@answering
def gate(
    path: Annotated[Path, typer.Argument(help="An experiment file, or its folder (experiment.toml there).")],
    against: Annotated[
        str, typer.Option(help="The run to hold it against: a folder of results, an experiment, or an MLflow run id.")
    ],
    margin: Annotated[
        float | None, typer.Option(min=0, help="By how much a metric may be worse, in its own unit; for all metrics.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Gate this metric; may be given again. All that both runs have without it.")
    ] = None,
    margin_of: Annotated[
        list[str] | None, typer.Option(help="The margin of one metric, such as faithfulness=0.05; may be given again.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Whose scores; the panel or the only judge without it.")] = None,
    level: Annotated[float, typer.Option(help="A gate errs with a chance of at most (1 - level) / 2.")] = 0.95,
    power: Annotated[float, typer.Option(help="The chance to decide that 'n needed' is told for.")] = 0.8,
    max_missing: Annotated[
        float, typer.Option(min=0, max=1, help="Share of scores that may be lost by chance; more count as the worst.")
    ] = 0.0,
    shared_only: Annotated[
        bool, typer.Option("--shared-only", help="Compare the records that are alike where others are not.")
    ] = False,
    other_contexts: Annotated[
        bool,
        typer.Option(
            "--other-contexts",
            help="Contexts may differ: they are part of what a system gave, such as what it retrieved.",
        ),
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Write the outcome as JUnit XML into this file.")] = None,
    no_log: Annotated[bool, typer.Option("--no-log", help="Do not log the new run to MLflow.")] = False,
    store: Annotated[
        str | None, typer.Option(help='Where answers are kept: a file, "auto" (the project\'s own) or "none".')
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Ask again what failed for good before (filtered, refused, rejected)."),
    ] = False,
) -> None:
    """Write answers where an experiment has prompts and models, evaluate, and say whether it is worse than an earlier run
    by a margin or more.

    Its results are saved and logged as by `run`. The comparison of its variants, the report and the run of the comparison
    in MLflow are not made here: `run` makes them.

    Exit status: 0 no metric is worse by its margin, 1 a metric is, 3 inconclusive (the table says how many records would
    decide), 2 bad input or runs that must not be compared, 130 interrupted with what is done kept.
    """
    from jurimetrics.experiment import check_ready, evaluate_experiment, load_experiment, log_experiment, write_answers
    from jurimetrics.variants.gate import gate as gated

    experiment = load_experiment(path)
    old = _old(against, experiment)
    margins = read_margins(margin_of or ())
    _check(experiment, old, margin, margins, metric, junit)
    check_ready(experiment, log=not no_log)
    written = write_answers(experiment, store=store, retry_failed=retry_failed)
    if written is not None and written.interrupted:
        say("\n".join([one_line(experiment.name, 200), "", *writing(written), *unjudged(experiment, store)]))
        warn(
            "interrupted while answers were written, nothing was judged or compared; run the same command again to go on"
        )
        raise typer.Exit(INTERRUPTED)
    results = evaluate_experiment(experiment, written, store=store, retry_failed=retry_failed)
    if results.settings["interrupted"]:
        warn("interrupted: what is done is kept, nothing was compared; run the same command again to go on")
        raise typer.Exit(INTERRUPTED)
    wanted = _wanted(old, margin, margins, metric or list(results.settings["metrics"]))
    found = gated(
        results, old, margin=wanted, metrics=metric, judge=judge, level=level, power=power, max_missing=max_missing,
        shared_only=shared_only, same_contexts=not other_contexts,
    )  # fmt: skip
    say(_about(experiment, results, against, written))
    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(found.junit(experiment.name), encoding="utf-8")
    if experiment.mlflow.log and not no_log:
        say(logged(experiment, results, log_experiment(experiment, results)))
    say(f"\n{found}")
    if found.outcome != "passed":
        raise typer.Exit(FAILED_ROWS if found.outcome == "failed" else INCONCLUSIVE)


def read_margins(given: Sequence[str]) -> dict[str, float]:
    """Margins by metric from texts such as "faithfulness=0.05"; a metric under options has the last "=" before its margin.

    Raises `InputError` for anything else.

    >>> read_margins(["f1=0.1", "faithfulness(refusals=worst)=0.05"])
    {'f1': 0.1, 'faithfulness(refusals=worst)': 0.05}
    """
    found: dict[str, float] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise InputError(
                f"--margin-of: expected a metric and its margin, such as faithfulness=0.05, found {text!r}"
            )
    return found


def _wanted(
    old: Results, margin: float | None, margins: Mapping[str, float], metrics: Sequence[str]
) -> float | dict[str, float]:
    """The margin of all metrics, or of each: the stated ones and, where there is one for all, the other metrics."""
    if margin is None:
        return dict(margins)
    rows = old.scores
    scored = set(rows.loc[rows["score"].notna(), "metric"])
    return margin if not margins else {name: margins.get(name, margin) for name in metrics if name in scored}


def _old(against: str, experiment: Experiment) -> Results:
    old = open_results(against)
    if old.folder.resolve() == experiment.out.resolve():
        raise InputError(
            f"--against {against}: these results lie where the new ones will be written ({experiment.out}); keep a copy "
            "elsewhere and name that, or give the id of the MLflow run"
        )
    return old


def _check(
    experiment: Experiment,
    old: Results,
    margin: float | None,
    margins: Mapping[str, float],
    metrics: Sequence[str] | None,
    junit: Path | None,
) -> None:
    """Raise `InputError` for what is wrong before anything is asked, so that nothing is paid for in vain."""
    from jurimetrics.results.differences import of_set_ups, of_versions

    if margin is None and not margins:
        raise InputError("give --margin, or --margin-of for each metric to gate")
    if junit is not None and junit.is_dir():
        raise InputError(f"--junit {junit}: is a folder; expected the path of a file")
    there = {one.name: {"version": one.version} for one in experiment.metrics}
    for name in [*(metrics or ()), *margins]:
        for which, known in ((experiment.file, there), ("the old run", old.settings["metrics"])):
            if name not in known:
                raise InputError(f"no metric {name!r} in {which}; metrics: {', '.join(known)}")
    chosen = metrics or (margins if margin is None else there)
    new = {"metrics": {name: there[name] for name in chosen}}
    judges = {"judges": {one.name: one.settings() for one in experiment.judges}}
    names = ("the new run", "the old run")
    if said := [*of_versions(new, old.settings, names), *of_set_ups(judges, old.settings, names)]:
        raise InputError(f"the runs must not be compared: {'; '.join(said)}")


def _about(experiment: Experiment, results: Results, against: str, written: Written | None) -> str:
    """What was run and where it is, what failed, and what it took to write and to judge."""
    from jurimetrics.display import count

    head = one_line(f"{experiment.name}: {count(results.settings['records'], 'record')}, against {against}", 200)
    spent = [f"cost     {cost(results)}"]
    if written is not None:
        spent = [*writing(written), f"judging  {cost(results)}", *of_budget(experiment, written)]
    return "\n".join([head, "", *failures(results), *spent, f"results  {results.folder.resolve()}"])
