"""Where runs go, and opening it: from any folder, from many processes, with nothing there."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from jurimetrics.errors import InputError
from jurimetrics.tracking.store import Store, find_store, open_experiment, open_store, patiently, sqlite_uri

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def test_m12_two_folders_of_one_project_log_to_one_store(project: Path) -> None:
    inside = project / "notebooks" / "deep"
    inside.mkdir(parents=True)
    first, second = find_store(project), find_store(inside)
    assert first == second
    assert first.uri == f"sqlite:///{(project / 'mlruns' / 'mlflow.db').as_posix()}"
    assert first.artifacts == (project / "mlruns" / "artifacts").as_uri()
    assert not (project / "mlruns").exists(), "looking must not create anything"


def test_m12_paths_with_a_drive_are_absolute_uris() -> None:
    assert sqlite_uri(PureWindowsPath(r"C:\Users\ann\mlruns\mlflow.db")) == "sqlite:///C:/Users/ann/mlruns/mlflow.db"
    assert sqlite_uri(PurePosixPath("/home/ann/ü b/mlflow.db")) == "sqlite:////home/ann/ü b/mlflow.db"
    with pytest.raises(InputError, match="absolute"):
        sqlite_uri(PurePosixPath("mlruns/mlflow.db"))


def test_the_variable_wins_and_a_relative_database_is_made_absolute(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mine.db")
    assert find_store() == Store(
        f"sqlite:///{(project / 'mine.db').as_posix()}", (project / "artifacts").as_uri(), "MLFLOW_TRACKING_URI"
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ann:secret@localhost:5000")
    assert find_store().artifacts is None
    assert "secret" not in str(find_store())


@pytest.mark.parametrize("uri", ["file:///tmp/mlruns", "mlruns", "./mlruns", "/data/mlruns", r"C:\mlruns", "sqlite://"])
def test_a_store_of_files_is_refused_in_clear_words(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(InputError, match=r"MLFLOW_TRACKING_URI is .*sqlite:///"):
        find_store()


def test_a_server_that_is_not_there_is_said_within_seconds() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(
        InputError, match=rf"http://ann:\*\*\*@127\.0\.0\.1:{port} does not answer .* nothing is lost"
    ) as caught:
        open_store(Store(f"http://ann:secret@127.0.0.1:{port}", None, "test"))
    assert time.monotonic() - started < 10
    assert "secret" not in str(caught.value)


def test_a_server_that_never_answers_is_given_up_within_seconds() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        with pytest.raises(InputError, match="does not answer"):
            open_store(Store(f"http://127.0.0.1:{silent.getsockname()[1]}", None, "test"))
        assert time.monotonic() - started < 15


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be opened"):
        open_store(Store(sqlite_uri(tmp_path / "file" / "mlflow.db"), None, "test"))


def test_a_database_that_is_none_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("no database" * 100, encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot be opened: .*not a database$") as refused:
        open_store(Store(sqlite_uri(tmp_path / "mlflow.db"), None, "test"))
    assert len(str(refused.value).splitlines()) == 1
    assert isinstance(refused.value.__cause__, sqlite3.DatabaseError), "before MLflow tries it ten times"


OPEN = """
import sys
from pathlib import Path
from jurimetrics.tracking.store import find_store, open_experiment, open_store
store = find_store(Path(sys.argv[1]))
print(open_experiment(open_store(store), store, "shared"))
"""


@pytest.mark.parametrize("processes", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_m08_processes_open_a_new_store_at_once(processes: int, project: Path) -> None:
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, str(project)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for _ in range(processes)
    ]
    outcomes = [job.communicate(timeout=300) for job in jobs]
    assert [job.returncode for job in jobs] == [0] * processes, [error[-500:] for _, error in outcomes]
    assert len({out for out, _ in outcomes}) == 1, "one experiment, whoever made it"
    assert not any("locked" in error or "already exists" in error for _, error in outcomes)


def test_a_deleted_experiment_is_refused_by_name(project: Path, mlflow_store: Store) -> None:
    client = open_store(mlflow_store)
    client.delete_experiment(open_experiment(client, mlflow_store, "gone"))
    with pytest.raises(InputError, match=r"'gone' .* is deleted"):
        open_experiment(client, mlflow_store, "gone")


def test_m08_a_locked_database_is_tried_again() -> None:
    from mlflow.exceptions import MlflowException

    errors = [MlflowException("(sqlite3.OperationalError) database is locked")] * 2

    def busy() -> str:
        if errors:
            raise errors.pop()
        return "written"

    assert patiently(busy) == "written"

    said = [
        "(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.name [SQL: INSERT INTO datasets (name) VALUES (?)]"
    ]

    def raced() -> str:
        if said:
            raise MlflowException(said.pop())
        return "written"

    assert patiently(raced) == "written", "somebody else was first with the same dataset"

    def broken() -> str:
        raise MlflowException("no such column")

    with pytest.raises(MlflowException, match="no such column"):
        patiently(broken)


def test_opening_leaves_the_process_as_it_was(mlflow_store: Store) -> None:
    import mlflow

    mlflow.set_tracking_uri("sqlite:///elsewhere.db")
    try:
        before = dict(os.environ), mlflow.get_tracking_uri()
        open_experiment(open_store(mlflow_store), mlflow_store, "quiet")
        assert (dict(os.environ), mlflow.get_tracking_uri()) == before
    finally:
        mlflow.set_tracking_uri(None)
