"""`jurimetrics run`: an experiment file, from its records to MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jurimetrics.cli.console import FAILED_ROWS, INTERRUPTED, answering, say, warn, width
from jurimetrics.cli.outcome import baseline_alone, failed_share, logged, outcome


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
    """Run an experiment: evaluate, print the summary, save the results, log them to MLflow.

    Running it again asks only what is not answered yet. Exit status: 0 done, 1 done with more failed rows than
    --max-failed, 2 bad input, 130 interrupted with what is done kept.
    """
    from jurimetrics.experiment import check_ready, evaluate_experiment, load_experiment, log_experiment

    experiment = load_experiment(path)
    check_ready(experiment, log=not no_log)
    results = evaluate_experiment(experiment, store=store, retry_failed=retry_failed)
    say(outcome(experiment, results, width()))
    if results.settings["interrupted"]:
        warn("interrupted: what is done is kept, nothing was logged to MLflow; run the same command again to go on")
        raise typer.Exit(INTERRUPTED)
    if experiment.mlflow.log and not no_log:
        say(logged(experiment, results, log_experiment(experiment, results)))
    else:
        say("MLflow   nothing logged")
    if said := baseline_alone(experiment):
        say(said)
    share = failed_share(results)
    if share > max_failed:
        warn(f"{share:.1%} of the rows failed; {max_failed:.1%} are allowed (--max-failed)")
        raise typer.Exit(FAILED_ROWS)
