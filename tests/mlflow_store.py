"""An empty MLflow store for a test, copied from one that was made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from jurimetrics.tracking.store import Store, find_store, open_store, sqlite_uri


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's schema and nothing in it: making one takes seconds, copying it does not."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    open_store(Store(sqlite_uri(path), None, "test"))
    return path


@pytest.fixture
def mlflow_store(project: Path, empty_store: Path) -> Store:
    """The default store of an empty project."""
    store = find_store(project)
    (project / "mlruns").mkdir()
    shutil.copyfile(empty_store, project / "mlruns" / "mlflow.db")
    return store
