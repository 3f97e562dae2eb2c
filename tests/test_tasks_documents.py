"""Ratings of documents: reading, splitting, votes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import NoMajority, ReplyError
from jurimetrics.tasks.documents import DocumentRating, RateDocuments
from jurimetrics.tasks.evidence import message_tokens
from jurimetrics.tasks.task import DoesNotFit, Items, Rule

DOCUMENTS = ("It opened in 1889.", "It is tall.", "Fish soup is cooked in kettles.")


def task(documents: tuple[str, ...] = DOCUMENTS) -> RateDocuments:
    return RateDocuments("When did it open?", "In 1889.", documents)


def rating(doc: Any, score: Any, found: Any = "the year") -> dict[str, Any]:
    return {"doc": doc, "found": found, "score": score}


def test_scores_become_tenths() -> None:
    answer = task().read({"ratings": [rating(3, 0), rating(1, "１０"), rating(2, 3.0, " height ")]})
    assert answer == Items(
        (DocumentRating(0, 1.0, "the year"), DocumentRating(1, 0.3, "height"), DocumentRating(2, 0.0, "the year"))
    )


@pytest.mark.parametrize("score", range(11))
def test_every_score_of_the_scale(score: int) -> None:
    assert task(("x",)).read([rating(1, score)])[0].value == score / 10


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (rating(2, 11), "out_of_range"), (rating(2, -1), "out_of_range"), (rating(2, 85), "out_of_range"),
        (rating(2, "11"), "out_of_range"), (rating(2, 0.5), "unparsed"), (rating(2, "7/10"), "unparsed"),
        (rating(2, True), "unparsed"), (rating(2, None), "unparsed"), (rating(2, float("nan")), "unparsed"),
        (rating(2, "relevant"), "unparsed"), ({"doc": 2, "found": "x"}, "unparsed"), (rating(2, 5, None), "unparsed"),
        (rating(4, 5), "incomplete"), (rating(True, 5), "incomplete"),
    ],
)  # fmt: skip
def test_a_bad_rating_is_asked_again_and_never_becomes_a_number(bad: dict[str, Any], kind: str) -> None:
    with pytest.raises(ReplyError) as caught:
        task().read({"ratings": [rating(1, 8), bad, rating(3, 0)]})
    assert (caught.value.kind, caught.value.missing) == (kind, (2,))
    answer = task().read(task().merge(caught.value.valid, {"ratings": [rating(2, 4)]}))
    assert [one.value for one in answer] == [0.8, 0.4, 0.0]


def test_a_second_score_off_the_scale_is_still_out_of_range() -> None:
    merged = task().merge({"ratings": [rating(1, 8), rating(3, 0)]}, {"ratings": [rating(2, 12)]})
    with pytest.raises(ReplyError, match="out_of_range: document 2: score is 12, outside 0 to 10"):
        task().read(merged)


def test_a_document_rated_twice() -> None:
    same = task(("x",)).read([rating(1, 8), rating(1, 8, "again")])
    assert same == Items((DocumentRating(0, 0.8, "the year"),), ("dropped:1",))
    with pytest.raises(ReplyError, match="incomplete: document 1 is given 2 times"):
        task(("x",)).read([rating(1, 8), rating(1, 2)])


def answers(*rows: tuple[int | None, ...]) -> dict[str, Items[DocumentRating] | None]:
    """One row of scores a judge, judges named a, b, c, ...; None for one that failed."""
    made: dict[str, Items[DocumentRating] | None] = {}
    for name, row in zip("abcdef", rows, strict=False):
        scores = [score for score in row if score is not None]
        read = [DocumentRating(doc, score / 10, f"{name} {score}") for doc, score in enumerate(scores)]
        made[name] = Items(tuple(read)) if len(scores) == len(row) else None
    return made


def test_a_panel_votes_document_by_document() -> None:
    given_answers = answers((10, 0), (8, 4), (2, 2))
    for order in permutations(given_answers.items()):
        vote = task(DOCUMENTS[:2]).vote(dict(order), Rule("median"))
        assert [one.value for one in vote.answer] == [0.8, 0.2]
        assert [one.found for one in vote.answer] == ["b 8", "c 2"]
        # spreads .8 and .4
        assert vote.disagreement == pytest.approx(0.6, abs=1e-12)
        assert vote.ballots == ({"a": 1.0, "b": 0.8, "c": 0.2}, {"a": 0.0, "b": 0.4, "c": 0.2})


def test_a_failed_judge_withholds_its_rating() -> None:
    vote = task(("x",)).vote(answers((10,), (None,), (6,)), Rule("mean"))
    assert vote.answer[0].value == 0.8
    assert vote.ballots == ({"a": 1.0, "b": None, "c": 0.6},)


def test_a_majority_of_levels_or_none() -> None:
    assert task(("x",)).vote(answers((7,), (7,), (1,)), Rule("majority")).answer[0].value == 0.7
    with pytest.raises(NoMajority):
        task(("x",)).vote(answers((7,), (7,), (1,), (None,)), Rule("majority"))


def test_a_panel_of_equal_judges_is_its_member() -> None:
    member = answers((7, 3, 0))["a"]
    for rule in (Rule("mean"), Rule("median"), Rule("majority"), Rule("trimmed_mean"), Rule("min"), Rule("max")):
        vote = task().vote({"a": member, "b": member, "c": member}, rule)
        assert (vote.answer, vote.disagreement) == (member, 0)


def test_more_than_ten_documents_are_asked_in_tens_and_joined_in_order() -> None:
    many = task(tuple(f"Document number {n}." for n in range(23)))
    split = many.split()
    assert [len(part.documents) for part in split.parts] == [10, 10, 3]
    read = [part.read([rating(n + 1, n % 11) for n in range(len(part.documents))]) for part in split.parts]
    joined = split.join(read)
    assert [one.doc for one in joined] == list(range(23))
    assert [one.value for one in joined] == [n % 10 % 11 / 10 for n in range(23)]
    assert joined.flags == ()


def test_documents_that_do_not_fit_are_split_and_flagged() -> None:
    long = tuple(f"Document number {n}. " + "It speaks of the river at length. " * 20 for n in range(4))
    whole = task(long)
    bound = message_tokens(whole.messages()) - 100
    split = whole.split(bound)
    assert len(split.parts) == 2
    assert all(message_tokens(part.messages()) <= bound for part in split.parts)
    joined = split.join([part.read([rating(n + 1, 5) for n in range(len(part.documents))]) for part in split.parts])
    assert [one.doc for one in joined] == [0, 1, 2, 3]
    assert joined.flags == ("split",)


def test_a_document_in_passages_is_worth_its_best_one() -> None:
    one = task(("The river is long and the boats are many. " * 60,))
    rest = message_tokens(task(()).messages())
    split = one.split(rest + 300)
    assert len(split.parts) > 1
    scores = [n + 2 for n in range(len(split.parts))]
    read = [part.read([rating(n + 1, score) for n in range(len(part.documents))])
            for part, score in zip(split.parts, scores, strict=True)]  # fmt: skip
    assert split.join(read) == Items((DocumentRating(0, max(scores) / 10, "the year"),), ("split",))


def test_no_room_for_a_sentence_does_not_fit() -> None:
    with pytest.raises(DoesNotFit):
        task(("A document of some length. " * 40,)).split(message_tokens(task(()).messages()) + 20)


def test_no_documents_ask_nothing() -> None:
    assert task(()).split().parts == ()
    assert task(()).split().join([]) == Items(())


def test_few_documents_are_their_own_part() -> None:
    split = task().split()
    answer = task().read([rating(1, 1), rating(2, 2), rating(3, 3)])
    assert split.parts == (task(),) and split.join([answer]) is answer


@given(st.lists(st.lists(st.integers(0, 10), min_size=3, max_size=3), min_size=1, max_size=5), st.randoms())
def test_permuting_judges_changes_nothing(rows: list[list[int]], random: Any) -> None:
    given_answers = answers(*(tuple(row) for row in rows))
    order = list(given_answers.items())
    random.shuffle(order)
    for rule in (Rule("mean"), Rule("median"), Rule("trimmed_mean")):
        assert task().vote(dict(order), rule) == task().vote(given_answers, rule)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=30))
def test_permuting_the_reply_changes_nothing(scores: list[int]) -> None:
    many = task(tuple(f"Document {n}." for n in range(len(scores))))
    entries = [rating(n, score) for n, score in enumerate(scores, start=1)]
    assert many.read(entries) == many.read(entries[::-1])
