"""Overlap of words, counted without a judge."""

from __future__ import annotations

from typing import Any

import jurimetrics as jm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.metrics.overlap import f1
from jurimetrics.text import f1_tokens


def score(answer: str | None, reference: str | None, **record: Any) -> dict[str, Any]:
    given_record = {"id": "1", "answer": answer, "reference": reference, **record}
    frame = jm.evaluate([given_record], ["f1"], NOBODY, store=None, progress=False).scores
    found: dict[str, Any] = frame.iloc[0].to_dict()
    return found


class Nobody:
    """A judge that must not be asked."""

    name = "nobody"
    endpoint = None
    reply_key = "nobody"
    max_input_tokens = None

    def check(self) -> None:
        """There is nothing to check."""

    def settings(self) -> dict[str, Any]:
        return {"kind": "scripted"}

    async def attempt(self, request: Any, session: Any) -> Any:
        raise AssertionError("a metric that computes asked a judge")


NOBODY: Any = Nobody()


def test_f1_of_the_example_of_the_source() -> None:
    answer = "According to wikipedia, Marie Curie was not born in Paris but in Warsaw."
    found = score(answer, "Marie Curie was born in Warsaw.")
    # 13 words and 6, all 6 in common: 2 * 6 / 19.
    assert found["score"] == 0.631578947368421
    assert found["judge"] == "computed" and found["passed"]
    assert found["reason"] == "6 of 13 words of the answer and 6 of the reference in common"


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [
        ("the cat's", "cats", 1.0),
        ("The Cat!", "An the cat", 1.0),
        ("cat cat dog", "cat dog dog", 4 / 6),
        ("cat", "dog", 0.0),
        ("CAFÉ", "cafe\u0301", 1.0),
        ("Straße", "STRASSE", 1.0),
        ("東京", "東京都", 4 / 5),
        ("Il a faim aujourd'hui, dit Marie.", "Il faim aujourd'hui, dit Marie.", 10 / 11),
        ("...", "cat", 0.0),
        ("...", "!", 1.0),
    ],
)
def test_f1_by_hand(answer: str, reference: str, value: float) -> None:
    assert score(answer, reference)["score"] == pytest.approx(value)


def test_f1_declares_its_own_threshold_and_passes_at_half() -> None:
    assert (f1.range, f1.higher_is_better, f1.threshold, f1.judged) == ((0, 1), True, 0.5, False)
    assert score("cat dog", "cat bird")["passed"]


def test_f1_of_a_missing_side_is_not_applicable_and_of_a_blank_answer_zero() -> None:
    assert score(None, "cat")["status"] == "not_applicable"
    assert score("cat", None)["reason"] == "the record has no reference"
    blank = score(" ", "cat")
    assert (blank["status"], blank["score"]) == ("ok", 0)


def test_f1_costs_nothing_and_sends_nothing() -> None:
    found = score("cat", "cat")
    assert (found["judge_calls"], found["judge_cost_usd"], found["judge_prompt_tokens"]) == (0, 0, 0)


@given(answer=st.text(max_size=40), reference=st.text(max_size=40))
def test_f1_does_not_mind_which_side_is_which_and_stays_in_range(answer: str, reference: str) -> None:
    first, second = f1_tokens(answer, "en"), f1_tokens(reference, "en")
    common = sum(min(first.count(word), second.count(word)) for word in set(first))
    expected = 2 * common / (len(first) + len(second)) if first or second else 1.0
    assert 0 <= expected <= 1
    record = jm.Record("1", answer=f"the {answer}", reference=f"the {reference}")
    if record.has("reference"):
        run: Any = f1(record, NOBODY)
        with pytest.raises(StopIteration) as ended:
            run.send(None)
        turned: Any = f1(jm.Record("1", answer=f"the {reference}", reference=f"the {answer}"), NOBODY)
        with pytest.raises(StopIteration) as ended_turned:
            turned.send(None)
        assert ended.value.value.value == ended_turned.value.value.value


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [("The Cat!", "a cat", 1.0), ("the cat's", "cats", 1.0), ("a dog", "a cat", 0.0), ("Ja, 4", "4, ja", 0.0)],
)
def test_exact_match_after_the_normalisation_of_f1(answer: str, reference: str, value: float) -> None:
    record = {"answer": answer, "reference": reference}
    scores = jm.evaluate([record], ["exact_match", "f1"], jm.BaselineJudge(), store=None).scores.set_index("metric")
    assert scores.loc["exact_match", "score"] == value
    assert scores.loc["f1", "score"] >= value
