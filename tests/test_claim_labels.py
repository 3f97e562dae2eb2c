"""Labels of single claims: read, paired with a judge's claims, and compared; every figure computed by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.calibrate.claim_agreement import claim_agreement
from jurimetrics.calibrate.claim_matching import Match, match_claims, similarities, word_overlap
from jurimetrics.calibrate.part_estimates import chance_corrected, share
from jurimetrics.calibrate.part_labels import load_claim_labels
from jurimetrics.judges.judge import JudgeError
from scripted_judge import ScriptedJudge, answer_all
from scripted_judge import verdicts as verdict_reply
from sklearn.metrics import cohen_kappa_score
from test_display import ATTACKS

# -- reading


def test_claims_come_with_every_spelling_of_a_verdict() -> None:
    spelled = ["Supported", "pass", "YES", True, 1, "1.0", "entailed", "contradicted", " unknown ", "neutral", "fail", "no",
               False, 0, "not supported", "unsupported"]  # fmt: skip
    found = load_claim_labels([{"id": 1, "claim": f"claim {at}", "label": label} for at, label in enumerate(spelled)])
    assert found["label"].tolist() == ["supported"] * 7 + ["contradicted"] + ["unknown"] * 2 + ["unsupported"] * 6
    assert list(found.columns) == ["id", "variant", "rater", "claim", "label", "place"]


@pytest.mark.parametrize(
    "unrated", [None, float("nan"), pd.NA, "", " ", "NA", "n/a", "None", "-", "not rated"], ids=repr
)
def test_a_claim_that_nobody_rated_is_still_a_claim(unrated: Any) -> None:
    found = load_claim_labels([{"id": 1, "claim": "It is old.", "label": unrated}])
    assert found["claim"].tolist() == ["It is old."] and found["label"].isna().all()


def test_names_of_others_and_of_the_caller_are_understood() -> None:
    rows = [
        {
            "Item": "007",
            "system": "v",
            "rater": "ann",
            "Statement": " It\n is old. ",
            "verdict": "pass",
            "rationale": "seen",
        }
    ]
    row = load_claim_labels(rows).iloc[0]
    assert row[["id", "variant", "rater", "claim", "rationale"]].tolist() == ["007", "v", "ann", "It is old.", "seen"]
    mapped = load_claim_labels([{"id": 1, "what": "It is old."}], columns={"claim": "what"})
    assert mapped["claim"].tolist() == ["It is old."] and mapped["rater"].tolist() == ["human"]


def test_a_row_without_a_claim_says_that_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text("id,claim,label\n1,It is old.,pass\n2,,\n", encoding="utf-8")
    assert load_claim_labels(path)[["id", "claim"]].to_numpy().tolist() == [["1", "It is old."], ["2", ""]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,claim,label\n1,a b,maybe\n", r'claims\.csv: row 1 \(line 2\), column "label": expected supported.*maybe'),
        ("id,claim,label\n,a b,pass\n", r'row 1 \(line 2\), column "id": expected a value, found none'),
        ("id,claim,label\n1,,pass\n", r'row 1 \(line 2\), column "claim": expected a value, found none'),
        (
            "id,claim,label\n1,A  b,pass\n1,a b,fail\n",
            r"row 1 \(line 2\) and row 2 \(line 3\) both label id '1'.*'a b'",
        ),
        ("id,claim,label\n1,A b.,pass\n1,a b,fail\n", r"both label id '1'.*'a b'"),
        (
            "id,claim,label\n1,a b,pass\n1,,\n",
            r"row 2 \(line 3\): a row without a claim says that there is none, but row 1",
        ),
        ("id,label\n1,pass\n", "expected a column for claim"),
        ("id,claim,fact\n1,a,b\n", "mean the same"),
        ("id,claim,label\n", "no labels"),
    ],
)
def test_bad_rows_are_refused_by_file_row_and_column(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(jm.InputError, match=says) as caught:
        load_claim_labels(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


# -- pairing


def test_same_texts_are_pairs_whatever_their_case_spaces_and_stops() -> None:
    mine = ["It is  OLD.", "Café noir!", "It rains"]
    theirs = ["It rains.", "CAFE\u0301 noir", "“it is old”"]
    assert match_claims(mine, theirs) == [Match(0, 2, 1.0, "text"), Match(1, 1, 1.0, "text"), Match(2, 0, 1.0, "text")]


def test_a_claim_repeated_is_paired_once() -> None:
    assert match_claims(["A b c.", "a b c"], ["a b c"]) == [Match(0, 0, 1.0, "text")]
    assert len(match_claims(["a b c", "a b c"], ["A b c", "A B C"])) == 2
    assert match_claims([], ["a"]) == [] and match_claims(["a"], []) == []


def test_the_largest_sum_is_taken_and_not_the_first_that_serves() -> None:
    # Shares of words, twice the common over all: [[4/5, 2/3], [2/3, 0]]. Greedy takes .8 and leaves the second alone; the
    # other pairing has 4/3.
    mine, theirs = ["red green", "blue"], ["red green white", "green", "x"]
    assert similarities(mine, theirs).round(4).tolist() == [[0.8, 0.6667, 0.0], [0.0, 0.0, 0.0]]
    mine, theirs = ["red green", "red blue"], ["red green white", "green"]
    # [[.8, .667], [.4, 0]] at .4: together .667 + .4 = 1.067 beats .8.
    assert [(one.first, one.second) for one in match_claims(mine, theirs, 0.4)] == [(0, 1), (1, 0)]
    assert [(one.first, one.second) for one in match_claims(mine, theirs, 0.5)] == [(0, 0)]


def test_numbers_and_negation_part_claims_that_share_their_words() -> None:
    opened = "The tower opened to the public in 1889."
    for other in ("The tower opened to the public in 1890.", "The tower never opened to the public in 1889.",
                  "The tower didn't open to the public in 1889."):  # fmt: skip
        assert word_overlap(opened, other) >= 0.5
        assert match_claims([opened], [other]) == []
    assert len(match_claims([opened], ["The tower opened to the public."])) == 1
    assert len(match_claims(["It has 3,000.5 steps of stone"], ["It has 3.000,5 steps, all stone"])) == 1
    assert match_claims(["It is -5 degrees cold there"], ["It is 5 degrees cold there"]) == []
    assert match_claims(["It is 1.5 metres tall there"], ["It is 15 metres tall there"]) == []


def test_claims_of_other_scripts_are_compared_by_characters() -> None:
    assert match_claims(["東京は日本の首都です。"], ["東京が日本の首都"])[0].by == "words"
    assert match_claims(["東京は日本の首都です。"], ["大阪は商業の町です。"]) == []


def test_a_similarity_of_the_callers_takes_the_place_of_words() -> None:
    like = {("cat", "feline"): 0.9, ("dog", "feline"): 0.2}
    pairs = match_claims(["dog", "cat"], ["feline"], similarity=lambda one, other: like[one, other])
    assert pairs == [Match(1, 0, 0.9, "words")]
    with pytest.raises(jm.InputError, match="from 0 to 1"):
        match_claims(["a"], ["b"], similarity=lambda one, other: 2.0)
    similarity: Any
    for similarity in (lambda one, other: "much", lambda one: 1.0, lambda one, other: None, 5):
        with pytest.raises(jm.InputError, match="similarity must be a function of two texts"):
            match_claims(["a"], ["b"], similarity=similarity)
    threshold: Any
    for threshold in (0, 1.1, float("nan"), "0.5", None, True):
        with pytest.raises(jm.InputError, match="threshold lies above 0"):
            match_claims(["a"], ["b"], threshold)


WORDS = st.lists(st.sampled_from(["lock", "boat", "moor", "peat", "1889", "never"]), min_size=1, max_size=4).map(
    " ".join
)


@given(st.lists(WORDS, max_size=4), st.lists(WORDS, max_size=4), st.sampled_from([0.3, 0.5, 1.0]))
def test_pairs_are_one_to_one_and_no_other_pairing_has_a_larger_sum(
    first: list[str], second: list[str], threshold: float
) -> None:
    found = match_claims(first, second, threshold)
    assert len({one.first for one in found}) == len({one.second for one in found}) == len(found)
    assert all(one.similarity >= threshold for one in found)
    # By brute force over all pairings of what is left when equal texts are taken.
    rest = [at for at in range(len(first)) if at not in {one.first for one in found if one.by == "text"}]
    others = [at for at in range(len(second)) if at not in {one.second for one in found if one.by == "text"}]
    worth = {
        (a, b): word_overlap(first[a], second[b])
        for a in rest for b in others
        if word_overlap(first[a], second[b]) >= threshold and match_claims([first[a]], [second[b]], threshold)
    }  # fmt: skip
    if len(rest) > 3:
        return
    padded = [*others, *([None] * len(rest))]
    orders = itertools.permutations(padded, len(rest))
    best = max(sum(worth.get((a, b), 0.0) for a, b in zip(rest, order, strict=True)) for order in orders)  # type: ignore[arg-type]
    assert sum(one.similarity for one in found if one.by == "words") == pytest.approx(best)


# -- judges beside people


def judge_says(name: str, wrong: dict[str, str] | None = None) -> ScriptedJudge:
    """A judge that takes each sentence as a claim and supports all but those in `wrong`."""
    said = wrong or {}

    def script(task: Any, repeat: int) -> Any:
        if task.kind == "check":
            return verdict_reply(task, lambda claim: said.get(claim, "supported"))
        return answer_all(task, repeat)

    return ScriptedJudge(name, script)


RECORDS = [
    {"id": "a", "answer": "The lock opened in 1889. Thousands come by train.", "contexts": ["The lock."]},
    {"id": "b", "answer": "Brandt built the lock. Boats are lifted. Peat was cut.", "contexts": ["The lock."]},
    {"id": "c", "answer": "It rains.", "contexts": ["The lock."]},
]
PEOPLE = [
    {"id": "a", "claim": "The lock opened in 1889", "label": "supported"},
    {"id": "a", "claim": "Many thousands come by train.", "label": "unknown"},
    {"id": "a", "claim": "The lock is made of oak", "label": "contradicted"},
    {"id": "b", "claim": "Brandt built the lock", "label": "contradicted"},
    {"id": "b", "claim": "Boats are lifted", "label": "supported"},
    {"id": "c"},
]


def evaluated(judges: Any, records: Any = RECORDS, metric: str = "faithfulness", **options: Any) -> jm.Results:
    return jm.evaluate(records, [metric], judges, store=None, progress=False, **options)


def test_recall_precision_and_verdicts_by_hand() -> None:
    results = evaluated(judge_says("ann", {"Boats are lifted.": "contradicted", "Brandt built the lock.": "unknown"}))
    found = claim_agreement(results, load_claim_labels(PEOPLE))
    row = found.frame.iloc[0]
    # People: 3 + 2 + 0 claims, the judge: 2 + 3 + 1; oak is missed; peat and rain are the judge's own.
    assert row[["people", "judged", "matched", "n", "answers", "missing", "groups"]].tolist() == [5, 6, 4, 4, 3, 0, 3]
    assert row["recall"] == pytest.approx(4 / 5) and row["precision"] == pytest.approx(4 / 6)
    # 1889 agrees; thousands: judge supported, people unknown (false pass); Brandt: neither supports; boats: false fail.
    assert row[["false_passes", "false_fails"]].tolist() == [1, 1]
    assert row["raw_agreement"] == 0.5
    # Judge supports 2 of 4, people 2 of 4, both 1: po = 1/2, pe = 1/2.
    assert row["kappa"] == pytest.approx(0.0)
    # AC1: pi = 1/2, chance 2 * 1/2 * 1/2 = 1/2.
    assert row["ac1"] == pytest.approx(0.0)
    assert row["false_pass_rate"] == 0.5 and row["false_fail_rate"] == 0.5
    # Three verdicts: only 1889 is the same.
    assert row["raw_agreement_three"] == 0.25
    mine = ["supported", "supported", "unknown", "contradicted"]
    theirs = ["supported", "unknown", "contradicted", "supported"]
    assert row["kappa_three"] == pytest.approx(cohen_kappa_score(mine, theirs))
    assert found.missed[["claim", "verdict"]].to_numpy().tolist() == [["The lock is made of oak", "contradicted"]]
    assert found.extra["claim"].tolist() == ["Peat was cut.", "It rains."]
    assert found.extra["nearest"].tolist()[1] == ""
    assert found.matches["kind"].tolist() == ["agree", "false pass", "differ", "false fail"]
    assert found.matches["by"].tolist() == ["text", "words", "text", "text"]
    table = found.confusion()
    assert table.loc["supported", "unknown"] == 1 and table.to_numpy().sum() == 4
    # The five claims of people stand in two of the answers.
    assert row["recall_method"] == "recall of claims; no interval: 2 groups, 8 are needed"


def test_pass_and_fail_leave_the_three_verdicts_undefined() -> None:
    people = [
        row | ({"label": {"supported": "pass"}.get(row["label"], "fail")} if "label" in row else {}) for row in PEOPLE
    ]
    found = claim_agreement(evaluated(judge_says("ann")), load_claim_labels(people))
    row = found.frame.iloc[0]
    assert row["raw_agreement"] == 0.5 and row["false_passes"] == 2
    assert np.isnan(row["kappa_three"]) and "three verdicts" in row["kappa_three_method"]
    assert list(found.confusion().columns) == ["supported", "contradicted", "unknown", "unsupported"]


def test_claims_without_verdicts_give_recall_alone() -> None:
    people = load_claim_labels([{name: row[name] for name in row if name != "label"} for row in PEOPLE])
    row = claim_agreement(evaluated(judge_says("ann")), people).frame.iloc[0]
    assert row["recall"] == pytest.approx(0.8) and row["n"] == 0
    assert row["kappa_method"] == "undefined: no matched claim has both verdicts"
    assert "no matched claim has both verdicts" in row["raw_agreement_method"]


def test_an_answer_in_which_the_judge_finds_nothing_counts_and_one_that_failed_does_not() -> None:
    def script(task: Any, repeat: int) -> Any:
        if task.kind == "claims" and "rains" in task.text:
            return JudgeError("refused", "as scripted")
        if task.kind == "claims" and "Brandt" in task.text:
            return {"sentences": [{"at": at, "check": "non_factual", "claims": []} for at in (1, 2, 3)]}
        return answer_all(task, repeat)

    found = claim_agreement(evaluated(ScriptedJudge("ann", script)), load_claim_labels(PEOPLE))
    row = found.frame.iloc[0]
    # a: 2 of 3 found; b: 0 of 2; c is left out.
    assert row[["answers", "missing", "people", "matched"]].tolist() == [2, 1, 5, 2]
    assert row["recall"] == pytest.approx(2 / 5)
    assert any("1 time a judge gave no claims" in note for note in found.notes)


def test_a_panel_has_a_line_and_its_undecided_claims_are_not_supported() -> None:
    claim = "Boats are lifted."
    judges = [
        judge_says(name, {claim: said})
        for name, said in (("ann", "supported"), ("bob", "unknown"), ("cem", "contradicted"))
    ]
    found = claim_agreement(evaluated(jm.Panel(judges)), load_claim_labels(PEOPLE))
    frame = found.frame.set_index("judge")
    assert frame["kind"].to_dict() == {"ann": "judge", "bob": "judge", "cem": "judge", "panel": "panel"}
    assert frame.loc["panel", ["undecided", "false_fails"]].tolist() == [1, 1]
    assert found.estimate("recall", "panel") == found.estimate("recall", "ann")
    assert any("share the claims of ann" in note for note in found.notes)
    with pytest.raises(jm.InputError, match=r"4 lines.*ann beside human"):
        found.estimate("recall")
    with pytest.raises(jm.InputError, match="no estimate 'x'"):
        found.estimate("x", "ann")


def test_raters_have_lines_of_their_own_and_beside_each_other() -> None:
    people = [
        {"id": "a", "rater": "xia", "claim": "The lock opened in 1889", "label": "supported"},
        {"id": "a", "rater": "xia", "claim": "Thousands come by train", "label": "unknown"},
        {"id": "a", "rater": "yan", "claim": "Thousands come by train", "label": "contradicted"},
        {"id": "b", "rater": "yan", "claim": "Boats are lifted", "label": "supported"},
    ]
    found = claim_agreement(evaluated(judge_says("ann")), load_claim_labels(people))
    lines = found.frame.set_index(["judge", "rater"])
    assert lines["kind"].tolist() == ["judge", "judge", "person", "person"]
    # Both labelled a: yan has 1 of the 2 claims of xia; xia has the only one of yan.
    assert lines.loc[("yan", "xia"), "recall"] == 0.5 and lines.loc[("xia", "yan"), "recall"] == 1.0
    assert lines.loc[("yan", "xia"), "answers"] == 1
    # Neither calls it supported, so they agree on two kinds and not on three.
    assert lines.loc[("yan", "xia"), "raw_agreement"] == 1.0 and lines.loc[("yan", "xia"), "raw_agreement_three"] == 0.0
    assert lines.loc[("ann", "yan"), "recall"] == 1.0
    assert set(found.matches["judge"]) == {"ann"}
    assert found.estimate("recall", rater="xia").value == 1.0
    with pytest.raises(jm.InputError, match="2 lines"):
        found.estimate("recall")


def test_scores_from_elsewhere_hold_no_claims_and_it_is_said() -> None:
    scores = pd.DataFrame({"id": ["a"], "metric": "faithfulness", "judge": "ann", "score": [0.5]})
    with pytest.raises(jm.InputError, match="no row holds claims"):
        claim_agreement(jm.Results.from_frame(scores), load_claim_labels(PEOPLE))
    with pytest.raises(jm.InputError, match="no metric 'other'"):
        claim_agreement(jm.Results.from_frame(scores), load_claim_labels(PEOPLE), "other")
    # A panel that votes on scores has none, its members have.
    judges = [judge_says("ann"), judge_says("bob")]
    found = claim_agreement(evaluated(jm.Panel(judges, vote_on="scores")), load_claim_labels(PEOPLE))
    lines = found.frame.set_index("judge")
    assert lines.loc["ann", "recall"] == 0.8 and np.isnan(lines.loc["panel", "recall"])
    assert "rows of panel hold no claims" in lines.loc["panel", "kappa_method"]
    assert any("No claims in the rows of panel" in note for note in found.notes)


def test_sentences_are_no_claims() -> None:
    with pytest.raises(jm.InputError, match="span_agreement"):
        claim_agreement(
            evaluated(judge_says("ann"), metric="hallucination"), load_claim_labels(PEOPLE), "hallucination"
        )


def test_claims_checked_against_two_things_need_a_choice() -> None:
    records = [record | {"reference": "The lock."} for record in RECORDS]
    results = evaluated(judge_says("ann"), records, "noise_sensitivity")
    with pytest.raises(jm.InputError, match=r"which\? say against=.*contexts, reference"):
        claim_agreement(results, load_claim_labels(PEOPLE), "noise_sensitivity")
    found = claim_agreement(results, load_claim_labels(PEOPLE), "noise_sensitivity", against="reference")
    assert found.estimate("recall").value == 0.8
    with pytest.raises(jm.InputError, match="no claims were checked against 'answer'"):
        claim_agreement(results, load_claim_labels(PEOPLE), "noise_sensitivity", against="answer")


def test_facts_of_a_reference_have_verdicts_too() -> None:
    records = [{"id": "a", "answer": "The lock.", "reference": "The lock opened in 1889. Thousands come by train."}]
    people = load_claim_labels([{"id": "a", "fact": "The lock opened in 1889.", "label": "neutral"}])
    found = claim_agreement(evaluated(judge_says("ann"), records, "alignment"), people, "alignment", against="answer")
    assert found.against == "answer" and found.frame.loc[0, "false_passes"] == 1


def test_labels_of_other_answers_are_listed_or_refused() -> None:
    people = load_claim_labels([*PEOPLE, {"id": "elsewhere", "claim": "x y", "label": "pass"}])
    found = claim_agreement(evaluated(judge_says("ann")), people)
    assert found.unmatched["id"].tolist() == ["elsewhere"] and any("1 label of answers" in note for note in found.notes)
    with pytest.raises(jm.InputError, match=r"none is of an answer.*'elsewhere'.*first answer id 'a'"):
        claim_agreement(evaluated(judge_says("ann")), people[people["id"] == "elsewhere"])
    with pytest.raises(jm.InputError, match="no column 'claim'; read them with load_claim_labels"):
        claim_agreement(evaluated(judge_says("ann")), people.drop(columns="claim"))
    with pytest.raises(jm.InputError, match="there are none"):
        claim_agreement(evaluated(judge_says("ann")), people.iloc[:0])
    with pytest.raises(jm.InputError, match="'good' is none of supported"):
        claim_agreement(evaluated(judge_says("ann")), people.assign(label="good"))


def test_of_repeats_the_first_with_claims_counts() -> None:
    def script(task: Any, repeat: int) -> Any:
        if task.kind == "check":
            return JudgeError("refused", "as scripted") if repeat == 0 else verdict_reply(task, lambda claim: "unknown")
        return answer_all(task, repeat)

    results = evaluated(ScriptedJudge("ann", script), repeats=2)
    found = claim_agreement(results, load_claim_labels(PEOPLE))
    assert found.frame.loc[0, ["answers", "missing", "false_fails"]].tolist() == [3, 0, 2]
    assert any("Of 2 repeats" in note for note in found.notes)


def test_the_order_of_labels_changes_no_figure() -> None:
    results = evaluated(judge_says("ann", {"Boats are lifted.": "contradicted"}))
    people = load_claim_labels(PEOPLE)
    frames = [claim_agreement(results, part).frame for part in (people, people.iloc[::-1])]
    pd.testing.assert_frame_equal(*frames)


def test_intervals_go_by_group_and_one_per_answer_by_wilson() -> None:
    records = [
        {"id": at, "answer": "The lock opened in 1889.", "contexts": ["The lock."], "group": at // 2}
        for at in range(40)
    ]
    people = load_claim_labels([
        {"id": at, "claim": "The lock opened in 1889" if at % 4 else "The moor is wide", "label": "pass"} for at in range(40)
    ])  # fmt: skip
    grouped = claim_agreement(evaluated(judge_says("ann"), records), people).estimate("recall")
    assert grouped.value == 0.75 and "cluster-robust t over 20 groups" in grouped.method
    alone = [{name: record[name] for name in ("id", "answer", "contexts")} for record in records]
    plain = claim_agreement(evaluated(judge_says("ann"), alone), people).estimate("recall")
    assert "Wilson over 40 rows" in plain.method
    # Wilson, 30 of 40: centre (.75 + z2/80)/(1 + z2/40), z2 = 3.8415.
    assert (plain.low, plain.high) == pytest.approx((0.5981, 0.8581), abs=1e-4)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_others_wrote_is_text(attack: str) -> None:
    claim = attack if attack.isprintable() else "plain"
    records = [{"id": attack, "answer": f"{claim} is old.", "contexts": ["The lock."]}]
    people = load_claim_labels([{"id": attack, "claim": f"{claim} is old.", "label": "fail", "rater": claim},
                                {"id": attack, "claim": "Peat was cut.", "label": "fail", "rater": claim}])  # fmt: skip
    found = claim_agreement(evaluated(judge_says("ann"), records), people)
    html = found._repr_html_()
    assert "<script" not in html and "<img" not in html and "<svg" not in html and "<iframe" not in html
    assert not set(html) & set("\x00\x1b\u2028\u202e")
    assert "Peat was cut." in html and "ClaimAgreement('faithfulness'" in repr(found) and "recall" in str(found)


def test_kappa_of_parts_is_that_of_a_second_implementation() -> None:
    draw = np.random.default_rng(5)
    one, other = draw.integers(0, 3, 60), draw.integers(0, 3, 60)
    found = chance_corrected(one.tolist(), other.tolist(), (0, 1, 2), (np.arange(60) // 3).tolist(), "", 0.95)
    assert found["kappa"].value == pytest.approx(cohen_kappa_score(one, other))
    assert found["raw_agreement"].value == pytest.approx((one == other).mean())


@pytest.mark.slow
def test_the_interval_of_recall_keeps_its_level_where_claims_of_an_answer_go_together() -> None:
    """Answers of 1 to 9 claims; how easily an answer's claims are found varies between answers (beta, mean .8, rho .2)."""
    draw = np.random.default_rng(7)
    covered = {12: 0, 60: 0}
    trials = 1000
    for answers in covered:
        for _ in range(trials):
            sizes = draw.integers(1, 10, answers)
            chance = draw.beta(3.2, 0.8, answers)
            hits = [bool(hit) for size, p in zip(sizes, chance, strict=True) for hit in draw.random(size) < p]
            groups = np.repeat(np.arange(answers), sizes).tolist()
            found = share(hits, groups, "recall", "", 0.95)
            covered[answers] += found.low is not None and found.high is not None and found.low <= 0.8 <= found.high
    # Plain t over few groups near an end is a little short: .92 with 12 answers, .94 with 60.
    assert 0.89 <= covered[12] / trials <= 0.97, covered
    assert 0.92 <= covered[60] / trials <= 0.97, covered
