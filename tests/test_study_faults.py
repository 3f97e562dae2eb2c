"""A whole study against a server that fails in every way, interrupted again and again: the tables of a run without faults."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from jurimetrics.answers import Answers
from jurimetrics.prompts import Prompt
from jurimetrics.variants.compare import compare
from jurimetrics.variants.generate import generate, plan_answers
from jurimetrics.variants.variant import Variant
from scripted_server import Answer, Call, FaultMix, ScriptedServer, reply, with_faults

RECORDS, PLACES = 40, 8
METRICS = ["coherence", "fluency", "f1"]
WRITING = {"429": 0.05, "500": 0.04, "503": 0.02, "drop": 0.03}
JUDGING = {**WRITING, "malformed": 0.05}
ANSWER = ["id", "variant", "answer", "answer_model", "answer_prompt_tokens", "answer_completion_tokens", "answer_error"]
SCORE = ["id", "variant", "metric", "judge", "repeat", "score", "passed", "status", "reason", "flags"]


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.limits.FIRST_WAIT_S", 0.01)


def records() -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{at:02}",
            "question": f"Who built mill {at}?",
            "contexts": [f"Monks built mill {at}."],
            "reference": "Monks.",
        }
        for at in range(RECORDS)
    ]


def written(call: Call) -> Answer:
    word = hashlib.sha256(f"{call.model} {call.prompt}".encode()).hexdigest()[:6]
    return reply(f"Monks built it, says {word}.", usage=(len(call.prompt) // 4, 9))


def rated(call: Call) -> Answer:
    """By the judge and the answer alone, so that a question in other words (asked again) brings the same score."""
    word = re.search(r"Monks built it, says (\w{6})", call.prompt)
    assert word is not None
    draw = int(hashlib.sha256(f"{call.model} {word[1]}".encode()).hexdigest()[:8], 16)
    return reply(json.dumps({"findings": "drawn", "score": 1 + draw % 5}), usage=(len(call.prompt) // 4, 12))


class Study:
    """A server that writes and judges; it counts good answers and interrupts the process at given requests."""

    def __init__(self, faults: bool, interrupts: Iterator[int]) -> None:
        self.writing: Any = with_faults(written, WRITING, seed=2, retry_after=0.02) if faults else written
        self.judging: Any = with_faults(rated, JUDGING, seed=3, retry_after=0.02) if faults else rated
        self.faults, self.interrupts, self.next = faults, interrupts, next(interrupts, None)
        self.answers = self.blanks = 0

    def __call__(self, call: Call) -> Answer:
        if self.next is not None and call.n >= self.next:
            self.next = next(self.interrupts, None)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        judges = call.schema is not None
        mix = self.judging if judges else self.writing
        if not judges and self.faults and call.tries == 0 and int(call.key[:4], 16) % 20 == 0:
            self.blanks += 1
            return reply(" ", usage=(9, 1))
        if not isinstance(mix, FaultMix) or mix.drawn(call.key, call.tries) is None:
            self.answers += 1
        return mix(call)


def variants(url: str) -> list[Variant]:
    prompts = [Prompt("short", "In short: {question}"), Prompt("full", "{contexts}\n\n{question}", system="Be exact.")]
    return Variant.grid(prompts, ["small", "large"], base_url=url, price=(1, 2), timeout=5.0)


def judged(answers: Answers, url: str, store: Path) -> jm.Results:
    judges = [jm.ChatJudge(name, base_url=url, price=(1, 2), timeout=5.0) for name in ("ada", "bob")]
    return jm.evaluate(answers, METRICS, jm.Panel(judges), store=store, concurrency=PLACES)


def told(answers: Answers) -> pd.DataFrame:
    from jurimetrics.records import records_frame

    return records_frame(answers)[ANSWER]


def test_faults_and_interrupts_change_no_table_and_nothing_answered_is_asked_twice(tmp_path: Path) -> None:
    with ScriptedServer(Study(faults=False, interrupts=iter(())), latency=0.002) as server:
        calm = generate(records(), variants(server.url), store=tmp_path / "calm.db", concurrency=PLACES)
        scored = judged(calm, server.url, tmp_path / "calm.db")
        unbroken = server.count

        server.forget()
        # Twice while answers are written, once while they are judged.
        study = Study(faults=True, interrupts=iter((40, 110, 260)))
        server.handler, store = study, tmp_path / "storm.db"
        sittings = []
        for _ in range(3):
            sittings.append(generate(records(), variants(server.url), store=store, concurrency=PLACES))
        answers = sittings[-1]
        first = judged(answers, server.url, store)
        results = judged(answers, server.url, store)
        while (results.scores["status"] == "failed").any() and server.count < 2_000:
            # Garbled twice is a failure of that row until the next run.
            results = judged(answers, server.url, store)

        assert [{one.answer_error for one in each.failed} for each in sittings] == [
            {"cancelled: interrupted"}, {"cancelled: interrupted"}, set(),
        ]  # fmt: skip
        assert first.settings["interrupted"] is True and results.settings["interrupted"] is False
        served = study.writing.served + study.judging.served
        assert set(served) == set(JUDGING) and sum(served.values()) > 50 and study.blanks > 3

        pd.testing.assert_frame_equal(told(answers), told(calm))
        pd.testing.assert_frame_equal(results.scores[SCORE], scored.scores[SCORE])
        pd.testing.assert_frame_equal(compare(results).frame, compare(scored).frame)
        assert answers.written_by == calm.written_by == results.settings["written_by"]

        # What was in flight at an interrupt was answered to nobody; nothing else comes again.
        assert unbroken == RECORDS * 4 * (1 + 2 * 2) <= study.answers <= unbroken + 3 * PLACES
        asked = server.count
        assert plan_answers(records(), variants(server.url), store=store).totals.calls == 0
        pd.testing.assert_frame_equal(told(generate(records(), variants(server.url), store=store)), told(calm))
        pd.testing.assert_frame_equal(judged(answers, server.url, store).scores[SCORE], scored.scores[SCORE])
        assert server.count == asked, "a finished study is replayed without a request"


def test_bill_of_a_broken_study_counts_every_request_once(tmp_path: Path) -> None:
    study = Study(faults=True, interrupts=iter((50,)))
    with ScriptedServer(study, latency=0.002) as server:
        store = tmp_path / "s.db"
        sittings = [generate(records(), variants(server.url), store=store, concurrency=PLACES) for _ in range(2)]
        sent = sum(one.totals().calls for one in sittings)
        # What was dropped at the interrupt has no row.
        assert server.count - PLACES <= sent <= server.count
    paid = sittings[0].totals().at_least_usd + sittings[1].totals().at_least_usd
    each = sum(one.answer_cost_usd or 0.0 for one in sittings[1])
    assert each <= paid <= each + study.blanks * 11e-6 + 1e-9
    calls = sittings[1].calls
    assert calls.loc[calls["from_store"], "saved_usd"].sum() == pytest.approx(
        sum(one.answer_cost_usd or 0.0 for one in sittings[0])
    )
