"""What judges say together where nobody labelled anything: the most frequent verdict, and Dawid and Skene's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.calibrate.panels import judges_of, one_of
from jurimetrics.errors import InputError
from jurimetrics.stats.latent import DawidSkene, dawid_skene, most_frequent

if TYPE_CHECKING:
    from jurimetrics.results import Results

_MOST_CLASSES = 20


@dataclass(frozen=True, slots=True)
class Consensus:
    """The verdicts of several judges made one, under one `metric`, without labels.

    `records`: one row for each record with a verdict: `id`, `variant`, `group`, `majority` (NaN: tied), `share` of the
    verdicts that gave the most frequent one, `tied`, `latent`, the likeliest verdict by the model, and its `probability`.
    `judges`: `judge`, `verdicts`, `agrees` with the majority (share of its verdicts), `accuracy` as the model believes.
    Verdicts are 1 (pass) and 0 where the metric has a threshold, else the steps of the score. `model`: the whole fit.
    """

    metric: str
    records: pd.DataFrame
    judges: pd.DataFrame
    model: DawidSkene
    notes: tuple[str, ...]


def consensus(
    results: Results,
    *,
    metric: str | None = None,
    judges: Sequence[str] | None = None,
    gold: Mapping[tuple[str, str], float] | None = None,
    smoothing: float = 0.01,
) -> Consensus:
    """What the judges of `results` say together of every record, without any label.

    `metric`: by default the only judged one; `judges`: by default all but the panel and calibrated ones. Every repeat is
    a verdict. `gold` maps (id, variant) to the verdict that is known of some records, which anchors the model. `smoothing`
    as for `dawid_skene`.

    The model believes whatever judges agree on: errors that they share are taken for the truth, and nothing here can show
    it. Labels of some records can: see `panel_report` for how far the judges err together.

    Raises `InputError` where metric leaves a choice, with fewer than two judges, and for scores that are no steps (more
    than 20 different ones) on a metric without a threshold. Source: see `dawid_skene`.

    >>> from jurimetrics import Results
    >>> said = {"ann": [1, 0, 1, 0], "bob": [1, 0, 1, 1], "cid": [1, 0, 0, 0]}
    >>> rows = [{"id": i, "judge": j, "metric": "ok", "score": s} for j, all_ in said.items() for i, s in enumerate(all_)]
    >>> found = consensus(Results.from_frame(pd.DataFrame(rows), {"ok": {"range": (0, 1), "threshold": 0.5}}))
    >>> found.records[["id", "majority", "latent"]].values.tolist()
    [['0', 1.0, 1.0], ['1', 0.0, 0.0], ['2', 1.0, 1.0], ['3', 0.0, 0.0]]
    """
    settings = results.settings
    scores = results.scores
    judged = [name for name, one in settings["metrics"].items() if one.get("judged", True)]
    name = one_of("metric", metric, [one for one in judged if one in set(scores["metric"])])
    rows = scores[scores["metric"] == name]
    panel = (settings.get("panel") or {}).get("name")
    chosen = judges_of(settings, rows.assign(panel=rows["judge"] == panel), judges)
    if len(chosen) < 2:
        raise InputError(f"{name}: a consensus needs two judges or more, found {', '.join(chosen) or 'none'}")
    rows = rows[rows["judge"].isin(chosen) & rows["score"].notna()].reset_index(drop=True)
    if rows.empty:
        raise InputError(f"{name}: no judge gave a score")
    verdict = _verdicts(rows, name, settings["metrics"][name].get("threshold"))
    # A key of two names as one text, since a model knows items by one name.
    places, keys = pd.factorize(pd.MultiIndex.from_frame(rows[["id", "variant"]]))
    known = {at: float(gold[key]) for at, key in enumerate(keys) if key in gold} if gold else None
    model = dawid_skene(places, rows["judge"].to_numpy(), verdict, gold=known, smoothing=smoothing)
    votes = most_frequent(places, verdict)
    majority = np.array([np.nan if one is None else one for one in votes.label], dtype=np.float64)
    records = pd.DataFrame(
        {
            "id": [key[0] for key in keys],
            "variant": [key[1] for key in keys],
            "group": rows.drop_duplicates(["id", "variant"])["group"].tolist(),
            "majority": majority,
            "share": votes.share,
            "tied": votes.tied,
            "latent": np.array(model.labels, dtype=np.float64),
            "probability": model.posterior.max(axis=1),
        }
    )
    return Consensus(name, records, _judges(rows, verdict, majority[places], model), model, tuple(_notes(model, gold)))


def _verdicts(rows: pd.DataFrame, metric: str, threshold: float | None) -> Any:
    if threshold is not None:
        return rows["passed"].to_numpy(dtype=np.float64)
    given = rows["score"].to_numpy(dtype=np.float64)
    if len(np.unique(given)) > _MOST_CLASSES:
        raise InputError(
            f"{metric}: {len(np.unique(given))} different scores are no verdicts; declare a threshold, as in "
            f"results.with_thresholds({{{metric!r}: ...}})"
        )
    return given


def _judges(rows: pd.DataFrame, verdict: Any, majority: Any, model: DawidSkene) -> pd.DataFrame:
    agrees = pd.Series(np.where(np.isnan(majority), np.nan, verdict == majority)).groupby(rows["judge"])
    table = pd.DataFrame({"verdicts": rows.groupby("judge").size(), "agrees": agrees.mean()})
    table["accuracy"] = pd.Series(dict(zip(model.judges, model.accuracy, strict=True)))
    return table.rename_axis("judge").reset_index()


def _notes(model: DawidSkene, gold: Mapping[tuple[str, str], float] | None) -> Iterator[str]:
    yield (
        "The model takes errors that judges share for the truth; labels of some records tell how many they share "
        "(panel_report)."
    )
    if len(model.judges) < 3 and not gold:
        yield "Of two judges the model cannot tell which errs; three or more are needed, or gold."
    if not model.converged:
        yield "The fit had not settled when it was ended."
