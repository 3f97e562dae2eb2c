"""How long what is planned takes: endpoints side by side, each as far as its limits allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from jurimetrics.engine.planned import Span
from jurimetrics.engine.setup import places_of
from jurimetrics.judges.judge import Judge


def timed(frame: pd.DataFrame, asked: Mapping[str, Judge], concurrency: int) -> pd.DataFrame:
    """A plan's frame with `seconds` as parts of the time at the endpoint; `asked` says who stands behind a line's name."""
    places = places_of(asked.values(), concurrency)
    for key, names in _by_endpoint(asked).items():
        here = frame["judge"].isin(names)
        calls = float(frame.loc[here, "calls"].sum())
        for end in Span._fields:
            spent = frame.loc[here, f"seconds_{end}"] / max(1.0, min(places[key], calls))
            tokens = frame.loc[here, [f"prompt_tokens_{end}", f"completion_tokens_{end}"]].to_numpy().sum()
            judges = [asked[name] for name in names]
            bound = max([60 * calls / limit for limit in _limits(judges, "requests_per_minute")] or [0.0])
            bound = max([bound, *(60 * tokens / limit for limit in _limits(judges, "tokens_per_minute"))])
            slower = max(1.0, bound / spent.sum()) if spent.sum() else 1.0
            frame.loc[here, f"seconds_{end}"] = spent * slower
    return frame


def walls_of(frame: pd.DataFrame, asked: Mapping[str, Judge]) -> Span:
    """The time of the slowest endpoint."""
    walls = [
        frame.loc[frame["judge"].isin(names), ["seconds_low", "seconds_high"]].sum()
        for names in _by_endpoint(asked).values()
    ]
    ends = (max((float(wall[f"seconds_{end}"]) for wall in walls), default=0.0) for end in Span._fields)
    return Span(*ends)


def _by_endpoint(asked: Mapping[str, Judge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, judge in asked.items():
        assert judge.endpoint is not None
        found.setdefault(judge.endpoint.key, []).append(name)
    return found


def _limits(judges: Sequence[Judge], name: str) -> list[float]:
    limits = [getattr(judge.endpoint, name) for judge in judges]
    return [limit for limit in limits if limit is not None]
