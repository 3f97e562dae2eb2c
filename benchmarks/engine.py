"""The engine beside a bare loop of the same client, in one run: CPU per call, wall over ideal, replay from the store,
and the same work at an endpoint with faults of all kinds.

    python benchmarks/engine.py [--calls 2000] [--latency 0.05] [--records 1000] [--faulty 4000]

Prints a table. Figures depend on the machine; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import jurimetrics as jm
from openai import AsyncOpenAI, DefaultAioHttpClient
from scripted_server import served_apart

TEXT = "The mill on the upper river was built of grey stone and ground rye for the three villages below it. "


@dataclass(frozen=True)
class Measured:
    """CPU and wall seconds of a number of calls."""

    what: str
    in_flight: int
    calls: int
    cpu_s: float
    wall_s: float
    latency_s: float

    def row(self) -> str:
        ideal = self.calls * self.latency_s / self.in_flight
        return (
            f"{self.what:<34} {self.in_flight:>9} {self.calls:>6} {1000 * self.cpu_s / self.calls:>12.3f} "
            f"{self.wall_s / ideal:>11.2f}"
        )


def records(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": str(at),
            "question": f"Who built mill {at}?",
            "answer": f"{TEXT}It has {at} wheels.",
            "contexts": [TEXT * 8],
        }
        for at in range(count)
    ]


async def bare_loop(url: str, calls: int, in_flight: int, prompts: list[list[dict[str, str]]], schema: Any) -> None:
    """What anybody would write: one client, a semaphore, gather."""
    places = asyncio.Semaphore(in_flight)
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=DefaultAioHttpClient()) as client:

        async def one(at: int) -> None:
            async with places:
                answer = await client.chat.completions.create(
                    model="bare", messages=prompts[at % len(prompts)], response_format=schema, temperature=0.0
                )
                json.loads(answer.choices[0].message.content)

        await asyncio.gather(*(one(at) for at in range(calls)))


def measure(what: str, in_flight: int, calls: int, latency: float, work: Any) -> Measured:
    cpu, wall = time.process_time(), time.monotonic()
    work()
    return Measured(what, in_flight, calls, time.process_time() - cpu, time.monotonic() - wall, latency)


def prompts_and_schema(count: int) -> tuple[list[list[dict[str, str]]], dict[str, Any]]:
    """The very messages that `coherence` sends for these records."""
    from jurimetrics.metrics import coherence
    from jurimetrics.metrics.prompts import tasks_of

    task = tasks_of(coherence)[0]
    schema = {"type": "json_schema", "json_schema": {"name": "rate", "strict": True, "schema": task.schema}}
    return [task.messages() for _ in range(count)], schema


def compare(url: str, calls: int, latency: float, in_flight: int) -> list[Measured]:
    prompts, schema = prompts_and_schema(4)
    judge = jm.ChatJudge("scripted", base_url=url, price=0)
    given = jm.load_records(records(calls))

    def evaluate() -> None:
        with tempfile.TemporaryDirectory() as folder:
            results = jm.evaluate(
                given, ["coherence"], judge, store=Path(folder) / "s.db", concurrency=in_flight, progress=False
            )
            assert (results.scores["status"] == "ok").all()

    return [
        measure(
            "bare loop, openai on aiohttp", in_flight, calls, latency,
            lambda: asyncio.run(bare_loop(url, calls, in_flight, prompts, schema)),
        ),
        measure("evaluate, with store and frames", in_flight, calls, latency, evaluate),
    ]  # fmt: skip


def replay(url: str, count: int) -> str:
    """1,000 records x 5 metrics x 3 judges from the store."""
    judges = [jm.ChatJudge(name, base_url=url, price=0) for name in ("a", "b", "c")]
    metrics = ["faithfulness", "hallucination", "context_precision", "coherence", "fluency"]
    given = [record | {"reference": "The villagers built it."} for record in records(count)]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "s.db"
        jm.evaluate(given, metrics, judges, store=store, concurrency=64, progress=False)
        started, cpu = time.monotonic(), time.process_time()
        results = jm.evaluate(given, metrics, judges, store=store, concurrency=64, progress=False)
        seconds, cpu = time.monotonic() - started, time.process_time() - cpu
        fresh = int((~results.calls["from_store"]).sum())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return (
            f"replay of {count} records x 5 metrics x 3 judges: {seconds:.2f} s ({cpu:.2f} s of CPU), {fresh} requests, "
            f"{len(results.scores)} rows, peak memory {peak:.0f} MB"
        )


MIX = {"429": 0.05, "malformed": 0.03, "drop": 0.01, "500": 0.01, "hang": 0.005}


def with_and_without_faults(latency: float, count: int, in_flight: int = 64) -> str:
    """The same scores with no fault and with every tenth request failed; the call timeout is a quarter of the wall."""
    said, wall = [], 4 * 60.0
    for rates in ({}, MIX):
        options = ("--latency", str(latency), "--handler", "scripted_replies:valid", "--faults", json.dumps(rates))
        with served_apart(*options) as server:
            judge = jm.ChatJudge("scripted", base_url=server.url, price=0, timeout=wall / 4)
            started = time.monotonic()
            results = jm.evaluate(
                records(count), ["coherence"], judge, store=None, concurrency=in_flight, progress=False
            )
            seconds, stats = time.monotonic() - started, server.stats()
        lost = int((results.scores["status"] != "ok").sum())
        served = sum(stats["faults"].values())
        more = f", {(stats['requests'] - count) / served:.2f} more requests per fault" if served else ""
        said.append(
            f"{count} scores, {served} faults: {lost} lost, {seconds:.2f} s ({seconds / wall if served else 1:.2f} x), "
            f"{stats['requests']} requests{more}, {stats['in_flight_max']} in flight at most"
        )
        wall = seconds
    return "\n".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--faulty", type=int, default=4000)
    options = parser.parse_args()
    with served_apart("--latency", str(options.latency), "--handler", "scripted_replies:valid") as server:
        print(f"{'':<34} {'in flight':>9} {'calls':>6} {'CPU ms/call':>12} {'wall/ideal':>11}")
        for in_flight in (64, 256):
            bare, ours = compare(server.url, options.calls, options.latency, in_flight)
            print(bare.row(), ours.row(), sep="\n")
            print(
                f"{'ratio':<34} {in_flight:>9} {'':>6} {ours.cpu_s / bare.cpu_s:>12.2f} {ours.wall_s / bare.wall_s:>11.2f}"
            )
    with served_apart("--latency", "0", "--handler", "scripted_replies:valid") as server:
        print(replay(server.url, options.records))
    print(with_and_without_faults(options.latency, options.faulty))


if __name__ == "__main__":
    main()
