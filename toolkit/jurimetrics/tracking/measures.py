"""What a run shows in MLflow's columns: its metrics in the order of the page, its params, its tags."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jurimetrics.results import Results
from jurimetrics.results.reading import headline_judge
from jurimetrics.tracking.names import decode, encode, metric_name
from jurimetrics.tracking.written import writer_params

MOST_METRICS = 99
LONGEST_VALUE = 500
COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The frames of some results, read once for all their runs.

    `headline`: metric -> the judge whose mean stands for it: the panel, or the only judge there is; metrics that several
    judges scored without a panel have none. `folder` holds the parts that the frames were read from.
    """

    folder: Path
    settings: Mapping[str, Any]
    records: pd.DataFrame
    scores: pd.DataFrame
    summary: pd.DataFrame
    indicators: pd.DataFrame
    notes: tuple[str, ...]
    headline: Mapping[str, str]

    @classmethod
    def of(cls, results: Results) -> Evaluation:
        """Read what runs are made of."""
        settings, summary = results.settings, results.summary()
        chosen = {
            str(metric): headline_judge(list(lines["judge"]), settings)
            for metric, lines in summary.groupby("metric", sort=False)
        }
        return cls(
            folder=results.folder,
            settings=settings,
            records=results.records,
            scores=results.scores,
            summary=summary,
            indicators=results.indicators("variant"),
            notes=tuple(results.notes()),
            headline={metric: judge for metric, judge in chosen.items() if judge is not None},
        )

    @property
    def variants(self) -> list[str]:
        """The variants in the order of the settings, those that they do not name after them."""
        declared = self.settings.get("variants") or ()
        return [
            name
            for name in dict.fromkeys([*declared, *self.records["variant"]])
            if name in set(self.records["variant"])
        ]

    def only(self, variant: str) -> Evaluation:
        """The same of one variant."""
        records, scores, summary, indicators = (
            frame[frame["variant"] == variant].reset_index(drop=True)
            for frame in (self.records, self.scores, self.summary, self.indicators)
        )
        return replace(self, records=records, scores=scores, summary=summary, indicators=indicators)

    def kinds(self) -> dict[tuple[str, str], str]:
        """(metric, judge) -> "LLM_JUDGE" where a model judged, "CODE" where a rule did."""
        ruled = {name for name, judge in self.settings["judges"].items() if judge.get("kind") in ("baseline", COMPUTED)}
        panel = self.settings.get("panel")
        if panel and set(panel["members"]) <= ruled:
            ruled.add(panel["name"])
        pairs = self.scores[["metric", "judge"]].drop_duplicates().itertuples(index=False, name=None)
        return {(m, judge): "CODE" if judge in ruled | {COMPUTED} else "LLM_JUDGE" for m, judge in pairs}


class Measures(NamedTuple):
    """The metrics of a run in their order, and how many were left out to keep them under a hundred."""

    values: dict[str, float]
    left_out: int


def measures(part: Evaluation) -> Measures:
    """The metrics of one variant: headlines, then each metric's judges and figures, then what it took.

    Undefined values are left out. Where there are more than 99, the intervals go first, then judges, pass rates and
    counts: all of them stand in the summary among the artifacts.
    """
    found = [line for line in _lines(part) if line.value is not None]
    kept = sorted(range(len(found)), key=lambda at: found[at].rank)[:MOST_METRICS]
    values = {found[at].name: found[at].value or 0.0 for at in sorted(kept)}
    return Measures(values, len(found) - len(values))


class _Line(NamedTuple):
    rank: int  # how soon it may be left out: the highest first
    name: str
    value: float | None


def _lines(part: Evaluation) -> Iterator[_Line]:
    for line in part.summary.to_dict("records"):
        if part.headline.get(line["metric"]) == line["judge"]:
            yield _Line(0, metric_name(line["metric"]), rounded(line["mean"]))
    for metric, lines in part.summary.groupby("metric", sort=False):
        # The headline's judge too: the chart view draws no metric without "/" as soon as there is one with it.
        for line in sorted(lines.to_dict("records"), key=lambda line: line["judge"] != part.headline.get(str(metric))):
            yield _Line(4, metric_name(str(metric), judge=line["judge"]), rounded(line["mean"]))
        for line in lines.to_dict("records"):
            if part.headline.get(str(metric)) == line["judge"]:
                for rank, figure in ((3, "pass_rate"), (2, "n"), (2, "missing"), (5, "low"), (5, "high")):
                    yield _Line(rank, metric_name(str(metric), figure), rounded(line[figure]))
    for name, value in {**_judging(part), **_answers(part)}.items():
        yield _Line(1, name, rounded(value, 6))


def _judging(part: Evaluation) -> dict[str, Any]:
    scores = part.scores
    asked = scores[(scores["judge_calls"] > 0) | (scores["cached_calls"] > 0)]
    cost = scores["judge_cost_usd"].to_numpy(dtype=np.float64)
    tokens = (scores["judge_prompt_tokens"] + scores["judge_completion_tokens"]).to_numpy(dtype=np.float64)
    known = math.fsum(cost[~np.isnan(cost)])
    return {
        "judging/cost_usd": known if not np.isnan(cost).any() else None,
        "judging/cost_usd_at_least": known if np.isnan(cost).any() and known else None,
        "judging/tokens": None if np.isnan(tokens).any() else tokens.sum(),
        "judging/latency_s": asked["judge_latency_s"].mean() if len(asked) else None,
        "judging/failed_rows": (scores["status"] == "failed").sum(),
    }


def _answers(part: Evaluation) -> dict[str, Any]:
    """What the answers of one variant took themselves, means over those of which it is known; never part of a score."""
    mean, total, some = (part.indicators.set_index("indicator")[name] for name in ("mean", "total", "at_least"))
    found: dict[str, Any] = {
        "answers/latency_s": mean["answer_latency_s"],
        "answers/latency_s_p95": part.records["answer_latency_s"].dropna().astype("float64").quantile(0.95),
        "answers/context_relevance": mean["context_relevance"],
    }
    for kind in ("prompt_tokens", "completion_tokens", "tokens", "cost_usd"):
        name = f"answer_{kind}"
        found[f"answers/{kind}"] = mean[name]
        found[f"answers/{kind}_total"] = total[name]
        found[f"answers/{kind}_total_at_least"] = some[name] if math.isnan(total[name]) else None
    # "failed" means something only where answers were generated under watch.
    watched = part.records["answer_latency_s"].notna().any() or part.records["answer_error"].notna().any()
    return {**found, "answers/failed": part.records["answer_error"].notna().sum() if watched else None}


def rounded(value: object, digits: int = 4) -> float | None:
    """`value` as MLflow can show it: a finite number, rounded; None for whatever is not a number.

    >>> [rounded(value) for value in (0.123456, float("nan"), float("inf"), None, "0.5", True)]
    [0.1235, None, None, None, None, None]
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return None
    return round(float(value), digits) if math.isfinite(float(value)) else None


def reasons(part: Evaluation) -> dict[str, str]:
    """Tags that say of each metric why it has no score in some rows."""
    found = {}
    rows = part.scores[part.scores["status"] != "ok"]
    for metric, lacking in rows.groupby("metric", sort=False):
        said = [
            f"{status} {len(same)} ({_most(same['error'] if status == 'failed' else same['reason'])})"
            for status, same in lacking.groupby("status", sort=True)
        ]
        asked = int((part.scores["metric"] == metric).sum())
        text = f"{len(lacking)} of {asked} rows without a score: " + "; ".join(said)
        found[f"missing.{encode(str(metric))}"] = clip(text)
    return found


def _most(texts: pd.Series[Any]) -> str:
    counts = texts.value_counts()
    first = str(counts.index[0]) or "no reason given"
    return first if len(counts) == 1 else f"{first}, and {len(counts) - 1} other reasons"


def changed_names(names: Iterator[str] | list[str]) -> dict[str, str]:
    """Tags that give the own name of every metric and judge whose MLflow name is another."""
    return {f"name.{encode(name)}": clip(name, 5000) for name in names if decode(encode(name)) != encode(name)}


def params(whole: Evaluation, part: Evaluation) -> dict[str, str]:
    """The params of one run: what differs between the variants first, then how they were judged."""
    settings = part.settings
    variant = str(part.records["variant"].iloc[0])
    found = {"variant": variant, **writer_params(settings, variant), **_varying(whole, part)}
    found["judges"] = ", ".join(settings["judges"])
    for name, judge in settings["judges"].items():
        if judge.get("model"):
            found[f"judge.{encode(name)}"] = str(judge["model"])
    panel = settings.get("panel")
    if panel:
        found["panel"] = f"{panel['rule']} of {len(panel['members'])}, on {panel['vote_on']}, quorum {panel['quorum']}"
    for name, metric in settings["metrics"].items():
        if metric.get("threshold") is not None:
            found[f"threshold.{encode(name)}"] = f"{metric['threshold']:g}"
    for name, prompt in (settings.get("prompts") or {}).items():
        found[f"prompt.{encode(name)}"] = digest(prompt)
    found["reference_model"] = ", ".join(settings.get("reference_models") or ())
    for name in ("repeats", "reason_language", "data_digest", "jurimetrics"):
        if settings.get(name) is not None:
            found[name] = str(settings[name])
    return {name: clip(value) for name, value in found.items() if value}


def _varying(whole: Evaluation, part: Evaluation) -> dict[str, str]:
    """What is the same in all records of each variant but not in all variants, and the model in any case."""
    described = {variant: _constants(whole.only(variant).records) for variant in whole.variants}
    mine = described[part.records["variant"].iloc[0]]
    return {
        name: value
        for name, value in mine.items()
        if name == "answer_model" or len({other.get(name) for other in described.values()}) > 1
    }


def _constants(records: pd.DataFrame) -> dict[str, str]:
    rows = [json.loads(text) if isinstance(text, str) and text else {} for text in records["metadata"]]
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    columns = {f"answer.{encode(name)}": values for name, values in columns.items()}
    columns["answer_model"] = list(records["answer_model"].astype(object).where(records["answer_model"].notna(), None))
    texts = {
        name: {json.dumps(value, sort_keys=True, default=str) for value in values} for name, values in columns.items()
    }
    same = {name: columns[name][0] for name in columns if len(texts[name]) == 1}
    return {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        for name, value in same.items()
        if value is not None
    }


def digest(value: object) -> str:
    """The first 16 hex digits of the SHA-256 of a value's canonical JSON.

    >>> digest({"a": 1})
    '015abd7f5cc57a2d'
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def clip(text: str, most: int = LONGEST_VALUE) -> str:
    """`text`, cut visibly where it is longer than a column can show.

    >>> clip("abcdef", 20), clip("a" * 30, 20)
    ('abcdef', 'aaaaaa … (cut at 20)')
    """
    mark = f" … (cut at {most})"
    return text if len(text) <= most else text[: most - len(mark)] + mark
