"""Alignment of answer and reference: every formula and every edge, by judges whose verdicts are written here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jurimetrics as jm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.metrics.alignment import alignment_correctness
from jurimetrics.text import sentences
from scripted_judge import ScriptedJudge, one_claim_each, verdicts

METRICS = ("alignment_correctness", "alignment_completeness", "alignment")
QUESTION = "What are the capital cities of France, England and Spain?"
ANSWER = "Paris is the capital of France. Barcelona is the capital of Spain."
REFERENCE = "Paris is the capital of France. London is the capital of England. Madrid is the capital of Spain."
CAPITALS = {"Paris": "supported", "Barcelona": "contradicted", "London": "unknown", "Madrid": "contradicted"}


def by_word(labels: Mapping[str, str]) -> Any:
    """A script that takes each sentence as a claim and labels it by a word in it; sentences with "sorry" claim nothing."""

    def script(task: Any, repeat: int) -> Any:
        if task.kind == "check":
            return verdicts(task, lambda claim: next(label for word, label in labels.items() if word in claim))
        said = one_claim_each(task)
        for sentence, entry in zip(sentences(task.text), said["sentences"], strict=True):
            if "sorry" in sentence.text.casefold():
                entry.update(check="non_factual", claims=[])
        return said

    return script


def run(judges: Any, *metrics: Any, **record: Any) -> jm.Results:
    given_record = {"id": "1", "question": QUESTION, "answer": ANSWER, "reference": REFERENCE, **record}
    return jm.evaluate([given_record], list(metrics or METRICS), judges, store=None, progress=False)


def rows(results: jm.Results, judge: str = "ada") -> dict[str, dict[str, Any]]:
    frame = results.scores[results.scores["judge"] == judge]
    return {
        row["metric"]: {str(key): value for key, value in row.items()} | {"details": json.loads(row["details"])}
        for row in frame.to_dict("records")
    }


def test_example_of_the_source_paris_right_barcelona_wrong_london_missing() -> None:
    found = rows(run(ScriptedJudge("ada", by_word(CAPITALS))))
    # Facts of the reference: Paris entailed, London silent, Madrid contradicted. Claims: Paris right, Barcelona wrong.
    assert found["alignment_completeness"]["score"] == pytest.approx(1 / 3)
    assert found["alignment_correctness"]["score"] == 0.5
    # 2 * (1/2 * 1/3) / (1/2 + 1/3) = (1/3) / (5/6) = 2/5
    assert found["alignment"]["score"] == pytest.approx(0.4)
    assert [row["passed"] for row in found.values()] == [False] * 3
    facts = found["alignment_completeness"]["details"]["evaluated_facts"]
    assert [fact["entailment"] for fact in facts] == ["entailed", "neutral", "contradicted"]
    assert [fact["fact"]["content"] for fact in facts] == [sentence.text for sentence in sentences(REFERENCE)]
    assert found["alignment"]["details"]["evaluated_facts"] == facts
    assert found["alignment_correctness"]["details"]["contradicted_share"] == 0.5
    assert found["alignment"]["reason"] == "correctness 0.5, completeness 0.333"


def test_alignment_asks_nothing_that_its_two_sides_do_not_ask() -> None:
    judge = ScriptedJudge("ada", by_word(CAPITALS))
    run(judge)
    assert sorted(request.task.kind for request in judge.asked) == ["check", "check", "claims", "claims"]
    checks = [request.task for request in judge.asked if request.task.kind == "check"]
    assert {task.documents for task in checks} == {(REFERENCE,), (ANSWER,)}
    assert {task.question for task in checks} == {QUESTION}


def test_ranges_directions_and_thresholds() -> None:
    declared = run(ScriptedJudge("ada", by_word(CAPITALS))).settings["metrics"]
    for name in METRICS:
        assert declared[name]["range"] == [0, 1] and declared[name]["higher_is_better"]
        assert declared[name]["threshold"] == 0.7 and declared[name]["needs"] == ["answer", "reference"]


def test_reference_is_split_once_for_all_variants() -> None:
    judge = ScriptedJudge("ada", by_word({**CAPITALS, "Rome": "supported"}))
    records = [
        {"id": "1", "variant": name, "question": QUESTION, "answer": f"{answer} is a capital.", "reference": REFERENCE}
        for name, answer in (("a", "Paris"), ("b", "Barcelona"), ("c", "Rome"))
    ]
    jm.evaluate(records, list(METRICS), judge, store=None, progress=False)
    split = [request.task.text for request in judge.asked if request.task.kind == "claims"]
    assert split.count(REFERENCE) == 1 and len(split) == 4


@pytest.mark.parametrize(
    ("labels", "correctness", "completeness", "both", "wrong"),
    [
        (("supported", "supported"), 1, 1, 1, 0),
        (("contradicted", "contradicted"), 0, 0, 0, 1),
        (("unknown", "unknown"), 0, 0, 0, None),
        (("supported", "unknown"), 0.5, 0.5, 0.5, 0),
        (("supported", "contradicted"), 0.5, 0.5, 0.5, 0.5),
    ],
)
def test_shares_over_what_was_asked(
    labels: Any, correctness: float, completeness: float, both: float, wrong: Any
) -> None:
    script = by_word({"one": labels[0], "two": labels[1]})
    text = "Here is one. Here is two."
    found = rows(run(ScriptedJudge("ada", script), answer=text, reference=text + " "))
    assert found["alignment_correctness"]["score"] == correctness
    assert found["alignment_completeness"]["score"] == completeness
    assert found["alignment"]["score"] == both
    assert found["alignment_correctness"]["details"]["contradicted_share"] == wrong
    assert found["alignment"]["details"]["contradicted_share"] == wrong


def test_nothing_in_common_is_zero_not_an_error() -> None:
    found = rows(run(ScriptedJudge("ada", by_word(dict.fromkeys(CAPITALS, "unknown")))))
    assert [found[name]["score"] for name in METRICS] == [0, 0, 0]
    assert [found[name]["status"] for name in METRICS] == ["ok"] * 3


def test_refusal_is_undefined_for_correctness_and_zero_for_the_others() -> None:
    script = by_word(dict.fromkeys(CAPITALS, "unknown"))
    found = rows(run(ScriptedJudge("ada", script), answer="Sorry, I do not know."))
    assert found["alignment_correctness"]["status"] == "undefined"
    assert found["alignment_completeness"]["score"] == found["alignment"]["score"] == 0
    assert "no_claims" in found["alignment_correctness"]["flags"] and "no_claims" in found["alignment"]["flags"]
    assert len(found["alignment"]["details"]["evaluated_facts"]) == 3


def test_refusal_can_count_as_the_worst_value() -> None:
    worst = alignment_correctness.using(refusals="worst")
    results = run(ScriptedJudge("ada", by_word(CAPITALS)), worst, answer="Sorry, I do not know.")
    found = rows(results)["alignment_correctness(refusals=worst)"]
    assert (found["score"], found["status"]) == (0, "ok") and "no_claims" in found["flags"]


def test_blank_answer_is_never_shown_to_a_judge() -> None:
    judge = ScriptedJudge("ada", by_word(CAPITALS))
    found = rows(run(judge, answer=" \n"))
    assert found["alignment_correctness"]["status"] == "undefined"
    assert found["alignment_completeness"]["score"] == found["alignment"]["score"] == 0
    assert all("no_claims" in found[name]["flags"] for name in METRICS)
    assert [request.task.text for request in judge.asked] == [REFERENCE]
    facts = found["alignment_completeness"]["details"]["evaluated_facts"]
    assert [fact["entailment"] for fact in facts] == ["neutral"] * 3


def test_reference_without_facts_is_undefined_for_completeness_and_alignment() -> None:
    script = by_word(dict.fromkeys(CAPITALS, "unknown"))
    found = rows(run(ScriptedJudge("ada", script), reference="Sorry, there is none."))
    assert found["alignment_completeness"]["status"] == found["alignment"]["status"] == "undefined"
    assert found["alignment_completeness"]["reason"] == "the reference states no facts"
    assert (found["alignment_correctness"]["status"], found["alignment_correctness"]["score"]) == ("ok", 0)


@pytest.mark.parametrize(("missing", "empty"), [("answer", None), ("reference", None), ("reference", " ")])
def test_what_is_missing_is_not_applicable_and_nobody_is_asked(missing: str, empty: str | None) -> None:
    judge = ScriptedJudge("ada", by_word(CAPITALS))
    found = rows(run(judge, **{missing: empty}))
    assert {row["status"] for row in found.values()} == {"not_applicable"} and not judge.asked
    assert {row["reason"] for row in found.values()} == {f"the record has no {missing}"}


def test_panel_votes_fact_by_fact_and_shows_the_undecided_both_ways() -> None:
    # Two judges who agree on Paris alone: Barcelona, London and Madrid are undecided.
    other = {**CAPITALS, "Barcelona": "supported", "London": "supported", "Madrid": "supported"}
    panel = jm.Panel([ScriptedJudge("ada", by_word(CAPITALS)), ScriptedJudge("bob", by_word(other))])
    found = rows(run(panel), "panel")
    assert found["alignment_correctness"]["score"] == 0.5
    assert found["alignment_completeness"]["score"] == pytest.approx(1 / 3)
    assert found["alignment"]["score"] == pytest.approx(0.4)
    details = found["alignment"]["details"]
    assert (details["undecided"], details["undecided_low"], details["undecided_high"]) == pytest.approx((3, 0.4, 1))
    correctness = found["alignment_correctness"]["details"]
    assert (correctness["undecided_low"], correctness["undecided_high"]) == (0.5, 1)
    # Undecided is not contradicted: of what was decided nothing was wrong.
    assert correctness["contradicted_share"] == 0


def test_panel_undecided_on_one_side_only_keeps_the_other_as_it_is() -> None:
    other = {**CAPITALS, "Barcelona": "supported"}
    panel = jm.Panel([ScriptedJudge("ada", by_word(CAPITALS)), ScriptedJudge("bob", by_word(other))])
    details = rows(run(panel), "panel")["alignment"]["details"]
    # Precision 1/2 or 1, recall 1/3: 2/5, or 2 * (1/3) / (4/3) = 1/2.
    assert (details["undecided"], details["undecided_low"], details["undecided_high"]) == pytest.approx((1, 0.4, 0.5))


LABELS = st.lists(st.sampled_from(["supported", "contradicted", "unknown"]), min_size=1, max_size=8)


def scored(answer: list[int], reference: list[int], labels: Mapping[str, str]) -> list[float]:
    def text(numbers: list[int]) -> str:
        return " ".join(f"Claim number w{at}x is made." for at in numbers)

    found = rows(run(ScriptedJudge("ada", by_word(labels)), answer=text(answer), reference=text(reference)))
    return [found[name]["score"] for name in METRICS]


@settings(max_examples=15, deadline=None)
@given(answer=LABELS, reference=LABELS, data=st.data())
def test_order_of_claims_and_facts_never_changes_a_score(answer: list[str], reference: list[str], data: Any) -> None:
    labels = {f"w{at}x": label for at, label in enumerate([*answer, *reference])}
    claims, facts = list(range(len(answer))), list(range(len(answer), len(labels)))
    given_order = scored(claims, facts, labels)
    assert scored(data.draw(st.permutations(claims)), data.draw(st.permutations(facts)), labels) == given_order
    precision, recall, both = given_order
    assert precision == pytest.approx(answer.count("supported") / len(answer))
    assert recall == pytest.approx(reference.count("supported") / len(reference))
    assert min(precision, recall) - 1e-12 <= both <= max(precision, recall) + 1e-12
