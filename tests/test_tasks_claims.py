"""Extraction of claims: reading, duplicates, windows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import InputError, ReplyError
from jurimetrics.tasks.claims import Claim, ExtractClaims
from jurimetrics.tasks.task import DoesNotFit, Items, Rule, task_key
from jurimetrics.text import sentences

TEXT = "The tower opened in 1889. What a sight! It is 330 metres tall."


def entry(at: Any, check: Any = "factual", claims: Any = ("A claim.",)) -> dict[str, Any]:
    return {"at": at, "check": check, "claims": list(claims) if isinstance(claims, tuple) else claims}


def reply(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"sentences": list(entries)}


def test_claims_carry_the_sentence_they_stand_in() -> None:
    answer = ExtractClaims(TEXT).read(
        reply(entry(3, claims=("It is tall.", "It is 330 m tall.")), entry(1), entry(2, "non_factual", ()))
    )
    assert answer == Items((Claim("A claim.", 0), Claim("It is tall.", 2), Claim("It is 330 m tall.", 2)))


def test_a_text_without_claims_has_none() -> None:
    answer = ExtractClaims("I don't know.").read(reply(entry(1, "non_factual", ())))
    assert answer == Items(()) and not answer


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b"])
def test_a_blank_text_asks_nothing_and_has_no_claims(text: str) -> None:
    split = ExtractClaims(text).split()
    assert split.parts == ()
    assert split.join([]) == Items(())


def test_duplicate_claims_are_removed_and_counted() -> None:
    answer = ExtractClaims(TEXT).read(
        reply(
            entry(1, claims=("It is old.", "It  IS old.")),
            entry(2, "non_factual", ()),
            entry(3, claims=("Ｉt is old.",)),
        )
    )
    assert answer == Items((Claim("It is old.", 0),), ("duplicate_claims:2",))


def test_blank_claims_are_dropped_and_unclear_sentences_counted() -> None:
    answer = ExtractClaims(TEXT).read(
        reply(
            entry(1, claims=("It is old.", " ", "\u200b")), entry(2, "unclear", ()), entry(3, "unclear", None), entry(9)
        )
    )
    assert answer.items == (Claim("It is old.", 0),)
    assert answer.flags == ("dropped:3", "unclear_sentences:2")


@pytest.mark.parametrize(
    "bad",
    [
        entry(1, "maybe"), entry(1, None), entry(1, True), entry(1, "factual", "It is old."), entry(1, "factual", [3]),
        entry(1, "factual", [None]), entry(1, "factual", [{"text": "x"}]), entry(1, "factual", ["a", ["b"]]),
        entry(1, "non_factual"), entry(1, "unclear"), {"at": 1, "check": "factual"}, {"at": 1, "claims": []},
    ],
)  # fmt: skip
def test_an_unreadable_sentence_is_asked_again(bad: dict[str, Any]) -> None:
    good = [entry(2, "non_factual", ()), entry(3)]
    with pytest.raises(ReplyError) as caught:
        ExtractClaims(TEXT).read(reply(bad, *good))
    assert (caught.value.kind, caught.value.missing) == ("unparsed", (1,))
    merged = ExtractClaims(TEXT).merge(caught.value.valid, reply(entry(1, "Factual ", ("It is old.",))))
    assert [claim.text for claim in ExtractClaims(TEXT).read(merged)] == ["It is old.", "A claim."]


def test_a_sentence_left_out_or_told_twice_differently_is_asked_again() -> None:
    with pytest.raises(ReplyError) as caught:
        ExtractClaims(TEXT).read(reply(entry(1), entry(1, claims=("Other.",)), entry(2, "non_factual", ())))
    assert (caught.value.kind, caught.value.missing) == ("incomplete", (1, 3))


LONG = " ".join(f"Sentence number {n} says that the hall has {n} windows." for n in range(1, 24))


def test_long_texts_are_asked_in_windows_of_ten_with_the_whole_text() -> None:
    task = ExtractClaims(LONG, "How many?")
    parts = task.split().parts
    assert [part.window for part in parts] == [(0, 10), (10, 20), (20, 23)]
    assert len({task_key(part) for part in parts}) == 3
    users = [part.messages()[1]["content"] for part in parts]
    assert all("[1] Sentence number 1" in user and "[23] Sentence number 23" in user for user in users)
    assert "sentences 11 to 20" in users[1] and "exactly 3 entries, one for each of \nsentences" not in users[2]
    assert "exactly 3 entries" in users[2] and "sentences 21 to 23" in users[2]
    assert all(part.split().parts == (part,) for part in parts)


def test_windows_join_to_what_one_call_would_say() -> None:
    task = ExtractClaims(LONG)
    every = [entry(n, claims=(f"The hall has {n} windows.",)) for n in range(1, 24)]
    split = task.split()
    answers = [part.read(reply(*every[part.window[0] : part.window[1]])) for part in split.parts]
    assert split.join(answers) == task.read(reply(*every))


def test_duplicates_are_found_across_windows_and_flags_added() -> None:
    split = ExtractClaims(LONG).split()
    answers = []
    for part in split.parts:
        first, stop = part.window
        answers.append(part.read(reply(*[entry(n) for n in range(first + 1, stop + 1)], entry(99))))
    joined = split.join(answers)
    assert joined == Items((Claim("A claim.", 0),), ("dropped:3", "duplicate_claims:22"))


def test_a_short_text_is_its_own_part() -> None:
    task = ExtractClaims(TEXT)
    split = task.split()
    answer = task.read(reply(entry(1), entry(2, "non_factual", ()), entry(3, claims=("B.",))))
    assert split.parts == (task,) and split.join([answer]) is answer
    assert ExtractClaims(TEXT).split(10_000).parts == (task,)


def test_a_text_longer_than_the_input_does_not_fit() -> None:
    with pytest.raises(DoesNotFit, match="claims: about"):
        ExtractClaims(LONG).split(300)


def test_a_window_reads_the_numbers_of_the_whole_text() -> None:
    part = ExtractClaims(LONG, None, (10, 12))
    assert [claim.sentence for claim in part.read(reply(entry(11), entry(12, claims=("B.",))))] == [10, 11]
    with pytest.raises(ReplyError) as caught:
        part.read(reply(entry(11)))
    assert caught.value.missing == (12,)


def test_a_blank_question_is_none() -> None:
    assert ExtractClaims(TEXT, " ").messages() == ExtractClaims(TEXT).messages()


def test_claims_are_not_voted_on_unless_all_say_the_same() -> None:
    same, other = Items((Claim("A.", 0),)), Items((Claim("B.", 0),))
    task = ExtractClaims(TEXT)
    assert task.vote({"a": same, "b": None, "c": same}, Rule()).answer == same
    with pytest.raises(InputError, match="extractor"):
        task.vote({"a": same, "b": other}, Rule())
    with pytest.raises(InputError, match="extractor"):
        task.vote({"a": None}, Rule())


@given(st.lists(st.sampled_from(["Eins.", "两个。", "Three!", "तीन।", "four?\n"]), max_size=35))
def test_every_sentence_is_asked_exactly_once(pieces: list[str]) -> None:
    task = ExtractClaims(" ".join(pieces))
    count = len(sentences(task.text))
    windows = [part.window or (0, count) for part in task.split().parts]
    assert [n for start, stop in windows for n in range(start, stop)] == list(range(count))
    assert all(stop - start <= 10 for start, stop in windows)
