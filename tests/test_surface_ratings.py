"""The built-in rubrics by surface features: what each sees, what it cannot, and which rubrics they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jurimetrics as jm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics import metrics
from jurimetrics.judges.surface_ratings import (
    RULES,
    WORDINGS,
    comprehensiveness,
    correctness,
    groundedness,
    rate,
    readability,
    relevance,
    similarity,
    wording,
)
from jurimetrics.metrics import criteria
from jurimetrics.metrics.rubrics import Rubric
from jurimetrics.records import Record
from jurimetrics.tasks.rate import RateRubric

QUESTION = "When was the Sarn lock opened, and how far does it lift a boat?"
REFERENCE = "The Sarn lock was opened in May 1889. It lifts boats by four metres."
CONTEXTS = ("The Sarn lock was opened in May 1889 after three years. It lifts boats by four metres in one chamber.",)
RIGHT = "The Sarn lock was opened in May 1889. It lifts boats by four metres."
WRONG_YEAR = "The Sarn lock was opened in May 1898. It lifts boats by four metres."
INVENTED = f"{RIGHT} Its keeper was awarded a medal in Vienna."
HALF = "The Sarn lock was opened in May 1889."
AWAY = "Tomatoes grow best in full sun and drained soil."
REFUSAL = "I don't know."
BUILT_IN = [name for name in dir(criteria) if isinstance(getattr(criteria, name), metrics.Metric)]


def task_of(name: str, **changes: Any) -> RateRubric:
    program = getattr(criteria, name).function
    assert isinstance(program, Rubric)
    record = Record("1", question=QUESTION, answer=RIGHT, contexts=CONTEXTS, reference=REFERENCE)
    return replace(program.task(record), **changes)


def test_every_built_in_rubric_has_a_rule_for_its_wording() -> None:
    """Fails where a rubric was reworded: see whether the rule still fits it, then enter the new hash in WORDINGS."""
    assert {name: wording(task_of(name)) for name in BUILT_IN} == dict(WORDINGS)
    assert len(BUILT_IN) == len(RULES) == 9


def test_the_whole_groups_are_answered() -> None:
    record = {"question": QUESTION, "answer": RIGHT, "contexts": list(CONTEXTS), "reference": REFERENCE}
    found = jm.evaluate([record], ["quality", "criteria", "qa"], jm.BaselineJudge(), store=None).scores
    judged = found[found["metric"].isin(BUILT_IN)]
    assert set(judged["metric"]) == set(BUILT_IN) and (judged["status"] == "ok").all()
    assert (judged["score"] == judged["metric"].map(lambda name: 1 if name == "accuracy_clarity" else 5)).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "Is it dear to me?"},
        {"scale": (1, 7)},
        {"scale": (0, 1), "step": 0.1, "levels": ()},
        {"levels": ()},
        {"levels": ((1, "best"), (5, "worst"))},
    ],
)
@pytest.mark.parametrize("name", ["relevance", "coherence", "groundedness"])
def test_a_rubric_of_ones_own_under_a_known_name_is_not_taken_for_it(name: str, changes: dict[str, Any]) -> None:
    assert rate(task_of(name, **changes)) == f"the rubric {name!r} in this wording or on this scale"


def test_a_rubric_of_ones_own_fails_as_unsupported() -> None:
    record = {"question": QUESTION, "answer": RIGHT}
    own = [
        jm.rubric("Is it dear to me?", name="relevance", needs=["answer", "question"]),
        jm.rubric("Kind?", name="kind"),
    ]
    found = jm.evaluate([record], own, jm.BaselineJudge(), store=None).scores
    assert found["error"].tolist() == [
        "unsupported: the baseline has no rules for the rubric 'relevance' in this wording or on this scale",
        "unsupported: the baseline has no rules for the rubric 'kind'",
    ]


@pytest.mark.parametrize("name", ["correctness", "comprehensiveness"])
def test_what_needs_a_reference_here_is_unsupported_without(name: str) -> None:
    found = jm.evaluate([{"question": QUESTION, "answer": RIGHT}], [name], jm.BaselineJudge(), store=None).scores
    assert found["error"].tolist() == [
        f"unsupported: the baseline has no rules for the rubric {name!r} without a reference"
    ]


@pytest.mark.parametrize(
    ("text", "score", "said"),
    [
        (RIGHT, 5, "2 of 2 sentences found in the documents, 0 contradicted"),
        (INVENTED, 3, "2 of 3 sentences found"),
        (WRONG_YEAR, 3, "1 of 2 sentences found in the documents, 1 contradicted"),
        (f"{HALF} {AWAY} Bread is baked in Norrin.", 2, "1 of 3"),
        (AWAY, 1, "0 of 1"),
        (REFUSAL, 5, "no sentence states anything"),
    ],
)
def test_groundedness(text: str, score: int, said: str) -> None:
    found = groundedness(CONTEXTS, text, QUESTION)
    assert (found.score, said in found.reason) == (score, True), found.reason


@pytest.mark.parametrize(("text", "score"), [(RIGHT, 5), (HALF, 3), (WRONG_YEAR, 3), (AWAY, 1), (REFUSAL, 1)])
def test_similarity_goes_both_ways(text: str, score: int) -> None:
    found = similarity(REFERENCE, text, QUESTION)
    assert found.score == score, found.reason


def test_similarity_charges_for_length_and_comprehensiveness_does_not() -> None:
    longer = f"{RIGHT} {AWAY} Bread is baked in Norrin."
    # The reference is there wholly, half of the answer's four sentences stand in it: 2 x 1 x .5 / 1.5 = .67.
    assert similarity(REFERENCE, longer).score == 3 and comprehensiveness(REFERENCE, longer).score == 5


@pytest.mark.parametrize(
    ("text", "score"),
    [(RIGHT, 5), (HALF, 5), (INVENTED, 5), (WRONG_YEAR, 3), ("It was opened in 1898.", 1), (AWAY, 3), (REFUSAL, 5)],
)
def test_correctness_sees_contradictions_only(text: str, score: int) -> None:
    found = correctness(REFERENCE, text, QUESTION)
    assert found.score == score, found.reason


@pytest.mark.parametrize(
    ("text", "score"),
    [(RIGHT, 5), ("It was opened in May 1889. It lifts by four metres.", 5), (HALF, 3), (AWAY, 1), (REFUSAL, 1)],
)
def test_comprehensiveness_is_coverage_of_what_the_reference_adds(text: str, score: int) -> None:
    found = comprehensiveness(REFERENCE, text, QUESTION)
    assert found.score == score, found.reason


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (RIGHT, 5),
        ("May 1889.", 5),
        (f"{RIGHT} {AWAY}", 4),
        (f"{HALF} {AWAY} Chess has 64 squares.", 3),
        (AWAY, 1),
        (REFUSAL, 1),
        ("I don't know when the lock was opened.", 2),
    ],
)
def test_relevance(text: str, score: int) -> None:
    found = relevance(QUESTION, text)
    assert found.score == score, found.reason


SENTENCE = "The old lock lifts small boats by four metres in one chamber each day."  # 14 words
JOINED = "the old lock lifts small boats by four metres in one chamber and "


@pytest.mark.parametrize(
    ("text", "score", "feature"),
    [
        (SENTENCE, 5, "words a sentence 14, at most 14"),
        (f"The lock: {JOINED * 2}it rests.", 4, "at most 30"),
        (f"The lock: {JOINED * 3}it rests.", 3, "words a sentence 43, at most 43"),
        (f"The lock: {JOINED * 4}it rests.", 2, "at most 56"),
        (" ".join([SENTENCE] * 11), 4, "words without a line break 154"),
        ("\n".join([SENTENCE] * 11), 5, "words without a line break 14"),
        ("Internationalization notwithstanding, the lock works.", 4, "long words 0.40"),
        ("lock it are open open open in in the the", 4, "fluency faults 4"),
    ],
)
def test_readability_names_what_it_counts(text: str, score: int, feature: str) -> None:
    found = readability(text)
    assert (found.score, feature in found.reason) == (score, True), found.reason


def test_german_has_longer_words() -> None:
    text = "Die Schleusenmeisterin öffnet die Schleuse. Der Bürgermeister fährt im Sommer mit dem Boot."
    assert readability(text).score == 5


def test_every_reason_says_that_it_is_surface_only() -> None:
    for name in BUILT_IN:
        found = rate(task_of(name))
        assert not isinstance(found, str)
        assert (
            found.reason.startswith("surface features only: ")
            or "surface faults only" in found.reason
            or name == "accuracy_clarity"
        )


@pytest.mark.parametrize(
    "name", ["relevance", "groundedness", "similarity", "correctness", "comprehensiveness", "readability"]
)
def test_a_language_without_rules_is_unsupported(name: str) -> None:
    record = {"question": "東京は何ですか。", "answer": "東京は日本の首都です。", "contexts": ["東京は日本の首都です。"],
              "reference": "東京は日本の首都です。"}  # fmt: skip
    found = jm.evaluate([record], [name], jm.BaselineJudge(), store=None).scores
    assert found["error"].str.startswith("unsupported: language: ").all()


TEXTS = st.lists(
    st.sampled_from([RIGHT, WRONG_YEAR, AWAY, REFUSAL, "It is old.", "No.", "1889"]), min_size=1, max_size=4
).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(answer=TEXTS, reference=TEXTS)
def test_every_value_lies_on_the_scale_and_is_whole(answer: str, reference: str) -> None:
    for name in BUILT_IN:
        found = rate(task_of(name, answer=answer, reference=reference))
        assert not isinstance(found, str) and found.reason
        assert found.score in (range(1, 6) if name != "accuracy_clarity" else [at / 10 for at in range(11)])


@given(copies=st.integers(1, 4))
def test_groundedness_never_rises_by_a_sentence_that_is_not_there(copies: int) -> None:
    assert groundedness(CONTEXTS, f"{RIGHT} {AWAY * copies}").score <= groundedness(CONTEXTS, RIGHT).score
