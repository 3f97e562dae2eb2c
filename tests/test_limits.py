"""Rate control: its pure core, which is told the time and never waits, and the limiter that waits for it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.engine.limits import (
    CROWDED,
    FIRST_REPLY_TOKENS,
    LONGEST_WAIT_S,
    LOOK_BACK,
    SLACK_S,
    SLOWEST,
    Limiter,
    Pace,
    PerMinute,
    TooLate,
    wait_before_retry,
)
from jurimetrics.judges.headroom import UNSAID, Headroom, headroom_of, reset_s
from jurimetrics.judges.judge import Usage

FULL = Headroom(crowded=True)
FREE = UNSAID


def answer(pace: Pace, now: float, crowded: bool, begun: float | None = None) -> None:
    pace.answered(now, now if begun is None else begun, not crowded, FULL if crowded else FREE)


# ---------------------------------------------------------------------------------------------- the rate


def test_without_refusals_there_is_no_rate() -> None:
    pace = Pace()
    for at in range(1000):
        assert pace.delay(at / 1000) == 0
        pace.start(at / 1000)
        answer(pace, at / 1000, crowded=False)
    assert pace.rate is None


def test_few_refusals_leave_the_rate_alone() -> None:
    pace = Pace()
    for at in range(400):
        answer(pace, at * 0.01, crowded=at % 16 == 0)
    assert pace.rate is None, "6 % of refusals must not slow an endpoint down"


def test_a_burst_of_failures_at_the_start_is_no_crowd() -> None:
    pace = Pace()
    for at in range(15):
        answer(pace, at * 0.01, crowded=True)
    assert pace.rate is None, "15 of the last 100 is not more than 15 %"
    answer(pace, 0.2, crowded=True)
    assert pace.rate is not None


def test_many_refusals_cut_the_rate_to_less_than_was_served() -> None:
    pace = Pace()
    # 1,000 answers a second, every other one refused: 500 a second are served.
    for at in range(3000):
        answer(pace, at * 0.001, crowded=at % 2 == 0, begun=at * 0.001 - 0.01)
        if pace.cuts and at > 1500:
            break
    assert pace.rate is not None and pace.rate < 500


def refused(pace: Pace, now: float, times: int = 16) -> None:
    """So many refusals at one moment; 16 of the last 100 answers are the fewest that make a crowd."""
    for _ in range(times):
        answer(pace, now, crowded=True)


def test_a_cut_goes_to_four_fifths_of_what_was_served_in_the_last_second() -> None:
    pace = Pace()
    for at, number in ((0.0, 10), (1.0, 5), (1.5, 20), (2.0, 20)):
        for _ in range(number):
            answer(pace, at, crowded=False)
    refused(pace, 2.0)
    assert (pace.rate, pace.step, pace.cuts) == pytest.approx((32.0, 3.2, 1))
    # 40 were served within the last second, but only 32 a second were asked for.
    refused(pace, 2.25, 15)
    assert pace.cuts == 1
    refused(pace, 2.25, 1)
    assert (pace.rate, pace.step, pace.cuts) == pytest.approx((25.6, 2.56, 2))
    refused(pace, 60.0)
    assert (pace.rate, pace.step, pace.cuts) == (1.0, 1.0, 3)


def test_only_the_last_hundred_answers_count() -> None:
    pace = Pace()
    for crowded in (True, *[False] * 84, *[True] * 14, False, True):
        answer(pace, 1.0, crowded)
    assert pace.cuts == 0, "the first refusal is the 101st back"
    answer(pace, 1.0, crowded=True)
    assert pace.cuts == 1
    # A cut forgets them all.
    for _ in range(100):
        answer(pace, 1.0, crowded=False)
    refused(pace, 1.0)
    assert pace.cuts == 2


def test_answers_to_what_was_sent_before_a_cut_count_as_served_and_as_nothing_else() -> None:
    pace = Pace()
    refused(pace, 1.0)
    assert pace.rate == 1.0
    for _ in range(30):
        answer(pace, 1.5, crowded=False, begun=0.5)
    assert pace.rate == 1.0
    for _ in range(15):
        answer(pace, 1.5, crowded=True, begun=1.0)
    answer(pace, 1.5, crowded=True, begun=0.5)
    assert pace.cuts == 1
    answer(pace, 1.5, crowded=True, begun=1.0)
    assert pace.cuts == 2


def test_growth_is_a_step_a_second_whatever_the_rate_and_only_for_replies() -> None:
    pace = Pace(rate=10.0, step=2.0)
    answer(pace, 0.0, crowded=False)
    assert pace.rate == pytest.approx(10.2)
    pace.answered(0.0, 0.0, False, UNSAID)
    assert pace.rate == pytest.approx(10.2)
    refused(pace, 0.0, 1)
    assert pace.rate == pytest.approx(10.2)


def test_starts_keep_the_slower_of_the_rate_and_what_is_declared() -> None:
    for declared, rate, spacing in ((None, 4.0, 0.25), (120.0, 4.0, 0.5), (6000.0, 4.0, 0.25), (120.0, None, 0.5)):
        pace = Pace(PerMinute(requests=declared), rate)
        pace.start(8.0)
        assert pace.delay(8.0) == pytest.approx(spacing)
        assert pace.delay(9.0) == 0


def test_a_start_a_little_late_is_caught_up_and_an_idle_time_is_not() -> None:
    pace = Pace(PerMinute(requests=480))
    pace.start(0.0)
    pace.start(0.125 + 0.015)
    assert pace.delay(0.25) == 0
    pace.start(0.25 + 0.03)
    assert pace.delay(0.28) == pytest.approx(0.125)
    pace.start(50.0)
    assert pace.delay(50.0) == pytest.approx(0.125)


def test_a_cut_takes_no_start_back() -> None:
    pace = Pace(rate=2.0)
    pace.start(1.0)
    refused(pace, 1.125)
    assert pace.cuts == 1 and pace.delay(1.125) == pytest.approx(0.375)
    assert pace.delay(1.5) == 0
    # Nor does a start after it catch up what was late before it.
    refused(pace, 1.515)
    pace.start(1.515)
    assert pace.cuts == 2 and pace.delay(1.515) == pytest.approx(1.0)


def test_rate_is_cut_once_for_all_that_was_under_way() -> None:
    pace = Pace()
    for at in range(500):
        # All of them were sent at the start, before anything was known.
        answer(pace, 1 + at * 0.01, crowded=True, begun=0.5)
    assert pace.cuts == 1


def test_rate_grows_by_its_step_a_second() -> None:
    pace = Pace(rate=10.0, step=1.0)
    now = 0.0
    while now < 10 and pace.rate is not None:
        now += 1 / pace.rate
        answer(pace, now, crowded=False)
    assert pace.rate == pytest.approx(20, rel=0.02)


def test_cut_endpoint_is_soon_asked_as_fast_as_it_bears() -> None:
    """A simulated endpoint that serves 20 a second and refuses the rest: most of what it bears is used."""
    pace, now, served = Pace(), 0.0, 0
    admitted: list[float] = []
    while now < 60:
        now += max(pace.delay(now), 0.002)
        pace.start(now)
        admitted = [at for at in admitted if at > now - 1]
        crowded = len(admitted) >= 20
        if not crowded:
            admitted.append(now)
            served += now > 20
        answer(pace, now + 0.05, crowded, begun=now)
    assert served / 40 > 0.8 * 20
    assert pace.cuts <= 25


@given(
    st.lists(st.tuples(st.floats(0, 0.05), st.booleans(), st.floats(0, 2)), min_size=1, max_size=400),
    st.one_of(st.none(), st.floats(1, 10_000)),
)
def test_any_answers_keep_the_rate_and_the_starts_within_bounds(
    answers: list[tuple[float, bool, float]], declared: float | None
) -> None:
    pace, now, cut_at, starts = Pace(PerMinute(requests=declared)), 0.0, float("-inf"), []
    window: list[bool] = []
    for step, crowded, under_way in answers:
        now += step
        if pace.delay(now) == 0:
            pace.start(now)
            starts.append(now)
        before, rate = pace.cuts, pace.rate
        begun = now - under_way
        if begun >= cut_at:
            window = [*window, crowded][-LOOK_BACK:]
        answer(pace, now, crowded, begun)
        assert pace.rate is None or pace.rate >= SLOWEST
        if pace.cuts > before:
            # Never more than once for what was sent before the cut, and only where it is crowded.
            assert begun >= cut_at and sum(window) > CROWDED * LOOK_BACK
            assert rate is None or (pace.rate is not None and pace.rate <= max(rate, SLOWEST))
            cut_at, window = now, []
        elif rate is not None and pace.rate is not None:
            assert rate <= pace.rate <= rate + pace.step / rate + 1e-9
    if declared is not None:
        for first in range(0, len(starts), 7):
            spread = starts[-1] - starts[first]
            assert spread >= (len(starts) - 1 - first) * 60 / declared - SLACK_S - 1e-6


# ---------------------------------------------------------------------------------------------- declared limits


def test_requests_a_minute_are_spread_evenly() -> None:
    pace, now, starts = Pace(PerMinute(requests=600)), 0.0, []
    for _ in range(50):
        now += pace.delay(now)
        pace.start(now)
        starts.append(now)
    assert starts[-1] - starts[0] == pytest.approx(4.9)


def test_tokens_a_minute_hold_back_by_what_requests_took() -> None:
    pace = Pace(PerMinute(tokens=6_000))
    pace.start(0.0, 300)
    assert pace.delay(0.0) == pytest.approx(3.0)
    pace.correct(200)
    assert pace.delay(0.0) == pytest.approx(5.0)
    pace.correct(-400)
    assert pace.delay(0.0) == pytest.approx(1.0)


def test_tokens_of_an_idle_minute_are_not_saved_up() -> None:
    pace = Pace(PerMinute(tokens=60))
    pace.start(0.0)
    assert pace.delay(0.0) == 0, "a request is taken to need no tokens where nothing is said"
    pace.start(0.0, 10)
    pace.start(0.0)
    assert pace.delay(0.0) == pytest.approx(10.0)
    pace.start(100.0, 5)
    assert pace.delay(100.0) == pytest.approx(5.0)
    free = Pace()
    free.start(0.0, 1e9)
    free.correct(1e9)
    assert free.delay(0.0) == 0


def test_the_stricter_of_two_declarations_holds() -> None:
    some, other = PerMinute(requests=60, tokens=9_000), PerMinute(requests=30, tokens=10_000)
    assert some.meet(other) == other.meet(some) == PerMinute(requests=30, tokens=9_000)
    assert some.meet(PerMinute()) == PerMinute().meet(some) == some
    assert PerMinute(requests=1).meet(PerMinute(tokens=2)) == PerMinute(requests=1, tokens=2)


@given(st.lists(st.tuples(st.floats(1, 5_000), st.floats(0, 5_000)), min_size=2, max_size=60), st.floats(1_000, 1e6))
def test_tokens_sent_never_exceed_the_declared_rate(requests: list[tuple[float, float]], tokens: float) -> None:
    pace, now, taken = Pace(PerMinute(tokens=tokens)), 0.0, 0.0
    for estimate, actual in requests:
        now += pace.delay(now)
        # All that was taken before this start fits into the time that has passed.
        assert taken <= now * tokens / 60 + 1e-6 * max(1.0, taken)
        pace.start(now, estimate)
        pace.correct(actual - estimate)
        taken += actual


def test_estimate_learns_from_replies() -> None:
    async def learn() -> tuple[float, float]:
        limiter = Limiter(1, PerMinute(tokens=1e9))
        before = limiter.estimate("m", 100)
        for completion in (10, 30):
            async with limiter.place(before) as started:
                limiter.answered(started, True, UNSAID, "m", Usage(100, completion))
        return before, limiter.estimate("m", 100)

    before, after = asyncio.run(learn())
    assert before == 100 + FIRST_REPLY_TOKENS and after == pytest.approx(120)


# ---------------------------------------------------------------------------------------------- headers


def test_endpoint_with_nothing_left_is_asked_again_when_it_is_refilled() -> None:
    pace = Pace()
    pace.answered(10.0, 9.9, True, Headroom(empty_s=3.0))
    assert pace.delay(10.0) == pytest.approx(3.0) and pace.rate is None
    # Answers to what was sent before say the same, and do not lengthen it.
    pace.answered(12.9, 9.9, True, Headroom(empty_s=3.0))
    assert pace.delay(12.9) == pytest.approx(0.1)


def test_a_refill_announced_again_counts_from_the_answer_to_a_later_request() -> None:
    pace = Pace()
    pace.answered(10.0, 9.0, True, Headroom(empty_s=3.0))
    pace.answered(12.0, 10.0, True, Headroom(empty_s=3.0))
    assert pace.delay(12.0) == pytest.approx(3.0)
    # A shorter wait said later does not take the longer one back.
    pace.answered(12.5, 12.0, True, Headroom(empty_s=1.0))
    assert pace.delay(12.5) == pytest.approx(2.5)


def test_wait_for_a_refill_is_bounded() -> None:
    pace = Pace()
    pace.answered(0.0, 0.0, True, Headroom(empty_s=86_400.0))
    assert pace.delay(0.0) == LONGEST_WAIT_S


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "later"}, None),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "6m0s"}, None),
        ({"x-ratelimit-remaining-requests": "many"}, None),
        ({}, None),
    ],
)
def test_headers_say_how_long_nothing_is_left(headers: dict[str, str], seconds: float | None) -> None:
    assert headroom_of(200, headers).empty_s == seconds


@pytest.mark.parametrize(("status", "crowded"), [(200, False), (429, True), (503, True), (529, True), (500, False)])
def test_statuses_that_mean_too_fast(status: int, crowded: bool) -> None:
    assert headroom_of(status, {}).crowded is crowded


def test_reset_may_be_a_moment() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert reset_s("2026-01-01T00:00:30Z", now) == 30
    assert reset_s(str(now.timestamp() + 7), now) == pytest.approx(7)
    assert reset_s("2025-01-01T00:00:00Z", now) == 0


@given(st.text(max_size=20))
def test_any_reset_is_seconds_or_nothing(text: str) -> None:
    seconds = reset_s(text)
    assert seconds is None or seconds >= 0


# ---------------------------------------------------------------------------------------------- waits


@given(st.integers(1, 5_000), st.one_of(st.none(), st.floats(-5, 1e6)), st.floats(0, 1))
def test_e13_every_wait_is_bounded(tries: int, after: float | None, draw: float) -> None:
    wait = wait_before_retry(tries, after, draw)
    assert 0.05 <= wait <= LONGEST_WAIT_S * 1.1, "never a busy loop, never for ever"
    assert after is None or wait >= min(after, LONGEST_WAIT_S)


def test_waits_double_to_a_minute_and_half_of_each_is_drawn() -> None:
    assert [wait_before_retry(tries, None, 1.0) for tries in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [wait_before_retry(tries, None, 0.0) for tries in (1, 2, 9)] == [0.25, 0.5, 30]


def test_retry_after_is_obeyed() -> None:
    assert wait_before_retry(1, 7.0, 0.0) == 7.0
    assert wait_before_retry(1, 7.0, 1.0) == pytest.approx(7.7)
    assert wait_before_retry(3, 0.0, 0.0) == pytest.approx(0.2), "asked for no wait, it waits a tenth of its own"
    assert wait_before_retry(1, 600.0, 0.0) == 60


async def test_wait_is_waited_where_there_is_time_for_it() -> None:
    clock = asyncio.get_running_loop().time
    begun = clock()
    assert await Limiter.wait(3, 0.2, until=begun + 60) is True
    assert 0.19 <= clock() - begun < 2.5


async def test_wait_that_would_end_too_late_is_not_begun() -> None:
    clock = asyncio.get_running_loop().time
    begun = clock()
    assert await Limiter.wait(1, 30.0, until=begun + 5) is False
    assert clock() - begun < 1


# ---------------------------------------------------------------------------------------------- places


async def held(limiter: Limiter, order: list[str], name: str, until: float | None = None) -> None:
    async with limiter.place(until=until):
        order.append(name)
        await asyncio.sleep(0.01)


async def test_further_tries_go_before_first_ones() -> None:
    limiter, order = Limiter(1), []
    later = asyncio.get_running_loop().time() + 60
    tasks = [asyncio.create_task(held(limiter, order, name)) for name in "abc"]
    tasks.append(asyncio.create_task(held(limiter, order, "again", later)))
    await asyncio.gather(*tasks)
    assert order == ["a", "again", "b", "c"]


async def test_further_try_waits_no_longer_than_it_may() -> None:
    limiter = Limiter(1)
    async with limiter.place():
        with pytest.raises(TooLate):
            await held(limiter, [], "again", asyncio.get_running_loop().time() + 0.02)
    assert limiter.free == 1


async def test_abandoned_waiting_leaves_no_place_taken() -> None:
    limiter, order = Limiter(2, PerMinute(requests=60_000)), []
    limiter.pace.answered(0.0, 0.0, True, UNSAID)
    tasks = [asyncio.create_task(held(limiter, order, str(at))) for at in range(20)]
    await asyncio.sleep(0.005)
    for task in tasks[1::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert limiter.free == 2 and set(order) >= set(map(str, range(2, 20, 2)))


async def test_abandoned_while_the_pace_is_waited_for_leaves_no_place_taken() -> None:
    limiter = Limiter(3)
    now = asyncio.get_running_loop().time()
    limiter.pace.answered(now, now, True, Headroom(empty_s=30.0))
    tasks = [asyncio.create_task(held(limiter, [], str(at))) for at in range(5)]
    await asyncio.sleep(0.01)
    assert limiter.free == 0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert limiter.free == 3


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), min_size=1, max_size=30), st.integers(1, 4))
def test_any_order_of_waiting_and_giving_up_keeps_the_places(steps: list[tuple[int, bool, bool]], places: int) -> None:
    async def work() -> tuple[int, int]:
        limiter, now, most = Limiter(places), 0, 0

        async def hold(turns: int, again: bool) -> None:
            nonlocal now, most
            async with limiter.place(until=asyncio.get_running_loop().time() + 60 if again else None):
                now += 1
                most = max(most, now)
                try:
                    for _ in range(turns):
                        await asyncio.sleep(0)
                finally:
                    now -= 1

        tasks = []
        for turns, again, given_up in steps:
            tasks.append(asyncio.create_task(hold(turns, again)))
            await asyncio.sleep(0)
            if given_up:
                tasks[len(tasks) // 2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return most, limiter.free

    most, free = asyncio.run(work())
    assert most <= places and free == places
