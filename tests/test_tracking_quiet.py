"""MLflow is kept quiet and offline while results are logged, and everything it shares with its user is as it was found."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from jurimetrics.tracking.quiet import SWITCHES, quiet_mlflow

LOGGERS = ("", "mlflow", "alembic", "sqlalchemy.engine")
# What makes MLflow silent by itself, and so would prove nothing.
SILENCERS = (
    *SWITCHES,
    "PYTEST_CURRENT_TEST",
    "CI",
    "DO_NOT_TRACK",
    "GITHUB_ACTIONS",
    "JENKINS_URL",
    "MLFLOW_TRACKING_URI",
)
WATCH = """
import os, socket
def told(real):
    def call(self, address, *rest):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
            note(address[0])
        return real(self, address, *rest)
    return call
def note(host):
    with open(os.environ["TRIED"], "a", encoding="utf-8") as file:
        file.write(f"{host}\\n")
    raise OSError("no network here")
class Watched(socket.socket):
    connect, connect_ex = told(socket.socket.connect), told(socket.socket.connect_ex)
resolve = socket.getaddrinfo
def getaddrinfo(host, *rest, **named):
    if host not in (None, "127.0.0.1", "::1", "localhost"):
        note(host)
    return resolve(host, *rest, **named)
socket.socket, socket.getaddrinfo = Watched, getaddrinfo
"""
LOG = """
import json, logging, os, sys
{before}
import pandas as pd
import jurimetrics as jm
frame = pd.DataFrame({{"id": ["1", "2"], "metric": "grade", "judge": "ann", "score": [0.5, 1.0]}})
environment = dict(os.environ)
jm.log_run(jm.Results.from_frame(frame), experiment="grades")
import mlflow, time
time.sleep({wait})
print(json.dumps([environment == dict(os.environ), logging.getLogger("mlflow").isEnabledFor(logging.INFO)]))
"""


def run(folder: Path, *command: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """A command in a project of its own, started as if by a person, and the hosts that it tried to reach."""
    (folder / "watch").mkdir()
    (folder / "watch" / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    (folder / ".git").mkdir(exist_ok=True)
    tried = folder / "tried.txt"
    kept = {name: value for name, value in os.environ.items() if name not in SILENCERS}
    paths = os.pathsep.join([str(folder / "watch"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, "PYTHONPATH": paths, "TRIED": str(tried)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=200,
    )
    return tried.read_text(encoding="utf-8").split() if tried.exists() else [], done


def test_a_report_would_be_seen(tmp_path: Path) -> None:
    """The watch itself: what MLflow does where nobody keeps it quiet."""
    script = """
import mlflow, time
mlflow.MlflowClient(tracking_uri="sqlite:///mine.db").create_experiment("mine")
from mlflow.telemetry.client import get_telemetry_client
client = get_telemetry_client()
if client is not None:  # else what it asked has already been refused, and it has given up
    client._config_thread.join(5)
"""
    tried, done = run(tmp_path, sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr
    assert tried and "mlflow" in tried[0]
    assert "INFO mlflow.store.db.utils" in done.stderr


@pytest.mark.parametrize("before", ["", "import mlflow"])
def test_logging_a_run_reaches_nobody_says_nothing_and_changes_nothing(tmp_path: Path, before: str) -> None:
    tried, done = run(tmp_path, sys.executable, "-c", LOG.format(before=before, wait=0.5))
    assert done.returncode == 0, done.stderr
    assert tried == [] and done.stderr == ""
    same_environment, mlflow_tells = json.loads(done.stdout)
    assert same_environment and mlflow_tells, "MLflow speaks to its user as it does after a plain import"
    assert (tmp_path / "mlruns" / "mlflow.db").exists()


def test_the_command_reaches_nobody(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"answer": "Madrid.", "reference": "It is Madrid."}\n', encoding="utf-8")
    text = 'data.records = "records.jsonl"\njudges = [{ kind = "baseline" }]\nmetrics.use = ["rag", "f1"]\n'
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    tried, done = run(tmp_path, sys.executable, "-c", "import jurimetrics.cli; jurimetrics.cli.main()", "run", ".")
    assert (tried, done.stderr) == ([], "") and done.returncode == 0 and "run " in done.stdout


def state() -> list[Any]:
    return [
        (one.level, list(one.handlers), list(one.filters), one.propagate, one.disabled)
        for one in map(logging.getLogger, LOGGERS)
    ]


def test_loggers_and_environment_are_as_found_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow  # noqa: F401 - sets up its loggers

    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    before, environment = state(), dict(os.environ)
    with pytest.raises(ZeroDivisionError), quiet_mlflow():
        assert not logging.getLogger("mlflow.store.db.utils").isEnabledFor(logging.INFO)
        assert logging.getLogger("alembic").isEnabledFor(logging.WARNING)
        assert {name: os.environ[name] for name in SWITCHES} == SWITCHES
        logging.getLogger().addHandler(logging.NullHandler())
        logging.getLogger("alembic").setLevel(logging.DEBUG)
        logging.getLogger("alembic").disabled = True
        1 / 0  # noqa: B018
    assert state() == before and dict(os.environ) == environment


def test_what_the_owner_says_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "false")
    monkeypatch.setattr(logging.getLogger("mlflow"), "level", logging.ERROR)
    with quiet_mlflow():
        assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "false"
        assert logging.getLogger("mlflow").level == logging.ERROR
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "false"


def test_threads_that_overlap_leave_everything_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    with quiet_mlflow():
        pass
    before, environment = state(), dict(os.environ)
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def first() -> None:
        with quiet_mlflow():
            first_is_in.set()
            assert second_is_in.wait(10)
        first_is_out.set()

    def second() -> None:
        assert first_is_in.wait(10)
        with quiet_mlflow():
            second_is_in.set()
            assert first_is_out.wait(10)
            seen.append(dict(os.environ).get("MLFLOW_DISABLE_TELEMETRY"))

    threads = [threading.Thread(target=each) for each in (first, second)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert seen == ["true"], "quiet until the last one has left"
    assert state() == before and dict(os.environ) == environment
