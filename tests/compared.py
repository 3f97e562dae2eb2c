"""Hand-made scores of variants, for the tests of comparisons."""

from __future__ import annotations

from typing import Any

import pandas as pd
from jurimetrics import Results

GRADE = {"grade": {"range": (0, 1), "threshold": 0.5}}
A = [0.2, 0.4, 0.6, 0.5, 0.3, 0.7, 0.4, 0.5, 0.6, 0.2]
B = [0.4, 0.5, 0.9, 0.5, 0.6, 0.8, 0.4, 0.9, 0.7, 0.1]


def rows(metric: str = "grade", judge: str = "ann", **scores: list[float | None]) -> list[dict[str, Any]]:
    return [
        {"id": f"r{at:02}", "variant": name, "metric": metric, "judge": judge, "score": score}
        for name, each in scores.items()
        for at, score in enumerate(each)
    ]


def results(lines: list[dict[str, Any]], metrics: Any = None) -> Results:
    return Results.from_frame(pd.DataFrame(lines), GRADE if metrics is None else metrics)
