"""Failures that are all alike end early: the requests that a server saw are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jurimetrics as jm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.engine.alike import ALIKE, FATAL, Streak, likeness
from jurimetrics.judges.judge import JudgeError
from scripted_server import Answer, Call, ScriptedServer, error, from_schema, reply
from test_endpoints import GOOD, judge, records

PLACES = 8


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.limits.FIRST_WAIT_S", 0.001)
    monkeypatch.setattr("jurimetrics.engine.limits.LONGEST_WAIT_S", 0.002)


def run(server: ScriptedServer, count: int, metrics: Any = ("coherence",), **options: Any) -> jm.Results:
    return jm.evaluate(
        records(count), list(metrics), judge(server), **{"store": None, "concurrency": PLACES, "retries": 1, **options}
    )


def counted(results: jm.Results) -> tuple[int, int]:
    """Rows that failed after being asked, and rows that were not asked."""
    failed = results.scores[results.scores["status"] == "failed"]
    not_asked = int(failed["error"].str.contains("not asked: the last").sum())
    return len(failed) - not_asked, not_asked


def test_prompt_that_is_filtered_itself_costs_a_few_requests_not_all() -> None:
    refused = error(400, code="content_filter", message="The prompt was filtered, request 81f7a2")
    with ScriptedServer(lambda call: refused) as server:
        results = run(server, 400)
        asked, not_asked = counted(results)
        assert asked + not_asked == 400 and server.count == asked <= ALIKE + PLACES
        row = results.scores.iloc[-1]
        assert row["error"].startswith(f"filtered: not asked: the last {ALIKE} requests failed alike (")
        assert "The prompt was filtered" in row["error"]
        assert sum("not asked: the last" in note for note in results.notes()) == 1


def test_other_questions_are_still_asked() -> None:
    def handler(call: Call) -> Answer:
        filtered = "coheren" in call.prompt.lower()
        return error(400, code="content_filter", message="filtered") if filtered else reply(GOOD)

    with ScriptedServer(handler) as server:
        results = run(server, 100, ["coherence", "fluency"])
        status = results.scores.groupby("metric")["status"].agg(set)
        assert status["fluency"] == {"ok"} and status["coherence"] == {"failed"}
        assert server.count <= 100 + ALIKE + PLACES


@pytest.mark.parametrize(
    ("status", "code", "kind"), [(401, "invalid_api_key", "rejected"), (404, "model_not_found", "rejected")]
)
def test_key_revoked_or_model_removed_in_mid_run(status: int, code: str, kind: str) -> None:
    def handler(call: Call) -> Answer:
        return reply(GOOD) if call.n < 50 else error(status, code=code, message="no longer")

    with ScriptedServer(handler) as server:
        results = run(server, 300)
        asked, not_asked = counted(results)
        assert results.scores["status"].value_counts()["ok"] == 50 and asked + not_asked == 250
        assert server.count - 50 <= FATAL + PLACES
        assert set(results.failures()["kind"]) == {kind}


def test_what_was_not_asked_is_not_kept_as_failed_and_stored_answers_still_count(tmp_path: Any) -> None:
    down = True

    def handler(call: Call) -> Answer:
        return error(400, code="content_filter", message="filtered") if down and call.n >= 20 else reply(GOOD)

    with ScriptedServer(handler) as server:
        first = run(server, 200, store=tmp_path / "s.db")
        asked, not_asked = counted(first)
        assert not_asked > 100
        down, before = False, server.count
        second = run(server, 200, store=tmp_path / "s.db")
        assert server.count - before == not_asked, "20 are stored, what was asked and filtered is final"
        assert second.scores["status"].value_counts().to_dict() == {"ok": 200 - asked, "failed": asked}


def test_failures_of_another_kind_or_message_are_no_streak() -> None:
    faults: Iterator[Answer] = iter(
        [reply(GOOD), *(error(400, message=f"cannot do {'abc'[at % 3] * 5}") for at in range(150))]
    )
    with ScriptedServer(lambda call: next(faults)) as server:
        results = run(server, 120, concurrency=1)
        assert counted(results) == (119, 0) and server.count == 120


def test_one_answer_among_failures_keeps_the_run_going() -> None:
    def handler(call: Call) -> Answer:
        return from_schema(call) if call.n % ALIKE == 0 else error(400, code="content_filter", message="filtered")

    with ScriptedServer(handler) as server:
        assert counted(run(server, 100, concurrency=1))[1] == 0 and server.count == 100


def test_rate_limits_end_nothing_before_their_tries_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.limits.SLOWEST", 10_000.0)
    tried: dict[str, int] = {}

    def handler(call: Call) -> Answer:
        tried[call.key] = tried.get(call.key, 0) + 1
        return reply(GOOD) if tried[call.key] > 20 else error(429, message="slow down")

    with ScriptedServer(handler) as server:
        results = run(server, 10)
        assert (results.scores["status"] == "ok").all() and server.count == 210


def test_other_judges_go_on() -> None:
    def handler(call: Call) -> Answer:
        return reply(GOOD) if call.model == "good" or call.n < 5 else error(401, message="revoked")

    with ScriptedServer(handler) as server:
        judges = [judge(server, name) for name in ("good", "bad")]
        results = jm.evaluate(records(100), ["coherence"], judges, store=None, concurrency=PLACES)
        assert results.scores.groupby("judge")["status"].agg(set)["good"] == {"ok"}
        assert server.by_model["bad"] <= 5 + FATAL + PLACES


@given(st.lists(st.sampled_from(["ok", "filtered 1", "filtered 22", "other", "fatal"]), max_size=80))
def test_streak_ends_exactly_where_enough_alike_stand_in_a_row(outcomes: list[str]) -> None:
    streak, expected, run_of = Streak(), False, ("", 0)
    for outcome in outcomes:
        like = likeness(outcome)
        if outcome == "ok":
            streak.answered()
            expected, run_of = False, ("", 0)
        else:
            streak.failed(JudgeError("rejected", outcome, fatal=outcome == "fatal"))
            if not expected:
                run_of = (like, run_of[1] + 1 if like == run_of[0] else 1)
                expected = run_of[1] >= (FATAL if outcome == "fatal" else ALIKE)
        assert (streak.ended() is not None) == expected
