"""Logging finished results to MLflow, and reading them back."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from jurimetrics.errors import InputError
from jurimetrics.frames import RowWriter, ScoreRow
from jurimetrics.records import Record
from jurimetrics.results import Results
from jurimetrics.tracking import log
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.store import Store
from mlflow import MlflowClient
from mlflow.entities import Run
from tracked import MEMBERS, METRICS, VARIANTS, Logged, make_results, make_settings

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return make_results(tmp_path / "results", records=6)


@pytest.fixture(scope="module")
def tenancy(
    tmp_path_factory: pytest.TempPathFactory, store_in: Callable[[Path], AbstractContextManager[Store]]
) -> Logged:
    """What tests that only read share."""
    folder = tmp_path_factory.mktemp("tenancy")
    results = make_results(folder / "results")
    with store_in(folder) as store:
        return Logged(results, store, log_run(results, experiment="tenancy", traces=0))


def client_of(store: Store) -> MlflowClient:
    return MlflowClient(tracking_uri=store.uri)


def all_runs(store: Store) -> list[Run]:
    client = client_of(store)
    return list(client.search_runs([experiment.experiment_id for experiment in client.search_experiments()]))


def traces_of(store: Store, run_id: str) -> list[Any]:
    client = client_of(store)
    run = client.get_run(run_id)
    return list(client.search_traces(locations=[run.info.experiment_id], run_id=run_id, max_results=500))


def one_metric(folder: Path, scores: list[float | None], name: str = "grade", **record: Any) -> Results:
    """Results of one metric and one judge; None is an undefined score."""
    writer = RowWriter(folder)
    for at, score in enumerate(scores):
        writer.record(Record(str(at), question=f"Question {at}?", answer="Yes.", **record))
        status, reason = ("undefined", "nothing to compare") if score is None else ("ok", "said so")
        writer.score(ScoreRow(str(at), "", name, "baseline", 0, str(at), score, status, reason))
    settings = make_settings((name,), len(scores))
    writer.close({**settings, "panel": None, "judges": {"baseline": {"kind": "baseline"}}, "variants": [""]})
    return Results(folder)


def test_one_flat_finished_run_per_variant(tenancy: Logged) -> None:
    found = [client_of(tenancy.store).get_run(run_id) for run_id in tenancy.runs]
    assert [run.data.tags["jurimetrics.variant"] for run in found] == list(VARIANTS)
    assert [run.info.run_name for run in found] == list(VARIANTS)
    assert {run.info.status for run in found} == {"FINISHED"}
    assert {run.data.tags["jurimetrics.study"] for run in found} == {"tenancy"}
    assert len({run.data.tags["jurimetrics.evaluation"] for run in found}) == 1
    assert not any("mlflow.parentRunId" in run.data.tags for run in found)
    assert {run.data.tags["mlflow.runType"] for run in found} == {"genai_evaluate"}
    assert len(all_runs(tenancy.store)) == 2


def test_metrics_stand_in_the_order_of_the_page_and_agree_with_the_summary(tenancy: Logged) -> None:
    results = tenancy.results
    found = client_of(tenancy.store).get_run(tenancy.runs[0]).data.metrics
    names = list(found)
    assert names[:4] == list(METRICS)
    assert names[4] == "faithfulness/panel"
    assert set(names[5:8]) == {f"faithfulness/{judge}" for judge in MEMBERS}
    assert names[8:13] == [f"faithfulness/{figure}" for figure in ("pass_rate", "n", "missing", "low", "high")]
    assert [name.partition("/")[0] for name in names[-16:]] == ["judging"] * 4 + ["answers"] * 12
    summary = results.summary().set_index(["variant", "metric", "judge"]).sort_index()
    line = summary.loc[("concise", "faithfulness", "panel")]
    assert found["faithfulness"] == round(float(line["mean"]), 4) == found["faithfulness/panel"]
    assert found["faithfulness/n"] == line["n"]
    assert found["faithfulness/missing"] == round(line["missing"], 4)
    assert found["f1/computed"] == round(summary.loc[("concise", "f1", "computed"), "mean"], 4)
    assert "f1/pass_rate" not in found, "no threshold, no pass rate"
    costs = results.scores.query("variant == 'concise'")["judge_cost_usd"]
    assert math.isclose(found["judging/cost_usd"], costs.sum(), rel_tol=1e-6)


def test_m01_long_prompts_are_whole_among_the_artifacts(tenancy: Logged, tmp_path: Path) -> None:
    run_id = tenancy.runs[0]
    folder = Path(client_of(tenancy.store).download_artifacts(run_id, "", str(tmp_path)))
    wanted = tenancy.results.settings["prompts"]["check@1"]
    content = wanted["messages"][0]["content"]
    assert len(content) > 6001
    assert (folder / "prompts" / "check_u40_1.1.txt").read_bytes() == content.encode()
    assert json.loads((folder / "prompts" / "check_u40_1.json").read_text(encoding="utf-8")) == wanted
    params = client_of(tenancy.store).get_run(run_id).data.params
    assert len(params["prompt.check_u40_1"]) == 16
    assert params["panel"] == "median of 3, on verdicts, quorum 2"
    assert params["threshold.faithfulness"] == "0.7"


def test_files_of_a_run(tenancy: Logged, tmp_path: Path) -> None:
    results, run_id = tenancy.results, tenancy.runs[1]
    client = client_of(tenancy.store)
    folder = Path(client.download_artifacts(run_id, "", str(tmp_path)))
    mine = results.scores.query("variant == 'thorough'").reset_index(drop=True)
    rows = pd.read_parquet(folder / "scores.parquet")
    assert len(rows) == len(mine)
    pd.testing.assert_series_equal(rows["score"], mine["score"])
    table = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    assert [row[table["columns"].index("reason")] for row in table["data"]] == mine["reason"].tolist()
    logged = json.loads(client.get_run(run_id).data.tags["mlflow.loggedArtifacts"])
    assert logged == [{"path": "scores.json", "type": "table"}]
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    assert settings == results.settings
    assert len(pd.read_csv(folder / "summary.csv")) == len(results.summary()) / 2
    pictures = sorted(path.name for path in (folder / "figures").iterdir())
    assert pictures == sorted(["summary.png", *(f"scores_{name}.png" for name in METRICS)])
    assert all((folder / "figures" / name).read_bytes().startswith(b"\x89PNG") for name in pictures)


def test_what_differs_between_variants_is_a_param(tenancy: Logged) -> None:
    first, second = (client_of(tenancy.store).get_run(run) for run in tenancy.runs)
    assert (first.data.params["answer.temperature"], second.data.params["answer.temperature"]) == ("0.2", "0.7")
    assert first.data.params["answer_model"] == "model-concise"
    assert "answer.topic" not in first.data.params, "it differs between records, not between variants"
    assert first.inputs.dataset_inputs[0].dataset.digest == second.inputs.dataset_inputs[0].dataset.digest
    assert json.loads(first.inputs.dataset_inputs[0].dataset.profile)["num_rows"] == 12


@pytest.mark.parametrize(
    "name", ["a@k", "a[k]", "a,k", "p(95)", "50%", "/a", "a//b", "../x", "x" * 300, "忠实度", "m:1"]
)
@pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout not applied")  # of pictures with such labels
def test_m02_metrics_with_awkward_names_are_logged(name: str, mlflow_store: Store, tmp_path: Path) -> None:
    results = one_metric(tmp_path / "results", [0.5, 1.0, 0.75], name)
    run = client_of(mlflow_store).get_run(log_run(results, experiment="names", traces=1)[0])
    assert run.info.status == "FINISHED"
    assert next(iter(run.data.metrics.values())) == 0.75
    kept = [value for key, value in run.data.tags.items() if key.startswith("name.")]
    assert kept == ([] if name == "忠实度" else [name])


def test_m04_undefined_values_are_no_metrics(mlflow_store: Store, tmp_path: Path) -> None:
    results = one_metric(tmp_path / "results", [None, None])
    run = client_of(mlflow_store).get_run(log_run(results, experiment="undefined")[0])
    assert "grade" not in run.data.metrics
    assert (run.data.metrics["grade/n"], run.data.metrics["grade/missing"]) == (0, 1)
    assert run.data.tags["missing.grade"] == "2 of 2 rows without a score: undefined 2 (nothing to compare)"
    assert all(math.isfinite(value) for value in run.data.metrics.values())
    for trace in traces_of(mlflow_store, run.info.run_id):
        (found,) = trace.info.assessments
        assert (found.value, found.error.error_code, found.error.error_message) == (
            None,
            "undefined",
            "nothing to compare",
        )


def test_m05_logging_from_eight_threads_leaves_no_stray_runs(mlflow_store: Store, tmp_path: Path) -> None:
    results = one_metric(tmp_path / "results", [0.5, 1.0])
    found: list[list[str]] = []
    jobs = [
        threading.Thread(target=lambda: found.append(log_run(results, experiment="threads", traces=1)))
        for _ in range(8)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(found) == 8
    assert {run.info.run_id for run in all_runs(mlflow_store)} == {run_id for ids in found for run_id in ids}
    assert {run.info.status for run in all_runs(mlflow_store)} == {"FINISHED"}


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("disk"), "FAILED"), (KeyboardInterrupt(), "KILLED"), (SystemExit(3), "KILLED")]
)
@pytest.mark.parametrize("where", ["_log_columns", "_log_files", "_log_traces"])
def test_m07_a_run_ends_in_every_path(
    error: BaseException,
    status: str,
    where: str,
    mlflow_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(log, where, fail)
    with pytest.raises(type(error)):
        log_run(one_metric(tmp_path / "results", [0.5, 1.0]), experiment="broken")
    assert [run.info.status for run in all_runs(mlflow_store)] == [status]


def test_m07_inside_a_users_run(results: Results, mlflow_store: Store) -> None:
    import mlflow

    mlflow.set_tracking_uri(mlflow_store.uri)
    try:
        mlflow.set_experiment("tenancy")
        with mlflow.start_run() as mine:
            found = log_run(results, experiment="tenancy")
            elsewhere = log_run(results, experiment="another", traces=0)
            assert mlflow.active_run().info.run_id == mine.info.run_id
            mlflow.log_metric("still", 1)
        client = client_of(mlflow_store)
        assert client.get_run(mine.info.run_id).info.status == "FINISHED"
        assert client.get_run(mine.info.run_id).data.metrics == {"still": 1}
        assert {client.get_run(run).data.tags["mlflow.parentRunId"] for run in found} == {mine.info.run_id}
        assert all("mlflow.parentRunId" not in client.get_run(run).data.tags for run in elsewhere)
    finally:
        mlflow.set_tracking_uri(None)


def test_n04_the_process_is_left_as_found(
    results: Results, mlflow_store: Store, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow
    from mlflow.utils.autologging_utils import AUTOLOGGING_INTEGRATIONS

    def state() -> tuple[Any, ...]:
        return dict(os.environ), mlflow.get_tracking_uri(), mlflow.active_run(), repr(AUTOLOGGING_INTEGRATIONS)

    mlflow.set_tracking_uri("sqlite:///elsewhere.db")
    try:
        monkeypatch.delenv("MLFLOW_TRACKING_URI")  # which set_tracking_uri has set
        mlflow.tracing.disable()
        before = state()
        capfd.readouterr()
        found = log_run(results, experiment="tenancy")
        assert capfd.readouterr() == ("", "")
        assert state() == before
        assert mlflow.start_span_no_context("mine").trace_id == "MLFLOW_NO_OP_SPAN_TRACE_ID", (
            "tracing is still disabled"
        )
        assert len(traces_of(mlflow_store, found[0])) == 6, "and the rows were logged all the same"
        assert not Path("elsewhere.db").exists()
    finally:
        mlflow.tracing.enable()
        mlflow.set_tracking_uri(None)


@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred")  # MLflow's tracer would be off after a warning
def test_a_users_open_span_stays_open(results: Results, mlflow_store: Store) -> None:
    import mlflow

    mlflow.set_tracking_uri(mlflow_store.uri)
    try:
        with mlflow.start_span("mine") as span:
            found = log_run(results, experiment="tenancy")
            assert mlflow.get_current_active_span().span_id == span.span_id
        assert len(traces_of(mlflow_store, found[0])) == 6
    finally:
        mlflow.flush_trace_async_logging(terminate=True)
        mlflow.set_tracking_uri(None)


def test_m09_metric_names_stay_under_a_hundred(mlflow_store: Store, tmp_path: Path) -> None:
    results = make_results(tmp_path / "results", records=3, metrics=tuple(f"metric_{at:02}" for at in range(30)))
    run = client_of(mlflow_store).get_run(log_run(results, experiment="many", traces=0)[0])
    assert len(run.data.metrics) == 99
    assert list(run.data.metrics)[:30] == [f"metric_{at:02}" for at in range(30)]
    assert "judging/cost_usd" in run.data.metrics
    assert run.data.tags["jurimetrics.left_out"] == "126 more metrics stand in summary.csv"


def test_m09_calls_grow_with_metrics_not_with_rows(
    mlflow_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {}
    calls: list[str] = []
    for name in ("log_batch", "log_artifacts", "log_table", "set_tag", "log_metric", "log_param", "log_inputs"):
        real = getattr(MlflowClient, name)

        def counted(*arguments: Any, _name: str = name, _real: Any = real, **named: Any) -> Any:
            calls.append(_name)
            return _real(*arguments, **named)

        monkeypatch.setattr(MlflowClient, name, counted)
    for records in (3, 2000):
        calls.clear()
        scores = [at / records for at in range(records)]
        log_run(one_metric(tmp_path / str(records), scores), experiment="rows", traces=0)
        counts[records] = sorted(calls)
    assert counts[3] == counts[2000]
    assert counts[3].count("log_table") == 1


SCRIPT = """
import sys
from pathlib import Path
from tracked import Logged, make_results
from jurimetrics.tracking.log import log_run
results = make_results(Path(sys.argv[1]), records=8)
print(*log_run(results, experiment="script"))
"""


def test_m11_a_short_script_leaves_everything_behind(mlflow_store: Store, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "results")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = Results(tmp_path / "results")
    for variant, run_id in zip(VARIANTS, done.stdout.split(), strict=True):
        scores = results.scores[results.scores["variant"] == variant]
        traces = traces_of(mlflow_store, run_id)
        assert len(traces) == 8
        feedback = [found for trace in traces for found in trace.info.assessments if found.feedback is not None]
        assert len(feedback) == (scores["status"] != "not_applicable").sum()
        values = sorted(found.value for found in feedback if found.error is None)
        assert values == sorted(scores.query("status == 'ok'")["score"])
        assert all(trace.data.spans[0].outputs is not None or trace.info.state == "ERROR" for trace in traces)


def test_m11_counts_that_differ_on_reading_back_are_an_error(
    results: Results, mlflow_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "count_rows", lambda *_: (5, 90))
    with pytest.raises(InputError, match="5 with 90 can be read back"):
        log_run(results, experiment="tenancy")
    assert [run.info.status for run in all_runs(mlflow_store)] == ["FAILED"]


EVIL = "<img src=x onerror=alert(1)>|<script>alert(1)</script></td>[c](javascript:alert(1))`"


def test_x04_other_peoples_text_is_not_markup_in_the_note(mlflow_store: Store, tmp_path: Path) -> None:
    results = one_metric(tmp_path / "results", [0.5, 1.0], EVIL)
    tags = client_of(mlflow_store).get_run(log_run(results, experiment="evil")[0]).data.tags
    text = tags["mlflow.note.content"]
    assert "<" not in text
    assert "](" not in text
    (row,) = [line for line in text.splitlines() if "onerror" in line]
    assert row.replace("\\|", "").count("|") == 9, "a name ends no cell"


def test_scores_of_other_tools_are_logged_too(mlflow_store: Store) -> None:
    frame = pd.DataFrame(
        {"id": ["1", "2"] * 2, "metric": "grade", "judge": ["ann", "ann", "ben", "ben"], "score": [1.0, 2, 3, 4]}
    )
    run = client_of(mlflow_store).get_run(log_run(Results.from_frame(frame), experiment="recorded")[0])
    assert "grade" not in run.data.metrics, "two judges without a panel have no common verdict"
    assert (run.data.metrics["grade/ann"], run.data.metrics["grade/ben"]) == (1.5, 3.5)
    assert "judging/cost_usd" not in run.data.metrics


def test_nothing_to_log_and_no_name_are_refused(results: Results, project: Path, tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "none")
    writer.close(make_settings(METRICS, 0))
    with pytest.raises(InputError, match="no records"):
        log_run(Results(tmp_path / "none"), experiment="tenancy")
    with pytest.raises(InputError, match="name of an MLflow experiment"):
        log_run(results, experiment=" ")
    assert not (project / "mlruns").exists()
