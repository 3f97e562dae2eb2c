"""Several rubrics in one call, by judges whose replies are written here."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.errors import InputError, NoMajority, ReplyError
from jurimetrics.metrics import batched, f1
from jurimetrics.metrics.prompts import tasks_of
from jurimetrics.metrics.rubrics import rubric
from jurimetrics.tasks.criteria import RateCriteria, RateOneOf, Ratings
from jurimetrics.tasks.rate import RateRubric, Rating
from jurimetrics.tasks.task import DoesNotFit, Rule, task_key
from rubric_runs import (
    BUILT_IN,
    CLEAR,
    KIND,
    LETTER,
    PAIR,
    RECORD,
    THREE,
    one,
    rate_all,
    row,
    run,
)
from scripted_judge import ScriptedJudge
from scripted_server import Call, ScriptedServer, reply


def test_batched_criteria_share_one_call_and_keep_their_own_ratings() -> None:
    judge = ScriptedJudge("ada", rate_all(coherence=2, fluency=5))
    results = run(judge, batched([one(name) for name in PAIR]))
    assert len(judge.asked) == 1 and len(judge.asked[0].task.rubrics) == 2
    assert row(results, "coherence(batched)")["score"] == 2 and row(results, "fluency(batched)")["score"] == 5
    assert row(results, "fluency(batched)")["reason"] == "as scripted: fluency"
    assert results.scores["judge_cost_usd"].tolist() == pytest.approx([0.0005, 0.0005])


def test_batched_and_separate_stand_in_one_evaluation() -> None:
    judge = ScriptedJudge("ada", rate_all())
    pair = [one(name) for name in PAIR]
    results = run(judge, [*pair, *batched(pair)])
    assert len(judge.asked) == 3
    assert results.scores["metric"].tolist() == ["coherence", "fluency", "coherence(batched)", "fluency(batched)"]


def test_batched_metrics_have_scale_threshold_and_needs_of_their_rubrics() -> None:
    rubrics = [one(name) for name in BUILT_IN]
    for alone, together in zip(rubrics, batched(rubrics), strict=True):
        assert together.name == f"{alone.name}(batched)"
        assert (together.range, together.threshold, together.needs, together.levels) == (
            alone.range, alone.threshold, alone.needs, alone.levels,
        )  # fmt: skip
        assert together.version != alone.version
    assert batched(rubrics)[0].version != batched(rubrics[:2])[0].version


def test_batched_order_of_the_rubrics_makes_no_other_call() -> None:
    rubrics = [one(name) for name in ("coherence", "fluency", "readability")]
    keys = {
        task_key(task)
        for order in permutations(rubrics)
        for metric in batched(list(order))
        for task in tasks_of(metric)
    }
    assert len(keys) == 1


def test_batched_criteria_take_turns_at_the_first_place() -> None:
    judge = ScriptedJudge("ada", rate_all())
    records = [{**RECORD, "id": str(at), "answer": f"It opened in {at}."} for at in range(40)]
    jm.evaluate(records, batched([one(name) for name in PAIR]), judge, store=None, progress=False)
    first = [request.task.rubrics[0].criterion for request in judge.asked]
    assert len(first) == 40 and set(first) == set(PAIR)


def test_batched_record_that_lacks_a_field_is_asked_under_the_others() -> None:
    judge = ScriptedJudge("ada", rate_all())
    metrics = batched([one(name) for name in ("fluency", "similarity", "readability")])
    results = run(judge, metrics, {**RECORD, "reference": None})
    assert row(results, "similarity(batched)")["status"] == "not_applicable"
    assert [each.criterion for each in sorted(judge.asked[0].task.rubrics, key=lambda each: each.criterion)] == [
        "fluency", "readability",
    ]  # fmt: skip
    assert row(results, "fluency(batched)")["score"] == 4


def test_batched_scales_of_different_kinds_are_each_checked() -> None:
    metrics = batched([one("fluency"), one("accuracy_clarity")])
    results = run(ScriptedJudge("ada", rate_all(fluency=5, accuracy_clarity=9)), metrics)
    assert row(results, "fluency(batched)")["score"] == 5 and row(results, "accuracy_clarity(batched)")["score"] == 0.9


def test_batched_panel_votes_on_each_criterion_as_on_the_rubric_alone() -> None:
    scores = {"ada": (1, 5), "bob": (2, 5), "cem": (5, 5)}
    members = [ScriptedJudge(name, rate_all(coherence=c, fluency=f)) for name, (c, f) in scores.items()]
    pair = [one(name) for name in PAIR]
    results = run(jm.Panel(members, rule="mean"), [*pair, *batched(pair)])
    for name in PAIR:
        alone, together = row(results, name, "panel"), row(results, f"{name}(batched)", "panel")
        assert together["score"] == alone["score"] and together["disagreement"] == alone["disagreement"]
    assert row(results, "coherence(batched)", "panel")["disagreement"] == 4
    assert row(results, "fluency(batched)", "panel")["disagreement"] == 0
    assert all(len(judge.asked) == 3 for judge in members)


def test_batched_refuses_what_is_no_set_of_rubrics() -> None:
    fluency, coherence = one("fluency"), one("coherence")
    for given, fault in (
        ([fluency], "expected 2 to 10 rubrics, found 1"),
        ([fluency, fluency], "a rubric is given twice"),
        ([fluency, f1], "f1 is no rubric"),
        ([fluency, LETTER], "letter is no rubric"),
        ([fluency, "coherence"], "'coherence' is no rubric"),
        ([*batched([fluency, coherence])], "is no rubric"),
        ([rubric("x", name=str(at)) for at in range(11)], "expected 2 to 10 rubrics, found 11"),
    ):
        with pytest.raises(InputError, match=fault):
            batched(given)  # type: ignore[arg-type]


def entries(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"ratings": [{"criterion": number, "findings": "plain", "score": score} for number, score in pairs]}


def twice(first: Any, second: Any) -> Ratings:
    """What is read after a re-ask."""
    with pytest.raises(ReplyError) as caught:
        THREE.read(first)
    return THREE.read(THREE.merge(caught.value.valid, second))


def test_criterion_left_out_is_asked_for_again_by_its_number() -> None:
    with pytest.raises(ReplyError, match="incomplete: criterion 2 is missing") as caught:
        THREE.read(entries((1, 4), (3, 2)))
    assert caught.value.missing == (2,)
    found = twice(entries((1, 4), (3, 2)), entries((2, 5)))
    assert [entry.value for entry in found.entries if isinstance(entry, Rating)] == [4, 5, 2] and found.complete


@pytest.mark.parametrize(
    ("second", "kind"),
    [
        (entries(), "incomplete"),
        (entries((9, 3)), "incomplete"),
        ({"score": 3}, "incomplete"),
        (entries((2, 8)), "out_of_range"),
        (entries((2, "well")), "unparsed"),
        (entries((2, 1), (2, 5)), "incomplete"),
    ],
)
def test_criterion_still_left_out_fails_for_itself_alone(second: Any, kind: str) -> None:
    found = twice(entries((1, 4), (3, 2)), second)
    assert not found.complete
    for name, value in (("clear", 4), ("true", 2)):
        assert RateOneOf(THREE, name).split().join((found,)).value == value
    with pytest.raises(ReplyError, match="kind") as caught:
        RateOneOf(THREE, "kind").split().join((found,))
    assert caught.value.kind == kind


def test_reply_before_a_reask_that_brought_nothing_stands_for_what_it_has() -> None:
    with pytest.raises(ReplyError) as caught:
        THREE.read(entries((1, 4), (3, 2)))
    found = THREE.read(dict(caught.value.valid))
    assert [isinstance(entry, Rating) for entry in found.entries] == [True, False, True]


def test_reply_without_any_criterion_is_no_answer_even_the_second_time() -> None:
    for said in (entries(), {"ratings": "none"}, {"score": 3}, [], entries((9, 3))):
        with pytest.raises(ReplyError) as caught:
            THREE.read(said)
        assert not caught.value.valid
        with pytest.raises(ReplyError):
            THREE.read(THREE.merge(caught.value.valid, said))


def test_unknown_criteria_are_dropped_and_counted() -> None:
    said = {
        "ratings": [
            *entries((1, 4), (2, 4), (3, 4), (7, 1))["ratings"],
            {"criterion": "wit", "findings": "", "score": 1},
        ]
    }
    assert THREE.read(said).flags == ("dropped:2",)
    assert RateOneOf(THREE, "kind").split().join((THREE.read(said),)).flags == ("dropped:2",)


def test_chat_judge_that_leaves_a_criterion_out_is_asked_once_more_and_then_fails_for_it() -> None:
    pair = [one(name) for name in PAIR]

    def only_the_first(call: Call) -> Any:
        return reply(json.dumps(entries((1, 4))))

    with ScriptedServer(only_the_first) as server:
        judge = jm.ChatJudge("model", name="ada", base_url=server.url, price=0)
        results = run(judge, batched(pair))
        asked = server.requests
    assert len(asked) == 2
    assert "an entry for number 2 only" in asked[1].prompt
    by_status = {found["status"]: found for found in (row(results, f"{name}(batched)") for name in PAIR)}
    assert set(by_status) == {"ok", "failed"} and by_status["ok"]["score"] == 4
    assert "incomplete: criterion 2 is missing" in by_status["failed"]["error"]


def test_criteria_of_one_call_must_go_together() -> None:
    other = RateRubric("kind", "Is it kind?", "It is new.")
    for rubrics, fault in (
        ((), "1 to 10 criteria, not 0"),
        ((CLEAR, CLEAR), "have one name"),
        ((CLEAR, other), "they differ in answer"),
    ):
        with pytest.raises(InputError, match=fault):
            RateCriteria(rubrics)
    with pytest.raises(InputError, match="no criterion 'wit' in this call; there are: clear, kind, true"):
        RateOneOf(THREE, "wit")


def test_one_criterion_of_several_votes_like_its_rubric() -> None:
    task = RateOneOf(RateCriteria((CLEAR, KIND)), "kind")
    votes = {"a": Rating(1.0, "low"), "b": Rating(5.0, "high"), "c": None}
    for name in ("mean", "median", "min", "max"):
        assert task.vote(votes, Rule(name)) == KIND.vote(votes, Rule(name))
    with pytest.raises(NoMajority):
        task.vote(votes, Rule("majority"))
    with pytest.raises(InputError, match="one criterion at a time"):
        task.batch.vote({"a": None}, Rule())


def test_call_for_several_criteria_shows_each_with_its_scale_and_fits_or_not() -> None:
    deep = RateRubric("deep", "Is it deep?", "It is old.", contexts=("From 1901.",), scale=(0, 1), step=0.1)
    told = RateRubric("told", "Is it {told}?", "It is old.", "How old?", levels=((1, "no"), (5, "yes")))
    task = RateCriteria((deep, told))
    said = task.messages()[1]["content"]
    assert (
        said.startswith("<document n=1 ") and "CRITERION 1, deep: Is it deep?\nscore, an integer from 0 to 10" in said
    )
    assert "CRITERION 2, told: Is it {told}?\nscore, an integer from 1 to 5:\n5 - yes\n1 - no" in said
    assert said.count("<question ") == said.count("<answer ") == 1 and "<reference" not in said
    assert task.schema["properties"]["ratings"]["items"]["properties"]["score"]["enum"] == list(range(11))
    assert said.splitlines()[-1].endswith("exactly 2 entries, one for each of criteria 1 to 2.")
    with pytest.raises(DoesNotFit):
        RateOneOf(task, "deep").split(10)
