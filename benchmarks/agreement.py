"""How long `agreement` takes: 6,400 labelled rows, 3 raters, 6 judges, 2,000 resamples by group. Needs nothing.

    python benchmarks/agreement.py

Made-up ratings of 100 documents x 16 systems x 4 criteria on a scale of 1 to 5. Printed for each level: seconds of the
whole call (labels joined, every estimate with its interval), and seconds of processor time, all cores together. The
latter are compared with what is allowed: on a machine that does nothing else the call takes no longer than they say.
"""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
import pandas as pd
from jurimetrics import Results, agreement, load_labels

ALLOWED = 10.0
DOCUMENTS, SYSTEMS, CRITERIA, JUDGES, RATERS = 100, 16, 4, 6, 3
LEVELS: tuple[Literal["group", "pooled", "system"], ...] = ("group", "pooled", "system")


def rated() -> tuple[Results, pd.DataFrame]:
    draw = np.random.default_rng(0)
    keys = pd.MultiIndex.from_product(
        [
            [f"d{at}" for at in range(DOCUMENTS)],
            [f"s{at}" for at in range(SYSTEMS)],
            [f"c{at}" for at in range(CRITERIA)],
        ],
        names=["id", "variant", "metric"],
    )
    rows = keys.to_frame(index=False)
    truth = draw.normal(3, 1, len(rows))

    def told(error: float) -> np.ndarray:
        return np.clip(np.round(truth + draw.normal(0, error, len(rows))), 1, 5)

    scores = pd.concat(
        rows.assign(judge=f"judge {at}", score=told(0.6 + at / 5), group=rows["id"]) for at in range(JUDGES)
    )
    people = pd.concat(rows.assign(rater=f"rater {at}", label=told(0.7)) for at in range(RATERS))
    declared = {f"c{at}": {"range": (1, 5), "threshold": 3} for at in range(CRITERIA)}
    return Results.from_frame(scores, declared), load_labels(people, selection="random")


def main() -> None:
    results, labels = rated()
    rows = DOCUMENTS * SYSTEMS * CRITERIA
    print(f"{rows:,} rows x {JUDGES} judges, {RATERS} raters, 2,000 resamples of {DOCUMENTS} groups")
    slowest = 0.0
    for level in LEVELS:
        started, worked = time.perf_counter(), time.process_time()
        found = agreement(results, labels, level=level)
        seconds, busy = time.perf_counter() - started, time.process_time() - worked
        slowest = max(slowest, busy)
        told = f"{len(found.lines)} lines, {sum(len(line.estimates) for line in found.lines):,} estimates"
        print(f"{level:>8}: {seconds:5.1f} s, {busy:5.1f} s of processor time for {told}")
    print(f"most processor time {slowest:.1f} s; allowed {ALLOWED:.0f} s")
    if slowest > ALLOWED:
        raise SystemExit(f"agreement took {slowest:.1f} s of processor time, {ALLOWED:.0f} s are allowed")


if __name__ == "__main__":
    main()
