"""Stretches that people mark in answers: read, placed, and compared with a judge's; every figure computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.calibrate.part_estimates import harmonic, ratio
from jurimetrics.calibrate.part_labels import load_span_labels
from jurimetrics.calibrate.span_agreement import span_agreement
from jurimetrics.calibrate.span_places import Stretch, characters, common
from jurimetrics.judges.judge import JudgeError
from jurimetrics.text import sentences
from scripted_judge import ScriptedJudge
from sklearn.metrics import cohen_kappa_score
from test_display import ATTACKS

# -- reading


def test_offsets_quotes_and_nothing_marked(tmp_path: Path) -> None:
    path = tmp_path / "spans.csv"
    text = "Item,rater,start,end,text,label_type,rationale\n1,ann,3,7,,Intrinsic,wrong year\n2,ann,,,by train,n/a,\n3,,,,,,\n"
    path.write_text(text, encoding="utf-8")
    found = load_span_labels(path)
    assert list(found.columns) == ["id", "variant", "rater", "start", "end", "quote", "type", "rationale", "place"]
    assert found["start"].fillna(-1).tolist() == [3, -1, -1] and found["end"].dtype == "Int64"
    assert found["quote"].tolist() == ["", "by train", ""] and found["type"].tolist() == ["intrinsic", "", ""]
    assert found["rater"].tolist() == ["ann", "ann", "human"]
    assert found["place"].tolist()[0] == f"{path}: row 1 (line 2)"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,start,end\n1,x,4\n", r'spans\.csv: row 1 \(line 2\), column "start": expected a number, found \'x\''),
        ("id,start,end\n1,-1,4\n", r'column "start": expected a number of at least 0'),
        ("id,start,end\n1,1.5,4\n", r'column "start": expected a whole number'),
        ("id,start,end\n1,4,4\n", r'column "end": expected a number above that of the start, found 4 and the start 4'),
        ("id,start,end\n1,,4\n", r'column "end": expected a number above that of the start, found 4 and no start'),
        ("id,start,end\n1,4,\n", r'row 1 \(line 2\), column "end": expected a value, found none'),
        ("id,start,end\n,1,4\n", r'column "id": expected a value'),
        ("id,start,end\n1,1,4\n1,1,4\n", r"row 1 \(line 2\) and row 2 \(line 3\) both label id '1'.*start 1, end 4"),
        ("id,quote\n1,a\n1,a\n", r"both label id '1'.*quote 'a'"),
        ("id,quote\n1,\n1,\n", "both label id '1'.*nothing marked"),
        ("id,quote\n1,a\n1,\n", r"row 2 \(line 3\): a row without a stretch says that there is none, but row 1"),
        ("id,type\n1,x\n", "expected a column for start or quote"),
    ],
)
def test_bad_rows_are_refused_by_file_row_and_column(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "spans.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(jm.InputError, match=says) as caught:
        load_span_labels(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


# -- judges beside people


def marks(name: str, *quotes: tuple[str, str]) -> ScriptedJudge:
    """A judge that marks these quotes (with their types) and supports every sentence that holds none."""

    def script(task: Any, repeat: int) -> Any:
        found = []
        for at, piece in enumerate(sentences(task.answer), 1):
            spans = [{"quote": quote, "type": kind} for quote, kind in quotes if quote in piece.text]
            found.append({"at": at, "evidence": [], "reason": f"as {name} says", "spans": spans,
                          "verdict": "unsupported" if spans else "supported"})  # fmt: skip
        return {"sentences": found}

    return ScriptedJudge(name, script)


#                       0         1         2         3         4
#                       0123456789012345678901234567890123456789012345678
RECORDS = [
    {"id": "a", "answer": "It opened in May 1898. Thousands come by train.", "contexts": ["The lock."]},
    {"id": "b", "answer": "Brandt built it of oak.", "contexts": ["The lock."]},
    {"id": "c", "answer": "Boats are lifted.", "contexts": ["The lock."]},
    {"id": "d", "answer": "Peat was cut.", "contexts": ["The lock."]},
]
JUDGE = (("May 1898", "intrinsic"), ("come by train", "extrinsic"), ("Brandt", "intrinsic"), ("Peat", "extrinsic"))
PEOPLE = [
    {"id": "a", "start": 17, "end": 21, "type": "intrinsic"},  # 1898: 4 characters within May 1898
    {"id": "a", "quote": "Thousands come", "type": "intrinsic"},  # 14, of which "come" is the judge's
    {"id": "b", "quote": "of oak", "type": "extrinsic"},  # 6, missed
    {"id": "c"},
    {"id": "d"},
]


def evaluated(judges: Any, records: Any = RECORDS, **options: Any) -> jm.Results:
    return jm.evaluate(records, ["hallucination"], judges, store=None, progress=False, **options)


def test_answers_stretches_and_characters_by_hand() -> None:
    found = span_agreement(evaluated(marks("ann", *JUDGE)), load_span_labels(PEOPLE))
    row = found.frame.iloc[0]
    assert row[["answers", "missing", "people_answers", "judged_answers"]].tolist() == [4, 0, 2, 3]
    # Answers: a and b marked by both, d by the judge alone.
    assert row["answer_precision"] == pytest.approx(2 / 3) and row["answer_recall"] == 1.0
    assert row["answer_f1"] == pytest.approx(0.8)
    # Stretches: of the judge's 4 two touch people's, of people's 3 two touch the judge's.
    assert row[["judged_spans", "people_spans", "pairs"]].tolist() == [4, 3, 2]
    assert row["span_precision"] == 0.5 and row["span_recall"] == pytest.approx(2 / 3)
    assert row["span_f1"] == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    # Characters: judge 8 + 13 + 6 + 4 = 31, people 4 + 14 + 6 = 24, both 4 + 4 = 8.
    assert row[["judged_characters", "people_characters"]].tolist() == [31, 24]
    assert row["character_precision"] == pytest.approx(8 / 31) and row["character_recall"] == pytest.approx(8 / 24)
    assert row["character_f1"] == pytest.approx(2 * 8 / (31 + 24))
    # Types of the two pairs: intrinsic, intrinsic and extrinsic, intrinsic.
    assert row["type_raw_agreement"] == 0.5 and row["type_kappa"] == 0.0
    assert found.missed["quote"].tolist() == ["of oak"] and found.extra["quote"].tolist() == ["Brandt", "Peat"]
    columns = ["quote", "type", "people_quote", "people_type", "overlap"]
    assert found.matches[columns].to_numpy().tolist() == [
        ["May 1898", "intrinsic", "1898", "intrinsic", 4],
        ["come by train", "extrinsic", "Thousands come", "intrinsic", 4],
    ]
    assert found.estimate("span_recall", "ann") == found.estimate("span_recall")


def test_answers_nobody_read_say_nothing() -> None:
    # Without the rows that say "nothing marked", d does not count against the judge.
    row = span_agreement(evaluated(marks("ann", *JUDGE)), load_span_labels(PEOPLE[:3])).frame.iloc[0]
    assert row["answers"] == 2 and row["answer_precision"] == 1.0


def test_overlapping_stretches_count_each_character_once() -> None:
    judge = marks("ann", ("opened in May", "intrinsic"), ("in May 1898", "intrinsic"))
    people = [
        {"id": "a", "start": 0, "end": 12},
        {"id": "a", "start": 3, "end": 16},
        {"id": "a", "start": 16, "end": 21},
    ]
    row = span_agreement(evaluated(judge), load_span_labels(people)).frame.iloc[0]
    # Judge 3..21 = 18 characters of 13 + 11; people 0..21 = 21 of 12 + 13 + 5; both 18.
    assert row[["judged_characters", "people_characters"]].tolist() == [18, 21]
    assert row["character_precision"] == 1.0 and row["character_recall"] == pytest.approx(18 / 21)
    # Every two but opened in May (3..16) and 16..21, which touch and do not overlap.
    assert row["pairs"] == 5 and row["span_recall"] == 1.0
    assert np.isnan(row["type_kappa"]) and "both intrinsic or extrinsic" in row["type_kappa_method"]


def test_nothing_marked_by_either_side_is_undefined_and_said() -> None:
    found = span_agreement(evaluated(marks("ann")), load_span_labels([{"id": "a"}, {"id": "b", "quote": ""}]))
    for name, why in (("answer_precision", "the judge marked nothing"), ("span_recall", "the rater marked nothing"),
                      ("character_f1", "undefined"), ("type_ac1", "no two stretches")):  # fmt: skip
        assert found.estimate(name).value is None and why in found.estimate(name).method
    # People mark, the judge does not: recall 0, precision undefined.
    found = span_agreement(evaluated(marks("ann")), load_span_labels(PEOPLE))
    assert found.estimate("character_recall").value == 0.0 and found.estimate("span_f1").value is None


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            {"id": "c", "start": 10, "end": 18},
            r'"start" and "end": expected a stretch of the answer, which has 17.*10 to 18',
        ),
        ({"id": "c", "start": 17, "end": 18}, "which has 17 characters"),
        ({"id": "c", "quote": "Ships"}, r"'Ships' does not stand in the answer"),
        (
            {"id": "a", "quote": "o"},
            r"'o' stands in the answer 3 times \(at 3, 25, 34\); say which in a column \"start\"",
        ),
        (
            {"id": "c", "start": 0, "end": 5, "quote": "boats"},
            r"the answer has 'Boats' from 0 to 5, not 'boats'.*code points",
        ),
        ({"id": "c", "start": 15, "quote": "lifted"}, "found 15 to 21"),
        ({"id": "e", "start": 0, "end": 1}, "which has 0 characters"),
    ],
)
def test_labels_of_no_stretch_are_refused(row: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    pd.DataFrame([row]).to_json(path, orient="records", lines=True)
    results = evaluated(marks("ann", *JUDGE), [*RECORDS, {"id": "e", "answer": "", "contexts": ["The lock."]}])
    with pytest.raises(jm.InputError, match=says) as caught:
        span_agreement(results, load_span_labels(path))
    assert str(caught.value).startswith(f"{path}: row 1 (line 1), id {row['id']!r}, column")


def test_a_start_says_which_of_equal_quotes_is_meant() -> None:
    people = load_span_labels([{"id": "a", "start": 25, "quote": "o"}, {"id": "c", "quote": "  boats  ARE"}])
    found = span_agreement(evaluated(marks("ann")), people)
    assert found.missed[["start", "end", "quote"]].to_numpy().tolist() == [[25, 26, "o"], [0, 9, "Boats are"]]
    twice = load_span_labels([{"id": "x", "quote": "aba"}])
    with pytest.raises(jm.InputError, match=r"2 times \(at 0, 2\)"):
        span_agreement(evaluated(marks("ann"), [{"id": "x", "answer": "ababa.", "contexts": ["x"]}]), twice)


def test_a_stretch_that_one_rater_gives_in_two_ways_is_refused() -> None:
    rows = [{"id": "c", "rater": "ann", "quote": "boats are"}, {"id": "c", "rater": "ann", "start": 0, "end": 9}]
    with pytest.raises(jm.InputError, match=r"row 2, id 'c': 'ann' labels the stretch \(0, 9\) of this answer twice"):
        span_agreement(evaluated(marks("ann")), load_span_labels(rows))
    apart = load_span_labels([rows[0], rows[1] | {"rater": "bob"}])
    assert span_agreement(evaluated(marks("ann")), apart).estimate("span_recall", "bob", "ann").n == 1
    with pytest.raises(jm.InputError, match="results: expected Results"):
        span_agreement("results", apart)  # type: ignore[arg-type]


def test_offsets_count_code_points() -> None:
    # One astral character, two UTF-16 units; a letter with a combining accent, two code points.
    answer = "\U0001f600 le cafe\u0301 noir ouvre."
    record = [{"id": 1, "answer": answer, "contexts": ["The lock."]}]
    start = answer.index("noir")
    assert start == 11
    results = evaluated(marks("ann", ("noir", "extrinsic")), record)
    row = span_agreement(results, load_span_labels([{"id": 1, "start": start, "end": start + 4}])).frame.iloc[0]
    assert row["character_f1"] == 1.0
    # Composed by the labeller: found folded, all five code points of it.
    found = span_agreement(results, load_span_labels([{"id": 1, "quote": "caf\u00e9"}]))
    assert found.missed[["start", "end"]].to_numpy().tolist() == [[5, 10]]
    with pytest.raises(jm.InputError, match="not bytes or UTF-16 units"):
        span_agreement(results, load_span_labels([{"id": 1, "start": start + 1, "quote": "noir"}]))


def test_what_a_panel_left_undecided_is_not_marked() -> None:
    judges = [
        marks("ann", ("Peat", "extrinsic")),
        marks("bob"),
        ScriptedJudge("cem", lambda task, _: JudgeError("refused", "x")),
    ]
    people = load_span_labels([{"id": "d", "quote": "Peat"}])
    found = span_agreement(evaluated(jm.Panel(judges)), people)
    lines = found.frame.set_index("judge")
    assert lines.loc["ann", "span_recall"] == 1.0 and lines.loc["bob", "span_recall"] == 0.0
    assert lines.loc["panel", "kind"] == "panel" and lines.loc["panel", "span_recall"] == 0.0
    assert lines.loc["cem", ["answers", "missing"]].tolist() == [0, 1]
    assert "rows of cem hold no sentences" in str(lines.loc["cem", "span_recall_method"])
    assert "No answer to compare for cem." in found.notes


def test_words_that_are_not_found_mark_the_whole_sentence_and_it_is_said() -> None:
    def script(task: Any, repeat: int) -> Any:
        one = {"at": 1, "evidence": [], "reason": "r", "verdict": "unsupported"}
        return {"sentences": [{**one, "spans": [{"quote": "words of nobody", "type": "extrinsic"}]}]}

    people = load_span_labels([{"id": "c", "quote": "Boats"}, {"id": "d"}])
    found = span_agreement(evaluated(ScriptedJudge("ann", script), RECORDS[2:]), people)
    assert found.extra[["quote", "whole_sentence"]].to_numpy().tolist() == [["Peat was cut.", True]]
    assert any("2 times a whole sentence is marked" in note for note in found.notes)


def test_raters_have_lines_of_their_own_and_beside_each_other() -> None:
    people = load_span_labels([
        {"id": "a", "rater": "xia", "quote": "May 1898"}, {"id": "b", "rater": "xia"},
        {"id": "a", "rater": "yan", "quote": "1898"}, {"id": "b", "rater": "yan", "quote": "oak"},
        {"id": "c", "rater": "yan"},
    ])  # fmt: skip
    lines = span_agreement(evaluated(marks("ann", *JUDGE)), people).frame.set_index(["judge", "rater"])
    assert lines["kind"].tolist() == ["judge", "judge", "person", "person"] and lines["answers"].tolist() == [
        2,
        3,
        2,
        2,
    ]
    # xia beside yan on a and b: of yan's two stretches xia has one; of yan's 7 characters 4; all of xia's 8 hold 4.
    assert lines.loc[("xia", "yan"), ["span_recall", "span_precision"]].tolist() == [0.5, 1.0]
    assert lines.loc[("xia", "yan"), "character_recall"] == pytest.approx(4 / 7)
    assert lines.loc[("yan", "xia"), "character_recall"] == 0.5


def test_metrics_and_labels_that_do_not_serve_are_refused() -> None:
    scores = pd.DataFrame({"id": ["a"], "metric": "hallucination", "judge": "ann", "score": [0.5]})
    people = load_span_labels(PEOPLE)
    with pytest.raises(jm.InputError, match="no row holds sentences with marked stretches"):
        span_agreement(jm.Results.from_frame(scores), people)
    results = evaluated(marks("ann", *JUDGE))
    with pytest.raises(jm.InputError, match="no metric 'faithfulness'; there are: hallucination"):
        span_agreement(results, people, "faithfulness")
    with pytest.raises(jm.InputError, match="none is of an answer"):
        span_agreement(results, load_span_labels([{"id": "z", "start": 0, "end": 1}]))
    with pytest.raises(jm.InputError, match="no column 'quote'; read them with load_span_labels"):
        span_agreement(results, people.drop(columns="quote"))
    with pytest.raises(jm.InputError, match="3 lines for judge None"):
        span_agreement(evaluated(jm.Panel([marks("ann"), marks("bob")])), people).estimate("span_f1")
    # A label out of range of an answer that is elsewhere is no concern here.
    more = span_agreement(results, load_span_labels([*PEOPLE, {"id": "z", "start": 10_000, "end": 10_001}]))
    assert more.unmatched["id"].tolist() == ["z"] and any("1 label of answers" in note for note in more.notes)


def test_empty_answers_and_the_baseline_go_through() -> None:
    records = [{"id": "e", "answer": "", "contexts": ["The lock."]}, *RECORDS, {"id": "n", "answer_error": "timeout"}]
    people = load_span_labels([{"id": "e"}, {"id": "a", "quote": "train"}, {"id": "n"}])
    row = span_agreement(evaluated(jm.BaselineJudge(), records), people).frame.iloc[0]
    assert row[["kind", "answers", "missing"]].tolist() == ["baseline", 2, 1] and row["span_recall"] == 1.0


def test_intervals_go_by_group() -> None:
    draw = np.random.default_rng(4)
    records = [
        {"id": at, "answer": "Brandt built it. Peat was cut.", "contexts": ["x"], "group": at // 2} for at in range(48)
    ]
    people = [{"id": at, "quote": "Brandt built" if draw.random() < 0.7 else "Peat was"} for at in range(48)]
    found = span_agreement(evaluated(marks("ann", ("Brandt", "intrinsic")), records), load_span_labels(people))
    for name in ("span_recall", "character_precision", "character_f1", "span_f1"):
        one = found.estimate(name)
        assert one.low is not None and one.high is not None and one.value is not None
        assert one.low < one.value < one.high and "24 groups" in one.method
    assert "cluster-robust t over 24 groups" in found.estimate("span_recall").method


PLACES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=5)


@given(PLACES, PLACES)
def test_characters_are_those_of_sets(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    one, other = ([Stretch(at, at + size) for at, size in side] for side in (first, second))
    mine, theirs = ({place for a, n in side for place in range(a, a + n)} for side in (first, second))
    places = characters(one)
    assert {place for a, b in places for place in range(a, b)} == mine
    assert sum(b - a for a, b in places) == len(mine)
    assert common(places, characters(other)) == len(mine & theirs)


def test_kappa_of_types_is_that_of_a_second_implementation() -> None:
    draw = np.random.default_rng(8)
    kinds = ["intrinsic", "extrinsic"]
    mine, theirs = ([kinds[at] for at in draw.integers(0, 2, 40)] for _ in range(2))
    names = {"intrinsic": "BrandtX", "extrinsic": "BrandtY"}
    records = [{"id": at, "answer": f"{names[kind]} built it.", "contexts": ["x"]} for at, kind in enumerate(mine)]
    judge = marks("ann", ("BrandtX", kinds[0]), ("BrandtY", kinds[1]))
    people = load_span_labels(
        [{"id": at, "quote": "built it", "type": kind, "rater": "x"} for at, kind in enumerate(theirs)]
    )
    assert span_agreement(evaluated(judge, records), people).frame.loc[0, "pairs"] == 0
    people = load_span_labels([{"id": at, "start": 2, "end": 9, "type": kind} for at, kind in enumerate(theirs)])
    found = span_agreement(evaluated(judge, records), people)
    assert found.estimate("type_kappa").value == pytest.approx(cohen_kappa_score(mine, theirs))
    assert found.estimate("type_raw_agreement").n == 40


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_others_wrote_is_text(attack: str) -> None:
    said = attack if attack.isprintable() else "plain"
    records = [{"id": attack, "answer": f"{said} is old. Peat was cut.", "contexts": ["The lock."]}]
    rows = [{"id": attack, "start": 0, "end": len(said), "type": attack, "rater": said}]
    found = span_agreement(evaluated(marks("ann", ("Peat", "extrinsic")), records), load_span_labels(rows))
    html = found._repr_html_()
    assert not any(tag in html for tag in ("<script", "<img", "<svg", "<iframe", "<a "))
    assert not set(html) & set("\x00\x1b\u2028\u202e")
    assert repr(found) == "SpanAgreement('hallucination', 1 line, 1 missed)" and "Peat" in html
    assert "character f1" in str(found)


@pytest.mark.slow
def test_the_intervals_of_characters_keep_their_level() -> None:
    """Answers with 0 to 3 stretches whose lengths and overlaps vary; truth by 200,000 answers."""
    draw = np.random.default_rng(11)

    def sample(n: int) -> tuple[Any, Any, Any]:
        people = draw.poisson(1.2, n) * draw.integers(10, 60, n)
        shared = np.floor(people * draw.beta(4, 2, n))
        judge = shared + draw.poisson(0.5, n) * draw.integers(10, 60, n)
        return shared.astype(float), judge.astype(float), people.astype(float)

    shared, judge, people = sample(200_000)
    truth = {"precision": shared.sum() / judge.sum(), "f1": 2 * shared.sum() / (judge.sum() + people.sum())}
    trials, covered = 600, dict.fromkeys(truth, 0)
    for _ in range(trials):
        shared, judge, people = sample(40)
        groups = list(range(40))
        found = {
            "precision": ratio(shared, judge, groups, "p", "", 0.95),
            "f1": harmonic((shared, judge), (shared, people), groups, "f", "", 0.95),
        }
        for name, one in found.items():
            covered[name] += one.low is not None and one.high is not None and one.low <= truth[name] <= one.high
    assert all(0.92 <= count / trials <= 0.98 for count in covered.values()), covered
