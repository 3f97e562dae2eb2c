"""The pure core of the limiter: it is told the time and never waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.engine.limits import CROWDED, ENOUGH, LONGEST_WAIT_S, Pace, wait_before_retry


def test_without_refusals_there_is_no_pace() -> None:
    pace = Pace()
    for at in range(1000):
        assert pace.start(at / 1000) == at / 1000
        pace.answered(at / 1000, limited=False)
    assert pace.rate is None


def test_few_refusals_leave_the_pace_alone() -> None:
    pace = Pace()
    for at in range(400):
        pace.answered(at * 0.01, limited=at % 16 == 0)
    assert pace.rate is None, "6 % of refusals must not slow an endpoint down"


def test_many_refusals_cut_the_pace_to_what_was_served() -> None:
    pace = Pace()
    # 100 answers a second for two seconds, every other one refused: 50 a second are served.
    for at in range(200):
        pace.answered(at * 0.01, limited=at % 2 == 0)
    assert pace.rate is not None and 5 <= pace.rate <= 50


def test_pace_is_cut_at_most_once_a_second() -> None:
    pace = Pace()
    for at in range(ENOUGH):
        pace.answered(at * 0.001, limited=True)
    cut = pace.rate
    for at in range(50):
        pace.answered(0.1 + at * 0.01, limited=True)
    assert pace.rate == cut


def test_pace_grows_by_one_a_second() -> None:
    pace = Pace(rate=10.0)
    for at in range(10):
        pace.answered(float(at), limited=False)
    assert pace.rate == pytest.approx(11, abs=0.1)


def test_starts_keep_their_distance() -> None:
    pace = Pace(rate=10.0)
    starts = [pace.start(0.0) for _ in range(5)]
    assert starts == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


@given(st.lists(st.tuples(st.floats(0, 0.05), st.booleans()), min_size=1, max_size=300))
def test_pace_is_never_below_one_a_second_and_starts_never_go_back(answers: list[tuple[float, bool]]) -> None:
    pace, now, last = Pace(), 0.0, 0.0
    for step, limited in answers:
        now += step
        begin = pace.start(now)
        assert begin >= max(now, last)
        last = begin
        pace.answered(now, limited)
        assert pace.rate is None or pace.rate >= 1.0


@given(st.integers(1, 60), st.one_of(st.none(), st.floats(-5, 1e6)), st.floats(0, 1))
def test_e13_every_wait_is_bounded(tries: int, after: float | None, draw: float) -> None:
    wait = wait_before_retry(tries, after, draw)
    assert 0 <= wait <= LONGEST_WAIT_S * 1.1
    if after is None:
        assert wait >= 0.25, "never a busy loop"


def test_retry_after_is_obeyed() -> None:
    assert wait_before_retry(1, 7.0, 0.0) == 7.0


def test_crowded_is_more_than_a_lone_refusal() -> None:
    assert 1 / ENOUGH < CROWDED
