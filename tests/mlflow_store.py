"""An empty MLflow store for a test, copied from one that was made once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from jurimetrics.tracking.store import VARIABLE, Store, find_store, open_store, sqlite_uri


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's schema and nothing in it: making one takes seconds, copying it does not."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    open_store(Store(sqlite_uri(path), None, "test"))
    return path


@pytest.fixture
def mlflow_store(project: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The default store of an empty project, in which no experiment of another test is MLflow's active one."""
    import mlflow.tracking.fluent

    monkeypatch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")  # so that it is as it was afterwards, whatever sets it
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")
    store = find_store(project)
    (project / "mlruns").mkdir()
    shutil.copyfile(empty_store, project / "mlruns" / "mlflow.db")
    return store


@pytest.fixture(scope="session")
def store_in(empty_store: Path) -> Callable[[Path], AbstractContextManager[Store]]:
    """Makes an empty store in a folder, where everything is logged to until the block ends: for what several tests share."""

    @contextmanager
    def made(folder: Path) -> Iterator[Store]:
        shutil.copyfile(empty_store, folder / "mlflow.db")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, sqlite_uri(folder / "mlflow.db"))
            yield find_store(folder)

    return made
