"""The foundation by a scripted panel of three: votes, extractor, failing members, quorum, order, repeats, money."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.judges.judge import JudgeError
from jurimetrics.judges.panel import RULES
from jurimetrics.metrics.metric import Score, metric
from jurimetrics.tasks.check import CheckClaims
from jurimetrics.tasks.rate import RateRubric
from scripted_judge import ScriptedJudge, answer_all, one_claim_each, ratings, verdicts

RECORD = {
    "id": "1",
    "question": "What is Madrid?",
    "answer": "Madrid is in Spain. Madrid has a river. Madrid lies by the sea.",
    "contexts": ["Madrid is in Spain. The Manzanares flows there.", "Bread is baked."],
    "reference": "Madrid is the capital of Spain.",
}


def by_claim(**labels: str) -> Any:
    """A script that labels claims by a word in them."""

    def script(task: Any, repeat: int) -> Any:
        if task.kind != "check":
            return answer_all(task)
        return verdicts(task, lambda claim: next(label for word, label in labels.items() if word in claim))

    return script


def failing(kind: str = "refused", only: str | None = None) -> Any:
    def script(task: Any, repeat: int) -> Any:
        if only is None or task.kind == only:
            return JudgeError(kind, "as scripted")  # type: ignore[arg-type]
        return answer_all(task)

    return script


THREE = (
    ScriptedJudge("ada", by_claim(Spain="supported", river="supported", sea="contradicted")),
    ScriptedJudge("bob", by_claim(Spain="supported", river="unknown", sea="contradicted")),
    ScriptedJudge("cem", by_claim(Spain="supported", river="contradicted", sea="supported")),
)


def run(judges: Any, metrics: Any = ("faithfulness",), records: Any = (RECORD,), **options: Any) -> jm.Results:
    return jm.evaluate(
        list(records), metrics if isinstance(metrics, str) else list(metrics), judges, store=None, **options
    )


def row(results: jm.Results, judge: str, metric_name: str = "faithfulness", repeat: int = 0) -> dict[str, Any]:
    frame = results.scores
    one = frame[(frame["judge"] == judge) & (frame["metric"] == metric_name) & (frame["repeat"] == repeat)]
    assert len(one) == 1
    found: dict[str, Any] = one.iloc[0].to_dict()
    return found | {"details": json.loads(found["details"])}


def test_verdicts_are_voted_claim_by_claim() -> None:
    panel = row(run(jm.Panel(THREE)), "panel")
    # Spain 3 of 3 supported; river one each way, so undecided; sea 2 of 3 contradicted. 1 of 3 claims.
    assert panel["score"] == pytest.approx(1 / 3)
    assert [verdict["verdict"] for verdict in panel["details"]["verdicts"]] == ["supported", "unknown", "contradicted"]
    assert [verdict["undecided"] for verdict in panel["details"]["verdicts"]] == [False, True, False]
    assert "undecided" in panel["flags"]
    # The undecided claim counted one way and the other: 1 of 3 and 2 of 3.
    assert panel["details"]["undecided_low"] == pytest.approx(1 / 3)
    assert panel["details"]["undecided_high"] == pytest.approx(2 / 3)


def test_members_keep_their_own_rows() -> None:
    results = run(jm.Panel(THREE))
    assert [row(results, name)["score"] for name in ("ada", "bob", "cem")] == pytest.approx([2 / 3, 1 / 3, 2 / 3])


def test_panel_row_says_who_said_what_and_costs_nothing() -> None:
    results = run(jm.Panel(THREE))
    panel = row(results, "panel")
    assert panel["details"]["panel"]["votes"][0]["votes"][1] == {
        "ada": "supported",
        "bob": "unknown",
        "cem": "contradicted",
    }
    assert panel["judge_cost_usd"] == 0 and panel["judge_calls"] == 0
    # Entropy: 0 bits, log2(3) bits, and 2 against 1; their mean.
    two_to_one = -(2 / 3 * -0.5849625007211562 + 1 / 3 * -1.584962500721156)
    assert panel["disagreement"] == pytest.approx((0 + 1.584962500721156 + two_to_one) / 3)


def test_claims_are_extracted_once_for_all() -> None:
    for judge in THREE:
        judge.asked.clear()
    results = run(jm.Panel(THREE))
    assert [sum(request.task.kind == "claims" for request in judge.asked) for judge in THREE] == [1, 0, 0]
    assert {row(results, name)["details"]["extractor"] for name in ("ada", "bob", "cem", "panel")} == {"ada"}


def test_next_judge_extracts_where_the_first_cannot() -> None:
    judges = [ScriptedJudge("ada", failing(only="claims")), ScriptedJudge("bob", lambda task, _: answer_all(task))]
    results = run(judges)
    assert row(results, "ada")["details"]["extractor"] == "bob"
    assert row(results, "ada")["score"] == 1


def test_named_extractor_from_outside_the_panel() -> None:
    outsider = ScriptedJudge("zoe", lambda task, _: answer_all(task))
    results = run(jm.Panel(THREE, extractor=outsider))
    assert row(results, "panel")["details"]["extractor"] == "zoe"
    assert set(results.scores["judge"]) == {"ada", "bob", "cem", "panel"}
    assert results.scores["judge_cost_usd"].sum() == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-9)


def test_each_judge_extracts_for_itself_on_request() -> None:
    def lone(task: Any, repeat: int) -> Any:
        return one_claim_each(task) if task.kind == "claims" else answer_all(task)

    judges = [ScriptedJudge("ada", lone), ScriptedJudge("bob", lone)]
    results = run(jm.Panel(judges, extractor="each", vote_on="scores"))
    assert [row(results, name)["details"]["extractor"] for name in ("ada", "bob")] == ["ada", "bob"]


def test_failed_member_withholds_its_vote_and_does_not_shrink_the_panel() -> None:
    # Two of three say supported / contradicted for the sea claim one each, the third failed: no majority of three.
    judges = (THREE[0], THREE[2], ScriptedJudge("bob", failing(only="check")))
    results = run(jm.Panel(judges))
    panel = row(results, "panel")
    assert [verdict["undecided"] for verdict in panel["details"]["verdicts"]] == [False, True, True]
    assert row(results, "bob")["error"] == "refused: as scripted" and row(results, "bob")["status"] == "failed"
    assert "member_failed" in panel["flags"] and panel["status"] == "ok"


def test_lost_quorum_is_a_typed_failure() -> None:
    judges = (THREE[0], ScriptedJudge("bob", failing(only="check")), ScriptedJudge("cem", failing("timeout", "check")))
    panel = row(run(jm.Panel(judges), retries=0), "panel")
    assert panel["status"] == "failed" and pd.isna(panel["score"])
    assert panel["error"].startswith("quorum: 1 of 3 judges answered check, 2 needed")
    assert "bob refused" in panel["error"] and "cem timeout" in panel["error"]


def test_quorum_of_one_lets_one_answer_do() -> None:
    judges = (THREE[0], ScriptedJudge("bob", failing(only="check")), ScriptedJudge("cem", failing(only="check")))
    panel = row(run(jm.Panel(judges, quorum=1)), "panel")
    # One vote of three asked is no majority on any claim.
    assert panel["status"] == "ok" and panel["score"] == 0 and "undecided" in panel["flags"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_j01_order_of_judges_changes_nothing(order: tuple[int, ...]) -> None:
    def frame(judges: Any) -> pd.DataFrame:
        return run(jm.Panel(judges), "all").scores.drop(columns=["judge_latency_s"])

    pd.testing.assert_frame_equal(frame([THREE[at] for at in order]), frame(THREE))


@pytest.mark.parametrize(
    ("votes", "decided"), [(("supported", None, "contradicted"), False), (("supported",) * 3, True)]
)
def test_j01_unparsed_member_leaves_the_rest_undecided(votes: tuple[str | None, ...], decided: bool) -> None:
    judges = [
        ScriptedJudge(
            name,
            failing("unparsed", "check") if vote is None else by_claim(Madrid=vote),
        )
        for name, vote in zip("abc", votes, strict=True)
    ]
    outcomes = set()
    for order in itertools.permutations(judges):
        panel = row(run(jm.Panel(order)), "panel")
        outcomes.add((panel["score"], "undecided" in panel["flags"]))
    assert outcomes == {(1.0, False) if decided else (0.0, True)}


@pytest.mark.parametrize("size", [2, 4])
def test_j01_even_split_is_undecided(size: int) -> None:
    judges = [
        ScriptedJudge(name, by_claim(Madrid="supported" if at % 2 else "contradicted"))
        for at, name in enumerate("abcd"[:size])
    ]
    panel = row(run(jm.Panel(judges)), "panel")
    assert panel["score"] == 0 and "undecided" in panel["flags"]


RATED = {"ada": 1, "bob": 2, "cem": 5}


@pytest.mark.parametrize(
    ("rule", "value"),
    [("median", 2), ("mean", 8 / 3), ("trimmed_mean", 2), ("min", 1), ("max", 5), (lambda values: sum(values) / 2, 4)],
)
def test_rules_on_final_scores(rule: Any, value: float) -> None:
    judges = [ScriptedJudge(name, lambda task, _, n=name: answer_all(task, score=RATED[n])) for name in RATED]
    panel = row(run(jm.Panel(judges, rule=rule, vote_on="scores"), ["coherence"]), "panel", "coherence")
    assert panel["score"] == pytest.approx(value)
    assert panel["disagreement"] == 4  # 5 - 1


@pytest.mark.parametrize(("rule", "error"), [(lambda values: 1 / 0, "crash"), (lambda values: 99.0, "out_of_range")])
def test_rule_of_the_users_that_fails_costs_the_panel_row_alone(rule: Any, error: str) -> None:
    results = run(jm.Panel(THREE, rule=rule, vote_on="scores"), ["coherence"])
    assert row(results, "panel", "coherence")["error"].startswith(f"{error}:")
    assert row(results, "ada", "coherence")["status"] == "ok"


def test_weighted_rule_by_name() -> None:
    judges = [ScriptedJudge(name, lambda task, _, n=name: answer_all(task, score=RATED[n])) for name in RATED]
    weights = {"ada": 1.0, "bob": 1.0, "cem": 2.0}
    panel = row(run(jm.Panel(judges, rule="weighted", weights=weights), ["coherence"]), "panel", "coherence")
    assert panel["score"] == pytest.approx((1 + 2 + 2 * 5) / 4)


def test_no_majority_of_levels_is_undefined_not_failed() -> None:
    judges = [ScriptedJudge(name, lambda task, _, n=name: answer_all(task, score=RATED[n])) for name in RATED]
    panel = row(run(jm.Panel(judges, rule="majority"), ["coherence"]), "panel", "coherence")
    assert panel["status"] == "undefined" and pd.isna(panel["score"]) and panel["error"] == ""


def test_majority_of_levels() -> None:
    given_levels = {"ada": 4, "bob": 4, "cem": 1}
    judges = [
        ScriptedJudge(name, lambda task, _, n=name: answer_all(task, score=given_levels[n])) for name in given_levels
    ]
    assert row(run(jm.Panel(judges, rule="majority"), ["coherence"]), "panel", "coherence")["score"] == 4


@pytest.mark.parametrize("metric_name", ["accuracy_clarity", "context_precision"])
def test_majority_without_declared_levels_is_refused_before_anything_is_sent(metric_name: str) -> None:
    judge = ScriptedJudge("ada", lambda task, _: answer_all(task))
    with pytest.raises(jm.InputError, match=f"{metric_name} has none"):
        run(jm.Panel([judge], rule="majority"), [metric_name])
    assert judge.asked == []


@pytest.mark.parametrize("rule", ["min", "max", "trimmed_mean", max])
def test_rules_that_say_nothing_of_verdicts_are_refused(rule: Any) -> None:
    with pytest.raises(jm.InputError, match='use vote_on="scores"'):
        jm.Panel(THREE, rule=rule)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "mode"}, "no rule 'mode'"),
        ({"rule": "weighted"}, "go together"),
        ({"weights": {"ada": 1}}, "go together"),
        ({"rule": "weighted", "weights": {"ada": 1.0}}, "exactly ada, bob, cem"),
        ({"rule": "weighted", "weights": {"ada": 1.0, "bob": 1.0, "cem": 0.0}}, "above 0"),
        ({"quorum": 4}, "between 1 and 3"),
        ({"extractor": "each"}, 'use vote_on="scores"'),
        ({"name": "ada"}, "two judges are called 'ada'"),
        ({"vote_on": "claims"}, '"verdicts" or "scores"'),
    ],
)
def test_panels_that_do_not_go_together_are_refused(options: Any, message: str) -> None:
    with pytest.raises(jm.InputError, match=message):
        jm.Panel(THREE, **options)


def test_rules_are_all_named_in_the_docstring() -> None:
    assert all(rule in (jm.Panel.__doc__ or "") for rule in RULES)


def test_document_ratings_are_voted_document_by_document() -> None:
    given_scores = {"ada": (10, 0), "bob": (8, 2), "cem": (4, 1)}
    judges = [
        ScriptedJudge(
            name, lambda task, _, n=name: ratings(task, *given_scores[n]) if task.kind == "documents" else None
        )
        for name in given_scores
    ]
    panel = row(run(jm.Panel(judges), ["context_precision"]), "panel", "context_precision")
    # Medians .8 and .1; the median of the members' means (.5, .5, .25) would be .5.
    assert panel["score"] == pytest.approx((0.8 + 0.1) / 2)


def test_panel_of_equals_equals_its_member() -> None:
    judges = [ScriptedJudge(name, THREE[0].script) for name in "abc"]
    results = run(jm.Panel(judges), "all").scores
    panel = results[results["judge"] == "panel"].set_index("metric")["score"]
    member = results[results["judge"] == "a"].set_index("metric")["score"]
    pd.testing.assert_series_equal(panel, member)


def test_members_pay_for_what_they_used_and_rows_sum_to_the_bill() -> None:
    results = run(jm.Panel(THREE), "all", [RECORD, RECORD | {"id": "2", "answer": "Madrid is in Spain."}])
    scores, calls = results.scores, results.calls
    for shared, whole in (("judge_cost_usd", "cost_usd"), ("judge_prompt_tokens", "prompt_tokens")):
        assert scores[shared].sum() == pytest.approx(calls[whole].sum(), abs=1e-9)
    assert (scores.loc[scores["judge"] == "panel", "judge_cost_usd"] == 0).all()
    assert not calls.duplicated(["ask"]).any()


@metric(needs=["answer"], range=(0, 1))
async def follows_a_vote(record: Any, ask: Any) -> Score:
    """Asks a second question that depends on the verdicts of the first."""
    first = await ask(
        CheckClaims(("Madrid is in Spain.", "Madrid has a river.", "Madrid lies by the sea."), ("Spain.",))
    )
    chosen = tuple(verdict.claim for verdict in first if verdict.supported)
    second = await ask(CheckClaims(chosen, ("Madrid.",)))
    return Score(len(second) / 3, "as many as were supported")


def test_call_that_only_the_panel_needs_belongs_to_its_members() -> None:
    results = run(jm.Panel(THREE), [follows_a_vote])
    assert row(results, "panel", "follows_a_vote")["score"] == pytest.approx(1 / 3)
    scores = results.scores
    assert (scores.loc[scores["judge"] == "panel", "judge_cost_usd"] == 0).all()
    assert scores["judge_cost_usd"].sum() == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-9)
    # Each member asked twice; the panel's question (one claim supported by all) is a third for each.
    assert row(results, "ada", "follows_a_vote")["judge_calls"] == 3


@metric(needs=["answer"], range=(1, 5), together=True)
async def longest_first(records: Any, ask: Any) -> dict[str, Score]:
    """Sees all variants at once; one rating of the longest answer decides."""
    best = max(records, key=lambda record: len(record.answer))
    rating = await ask(RateRubric("length", "Is it long?", best.answer))
    return {record.variant: Score(rating.value if record is best else 1.0, "as rated") for record in records}


VARIANTS = [
    RECORD | {"variant": name, "answer": answer} for name, answer in (("x", "Short."), ("y", "A longer answer."))
]


def test_together_metric_gives_one_row_per_variant() -> None:
    results = run(THREE[0], [longest_first], [*VARIANTS, RECORD | {"id": "2", "variant": "x"}])
    scores = results.scores.set_index(["id", "variant"])["score"]
    assert scores.to_dict() == {("1", "x"): 1.0, ("1", "y"): 4.0, ("2", "x"): 4.0}
    # One call for both variants of record 1, shared by their rows.
    assert len(results.calls) == 2
    assert results.scores["judge_cost_usd"].sum() == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-9)


def test_together_metric_with_a_panel() -> None:
    results = run(jm.Panel(THREE), [longest_first], VARIANTS)
    panel = results.scores[results.scores["judge"] == "panel"].set_index("variant")["score"]
    assert panel.to_dict() == {"x": 1.0, "y": 4.0}


def test_together_metric_leaves_out_the_variant_without_an_answer() -> None:
    results = run(THREE[0], [longest_first], [*VARIANTS, RECORD | {"variant": "z", "answer": None}])
    status = results.scores.set_index("variant")["status"]
    assert status.to_dict() == {"x": "ok", "y": "ok", "z": "not_applicable"}


def test_together_metric_over_an_iterator_needs_variants_side_by_side() -> None:
    scattered = [VARIANTS[0], RECORD | {"id": "2", "variant": "x"}, VARIANTS[1]]
    with pytest.raises(jm.InputError, match="side by side"):
        jm.evaluate(iter(scattered), [longest_first], THREE[0], store=None)
    assert len(jm.evaluate(iter(VARIANTS), [longest_first], THREE[0], store=None).scores) == 2


def test_repeats_are_independent_and_extract_once() -> None:
    def coin(task: Any, repeat: int) -> Any:
        return answer_all(task, label="supported" if repeat % 2 == 0 else "unknown", score=3 + repeat)

    judge = ScriptedJudge("ada", coin)
    results = run(judge, ["faithfulness", "coherence", "f1"], repeats=3)
    assert [row(results, "ada", repeat=at)["score"] for at in range(3)] == [1, 0, 1]
    assert [row(results, "ada", "coherence", at)["score"] for at in range(3)] == [3, 4, 5]
    assert sum(request.task.kind == "claims" for request in judge.asked) == 1
    assert len(results.scores[results.scores["metric"] == "f1"]) == 1


def test_repeats_of_a_panel_vote_repeat_by_repeat() -> None:
    judges = [
        ScriptedJudge(name, lambda task, repeat, at=at: answer_all(task, score=1 + (at + repeat) % 3))
        for at, name in enumerate("abc")
    ]
    results = run(jm.Panel(judges), ["coherence"], repeats=2)
    panel = results.scores[results.scores["judge"] == "panel"]
    assert panel["repeat"].tolist() == [0, 1] and panel["score"].tolist() == [2, 2]


@settings(max_examples=25, deadline=None)
@given(
    labels=st.lists(st.sampled_from(["supported", "unknown", "contradicted"]), min_size=9, max_size=9),
    order=st.permutations(range(3)),
)
def test_any_votes_in_any_order_give_the_same_rows(labels: list[str], order: list[int]) -> None:
    words = ("Spain", "river", "sea")
    judges = [
        ScriptedJudge(name, by_claim(**dict(zip(words, labels[3 * at : 3 * at + 3], strict=True))))
        for at, name in enumerate("abc")
    ]
    given_frame = run(jm.Panel([judges[at] for at in order])).scores.drop(columns=["judge_latency_s"])
    pd.testing.assert_frame_equal(given_frame, run(jm.Panel(judges)).scores.drop(columns=["judge_latency_s"]))
    # A claim is supported where two of three say so: counted by hand from the labels.
    supported = sum(sum(labels[3 * judge + at] == "supported" for judge in range(3)) >= 2 for at in range(3))
    panel = given_frame[given_frame["judge"] == "panel"]
    assert panel["score"].tolist() == pytest.approx([supported / 3])
