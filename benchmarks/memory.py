"""Memory of an evaluation over many long rows that come from an iterator, by rows done so far.

    python benchmarks/memory.py [--rows 100000] [--bytes 20000] [--in-memory]

Prints a curve: rows, resident memory now and at most, in MB. Each row's answer has `--bytes` bytes; the judge is
scripted and answers at once, so what is measured is the engine with its store, its rows and its results on disk.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import jurimetrics as jm
from jurimetrics.judges.judge import JudgeError, Reply, Request, Trace, Usage
from scripted_judge import ScriptedJudge

SENTENCE = "The mill on the upper river was built of grey stone and ground rye for the three villages below it. "
POINTS = 20


class Answering(ScriptedJudge):
    """Gives one reply to every rating, fails one in a hundred, and keeps nothing."""

    async def attempt(self, request: Request, session: Any) -> Reply:
        data = {"findings": "as scripted " * 20, "score": 4}
        trace = Trace(Usage(5_000, 60), 0.01, "scripted", cost_usd=0.001)
        if hash(request.task) % 100 == 0:
            raise JudgeError("unparsed", "as scripted", trace=Trace(Usage(5_000, 60), raw="long " * 4_000))
        return Reply(request.task.read(data), data, trace)


def resident_mb() -> float:
    """Resident memory now; where the system does not tell, the most so far."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return peak_mb()
    return int(pages.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / 1e6


def peak_mb() -> float:
    """The most memory so far, of this program alone: what getrusage says also holds the most of whoever started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def rows(count: int, size: int) -> Iterator[dict[str, Any]]:
    started = time.monotonic()
    for at in range(count):
        if at % max(1, count // POINTS) == 0:
            print(f"{at:>8} {resident_mb():>10.1f} {peak_mb():>10.1f} {time.monotonic() - started:>9.1f}", flush=True)
        yield {
            "id": f"record-{at}",
            "answer": f"Mill {at}. " + SENTENCE * (size // len(SENTENCE)),
            "question": "Which?",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--bytes", type=int, default=20_000)
    parser.add_argument("--in-memory", action="store_true", help="no store file")
    options = parser.parse_args()
    print(f"{'rows':>8} {'now, MB':>10} {'most, MB':>10} {'seconds':>9}")
    with tempfile.TemporaryDirectory() as folder:
        jm.evaluate(
            rows(options.rows, options.bytes),
            ["coherence"],
            Answering("scripted", lambda task, _: None),
            store=None if options.in_memory else Path(folder) / "s.db",
            out=Path(folder) / "out",
            progress=False,
        )
    print(f"{options.rows:>8} {resident_mb():>10.1f} {peak_mb():>10.1f}")


if __name__ == "__main__":
    main()
