"""A run of MLflow -> the results that were logged as it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jurimetrics.errors import InputError
from jurimetrics.frames import SCHEMAS, SETTINGS, read_settings, write_part, write_settings
from jurimetrics.results import Results
from jurimetrics.results.parts import reference_models
from jurimetrics.results.reading import RECORDED
from jurimetrics.results.saving import check_folder
from jurimetrics.tracking.names import decode
from jurimetrics.tracking.quiet import quiet_mlflow
from jurimetrics.tracking.store import Store, find_store, open_store, patiently, require_answer, troubles

if TYPE_CHECKING:
    from mlflow import MlflowClient

_NEEDED = ("scores.parquet", "records.parquet", SETTINGS)
_CALLS = ("calls.parquet", "uses.parquet")
_NO_CALLS = "Read from a run of an older version, which kept no calls: what judging took and who answered are unknown."
_MOST_NAMED = 8
_RUN_ID = re.compile(r"[0-9a-f]{32}")


def is_run_id(text: str) -> bool:
    """Whether `text` looks like the id of a run.

    >>> is_run_id("0123456789abcdef0123456789abcdef"), is_run_id("results")
    (True, False)
    """
    return _RUN_ID.fullmatch(text) is not None


def load_run(run_id: str) -> Results:
    """The results that `log_run` logged as this run: those of one variant, as they were then.

    Records, scores, calls, summary and thresholds are the same; `settings` but for `variants`, `records`, `written_by` and
    `reference_models`, which are of this variant alone. A call that other variants used too keeps these uses, so the row's
    shares of tokens and costs are what they were; `totals` takes such a call whole. The store is `find_store()`; the
    results live in a temporary folder until they are gone or saved.

    A run of an older version has no calls: then what judging took is unknown, and a note says so.

    Raises `InputError`, one line that names the store, where there is no such run, it is deleted, did not end as FINISHED
    or was not logged by `log_run`, its files are gone, or MLflow cannot be reached; for the run of a comparison the line
    names the runs of its variants.

    >>> import os
    >>> import pandas as pd
    >>> from unittest.mock import patch
    >>> from jurimetrics import log_run
    >>> results = Results.from_frame(pd.DataFrame({"id": ["1", "2"], "metric": "grade", "judge": "ann", "score": [0.5, 1]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     uri = f"sqlite:///{Path(folder).as_posix()}/mlflow.db"
    ...     with patch.dict(os.environ, MLFLOW_TRACKING_URI=uri):
    ...         load_run(log_run(results, experiment="grades", traces=0)[0]).scores["score"].tolist()
    [0.5, 1.0]
    """
    if not isinstance(run_id, str) or not is_run_id(run_id):
        raise InputError(f"{run_id!r} is not the id of an MLflow run (32 digits from 0 to f)")
    store = find_store()
    _require_database(store)
    target = Path(tempfile.mkdtemp(prefix="jurimetrics-"))
    try:
        with tempfile.TemporaryDirectory(prefix="jurimetrics-") as name:
            with quiet_mlflow(), _refusals(store):
                files = _download(open_store(store), store, run_id, Path(name))
            _rebuild(Path(name), target, run_id, with_calls=set(_CALLS) <= files)
        check_folder(target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return Results(target, temporary=True)


def _require_database(store: Store) -> None:
    """Looking for a run must not make a store."""
    if store.uri.startswith("sqlite:") and not Path(store.uri.removeprefix("sqlite:///")).is_file():
        raise InputError(f"MLflow store {store}: there is none yet; log_run makes it, or set MLFLOW_TRACKING_URI")


@contextmanager
def _refusals(store: Store) -> Iterator[None]:
    try:
        yield
    except troubles() as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"MLflow at {store}: {first}") from error


def _download(client: MlflowClient, store: Store, run_id: str, folder: Path) -> set[str]:
    """Fetch what results are made of; which of the files there are."""
    from mlflow.exceptions import MlflowException

    try:
        run = patiently(client.get_run, run_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        raise InputError(f"MLflow at {store}: there is no run {run_id}") from None
    called = f"run {run_id} ({run.info.run_name})"
    if run.info.lifecycle_stage != "active":
        raise InputError(f"MLflow at {store}: {called} is deleted; restore it to read it")
    if run.data.tags.get("jurimetrics.kind") == "study":
        raise InputError(
            f"MLflow at {store}: {called} is the run of a comparison and holds no results; give the run of a variant"
            + _runs_of_variants(run.data.tags)
        )
    if "jurimetrics.evaluation" not in run.data.tags:
        raise InputError(f"MLflow at {store}: {called} was not logged by log_run, so there are no results to read back")
    if run.info.status != "FINISHED":
        raise InputError(f"MLflow at {store}: {called} is {run.info.status}, not FINISHED; log its results again")
    there = {found.path for found in patiently(client.list_artifacts, run_id)}
    if lacking := [name for name in _NEEDED if name not in there]:
        raise InputError(f"MLflow at {store}: {called} has no {', '.join(lacking)} among its artifacts")
    wanted = [*_NEEDED, *(name for name in _CALLS if name in there)]
    for name in wanted:
        require_answer(store)
        patiently(client.download_artifacts, run_id, name, str(folder))
    return set(wanted)


def _runs_of_variants(tags: Mapping[str, str]) -> str:
    """The runs that a comparison was made from, by variant; at most as many as can be read in one line."""
    begin = "jurimetrics.run."
    found = [(name.removeprefix(begin), run_id) for name, run_id in tags.items() if name.startswith(begin)]
    named = [f"{decode(segment) or segment} {run_id}" for segment, run_id in found[:_MOST_NAMED]]
    more = [f"{len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    return f": {', '.join([*named, *more])}" if found else ""


def _rebuild(files: Path, target: Path, run_id: str, *, with_calls: bool) -> None:
    """The files of a run as a folder of results."""
    settings = read_settings(files)
    if not with_calls:
        settings = _without_calls(settings)
    tables = {name: _table(files / f"{name}.parquet", name, settings, run_id) for name in ("records", "scores")}
    for name in ("calls", "uses"):
        made = _table(files / f"{name}.parquet", name, settings, run_id) if with_calls else SCHEMAS[name].empty_table()
        tables[name] = made
    variants = pc.unique(tables["records"].column("variant")).to_pylist()
    settings |= {"variants": variants, "records": tables["records"].num_rows}
    if "reference_models" in settings:
        settings["reference_models"] = reference_models([tables["records"]])
    if isinstance(written := settings.get("written_by"), Mapping):
        settings["written_by"] = {name: one for name, one in written.items() if name in variants}
    for name, table in tables.items():
        write_part(table, target / name / "part-00000.parquet")
    write_settings(target, {**settings, "rows": {name: table.num_rows for name, table in tables.items()}})


def _table(path: Path, name: str, settings: Mapping[str, Any], run_id: str) -> pa.Table:
    import pyarrow.parquet as pq

    schema = SCHEMAS[name]
    try:
        found = pq.read_table(path, partitioning=None)
        if name == "scores" and "panel" not in found.column_names:
            found = found.append_column("panel", _by_panel(found, settings))
        return found.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, OSError) as error:
        raise InputError(f"run {run_id}: {path.name} cannot be read ({str(error).splitlines()[0]})") from None


def _by_panel(scores: pa.Table, settings: Mapping[str, Any]) -> pa.Array:
    """Which rows are a panel's, by its name: older versions did not keep it with the row."""
    panel = settings.get("panel") or {}
    names = [panel["name"]] if panel else []
    return pc.is_in(scores.column("judge"), value_set=pa.array(names, pa.string()))


def _without_calls(settings: dict[str, Any]) -> dict[str, Any]:
    """Judges whose calls nobody has took an unknown amount: not nothing."""
    judges = {name: {**one, "kind": RECORDED} for name, one in settings.get("judges", {}).items()}
    return {**settings, "judges": judges, "notes": [*settings.get("notes", ()), _NO_CALLS]}
