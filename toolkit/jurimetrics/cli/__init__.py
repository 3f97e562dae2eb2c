"""The command `jurimetrics`."""

from __future__ import annotations

import typer

from jurimetrics.cli.console import speak_utf8
from jurimetrics.cli.judge import judge
from jurimetrics.cli.metrics import metrics
from jurimetrics.cli.run import run
from jurimetrics.cli.ui import ui

app = typer.Typer(
    name="jurimetrics",
    help="Score language-model answers with panels of judges, and say how far each judge can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command(short_help="Run an experiment file: evaluate, print, save, log.")(run)
app.command(short_help="List the metrics, their definitions and prompts.")(metrics)
app.command(short_help="Score one record from the command line.")(judge)
app.command(short_help="Open the MLflow pages on the right store.")(ui)


def main() -> None:
    """The entry point. Exit status: 0 done, 1 done with more failed rows than allowed, 2 bad input, 130 interrupted."""
    speak_utf8()
    app()
