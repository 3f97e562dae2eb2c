"""Unsupported sentences: reading, spans, doubts, votes, evidence in parts."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import ReplyError
from jurimetrics.tasks.evidence import message_tokens
from jurimetrics.tasks.quotes import Quote
from jurimetrics.tasks.sentences import FindUnsupported, SentenceLabel, Span
from jurimetrics.tasks.task import Items, Rule
from jurimetrics.text import sentences

ANSWER = "The tower opened in 1890. It is in Paris.  Is it not lovely? It was red in 1890."
DOCUMENTS = ("The tower opened in 1889.", "It stands in Paris.")
TASK = FindUnsupported(ANSWER, DOCUMENTS)


def span(quote: Any, kind: Any = "extrinsic") -> dict[str, Any]:
    return {"quote": quote, "type": kind}


def entry(
    at: Any, label: Any = "supported", *spans: Any, evidence: Any = (), reason: Any = "because"
) -> dict[str, Any]:
    return {"at": at, "evidence": list(evidence), "reason": reason, "spans": list(spans), "verdict": label}


def reply(*entries: Any) -> dict[str, Any]:
    return {"sentences": list(entries)}


REST = (entry(2), entry(3, "no_check"), entry(4))


def test_every_sentence_is_labelled_and_spans_keep_their_place_in_the_answer() -> None:
    read = TASK.read(
        reply(
            entry(4, "unsupported", span("was red")),
            entry(1, "unsupported", span("1890", "intrinsic"), evidence=[{"doc": 1, "quote": "in 1889"}]),
            *REST[:2],
        )
    )
    assert [one.label for one in read] == ["unsupported", "supported", "no_check", "unsupported"]
    assert [ANSWER[one.start : one.end] for one in read] == [one.text for one in read]
    assert read[0].spans == (Span(20, 24, "1890", "intrinsic"),)
    assert read[0].evidence == (Quote(0, "in 1889", 17, 24),)
    (red,) = read[3].spans
    assert ANSWER[red.start : red.end] == red.quote == "was red" and red.type == "extrinsic"
    assert read.flags == () and TASK.doubts(read) == ()
    assert [one.unsupported for one in read] == [True, False, False, True]


def test_a_span_is_looked_for_in_its_own_sentence_only() -> None:
    read = TASK.read(reply(entry(1), *REST[:2], entry(4, "unsupported", span("1890"))))
    (found,) = read[3].spans
    assert found.start > 60 and ANSWER[found.start : found.end] == "1890"
    lost = TASK.read(reply(entry(1), *REST[:2], entry(4, "unsupported", span("The tower"))))
    assert lost[3].spans == (Span(lost[3].start, lost[3].end, lost[3].text, "extrinsic", found=False),)


@pytest.mark.parametrize("quote", ["TOWER  opened", "tower\nopened", "ｔower opened"])
def test_a_span_is_found_apart_from_case_width_and_space(quote: str) -> None:
    read = TASK.read(reply(entry(1, "unsupported", span(quote)), *REST))
    assert read[0].spans == (Span(4, 16, "tower opened", "extrinsic"),)


@pytest.mark.parametrize("spans", [[span("1891")], [], [span("")], [span("1891"), span("1892", "intrinsic")]])
def test_what_is_not_found_is_doubted_once_then_the_whole_sentence_is_marked(spans: list[Any]) -> None:
    first = reply(entry(1, "unsupported", *spans), *REST)
    answer = TASK.read(first)
    assert TASK.doubts(answer) == (1,) and answer.flags == ("quote_not_found",)
    again = TASK.read(TASK.merge(first, reply(entry(1, "unsupported", *spans))))
    kind = spans[0]["type"] if spans else ""
    assert again[0].spans == (Span(0, 25, "The tower opened in 1890.", kind, found=False),)
    assert again[0].label == "unsupported" and again.flags == ("quote_not_found",)
    mended = TASK.read(TASK.merge(first, reply(entry(1, "unsupported", span("1890")))))
    assert mended[0].spans == (Span(20, 24, "1890", "extrinsic"),) and mended.flags == ()


def test_spans_of_a_sentence_come_in_order_each_once() -> None:
    read = TASK.read(reply(entry(1, "unsupported", span("1890"), span("tower"), span("1890", "intrinsic")), *REST))
    assert [(one.quote, one.type) for one in read[0].spans] == [("tower", "extrinsic"), ("1890", "extrinsic")]


def test_the_label_decides_over_spans_that_contradict_it() -> None:
    read = TASK.read(reply(entry(1, "supported", span("1890")), entry(2), entry(3, "no_check", span("x")), entry(4)))
    assert [one.spans for one in read] == [(), (), (), ()]
    assert read.flags == ("spans_ignored:2",)


@pytest.mark.parametrize(
    "bad",
    [
        entry(1, "undecided"), entry(1, "hallucinated"), entry(1, None), entry(1, True), entry(1, reason=None),
        entry(1, "unsupported", span("1890", "both")), entry(1, "unsupported", span("1890", None)),
        entry(1, "unsupported", span(None)), entry(1, "unsupported", "1890"), entry(1, "unsupported", {"quote": "1890"}),
        {**entry(1), "spans": "1890"}, {"at": 1, "verdict": "supported"}, {**entry(1), "evidence": "x"},
    ],
)  # fmt: skip
def test_an_unreadable_sentence_is_asked_again(bad: dict[str, Any]) -> None:
    with pytest.raises(ReplyError) as caught:
        TASK.read(reply(bad, *REST))
    assert (caught.value.kind, caught.value.missing) == ("unparsed", (1,))
    assert TASK.read(TASK.merge(caught.value.valid, entry(1)))[0].label == "supported"


def test_a_missing_sentence_is_incomplete_also_after_the_re_ask() -> None:
    with pytest.raises(ReplyError) as caught:
        TASK.read(reply(*REST, entry(5), entry(2)))
    assert (caught.value.kind, caught.value.missing) == ("incomplete", (1,))
    with pytest.raises(ReplyError, match="incomplete: sentence 1 is missing"):
        TASK.read(TASK.merge(caught.value.valid, reply(entry(5))))
    mended = TASK.read(TASK.merge(caught.value.valid, reply(entry(1))))
    assert mended.flags == ("dropped:2",)


LONG = " ".join(f"Sentence number {n} says that the hall has {n} windows." for n in range(1, 24))


def test_long_answers_are_asked_in_windows_and_join_to_what_one_call_would_say() -> None:
    task = FindUnsupported(LONG, DOCUMENTS)
    split = task.split()
    assert [part.window for part in split.parts] == [(0, 10), (10, 20), (20, 23)]
    labels = ["supported", "no_check", "unsupported"]
    every = [entry(n, labels[n % 3], *([span(f"{n} windows")] if n % 3 == 2 else [])) for n in range(1, 24)]
    answers = [part.read(reply(*every[part.window[0] : part.window[1]])) for part in split.parts]
    assert split.join(answers) == task.read(reply(*every))
    starts = {part.messages()[1]["content"].partition("TASK:")[0] for part in split.parts}
    assert len(starts) == 1


def test_doubts_of_a_window_are_numbered_as_in_the_prompt() -> None:
    part = FindUnsupported(LONG, DOCUMENTS, (10, 12))
    answer = part.read(reply(entry(11), entry(12, "unsupported", span("nowhere"))))
    assert part.doubts(answer) == (12,)


@pytest.mark.parametrize("answer", ["", " \n", "\u200b"])
def test_a_blank_answer_asks_nothing(answer: str) -> None:
    split = FindUnsupported(answer, DOCUMENTS).split()
    assert split.parts == () and split.join([]) == Items(())


def test_a_short_answer_is_its_own_part() -> None:
    assert TASK.split().parts == (TASK,) and TASK.split(5_000).parts == (TASK,)
    read = TASK.read(reply(entry(1), *REST))
    assert TASK.split().join([read]) == read


def members(*rows: str) -> dict[str, Items[SentenceLabel] | None]:
    """A word for each judge a, b, c, ...: its labels by first letter; "-" for a judge that failed."""
    names = {"s": "supported", "u": "unsupported", "n": "no_check"}
    made: dict[str, Items[SentenceLabel] | None] = {}
    for judge, row in zip("abcdef", rows, strict=False):
        read = [
            SentenceLabel("0123456789", n * 11, n * 11 + 10, names[letter], f"{judge} says {letter}",
                          (Span(n * 11 + "abcdef".index(judge), n * 11 + 6, judge, "extrinsic"),) if letter == "u" else ())
            for n, letter in enumerate(row)
        ] if row != "-" else []  # fmt: skip
        made[judge] = Items(tuple(read)) if row != "-" else None
    return made


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (["u", "u", "s"], ["unsupported"]),
        (["s", "s", "u"], ["supported"]),
        (["n", "n", "u"], ["no_check"]),
        (["s", "u", "n"], ["undecided"]),
        (["s", "-", "u"], ["undecided"]),
        (["u", "-", "u"], ["unsupported"]),
        (["u", "-", "-"], ["undecided"]),
        (["u", "s"], ["undecided"]),
        (["us", "un", "sn"], ["unsupported", "no_check"]),
    ],
)
def test_each_sentence_needs_more_than_half_of_the_judges_asked(rows: list[str], labels: list[str]) -> None:
    given_answers = members(*rows)
    seen = set()
    for order in permutations(given_answers.items()):
        vote = TASK.vote(dict(order), Rule("mean"))
        assert [one.label for one in vote.answer] == labels
        assert [one.undecided for one in vote.answer] == [label == "undecided" for label in labels]
        assert ("undecided" in vote.answer.flags) == ("undecided" in labels)
        seen.add(repr((vote.answer, vote.disagreement, vote.flags)))
    assert len(seen) == 1


def test_the_panel_unites_the_spans_of_its_winners() -> None:
    vote = TASK.vote(members("u", "u", "s"), Rule())
    assert vote.answer[0].reason == "a says u"
    assert [(one.start, one.quote) for one in vote.answer[0].spans] == [(0, "a"), (1, "b")]
    assert vote.ballots == ({"a": "unsupported", "b": "unsupported", "c": "supported"},)


def test_found_words_replace_a_whole_sentence() -> None:
    def said(*spans: Span) -> Items[SentenceLabel]:
        return Items((SentenceLabel("0123456789", 0, 10, "unsupported", "r", spans),))

    whole, part = Span(0, 10, "0123456789", "", found=False), Span(2, 4, "23", "intrinsic")
    vote = TASK.vote({"a": said(whole), "b": said(part)}, Rule())
    assert vote.answer[0].spans == (part,) and vote.answer.flags == ()
    assert TASK.vote({"a": said(whole), "b": said(whole)}, Rule()).answer.flags == ("quote_not_found",)


def test_an_undecided_sentence_has_no_spans_and_says_who_said_what() -> None:
    vote = TASK.vote(members("u", "-", "s"), Rule())
    assert vote.answer[0].spans == ()
    assert vote.answer[0].reason == "no majority (a: unsupported; c: supported)"
    assert vote.ballots == ({"a": "unsupported", "b": None, "c": "supported"},)


def test_a_panel_of_equal_judges_is_its_member() -> None:
    read = TASK.read(reply(entry(1, "unsupported", span("1890", "intrinsic")), *REST))
    vote = TASK.vote({"a": read, "b": read, "c": read}, Rule())
    assert (vote.answer, vote.disagreement) == (read, 0)


@given(st.lists(st.sampled_from(["uus", "snu", "nnn", "-", "uuu"]), min_size=1, max_size=5), st.randoms())
def test_permuting_judges_changes_nothing(rows: list[str], random: Any) -> None:
    given_answers = members(*rows)
    if all(answer is None for answer in given_answers.values()):
        return
    order = list(given_answers.items())
    random.shuffle(order)
    assert TASK.vote(dict(order), Rule()) == TASK.vote(given_answers, Rule())


EVIDENCE = tuple(f"Document {n} begins. " + f"Boats number {n} row to the mill every year. " * 30 for n in range(2))


@pytest.mark.parametrize(
    ("said", "joined"),
    [
        (["supported", "unsupported"], "supported"),
        (["unsupported", "supported"], "supported"),
        (["unsupported", "unsupported"], "unsupported"),
        (["unsupported", "no_check"], "no_check"),
        (["no_check", "no_check"], "no_check"),
    ],
)
def test_over_parts_of_evidence_unsupported_is_the_intersection(said: list[str], joined: str) -> None:
    task = FindUnsupported("It opened in 1890, they say.", EVIDENCE)
    rest = message_tokens(FindUnsupported(task.answer, ()).messages())
    split = task.split(rest + 500)
    assert len(split.parts) == 2 and all(message_tokens(part.messages()) <= rest + 500 for part in split.parts)
    answers = [
        part.read([entry(1, label, *([span(words)] if label == "unsupported" else []),
                         evidence=[{"doc": 1, "quote": f"Document {n} begins"}])])
        for n, (part, label, words) in enumerate(zip(split.parts, said, ["opened in 1890", "1890, they say"], strict=True))
    ]  # fmt: skip
    answer = split.join(answers)
    assert answer[0].label == joined and answer.flags == ("split",)
    assert {one.doc for one in answer[0].evidence} == {n for n, label in enumerate(said) if label == joined}
    if joined == "unsupported":
        assert [one.quote for one in answer[0].spans] == ["opened in 1890", "1890, they say"]


def test_spans_that_only_some_parts_of_the_evidence_call_unsupported_are_left_out() -> None:
    task = FindUnsupported("It opened in 1890 and is red.", EVIDENCE)
    split = task.split(message_tokens(FindUnsupported(task.answer, ()).messages()) + 500)
    first = split.parts[0].read([entry(1, "unsupported", span("1890"), span("red"))])
    second = split.parts[1].read([entry(1, "unsupported", span("is red"))])
    assert [one.quote for one in split.join([first, second])[0].spans] == ["is red", "red"]
    disjoint = split.parts[1].read([entry(1, "unsupported", span("opened"))])
    assert len(split.join([first, disjoint])[0].spans) == 3


@given(
    st.lists(st.sampled_from(["Eins zwei.", "两个。", "Three!", "four?\n", "पाँच।"]), min_size=1, max_size=9), st.data()
)
def test_any_piece_of_a_sentence_is_found_at_its_offsets(pieces: list[str], data: Any) -> None:
    answer = " ".join(pieces)
    found = sentences(answer)
    at = data.draw(st.integers(0, len(found) - 1))
    text = found[at].text
    start = data.draw(st.integers(0, len(text) - 1))
    quote = text[start : data.draw(st.integers(start + 1, len(text)))].strip()
    task = FindUnsupported(answer, DOCUMENTS)
    entries = [entry(n) for n in range(1, len(found) + 1) if n != at + 1]
    read = task.read(reply(*entries, entry(at + 1, "unsupported", span(quote))))[at]
    (one,) = read.spans
    assert answer[one.start : one.end] == one.quote
    assert read.start <= one.start < one.end <= read.end
    assert one.quote == quote if quote else not one.found
