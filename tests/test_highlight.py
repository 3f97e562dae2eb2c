"""Highlighted answers: what is marked and listed, by hand-written verdicts; nothing of others becomes markup."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.judges.judge import JudgeError
from jurimetrics.results.marks import KINDS, Mark, mark_quote, marked
from jurimetrics.text import sentences
from scripted_judge import ScriptedJudge, answer_all
from test_display import ATTACKS

RECORD = {
    "id": "lock",
    "question": "When was the lock opened?",
    "answer": "The lock was opened in May 1898. Thousands come by train. It was built by Brandt. It lifts boats.",
    "contexts": ["The lock was opened in May 1889 and lifts boats.", "Peat was cut on the moors."],
    "reference": "The lock was opened in May 1889.",
}
TAGS = {"style", "div", "section", "p", "h2", "h3", "span", "mark", "sup", "b", "i", "table", "thead", "tbody", "tr", "th",
        "td", "ul", "li"}  # fmt: skip
PAGE_TAGS = TAGS | {"html", "head", "meta", "title", "body", "h1"}
CLASSES = re.compile(r"(?:jm(?:-[a-z_-]+)?|tex2jax_ignore|mathjax_ignore| )+")
PAGE_ATTRIBUTES = {
    ("lang", "en"),
    ("charset", "utf-8"),
    ("name", "viewport"),
    ("content", "width=device-width, initial-scale=1"),
    ("http-equiv", "Content-Security-Policy"),
    ("content", "default-src 'none'; style-src 'unsafe-inline'"),
}


class Page(HTMLParser):
    """The tags and attributes of a page, its text without styles, and what stands in each kind of mark."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.open: list[tuple[str, str]] = []
        self.text = ""
        self.marks: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert [tag for tag, _ in self.open if tag != "meta"] == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)
        if tag != "meta":
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag, kind = self.open[-1] if self.open else ("", "")
        if tag == "mark":
            self.marks.append((kind.removeprefix("jm-"), data))
        if tag != "style":
            self.text += data


def page_of(html: str, tags: set[str] = TAGS, attributes: set[tuple[str, str]] = frozenset()) -> Page:  # type: ignore[assignment]
    page = Page(html)
    assert page.tags <= tags
    for name, value in page.attributes - attributes:
        assert (name, value) == ("dir", "auto") or (name == "class" and CLASSES.fullmatch(value or "")), (name, value)
    return page


def script(brandt: str, reason: str = "as scripted", quote: str = "opened in May 1889") -> Any:
    """1898 is contradicted, trains are unknown, Brandt is what this judge says, the rest is supported."""

    def label(text: str) -> str:
        return next((said for word, said in (("1898", "contradicted"), ("train", "unknown"), ("Brandt", brandt))
                     if word in text), "supported")  # fmt: skip

    def check(task: Any) -> Any:
        evidence = [{"doc": 1, "quote": quote}]
        return {
            "verdicts": [
                {"claim": at, "evidence": evidence if label(claim) in ("contradicted", "supported") else [],
                 "reason": reason, "sources_conflict": False, "verdict": label(claim)}
                for at, claim in enumerate(task.claims, 1)
            ]
        }  # fmt: skip

    def find(task: Any) -> Any:
        found = []
        for at, piece in enumerate(sentences(task.answer), 1):
            said, spans = label(piece.text), []
            if said == "contradicted":
                spans = [{"quote": "May 1898", "type": "intrinsic"}] if "1898" in piece.text else []
            if "train" in piece.text:
                spans = [{"quote": "come by train", "type": "extrinsic"}]
            verdict = "supported" if said == "supported" else "unsupported"
            verdict = "no_check" if "Brandt" in piece.text and brandt == "unknown" else verdict
            found.append({"at": at, "evidence": [], "reason": reason, "spans": spans if verdict == "unsupported" else [],
                          "verdict": verdict})  # fmt: skip
        return {"sentences": found}

    def answer(task: Any, repeat: int) -> Any:
        return {"check": check, "sentences": find}.get(task.kind, answer_all)(task)

    return answer


def panel() -> jm.Panel:
    says = (("ada", "supported"), ("bob", "unknown"), ("cem", "contradicted"))
    return jm.Panel([ScriptedJudge(name, script(brandt)) for name, brandt in says])


def run(metrics: Any = ("faithfulness", "hallucination", "noise_sensitivity", "f1"), records: Any = (RECORD,),
        judges: Any = None, **options: Any) -> jm.Results:  # fmt: skip
    return jm.evaluate(list(records), list(metrics), judges or panel(), store=None, **options)


def test_spans_are_marked_by_kind_where_the_judges_found_them() -> None:
    page = page_of(run().highlight("lock").html)
    of_answer = [mark for mark in page.marks if mark[0] != "quote"][3:]  # the legend shows one of each
    # Brandt: supported, unsupported and not to be checked once each, so no majority.
    assert of_answer == [
        ("intrinsic", "May 1898"), ("extrinsic", "come by train"), ("undecided", "It was built by Brandt."),
    ]  # fmt: skip
    for said in ("May 1898contradicted", "come by trainnot in the documents", "by Brandt.undecided"):
        assert said in page.text  # told apart by a word behind it, whatever the colour


def test_kinds_of_mark_differ_in_more_than_colour() -> None:
    html = run().highlight("lock").html
    lines = {kind: re.search(rf"mark\.jm-{kind}{{background:\S+?;border-bottom:(\d)px (\w+)", html) for kind in KINDS}
    assert len({found.groups() for found in lines.values() if found}) == len(KINDS)


def test_claims_are_listed_with_verdict_reason_quote_and_votes() -> None:
    page = page_of(run().highlight("lock").html)
    assert "A1 ✗ contradicted The lock was opened in May 1898.as scripted“opened in May 1889” document 1" in page.text
    assert "A3 ≈ undecided It was built by Brandt." in page.text
    assert "ada: supported · bob: unknown · cem: contradicted" in page.text
    # The same verdicts under two metrics are listed once.
    assert "faithfulness, noise_sensitivity, by panel" in page.text
    assert page.text.count("A3 ≈ undecided") == 1


def test_quoted_passages_are_marked_in_document_and_reference() -> None:
    page = page_of(run().highlight("lock").html)
    quotes = [text for kind, text in page.marks if kind == "quote"][1:]
    assert quotes == ["opened in May 1889", "opened in May 1889"]
    assert "opened in May 1889A1, A4 and lifts" in page.text  # in the document: quoted for the first and the last claim
    assert "opened in May 1889C1, C4." in page.text


def test_scores_of_all_metrics_and_judges_are_there() -> None:
    page = page_of(run().highlight("lock").html)
    # Panel: 1 of 4 claims supported; ada finds Brandt supported too.
    assert "faithfulness0.25fail" in page.text and "ada 0.5 · bob 0.25 · cem 0.25" in page.text
    assert re.search(r"f1\d\.\d+(?:fail|pass)", page.text)


def test_one_member_of_the_panel_can_be_looked_at() -> None:
    page = page_of(run().highlight("lock", judge="cem").html)
    assert "A3 ✗ contradicted It was built by Brandt." in page.text and "by cem" in page.text
    with pytest.raises(InputError, match="no judge 'zoe' gave scores; judges: ada, bob, cem, panel, computed"):
        run().highlight("lock", judge="zoe")


def test_several_judges_without_a_panel_show_the_first_by_name_and_say_so() -> None:
    judges = [ScriptedJudge("bob", script("unknown")), ScriptedJudge("ada", script("supported"))]
    found = run(["faithfulness"], judges=judges)
    assert "faithfulness, by ada" in page_of(found.highlight("lock").html).text


def test_a_record_that_is_not_there_is_refused() -> None:
    found = run(["f1"], [RECORD | {"variant": "a"}])
    with pytest.raises(InputError, match="no record 'key'"):
        found.highlight("key")
    with pytest.raises(InputError, match="'lock' has no variant ''; it has: 'a'"):
        found.highlight("lock")


def test_missing_blank_and_failed_are_said_in_words() -> None:
    refuses = ScriptedJudge("ada", lambda task, _: JudgeError("refused", "as scripted"))
    records = [
        {"id": "none", "question": "?", "answer_error": "timeout"},
        {**RECORD, "id": "blank", "answer": " "},
        RECORD,
    ]
    found = run(["faithfulness"], records, refuses)
    assert "no answer (timeout)" in page_of(found.highlight("none").html).text
    assert "a blank answer" in page_of(found.highlight("blank").html).text
    text = page_of(found.highlight("lock").html).text
    assert "faithfulnessfailed" in text and "refused: as scripted" in text


def test_repeats_show_all_their_scores() -> None:
    judge = ScriptedJudge("ada", lambda task, repeat: answer_all(task, score=1 + repeat))
    assert (
        "coherence1, 2, 3fail, fail, pass"
        in page_of(run(["coherence"], judges=judge, repeats=3).highlight("lock").html).text
    )


def test_the_page_has_the_worst_first_and_says_how_many() -> None:
    good = RECORD | {"id": "good", "answer": "The lock was opened in May 1889."}
    records = [good, RECORD, {"id": "unknown", "question": "?"}]
    found = run(["faithfulness", "hallucination"], records)
    page = page_of(found.highlights_html(), PAGE_TAGS, PAGE_ATTRIBUTES)
    assert [page.text.index(f"{name}Question") for name in ("lock", "good", "unknown")] == sorted(
        page.text.index(f"{name}Question") for name in ("lock", "good", "unknown")
    )
    assert "3 of 3 answers" in page.text
    one = page_of(found.highlights_html(1), PAGE_TAGS, PAGE_ATTRIBUTES)
    assert "1 of 3 answers" in one.text and "goodQuestion" not in one.text and "lockQuestion" in one.text
    with pytest.raises(InputError, match="at least 1"):
        found.highlights_html(0)


def test_the_page_is_self_contained() -> None:
    html = run().highlights_html()
    assert html.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img", html)
    assert "@media print" in html and "width=device-width" in html


@pytest.mark.parametrize("attack", ATTACKS)
def test_x04_nothing_of_others_becomes_markup(attack: str) -> None:
    record = {
        "id": attack, "variant": attack, "question": attack, "answer": f"{attack} was opened in May 1898.",
        "contexts": [f"{attack} opened in May 1889", attack], "reference": f"{attack} is old.",
    }  # fmt: skip
    judges = [ScriptedJudge(f"{attack}{at}", script("unknown", attack, attack)) for at in range(3)]
    name = jm.rubric("Is it kind?", name=f"kind {attack}") if attack.isprintable() else "coherence"
    found = run(
        ["faithfulness", "hallucination", "alignment", name], [record], jm.Panel(judges, name=f"panel {attack}")
    )
    identity, variant = found.records[["id", "variant"]].iloc[0]
    view = page_of(found.highlight(identity, variant).html)
    whole = page_of(found.highlights_html(), PAGE_TAGS, PAGE_ATTRIBUTES)
    for page, html in ((view, found.highlight(identity, variant).html), (whole, found.highlights_html())):
        assert not set(html) & set("\x00\x1b\u2028\u202e")
        if attack.isprintable():
            assert page.text.count(attack) > 5


def test_n04_a_view_is_bounded_whatever_the_length_of_the_texts() -> None:
    long = "Peat was cut on the moors above the lock. " * 20_000
    found = run(["faithfulness"], [RECORD | {"contexts": [long + "The lock was opened in May 1889." + long] * 100}])
    html = found.highlight("lock").html
    assert len(html) < 300_000
    page = page_of(html)
    assert "70 more documents not shown." in page.text
    assert re.search(r"cut on the moors above the lock\. The lock was opened in May 1889", page.text)
    assert "characters left out" in page.text


def test_details_of_another_shape_are_passed_over() -> None:
    from jurimetrics.metrics.metric import Score, metric

    @metric(needs=["answer"], range=(0, 1), judged=False)
    async def odd(record: Any, ask: Any) -> Score:
        spans = [{"start": 5, "end": 9, "quote": "not in it", "type": "intrinsic"}, {"type": 3}]
        details = {"sentences": [{"spans": spans}, "text"], "verdicts": "none", "claims": [{"kind": 1}], "panel": []}
        return Score(0.5, "odd", details)

    found = run([odd], judges=ScriptedJudge("ada", script("unknown")))
    assert [mark for mark in page_of(found.highlight("lock").html).marks if mark[0] != "quote"][3:] == []


def test_recorded_scores_have_a_view_too() -> None:
    frame = pd.DataFrame({"id": ["1"], "metric": "m", "judge": "j", "score": [0.5], "reason": "so so"})
    text = page_of(jm.Results.from_frame(frame).highlight("1").html).text
    assert "m0.5" in text and "so so" in text and "no answer" in text


PLACES = st.tuples(st.integers(0, 30), st.integers(1, 12), st.sampled_from(KINDS), st.sampled_from(["x", "y", ""]))


@given(text=st.text("ab <&>é\n", min_size=0, max_size=40), places=st.lists(PLACES, max_size=5))
def test_marking_never_changes_the_text(text: str, places: list[tuple[int, int, str, str]]) -> None:
    marks = [Mark(start, min(start + length, len(text)), kind, label) for start, length, kind, label in places
             if start < len(text)]  # fmt: skip
    html = marked(text, marks, 1_000)
    page = Page(f"<p>{re.sub('<sup>.*?</sup>', '', html)}</p>")
    assert page.text == text
    covered = {at for mark in marks for at in range(mark.start, mark.end)}
    assert sum(len(piece) for _, piece in page.marks) == len(covered)


def test_of_marks_over_each_other_the_gravest_is_seen() -> None:
    html = marked("abcdef", [Mark(0, 6, "quote", "A1"), Mark(2, 4, "intrinsic", "no")], 100)
    assert Page(f"<p>{html}</p>").marks == [("quote", "ab"), ("intrinsic", "cd"), ("quote", "ef")]
    assert html.endswith("<sup>A1</sup>") and "cd</mark><sup>no</sup>" in html


def test_a_quote_is_found_where_it_stands() -> None:
    assert mark_quote("b", "a b b", "quote", "", 4) == Mark(4, 5, "quote", "")
    assert mark_quote("B", "a b b", "quote", "", 4) == Mark(2, 3, "quote", "")
    assert mark_quote("c", "a b", "quote", "") is None and mark_quote("", "a b", "quote", "", 0) is None


def test_colours_of_marks_can_be_read() -> None:
    """Contrast of the text on each background, by WCAG 2.1 (1.4.3: at least 4.5)."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    from jurimetrics.results.style import STYLE

    grounds = [*re.findall(r"mark\.jm-\w+{background:(#\w{6})", STYLE), "#ffffff"]
    texts = ["#1d2327"]
    small = re.findall(r"[{;]color:(#\w{6})", STYLE)
    pairs = [*itertools.product(texts, grounds), *((colour, "#ffffff") for colour in small)]
    assert len(grounds) == len(KINDS) + 1 and len(small) > 5
    for text, ground in pairs:
        dark, bright = sorted((light(text), light(ground)))
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
