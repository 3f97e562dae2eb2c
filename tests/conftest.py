"""Fixtures that several test files share."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

# Before anything imports MLflow, which would report its use to its makers.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@event.listens_for(Engine, "connect")
def _without_waiting_for_the_disk(connection: object, _: object) -> None:
    """MLflow commits every trace, and a disk takes milliseconds for each; no test survives a power failure anyway."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(scope="session")
def local_model_url() -> Iterator[str]:
    """The address of a real small language model behind a real OpenAI-compatible server."""
    from local_model import start_local_model

    with start_local_model() as url:
        yield url


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project folder as the working directory, so that no test writes into the repository."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of human-labelled data beside the repository; tests that need it skip where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the labelled data folder ../shared/data is not here")
    return folder
