"""Logging to a real `mlflow server`, and what happens when it goes away."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jurimetrics.errors import InputError
from jurimetrics.results import Results
from jurimetrics.tracking import log
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.store import sqlite_uri
from mlflow import MlflowClient
from tracked import METRICS, make_results

pytest_plugins = ("mlflow_store",)
pytestmark = [
    pytest.mark.slow,  # a server takes about 15 seconds to start
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),  # MLflow 3.17 on SQLAlchemy 2.1
]


@contextmanager
def running_server(folder: Path, database: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """An `mlflow server` on loopback over a database, with its artifacts behind it; ended with all its workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", sqlite_uri(database), "--artifacts-destination", (folder / "artifacts").as_uri()]
    with (folder / "server.log").open("wb") as output:
        server = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server, folder / "server.log")
        yield f"http://127.0.0.1:{port}", server
    finally:
        stop(server)


def wait_for(address: str, server: subprocess.Popen[bytes], output: Path, patience: float = 120) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(output.read_text(encoding="utf-8", errors="replace")[-2000:])


def stop(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(30)


@pytest.fixture
def served(project: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    (project / "server").mkdir()
    database = project / "server" / "mlflow.db"
    database.write_bytes(empty_store.read_bytes())
    with running_server(project / "server", database) as (address, server):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        yield address, server


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return make_results(tmp_path / "results", records=12)


def test_everything_arrives_at_a_server(served: tuple[str, Any], results: Results, tmp_path: Path) -> None:
    runs = log_run(results, experiment="tenancy")
    client = MlflowClient(tracking_uri=served[0])
    for run_id, variant in zip(runs, ("concise", "thorough"), strict=True):
        run = client.get_run(run_id)
        assert run.info.status == "FINISHED"
        assert list(run.data.metrics)[:4] == list(METRICS)
        assert run.data.tags["jurimetrics.traces"] == "12 of 12 records"
        traces = client.search_traces(locations=[run.info.experiment_id], run_id=run_id, max_results=100)
        assert len(traces) == 12
        scores = results.scores[results.scores["variant"] == variant]
        said = [found for trace in traces for found in trace.info.assessments if found.feedback is not None]
        assert len(said) == (scores["status"] != "not_applicable").sum()
        assert sorted(found.value for found in said if found.error is None) == sorted(scores["score"].dropna())
        errors = [found.error.error_code for found in said if found.error is not None]
        assert errors.count("timeout") == (scores["status"] == "failed").sum()
        assert {trace.data.spans[0].inputs["id"] for trace in traces} == set(scores["id"])
        folder = Path(client.download_artifacts(run_id, "", str(tmp_path / variant)))
        assert {path.name for path in folder.iterdir()} == {
            "answers.html", "calls.parquet", "figures", "prompts", "records.parquet", "scores.json", "scores.parquet",
            "settings.json", "summary.csv", "uses.parquet",
        }  # fmt: skip
    assert not (tmp_path / "mlruns").exists(), "a server keeps everything on its side"


def test_a_server_that_dies_half_way_is_said_and_costs_nothing(
    served: tuple[str, Any], results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = log._log_files

    def dying(*arguments: Any) -> None:
        stop(served[1])
        real(*arguments)

    monkeypatch.setattr(log, "_log_files", dying)
    before = results.scores
    started = time.monotonic()
    with pytest.raises(InputError, match=rf"{served[0]} does not answer .* nothing is lost") as caught:
        log_run(results, experiment="tenancy")
    assert time.monotonic() - started < 30, "MLflow's own retries would take minutes"
    assert "could not be ended as FAILED" in "".join(caught.value.__notes__)
    assert results.scores.equals(before)
