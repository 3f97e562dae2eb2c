"""The command `jurimetrics`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from jurimetrics.cli.calibrate import calibrate
from jurimetrics.cli.compare import compare
from jurimetrics.cli.console import say, speak_utf8
from jurimetrics.cli.doctor import doctor
from jurimetrics.cli.gate import gate
from jurimetrics.cli.judge import judge
from jurimetrics.cli.metrics import metrics
from jurimetrics.cli.plan import plan
from jurimetrics.cli.report import report
from jurimetrics.cli.run import run
from jurimetrics.cli.store import store
from jurimetrics.cli.ui import ui

app = typer.Typer(
    name="jurimetrics",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from jurimetrics.version import VERSION

        say(VERSION)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Score language-model answers with panels of judges, and say how far each judge can be trusted."""


app.command(short_help="Run an experiment file: evaluate, print, save, log.")(run)
app.command(short_help="Say what an experiment would ask and cost; nothing is sent.")(plan)
app.command(short_help="Run an experiment; fail if it is worse than an earlier run.")(gate)
app.command(short_help="Write results as one HTML file: what was found, and how far to trust it.")(report)
app.command(short_help="List the metrics, their definitions and prompts.")(metrics)
app.command(short_help="Hold judges against people's labels; calibrate and correct them.")(calibrate)
app.command(short_help="Compare variants of results or MLflow runs.")(compare)
app.command(short_help="Score one record from the command line.")(judge)
app.command(short_help="Ask an endpoint what it supports and costs.")(doctor)
app.command(short_help="Show what the store of answers holds; remove answers on request.")(store)
app.command(short_help="Open the MLflow pages on the right store.")(ui)


def main() -> None:
    """The entry point. Exit status: 0 done, 1 done with more failed rows than allowed or a gate that failed, 2 bad input,
    3 a gate that is inconclusive, 130 interrupted."""
    speak_utf8()
    # MLflow, here and in the server that `ui` starts, is not to report its use to its makers unless its owner says so.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    app()
