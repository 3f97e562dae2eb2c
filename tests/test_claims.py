"""Claims one by one: verdicts, votes and disagreement of each, by hand-written ballots."""

from __future__ import annotations

import math
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from jurimetrics.judges.judge import JudgeError
from scripted_judge import ScriptedJudge, answer_all, one_claim_each, verdicts
from test_panel import RECORD, THREE, by_claim, run

TWO_TO_ONE = -(2 / 3) * math.log2(2 / 3) - (1 / 3) * math.log2(1 / 3)


def of(results: jm.Results, **where: Any) -> pd.DataFrame:
    frame = results.claims()
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame.reset_index(drop=True)


def test_a_panel_says_of_each_claim_who_said_what() -> None:
    found = of(run(jm.Panel(THREE)), judge="panel")
    assert found["claim"].tolist() == ["Madrid is in Spain.", "Madrid has a river.", "Madrid lies by the sea."]
    assert found["verdict"].tolist() == ["supported", "unknown", "contradicted"]
    assert found["undecided"].tolist() == [False, True, False]
    assert found[["vote:ada", "vote:bob", "vote:cem"]].to_numpy().tolist() == [
        ["supported", "supported", "supported"],
        ["supported", "unknown", "contradicted"],
        ["contradicted", "contradicted", "supported"],
    ]
    # Bits: all agree; three apart; two against one.
    assert found["disagreement"].tolist() == pytest.approx([0, math.log2(3), TWO_TO_ONE])
    assert found["evidence"].tolist()[0] == [(1, "Madrid is in Spain")]
    assert found["reason"].tolist()[0] == "as scripted: supported" and found["number"].tolist() == [1, 2, 3]


def test_disagreement_of_a_row_is_the_mean_over_its_claims() -> None:
    results = run(jm.Panel(THREE))
    listed = results.disagreements()
    assert listed["disagreement"].tolist() == pytest.approx([of(results, judge="panel")["disagreement"].mean()])
    assert listed.loc[0, ["score:ada", "score:bob", "score:cem"]].tolist() == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    assert listed.loc[0, "reason:bob"].startswith("3 claims: 1 contradicted, 1 supported, 1 unknown")  # type: ignore[union-attr]
    line = results.summary().set_index("judge").loc["panel"]
    assert line["disagreement"] == pytest.approx(listed.loc[0, "disagreement"])


def test_members_keep_their_own_verdicts_without_votes() -> None:
    found = of(run(jm.Panel(THREE)), judge="bob")
    assert found["verdict"].tolist() == ["supported", "unknown", "contradicted"]
    assert found[["vote:ada", "disagreement"]].isna().all(axis=None)


def test_what_a_claim_was_checked_against_is_told() -> None:
    def script(task: Any, repeat: int) -> Any:
        if task.kind != "check":
            return answer_all(task)
        beside = task.documents[0]
        return verdicts(task, lambda claim: "contradicted" if beside == RECORD["reference"] else "supported")

    judges = [ScriptedJudge(name, script) for name in "ab"]
    found = run(jm.Panel(judges), ["noise_sensitivity", "alignment"])
    votes = of(found, judge="panel")[["metric", "against", "verdict", "vote:a"]].drop_duplicates()
    both = {(m, a): (v, w) for m, a, v, w in votes.itertuples(index=False, name=None)}
    assert both["noise_sensitivity", "contexts"] == ("supported", "supported")
    assert both["noise_sensitivity", "reference"] == ("contradicted", "contradicted")
    assert both["alignment", "reference"] == ("contradicted", "contradicted")
    # Facts of the reference, in the words of entailment, the votes too.
    assert both["alignment", "answer"] == ("entailed", "entailed")
    facts = of(found, judge="panel", metric="alignment", against="answer")
    assert facts["claim"].tolist() == ["Madrid is the capital of Spain."] and not facts["undecided"].any()


def test_sentences_are_voted_on_too() -> None:
    judges = [ScriptedJudge(name, lambda task, _, said=said: answer_all(task, label=said))
              for name, said in (("a", "supported"), ("b", "unknown"), ("c", "unknown"))]  # fmt: skip
    found = of(run(jm.Panel(judges), ["hallucination"]), judge="panel")
    assert found["verdict"].tolist() == ["unsupported"] * 3 and found["against"].unique().tolist() == ["contexts"]
    assert found["vote:a"].tolist() == ["supported"] * 3 and found["disagreement"].tolist() == pytest.approx(
        [TWO_TO_ONE] * 3
    )


def test_a_member_that_failed_has_no_vote() -> None:
    fails = ScriptedJudge(
        "cem", lambda task, _: JudgeError("refused", "no") if task.kind == "check" else answer_all(task)
    )
    found = of(run(jm.Panel([*THREE[:2], fails])), judge="panel")
    assert found["vote:cem"].isna().all()
    assert found["disagreement"].tolist() == pytest.approx([0, 1, 0])


def test_without_a_panel_judges_stand_side_by_side_on_the_same_claims() -> None:
    found = of(run(list(THREE)), judge="bob")
    assert found["vote:cem"].tolist() == ["supported", "contradicted", "supported"]
    assert found["disagreement"].tolist() == pytest.approx([0, math.log2(3), TWO_TO_ONE])


def test_one_judge_has_claims_and_no_votes() -> None:
    found = run(THREE[0]).claims()
    assert len(found) == 3 and not [name for name in found.columns if name.startswith("vote:")]
    assert found["disagreement"].isna().all()


def test_a_panel_on_scores_shows_its_members_claims_only() -> None:
    def own(task: Any, repeat: int) -> Any:
        return one_claim_each(task) if task.kind == "claims" else by_claim(Spain="supported", Madrid="unknown")(task, 0)

    judges = [ScriptedJudge(name, own) for name in "ab"]
    found = run(jm.Panel(judges, extractor="each", vote_on="scores")).claims()
    assert found["judge"].unique().tolist() == ["a", "b"] and found["disagreement"].isna().all()


def test_repeats_keep_their_claims_apart() -> None:
    judge = ScriptedJudge("a", lambda task, repeat: answer_all(task, label="unknown" if repeat else "supported"))
    found = run(judge, repeats=2).claims()
    assert found.groupby("repeat")["verdict"].unique().map(list).tolist() == [["supported"], ["unknown"]]


def test_metrics_without_claims_have_no_rows() -> None:
    found = run(THREE[0], ["coherence", "f1"]).claims()
    assert len(found) == 0 and {"claim", "verdict", "disagreement"} <= set(found.columns)
    recorded = pd.DataFrame({"id": ["1"], "metric": "m", "judge": "j", "score": [0.5]})
    assert len(jm.Results.from_frame(recorded).claims()) == 0


def test_order_of_judges_and_records_changes_nothing() -> None:
    records = [RECORD, RECORD | {"id": "2"}]
    one = run(jm.Panel(THREE), records=records).claims()
    other = run(jm.Panel(THREE[::-1]), records=records[::-1]).claims()
    by = ["id", "judge", "number"]
    pd.testing.assert_frame_equal(
        one.sort_values(by, ignore_index=True), other.sort_values(by, ignore_index=True)[list(one.columns)]
    )
