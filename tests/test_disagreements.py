"""Where judges and people part: what is listed under which kind, and how it shows itself; nothing of others is markup."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics.calibrate.disagreements import Disagreements, disagreements_with_people
from scripted_judge import ScriptedJudge, answer_all
from test_display import ATTACKS
from test_highlight import PAGE_ATTRIBUTES, PAGE_TAGS, TAGS, page_of

SHOWN = TAGS | {"details", "summary"}
RECORD = {
    "id": "lock", "question": "When was the lock opened?", "answer": "In 1898, by a baker.", "variant": "small",
    "contexts": ["It was opened in 1889."], "reference": "In 1889.",
}  # fmt: skip


def test_disagreements_come_by_kind_with_both_reasons() -> None:
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "metric": "grade",
            "judge": "ann",
            "score": [5, 1, 5, 3],
            "reason": ["all good", "all bad", "fine", "so so"],
        }
    )
    results = jm.Results.from_frame(frame, {"grade": {"range": (1, 5), "threshold": 3}})
    labels = jm.load_labels(
        [
            {"id": 1, "metric": "grade", "rater": "x", "label": 1, "rationale": "invented"},
            {"id": 1, "metric": "grade", "rater": "y", "label": 2, "rationale": ""},
            {"id": 2, "metric": "grade", "rater": "x", "label": 4},
            {"id": 3, "metric": "grade", "rater": "x", "label": 3},
            {"id": 4, "metric": "grade", "rater": "x", "label": 3},
        ]
    )
    found = disagreements_with_people(results, labels)
    assert found.frame["kind"].tolist() == ["false pass", "false fail", "difference"]
    assert found.frame["id"].tolist() == ["1", "2", "3"]
    assert found.frame.loc[0, ["score", "label", "difference", "distance"]].tolist() == [5.0, 1.5, 3.5, 0.875]
    assert found.frame.loc[0, "reason"] == "all good" and found.frame.loc[0, "rationale"] == "x: invented"
    assert found.frame.loc[1, "rationale"] == ""
    assert len(disagreements_with_people(results, labels, n=1)) == 3
    # Of 4: one of each kind, and the last is the same.
    assert found.counts.to_dict("records") == [
        {
            "metric": "grade",
            "judge": "ann",
            "rows": 4,
            "false_passes": 1,
            "false_fails": 1,
            "differences": 1,
            "agreed": 1,
        }
    ]
    assert found.frame[["passed", "label_passed"]].to_numpy().tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    assert found.of_kind() == {"false pass": 1, "false fail": 1, "difference": 1}
    assert repr(found) == "Disagreements(3 rows listed; in all 1 false pass, 1 false fail, 1 other difference)"


def rated(
    records: Any = (RECORD,), reason: str = "as scripted", judge: str = "ann", score: int = 5, **label: Any
) -> Disagreements:
    """What one judge that gives every record `score` for coherence (1 to 5, pass from 3) and people with `label` make."""
    script = ScriptedJudge(judge, lambda task, _: answer_all(task, score=score) | {"findings": reason})
    results = jm.evaluate(list(records), ["coherence"], script, store=None, progress=False)
    given = {"metric": "coherence", "label": 1, "rater": "xia"} | label
    rows = [{"id": one["id"], "variant": one.get("variant", "")} | given for one in records]
    return disagreements_with_people(results, jm.load_labels(rows))


def test_everything_that_is_needed_to_judge_a_row_stands_together() -> None:
    found = rated(rationale="wrong year")
    page = page_of(found._repr_html_(), SHOWN)
    assert "False passes: 1" in page.text
    assert "lock · small · coherenceann: 5, passesas scriptedxia: 1, failswrong year" in page.text.replace(
        "xia: wrong", "wrong"
    )
    for said in ("QuestionWhen was the lock opened?", "AnswerIn 1898, by a baker.", "1 document and the reference",
                 "Document 1It was opened in 1889.", "ReferenceIn 1889."):  # fmt: skip
        assert said in page.text
    # Counts come first: labelled, false passes, false fails, other, same.
    assert page.text.index("coherenceann11000") < page.text.index("False passes")


def test_the_kinds_come_in_order_and_say_how_many_are_shown() -> None:
    scores = pd.DataFrame({"id": range(40), "metric": "ok", "judge": "ann", "score": [1.0] * 20 + [0.0] * 20})
    people = [{"id": at, "metric": "ok", "label": 0 if at < 20 else 1} for at in range(40)]
    results = jm.Results.from_frame(scores, {"ok": {"range": (0, 1), "threshold": 0.5}})
    found = disagreements_with_people(results, jm.load_labels(people), n=8)
    text = page_of(found._repr_html_(), SHOWN).text
    assert text.index("False passes: 20 the 5 largest are shown") < text.index(
        "False fails: 20 the 5 largest are shown"
    )
    assert "differences:" not in text and text.count("no rationale") == 10
    # Scores from elsewhere have no texts; nothing is said of those.
    assert "Answer" not in text and "Question" not in text
    assert len(found) == 16 and "False fails: 20, of which 5 are shown" in str(found)


def test_the_page_holds_all_rows_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    records = [RECORD | {"id": f"r{at}", "variant": ""} for at in range(12)]
    found = rated(records)
    path = found.save_html(tmp_path / "deep" / "apart.html")
    html = path.read_text(encoding="utf-8")
    page = page_of(html, PAGE_TAGS | SHOWN, PAGE_ATTRIBUTES)  # type: ignore[arg-type]
    assert html.startswith("<!DOCTYPE html>") and "Where judges and people differ" in page.text
    assert (
        page.text.count("AnswerIn 1898") == 12 and page_of(found._repr_html_(), SHOWN).text.count("AnswerIn 1898") == 5
    )
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img", html)
    with pytest.raises(jm.InputError, match=r"ends in \.html"):
        found.save_html(tmp_path / "apart.txt")
    (tmp_path / "taken.html").mkdir()
    with pytest.raises(jm.InputError, match="is a folder, expected a file"):
        found.save_html(tmp_path / "taken.html")
    with pytest.raises(jm.InputError, match="cannot be written"):
        found.save_html(path / "below.html")
    with pytest.raises(jm.InputError, match="expected the path of an"):
        found.save_html(None)  # type: ignore[arg-type]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["deep", "taken.html"]


def test_long_texts_are_cut_where_one_sees_it() -> None:
    long = "Peat was cut on the moors. " * 2_000
    found = rated([RECORD | {"answer": long, "contexts": [long] * 30}], reason=long, rationale=long)
    html = found._repr_html_()
    assert len(html) < 60_000
    text = page_of(html, SHOWN).text
    assert f"{len(long) - 700:,} characters left out" in text and "20 more documents not shown" in text
    assert re.search(r"5\d,\d{3} characters left out", text.partition("Question")[0])
    assert max(map(len, str(found).splitlines())) <= 162


@pytest.mark.parametrize("given", [3.0, 2.5])
def test_distance_is_a_share_also_where_nobody_declared_the_range(given: float) -> None:
    # Scores 3 (and 2.5) and labels 1 to 5: the range goes from 1 to 5, so |3 - 5| is 2/4.
    scores = pd.DataFrame({"id": range(5), "metric": "g", "judge": "ann", "score": [3.0, 3.0, 3.0, 3.0, given]})
    labels = jm.load_labels([{"id": at, "metric": "g", "label": at + 1} for at in range(5)])
    found = disagreements_with_people(jm.Results.from_frame(scores), labels).frame.set_index("id")["distance"]
    assert found.to_dict() == {"4": abs(given - 5) / 4, "0": 0.5, "1": 0.25, "3": 0.25}


def test_missing_and_blank_answers_are_said_in_words() -> None:
    results = jm.evaluate([RECORD | {"answer": None, "answer_error": "timeout", "id": "none"}], ["f1"], jm.BaselineJudge(),
                          store=None, progress=False)  # fmt: skip
    scores = results.scores
    assert scores["status"].tolist() == ["not_applicable"]
    labels = jm.load_labels([{"id": "none", "metric": "f1", "label": 1}])
    for n in (0, 2.5, "3", None, True):
        with pytest.raises(jm.InputError, match="n must be a whole number from 1, not"):
            disagreements_with_people(results, labels, n)  # type: ignore[arg-type]
    with pytest.raises(jm.InputError, match=r"results: expected Results .* found DataFrame"):
        disagreements_with_people(scores, labels)  # type: ignore[arg-type]
    blank = disagreements_with_people(
        jm.evaluate([RECORD | {"answer": " "}], ["f1"], jm.BaselineJudge(), store=None, progress=False),
        jm.load_labels([{"id": "lock", "variant": "small", "metric": "f1", "label": 1}]),
    )
    assert "a blank answer" in page_of(blank._repr_html_(), SHOWN).text


def test_agreement_throughout_is_said() -> None:
    found = rated(label=5)
    assert len(found) == 0 and found.counts["agreed"].tolist() == [1]
    assert "Judges and people agree on all 1 row" in page_of(found._repr_html_(), SHOWN).text
    assert str(found) == "1 row of judges with labels: 0 false passes, 0 false fails, 0 other differences, 1 agreed"


def test_raters_who_part_are_shown_one_by_one() -> None:
    scores = pd.DataFrame({"id": [1], "metric": "grade", "judge": "ann", "score": [5]})
    people = [{"id": 1, "metric": "grade", "rater": name, "label": given, "rationale": f"{name} says"}
              for name, given in (("xia", 1), ("yan", 2), ("zoe", 4))]  # fmt: skip
    graded = jm.Results.from_frame(scores, {"grade": {"range": (1, 5), "threshold": 3}})
    found = disagreements_with_people(graded, jm.load_labels(people))
    text = page_of(found._repr_html_(), SHOWN).text
    assert "people: 2.33, 33% passxia 1, yan 2, zoe 4xia: xia says\nyan: yan says" in text
    assert "ann gives 5, people 2.33 (xia 1, yan 2, zoe 4)" in str(found)


def test_the_frame_can_be_put_beside_others() -> None:
    # What the join says of its labels holds a frame, which pandas cannot compare when frames are put together.
    found = rated().frame
    assert found.attrs == {} and len(pd.concat([found, found])) == 2


def test_the_order_of_scores_and_labels_changes_nothing() -> None:
    draw = np.random.default_rng(1)
    scores = pd.DataFrame({"id": range(30), "metric": "grade", "judge": "ann", "score": draw.integers(1, 6, 30)})
    people = [{"id": at, "metric": "grade", "label": int(draw.integers(1, 6))} for at in range(30)]
    declared = {"grade": {"range": (1, 5), "threshold": 3}}
    made = [
        disagreements_with_people(jm.Results.from_frame(part, declared), jm.load_labels(rows))
        for part, rows in ((scores, people), (scores.iloc[::-1], people[::-1]))
    ]
    pd.testing.assert_frame_equal(made[0].frame, made[1].frame)


@pytest.mark.parametrize("attack", ATTACKS)
def test_x04_nothing_of_others_becomes_markup(attack: str, tmp_path: Path) -> None:
    record = {
        "id": attack,
        "variant": attack,
        "question": attack,
        "answer": attack,
        "contexts": [attack],
        "reference": attack,
    }
    found = rated([record], reason=attack, judge=f"judge {attack}", rationale=attack, rater=f"rater {attack}")
    view, whole = found._repr_html_(), found.save_html(tmp_path / "x.html").read_text(encoding="utf-8")
    for html, tags in ((view, SHOWN), (whole, PAGE_TAGS | SHOWN)):
        page = page_of(html, tags, PAGE_ATTRIBUTES)  # type: ignore[arg-type]
        assert not set(html) & set("\x00\x1b\u2028\u202e")
        if attack.isprintable():
            assert page.text.count(attack) > 5
    assert not set(str(found)) & set("\x00\x1b\u2028\u202e")
