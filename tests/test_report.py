"""The report: what it says is what was computed, what it does not know it says, and nothing of others becomes markup."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import shutil
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from compared import A, B, results, rows
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.frames import CallRow, RowWriter, ScoreRow
from jurimetrics.judges.judge import JudgeError
from jurimetrics.records import Record
from jurimetrics.report.page import report
from jurimetrics.report.style import STYLE
from scripted_judge import ScriptedJudge, answer_all
from test_display import ATTACKS
from test_highlight import RECORD, script
from tracked import make_results

TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section", "article", "h1", "h2", "h3", "h4",
    "h5", "p", "ul", "li", "a", "dl", "dt", "dd", "div", "span", "strong", "b", "i", "mark", "sup", "table", "caption",
    "thead", "tbody", "tr", "th", "td", "details", "summary", "img",
}  # fmt: skip
DECLARED = {"grade": {"range": [0.0, 1.0], "higher_is_better": True, "threshold": None, "version": "1"}}
VOID = {"meta", "img"}
CLASSES = re.compile(r"(?:(?:jr|jm)(?:-[a-z_]+)*|tex2jax_ignore|mathjax_ignore| )+")
SECTIONS = {"summary", "comparison", "tradeoff", "judges", "worst", "failures", "cost", "notes", "written", "settings",
            "prompts", "mind"}  # fmt: skip


class Page(HTMLParser):
    """A page taken apart: tags, attributes, headings, tables, and the text of each section."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.html = path.read_text(encoding="utf-8")
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.headings: list[str] = []
        self.text = ""
        self.sections: dict[str, str] = {"": ""}
        self.within = ""
        self.styles: list[str] = []
        self.feed(self.html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if re.fullmatch(r"h\d", tag):
            self.headings.append(tag)
        if tag == "section":
            self.within = dict(attrs).get("id") or ""
            self.sections[self.within] = ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "section":
            self.within = ""

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.styles.append(data)
            return
        self.text += data
        self.sections[self.within] += data

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


def page_of(found: jm.Results, folder: Path, **options: Any) -> Page:
    """The report of `found`, once all that must hold of any report holds of it."""
    page = Page(report(found, folder / "report.html", **options))
    check(page)
    return page


def check(page: Page) -> None:
    """Only tags and attributes of the toolkit's own; self-contained; headings, tables and pictures as readers need them."""
    assert page.tags <= TAGS
    assert page.styles == [STYLE]
    for tag, name, value in page.attributes:
        assert own(tag, name, value), (tag, name, value)
    hashed = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:; base-uri 'none'; form-action 'none'"
    assert ("meta", "content", policy) in page.attributes
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page.html)
    assert page.headings.count("h1") == 1 and page.headings[0] == "h1"
    levels = [int(heading[1]) for heading in page.headings]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    identities = page.values("id")
    assert len(identities) == len(set(identities)) and set(identities) <= SECTIONS
    assert {value.removeprefix("#") for value in page.values("href")} <= set(identities)
    scopes = sum(tag == "th" and name == "scope" for tag, name, _ in page.attributes)
    assert scopes == page.html.count("<th ")
    assert all(len(alt) > 20 for alt in page.values("alt")) and len(page.values("alt")) == page.html.count("<img ")


def own(tag: str, name: str, value: str) -> bool:
    """Whether an attribute is one that the toolkit writes, with a value that no data can have reached."""
    match name:
        case "class":
            return CLASSES.fullmatch(value) is not None
        case "src":
            return tag == "img" and re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]+", value) is not None
        case "data-label" | "alt" | "aria-label":
            return "attack" not in value and re.fullmatch(r"[\w %\[\],.;:/'-]+", value) is not None
        case "dir" | "scope" | "lang" | "role" | "tabindex" | "charset":
            return value in {"auto", "row", "col", "en", "region", "0", "utf-8"}
        case "href":
            return tag == "a" and re.fullmatch(r"#[a-z]+", value) is not None
        case "id":
            return tag == "section"
        case "width" | "height":
            return tag == "img" and value.isdecimal()
        case "name" | "content" | "http-equiv":
            return tag == "meta"
    return False


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> jm.Results:
    return make_results(tmp_path_factory.mktemp("tracked") / "results")


def labels(selection: Any = "random", **people: list[float | None]) -> pd.DataFrame:
    lines = [
        {"id": f"r{at:02}", "variant": variant, "metric": "grade", "label": label}
        for variant, given_ in people.items()
        for at, label in enumerate(given_)
    ]
    return jm.load_labels(pd.DataFrame(lines), selection=selection)


# What it says.


def test_the_headline_says_what_the_comparison_found_and_no_more(tmp_path: Path) -> None:
    found = results(rows(A=A, B=B))
    page = page_of(found, tmp_path)
    verdict = jm.compare(found).frame.loc[0, "verdict"]
    # By hand: the mean of B - A is 0.14.
    assert verdict.startswith("ann scores B higher by 0.14 [")
    assert f"What was foundgrade: {verdict}." in page.text
    assert page.text.count(verdict) == 2  # above, and in the table
    assert "A and B compared" in page.sections[""]


def test_undecided_differences_lead_to_no_claim(tmp_path: Path) -> None:
    page = page_of(results(rows(A=A, B=[A[-1], *A[:-1]])), tmp_path)
    assert "No difference between the variants is decided: none of 1 comparison leaves out 0." in page.sections[""]
    assert "grade: undecided: B - A as ann scores them is 0.00 [" in page.sections[""]


def test_one_variant_is_summed_up_by_its_means(tmp_path: Path) -> None:
    page = page_of(results(rows(A=A)), tmp_path)
    # By hand: the ten scores add up to 4.4, with the standard error 0.0542 and t = 2.262; 0.5, 0.5, 0.6, 0.6 and 0.7 pass.
    assert re.search(
        r"grade of A: mean 0\.44 \[0\.32, 0\.56\] over 10 answers; 50% pass \(at least 0\.5\)\.", page.text
    )
    assert "comparison" not in page.sections and "tradeoff" not in page.sections


def test_the_summary_has_mean_interval_n_answered_missing_and_passes(tmp_path: Path) -> None:
    blank = {"id": "blank", "answer": "", "contexts": ["Madrid is in Spain."]}
    full = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}
    other = {"answer": "Berlin has 9 moons.", "contexts": ["Madrid is in Spain."]}
    found = jm.evaluate([full, other, blank], ["faithfulness"], jm.BaselineJudge(), store=None)
    text = page_of(found, tmp_path).sections["summary"]
    # One of three answers makes no claims: answered 67 %, missing 33 %; one of the two scores passes.
    assert re.search(r"faithfulness0\.50267%33%1 undefined50%≥ 0\.8", text)


def test_other_judges_stand_beside_a_panel(tracked: jm.Results, tmp_path: Path) -> None:
    page = page_of(tracked, tmp_path)
    assert "judged by the panel of gpt-4.1-mini, claude-haiku and baseline (rule: median)" in page.text
    assert "Judged by the panel." in page.sections["summary"]
    assert "The same by the other judges (18 lines)" in page.sections["summary"]
    judged = page.sections["judges"]
    assert "Judges against each other" in judged and "Where the judges are furthest apart" in judged
    for name in ("gpt-4.1-mini", "claude-haiku", "baseline"):
        assert name in judged


def test_judges_against_each_other_are_what_their_scores_say(tmp_path: Path) -> None:
    lines = rows(judge="ann", A=[0.2, 0.4, 0.6, 0.8]) + rows(judge="bob", A=[0.2, 0.4, 0.6, 0.0])
    text = page_of(results(lines), tmp_path).sections["judges"]
    # Distances 0, 0, 0, 0.8: 20 % of the range on average; one of four answers is split between pass and fail.
    assert re.search(r"grade4-?0\.\d+20%25%ann 0\.50 · bob 0\.30", text)
    assert "r03 · Agrade80%ann 0.8bob 0" in text


def test_without_a_panel_the_judge_read_first_is_named(tmp_path: Path) -> None:
    lines = rows(judge="bob", A=A, B=B) + rows(judge="ann", A=A, B=A)
    page = page_of(results(lines), tmp_path)
    assert "those of bob, the first of them, are read first" in page.sections["mind"]
    assert "bob scores B higher by 0.14" in page.sections[""]
    # What each judge sees: bob 0.14, ann nothing.
    assert re.search(r"annbobgradeB - A\+0\.00\+0\.14", page.sections["comparison"])
    other = page_of(results(lines), tmp_path, judge="ann")
    assert "those of ann, as was asked for, are read first" in other.sections["mind"]
    assert "no difference between the variants is decided" in other.sections[""].lower()


def test_a_judge_that_always_says_the_same_is_shown_up(tmp_path: Path) -> None:
    text = page_of(results(rows(A=[0.8] * 12)), tmp_path).sections["judges"]
    assert "ann gives 0.8 to all of 12 answers under grade: that tells no answers apart." in text
    nearly = page_of(results(rows(A=[0.8] * 29 + [0.7])), tmp_path).sections["judges"]
    assert "ann gives 0.8 to 97% of 30 answers under grade." in nearly
    assert "ann gives" not in page_of(results(rows(A=A)), tmp_path).text


def test_a_judge_of_the_answers_own_family_is_named(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "made")
    writer.record(Record("1", variant="A", answer="Yes.", answer_model="gpt-4o"))
    writer.score(ScoreRow("1", "A", "grade", "ann", 0, "1", 0.5, "ok", ""))
    writer.close(
        {
            "metrics": DECLARED,
            "judges": {"ann": {"kind": "chat", "model": "gpt-5", "family": "gpt"}},
        }
    )
    page = page_of(jm.Results(writer.folder), tmp_path)
    said = "A judge may prefer its own: ann is of the family gpt, as A is."
    assert said in page.sections["mind"] and said in page.sections["judges"]


def test_no_labels_is_said_plainly(tmp_path: Path) -> None:
    page = page_of(results(rows(A=A)), tmp_path)
    assert "No labels of people were given: these are scores of judges" in page.sections["mind"]
    assert "No labels of people were given." in page.sections["judges"]


def test_labels_say_how_far_a_judge_can_be_trusted(tmp_path: Path) -> None:
    scored = results(rows(A=A * 2, B=B * 2))
    people = labels(A=[score + 0.2 * (at % 2) for at, score in enumerate(A * 2)], B=[*B, *B])
    page = page_of(scored, tmp_path, labels=people)
    line = jm.agreement(scored, people).frame.iloc[0]
    text = page.sections["judges"]
    assert "No labels" not in page.text
    # By hand: 10 of 40 labels are 0.2 above the judge's scores, the others equal them, so judge minus people is -0.05.
    assert round(line["bias"], 6) == -0.05
    assert f"-0.05 [{line['bias_low']:.2f}, {line['bias_high']:.2f}]" in text
    corrected = jm.corrected_means(scored, people)
    for one in corrected.to_dict("records"):
        assert f"{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}]" in text
    assert "people, as estimated from labels and judge," in page.sections["comparison"]
    assert "goes with people by a rank correlation of" in page.sections[""]


def test_a_correlation_without_an_interval_makes_no_sentence_and_one_within_groups_says_of_how_many(
    tmp_path: Path,
) -> None:
    few = page_of(results(rows(A=A[:4], B=B[:4])), tmp_path, labels=labels(A=[0.1, 0.5, 0.6, 0.4], B=B[:4]))
    assert "goes with people" not in few.text and "rank correlation" in few.sections["judges"]
    scored = results(rows(A=A * 2, B=B * 2))
    people = labels(A=[score + 0.2 * (at % 2) for at, score in enumerate(A * 2)], B=B * 2)
    line = jm.agreement(scored, people).frame.iloc[0]
    # By hand: of the 10 questions, twice there, A and B have one score in two (0.5 and 0.5, 0.4 and 0.4): 16 of 20 are used.
    assert (line["used_groups"], line["skipped_groups"]) == (16, 4)
    reached = f"{line['spearman']:.2f} [{line['spearman_low']:.2f}, {line['spearman_high']:.2f}]"
    said = f"ann goes with people by a rank correlation of {reached} (40 labelled answers, within 16 groups; 4 skipped, where"
    assert said in page_of(scored, tmp_path, labels=people).sections[""]


def test_labels_of_unknown_choice_correct_nothing_and_it_says_why(tmp_path: Path) -> None:
    page = page_of(results(rows(A=A, B=B)), tmp_path, labels=labels(None, A=A))
    assert "the labels do not say how the labelled records were chosen" in page.sections["judges"]
    assert "Differences are not corrected by the labels" in page.sections["comparison"]
    assert "ann scores B higher by 0.14" in page.sections[""]
    by_label = page_of(results(rows(A=A * 3, B=B * 3)), tmp_path, labels=labels("by_label", A=[0, 1, 1, 0, 0, 1] * 5))
    assert "Differences are not corrected by the labels" in by_label.sections["comparison"]


def test_a_calibration_is_shown_with_what_it_is_worth_elsewhere(tmp_path: Path) -> None:
    scored = results(rows(A=A * 4))
    fitted = jm.calibrate(scored, labels(A=[score > 0.45 for score in A * 4]), method="platt")
    text = page_of(scored, tmp_path, calibration=fitted).sections["judges"]
    assert "Calibration: ann under grade, fitted (platt) to 40 labelled answers of 40 groups." in text
    assert fitted.threshold is not None
    assert f"best parts what people pass from what they fail: {fitted.threshold.value:g}." in text
    worth = fitted.held_out["log_loss"]
    assert f"log loss{worth.value:.2f} [" in text and "No labels" not in text
    with pytest.raises(InputError, match="calibration is what calibrate gives, not dict"):
        report(scored, tmp_path / "x.html", calibration=[{}])  # type: ignore[list-item]


def test_quality_is_held_against_cost_and_latency_where_they_are_known(tracked: jm.Results, tmp_path: Path) -> None:
    text = page_of(tracked, tmp_path).sections["tradeoff"]
    latency = tracked.records.groupby("variant")["answer_latency_s"].mean()
    assert "$0.0002" in text and latency["thorough"] > latency["concise"] + 0.5
    assert (
        "Beaten by no other variant in both quality and latency, going by the means alone: concise and thorough."
        in text
    )
    assert "tradeoff" not in page_of(results(rows(A=A, B=B)), tmp_path).sections


def test_an_amount_that_is_known_of_some_answers_says_of_how_many(tmp_path: Path) -> None:
    records = [
        {
            "id": at,
            "variant": name,
            "answer": "It is 4.",
            "contexts": ["It is 4."],
            "latency_s": 1.0 if at % 2 else None,
        }
        for at in range(10)
        for name in ("A", "B")
    ]
    found = jm.evaluate(records, ["faithfulness"], jm.BaselineJudge(), store=None)
    assert "1 sknown of 50%" in page_of(found, tmp_path).sections["tradeoff"]


def test_worst_answers_have_marks_reasons_of_each_judge_and_what_people_said(tmp_path: Path) -> None:
    good = RECORD | {"id": "good", "answer": "The lock was opened in May 1889."}
    says = (("ada", "supported"), ("bob", "unknown"), ("cem", "contradicted"))
    panel = jm.Panel([ScriptedJudge(name, script(said, f"{name} says so")) for name, said in says])
    found = jm.evaluate([good, RECORD], ["faithfulness", "hallucination"], panel, store=None)
    people = jm.load_labels(
        [{"id": "lock", "metric": "faithfulness", "label": 0.25, "rater": "zoe", "rationale": "1889!"}]
    )
    page = page_of(found, tmp_path, labels=people)
    text = page.sections["worst"]
    assert text.index("lockQuestion") < text.index("goodQuestion")
    assert '<mark class="jm-intrinsic">May 1898</mark><sup>contradicted</sup>' in page.html
    assert '<mark class="jm-extrinsic">come by train</mark>' in page.html
    for name, _ in says:
        assert f"faithfulness{name}" in text and f"{name} says so" in text
    assert "faithfulnesszoe (a person)0.251889!" in text
    assert "✗ contradicted" in text and "ada: supported · bob: unknown · cem: contradicted" in text
    one = page_of(found, tmp_path, worst=1).sections["worst"]
    assert "1 of 2 answers" in one and "goodQuestion" not in one
    assert "worst" not in page_of(found, tmp_path, worst=0).sections


def test_many_rows_of_an_answer_are_folded_but_for_those_read_first(tracked: jm.Results, tmp_path: Path) -> None:
    page = page_of(tracked, tmp_path, worst=2)
    assert page.html.count("<summary>What the other judges said (9 rows)</summary>") == 2


def test_failures_are_counted_by_kind_with_examples(tmp_path: Path) -> None:
    lines = rows(A=A)
    lines += [{**line, "judge": "bob", "score": None, "error": "timeout: no answer within 60 s"} for line in lines[:3]]
    lines += [{**lines[0], "judge": "cem", "score": None, "error": "unparsed: no JSON"}]
    page = page_of(results(lines), tmp_path)
    text = page.sections["failures"]
    assert "4 rows of 14 failed (29%)." in text
    assert re.search(r"timeoutno answer in time3grade by bob\s*grade of r00 \(A\) by bob: no answer within 60 s", text)
    assert "unparsedno reply of the asked shape1grade by cem" in text
    assert "4 rows of 14 have no score because no valid reply came" in page.sections["mind"]
    assert "No row failed" in page_of(results(rows(A=A)), tmp_path).sections["failures"]


def test_answers_that_were_never_written_are_told_apart(tracked: jm.Results, tmp_path: Path) -> None:
    text = page_of(tracked, tmp_path, worst=24)
    assert (
        "2 answers could not be written at all" in text.sections["failures"]
        and "timeout: 2" in text.sections["failures"]
    )
    assert "no answer (timeout: no answer within 60 s)" in text.sections["worst"]


def made(folder: Path, *costs: float | None, **more: Any) -> jm.Results:
    """One record judged by `ann` in as many calls as there are costs."""
    writer = RowWriter(folder)
    writer.record(Record("1", answer="Yes.", metadata=more.pop("metadata", {})))
    writer.score(ScoreRow("1", "", "grade", "ann", 0, "1", 0.5, "ok", "fair", flags=tuple(more.pop("flags", ()))))
    for at, cost in enumerate(costs):
        tokens = None if cost is None else 100
        writer.call(
            CallRow(
                f"a{at}", "ann", "rate", "k", 0, 1, "ok", "", "m", "m", None, tokens, 0, tokens, None, cost, None, 0.5,
                "stop", "", (), False, datetime.now(UTC),
            )
        )  # fmt: skip
    writer.close({"metrics": DECLARED, "judges": {"ann": {"kind": "chat", "model": "m"}}, **more})
    return jm.Results(folder)


def test_unknown_costs_are_at_least_what_is_known(tmp_path: Path) -> None:
    some = page_of(made(tmp_path / "some", 0.25, None), tmp_path)
    assert "ann20at least 100at least 100at least $0.250.5 s" in some.sections["cost"]
    assert "cost of judgingat least $0.25" in some.sections[""]
    none = page_of(made(tmp_path / "none", None), tmp_path)
    assert "ann10unknownunknownunknown0.5 s" in none.sections["cost"] and "cost of judgingunknown" in none.sections[""]
    whole = page_of(made(tmp_path / "whole", 0.25, 0.5), tmp_path)
    assert "ann20200200$0.750.5 s" in whole.sections["cost"] and "cost of judging$0.75" in whole.sections[""]
    assert "what judging took is unknown" in page_of(results(rows(A=A)), tmp_path).sections["cost"]


def test_references_of_a_model_are_marked(tmp_path: Path) -> None:
    found = made(
        tmp_path / "r",
        flags=["reference_by_model"],
        metadata={"reference_model": "gpt-5"},
        reference_models={"gpt-5": 1},
    )
    page = page_of(found, tmp_path)
    assert "References were written by a model, not by people: gpt-5, for 1 answer." in page.sections["mind"]
    assert "Scores that compare with a reference (grade)" in page.sections["mind"]
    assert "References" not in page_of(made(tmp_path / "s"), tmp_path).sections["mind"]


def test_what_wrote_the_answers_and_how_it_was_judged_can_be_looked_up(tmp_path: Path) -> None:
    by = {"": {"prompt": "short", "prompt_version": "0a1b", "system": "Be brief.", "user": "{question}", "model": "gpt-5",
               "kind": "chat", "settings": {"temperature": 0.2}}}  # fmt: skip
    prompts = {"rate@1": {"messages": [{"role": "user", "content": "Rate «it» " + "x" * 20_000}]}}
    found = made(tmp_path / "r", written_by=by, prompts=prompts, store="/home/someone/store.db", seconds=1.5)
    page = page_of(found, tmp_path)
    assert "short (0a1b)gpt-5temperature 0.2" in page.sections["written"]
    assert "Be brief." in page.sections["written"] and "{question}" in page.sections["written"]
    assert "Rate «it» " in page.sections["prompts"] and "8,010 characters left out" in page.sections["prompts"]
    assert "grade0 to 1higher" in page.sections["settings"] and "seconds1.5" in page.sections["settings"]
    assert "someone" not in page.html  # where a store lies is nobody else's business


def test_the_baseline_alone_and_an_interruption_are_said_first(tmp_path: Path) -> None:
    found = jm.evaluate([{"answer": "Yes."}], ["fluency"], jm.BaselineJudge(), store=None)
    assert "The built-in baseline alone gave these scores." in page_of(found, tmp_path).sections["mind"]
    assert "interrupted" in page_of(made(tmp_path / "r", interrupted=True), tmp_path).sections["mind"]
    computed = jm.evaluate([{"answer": "Yes.", "reference": "Yes."}], ["f1"], jm.BaselineJudge(), store=None)
    page = page_of(computed, tmp_path)
    assert "computed, without any judge" in page.text and "mind" not in page.sections


def test_places_are_given_for_three_variants_and_not_beside_a_baseline(tmp_path: Path) -> None:
    found = results(rows(A=A, B=B, C=[0.0, 0.1] * 5))
    text = page_of(found, tmp_path).sections["comparison"]
    assert re.search(r"grade3C3 to 3", text)
    based = page_of(found, tmp_path, baseline="C").sections["comparison"]
    assert "compared with C." in based and "Places" not in based and "B - A" not in based


def test_variants_that_cannot_be_compared_say_why(tmp_path: Path) -> None:
    lines = rows(A=A, B=B)
    lines = [{**line, "group": f"{line['variant']}-{line['id']}"} for line in lines]
    page = page_of(results(lines), tmp_path)
    assert "The variants are not compared: 'r00' has two groups" in page.sections["comparison"]
    assert "grade of A: mean 0.44" in page.sections[""]


def test_a_comparison_made_before_is_the_one_shown(tmp_path: Path) -> None:
    found = results(rows(A=A, B=B) + rows("tone", A=A, B=A))
    given_ = jm.compare(found, "A", primary=["tone"], level=0.9)
    page = page_of(found, tmp_path, comparison=given_)
    # What is exploratory is not among what was found.
    assert "none of 1 comparison leaves out 0." in page.sections[""] and "exploratory" not in page.sections[""]
    text = page.sections["comparison"]
    assert "difference [90 %]" in text and "exploratory: ann scores B higher" in text
    with pytest.raises(InputError, match="comparison is of other results: variant 'B' is not in these; there are: 'A'"):
        report(results(rows(A=A)), tmp_path / "x.html", comparison=jm.compare(results(rows(A=A, B=B))))


def test_results_without_rows_make_a_page(tmp_path: Path) -> None:
    RowWriter(tmp_path / "r").close({"metrics": {}})
    assert "There are no scores." in page_of(jm.Results(tmp_path / "r"), tmp_path).text


def test_a_judge_that_fails_always_has_no_number(tmp_path: Path) -> None:
    refuses = ScriptedJudge("ada", lambda task, _: JudgeError("refused", "as scripted"))
    page = page_of(jm.evaluate([RECORD], ["faithfulness"], refuses, store=None), tmp_path)
    assert "faithfulness: no scores." in page.sections[""]
    assert re.search(r"faithfulness-0100%100%1 failed", page.sections["summary"])


# How it is made.


def test_the_same_results_make_the_same_bytes(tracked: jm.Results, tmp_path: Path) -> None:
    first = report(tracked, tmp_path / "deep" / "one.html").read_bytes()
    assert report(tracked, tmp_path / "two.HTML").read_bytes() == first
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["one.html"]


def test_the_page_needs_nothing_from_elsewhere(tracked: jm.Results, tmp_path: Path) -> None:
    page = page_of(tracked, tmp_path)
    assert not re.search(r"https?://|url\(|@import|<script|<link", page.html)
    # The summary, the differences and the latency; all answers cost the same, which makes no picture.
    assert page.html.count("data:image/png;base64,") == 3
    assert "@media print" in STYLE and "prefers-color-scheme:dark" in STYLE and "max-width:640px" in STYLE


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    found = results(rows(A=A, B=B))
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (found, {"path": "records.jsonl"}, "expected a file that ends in .html, not 'records.jsonl'"),
        (found, {"worst": -1}, "worst must be a whole number from 0 to 200, not -1"),
        (found, {"worst": 201}, "worst must be a whole number"),
        (found, {"worst": True}, "worst must be a whole number"),
        (found, {"judge": "zoe"}, "no judge 'zoe' gave scores; judges: ann"),
        (found, {"baseline": "C"}, "no variant 'C'; variants: 'A', 'B'"),
        (found, {"labels": [{"id": "elsewhere", "metric": "grade", "label": 1}]}, "label"),
        (found.scores, {}, "expected Results, found DataFrame"),
        (found, {"comparison": found}, "comparison is what compare gives, not Results"),
        (found, {"agreement": 0.9}, "agreement is what agreement gives, not float"),
        (found, {"calibration": 5}, "calibration is what calibrate gives, not int"),
        (found, {"calibration": "panel.json"}, "calibration is what calibrate gives, not str"),
        (found, {"title": 5}, "title must be a text, not 5"),
    ]
    for source, options, said in refused:
        path = tmp_path / options.pop("path", "report.html")
        with pytest.raises(InputError, match=re.escape(said)) if "jsonl" not in said else pytest.raises(InputError):
            report(source, path, **options)
        assert not path.exists()
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        report(found, tmp_path / "folder.html")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        report(found, tmp_path / "file" / "report.html")


def test_an_earlier_report_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("before", encoding="utf-8")
    assert "before" not in page_of(results(rows(A=A)), tmp_path).html[:10]


# Whatever the texts of others are.


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_others_becomes_markup(attack: str, tmp_path: Path) -> None:
    record = {
        "question": attack, "answer": f"{attack} was opened in May 1898.", "contexts": [f"{attack} opened in May 1889"],
        "reference": f"{attack} is old.", "answer_model": attack, "answer_cost_usd": 0.1, "metadata": {"x": attack},
    }  # fmt: skip
    records = [{**record, "id": f"{attack}{at}", "variant": f"{attack} {name}"} for at in range(2) for name in "ab"]
    judges = [ScriptedJudge(f"{attack}{at}", script(said, attack, attack), model=attack)
              for at, said in enumerate(("unknown", "supported"))]  # fmt: skip
    name = jm.rubric("Is it kind?", name=f"kind {attack}") if attack.isprintable() else "coherence"
    panel = jm.Panel(judges, name=f"panel {attack}", rule="median")
    found = jm.evaluate(records, ["faithfulness", "hallucination", name], panel, store=None)
    by = {f"{attack} a": {"prompt": attack, "prompt_version": attack, "user": attack, "model": attack, "kind": attack,
                          "settings": {attack: attack}}}  # fmt: skip
    prompts = {attack: {"messages": [{"role": attack, "content": attack}]}}
    told = {**found.settings, "written_by": by, "reference_models": {attack: 1}, "created": attack, "notes": [attack],
            "embedder": {attack: attack}, "prompts": prompts}  # fmt: skip
    people = [{"id": f"{attack}{at}", "variant": f"{attack} a", "metric": "faithfulness", "label": 0.5, "rater": attack,
               "rationale": attack} for at in range(2)]  # fmt: skip
    page = page_of(jm.Results(found.folder, told), tmp_path, title=attack, labels=jm.load_labels(people))
    if attack.isprintable():
        assert page.text.count(attack) > 30
        assert page.text.strip().startswith(attack) and {"written", "prompts", "worst", "judges"} <= set(page.sections)


STEERING = "<>&\"'`=/;:#{}()\\\u202e\u2066\u200f\x00\x1b\u2028"
NASTY = st.text(
    st.one_of(st.sampled_from(STEERING), st.characters(exclude_categories=["Cs"])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(NASTY, min_size=5, max_size=5))
def test_any_text_stays_text(texts: list[str], tmp_path: Path) -> None:
    metric, judge, variant, reason, identity = texts
    lines = [
        {"id": f"{identity}{at}", "variant": f"{variant}{name}", "metric": metric, "judge": f"{judge}{who}",
         "score": at / 9, "reason": reason, "error": ""}
        for at in range(9) for name in "ab" for who in "xy"
    ]  # fmt: skip
    lines[0] |= {"score": None, "error": f"unparsed: {reason}"}
    try:
        found = jm.Results.from_frame(pd.DataFrame(lines))
    except InputError:  # such as a name of blanks alone; where nearly all were refused, hypothesis fails
        reject()
    page_of(found, tmp_path, title=f"{identity}\ud800", worst=2)


# However much there is.


def test_long_texts_are_cut_and_it_says_so(tmp_path: Path) -> None:
    long = "Peat was cut on the moors. " * 20_000
    record = {"id": "1", "question": long, "answer": long, "contexts": [long] * 40, "reference": long}
    found = jm.evaluate([record], ["f1"], ScriptedJudge("ada", answer_all), store=None)
    page = page_of(found, tmp_path)
    assert page.sections["worst"].count("characters left out") >= 4
    assert len(page.html) < 400_000


def test_many_lines_are_cut_and_it_says_so(tmp_path: Path) -> None:
    lines = [line for at in range(300) for line in rows(f"m{at}", A=[0.5, 0.6])]
    page = page_of(jm.Results.from_frame(pd.DataFrame(lines)), tmp_path)
    assert "200 of 300 rows are shown." in page.sections["summary"]


@pytest.mark.slow
def test_ten_thousand_rows_by_five_judges_make_a_small_file(tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    truth = {name: draw.uniform(0, 1, 5_000) for name in "AB"}
    frames = [
        pd.DataFrame(
            {"id": [f"r{at}" for at in range(5_000)], "variant": name, "metric": "grade", "judge": f"judge {judge}",
             "score": np.clip(truth[name] + draw.normal(0, 0.1, 5_000), 0, 1), "reason": "as far as can be said " * 30}
        )
        for name in "AB" for judge in range(5)
    ]  # fmt: skip
    found = jm.Results.from_frame(pd.concat(frames), {"grade": {"range": (0, 1), "threshold": 0.5}})
    page = page_of(found, tmp_path)
    assert len(page.html) < 1_000_000 and "10,000 answers" in page.text


# Colours.


def test_colours_can_be_read_in_the_light_and_in_the_dark() -> None:
    """Contrast of each text on each ground, by WCAG 2.1 (1.4.3: at least 4.5)."""

    def light(colour: str) -> float:
        full = colour if len(colour) == 7 else "#" + "".join(digit * 2 for digit in colour[1:])
        parts = [int(full[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    schemes = [
        dict(re.findall(r"--([a-z-]+):(#[0-9a-f]{3,6})", found)) for found in re.findall(r":root{([^}]+)}", STYLE)
    ]
    pairs = [
        *itertools.product(("ink", "soft"), ("paper", "tint", "mind")),
        *itertools.product(("ink",), ("red", "amber", "violet", "green")),
        *itertools.product(("key", "good", "bad", "warn", "doubt"), ("paper",)),
    ]
    assert len([scheme for scheme in schemes if scheme]) == 2
    for scheme in filter(None, schemes):
        for text, ground in pairs:
            dark, bright = sorted((light(scheme[text]), light(scheme[ground])))
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (text, ground, scheme[text], scheme[ground])


def test_settings_that_another_version_wrote_break_nothing(tmp_path: Path) -> None:
    found = made(tmp_path / "r")
    shutil.copytree(found.folder, tmp_path / "other")
    path = tmp_path / "other" / "settings.json"
    odd = {**json.loads(path.read_text(encoding="utf-8")), "written_by": [1], "prompts": {"p": 3, "q": {"messages": [4]}},
           "panel": {"name": "gone"}, "judges": {"ann": {}}}  # fmt: skip
    path.write_text(json.dumps(odd), encoding="utf-8")
    assert "grade" in page_of(jm.Results.load(tmp_path / "other"), tmp_path).text
