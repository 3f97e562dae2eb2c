"""Samples that become MLflow review queues, and the answers that come back as labels."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from jurimetrics import Calibration, Results, calibrate, load_labels, log_calibration, log_run
from jurimetrics.calibrate.labels import join
from jurimetrics.calibrate.reviews import Review, labels_from_review, open_review
from jurimetrics.calibrate.sampling import Sample, sample_for_labelling
from jurimetrics.errors import InputError
from jurimetrics.tracking.reviews import LONGEST_SHOWN
from jurimetrics.tracking.store import Store
from mlflow.entities import AssessmentSource, Feedback
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import ENDPOINT_NOT_FOUND, PERMISSION_DENIED
from mlflow.tracing.client import TracingClient
from test_tracking_server import running_server

pytest_plugins = ("mlflow_store",)
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SCALES = {
    "coherence": ((1.0, 5.0), (1.0, 2.0, 3.0, 4.0, 5.0)),
    "answered": ((0.0, 1.0), (0.0, 1.0)),
    "faithfulness": ((0.0, 1.0), None),
    "度/合い": ((0.0, 10.0), tuple(map(float, range(11)))),
}
NAMES = ["q/1 ü'=", '=1+1,"x"', "第三条", " spaced ", "a\tb", "007", "🙂", "x" * 300]


@pytest.fixture
def results() -> Results:
    rows = [
        {"id": name, "variant": variant, "metric": metric, "judge": "ann", "score": 1.0}
        for name in NAMES
        for variant in ("concise", "thorough")
        for metric in SCALES
    ]
    return Results.from_frame(pd.DataFrame(rows), {name: {"range": limits} for name, (limits, _) in SCALES.items()})


@pytest.fixture
def sample(results: Results) -> Sample:
    drawn = sample_for_labelling(results, 6)
    records = drawn.records
    records["question"] = [f"Qué {at}?" for at in range(6)]
    records["answer"] = [f"Because “{at}”." for at in range(6)]
    records["contexts"] = [["第一", "two"]] * 6
    records["reference"] = ["so", "thus", "hence", "ergo", "also", "then"]
    return replace(drawn, metrics=SCALES)


class Rater:
    """Somebody at the page of a queue: answers as the page writes them, and submits."""

    def __init__(self, store: str, review: Review, name: str, user: str = "default") -> None:
        self.client, self.user = TracingClient(store), user
        self.queue = review.addresses[name].rpartition("=")[2]

    def items(self) -> list[str]:
        return [item.item_id for item in self.client._list_review_queue_items(self.queue, max_results=100)]

    def row(self, trace: str) -> int:
        return int(self.client.get_trace(trace).info.trace_metadata["jurimetrics.row"])

    def says(self, trace: str, name: str, value: Any, why: str | None = None, kind: str = "HUMAN") -> None:
        said = Feedback(name=name, value=value, source=AssessmentSource(kind, self.user), rationale=why)
        self.client.log_assessment(trace, said)

    def ends(self, trace: str, status: str = "complete") -> None:
        self.client._set_review_queue_item_status(
            self.queue, item_id=trace, status=status, completed_by=None if status == "pending" else self.user
        )


def test_answers_come_back_as_labels_with_their_probabilities(
    mlflow_store: Store, sample: Sample, results: Results
) -> None:
    review = open_review(sample, raters=["Anna", "Émile"], experiment="tenancy")
    expected = []
    for name in ("Anna", "Émile"):
        rater = Rater(mlflow_store.uri, review, name)
        for trace in rater.items():
            row = rater.row(trace)
            drawn = sample.records.iloc[row]
            given = {"coherence": str(row % 5 + 1), "answered": row % 2 == 0, "faithfulness": row / 8, "度/合い": row}
            for metric, value in given.items():
                why = f"Grund „{row}“ 第\n{name}" if metric == "answered" else None
                rater.says(trace, metric, value, why)
                expected.append((drawn["id"], drawn["variant"], metric, name, float(value), why or ""))
            rater.ends(trace)
    labels = labels_from_review(review)
    assert list(labels.columns) == ["id", "variant", "metric", "rater", "label", "probability", "rationale"]
    shown = labels.drop(columns="probability").fillna("").itertuples(index=False, name=None)
    assert sorted(shown) == sorted(expected)
    drawn = sample.records.set_index(["id", "variant"])["probability"]
    keys = pd.MultiIndex.from_frame(labels[["id", "variant"]])
    assert (labels["probability"].to_numpy() == drawn.reindex(keys).to_numpy()).all()
    assert labels.attrs["selection"] == "probabilities"
    assert set(labels.attrs["blank"].values()) == {0}
    # Like any other labels, and from the name of the experiment as well.
    assert int(join(results, labels)["raters"].sum()) == len(labels) == 48
    pd.testing.assert_frame_equal(labels_from_review("tenancy"), labels)


def test_labels_of_a_review_are_logged_as_what_people_said(
    mlflow_store: Store, sample: Sample, results: Results
) -> None:
    review = open_review(sample, ["coherence"], ["Anna"], experiment="tenancy")
    rater = Rater(mlflow_store.uri, review, "Anna")
    for trace in rater.items():
        rater.says(trace, "coherence", "4", "weil" if rater.row(trace) else None)
        rater.ends(trace)
    runs = log_run(results, experiment="tenancy", labels=labels_from_review(review))
    client = TracingClient(mlflow_store.uri)
    found = [
        (one.value, one.source.source_id, one.rationale)
        for run_id in runs
        for trace in client.search_traces(locations=[review.experiment_id or ""], run_id=run_id, max_results=100)
        for one in trace.info.assessments
        if one.source.source_type == "HUMAN"
    ]
    assert sorted(found, key=str) == [(4.0, "Anna", "weil")] * 5 + [(4.0, "Anna", None)]


def test_raters_see_no_judge_no_other_rater_no_variant(mlflow_store: Store, sample: Sample) -> None:
    review = open_review(sample, ["coherence"], ["Anna", "bruno"], experiment="tenancy")
    first, second = (Rater(mlflow_store.uri, review, name) for name in review.raters)
    assert not set(first.items()) & set(second.items()), "an answer on a shared trace would be seen by the other"
    for trace in first.items():
        found = first.client.get_trace(trace)
        assert found.info.assessments == []
        drawn = sample.records.iloc[first.row(trace)]
        whole = json.dumps(found.to_dict(), ensure_ascii=False)
        for hidden in (drawn["variant"], drawn["stratum"], "probability"):
            assert hidden not in whole
        for shown in (drawn["question"], drawn["answer"], *drawn["contexts"], drawn["reference"]):
            assert shown in found.info.request_preview + found.info.response_preview
        assert found.data.spans[0].inputs["contexts"] == list(drawn["contexts"])
    queue = first.client._get_review_queue(first.queue)
    assert (queue.name, queue.users) == ("Anna", ["anna"])
    schemas = [first.client._get_label_schema(one) for one in queue.schema_ids]
    assert [schema.name for schema in schemas] == ["coherence"]


def test_scales_become_inputs(mlflow_store: Store, sample: Sample) -> None:
    from mlflow.genai.label_schemas import InputCategorical, InputNumeric, InputPassFail

    review = open_review(
        replace(sample, metrics={**SCALES, "open": ((0.0, np.inf), None), "halves": ((0.0, 1.0), (0.0, 0.5, 1.0))}),
        experiment="tenancy",
    )
    client = TracingClient(mlflow_store.uri)
    found = {one.name: one for one in client._list_label_schemas(review.experiment_id or "", max_results=100)}
    assert found["coherence"].input == InputCategorical(options=["1", "2", "3", "4", "5"])
    assert found["halves"].input == InputCategorical(options=["0", "0.5", "1"])
    assert isinstance(found["answered"].input, InputPassFail)
    assert found["faithfulness"].input == InputNumeric(min_value=0.0, max_value=1.0)
    assert found["open"].input == InputNumeric(min_value=0.0, max_value=None)
    assert found["度/合い"].input == InputNumeric(min_value=0.0, max_value=10.0), "eleven levels are too many to choose"
    assert all(one.enable_comment for name, one in found.items() if name in SCALES)


def test_only_what_is_submitted_counts(mlflow_store: Store, sample: Sample) -> None:
    review = open_review(sample, ["answered"], ["Anna"], experiment="tenancy")
    rater = Rater(mlflow_store.uri, review, "Anna")
    with pytest.raises(InputError, match="nothing is submitted yet; 6 records wait for Anna"):
        labels_from_review(review)
    strata = sample.records["stratum"]
    waiting = next(trace for trace in rater.items() if rater.row(trace) == 0)
    for trace in rater.items():
        rater.says(trace, "answered", value=True)
        if trace != waiting:
            rater.ends(trace)
    labels = labels_from_review(review)
    assert len(labels) == 5
    assert labels.attrs["pending"] == {"Anna": 1}
    assert labels.attrs["blank"] == {"answered": 1}
    # Those that are left of the stratum stand for the one left blank.
    assert float((1 / labels["probability"]).sum()) == pytest.approx(16)
    assert (strata == strata.iloc[0]).sum() > 1
    rater.ends(waiting, "declined")
    assert labels_from_review(review).attrs["declined"] == {"Anna": 1}
    # What MLflow's page writes when an answer is changed.
    trace = next(one for one in rater.items() if one != waiting)
    old = rater.client.get_trace(trace).info.assessments[0]
    new = Feedback(name="answered", value=False, source=AssessmentSource("HUMAN", "default"))
    new.overrides = old.assessment_id
    rater.client.log_assessment(trace, new)
    rater.says(trace, "answered", value=True, kind="LLM_JUDGE")
    rater.says(trace, "something else", value=3)
    assert sorted(labels_from_review(review)["label"]) == [0.0, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("metric", "value"),
    [("coherence", "6"), ("coherence", True), ("coherence", 2.5), ("answered", "yes"), ("answered", 0.5),
     ("faithfulness", 1.2), ("faithfulness", True), ("faithfulness", "high"), ("度/合い", 3.5)],
)  # fmt: skip
def test_an_answer_off_the_scale_is_refused(mlflow_store: Store, sample: Sample, metric: str, value: Any) -> None:
    review = open_review(sample, [metric], ["Anna"], experiment="tenancy")
    rater = Rater(mlflow_store.uri, review, "Anna")
    trace = rater.items()[0]
    rater.says(trace, metric, value)
    rater.ends(trace)
    with pytest.raises(InputError, match=r"record \d of the sample, rater 'Anna', .* is none of"):
        labels_from_review(review)


def test_two_people_in_one_queue_are_refused(mlflow_store: Store, sample: Sample) -> None:
    review = open_review(sample, ["answered"], ["Anna"], experiment="tenancy")
    anna, bruno = (Rater(mlflow_store.uri, review, "Anna", user) for user in ("anna", "bruno"))
    trace = anna.items()[0]
    for one in (anna, bruno):
        one.says(trace, "answered", value=True)
    anna.ends(trace)
    with pytest.raises(InputError, match="'anna' and 'bruno' both answered 'answered'; give each a queue"):
        labels_from_review(review)


def test_a_second_review_in_the_same_experiment_is_another(mlflow_store: Store, sample: Sample) -> None:
    first = open_review(sample, ["answered"], ["Anna"], experiment="tenancy")
    second = open_review(sample, ["answered"], ["Anna", "default"], experiment="tenancy")
    wider = replace(sample, metrics={"answered": ((0.0, 2.0), (0.0, 1.0, 2.0))})
    third = open_review(wider, ["answered"], ["Anna"], experiment="tenancy")
    client = TracingClient(mlflow_store.uri)
    queues = {one.queue_id: one for one in client._list_review_queues(first.experiment_id or "")}
    names = [queues[url.rpartition("=")[2]].name for one in (first, second, third) for url in one.addresses.values()]
    assert names == ["Anna", "Anna (2)", "default (2)", "Anna (3)"]
    schemas = [queues[one.addresses["Anna"].rpartition("=")[2]].schema_ids for one in (first, second, third)]
    assert schemas[0] == schemas[1] != schemas[2], "one question is asked once, another scale is another question"
    with pytest.raises(InputError, match="3 reviews; say run_id="):
        labels_from_review("tenancy")
    rater = Rater(mlflow_store.uri, third, "Anna")
    for trace in rater.items():
        rater.says(trace, "answered (2)", "2")
        rater.ends(trace)
    labels = labels_from_review("tenancy", run_id=third.run_id)
    assert (labels["metric"] == "answered").all()
    assert (labels["label"] == 2.0).all()


def test_nothing_of_the_caller_is_changed(mlflow_store: Store, sample: Sample, project: Path) -> None:
    here = mlflow_store.uri
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(here)
    try:
        mlflow.set_experiment("mine")
        with mlflow.start_run() as run:
            environment = dict(os.environ)
            review = open_review(sample, raters=["Anna"], experiment="tenancy")
            with pytest.raises(InputError, match="nothing is submitted"):
                labels_from_review(review)
            assert mlflow.active_run().info.run_id == run.info.run_id
            assert (mlflow.get_tracking_uri(), dict(os.environ)) == (here, environment)
        with mlflow.start_run() as other:
            assert other.info.experiment_id == run.info.experiment_id != review.experiment_id
    finally:
        mlflow.set_tracking_uri(before)


def test_without_queues_there_are_sheets(
    mlflow_store: Store, sample: Sample, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(TracingClient, "_create_review_queue")
    with pytest.warns(UserWarning, match=r"has no create_review_queue; 6 records to label:\n  Anna: .*Anna\.csv"):
        review = open_review(sample, ["answered"], ["Anna", "bruno"], experiment="tenancy")
    assert (review.run_id, review.addresses) == (None, {})
    assert review.sheets["Anna"] == project / "reviews" / "tenancy" / "Anna.csv"
    with pytest.raises(InputError, match=r"no label in any of .*Anna\.csv"):
        labels_from_review(review)
    for name, value in (("Anna", "yes"), ("bruno", "no")):
        text = pd.read_csv(review.sheets[name], dtype=str, keep_default_na=False)
        text.assign(**{"label:answered": value, "rationale": "weil"}).to_csv(review.sheets[name], index=False)
    labels = labels_from_review(review)
    assert labels.groupby("rater")["label"].unique().map(list).to_dict() == {"Anna": [1.0], "bruno": [0.0]}
    assert sorted(set(labels["id"])) == sorted(set(sample.records["id"]))
    assert labels.attrs["selection"] == "probabilities"
    with pytest.warns(UserWarning, match="no review queues"):
        again = open_review(sample, ["answered"], ["Anna"], experiment="tenancy")
    assert again.sheets["Anna"] == project / "reviews" / "tenancy (2)" / "Anna.csv", "a filled sheet is never lost"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (MlflowException("404 != 200", error_code=ENDPOINT_NOT_FOUND), "the server .* knows none"),
        (NotImplementedError(), "the store .* keeps none"),
    ],
)
def test_an_old_server_or_another_store_has_no_queues(
    mlflow_store: Store, sample: Sample, monkeypatch: pytest.MonkeyPatch, fault: Exception, told: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(TracingClient, "_list_review_queues", refuse)
    with pytest.warns(UserWarning, match=f"no review queues, as {told}"):
        assert list(open_review(sample, raters=["Anna"]).sheets) == ["Anna"]


def test_a_refusal_is_no_lack_of_queues(
    mlflow_store: Store, sample: Sample, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MlflowException("you may not", error_code=PERMISSION_DENIED)

    monkeypatch.setattr(TracingClient, "_list_review_queues", refuse)
    with pytest.raises(InputError, match="you may not"):
        open_review(sample, raters=["Anna"])
    assert not (project / "reviews").exists()


def test_half_a_review_leaves_no_queue(mlflow_store: Store, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import MlflowClient

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(MlflowClient, "log_text", full)
    with pytest.raises(OSError, match="no space left"):
        open_review(sample, raters=["Anna"], experiment="tenancy")
    client = MlflowClient(mlflow_store.uri)
    experiment = client.get_experiment_by_name("tenancy").experiment_id
    assert [run.info.status for run in client.search_runs([experiment])] == ["FAILED"]
    assert list(TracingClient(mlflow_store.uri)._list_review_queues(experiment, user="anna")) == []
    with pytest.raises(InputError, match="no review was opened there"):
        labels_from_review("tenancy")


def test_what_is_asked_wrongly_is_said(mlflow_store: Store, sample: Sample) -> None:
    with pytest.raises(InputError, match="'fluency' is not in this sample; there are: coherence"):
        open_review(sample, ["fluency"])
    with pytest.raises(InputError, match="one is named twice"):
        open_review(sample, raters=["Anna", "anna "])
    with pytest.raises(InputError, match=r"expected a list, as in \['Anna'\]"):
        open_review(sample, raters="Anna")
    with pytest.raises(InputError, match="expected the name of at least one"):
        open_review(sample, raters=[])
    with pytest.raises(InputError, match="there is no MLflow experiment 'nowhere'"):
        labels_from_review("nowhere")


def test_a_long_record_says_where_the_rest_is(mlflow_store: Store, sample: Sample) -> None:
    records = sample.records.assign(contexts=[["word " * 6000]] * len(sample.records), answer=None, question=None)
    review = open_review(replace(sample, records=records), ["answered"], ["Anna"], experiment="tenancy")
    rater = Rater(mlflow_store.uri, review, "Anna")
    found = rater.client.get_trace(rater.items()[0])
    assert len(found.info.request_preview) == LONGEST_SHOWN
    assert found.info.request_preview.endswith("the rest: View full trace")
    assert found.data.spans[0].inputs["contexts"] == ["word " * 6000]
    assert found.info.response_preview == "(no answer)"


def test_a_calibration_stands_beside_its_run(mlflow_store: Store, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    grades = [1, 2, 3, 4, 5] * 8
    scores = pd.DataFrame({"id": range(40), "metric": "grade/é", "judge": "ann", "score": grades})
    people = [{"id": at, "metric": "grade/é", "label": min(5, one + at % 2)} for at, one in enumerate(grades)]
    results = Results.from_frame(scores)
    found = calibrate(results, load_labels(people, selection="random"))
    run_id = log_run(results, experiment="grades")[0]
    path = log_calibration(found, run_id)
    client = MlflowClient(mlflow_store.uri)
    back = Calibration.load(client.download_artifacts(run_id, path, str(tmp_path)))
    assert back.to_dict() == found.to_dict()
    run = client.get_run(run_id)
    assert found.data_digest in run.data.tags.values()
    assert run.info.status == "FINISHED"
    with pytest.raises(InputError, match="Run with id=f0 not found"):
        log_calibration(found, "f0")


@pytest.fixture
def served(project: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    database = project / "mlflow.db"
    database.write_bytes(empty_store.read_bytes())
    with running_server(project, database) as (address, _):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        yield address


@pytest.mark.slow  # a server takes about 15 seconds to start
def test_a_queue_on_a_server(served: str, sample: Sample) -> None:
    review = open_review(sample, raters=["Anna"], experiment="tenancy")
    assert review.addresses["Anna"].startswith(f"{served}/#/experiments/{review.experiment_id}/review-queue?")
    with urllib.request.urlopen(served, timeout=20) as page:
        assert page.status == 200
    rater = Rater(served, review, "Anna")
    for trace in rater.items():
        rater.says(trace, "coherence", "4", "weil 第三条")
        rater.ends(trace)
    labels = labels_from_review("tenancy")
    assert labels[["metric", "label", "rationale"]].drop_duplicates().values.tolist() == [
        ["coherence", 4.0, "weil 第三条"]
    ]
    assert len(labels) == 6
