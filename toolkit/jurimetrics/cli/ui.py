"""`jurimetrics ui`: MLflow's pages on the store that this project logs to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from jurimetrics.cli.console import answering, say
from jurimetrics.errors import InputError

HOST = "127.0.0.1"


@answering
def ui(port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 5000) -> None:
    """Open the MLflow pages on the right store: MLFLOW_TRACKING_URI if it is set, else the database of the project.

    Works from any folder of the project and runs until Ctrl-C. The page to look at is "Evaluation runs".
    """
    from jurimetrics.tracking.store import find_store

    store = find_store()
    if store.uri.lower().startswith(("http://", "https://")):
        say(f"MLflow is served already: {store}")
        return
    if "://" not in store.uri:
        raise InputError(f"MLFLOW_TRACKING_URI is {store}: its pages are served there, not from here")
    _require_free(port)
    if store.uri.startswith("sqlite:"):
        Path(store.uri.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    say(f"MLflow store  {store}")
    say(f"open          http://{HOST}:{port}   (Ctrl-C ends it)")
    sys.stdout.flush()
    _become([sys.executable, "-m", "mlflow", "server", *options(port)], environment(store.uri, store.artifacts))


def options(port: int) -> list[str]:
    """Options of `mlflow server`: one worker is enough for one person."""
    return ["--host", HOST, "--port", str(port), "--workers", "1"]


def environment(uri: str, artifacts: str | None) -> dict[str, str]:
    """This process's environment and the store to serve. In a variable, as a list of processes shows all arguments, and
    the address of a database may hold its password."""
    found = {**os.environ, "MLFLOW_BACKEND_STORE_URI": uri}
    if artifacts is not None:
        found["MLFLOW_DEFAULT_ARTIFACT_ROOT"] = artifacts
    return found


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise InputError(f"port {port} is taken; give another one: jurimetrics ui --port {port + 1}") from None


def _become(command: list[str], surroundings: dict[str, str]) -> None:
    """Run the command in place of this process, so that Ctrl-C and signals reach it alone."""
    if sys.platform == "win32":  # which has no such thing: the shell would come back at once
        raise typer.Exit(subprocess.call(command, env=surroundings))  # noqa: S603 - a fixed command
    os.execve(command[0], command, surroundings)  # noqa: S606 - a fixed command
