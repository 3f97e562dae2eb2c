"""Running an experiment: everything that can be refused first, then the evaluation, its results on disk, and MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jurimetrics.errors import InputError
from jurimetrics.experiment.faults import Place, fault
from jurimetrics.experiment.labelled import labels_of
from jurimetrics.experiment.load import Experiment, load_experiment
from jurimetrics.experiment.studying import (
    Written,
    check_study,
    compare_experiment,
    log_study,
    report_experiment,
    store_of,
    write_answers,
)

if TYPE_CHECKING:
    from jurimetrics.judges.judge import Judge
    from jurimetrics.results import Results

IGNORE = "# Results can be made again; what a repository keeps of them is up to its owner.\n*\n"


def run_experiment(path: Path | str) -> Results:
    """Run an experiment file (or the `experiment.toml` of a folder) and give its results.

    Writes references and answers where the file has [references], [[prompts]] and [[models]], evaluates, applies the
    thresholds of the file, saves to `results/` beside it (or [run] out), writes the report of [report], and logs to MLflow
    unless [mlflow] log is false: a run of each variant, and where variants are compared one of the study. Earlier results
    in that folder are replaced when the new ones are complete. What was written and judged stays in the store, so running
    it again asks only what is open. An interrupted evaluation is saved and no more.

    `compare_experiment(load_experiment(path), results)` gives the comparison that was logged.

    Raises `InputError` in one line, before anything is sent, for whatever is wrong with the file or what it names, and
    `KeyboardInterrupt` where answers were still being written when it was interrupted.

    >>> import json, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = {"answer": "Madrid.", "reference": "It is Madrid."}
    ...     _ = pathlib.Path(folder, "records.jsonl").write_text(json.dumps(record), encoding="utf-8")
    ...     _ = pathlib.Path(folder, "experiment.toml").write_text('''
    ...         data.records = "records.jsonl"
    ...         judges = [{ kind = "baseline" }]
    ...         metrics.use = ["f1"]
    ...         run.store = "none"
    ...         mlflow.log = false
    ...     ''', encoding="utf-8")
    ...     print(run_experiment(folder))
    Results(1 record, 1 metric, 1 judge, 1 row: 1 ok)
    """
    experiment = load_experiment(path)
    check_ready(experiment)
    results = evaluate_experiment(experiment)
    if results.settings["interrupted"]:
        return results
    try:
        compared = compare_experiment(experiment, results)
    except InputError:
        compared = None  # nothing of it can be compared, and the results say why
    report_experiment(experiment, results, compared)
    if experiment.mlflow.log:
        runs = log_experiment(experiment, results)
        if compared is not None:
            log_study(experiment, results, compared, runs)
    return results


def check_ready(experiment: Experiment, *, log: bool = True) -> None:
    """Raise `InputError` for what would only fail later: a judge without its key, labels of other records, MLflow away."""
    places: list[tuple[Place, Judge]] = [(("judges", number), judge) for number, judge in enumerate(experiment.judges)]
    if experiment.embedder is not None:
        places.append((("embedder",), experiment.embedder))
    for place, judge in places:
        try:
            judge.check()
        except InputError as error:
            raise fault(experiment.file, place, str(error)) from None
    if experiment.labels is not None:
        _check_labels(experiment)
    check_study(experiment)
    if log and experiment.mlflow.log:
        from jurimetrics.tracking.store import find_store, require_answer

        require_answer(find_store())


def _check_labels(experiment: Experiment) -> None:
    from jurimetrics.records import iter_records

    labels = labels_of(experiment)
    assert labels is not None
    labelled = set(labels["id"])
    if not any(record.id in labelled for record in iter_records(experiment.records, columns=experiment.columns)):
        raise fault(experiment.file, "data.labels", f"no label is of a record in {experiment.records.name}")
    if names := {variant.name for variant in experiment.study.variants}:
        # A label without a variant would be taken for one of every answer that is written.
        strange = labels.loc[~labels["variant"].isin(names), ["id", "variant"]].head(1)
        for name, variant in strange.itertuples(index=False):
            of = (
                f'is of the variant "{variant}", which [[prompts]] and [[models]] do not make'
                if variant
                else "has none"
            )
            words = f'expected a variant that is written here for each label; the label of "{name}" {of}'
            raise fault(experiment.file, "data.labels", words)


def evaluate_experiment(
    experiment: Experiment,
    written: Written | None = None,
    *,
    store: Path | str | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> Results:
    """Evaluate, apply the thresholds and save; the results are those on disk.

    `written` is what `write_answers` gave: that is judged, with what is left of its budget, and its calls are kept in the
    folder `writing` among the results. None writes first what the file asks for, so that nobody judges questions for
    answers. `store` and `retry_failed` go before what the file says where they are given ("none" keeps answers in memory
    only). Raises `KeyboardInterrupt` where it was interrupted while it wrote; earlier results are then as they were.
    """
    from jurimetrics.engine.evaluate import evaluate
    from jurimetrics.records import iter_records, scan_duplicates
    from jurimetrics.results import Results

    if written is None:
        written = write_answers(experiment, store=store, retry_failed=retry_failed, progress=progress)
        if written is not None and written.interrupted:
            raise KeyboardInterrupt("answers were still being written; those that are there are in the store")
    records: object = experiment.records if written is None else written.records
    if written is None and experiment.columns is not None:
        # What `evaluate` does with a path: it is known to be good before anything is paid for, then streamed.
        scan_duplicates(experiment.records, columns=experiment.columns)
        records = iter_records(experiment.records, columns=experiment.columns)
    options = experiment.run.options()
    options["budget"] = experiment.run.budget() if written is None else written.budget
    if retry_failed:
        options["retry_failed"] = True
    results = evaluate(
        records,
        experiment.metrics,
        experiment.asked,
        embedder=experiment.embedder,
        store=store_of(experiment, store),
        progress=progress,
        **options,
    )
    told = results.with_thresholds(experiment.thresholds)
    if written is not None and written.notes:
        settings = told.settings
        told = Results(told.folder, settings | {"notes": [*settings["notes"], *written.notes]})
    saved = told.save(experiment.out)
    if written is not None:
        written.save(saved)
    if experiment.run.out == "results":
        (saved / ".gitignore").write_text(IGNORE, encoding="utf-8")
    return Results.load(saved)


def log_experiment(experiment: Experiment, results: Results) -> list[str]:
    """Log to MLflow under the study's name (or [mlflow] experiment) and give the run ids, one for each variant."""
    from jurimetrics.tracking.log import log_run

    return log_run(
        results,
        experiment=experiment.mlflow.experiment or experiment.name,
        labels=labels_of(experiment),
        traces=experiment.mlflow.traces,
    )
