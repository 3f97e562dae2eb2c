"""Drift: a frozen set judged again, comparisons across an alarm; and how reports are shown."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics import probes
from jurimetrics.judges.judge import Reply, Request
from jurimetrics.judges.session import Session
from leaning_judges import (
    FAIR,
    LIKES_LENGTH,
    NOTE,
    QUIET,
    fair,
    rates,
    records,
)
from scripted_judge import ScriptedJudge


@dataclass(frozen=True)
class Served(ScriptedJudge):
    """A scripted judge whose endpoint says who answered."""

    served: str | None = "m-1"
    mark: str | None = "fp-1"

    async def attempt(self, request: Request, session: Session) -> Reply:
        reply = await super().attempt(request, session)
        return replace(reply, trace=replace(reply.trace, model=self.served, fingerprint=self.mark))


def anchors(judge: Any, number: int = 40, **options: Any) -> jm.Results:
    return jm.evaluate(records(number), NOTE, judge, **{**QUIET, **options})


def test_no_drift_where_nothing_changed() -> None:
    before, after = anchors(Served("ann", rates(fair))), anchors(Served("ann", rates(fair)))
    found = probes.drift(before, after)
    assert found.steady
    assert found.alarms == found.undecided == found.notes == ()
    assert "no drift" in str(found)
    assert probes.refuse_across(before, after, found) == ""


def test_a_shift_of_scores_is_an_alarm() -> None:
    before = anchors(Served("ann", rates(fair)))
    after = anchors(Served("ann", rates(lambda answer: int(hash_of(answer) < 0.5))))
    found = probes.drift(before, after)
    assert len(found.alarms) == 1
    assert "note by ann moved by +" in found.alarms[0]
    assert found.shifts.loc[0, "low"] > 0
    assert found.alarms[0] in probes.refuse_across(before, after, found)
    alike = probes.drift(before, anchors(Served("ann", rates(lambda answer: 1))))
    assert alike.alarms == ("note by ann moved by +1 over 40 records",)


def hash_of(text: str) -> float:
    return random.Random(text).random()


def test_a_margin_alarms_where_chance_cannot_be_left_out() -> None:
    before = anchors(Served("ann", rates(fair)), number=6)
    after = anchors(Served("ann", rates(lambda answer: int("1800" in answer or "1801" in answer))), number=6)
    without = probes.drift(before, after)
    assert without.alarms == ()
    assert "8 are needed" in without.undecided[0]
    assert not without.steady
    beyond = probes.drift(before, after, margin=0.2)
    assert beyond.alarms == ("note by ann moved by +0.333 over 6 records, beyond the margin of 0.2",)
    with pytest.raises(jm.InputError, match="margin"):
        probes.drift(before, after, margin=-1)


@pytest.mark.parametrize(("change", "word"), [({"served": "m-2"}, "model m-1"), ({"mark": "fp-2"}, "fingerprint fp-1")])
def test_another_model_or_fingerprint_is_an_alarm(change: dict[str, str], word: str) -> None:
    before = anchors(Served("ann", rates(fair)))
    after = anchors(Served("ann", rates(fair), **change))
    found = probes.drift(before, after)
    assert len(found.alarms) == 1
    assert f"ann was served by the {word} and now by {next(iter(change.values()))}" in found.alarms[0]
    assert found.alarms[0] in probes.refuse_across(before, after)


def test_stored_answers_show_no_drift_and_say_so(tmp_path: Path) -> None:
    judge, store = Served("ann", rates(fair)), tmp_path / "store.db"
    before = anchors(judge, store=store)
    found = probes.drift(before, anchors(judge, store=store))
    assert found.alarms == ()
    assert "came from the store" in found.undecided[0]


def test_anchors_must_be_the_same_and_other_judges_are_refused() -> None:
    before = anchors(Served("ann", rates(fair)))
    other = jm.evaluate([{**one, "answer": f"{one['answer']} Indeed."} for one in records()], NOTE, FAIR, **QUIET)
    with pytest.raises(jm.InputError, match="40 answers differ"):
        probes.drift(before, other)
    again = anchors(replace(Served("ann", rates(fair)), model="other"))
    assert "judge ann is set up otherwise (model scripted and other)" in probes.refuse_across(before, again)


# --- shown ---


def test_a_report_shows_itself_in_text_and_html() -> None:
    report = probes.verbosity(records(), NOTE, LIKES_LENGTH, **QUIET)
    assert "padded - as it was" in str(report)
    assert "< 0.001" in str(report)
    assert "Took 80 calls" in report._repr_html_()
    with pytest.raises(jm.InputError, match="0 lines"):
        report.line(judge="nobody")
    moved = probes.drift(anchors(FAIR, 10), anchors(replace(FAIR, script=rates(lambda answer: 1)), 10))
    assert "Alarm: note by fair moved by +1" in moved._repr_html_()
