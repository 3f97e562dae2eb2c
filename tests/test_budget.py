"""Budgets: refused where they cannot be kept, hard within the calls in flight, and no end of the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.engine.budget import Budget
from jurimetrics.judges.judge import Trace, Usage
from scripted_judge import ScriptedJudge, answer_all
from scripted_replies import valid
from scripted_server import Call, ScriptedServer, hang, reply

GOOD = '{"findings": "clear", "score": 4}'


def records(count: int) -> list[dict[str, Any]]:
    return [{"id": str(at), "answer": f"Madrid has {at} rivers.", "reference": "Rivers."} for at in range(count)]


def judge(server: ScriptedServer, **options: Any) -> jm.ChatJudge:
    return jm.ChatJudge("m", base_url=server.url, **{"price": (10.0, 100.0), "timeout": 5.0, **options})


# ---------------------------------------------------------------------------------------------- before the start


def test_dollars_without_a_price_are_refused_before_anything_is_sent() -> None:
    with ScriptedServer(valid) as server:
        with pytest.raises(jm.InputError, match=r"no price is known for 'house' .*price=.*price_as="):
            jm.evaluate(records(2), ["fluency"], judge(server, name="house", price=None), store=None, budget=1.0)
        assert server.count == 0
        # Other units need no price, and a free judge has one.
        for asked, budget in ((judge(server, price=None), {"calls": 9}), (judge(server, price=0), 1.0)):
            assert jm.evaluate(records(2), ["fluency"], asked, store=None, budget=budget).totals().calls == 2


def test_dollars_are_refused_for_one_unpriced_member_an_extractor_and_an_embedder() -> None:
    priced = jm.ChatJudge("gpt-4.1-mini", base_url="http://127.0.0.1:9/v1")
    unpriced = jm.ChatJudge("deployment-7", base_url="http://127.0.0.1:9/v1")
    embedder = jm.EndpointEmbedder("house-vectors", base_url="http://127.0.0.1:9/v1")
    panel = jm.Panel([priced], extractor=unpriced)
    for judges, metrics, vectors, name in (
        ([priced, unpriced], ["fluency"], None, "deployment-7"),
        (panel, ["fluency"], None, "deployment-7"),
        (priced, ["similarity_score"], embedder, "house-vectors"),
    ):
        with pytest.raises(jm.InputError, match=f"no price is known for '{name}'"):
            jm.evaluate(records(1), metrics, judges, store=None, embedder=vectors, budget=1.0)


def test_k05_price_as_prices_a_deployment() -> None:
    mapped = jm.ChatJudge("deployment-7", base_url="http://127.0.0.1:9/v1", price_as="gpt-4.1-mini")
    Budget.of(1.0).check_prices([mapped, jm.BaselineJudge(), jm.EmbeddedEmbedder()])


@pytest.mark.parametrize("budget", [float("nan"), float("inf"), {"tokens": 2.5}, {"calls": 0.5}])
def test_limit_that_is_no_amount_is_refused(budget: Any) -> None:
    with pytest.raises(jm.InputError, match="budget"):
        Budget.of(budget)


# ---------------------------------------------------------------------------------------------- hard


@pytest.mark.parametrize(
    ("budget", "unit"), [({"usd": 0.02}, "USD"), ({"tokens": 1100}, "tokens"), ({"calls": 10}, "calls")]
)
def test_spent_over_by_at_most_what_was_in_flight(tmp_path: Path, budget: dict[str, float], unit: str) -> None:
    """Each call takes 100 tokens and costs $0.001 + $0.001: ten or eleven fit each of the limits."""

    def answer(call: Call) -> Any:
        return reply(GOOD, usage=(90, 10), latency=0.01)

    with ScriptedServer(answer) as server:
        asked = judge(server, price=(10.0, 110.0))
        short = jm.evaluate(records(60), ["fluency"], asked, store=tmp_path / "s.db", budget=budget, concurrency=8)
        first = server.count
        assert server.in_flight_max <= 8
        totals = short.totals()
        assert totals.cost_usd == pytest.approx(first * 0.002) and totals.at_least_tokens == first * 100
        over = {"USD": totals.cost_usd - 0.02, "tokens": totals.at_least_tokens - 1100, "calls": first - 10}[unit]
        # The call that reaches the limit is within it; up to seven others were under way then.
        assert 0 <= over <= {"USD": 7 * 0.002, "tokens": 7 * 100, "calls": 0}[unit] + 1e-9
        counts = short.scores["status"].value_counts().to_dict()
        assert counts == {"ok": first, "failed": 60 - first}
        assert short.failures()["kind"].unique().tolist() == ["budget"]
        assert short.scores["error"].str.contains(f"{unit} are").sum() == 60 - first
        # With a larger budget the work goes on where it was.
        more = {name: limit * 20 for name, limit in budget.items()}
        whole = jm.evaluate(records(60), ["fluency"], asked, store=tmp_path / "s.db", budget=more, concurrency=8)
        assert (whole.scores["status"] == "ok").all() and server.count == 60 and server.repeats == 0


def test_budget_of_tokens_counts_prompt_and_completion() -> None:
    asked = ScriptedJudge("ada", lambda task, _: answer_all(task))  # 110 tokens a call
    results = jm.evaluate(records(9), ["fluency"], asked, store=None, budget={"tokens": 330}, concurrency=1)
    assert results.scores["status"].value_counts().to_dict() == {"failed": 6, "ok": 3}
    assert "budget: 330 of 330 tokens are spent" in results.scores["error"].tolist()


def test_retries_are_paid_from_the_budget_too() -> None:
    with ScriptedServer(lambda _: reply("no JSON at all", usage=(90, 10))) as server:
        results = jm.evaluate(records(9), ["fluency"], judge(server), store=None, budget={"calls": 5}, concurrency=1)
        assert server.count == 5 and results.totals().calls == 5


# ---------------------------------------------------------------------------------------------- what is not known


def test_k09_endpoint_that_counts_nothing_ends_the_run_with_its_first_reply() -> None:
    for budget in (1.0, {"tokens": 1000}):
        with ScriptedServer(lambda _: reply(GOOD)) as server:
            results = jm.evaluate(records(6), ["fluency"], judge(server), store=None, budget=budget)
            assert server.count == 1
        errors = set(results.scores["error"])
        assert errors == {"", "budget: the endpoint sends no usage, so only a budget of calls can be kept"}


def test_call_of_unknown_cost_is_charged_like_the_dearest_known() -> None:
    budget = Budget.of(0.005)
    budget.spend(Trace(cost_usd=None))
    assert budget.spent_out() is None, "nothing is known yet, and no reply came without a count"
    budget.spend(Trace(usage=Usage(10, 1), cost_usd=0.002, finish_reason="stop"))
    assert (budget.spent_usd, budget.spent_out()) == (0.002, None)
    budget.spend(Trace(cost_usd=None))
    assert budget.spent_out() == (
        "0.0060 of 0.005 USD are spent (2 calls of unknown cost taken for as dear as the dearest known)"
    )
    assert budget.spent_usd == 0.002, "what is known stays apart from what is assumed"


def test_timeouts_are_not_free_for_a_budget() -> None:
    def answer(call: Call) -> Any:
        return hang(30) if "has 2 rivers" in call.prompt else reply(GOOD, usage=(90, 10))

    with ScriptedServer(answer) as server:
        results = jm.evaluate(
            records(9), ["fluency"], judge(server, timeout=0.2), store=None, budget=0.0055, concurrency=1, retries=0
        )
        # $0.0019 a call: two known, one that never answered, and no room for a fourth.
        assert server.count == 3
    assert results.failures()["kind"].value_counts().to_dict() == {"budget": 6, "timeout": 1}


def test_refused_request_costs_nothing() -> None:
    budget = Budget.of({"tokens": 100})
    budget.spend(Trace(cost_usd=0.0))
    budget.spend(Trace(usage=Usage(80, 10), cost_usd=None, finish_reason="stop"))
    assert budget.spent_out() is None and budget.uncounted_calls == 0
