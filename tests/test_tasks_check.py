"""Checks of claims: reading, quotes, doubts, votes, evidence in parts."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import ReplyError
from jurimetrics.tasks.check import CheckClaims, Verdict
from jurimetrics.tasks.claims import Claim
from jurimetrics.tasks.evidence import message_tokens
from jurimetrics.tasks.quotes import Quote
from jurimetrics.tasks.task import DoesNotFit, Items, Rule

DOCUMENTS = ("The tower opened in 1889.", "It stands in Paris, on the left bank.")
CLAIMS = ("It opened in 1889.", "It is in Rome.")
TASK = CheckClaims(CLAIMS, DOCUMENTS)


def quote(doc: Any, text: Any) -> dict[str, Any]:
    return {"doc": doc, "quote": text}


def verdict(
    claim: Any, label: Any = "unknown", *evidence: Any, reason: Any = "because", conflict: Any = False
) -> dict[str, Any]:
    return {
        "claim": claim, "evidence": list(evidence), "reason": reason, "sources_conflict": conflict, "verdict": label,
    }  # fmt: skip


def reply(*entries: Any) -> dict[str, Any]:
    return {"verdicts": list(entries)}


GOOD = reply(
    verdict(1, "supported", quote(1, "opened in 1889")),
    verdict(2, "contradicted", quote(2, "stands in Paris"), reason="Paris."),
)
READ = Items(
    (
        Verdict(CLAIMS[0], "supported", "because", (Quote(0, "opened in 1889", 10, 24),)),
        Verdict(CLAIMS[1], "contradicted", "Paris.", (Quote(1, "stands in Paris", 3, 18),)),
    )
)


def test_a_verdict_for_every_claim() -> None:
    assert TASK.read(GOOD) == READ
    assert TASK.doubts(READ) == ()
    assert [(one.supported, one.contradicted) for one in READ] == [(True, False), (False, True)]


def test_claims_may_be_given_as_claims_of_a_text() -> None:
    extracted = Items((Claim(CLAIMS[0], 0), Claim(CLAIMS[1], 4)))
    assert CheckClaims(extracted, list(DOCUMENTS)) == TASK
    assert TASK.claims == CLAIMS


@pytest.mark.parametrize(
    ("given_quote", "expected"),
    [
        (quote(1, "opened in 1889"), (0, "opened in 1889")),
        (quote(1, "OPENED  in\n1889"), (0, "opened in 1889")),
        (quote("１", "opened in １８８９"), (0, "opened in 1889")),
        (quote(2, "opened in 1889"), (0, "opened in 1889")),  # found, if in another document than said
        (quote(9, "left bank"), (1, "left bank")),
        (quote(None, "left bank"), (1, "left bank")),
        ("left bank", (1, "left bank")),
    ],
)
def test_quotes_are_found_exact_or_folded_in_any_document(given_quote: Any, expected: tuple[int, str]) -> None:
    read = TASK.read(reply(verdict(1, "supported", given_quote), verdict(2)))
    (found,) = read[0].evidence
    assert (found.doc, found.quote) == expected
    assert DOCUMENTS[found.doc][found.start : found.end] == found.quote
    assert read.flags == ()


def test_a_quote_that_stands_in_several_documents_is_taken_from_the_one_named() -> None:
    task = CheckClaims(("It is old.",), ("The hall is old.", "It is old.", "old"))
    for doc in (1, 2, 3):
        assert task.read(verdict(1, "supported", quote(doc, "old")))[0].evidence[0].doc == doc - 1
    assert task.read(verdict(1, "supported", quote(4, "old")))[0].evidence[0].doc == 0


UNPROVED = [
    [],
    [quote(1, "opened in 1890")],
    [quote(1, "")],
    [quote(1, " . ")],
    [quote(1, None)],
    [None],
    [3],
    [quote(1, "…")],
]


@pytest.mark.parametrize("evidence", UNPROVED)
def test_support_without_a_quote_that_stands_there_is_doubted_once_then_flagged(evidence: list[Any]) -> None:
    first = reply(verdict(1, "supported", *evidence), verdict(2))
    answer = TASK.read(first)
    assert TASK.doubts(answer) == (1,)
    assert answer.flags == ("quote_not_found",)
    again = TASK.read(TASK.merge(first, reply(verdict(1, "supported", *evidence))))
    assert again[0].label == "supported" and again.flags == ("quote_not_found",)
    mended = TASK.read(TASK.merge(first, reply(verdict(1, "supported", quote(1, "1889")))))
    assert mended[0].evidence == (Quote(0, "1889", 20, 24),) and mended.flags == ()
    changed = TASK.read(TASK.merge(first, reply(verdict(1, "unknown"))))
    assert changed[0].label == "unknown" and changed.flags == ()


@pytest.mark.parametrize("label", ["unknown", "contradicted"])
def test_only_support_is_doubted(label: str) -> None:
    answer = TASK.read(reply(verdict(1, label, quote(1, "nowhere")), verdict(2)))
    assert TASK.doubts(answer) == () and answer.flags == () and answer[0].evidence == ()


@pytest.mark.parametrize(
    "bad",
    [
        verdict(2, "entailed"), verdict(2, None), verdict(2, True), verdict(2, "not supported"), verdict(2, ["supported"]),
        verdict(2, reason=None), verdict(2, reason=3), verdict(2, conflict="false"), verdict(2, conflict=None),
        verdict(2, conflict=0), {"claim": 2, "verdict": "supported"}, {**verdict(2), "evidence": "x"}, {"claim": 2},
    ],
)  # fmt: skip
def test_an_unreadable_verdict_is_asked_again(bad: dict[str, Any]) -> None:
    with pytest.raises(ReplyError) as caught:
        TASK.read(reply(GOOD["verdicts"][0], bad))
    assert (caught.value.kind, caught.value.missing) == ("unparsed", (2,))
    assert TASK.read(TASK.merge(caught.value.valid, [GOOD["verdicts"][1]])) == READ


def test_verdicts_left_out_are_asked_again_then_incomplete() -> None:
    with pytest.raises(ReplyError) as caught:
        TASK.read(reply(GOOD["verdicts"][0]))
    assert (caught.value.kind, caught.value.missing) == ("incomplete", (2,))
    with pytest.raises(ReplyError, match="incomplete: claim 2 is missing"):
        TASK.read(TASK.merge(caught.value.valid, reply(GOOD["verdicts"][0])))


def test_null_evidence_is_none_and_extra_fields_are_ignored() -> None:
    read = TASK.read(
        reply({**verdict(1), "evidence": None, "confidence": 0.9}, {**verdict(2, "Unknown"), "pass": True})
    )
    assert [one.label for one in read] == ["unknown", "unknown"]


def test_unknown_and_repeated_claims_are_dropped_and_counted() -> None:
    read = TASK.read(reply(*GOOD["verdicts"], GOOD["verdicts"][0], verdict(7, "supported")))
    assert read == Items(READ.items, ("dropped:2",))


def test_without_claims_nothing_is_asked() -> None:
    split = CheckClaims((), DOCUMENTS).split()
    assert split.parts == () and split.join([]) == Items(())


@pytest.mark.parametrize("documents", [(), ("",), (" ", "\n\u200b")])
def test_blank_evidence_is_never_shown_and_supports_nothing(documents: tuple[str, ...]) -> None:
    split = CheckClaims(CLAIMS, documents, "Where?").split()
    assert split.parts == ()
    assert [one.label for one in split.join([])] == ["unknown", "unknown"]


MANY = CheckClaims(tuple(f"The hall has {n} windows." for n in range(1, 24)), DOCUMENTS)


def test_many_claims_are_asked_in_tens_behind_the_same_documents() -> None:
    parts = MANY.split().parts
    assert [len(part.claims) for part in parts] == [10, 10, 3]
    prompts = [part.messages() for part in parts]
    assert len({messages[1]["content"].partition("TASK:")[0] for messages in prompts}) == 1
    assert "[1] The hall has 11 windows." in prompts[1][1]["content"]


def test_chunks_join_to_what_one_call_would_say() -> None:
    labels = ["supported", "unknown", "contradicted"]
    every = [verdict(n, labels[n % 3], quote(1, "1889")) for n in range(1, 24)]
    split = MANY.split()
    answers = []
    for at, part in enumerate(split.parts):
        mine = every[at * 10 : at * 10 + len(part.claims)]
        answers.append(part.read(reply(*[{**one, "claim": n} for n, one in enumerate(mine, start=1)])))
    assert split.join(answers) == MANY.read(reply(*every))


def test_few_claims_are_their_own_part() -> None:
    split = TASK.split()
    assert split.parts == (TASK,) and split.join([READ]) == READ
    assert TASK.split(5_000).parts == (TASK,)


def members(*rows: str) -> dict[str, Items[Verdict] | None]:
    """A word for each judge a, b, c, ...: its verdicts by first letter; "-" for a judge that failed."""
    names = {"s": "supported", "c": "contradicted", "u": "unknown"}
    made: dict[str, Items[Verdict] | None] = {}
    for judge, row in zip("abcdef", rows, strict=False):
        verdicts = [Verdict(f"claim {n}", names[letter], f"{judge} says {letter}",
                            (Quote(0, judge, n, n + 1),)) for n, letter in enumerate(row)] if row != "-" else []  # fmt: skip
        made[judge] = Items(tuple(verdicts)) if row != "-" else None
    return made


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (["s", "s", "c"], ["supported"]),
        (["s", "c", "c"], ["contradicted"]),
        (["u", "u", "s"], ["unknown"]),
        (["s", "c", "u"], [None]),
        (["s", "-", "c"], [None]),
        (["s", "s", "-"], ["supported"]),
        (["s", "-", "-"], [None]),
        (["s", "c"], [None]),
        (["s", "s", "c", "c"], [None]),
        (["s", "s", "s", "c"], ["supported"]),
        (["sc", "su", "cu"], ["supported", "unknown"]),
    ],
)
def test_each_claim_needs_more_than_half_of_the_judges_asked(rows: list[str], labels: list[str | None]) -> None:
    given_answers = members(*rows)
    seen = set()
    for order in permutations(given_answers.items()):
        vote = TASK.vote(dict(order), Rule("median"))
        assert [None if one.undecided else one.label for one in vote.answer] == labels
        assert all(one.label == "unknown" for one in vote.answer if one.undecided)
        assert ("undecided" in vote.answer.flags) == ("undecided" in vote.flags) == (None in labels)
        seen.add(repr((vote.answer, vote.disagreement, [sorted(b.items()) for b in vote.ballots], vote.flags)))
    assert len(seen) == 1


def test_the_panel_takes_the_words_of_its_winners() -> None:
    vote = TASK.vote(members("c", "s", "s"), Rule())
    assert vote.answer[0].reason == "b says s"
    assert [one.quote for one in vote.answer[0].evidence] == ["b", "c"]
    assert vote.ballots == ({"a": "contradicted", "b": "supported", "c": "supported"},)
    # entropy of one third and two thirds: log2(3) - 2/3
    assert vote.disagreement == pytest.approx(0.9182958340544896, abs=1e-12)


def test_an_undecided_claim_says_who_said_what() -> None:
    vote = TASK.vote(members("c", "-", "s"), Rule())
    assert vote.answer[0].reason == "no majority (a: contradicted; c: supported)"
    assert vote.answer[0].evidence == ()
    assert vote.ballots == ({"a": "contradicted", "b": None, "c": "supported"},)


def test_weights_decide_a_weighted_panel() -> None:
    rule = Rule("weighted", weights={"a": 3, "b": 1, "c": 1})
    assert TASK.vote(members("c", "s", "s"), rule).answer[0].label == "contradicted"


def test_conflicting_sources_are_voted_on_too() -> None:
    def said(conflict: bool) -> Items[Verdict]:
        return Items((Verdict("x", "unknown", "r", (), conflict),))

    assert TASK.vote({"a": said(True), "b": said(True), "c": said(False)}, Rule()).answer[0].sources_conflict
    assert not TASK.vote({"a": said(True), "b": None, "c": said(False)}, Rule()).answer[0].sources_conflict


def test_the_panel_flags_its_own_unproved_support() -> None:
    bare = Items((Verdict("x", "supported", "r"),), ("quote_not_found",))
    proved = Items((Verdict("x", "supported", "r", (Quote(0, "y", 0, 1),)),), ("dropped:1", "split"))
    assert TASK.vote({"a": bare, "b": bare}, Rule()).answer.flags == ("quote_not_found",)
    assert TASK.vote({"a": bare, "b": proved}, Rule()).answer.flags == ("split",)


def test_a_panel_of_equal_judges_is_its_member() -> None:
    vote = TASK.vote({"a": READ, "b": READ, "c": READ}, Rule())
    assert (vote.answer, vote.disagreement) == (READ, 0)
    assert TASK.vote({"a": READ}, Rule()).disagreement is None


@given(st.lists(st.sampled_from(["ssc", "scu", "uuu", "ccs", "-", "sss"]), min_size=1, max_size=5), st.randoms())
def test_permuting_judges_changes_nothing(rows: list[str], random: Any) -> None:
    given_answers = members(*rows)
    if all(answer is None for answer in given_answers.values()):
        return
    order = list(given_answers.items())
    random.shuffle(order)
    assert TASK.vote(dict(order), Rule()) == TASK.vote(given_answers, Rule())


LONG = tuple(f"Document {n} begins. " + f"Boats number {n} row to the mill every year. " * 30 for n in range(3))


def parts_of_evidence(task: CheckClaims, bound: int) -> Any:
    split = task.split(bound)
    assert all(message_tokens(part.messages()) <= bound for part in split.parts)
    return split


def test_documents_that_do_not_fit_are_split_by_document_then_by_passage() -> None:
    task = CheckClaims(CLAIMS, LONG)
    rest = message_tokens(CheckClaims(CLAIMS, ()).messages())
    by_document = parts_of_evidence(task, rest + 500)
    assert [part.documents for part in by_document.parts] == [(text,) for text in LONG]
    by_passage = parts_of_evidence(task, rest + 150)
    assert len(by_passage.parts) > 3
    shown = "".join(text for part in by_passage.parts for text in part.documents)
    assert shown.replace(" ", "") == "".join(LONG).replace(" ", "")
    with pytest.raises(DoesNotFit):
        task.split(rest + 10)


@pytest.mark.parametrize(
    ("said", "joined", "conflict"),
    [
        (["supported", "unknown", "unknown"], "supported", False),
        (["unknown", "contradicted", "supported"], "supported", True),
        (["unknown", "contradicted", "unknown"], "contradicted", False),
        (["unknown", "unknown", "unknown"], "unknown", False),
    ],
)
def test_over_parts_of_evidence_any_support_wins_then_any_contradiction(
    said: list[str], joined: str, conflict: bool
) -> None:
    task = CheckClaims(CLAIMS[:1], LONG)
    split = parts_of_evidence(task, message_tokens(CheckClaims(CLAIMS[:1], ()).messages()) + 500)
    answers = [
        part.read([verdict(1, label, quote(1, f"Document {n} begins"))])
        for n, (part, label) in enumerate(zip(split.parts, said, strict=True))
    ]
    answer = split.join(answers)
    assert (answer[0].label, answer[0].sources_conflict) == (joined, conflict)
    assert answer.flags == ("split",)
    deciding = [n for n, label in enumerate(said) if label == joined]
    assert [one.doc for one in answer[0].evidence] == deciding
    assert all(LONG[one.doc][one.start : one.end] == one.quote for one in answer[0].evidence)


def test_quotes_from_passages_keep_their_place_in_the_document() -> None:
    task = CheckClaims(CLAIMS[:1], (LONG[0] + "The last word is lantern.",))
    split = parts_of_evidence(task, message_tokens(CheckClaims(CLAIMS[:1], ()).messages()) + 150)
    read = [part.read([verdict(1, "supported", quote(1, "word is lantern"))]) for part in split.parts]
    answer = split.join(read)
    (found,) = answer[0].evidence
    assert found.doc == 0 and task.documents[0][found.start : found.end] == "word is lantern"
    assert answer.flags == ("split",)  # the other parts' unproved support is proved by this quote


def test_chunks_and_parts_of_evidence_together() -> None:
    task = CheckClaims(MANY.claims, LONG)
    rest = message_tokens(CheckClaims(MANY.claims[:10], ()).messages())
    split = parts_of_evidence(task, rest + 500)
    assert len(split.parts) == 9
    answers = []
    for at, part in enumerate(split.parts):
        label = "supported" if at == 5 else "unknown"  # the second document, third chunk
        answers.append(
            part.read([verdict(n, label, quote(1, "Document 1 begins")) for n in range(1, len(part.claims) + 1)])
        )
    answer = split.join(answers)
    assert [one.claim for one in answer] == list(MANY.claims)
    assert [one.label for one in answer] == ["unknown"] * 20 + ["supported"] * 3
    assert {one.doc for item in answer for one in item.evidence if item.supported} == {1}
