"""`jurimetrics run`: an experiment file, from its records, or its prompts and models, to MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurimetrics.cli.console import FAILED_ROWS, INTERRUPTED, answering, one_line, say, warn, width
from jurimetrics.cli.outcome import baseline_alone, compared, failed_share, logged, outcome, unjudged, writing
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.experiment import Experiment, Written
    from jurimetrics.results import Results


@answering
def run(
    path: Annotated[Path, typer.Argument(help="An experiment file, or its folder (experiment.toml there).")],
    max_failed: Annotated[
        float, typer.Option(min=0, max=1, help="Share of failed rows that is allowed; above it the exit status is 1.")
    ] = 0.2,
    no_log: Annotated[bool, typer.Option("--no-log", help="Do not log to MLflow.")] = False,
    store: Annotated[
        str | None, typer.Option(help='Where answers are kept: a file, "auto" (the project\'s own) or "none".')
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Ask again what failed for good before (filtered, refused, rejected)."),
    ] = False,
) -> None:
    """Run an experiment: write answers where it has prompts and models, evaluate, compare, save the results, log to MLflow.

    Running it again asks only what is not answered yet. Exit status: 0 done, 1 done with more failed rows than
    --max-failed, 2 bad input, 130 interrupted with what is done kept.
    """
    from jurimetrics.experiment import check_ready, evaluate_experiment, load_experiment, write_answers

    experiment = load_experiment(path)
    check_ready(experiment, log=not no_log)
    written = write_answers(experiment, store=store, retry_failed=retry_failed)
    if written is not None and written.interrupted:
        say("\n".join([one_line(experiment.name, 200), "", *writing(written), *unjudged(experiment, store)]))
        warn("interrupted while answers were written, nothing was judged; run the same command again to go on")
        raise typer.Exit(INTERRUPTED)
    results = evaluate_experiment(experiment, written, store=store, retry_failed=retry_failed)
    if results.settings["interrupted"]:
        say(outcome(experiment, results, width(), written))
        warn("interrupted: what is done is kept, nothing was logged to MLflow; run the same command again to go on")
        raise typer.Exit(INTERRUPTED)
    _conclude(experiment, results, written, log=experiment.mlflow.log and not no_log)
    if said := baseline_alone(experiment):
        say(said)
    share = failed_share(results)
    if share > max_failed:
        warn(f"{share:.1%} of the rows failed; {max_failed:.1%} are allowed (--max-failed)")
        raise typer.Exit(FAILED_ROWS)


def _conclude(experiment: Experiment, results: Results, written: Written | None, *, log: bool) -> None:
    """Compare, tell the outcome, report, and log: in this order, so that a fault of MLflow hides nothing."""
    from jurimetrics.experiment import compare_experiment, log_experiment, log_study, report_experiment

    found, why = None, experiment.study.not_compared
    try:
        found = compare_experiment(experiment, results)
    except InputError as error:
        why = str(error).removeprefix("compare: ")
    say(outcome(experiment, results, width(), written, compared(found, why)))
    page = report_experiment(experiment, results, found)
    if page is not None:
        say(f"report   {page.resolve()}")
    if not log:
        say("MLflow   nothing logged")
        return
    runs = log_experiment(experiment, results)
    study = ""
    try:
        study = "" if found is None else log_study(experiment, results, found, runs)
    finally:
        say(logged(experiment, results, runs, study))
