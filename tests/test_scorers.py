"""Metrics as scorers of MLflow, and scorers of MLflow as metrics."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from jurimetrics import BaselineJudge, Cascade, ChatJudge, Panel, Results, Score, evaluate, metric
from jurimetrics.errors import InputError
from jurimetrics.judges.judge import JudgeError
from jurimetrics.records import Record
from jurimetrics.scorers import as_scorer, from_scorer
from jurimetrics.scorers.fields import arguments_of, record_of, trace_of
from jurimetrics.tracking.store import Store
from mlflow.entities import AssessmentError, Feedback
from mlflow.genai.judges import CategoricalRating
from mlflow.genai.scorers import RegexMatch, ResponseLength, Scorer, scorer
from mlflow.genai.utils.trace_utils import extract_retrieval_context_from_trace
from scripted_judge import ScriptedJudge, answer_all
from scripted_replies import valid
from scripted_server import ScriptedServer

pytest_plugins = ("mlflow_store",)
pytestmark = [
    # MLflow 3.17 on SQLAlchemy 2.1
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred"),
]

DOCUMENTS = ["Madrid is in Spain. It has 3 million inhabitants.", "Lisbon is in Portugal."]
ROW: dict[str, Any] = {
    "inputs": {"question": "Where is Madrid?", "contexts": DOCUMENTS},
    "outputs": "Madrid is in Spain.",
    "expectations": {"expected_response": "In Spain."},
}


def said(made: Any, **row: Any) -> dict[str, Feedback]:
    found = made(**(ROW | row))
    assert not any(isinstance(one.value, float) and math.isnan(one.value) for one in found)
    return {one.name: one for one in found}


def judge(name: str, label: str = "supported", **options: Any) -> ScriptedJudge:
    return ScriptedJudge(
        name, lambda task, repeat: answer_all(task, label=label), url=f"http://127.0.0.1/{name}", **options
    )


# --- what MLflow hands over, as a record ---


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        ({"inputs": {"user_input": "Who?"}}, "question", "Who?"),
        ({"inputs": "Who?"}, "question", "Who?"),
        ({"inputs": {"prompt": "Who?"}}, "question", "Who?"),
        ({"inputs": {"prompt": "Who?", "n": "3"}}, "question", None),
        ({"inputs": {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]}},
         "question", "Who?"),
        ({"inputs": {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hi!"},
                                  {"role": "user", "content": [{"type": "text", "text": "Who?"}]}]}},
         "question", "user: Hi.\nassistant: Hi!\nuser: Who?"),
        ({"inputs": {"input": [{"role": "user", "content": "Who?"}]}}, "question", "Who?"),
        ({"inputs": {"context": "Ann is."}}, "contexts", ("Ann is.",)),
        ({"inputs": {"documents": [{"page_content": "a"}, {"content": "b", "doc_uri": "u"}, "c"]}}, "contexts",
         ("a", "b", "c")),
        ({"outputs": "Ann."}, "answer", "Ann."),
        ({"outputs": 42}, "answer", "42"),
        ({"outputs": {"response": "Ann.", "retrieved_contexts": ["Ann is."]}}, "contexts", ("Ann is.",)),
        ({"outputs": {"text": "Ann."}}, "answer", "Ann."),
        ({"outputs": {"choices": [{"message": {"role": "assistant", "content": "Ann."}}]}}, "answer", "Ann."),
        ({"outputs": {"output": [{"type": "message", "content": [{"type": "output_text", "text": "Ann."}]}]}}, "answer",
         "Ann."),
        ({"outputs": [{"role": "assistant", "content": "Ann."}]}, "answer", "Ann."),
        ({"outputs": float("nan")}, "answer", None),
        ({"expectations": {"ground_truth": "Ann"}}, "reference", "Ann"),
        ({"expectations": {"expected_facts": ["It is Ann.", "She sings."]}}, "reference", "It is Ann.\nShe sings."),
        ({"expectations": {"expected_facts": ["x"], "expected_response": "Ann"}}, "reference", "Ann"),
        ({"expectations": {"max_length": 5}}, "metadata", {"max_length": 5}),
        ({"inputs": {"id": 7, "question": "Who?", "topic": "law"}}, "metadata", {"topic": "law"}),
    ],
)  # fmt: skip
def test_fields_are_found_under_the_names_that_people_use(given: dict[str, Any], field: str, expected: Any) -> None:
    assert getattr(record_of(**given), field) == expected


def test_what_is_no_text_and_no_trace_is_refused_in_one_line() -> None:
    wrong: dict[str, dict[str, Any]] = {
        "question: expected text, found question": {"inputs": pd.Series({"question": "Who?", "contexts": ["A"]})},
        "question: expected text, found array": {"inputs": np.array(["a", "b"])},
        "trace: expected a trace of MLflow, found str": {"trace": "tr-1"},
    }
    for words, given in wrong.items():
        with pytest.raises(InputError, match=words) as refused:
            record_of(outputs="Ann.", **given)
        assert len(str(refused.value).splitlines()) == 1


def test_a_mapping_names_what_has_another_name_and_two_names_of_one_meaning_are_refused() -> None:
    given = {"inputs": {"prompt": "Who?", "passages": ["a"]}, "outputs": {"text": "Ann.", "note": "x"}}
    record = record_of(**given, columns={"question": "prompt", "contexts": "passages", "answer": "text"})
    assert (record.question, record.contexts, record.answer) == ("Who?", ("a",), "Ann.")
    with pytest.raises(InputError, match='inputs: the columns "query", "question" mean the same'):
        record_of({"query": "Who?", "question": "What?"})


def test_contexts_come_from_retriever_spans_where_nothing_else_has_them(mlflow_store: Store) -> None:
    mlflow.set_tracking_uri(mlflow_store.uri)
    try:
        with mlflow.start_span("answer") as root:
            root.set_inputs({"question": "Who?"})
            with mlflow.start_span("search", span_type="RETRIEVER") as outer:
                with mlflow.start_span("store", span_type="RETRIEVER") as inner:
                    inner.set_outputs([{"page_content": "raw"}])
                outer.set_outputs([{"page_content": "first"}, {"page_content": "second"}])
            with mlflow.start_span("again", span_type="RETRIEVER") as other:
                other.set_outputs(["third"])
            root.set_outputs("Ann.")
        mlflow.flush_trace_async_logging()
        mlflow.log_expectation(trace_id=root.trace_id, name="expected_response", value="Ann")
        trace = mlflow.get_trace(root.trace_id)
        found = record_of(trace=trace)
        assert (found.question, found.answer, found.reference) == ("Who?", "Ann.", "Ann")
        assert found.contexts == ("first", "second", "third")
        assert record_of({"question": "Who?", "contexts": ["given"]}, "Ann.", trace=trace).contexts == ("given",)
    finally:
        mlflow.flush_trace_async_logging(terminate=True)
        mlflow.set_tracking_uri(None)


def test_a_record_goes_out_and_comes_back() -> None:
    record = Record("1", "¿Quién?", "Ana.", ["a", "b"], "Ana", metadata={"topic": "law", "ground_truth": "other"})
    back = record_of(**arguments_of(record))
    assert (back.question, back.answer, back.contexts, back.reference) == ("¿Quién?", "Ana.", ("a", "b"), "Ana")
    assert back.metadata == {"topic": "law"}
    trace = trace_of(record)
    (chunks,) = extract_retrieval_context_from_trace(trace).values()
    assert [chunk["content"] for chunk in chunks] == ["a", "b"], "as MLflow's own scorers read it"
    assert record_of(**arguments_of(record, contexts=False), trace=trace).contexts == ("a", "b")


# --- a metric as a scorer ---


def test_feedback_carries_score_reason_source_and_what_it_took(project: Path) -> None:
    one = judge("ada", usd=0.25)
    made = as_scorer("faithfulness", one)
    assert isinstance(made, Scorer) and made.name == "faithfulness"
    (found,) = said(made).values()
    assert (found.name, found.value, found.error) == ("faithfulness", 1.0, None)
    assert (found.source.source_type, found.source.source_id) == ("LLM_JUDGE", "ada")
    assert found.rationale == "1 claim: 1 supported"
    expected = {"metric": "faithfulness", "version": "1", "judge": "ada", "status": "ok", "threshold": "0.8"}
    expected |= {"passed": "true", "cached_calls": "0", "mlflow.assessment.judgeCost": "0.5"}
    expected |= {
        "mlflow.assessment.judgeInputTokens": "200",
        "mlflow.assessment.judgeOutputTokens": "20",
        "latency_s": "0",
    }
    assert found.metadata == expected
    again = said(made)["faithfulness"].metadata
    assert (again["cached_calls"], again["mlflow.assessment.judgeCost"]) == ("2", "0"), "the store is the project's"
    assert len(one.asked) == 2


def test_an_unknown_price_is_left_out(project: Path) -> None:
    found = said(as_scorer("faithfulness", judge("ada", usd=None), store=None))["faithfulness"]
    assert "mlflow.assessment.judgeCost" not in found.metadata and found.metadata["cached_calls"] == "0"


def test_a_panel_speaks_alone_or_with_its_members(project: Path) -> None:
    members = [judge("ada"), judge("bob"), judge("eve", "contradicted")]
    alone = said(as_scorer("faithfulness", Panel(members), store=None))
    assert list(alone) == ["faithfulness"]
    panel = alone["faithfulness"]
    assert (panel.value, panel.source.source_id, panel.source.source_type) == (1.0, "panel", "LLM_JUDGE")
    assert float(panel.metadata["disagreement"]) > 0
    asked = sum(len(one.asked) for one in members)
    assert panel.metadata["mlflow.assessment.judgeCost"] == f"{0.001 * asked:g}", "what its members took together"
    every = said(as_scorer("faithfulness", Panel(members), members=True, store=None))
    assert list(every) == ["faithfulness", "faithfulness_ada", "faithfulness_bob", "faithfulness_eve"]
    assert [one.value for one in every.values()] == [1.0, 1.0, 1.0, 0.0]
    costs = [float(one.metadata.get("mlflow.assessment.judgeCost", 0)) for one in every.values()]
    assert costs[0] == 0 and math.isclose(sum(costs), 0.001 * asked, rel_tol=1e-4)


def test_a_list_gives_one_for_each_judge_and_names_are_legal(project: Path) -> None:
    made = as_scorer("faithfulness", [judge("gpt-4.1"), BaselineJudge()], name="grounded in v1.2", store=None)
    found = said(made)
    assert {name: one.source.source_type for name, one in found.items()} == {
        "grounded in v1.2_baseline": "CODE",
        "grounded in v1.2_gpt_4_1": "LLM_JUDGE",
    }
    from jurimetrics.metrics import faithfulness

    assert as_scorer(faithfulness.using(refusals="worst"), BaselineJudge()).name == "faithfulness_refusals_worst_"


def test_a_cascade_says_nothing_of_judges_it_did_not_ask(project: Path) -> None:
    strong = judge("zoe")
    made = as_scorer("faithfulness", Cascade([judge("ada"), strong], [0.9]), repeats=3, members=True, store=None)
    found = said(made)
    assert list(found) == ["faithfulness", *(f"faithfulness_ada{at}" for at in ("", "_repeat_1", "_repeat_2"))]
    assert found["faithfulness"].source.source_id == "cascade" and strong.asked == []


def test_what_has_no_score_is_an_error_with_its_kind(project: Path) -> None:
    made = as_scorer("faithfulness", Panel([BaselineJudge("a"), BaselineJudge("b"), BaselineJudge("c")]), store=None)
    blank = said(made, outputs="")["faithfulness"]
    assert (blank.value, blank.error.error_code) == (None, "undefined")
    assert blank.error.error_message == "the answer makes no claims" and blank.metadata["flags"] == "no_claims"
    lacking = said(made, inputs={"text": "Who?", "passages": "x"})["faithfulness"].error
    assert lacking.error_code == "not_applicable"
    assert lacking.error_message.startswith('the record has no contexts (inputs: "text", "passages"; outputs: a text')
    broken = ScriptedJudge("ada", lambda task, repeat: JudgeError("filtered", "not allowed"))
    failed = said(as_scorer("faithfulness", broken, store=None))["faithfulness"]
    assert (failed.error.error_code, failed.error.error_message) == ("filtered", "not allowed")
    assert failed.metadata["status"] == "failed" and "passed" not in failed.metadata


def test_several_metrics_share_what_they_ask(project: Path) -> None:
    one = judge("ada")
    found = said(as_scorer(["faithfulness", "hallucination", "f1"], one, name="grounding", store=None))
    assert list(found) == ["faithfulness", "hallucination", "f1"]
    assert (found["f1"].source.source_type, found["f1"].source.source_id) == ("CODE", "computed")
    keys = [request.task for request in one.asked]
    assert len(keys) == len(set(keys)), "each task once"


@pytest.mark.parametrize(
    ("chosen", "options", "match"),
    [
        ("consensus", {}, "consensus compares variants"),
        (["f1", "faithfulness"], {}, "give the scorer of 2 metrics a name"),
        ("f1", {"name": "a/b"}, "a name is made of letters"),
        ("f1", {"name": " "}, "a name is made of letters"),
        ("f1", {"repeats": 2}, "repeats are for a cascade"),
        ("f1", {"columns": {"contexs": "x"}}, '"contexs" means nothing here'),
        ("f1", {"columns": {"question": 5}}, "columns: expected names, found 5"),
        ("f1", {"store": 5}, "store must be a path"),
        ("f1", {"retries": -1}, "retries must be a whole number"),
        ("f1", {"reason_language": 5}, "reason_language is the name"),
        ("faithfulnes", {}, "did you mean 'faithfulness'"),
        (5, {}, "metrics: expected a metric or its name, or a list of them, found int"),
    ],
)
def test_what_cannot_be_a_scorer_is_said_at_once(chosen: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        as_scorer(chosen, BaselineJudge(), **options)


def test_mlflow_tells_scorers_apart_and_knows_when_one_passes() -> None:
    one, other = (as_scorer("faithfulness", BaselineJudge(name)) for name in ("a", "b"))
    assert one.description == "jurimetrics: faithfulness 1, judged by a" != other.description
    low = as_scorer("hallucination", BaselineJudge())
    assert [one.pass_if(0.8), one.pass_if(0.79), low.pass_if(0.0), low.pass_if(1.0)] == [True, False, True, False]
    with pytest.raises(mlflow.exceptions.MlflowException):
        one.register()


@pytest.fixture
def tracked(mlflow_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_WORKERS", "1")
    mlflow.set_tracking_uri(mlflow_store.uri)
    yield mlflow_store
    mlflow.flush_trace_async_logging(terminate=True)
    mlflow.set_tracking_uri(None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Starting with pandas version 4.0")  # MLflow 3.17 on pandas 3
@pytest.mark.filterwarnings("ignore:.*load_module")  # MLflow's import hooks, where openai is first imported under them
def test_in_mlflows_own_evaluation_over_a_real_endpoint(tracked: Store) -> None:
    data = [
        {"inputs": {"question": f"Question {at}?", "contexts": [f"Fact {at} holds."]}, "outputs": f"Fact {at} holds."}
        for at in range(3)
    ]
    data[2]["outputs"] = ""
    mlflow.set_experiment("scorers")
    with ScriptedServer(valid) as server:
        chat = [ChatJudge(name, base_url=server.url, price=(1, 2)) for name in ("one", "two", "three")]
        made = as_scorer("faithfulness", Panel(chat), members=True)
        before = dict(os.environ)
        first = mlflow.genai.evaluate(data=data, scorers=[made, as_scorer("hallucination", Panel(chat))])
        sent = len(server.requests)
        second = mlflow.genai.evaluate(data=data, scorers=[made])
        assert dict(os.environ) == before
        assert len(server.requests) == sent > 0 and server.repeats == 0
    names = ["faithfulness", "faithfulness_one", "faithfulness_two", "faithfulness_three"]
    assert {f"{name}/mean" for name in names} <= set(first.metrics)
    for name in names:
        assert first.metrics[f"{name}/mean"] == second.metrics[f"{name}/mean"]
    rows = first.result_df.set_index("request", drop=False)
    assert rows["faithfulness/value"].notna().sum() == 2
    (blank,) = rows.loc[rows["faithfulness/value"].isna(), "faithfulness/error_message"]
    assert blank == "the answer makes no claims"
    assert rows["hallucination/value"].notna().all(), "a blank answer holds nothing that is unsupported"
    traces = mlflow.search_traces(run_id=first.run_id, return_type="list")
    assert len(traces) == 3 and all(len(trace.data.spans) == 1 for trace in traces), "the judges' calls are no spans"


# --- a scorer as a metric ---

RECORDS = [
    {"id": "1", "question": "Where?", "answer": "Madrid.", "contexts": ["Madrid is in Spain."], "reference": "Madrid."},
    {
        "id": "2",
        "question": "Where?",
        "answer": "In the city of Madrid.",
        "contexts": ["Lisbon."],
        "reference": "Madrid.",
    },
]


def rows_of(made: Any, records: Any = RECORDS) -> Any:
    return evaluate(records, [made], BaselineJudge(), store=None, progress=False).scores


def giving(value: Any, **options: Any) -> Any:
    """The only row under a scorer that gives this value."""

    @scorer(name="given")
    def given(outputs: Any) -> Any:
        return value

    return rows_of(from_scorer(given, **options), RECORDS[:1]).iloc[0]


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (True, {}, 1.0), (False, {}, 0.0), (0.25, {}, 0.25), (3, {"range": (1, 5)}, 3.0), ("yes", {}, 1.0), ("No", {}, 0.0),
        (np.float64(0.5), {}, 0.5), (Feedback(value=np.float32(0.5)), {}, 0.5), (Feedback(value=np.bool_(True)), {}, 1.0),
        (Feedback(value=np.int64(4)), {"range": (1, 5)}, 4.0), ("good", {"values": {"good": np.float64(0.8)}}, 0.8),
        (CategoricalRating.YES, {}, 1.0), (Feedback(value=CategoricalRating.NO), {}, 0.0), (Feedback(value=0.5), {}, 0.5),
        ("good", {"values": {"good": 0.8}}, 0.8),
        ([Feedback(name="other", value=0.1), Feedback(name="given", value=0.9)], {}, 0.9),
        ([Feedback(name="other", value=0.1), Feedback(name="given", value=0.9)], {"feedback": "other"}, 0.1),
        ([Feedback(name="other", value=0.1)], {}, 0.1),
    ],
)  # fmt: skip
def test_values_become_scores(value: Any, options: dict[str, Any], expected: float) -> None:
    row = giving(value, **options)
    assert (row["status"], row["score"], row["judge"], row["metric"]) == ("ok", expected, "computed", "given")


@pytest.mark.parametrize(
    ("value", "status", "text"),
    [
        (None, "undefined", "the scorer gave no value"),
        ("unknown", "undefined", "the scorer gave no value"),
        (Feedback(value=None, rationale="nothing to see"), "undefined", "nothing to see"),
        ([], "undefined", "the scorer gave no value"),
        (Feedback(error=AssessmentError("undefined", "no claims")), "undefined", "no claims"),
        (Feedback(error=AssessmentError("not_applicable", "no contexts")), "not_applicable", "no contexts"),
        (7, "failed", "out_of_range: given gave 7.0, outside its range 0 to 1"),
        (10**400, "failed", "out_of_range: given gave inf, outside its range 0 to 1"),
        (np.float32(0.5), "failed", "unparsed: given must return one of int, float"),
        (np.array([0.5]), "failed", "unparsed: given must return one of int, float"),
        ({"a": 1}, "failed", "unparsed: given must return one of int, float"),
        (float("nan"), "failed", "out_of_range: given gave nan"),
        ("splendid", "failed", "unparsed: the scorer gave 'splendid': say values="),
        (Feedback(value={"a": 1}), "failed", "unparsed: the scorer gave a dict"),
        (
            [Feedback(name="a", value=1), Feedback(name="b", value=0)],
            "failed",
            "unparsed: the scorer gave 'a', 'b', of which",
        ),
        (Feedback(error=AssessmentError("timeout", "too late")), "failed", "timeout: too late"),
        (Feedback(error=ValueError("odd")), "failed", "crash: ValueError: odd"),
    ],
)
def test_what_is_no_score_is_typed(value: Any, status: str, text: str) -> None:
    row = giving(value)
    assert math.isnan(row["score"]) and row["status"] == status
    assert (row["error"] if status == "failed" else row["reason"]).startswith(text)


def test_reason_source_and_a_cost_that_nobody_knows() -> None:
    row = giving(Feedback(value=1.0, rationale="well said", metadata={"model": "m"}))
    assert row["reason"] == "well said" and '"model": "m"' in row["details"]
    assert math.isnan(row["judge_cost_usd"]) and math.isnan(row["judge_prompt_tokens"])


def test_an_exception_in_one_row_ends_that_row() -> None:
    @scorer
    def fussy(outputs: str, expectations: dict[str, Any]) -> bool:
        if len(outputs) > 10:
            raise RuntimeError("too long")
        return outputs == expectations["expected_response"]

    found = rows_of(from_scorer(fussy))
    assert found["status"].tolist() == ["ok", "failed"] and found["score"].iloc[0] == 1.0
    assert found["error"].iloc[1].startswith("crash: RuntimeError: too long")


def test_scorers_get_what_they_take() -> None:
    class Found(Scorer):
        name: str = "found"

        def __call__(self, *, inputs: Any, trace: Any) -> float:
            (chunks,) = extract_retrieval_context_from_trace(trace).values()
            return float([chunk["content"] for chunk in chunks] == inputs["contexts"])

    assert rows_of(from_scorer(Found()))["score"].tolist() == [1.0, 1.0]

    @scorer
    def long(inputs: Any) -> int:
        return int(inputs["n"])

    longest = from_scorer(long, range=(0, 50), arguments=lambda record: {"inputs": {"n": len(record.answer or "")}})
    assert rows_of(longest)["score"].tolist() == [7.0, 22.0]


def test_built_in_scorers() -> None:
    found = rows_of(from_scorer(RegexMatch(pattern="^Madrid"), threshold=1))
    assert found["score"].tolist() == [1.0, 0.0] and found["passed"].tolist() == [True, False]
    assert found["metric"].iloc[0] == "regex_match" and "matches" in found["reason"].iloc[0]
    short = from_scorer(ResponseLength(max_length=10), name="short")
    assert rows_of(short)["score"].tolist() == [1.0, 0.0]


def test_needs_follow_what_a_scorer_takes() -> None:
    @scorer
    def known(outputs: Any) -> bool:
        return True

    @scorer
    def any_question(inputs: Any) -> bool:
        return True

    made = from_scorer(known)
    assert (made.needs, from_scorer(any_question).needs) == (("answer",), ())
    assert from_scorer(known, needs=["answer", "reference"]).needs == ("answer", "reference")
    assert rows_of(made, [{"id": "1", "question": "Who?"}])["status"].tolist() == ["not_applicable"]


def test_versions_change_with_source_and_settings_alone() -> None:
    def versions(limit: int) -> tuple[str, str]:
        @scorer
        def short(outputs: str) -> bool:
            return len(outputs) < 10

        return from_scorer(short).version, from_scorer(ResponseLength(max_length=limit)).version

    @scorer
    def short(outputs: str) -> bool:
        return len(outputs) <= 10

    assert versions(5) == versions(5)
    assert versions(5)[1] != versions(6)[1]
    assert from_scorer(short).version != versions(5)[0]
    assert from_scorer(short, values={"a": 1}).version != from_scorer(short).version


def test_what_is_no_scorer_of_answers_is_refused() -> None:
    @scorer
    def chats(session: Any) -> bool:
        return True

    for given, match in ((len, "found builtin"), (RegexMatch, r"such as RegexMatch\(...\)"), (chats, "whole sessions")):
        with pytest.raises(InputError, match=match):
            from_scorer(given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threshold 2 is outside"):
        from_scorer(RegexMatch(pattern="a"), threshold=2)
    for values in (5, ["good"], {"good": "much"}, {"good": float("nan")}, {1: 1}):
        with pytest.raises(InputError, match="values must give a number for each text"):
            from_scorer(RegexMatch(pattern="a"), values=values)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="arguments must be a function"):
        from_scorer(RegexMatch(pattern="a"), arguments=5)  # type: ignore[arg-type]


# --- and back ---


@metric(needs=["answer", "reference"], range=(0, 1), judged=False)
async def moody(record: Record, ask: Any) -> Score:
    """A metric with every kind of outcome."""
    answer = record.answer or ""
    if "crash" in answer:
        raise RuntimeError("crashed")
    if "nothing" in answer:
        return Score.undefined("nothing there")
    return Score(len(answer) / 100, f"{len(answer)} characters")


@pytest.mark.parametrize("asked", [moody, "faithfulness", "context_precision"])
def test_there_and_back_again_gives_the_same_scores(asked: Any, project: Path) -> None:
    records = [
        *RECORDS,
        {"id": "3", "question": "Q?", "answer": "crash", "reference": "x", "contexts": ["crash"]},
        {"id": "4", "question": "Q?", "answer": "nothing", "reference": "x"},
        {"id": "5", "question": "Q?", "answer": "", "contexts": ["Lisbon is in Portugal."]},
        {"id": "6", "question": "Q?"},
    ]
    panel = Panel([judge("ada"), judge("bob", "contradicted"), judge("eve", "unknown")])
    direct = evaluate(records, [asked], panel, progress=False).scores
    wrapped = from_scorer(as_scorer(asked, panel, members=True))
    back = rows_of(wrapped, records)
    direct = direct[direct["judge"].isin(["panel", "computed"])].set_index("id").loc[back["id"]].reset_index()
    assert back["status"].tolist() == direct["status"].tolist()
    assert back["score"].fillna(-1).tolist() == direct["score"].fillna(-1).tolist()
    kinds = [error.partition(":")[0] for error in direct["error"]]
    assert [error.partition(":")[0] for error in back["error"]] == kinds
    scored = back["status"] == "ok"
    assert back.loc[scored, "reason"].tolist() == direct.loc[scored, "reason"].tolist()
    assert scored.any()


def test_results_with_a_scorer_of_mlflow_are_results_like_any(tmp_path: Path, project: Path) -> None:
    kept = evaluate(
        RECORDS, [from_scorer(RegexMatch(pattern="^Madrid")), "f1"], BaselineJudge(), store=None, progress=False
    )
    kept.save(tmp_path / "kept")
    summary = Results.load(tmp_path / "kept").summary().set_index("metric")
    assert summary.loc["regex_match", "mean"] == 0.5 and math.isnan(summary.loc["regex_match", "cost_usd"])
    assert summary.loc["f1", "cost_usd"] == 0
