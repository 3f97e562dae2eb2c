"""Rate control against a real server: declared budgets, limit headers, Retry-After, crowding; no score is lost to it."""

from __future__ import annotations

import asyncio
import itertools
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from scripted_server import Answer, Call, ScriptedServer, allow, error, from_schema, reply
from test_endpoints import GOOD, judge, records
from test_evaluate import honest


def run(server: ScriptedServer, count: int, metrics: Any = ("coherence",), judges: Any = None, **options: Any) -> Any:
    return jm.evaluate(records(count), list(metrics), judges or judge(server), **{"store": None, **options})


def gaps(server: ScriptedServer) -> list[float]:
    times = [call.at for call in server.requests]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def test_requests_a_minute_are_kept_by_all_judges_of_an_endpoint_together() -> None:
    with ScriptedServer(lambda call: reply(GOOD, usage=(100, 10))) as server:
        # 1,200 a minute are 20 a second; the strictest wish holds for all.
        judges = [judge(server, "a", requests_per_minute=1_200), judge(server, "b")]
        started = time.monotonic()
        results = run(server, 20, judges=judges)
        assert (results.scores["status"] == "ok").all() and server.count == 40
        assert 39 / 20 - 0.1 <= time.monotonic() - started < 8
        assert sum(sorted(gaps(server))[:20]) > 0.5, "they are spread, not sent in one crowd"


def test_tokens_a_minute_are_kept() -> None:
    with ScriptedServer(lambda call: reply(GOOD, usage=(900, 100))) as server:
        started = time.monotonic()
        results = run(server, 10, judges=judge(server, tokens_per_minute=300_000))
        # 1,000 tokens each at 5,000 a second: nine intervals of 0.2 s.
        assert 1.7 <= time.monotonic() - started < 8 and (results.scores["status"] == "ok").all()


def test_endpoint_that_says_nothing_is_left_is_asked_when_it_is_refilled() -> None:
    def handler(call: Call) -> Answer:
        empty = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "400ms"}
        return reply(GOOD, headers=empty if call.n in (0, 8) else {})

    with ScriptedServer(handler) as server:
        run(server, 20, concurrency=1)
        waits = gaps(server)
        assert waits[0] >= 0.39 and waits[8] >= 0.39 and sum(wait > 0.35 for wait in waits) == 2


@pytest.mark.parametrize("after", ["1", "61", "600", "date", "gone by", "abc", "-5", "1e400", None])
def test_e13_any_retry_after_is_waited_for_within_bounds(after: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.limits.LONGEST_WAIT_S", 0.4)
    monkeypatch.setattr("jurimetrics.engine.limits.FIRST_WAIT_S", 0.2)
    dates = {"date": timedelta(seconds=90), "gone by": timedelta(days=-1)}
    value = format_datetime(datetime.now(UTC) + dates[after]) if after in dates else after

    def handler(call: Call) -> Answer:
        headers = {} if value is None else {"Retry-After": value}
        return error(429, message="slow down", headers=headers) if call.n < 3 else reply(GOOD)

    with ScriptedServer(handler) as server:
        results = run(server, 1)
        assert results.scores["score"].tolist() == [4] and server.count == 4
        assert all(0.015 < wait < 1.0 for wait in gaps(server)), "never a busy loop, never longer than allowed"


def test_call_as_a_whole_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.calls.LONGEST_CALL_S", 1.0)
    with ScriptedServer(lambda call: error(429, message="slow", headers={"Retry-After": "0.3"})) as server:
        started = time.monotonic()
        results = run(server, 1)
        # How many tries fit depends on the machine; that they end, and that there was another one, does not.
        assert time.monotonic() - started < 4 and 2 <= server.count <= 4
        assert results.scores["error"].iloc[0].startswith("rate_limited:")


def test_lone_refusals_delay_only_their_own_calls() -> None:
    def handler(call: Call) -> Answer:
        refused = call.n % 16 == 5
        return error(429, message="slow", headers={"Retry-After": "0.5"}) if refused else reply(GOOD)

    with ScriptedServer(handler, latency=0.01) as server:
        started = time.monotonic()
        results = run(server, 300, concurrency=16)
        assert (results.scores["status"] == "ok").all()
        assert time.monotonic() - started < 8, "6 % of refusals do not slow the endpoint down"


def test_crowded_endpoint_is_asked_about_as_fast_as_it_bears() -> None:
    limited = allow(from_schema, in_flight=1_000, per_second=40, retry_after=1)
    with ScriptedServer(limited, latency=0.01) as server:
        started = time.monotonic()
        results = run(server, 200, concurrency=64)
        assert (results.scores["status"] == "ok").all()
        # Five seconds at what it bears; a flood would be thousands of requests.
        assert time.monotonic() - started < 25 and server.count < 2 * 200


def test_abandoned_waits_leave_nothing_behind() -> None:
    async def work(server: ScriptedServer) -> int:
        slow = judge(server, requests_per_minute=60)
        task = asyncio.create_task(jm.aevaluate(records(40), ["coherence"], slow, store=None))
        await asyncio.sleep(0.6)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    with ScriptedServer(lambda call: reply(GOOD)) as server:
        assert asyncio.run(work(server)) == 1


def test_results_that_cannot_be_written_say_where_the_answers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    judged = honest()
    with monkeypatch.context() as patched:
        patched.setattr("jurimetrics.frames.write_part", full)
        with pytest.raises(OSError, match=r"the same call goes on from there.*No space left"):
            jm.evaluate(records(5), ["coherence"], judged, store=tmp_path / "s.db", out=tmp_path / "out")
    results = jm.evaluate(records(5), ["coherence"], judged, store=tmp_path / "s.db", out=tmp_path / "out")
    assert len(judged.asked) == 5 and (results.scores["status"] == "ok").all()
