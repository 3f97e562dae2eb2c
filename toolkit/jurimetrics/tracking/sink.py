"""Where the runs of one call go, and a run that is ended in every path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jurimetrics.errors import InputError
from jurimetrics.tracking.store import Store, patiently, require_answer, troubles

if TYPE_CHECKING:
    from mlflow import MlflowClient

BATCH = 50  # of params and of tags that are written at once; MLflow takes a hundred


@dataclass(frozen=True, slots=True)
class Sink:
    """A store, a client of it, and the experiment there by id and by name."""

    store: Store
    client: MlflowClient
    experiment_id: str
    experiment: str


@contextmanager
def refusals(store: Store) -> Iterator[None]:
    """What MLflow refuses, and what cannot be written, becomes an `InputError` that names the address."""
    try:
        yield
    except troubles() as error:
        first = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise InputError(f"MLflow at {store}: {first}; the results are untouched and can be logged again") from error


@contextmanager
def running(sink: Sink, name: str, tags: dict[str, str], *, start_ms: int | None = None) -> Iterator[str]:
    """A run that is FINISHED when the block ends, KILLED if it was interrupted, FAILED if it raised.

    It began at `start_ms` (milliseconds since 1970; None: now).
    """
    require_answer(sink.store)
    run = patiently(sink.client.create_run, sink.experiment_id, start_time=start_ms, tags=tags, run_name=name)
    run_id: str = run.info.run_id
    try:
        yield run_id
        patiently(sink.client.set_terminated, run_id, "FINISHED")
    except BaseException as error:
        _end(sink, run_id, "FAILED" if isinstance(error, Exception) else "KILLED", error)
        raise


def _end(sink: Sink, run_id: str, status: str, error: BaseException) -> None:
    from mlflow.exceptions import MlflowException

    try:
        require_answer(sink.store)
        patiently(sink.client.set_terminated, run_id, status)
    except (InputError, MlflowException) as another:
        error.add_note(f"the run {run_id} could not be ended as {status}: {another}")


def surroundings(sink: Sink) -> dict[str, str]:
    """Tags that say where a run comes from: user, source, commit; and its parent, if a run of this experiment is active."""
    import mlflow
    from mlflow.tracking.context.registry import resolve_tags

    tags: dict[str, str] = dict(resolve_tags())
    around = mlflow.active_run()
    here = mlflow.get_tracking_uri().rstrip("/") == sink.store.uri.rstrip("/")
    if here and around is not None and around.info.experiment_id == sink.experiment_id:
        tags["mlflow.parentRunId"] = around.info.run_id
    return tags


def log_values(
    sink: Sink,
    run_id: str,
    values: Mapping[str, float],
    params: Mapping[str, str],
    tags: Mapping[str, str],
    at_ms: int,
) -> None:
    """Write metrics (all at once, in their order: at most a hundred), params and tags of a run."""
    from mlflow.entities import Metric, Param, RunTag

    shown = [Param(name, value) for name, value in params.items()]
    stated = [RunTag(name, value) for name, value in tags.items()]
    patiently(sink.client.log_batch, run_id, metrics=[Metric(name, value, at_ms, 0) for name, value in values.items()])
    for start in range(0, max(len(shown), len(stated)), BATCH):
        many = slice(start, start + BATCH)
        patiently(sink.client.log_batch, run_id, params=shown[many], tags=stated[many])
