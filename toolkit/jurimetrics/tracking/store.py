"""Where runs are logged to, and opening it: the schema is there before anything writes, an absent server is said at once.

MLflow is only ever addressed by an explicit URI: the process's tracking URI, active run, active experiment, autologging,
tracing state and environment stay as they are.
"""

from __future__ import annotations

import os
import re
import sqlite3
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeVar

from jurimetrics.errors import InputError
from jurimetrics.project import project_folder

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")
VARIABLE = "MLFLOW_TRACKING_URI"


@dataclass(frozen=True, slots=True)
class Store:
    """Where runs go: the absolute tracking `uri`, and the URI of the folder for `artifacts` (None: the server decides).

    `why` says how it was chosen. `str(store)` is fit for printing: a password in the URI is left out.

    >>> str(Store("http://ann:secret@localhost:5000", None, "MLFLOW_TRACKING_URI"))
    'http://ann:***@localhost:5000'
    """

    uri: str
    artifacts: str | None
    why: str

    def __str__(self) -> str:
        return shown(self.uri)


def find_store(start: Path | None = None) -> Store:
    """The store: the variable `MLFLOW_TRACKING_URI` if set, else `mlruns/mlflow.db` in the project around `start`.

    `start` (default: the working directory) may be any folder of the project. Nothing is created here. Raises
    `InputError` for a `file:` store or a bare path, which MLflow 3 no longer writes to.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        return _given_store(given)
    runs = project_folder(start) / "mlruns"
    return Store(sqlite_uri(runs / "mlflow.db"), (runs / "artifacts").as_uri(), f"{VARIABLE} is not set")


def _given_store(uri: str) -> Store:
    scheme = uri.partition(":")[0].lower() if re.match(r"[A-Za-z][\w+.\-]+:", uri) else ""
    if scheme in ("", "file") and not uri.startswith("databricks"):
        raise InputError(
            f"{VARIABLE} is {uri}: MLflow 3 does not log to a folder of files; give a database "
            f"({sqlite_uri(Path.cwd() / 'mlruns' / 'mlflow.db')}) or the address of a server, or unset it"
        )
    if scheme != "sqlite":
        return Store(uri, None, VARIABLE)
    path = uri.removeprefix("sqlite:///")
    if path == uri or path in ("", ":memory:"):
        raise InputError(f"{VARIABLE} is {uri}: give a database file as sqlite:///PATH")
    database = Path(path).resolve()
    return Store(sqlite_uri(database), (database.parent / "artifacts").as_uri(), VARIABLE)


def sqlite_uri(path: PurePath) -> str:
    """The tracking URI of a sqlite file given by its absolute path, on POSIX and Windows.

    >>> from pathlib import PurePosixPath, PureWindowsPath
    >>> sqlite_uri(PurePosixPath("/srv/mlflow.db")), sqlite_uri(PureWindowsPath(r"C:\\runs\\mlflow.db"))
    ('sqlite:////srv/mlflow.db', 'sqlite:///C:/runs/mlflow.db')

    Raises `InputError` for a relative path, and for a "?" in it, where a database URI would end.
    """
    if not path.is_absolute() or "?" in str(path):
        raise InputError(f"{path}: the path of an MLflow database must be absolute and without '?'")
    return f"sqlite:///{path.as_posix()}"


def open_store(store: Store) -> MlflowClient:
    """A client of the store, whose schema exists and whose server answers.

    A sqlite store is created under a lock of its own, so that any number of processes may open a new one at once.
    Raises `InputError` that names the address if it cannot be reached within a few seconds.
    """
    from mlflow import MlflowClient

    if not store.uri.startswith("sqlite:"):
        require_answer(store)
        return MlflowClient(tracking_uri=store.uri)
    database = Path(store.uri.removeprefix("sqlite:///"))
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        with _only_process(database.with_name(database.name + ".lock")):
            _require_database(database)
            return MlflowClient(tracking_uri=store.uri)
    except troubles() as error:
        raise InputError(f"MLflow store {store}: cannot be opened: {_first_line(error)}") from error


def troubles() -> tuple[type[Exception], ...]:
    """What is raised where MLflow refuses, or its database or its folder of artifacts cannot be used.

    >>> OSError in troubles()
    True
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return MlflowException, SQLAlchemyError, sqlite3.Error, OSError


def _require_database(path: Path) -> None:
    """Raise what sqlite says of a file that is no database. MLflow itself would try to open it for a minute and a half."""
    if path.exists():
        # One that is locked is one.
        with closing(sqlite3.connect(path)) as database, suppress(sqlite3.OperationalError):
            database.execute("PRAGMA schema_version")


@contextmanager
def _only_process(path: Path, wait: float = 120.0) -> Iterator[None]:
    """One process at a time. The lock is sqlite's own: portable, and free as soon as its holder dies."""
    with closing(sqlite3.connect(path, timeout=wait, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield


def require_answer(store: Store, wait: float = 5.0) -> None:
    """Return if the server of the store answers within `wait` seconds, whatever it answers; nothing to ask of a database.

    MLflow itself would repeat its first request for minutes. Raises `InputError`.
    """
    if not store.uri.lower().startswith(("http://", "https://")):
        return
    address = re.sub(r"(?<=//)[^/@]*@", "", store.uri).rstrip("/") + "/health"
    try:
        with urllib.request.urlopen(address, timeout=wait):  # noqa: S310 - http or https only, see above
            return
    except urllib.error.HTTPError as error:
        error.close()
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError):  # there is a server; whether it is trusted is for MLflow's own settings
            return
        raise InputError(
            f"MLflow at {store} does not answer ({_first_line(reason)}); nothing is lost: start it, or change "
            f"{VARIABLE}, and do the same again"
        ) from error


def open_experiment(client: MlflowClient, store: Store, name: str) -> str:
    """The id of the experiment with this name, made if there is none. Raises `InputError` if it is a deleted one."""
    from mlflow.exceptions import MlflowException

    found = patiently(client.get_experiment_by_name, name)
    if found is None:
        try:
            return str(patiently(client.create_experiment, name, artifact_location=store.artifacts, tags=_KIND))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        found = patiently(client.get_experiment_by_name, name)  # another process was first
    if found is None or found.lifecycle_stage != "active":
        raise InputError(f"the MLflow experiment {name!r} at {store} is deleted; restore it or take another name")
    return str(found.experiment_id)


# The page that MLflow opens an experiment on, with "Evaluation runs" in its menu.
_KIND = {"mlflow.experimentKind": "genai_development"}


def patiently(call: Callable[..., T], *args: object, attempts: int = 6, **kwargs: object) -> T:
    """What `call` returns, called again while the database is locked by somebody else, or where somebody else has just
    written the same dataset: MLflow looks whether it is there before it writes it, and nothing of such a call is kept."""
    from mlflow.exceptions import MlflowException

    for attempt in range(attempts - 1):
        try:
            return call(*args, **kwargs)
        except MlflowException as error:
            said = str(error)
            if "database is locked" not in said and not ("IntegrityError" in said and "INTO datasets" in said):
                raise
        time.sleep(0.1 * 2**attempt)
    return call(*args, **kwargs)


def shown(uri: str) -> str:
    """A URI without its password, for messages."""
    return re.sub(r"(//[^/:@]*):[^/@]*@", r"\1:***@", uri)


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
