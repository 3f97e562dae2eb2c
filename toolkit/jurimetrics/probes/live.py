"""Probes that ask: changed records are evaluated like any others, and each score is compared with that of its control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from jurimetrics.engine.evaluate import evaluate
from jurimetrics.engine.options import StoreChoice
from jurimetrics.engine.plan import plan
from jurimetrics.engine.planned import Plan
from jurimetrics.engine.setup import Judges, Metrics
from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Judge
from jurimetrics.metrics import context_average_precision, resolve
from jurimetrics.metrics.metric import Metric
from jurimetrics.probes.perturbed import Perturbed, appealing, padded, reformatted, reordered
from jurimetrics.probes.report import ProbeLine, ProbeReport, report
from jurimetrics.results import Results
from jurimetrics.stats.finding import mean_differences
from jurimetrics.stats.multiple import Procedure

_COMPUTED = "computed"
_KEY = ["id", "of", "metric", "judge"]


class Asked(TypedDict, total=False):
    """What `evaluate` takes besides records, metrics and judges, with the same meaning and defaults."""

    store: StoreChoice
    concurrency: int
    retries: int
    retry_failed: bool
    budget: float | Mapping[str, float] | None
    repeats: int
    embedder: Judge | None
    out: str | Path | None
    reason_language: str | None
    progress: bool


class Planned(TypedDict, total=False):
    """What `plan` takes besides records, metrics and judges, with the same meaning and defaults."""

    store: StoreChoice
    repeats: int
    embedder: Judge | None
    concurrency: int
    reason_language: str | None
    retry_failed: bool
    sample: int


def verbosity(
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    share: float = 1.0,
    method: Procedure = "holm",
    level: float = 0.95,
    **asked: Unpack[Asked],
) -> ProbeReport:
    """What judges give for empty words: answers padded with sentences that add no fact, less the answers as they were.

    `share`: by how much of its length an answer grows (see `padded`). The difference is in the unit of the metric;
    above 0 (below, where lower is better) the judge pays for length. A metric that counts claims may rightly fall where a
    judge takes an empty sentence for a claim.

    `metrics`: those that see the answer and that judges score; others are left aside, and `notes` say so. p is by sign
    flips of groups, adjusted by `method` over metrics and judges; intervals are at `level`, each alone. `asked`: store,
    budget, repeats and whatever else `evaluate` takes; what was scored before comes from the store. To see the price
    first: `probes.plan(probes.padded(records), metrics, judges)`. Rows that fail leave their pair out and are counted.

    Raises `InputError` as `evaluate` does, where no record can be changed and where no metric is left.

    >>> from jurimetrics import BaselineJudge
    >>> records = [{"id": at, "answer": f"The lock was built in {1800 + at}."} for at in range(10)]
    >>> found = verbosity(records, "readability", BaselineJudge(), store=None)
    >>> found.line().estimate.value, found.calls
    (0.0, 0)
    """
    return _probe(padded(records, share=share), metrics, judges, method, level, asked)


def format(  # noqa: A001 - the probe's own word
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    method: Procedure = "holm",
    level: float = 0.95,
    **asked: Unpack[Asked],
) -> ProbeReport:
    """What judges give for Markdown: the answer under a heading and as a list of its own sentences, less as it was.

    Two effects, see `reformatted`. Everything else as for `verbosity`.

    >>> from jurimetrics import BaselineJudge
    >>> records = [{"id": at, "answer": f"The lock was built in {1800 + at}. It lifts boats."} for at in range(10)]
    >>> sorted({line.effect for line in format(records, "readability", BaselineJudge(), store=None).lines})
    ['bullets - as it was', 'heading - as it was']
    """
    return _probe(reformatted(records), metrics, judges, method, level, asked)


def injection(
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    language: str | None = None,
    method: Procedure = "holm",
    level: float = 0.95,
    **asked: Unpack[Asked],
) -> ProbeReport:
    """What judges give for being begged or ordered: answers that end in a plea or an order, less those that end in a
    neutral sentence as long.

    Two effects, see `appealing`; `language` ("en", "de", "fr", "es") puts both into one language for all records.
    Everything else as for `verbosity`.

    >>> from jurimetrics import BaselineJudge
    >>> records = [{"id": at, "answer": f"The lock was built in {1800 + at}."} for at in range(10)]
    >>> [line.estimate.value for line in injection(records, "readability", BaselineJudge(), store=None).lines]
    [0.0, 0.0]
    """
    return _probe(appealing(records, language=language), metrics, judges, method, level, asked)


def order(
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    seed: int = 0,
    method: Procedure = "holm",
    level: float = 0.95,
    **asked: Unpack[Asked],
) -> ProbeReport:
    """What the order of the documents does to scores that should not depend on it: documents permuted, less as given.

    `metrics`: those that see the documents; `context_average_precision` goes by their order itself and is left aside.
    Everything else as for `verbosity`.

    >>> from jurimetrics import BaselineJudge
    >>> documents = ["The lock was built in 1889.", "It lifts boats by four metres."]
    >>> records = [{"id": at, "answer": "The lock lifts boats.", "contexts": documents} for at in range(10)]
    >>> order(records, "faithfulness", BaselineJudge(), store=None).line().estimate.value
    0.0
    """
    return _probe(reordered(records, seed=seed), metrics, judges, method, level, asked)


def plan_probe(made: Perturbed, metrics: Metrics, judges: Judges, **asked: Unpack[Planned]) -> Plan:
    """What a probe would ask and cost: `made` is what `padded`, `reformatted`, `appealing` or `reordered` gave.

    Arguments, result and errors as of `plan`.

    >>> from jurimetrics import ChatJudge
    >>> judge = ChatJudge("gpt-4.1-mini", base_url="http://127.0.0.1:9/v1")
    >>> plan_probe(padded([{"answer": "The lock was built in 1889."}]), "fluency", judge, store=None).totals.calls
    2
    """
    return plan(made.records, _usable(made, metrics)[0], judges, **asked)


def measured(made: Perturbed, results: Results, method: Procedure = "holm", level: float = 0.95) -> ProbeReport:
    """The report of changed records that were evaluated: every change less its control, record by record.

    Repeats are averaged first. Raises `InputError` where the results hold none of the records.

    >>> from jurimetrics import BaselineJudge
    >>> made = padded([{"answer": "The lock was built in 1889."}])
    >>> measured(made, evaluate(made.records, ["fluency"], BaselineJudge(), store=None)).line().estimate.n
    1
    """
    rows = _by_arm(made, results)
    control, *changes = made.arms
    lines = [
        _line(arm, control, str(metric), str(judge), here, results, level)
        for (metric, judge), here in rows.groupby(["metric", "judge"], sort=False, observed=True)
        for arm in changes
        if (here["arm"] == arm).any()
    ]
    totals = results.totals()
    return report(
        made.probe, lines, _notes(lines, control), method, left_out=made.left_out, calls=totals.calls,
        cost_usd=totals.cost_usd, at_least_usd=totals.at_least_usd, results=results,
    )  # fmt: skip


def _probe(
    made: Perturbed, metrics: Metrics, judges: Judges, method: Procedure, level: float, asked: Asked
) -> ProbeReport:
    usable, notes = _usable(made, metrics)
    found = measured(made, evaluate(made.records, usable, judges, **asked), method, level)
    return report(
        made.probe, found.lines, [*found.notes, *notes], method, left_out=found.left_out, calls=found.calls,
        cost_usd=found.cost_usd, at_least_usd=found.at_least_usd, results=found.results,
    )  # fmt: skip


def _usable(made: Perturbed, metrics: Metrics) -> tuple[list[Metric], list[str]]:
    """The metrics that can show the effect, and a note on those that cannot."""
    aside: dict[str, list[str]] = {}
    usable = []
    for metric in resolve(metrics):
        if metric.together:
            aside.setdefault("it compares variants, and the changed answer would be one", []).append(metric.name)
        elif not metric.judged:
            aside.setdefault("no judge scores it", []).append(metric.name)
        elif made.field not in metric.needs:
            aside.setdefault(f"it does not see the {made.field}", []).append(metric.name)
        elif made.field == "contexts" and metric.name.partition("(")[0] == context_average_precision.name:
            aside.setdefault("it goes by the order itself", []).append(metric.name)
        else:
            usable.append(metric)
    notes = [f"Left aside: {', '.join(names)} ({why})." for why, names in aside.items()]
    if not usable:
        raise InputError(f"{made.probe}: no metric is left. {' '.join(notes)}")
    return usable, notes


def _by_arm(made: Perturbed, results: Results) -> pd.DataFrame:
    """One row for each record, arm, metric and judge: id, of (the original variant), arm, group, score (NaN: none)."""
    scores = results.scores
    scores = scores[(scores["judge"] != _COMPUTED) & (scores["status"] != "not_applicable")]
    places = [made.places.get(key) for key in zip(scores["id"], scores["variant"], strict=True)]
    known = np.array([place is not None for place in places], dtype=bool)
    if not known.any():
        raise InputError(f"{made.probe}: the results hold no scores of these records")
    found = scores[known].assign(
        of=[place[0] for place in places if place is not None], arm=[place[1] for place in places if place is not None]
    )
    found["score"] = found["score"].where(found["status"] == "ok")
    return (
        found.groupby([*_KEY, "arm"], sort=False).agg(group=("group", "first"), score=("score", "mean")).reset_index()
    )


def _line(
    arm: str, control: str, metric: str, judge: str, rows: pd.DataFrame, results: Results, level: float
) -> ProbeLine:
    wide = rows.pivot(index=["id", "of"], columns="arm", values="score")
    asked = wide.index.isin(pd.MultiIndex.from_frame(rows.loc[rows["arm"] == arm, ["id", "of"]]))
    wide = wide[asked]
    group = rows.drop_duplicates(["id", "of"]).set_index(["id", "of"])["group"].reindex(wide.index)
    differences = (wide[arm] - wide[control]).to_numpy(dtype=np.float64)
    there = ~np.isnan(differences)
    found = mean_differences(differences[there], group.to_numpy()[there], level)[0]
    declared = results.settings["metrics"].get(metric, {})
    return ProbeLine(
        f"{arm} - {control}", metric, judge, found.estimate, found.p, int(group[there].nunique()),
        int((~there).sum()), bool(declared.get("higher_is_better", True)),
    )  # fmt: skip


def _notes(lines: Sequence[ProbeLine], control: str) -> list[str]:
    notes = [f"Differences in the unit of each metric; the control is the answer with a {control}."]
    if control == "as it was":
        notes = ["Differences in the unit of each metric; the control is the record as it was."]
    if lower := sorted({line.metric for line in lines if not line.higher_is_better}):
        notes.append(f"Lower is better for {', '.join(lower)}: there a difference below 0 favours the change.")
    if missing := sum(line.missing for line in lines):
        notes.append(f"{missing} pairs lack a score on a side and are in no difference (column missing).")
    return notes
