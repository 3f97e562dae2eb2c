"""Finished results -> MLflow: one run per variant, written by run id through a client and ended in every path."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.results import Results
from jurimetrics.tracking.files import write_figures, write_files
from jurimetrics.tracking.measures import Evaluation, changed_names, clip, digest, measures, params, reasons
from jurimetrics.tracking.note import note
from jurimetrics.tracking.quiet import quiet_mlflow
from jurimetrics.tracking.rows import Voices, count_rows, log_rows, previews, voices
from jurimetrics.tracking.sink import Sink, log_values, refusals, running, surroundings
from jurimetrics.tracking.store import find_store, open_experiment, open_store, patiently, require_answer
from jurimetrics.tracking.written import link_writer, register_writers


def log_run(
    results: Results,
    *,
    experiment: str,
    labels: pd.DataFrame | None = None,
    traces: int | None = 1000,
) -> list[str]:
    """Log finished results to MLflow, one run per variant, and give the run ids in the order of the variants.

    Where to: `find_store()`, which can be printed. Each run carries metrics (headline means first, then those of each
    judge, pass rates, counts, intervals, what it took), params, tags with the reasons for missing scores, the rows as a
    table and as Parquet, the prompts, settings and figures, a note, the records as a dataset, and a trace with
    assessments for each of the first `traces` records (None: all of them, 0: none).

    Where the results know what wrote the answers (`Answers`), a run also has the prompt, its version, the model and its
    settings as params and the prompt whole among its artifacts; the prompt is in MLflow's prompt registry, once per
    content, and linked to the run. A registry that refuses costs no run: the tag `jurimetrics.prompt_not_registered` says
    why.

    `labels` (columns id, variant, metric, rater, label, as `load_labels` gives them) become assessments by people; those
    without a variant belong to every variant.

    The caller's tracking URI, active run, experiment, autologging, tracing, environment and logging are left as found;
    MLflow says nothing and reports nothing meanwhile (`quiet_mlflow`). Runs logged inside an active run of the same
    experiment become its children. A run ends FINISHED, FAILED, or KILLED if interrupted.

    Raises `InputError` that names the address where MLflow cannot be reached or refuses, and for labels of which none
    belongs to a record here. The results are never changed and can be logged again.

    >>> import os
    >>> from unittest.mock import patch
    >>> frame = pd.DataFrame({"id": ["1", "2"], "metric": "grade", "judge": "ann", "score": [0.5, 1.0]})
    >>> results = Results.from_frame(frame)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     uri = f"sqlite:///{Path(folder).as_posix()}/mlflow.db"
    ...     with patch.dict(os.environ, MLFLOW_TRACKING_URI=uri):
    ...         len(log_run(results, experiment="grades"))
    1
    """
    if not isinstance(experiment, str) or not experiment.strip():
        raise InputError("experiment: the name of an MLflow experiment is needed")
    if traces is not None and (isinstance(traces, bool) or not isinstance(traces, int) or traces < 0):
        raise InputError(f"traces must be 0 or more, or None for all, not {traces!r}")
    whole = Evaluation.of(results)
    if not len(whole.records):
        raise InputError("there are no records in these results to log")
    said = _checked_labels(labels, whole.records)
    store = find_store()
    with quiet_mlflow(), refusals(store):
        client = open_store(store)
        sink = Sink(store, client, open_experiment(client, store, experiment), experiment)
        return _log_all(sink, results, whole, said, len(whole.records) if traces is None else traces)


def _log_all(sink: Sink, results: Results, whole: Evaluation, labels: pd.DataFrame | None, traces: int) -> list[str]:
    evaluation = digest([sink.experiment, time.time_ns(), whole.settings])
    opinions = voices(whole.scores, labels, whole.headline, whole.kinds())
    inputs = previews(whole.records)
    prompts = register_writers(sink.store, whole.settings, whole.variants)
    found = []
    with tempfile.TemporaryDirectory(prefix="jurimetrics-") as name:
        figures = write_figures(results, list(whole.headline), Path(name) / "figures")
        for variant in whole.variants:
            part = whole.only(variant)
            with running(sink, variant or sink.experiment, _first_tags(sink, part, variant, evaluation)) as run_id:
                folder = Path(name) / run_id
                (folder / "figures").mkdir(parents=True)
                for figure in figures:
                    shutil.copyfile(figure, folder / "figures" / figure.name)
                _log_columns(sink, run_id, whole, part)
                if variant in prompts:
                    link_writer(sink, run_id, prompts[variant])
                _log_files(sink, run_id, part, folder)
                mine = None if labels is None else labels[labels["variant"].isin([variant, ""])]
                _log_traces(sink, run_id, part, mine, inputs, opinions, traces)
            found.append(run_id)
    return found


def _first_tags(sink: Sink, part: Evaluation, variant: str, evaluation: str) -> dict[str, str]:
    tags = {
        **surroundings(sink),
        "mlflow.runType": "genai_evaluate",
        "jurimetrics.study": sink.experiment,
        "jurimetrics.evaluation": evaluation,
        "jurimetrics.variant": clip(variant),
    }
    if part.settings.get("interrupted"):
        tags["jurimetrics.interrupted"] = "true"
    return tags


def _log_columns(sink: Sink, run_id: str, whole: Evaluation, part: Evaluation) -> None:
    values, left_out = measures(part)
    tags = {**reasons(part), **changed_names([*part.settings["metrics"], *part.settings["judges"]])}
    tags["mlflow.note.content"] = note(part)
    if left_out:
        tags["jurimetrics.left_out"] = f"{left_out} more metrics stand in summary.csv"
    log_values(sink, run_id, values, params(whole, part), tags, time.time_ns() // 1_000_000)
    patiently(sink.client.log_inputs, run_id, datasets=[_dataset(sink, part)])


def _dataset(sink: Sink, part: Evaluation) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    schema = [{"type": str(kind), "name": str(name)} for name, kind in part.records.dtypes.items()]
    dataset = Dataset(
        name=clip(sink.experiment),
        digest=str(part.settings.get("data_digest") or digest(part.records["id"].tolist()))[:16],
        source_type="code",
        source=json.dumps({"tags": {"jurimetrics": "records.parquet among the artifacts of the run"}}),
        schema=json.dumps({"mlflow_colspec": schema}),
        profile=json.dumps({"num_rows": len(part.records), "num_elements": int(part.records.size)}),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "eval")])


def _log_files(sink: Sink, run_id: str, part: Evaluation, folder: Path) -> None:
    require_answer(sink.store)
    write_files(part, folder)
    sink.client.log_artifacts(run_id, str(folder))
    table = part.scores.assign(flags=part.scores["flags"].map(", ".join), passed=part.scores["passed"].astype(object))
    patiently(
        sink.client.log_table, run_id, data=table.astype(object).where(table.notna(), None), artifact_file="scores.json"
    )


def _log_traces(
    sink: Sink,
    run_id: str,
    part: Evaluation,
    labels: pd.DataFrame | None,
    inputs: dict[tuple[str, str], str],
    opinions: Voices,
    most: int,
) -> None:
    chosen = part.records.head(most)
    written = log_rows(
        sink.store, sink.experiment_id, run_id, chosen, part.scores, labels, inputs=inputs, voices=opinions
    )
    stored = count_rows(sink.store, sink.experiment_id, run_id)
    if written != stored:
        raise InputError(
            f"MLflow at {sink.store}: {written[0]} traces with {written[1]} assessments were written, "
            f"{stored[0]} with {stored[1]} can be read back; the results are untouched and can be logged again"
        )
    patiently(sink.client.set_tag, run_id, "jurimetrics.traces", f"{written[0]} of {len(part.records)} records")


def _checked_labels(labels: pd.DataFrame | None, records: pd.DataFrame) -> pd.DataFrame | None:
    if labels is None:
        return None
    for name in ("id", "metric", "label"):
        if name not in labels.columns:
            raise InputError(f"labels: no column {name!r}; found: {', '.join(map(str, labels.columns))}")
    said = labels.assign(id=labels["id"].astype(str), variant=labels["variant"] if "variant" in labels.columns else "")
    if not said["id"].isin(records["id"]).any():
        raise InputError("labels: none of them is of a record in these results")
    return said
