"""Long ones: twenty kills in one run, a mix of all faults, memory over many rows, an interrupt without an end."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from scripted_judge import ScriptedJudge, answer_all
from scripted_server import ScriptedServer, served_apart, with_faults
from test_endpoints import judge, records

COLUMNS = ["id", "variant", "metric", "judge", "repeat", "score", "passed", "status", "reason", "details"]
TASKS, KILLS, PLACES, SEED = 2_000, 20, 8, 7

SITTING = """
import sys, jurimetrics as jm
from test_endpoints import records
judge = jm.ChatJudge("scripted", base_url=sys.argv[1], price=0, timeout=10.0)
print("started", flush=True)
jm.evaluate(records(int(sys.argv[4])), ["coherence", "fluency"], judge, store=sys.argv[2], out=sys.argv[3], concurrency=8)
print("ended", flush=True)
"""


def sitting(url: str, folder: Path, count: int = TASKS // 2) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", SITTING, url, str(folder / "s.db"), str(folder / "out"), str(count)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def told(results: jm.Results) -> pd.DataFrame:
    frame: pd.DataFrame = results.scores[COLUMNS].sort_values(COLUMNS[:5]).reset_index(drop=True)
    return frame


@pytest.mark.slow
def test_z02_twenty_kills_in_one_run_lose_nothing_and_pay_nothing_twice(tmp_path: Path) -> None:
    draw, address = random.Random(SEED), ("--latency", "0.02", "--handler", "scripted_replies:valid")
    with served_apart(*address) as server:
        whole = tmp_path / "whole"
        with sitting(server.url, whole) as process:
            assert process.wait(300) == 0
        unbroken, port = server.stats()["requests"], server.url.split(":")[2].split("/")[0]
    # The same address, because it is a part of the key under which answers are kept.
    with served_apart(*address, "--port", port) as server:
        broken, in_flight = tmp_path / "broken", 0
        goals = sorted(draw.sample(range(20, TASKS - 100), KILLS))
        for goal in goals:
            with sitting(server.url, broken) as process:
                deadline = time.monotonic() + 120
                while server.stats()["requests"] < goal and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.005)
                time.sleep(draw.random() * 0.02)
                assert process.poll() is None, "it was to be killed before its end"
                os.kill(process.pid, signal.SIGKILL)
            in_flight += PLACES
        with sitting(server.url, broken) as process:
            assert process.wait(300) == 0
        requests = server.stats()["requests"]
    pd.testing.assert_frame_equal(told(jm.Results.load(whole / "out")), told(jm.Results.load(broken / "out")))
    assert unbroken == TASKS
    assert unbroken <= requests <= unbroken + in_flight


MIX = {"429": 0.05, "malformed": 0.03, "drop": 0.01, "500": 0.01, "hang": 0.005}


@pytest.mark.slow
def test_mix_of_faults_loses_none_of_4000_scores() -> None:
    from scripted_replies import valid

    faulty = with_faults(valid, MIX, seed=3, retry_after=1)
    with ScriptedServer(faulty, latency=0.02, keep=False) as server:
        results = jm.evaluate(
            records(2_000), ["coherence", "fluency"], judge(server, timeout=2.0), store=None, concurrency=32
        )
        served = sum(faulty.served.values())
        assert set(faulty.served) == set(MIX) and served > 300
        assert len(results.scores) == 4_000 and (results.scores["status"] == "ok").all()
        assert server.in_flight_max <= 32
        assert server.count - 4_000 <= 1.2 * served


@pytest.mark.slow
def test_z08_memory_is_flat_in_the_number_of_rows() -> None:
    script = Path(__file__).parents[1] / "benchmarks" / "memory.py"
    command = [sys.executable, str(script), "--rows", "10000", "--bytes", "20000"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=900)
    curve = [[float(cell) for cell in line.split()] for line in done.stdout.splitlines()[1:]]
    now = {int(line[0]): line[1] for line in curve}
    most = max(line[2] for line in curve)
    # 160 MB of answers go by after the first 2,000 rows.
    assert max(now[at] for at in now if at >= 2_000) - now[2_000] < 40, done.stdout
    assert most < 350, done.stdout


def endless(read: list[int]) -> Iterator[dict[str, Any]]:
    for at in itertools.count():
        read.append(at)
        yield {"id": str(at), "answer": f"Mill {at} was built of stone."}


def test_iterator_without_an_end_ends_at_an_interrupt() -> None:
    read: list[int] = []

    def script(task: Any, repeat: int) -> Any:
        if "Mill 100 " in str(task.data):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return answer_all(task)

    results = jm.evaluate(
        endless(read), ["coherence"], ScriptedJudge("ada", script, delay=0.001), store=None, concurrency=8
    )
    assert results.settings["interrupted"] and len(results.scores) == results.settings["records"] <= len(read)
    assert (results.scores["status"] == "ok").sum() >= 80
    assert not [thread for thread in threading.enumerate() if thread.name == "jurimetrics-evaluate"]
