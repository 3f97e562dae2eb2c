"""Results in the shapes of Azure's evaluators and of Pinecone's alignment endpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from jurimetrics.errors import InputError
from jurimetrics.judges.judge import JudgeError
from jurimetrics.metrics import alignment, batched, resolve
from scripted_judge import ScriptedJudge, answer_all
from test_metrics_alignment import CAPITALS, by_word

AZURE_RECORD = {
    "id": "1",
    "question": "Where was Marie Curie born?",
    "answer": "According to wikipedia, Marie Curie was not born in Paris but in Warsaw.",
    "contexts": ["Background: 1. Marie Curie was a chemist. 2. Marie Curie was born on November 7, 1867."],
    "reference": "Marie Curie was born in Warsaw.",
}
LIKERT = ("relevance", "groundedness", "fluency", "coherence", "similarity")
PINECONE_RECORD = {
    "id": "1",
    "question": "What are the capital cities of France, England and Spain?",
    "answer": "Paris is the capital city of France. Barcelona of Spain.",
    "reference": "Paris is the capital city of France. London of England. Madrid of Spain.",
}


@pytest.fixture(scope="module")
def seeds() -> dict[str, str]:
    """The source documents beside the repository, by their number."""
    folder = Path(__file__).parents[2] / "shared" / "seeds"
    found = {path.name[:3]: path.read_text(encoding="utf-8") for path in folder.glob("*.txt")}
    if not {"001", "002"} <= set(found):
        pytest.skip("the source documents ../shared/seeds are not here")
    return found


def objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects that stand in a document, each from a line "{" to a line "}"."""
    return [json.loads(block) for block in re.findall(r"^\{\n.*?^\}", text, flags=re.M | re.S)]


def likert(scores: dict[str, Any] | None = None, reasons: dict[str, str] | None = None) -> Any:
    def script(task: Any, repeat: int) -> Any:
        if task.kind == "criteria":
            return {
                "ratings": [{"criterion": at, "findings": "x", "score": 2} for at in range(1, len(task.rubrics) + 1)]
            }
        said = (scores or {}).get(task.criterion, 4)
        return said if isinstance(said, JudgeError) else {
            "findings": (reasons or {}).get(task.criterion, "as scripted"), "score": said,
        }  # fmt: skip

    return script


def qa(script: Any, metrics: Any = "qa", judges: Any = None, records: Any = None, **options: Any) -> jm.Results:
    judges = judges or ScriptedJudge("ada", script)
    return jm.evaluate(records or [AZURE_RECORD], metrics, judges, store=None, progress=False, **options)


# -- Azure


def test_azure_gives_every_key_and_value_of_the_source(seeds: dict[str, str]) -> None:
    said = objects(seeds["001"])[-1]
    assert len(said) > 20 and "relevance_reason" in said
    scores = {name: int(said[name]) for name in LIKERT}
    reasons = {name: said.get(f"{name}_reason", "the same facts") for name in LIKERT}
    (found,) = qa(likert(scores, reasons)).azure()
    assert set(said) <= set(found)
    # The source prints threshold 3 for F1, which no F1 can reach; everything else is as it says.
    assert {key: found[key] for key in said if key != "f1_threshold"} == {
        key: value for key, value in said.items() if key != "f1_threshold"
    }
    assert found["f1_threshold"] == 0.5 and found["similarity_reason"] == "the same facts"


def test_azure_of_one_metric_has_the_keys_of_its_evaluator(seeds: dict[str, str]) -> None:
    single = [found for found in objects(seeds["001"]) if len(found) == 5]
    assert {next(iter(found)) for found in single} == {"coherence", "fluency"}
    for said in single:
        name = next(iter(said))
        (found,) = qa(likert({name: int(said[name])}, {name: said[f"{name}_reason"]}), [name]).azure()
        assert {key: found[key] for key in said} == said
        assert set(found) - set(said) == {f"{name}_score", f"{name}_passed", f"{name}_status"}


def test_azure_has_the_newer_keys_too() -> None:
    (found,) = qa(likert({"coherence": 2})).azure()
    assert (found["coherence_score"], found["coherence_passed"], found["coherence_status"]) == (2, False, "completed")
    assert (found["fluency_score"], found["fluency_passed"], found["fluency_status"]) == (4, True, "completed")
    assert found["f1_score"] == 0.631578947368421 and found["f1_passed"] is True and found["f1_status"] == "completed"
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_azure_passes_at_exactly_the_threshold_and_asks_nobody_for_another() -> None:
    results = qa(likert({"fluency": 3}))
    assert results.azure()[0]["fluency_result"] == "pass"
    (higher,) = results.with_thresholds({"fluency": 4}).azure()
    assert (higher["fluency_result"], higher["fluency_threshold"], higher["fluency_passed"]) == ("fail", 4, False)
    (without,) = results.with_thresholds({"fluency": None}).azure()
    assert (without["fluency"], without["fluency_result"], without["fluency_passed"]) == (3, None, None)
    assert (without["fluency_threshold"], without["fluency_status"]) == (None, "completed")


def test_azure_missing_values_are_none_and_say_why() -> None:
    failing = {"coherence": JudgeError("refused", "as scripted")}
    (found,) = qa(likert(failing), records=[{**AZURE_RECORD, "contexts": None}]).azure()
    for name, result, status, reason in (
        ("coherence", "error", "error", "refused: as scripted"),
        ("groundedness", "not_applicable", "skipped", "the record has no contexts"),
    ):
        assert found[name] is found[f"gpt_{name}"] is found[f"{name}_score"] is found[f"{name}_passed"] is None
        assert (found[f"{name}_result"], found[f"{name}_status"]) == (result, status)
        assert found[f"{name}_reason"] == reason and found[f"{name}_threshold"] == 3
    (blank,) = qa(likert(), records=[{**AZURE_RECORD, "answer": " "}]).azure()
    assert (blank["fluency"], blank["fluency_result"], blank["fluency_status"]) == (None, "not_applicable", "skipped")
    assert blank["fluency_reason"] == "the answer is blank"


def test_azure_takes_the_panel_else_the_only_judge_else_the_one_named() -> None:
    members = [ScriptedJudge(name, likert({"fluency": score})) for name, score in (("ada", 1), ("bob", 2), ("cem", 5))]
    panel = qa(None, ["fluency", "f1"], jm.Panel(members))
    assert panel.azure()[0]["fluency"] == 2
    assert panel.azure(judge="cem")[0]["fluency"] == 5
    alone = qa(None, ["fluency", "f1"], members)
    with pytest.raises(InputError, match="choose one with judge=, of ada, bob, cem"):
        alone.azure()
    assert alone.azure(judge="ada")[0]["fluency"] == 1
    assert alone.azure(judge="ada")[0]["f1_score"] == 0.631578947368421
    with pytest.raises(InputError, match="no judge 'dan' gave these scores; judges: ada, bob, cem"):
        alone.azure(judge="dan")


def test_azure_stands_in_the_order_of_the_records_and_holds_those_evaluated() -> None:
    records = [{**AZURE_RECORD, "id": name, "variant": variant} for name in "ba" for variant in ("y", "x")]
    results = qa(lambda task, _: {"findings": task.answer, "score": 4}, ["fluency"], records=[
        {**record, "answer": f"{record['id']}{record['variant']}"} for record in records
    ])  # fmt: skip
    assert [found["fluency_reason"] for found in results.azure()] == ["by", "bx", "ay", "ax"]
    assert "f1_score" not in results.azure()[0] and "coherence" not in results.azure()[0]


def test_azure_of_computed_metrics_alone_needs_no_judge() -> None:
    assert qa(likert(), ["f1"]).azure()[0]["f1_result"] == "pass"


def test_azure_reads_batched_criteria_where_they_were_not_asked_alone() -> None:
    both = batched(resolve(["fluency", "coherence"]))
    assert qa(likert(), list(both)).azure()[0]["gpt_coherence"] == 2
    assert qa(likert({"coherence": 5}), ["coherence", *both]).azure()[0]["coherence"] == 5


def test_azure_gives_each_repeat_on_its_own() -> None:
    judge = ScriptedJudge("ada", lambda task, repeat: {"findings": "x", "score": 1 + repeat})
    results = qa(None, ["fluency", "f1"], judge, repeats=3)
    assert [results.azure(repeat=at)[0]["fluency"] for at in range(3)] == [1, 2, 3]
    assert results.azure(repeat=2)[0]["f1_score"] == 0.631578947368421
    with pytest.raises(InputError, match="ada has no repeat 3"):
        results.azure(repeat=3)


def test_azure_without_any_of_its_metrics_is_refused() -> None:
    with pytest.raises(InputError, match=r"none of relevance, .* was evaluated; there are: readability"):
        qa(likert(), ["readability"]).azure()


# -- Pinecone


def shape(value: Any) -> Any:
    """The keys of nested objects, one entry of each list."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


def capitals(judges: Any = None, metrics: Any = "alignment", **record: Any) -> jm.Results:
    judges = judges or ScriptedJudge("ada", by_word(CAPITALS))
    return jm.evaluate([{**PINECONE_RECORD, **record}], metrics, judges, store=None, progress=False)


def test_pinecone_has_the_shape_of_the_source(seeds: dict[str, str]) -> None:
    (said,) = objects(seeds["002"])
    (found,) = capitals().pinecone()
    assert shape(found) == shape(said)


def test_pinecone_values_of_the_example_of_the_source() -> None:
    results = capitals()
    (found,) = results.pinecone()
    assert found["metrics"] == pytest.approx({"correctness": 0.5, "completeness": 1 / 3, "alignment": 0.4})
    assert found["reasoning"]["evaluated_facts"] == [
        {"fact": {"content": "Paris is the capital city of France."}, "entailment": "entailed"},
        {"fact": {"content": "London of England."}, "entailment": "neutral"},
        {"fact": {"content": "Madrid of Spain."}, "entailment": "contradicted"},
    ]
    # Four calls of 100 prompt and 10 completion tokens, asked by these rows alone.
    assert found["usage"] == {"prompt_tokens": 400, "completion_tokens": 40, "total_tokens": 440}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_pinecone_usage_is_the_share_where_others_ask_the_same() -> None:
    judge = ScriptedJudge("ada", by_word(CAPITALS))
    results = capitals(judge, ["alignment", "faithfulness"], contexts=[PINECONE_RECORD["answer"]])
    # claims(answer) is used by three rows, two of them alignment's: 2/3 of it and three whole calls. Faithfulness checks
    # the same claims against the same text, but as a document and without the question: a call of its own.
    assert len(judge.asked) == 5
    assert results.pinecone()[0]["usage"] == {"prompt_tokens": 367, "completion_tokens": 37, "total_tokens": 404}


def test_pinecone_of_alignment_alone_holds_both_sides() -> None:
    # The name alone is that of the group of three.
    results = capitals(metrics=[alignment])
    assert results.scores["metric"].tolist() == ["alignment"]
    (found,) = results.pinecone()
    assert found["metrics"] == pytest.approx({"correctness": 0.5, "completeness": 1 / 3, "alignment": 0.4})
    assert [fact["entailment"] for fact in found["reasoning"]["evaluated_facts"]] == [
        "entailed",
        "neutral",
        "contradicted",
    ]


def test_pinecone_of_one_side_leaves_the_others_none() -> None:
    (found,) = capitals(metrics=["alignment_completeness"]).pinecone()
    assert found["metrics"] == {"correctness": None, "completeness": pytest.approx(1 / 3), "alignment": None}
    assert len(found["reasoning"]["evaluated_facts"]) == 3
    (other,) = capitals(metrics=["alignment_correctness"]).pinecone()
    assert other["reasoning"] == {"evaluated_facts": []} and other["metrics"]["correctness"] == 0.5


def test_pinecone_of_a_panel_counts_what_its_members_took() -> None:
    members = [ScriptedJudge(name, by_word(CAPITALS)) for name in ("ada", "bob", "cem")]
    results = capitals(jm.Panel(members))
    (found,) = results.pinecone()
    assert found["metrics"]["alignment"] == pytest.approx(0.4)
    # Two extractions by one of them, two checks by each.
    assert found["usage"] == {"prompt_tokens": 800, "completion_tokens": 80, "total_tokens": 880}
    assert results.pinecone(judge="cem")[0]["usage"]["prompt_tokens"] < 800


def test_pinecone_without_a_value_is_none_never_zero() -> None:
    judge = ScriptedJudge("ada", lambda task, _: JudgeError("refused", "as scripted"))
    (found,) = capitals(judge).pinecone()
    assert set(found["metrics"].values()) == {None} and found["reasoning"] == {"evaluated_facts": []}
    assert found["usage"]["total_tokens"] > 0
    (refusal,) = capitals(
        answer="Sorry, I do not know.", judges=ScriptedJudge("ada", by_word({"": "unknown"}))
    ).pinecone()
    assert refusal["metrics"] == {"correctness": None, "completeness": 0, "alignment": 0}
    (missing,) = capitals(reference=None).pinecone()
    assert set(missing["metrics"].values()) == {None} and missing["usage"]["total_tokens"] == 0


def test_pinecone_of_recorded_scores_knows_no_usage() -> None:
    frame = pd.DataFrame({"id": ["1", "2"], "metric": "alignment", "judge": "ann", "score": [0.4, None]})
    found = jm.Results.from_frame(frame).pinecone()
    assert [one["metrics"]["alignment"] for one in found] == [0.4, None]
    assert found[0]["usage"] == {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}


def test_pinecone_without_alignment_is_refused() -> None:
    with pytest.raises(InputError, match=r"none of alignment, .* was evaluated; there are: f1"):
        capitals(ScriptedJudge("ada", answer_all), ["f1"]).pinecone()
