"""Records as traces with assessments, as the Evaluation runs page reads them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from jurimetrics.errors import InputError
from jurimetrics.results import Results
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.rows import previews
from jurimetrics.tracking.store import Store
from mlflow import MlflowClient
from tracked import Logged, make_results

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
    results = make_results(folder / "results", records=6)
    with store_in(folder) as store:
        return Logged(results, store, log_run(results, experiment="tenancy"))


def client_of(store: Store) -> MlflowClient:
    return MlflowClient(tracking_uri=store.uri)


def traces_of(store: Store, run_id: str) -> list[Any]:
    client = client_of(store)
    run = client.get_run(run_id)
    return list(client.search_traces(locations=[run.info.experiment_id], run_id=run_id, max_results=500))


def test_rows_carry_scores_reasons_sources_and_references(tenancy: Logged) -> None:
    results = tenancy.results
    traces = traces_of(tenancy.store, tenancy.runs[0])
    trace = next(trace for trace in traces if trace.data.spans[0].inputs["id"] == "q002")
    said = {found.name: found for found in trace.info.assessments}
    assert next(iter(said)) == "faithfulness", "the headline before its members"
    wanted = {"faithfulness", *(f"faithfulness_{name}" for name in ("gpt_4_1_mini", "claude_haiku", "baseline"))}
    assert wanted | {"f1", "reference"} <= set(said)
    row = results.scores.query("variant == 'concise' and id == 'q002' and metric == 'faithfulness'").set_index("judge")
    assert said["faithfulness"].value == row.loc["panel", "score"]
    assert said["faithfulness"].rationale == row.loc["panel", "reason"]
    sources = {name: (said[name].source.source_type, said[name].source.source_id) for name in (*wanted, "f1")}
    assert sources == {
        "faithfulness": ("LLM_JUDGE", "panel"),
        "faithfulness_gpt_4_1_mini": ("LLM_JUDGE", "gpt-4.1-mini"),
        "faithfulness_claude_haiku": ("LLM_JUDGE", "claude-haiku"),
        "faithfulness_baseline": ("CODE", "baseline"),
        "f1": ("CODE", "computed"),
    }
    assert said["reference"].value == "Within 16 days."
    assert trace.info.request_preview == "第 2 条规定了什么？"
    assert trace.data.spans[0].outputs == "Within 16 days, in writing. (concise)"
    assert trace.info.token_usage["total_tokens"] == 240
    assert trace.info.execution_duration == round(
        1000 * results.records.set_index("id").loc["q002", "answer_latency_s"].iloc[0]
    )


def test_failures_are_errors_and_what_does_not_apply_is_not_there(tenancy: Logged) -> None:
    scores = tenancy.results.scores.query("variant == 'concise'")
    traces = {trace.data.spans[0].inputs["id"]: trace for trace in traces_of(tenancy.store, tenancy.runs[0])}
    assert not [found for found in traces["q003"].info.assessments if found.feedback], (
        "its answer failed: nothing applies"
    )
    assert traces["q003"].info.response_preview == "timeout: no answer within 60 s"
    errors = [
        found.error for trace in traces.values() for found in trace.info.assessments if found.feedback and found.error
    ]
    codes = [error.error_code for error in errors]
    assert codes.count("timeout") == (scores["status"] == "failed").sum() > 0
    assert codes.count("undefined") == (scores["status"] == "undefined").sum()
    assert {error.error_message for error in errors if error.error_code == "timeout"} == {"no answer within 60 s"}


def test_two_variants_are_joined_row_by_row(tenancy: Logged) -> None:
    first, second = ([trace.info for trace in traces_of(tenancy.store, run)] for run in tenancy.runs)
    assert [info.request_preview for info in first] == [info.request_preview for info in second]
    assert len({info.request_preview for info in first}) == 6
    ids = [info.trace_metadata["jurimetrics.id"] for info in first]
    assert ids == sorted(ids), "the page lists them in the order of the records"


def test_equal_and_missing_questions_do_not_collapse() -> None:
    same = "x" * 1200
    frame = pd.DataFrame(
        {"id": ["1", "2", "3", "1"], "variant": ["a", "a", "a", "b"], "question": [same, same + "y", None, same]}
    )
    found = previews(frame)
    assert found["1", "a"] == found["1", "b"] != found["2", "a"]
    assert found["3", "a"] == "[3]"
    assert all(len(text) <= 1000 for text in found.values())


def test_labels_become_assessments_by_people(results: Results, mlflow_store: Store) -> None:
    labels = pd.DataFrame(
        {
            "id": ["q000", "q000", "q001"], "variant": ["concise", "thorough", ""], "metric": "faithfulness",
            "rater": ["ann", "ben", "ann"], "label": [1.0, 0.0, 0.5],
        }
    )  # fmt: skip
    runs = log_run(results, experiment="tenancy", labels=labels)
    for run, expected in zip(runs, [[("ann", 1.0), ("ann", 0.5)], [("ben", 0.0), ("ann", 0.5)]], strict=True):
        said = [
            (found.source.source_id, found.value)
            for trace in traces_of(mlflow_store, run)
            for found in trace.info.assessments
            if found.name == "faithfulness_label" and found.source.source_type == "HUMAN"
        ]
        assert said == expected
    with pytest.raises(InputError, match="none of them is of a record"):
        log_run(results, experiment="tenancy", labels=labels.assign(id="other"))


def test_no_more_traces_than_asked_for(mlflow_store: Store, tmp_path: Path) -> None:
    results = make_results(tmp_path / "results", records=3, metrics=("f1",))
    for asked, written in ((0, 0), (2, 2), (None, 3)):
        run_id = log_run(results, experiment="tenancy", traces=asked)[0]
        assert len(traces_of(mlflow_store, run_id)) == written
        assert client_of(mlflow_store).get_run(run_id).data.tags["jurimetrics.traces"] == f"{written} of 3 records"
    with pytest.raises(InputError, match="traces must be"):
        log_run(results, experiment="tenancy", traces=-1)
