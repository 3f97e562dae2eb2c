"""Which judges make a good panel: weights, shared errors, what each is worth, and every panel's loss against its cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.applied import CALIBRATED
from jurimetrics.calibrate.drawing import check_random
from jurimetrics.calibrate.labelled import people_pass
from jurimetrics.calibrate.labels import join
from jurimetrics.calibrate.reuse import refuse_shaped_threshold
from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.frontier import Frontier, Loss, PanelRule, frontier, panel_losses
from jurimetrics.stats.maps import weighted_mean
from jurimetrics.stats.redundancy import error_correlation, leave_one_out, one_more, redundancy
from jurimetrics.stats.weights import JudgeWeights, WeightKind, fit_weights, held_out_weights

if TYPE_CHECKING:
    from jurimetrics.results import Results

Numbers = npt.NDArray[np.float64]
Of = Literal["scores", "passes"]
_LOSS: dict[Of, Loss] = {"scores": "absolute_error", "passes": "error_rate"}
_KIND: dict[Of, WeightKind] = {"scores": "least_squares", "passes": "logistic"}


@dataclass(frozen=True, slots=True)
class PanelReport:
    """What labels say of the panels that some judges could make, under one `metric`; less loss is better.

    `of`: "scores" (the loss is the mean distance from people's mean label, in the metric's unit) or "passes" (the share
    of records where panel and most people differ in pass or fail). `fitted`: weights on all labels. Frames, flat:

    * `weights`: `judge`, `weight`, `share` (of 1), `share_least` and `share_most` of it over folds;
    * `correlations`: `judge`, `other`, `correlation` of their errors (score minus label);
    * `leave_one_out`: `judge`, `loss_without` it, `lost` with `low`, `high`: how much the panel of all loses without;
    * `frontier`: `members`, `judges` (how many), `loss`, `cost`, `efficient` (NA: cost unknown), `winner`, `folds_won`;
    * `sizes`: the best panel of each size: `size`, `members`, `loss`, `held_out` with `low`, `high`, `less` than one judge
      fewer with `less_low`, `less_high`, and `average`, the mean loss of all panels of that size;
    * `figures`: `figure`, `value`, `low`, `high`, `n`, `method` (see `panel_report`).

    `winner`: the judges of the best panel. `cost_in`: "USD per record", "given" or "judges". `labels_used`: id and variant
    of the labelled records, `selection` as in the labels, `notes` what must be read beside the figures.
    """

    metric: str
    of: Of
    judges: tuple[str, ...]
    winner: tuple[str, ...]
    fitted: JudgeWeights | None
    estimates: Mapping[str, Estimate]
    weights: pd.DataFrame
    correlations: pd.DataFrame
    leave_one_out: pd.DataFrame
    frontier: pd.DataFrame
    sizes: pd.DataFrame
    cost_in: str
    labels_used: tuple[tuple[str, str], ...]
    selection: str | None
    notes: tuple[str, ...]

    @property
    def figures(self) -> pd.DataFrame:
        """The estimates, one row each: `figure`, `value`, `low`, `high` (NaN: none), `n`, `method`."""
        rows = [
            {"figure": name, **_flat(found), "n": found.n, "method": found.method}
            for name, found in self.estimates.items()
        ]
        return pd.DataFrame(rows, columns=["figure", "value", "low", "high", "n", "method"])

    def __str__(self) -> str:
        lines = [f"{self.metric}: {', '.join(self.winner)} of {', '.join(self.judges)}"]
        lines += [f"{name}: {found}" for name, found in self.estimates.items()]
        return "\n".join([*lines, *self.notes])


def panel_report(
    results: Results,
    labels: pd.DataFrame,
    *,
    metric: str | None = None,
    judges: Sequence[str] | None = None,
    of: Of | None = None,
    rule: PanelRule = "mean",
    costs: Mapping[str, float] | None = None,
    most: float | None = None,
    folds: int = 10,
    level: float = 0.95,
) -> PanelReport:
    """What the labels say of the panels that the judges of `results` could make, without asking anybody.

    `metric`: by default the only labelled one; `judges`: by default all but the panel and calibrated ones. `of`: "passes"
    where the metric has a threshold, else "scores". `rule` makes one number of a panel's scores (of passes: the share of
    members that pass it, against a half). `costs`: of one record by judge; by default what the calls of these results
    took (answers from the store tell no cost), and where any is unknown the number of judges. `most`: the dearest panel
    that may win. All panels are compared on the labelled records that every judge scored.

    Figures, each an Estimate with its interval by group: `loss_of_all` with equal weights; `loss_weighted`, with weights
    fitted on other folds of groups, and `weights_gain`, what that is below `loss_of_all`; `winner_loss`, which is
    flattered by the choice, and `winner_held_out`, the loss of choosing so on other folds; `error_correlation`, the mean
    over pairs of judges; `effective_judges`, how many judges with independent errors these amount to; `one_more_judge`,
    by how much the mean squared error would fall with a further judge like these.

    The report was made of these labels: neither its weights nor its winner may be judged by them again.

    Raises `InputError` as `join` does, where metric leaves a choice, with fewer than two or more than 10 judges, where a
    judge is calibrated or the metric's threshold was chosen on labels of the same groups, where labels declared random
    plainly are not, and where no record serves.
    Sources: see `fit_weights`, `redundancy`, `frontier`.

    >>> from jurimetrics import Results, load_labels
    >>> truth = [0, 1, 1, 0, 1] * 12
    >>> said = {"ann": truth, "bob": [1 - t if i % 4 == 0 else t for i, t in enumerate(truth)], "cid": [1] * 60}
    >>> rows = [{"id": i, "judge": j, "metric": "ok", "score": s} for j, all_ in said.items() for i, s in enumerate(all_)]
    >>> people = load_labels([{"id": i, "metric": "ok", "label": t} for i, t in enumerate(truth)], selection="random")
    >>> results = Results.from_frame(pd.DataFrame(rows), {"ok": {"range": (0, 1), "threshold": 0.5}})
    >>> report = panel_report(results, people)
    >>> report.winner, report.estimates["winner_held_out"].value, report.cost_in
    (('ann',), 0.0, 'judges')
    """
    settings = results.settings
    joined = join(results, labels)
    if joined.attrs["selection"] == "random":
        check_random(joined)
    name = one_of("metric", metric, list(dict.fromkeys(joined.loc[joined["raters"] > 0, "metric"])))
    rows = joined[joined["metric"] == name]
    chosen = judges_of(settings, rows, judges)
    if len(chosen) < 2:
        raise InputError(f"{name}: a panel needs two judges or more, found {', '.join(chosen) or 'none'}")
    limit = settings["metrics"][name].get("threshold")
    about: Of = of or ("scores" if limit is None else "passes")
    data = _data(rows, chosen, about, settings["metrics"][name], joined.attrs["selection"])
    if about == "passes":
        refuse_shaped_threshold(settings, rows, name)
    price, cost_in = _costs(results, name, chosen, costs)
    best = frontier(
        data.shown, data.labels, price, data.group, loss=_LOSS[about], rule=rule, weights=data.weights, most=most,
        folds=folds, level=level,
    )  # fmt: skip
    fitted, weighted, shares = _weighted(data, _KIND[about], about, folds)
    losses = panel_losses(data.shown, data.labels, range(len(chosen)), _LOSS[about], rule)
    return PanelReport(
        metric=name,
        of=about,
        judges=tuple(chosen),
        winner=tuple(chosen[at] for at in best.winner.members),
        fitted=fitted,
        estimates=_figures(data, best, losses, weighted, level),
        weights=_weights_frame(chosen, fitted, shares),
        correlations=_correlations(data, chosen),
        leave_one_out=_without(data, chosen, losses, _LOSS[about], rule, level),
        frontier=_frontier_frame(best, chosen),
        sizes=_sizes_frame(best, chosen),
        cost_in=cost_in,
        labels_used=data.keys,
        selection=joined.attrs["selection"],
        notes=tuple(_notes(data, joined.attrs["selection"], cost_in, best, fitted)),
    )


class _Data(NamedTuple):
    """The labelled records that every judge scored: `scores` and what is `shown` to the vote (J x N), and the rest (N)."""

    scores: Numbers
    shown: Numbers
    labels: Numbers
    group: npt.NDArray[Any]
    weights: Numbers | None
    keys: tuple[tuple[str, str], ...]
    left_out: int


def _data(
    rows: pd.DataFrame, judges: Sequence[str], of: Of, declared: Mapping[str, Any], selection: str | None
) -> _Data:
    if of not in _LOSS:
        raise InputError(f'of is "scores" or "passes", not {of!r}')
    if of == "passes" and declared.get("threshold") is None:
        raise InputError('of="passes" needs a threshold, as in results.with_thresholds({...})')
    labelled = rows[rows["raters"] > 0]
    index = pd.MultiIndex.from_frame(labelled[["id", "variant"]].drop_duplicates().sort_values(["id", "variant"]))
    by_judge = [labelled[labelled["judge"] == judge].set_index(["id", "variant"]).reindex(index) for judge in judges]
    scores = np.stack([one["score"].to_numpy(dtype=np.float64) for one in by_judge])
    passed = np.stack([one["passed"].to_numpy(dtype=np.float64) for one in by_judge])
    people = labelled.drop_duplicates(["id", "variant"]).set_index(["id", "variant"]).reindex(index)
    told = people["label"].to_numpy(dtype=np.float64)
    if of == "passes":
        told = people_pass(people, bool(declared.get("higher_is_better", True)))
    use = ~np.isnan(scores).any(axis=0) & ~np.isnan(told)
    if not use.any():
        also = " and passed or failed by most people" if of == "passes" else ""
        raise InputError(f"no labelled record was scored by every judge{also}")
    weights = None
    if selection == "probabilities":
        chance = people["probability"].to_numpy(dtype=np.float64)[use]
        if np.isnan(chance).any():
            raise InputError("labels: a record has no probability of having been drawn")
        weights = len(chance) / chance / (1 / chance).sum()
    keys = tuple((str(one), str(two)) for one, two in index[use])
    shown = scores if of == "scores" else passed
    group = people["group"].to_numpy(dtype=object)[use]
    return _Data(scores[:, use], shown[:, use], told[use], group, weights, keys, int((~use).sum()))


def one_of(what: str, chosen: str | None, there: Sequence[str]) -> str:
    """The only name there is, or the chosen one. Raises `InputError` where a choice is left or it is not there."""
    if chosen is None and len(there) == 1:
        return there[0]
    if chosen is None or chosen not in there:
        said = f"which {what}? say {what}=..." if chosen is None else f"no labelled {what} {chosen!r}"
        raise InputError(f"{said}; there are: {', '.join(there) or 'none'}")
    return chosen


def judges_of(settings: Mapping[str, Any], rows: pd.DataFrame, wanted: Sequence[str] | None) -> list[str]:
    """The judges by name: those wanted, else all in `rows` but the panel and calibrated ones. Raises `InputError` for a
    name that is not there and for a calibrated judge."""
    calibrated = {name for name, one in settings.get("judges", {}).items() if one.get("kind") == CALIBRATED}
    there = list(dict.fromkeys(rows["judge"]))
    if wanted is None:
        panels = set(rows.loc[rows["panel"], "judge"])
        return sorted(name for name in there if name not in panels | calibrated)
    for name in wanted:
        if name not in there:
            raise InputError(f"no judge {name!r}; there are: {', '.join(there)}")
        if name in calibrated:
            raise InputError(f"{name} was fitted to labels; take the judge that it was made of")
    return list(dict.fromkeys(wanted))


def _costs(
    results: Results, metric: str, judges: Sequence[str], given: Mapping[str, float] | None
) -> tuple[list[float], str]:
    if given is not None:
        if lacking := [name for name in judges if name not in given]:
            raise InputError(f"costs: none given for {', '.join(lacking)}")
        return [float(given[name]) for name in judges], "given"
    scores = results.scores
    # What came from the store was paid for another time; such a row says nothing of a judge's price.
    fresh = scores[(scores["metric"] == metric) & (scores["cached_calls"] == 0)]
    repeats = fresh.groupby(["judge", "id", "variant"])["judge_cost_usd"].sum(min_count=1)
    means = {} if repeats.empty else repeats.groupby("judge").mean().to_dict()
    kinds = results.settings.get("judges", {})
    known = [means.get(name, np.nan) if kinds.get(name, {}).get("kind") != "baseline" else 0.0 for name in judges]
    if np.isnan(known).any():
        return [1.0] * len(judges), "judges"
    return [float(one) for one in known], "USD per record"


def _weighted(data: _Data, kind: WeightKind, of: Of, folds: int) -> tuple[JudgeWeights | None, Numbers, Numbers]:
    """Weights on all labels (None: too few), the loss of each record under weights of other folds, and those by fold."""
    try:
        fitted = fit_weights(data.scores, data.labels, kind, data.weights)
    except InputError:
        return None, np.full(len(data.labels), np.nan), np.empty((0, len(data.scores)))
    tried = held_out_weights(data.scores, data.labels, data.group, kind, data.weights, folds)
    return fitted, panel_losses(tried.predicted[None, :], data.labels, (0,), _LOSS[of]), tried.shares


def _figures(data: _Data, best: Frontier, losses: Numbers, weighted: Numbers, level: float) -> dict[str, Estimate]:
    def mean(values: Numbers) -> Estimate:
        return weighted_mean(values, data.weights, data.group, level)

    errors = data.shown - data.labels
    shared = redundancy(errors, data.group, weights=data.weights, level=level)
    winner = Estimate(
        best.winner.loss, None, None, level, len(data.labels), "on the labels it was chosen on: flattered"
    )
    return {
        "loss_of_all": mean(losses),
        "loss_weighted": mean(weighted),
        "weights_gain": mean(losses - weighted),
        "winner_loss": winner,
        "winner_held_out": best.held_out,
        "error_correlation": shared.mean_correlation,
        "effective_judges": shared.effective,
        "one_more_judge": one_more(errors, data.group, data.weights, level),
    }


def _weights_frame(judges: Sequence[str], fitted: JudgeWeights | None, shares: Numbers) -> pd.DataFrame:
    known = shares[~np.isnan(shares).any(axis=1)]
    nothing = [np.nan] * len(judges)
    return pd.DataFrame(
        {
            "judge": list(judges),
            "weight": nothing if fitted is None else fitted.weights,
            "share": nothing if fitted is None else fitted.shares,
            "share_least": known.min(axis=0) if len(known) else nothing,
            "share_most": known.max(axis=0) if len(known) else nothing,
        }
    )


def _correlations(data: _Data, judges: Sequence[str]) -> pd.DataFrame:
    found = error_correlation(data.shown - data.labels, data.weights)
    rows = [(one, two, found[at, to]) for at, one in enumerate(judges) for to, two in enumerate(judges) if at < to]
    return pd.DataFrame(rows, columns=["judge", "other", "correlation"])


def _without(
    data: _Data, judges: Sequence[str], losses: Numbers, loss: Loss, rule: PanelRule, level: float
) -> pd.DataFrame:
    places = range(len(judges))
    others = [panel_losses(data.shown, data.labels, [at for at in places if at != one], loss, rule) for one in places]
    found = leave_one_out(losses, np.stack(others), data.group, data.weights, level)
    rows = []
    for judge, one in zip(judges, found, strict=True):
        flat = _flat(one.lost)
        rows.append((judge, one.value.value, flat["value"], flat["low"], flat["high"], one.lost.n, one.lost.method))
    return pd.DataFrame(rows, columns=["judge", "loss_without", "lost", "low", "high", "n", "method"])


def _frontier_frame(best: Frontier, judges: Sequence[str]) -> pd.DataFrame:
    rows = [
        (_named(one.members, judges), len(one.members), one.loss, one.cost, one.efficient, one == best.winner,
         best.chosen.get(one.members, 0))
        for one in best.panels
    ]  # fmt: skip
    columns = ["members", "judges", "loss", "cost", "efficient", "winner", "folds_won"]
    return pd.DataFrame(rows, columns=columns).astype({"efficient": "boolean"})


def _sizes_frame(best: Frontier, judges: Sequence[str]) -> pd.DataFrame:
    rows = []
    for one in best.sizes:
        less = _flat(one.less) if one.less is not None else dict.fromkeys(("value", "low", "high"), np.nan)
        held = _flat(one.held_out)
        rows.append(
            (one.size, _named(one.members, judges), one.loss, held["value"], held["low"], held["high"], less["value"],
             less["low"], less["high"], one.average)
        )  # fmt: skip
    columns = ["size", "members", "loss", "held_out", "low", "high", "less", "less_low", "less_high", "average"]
    return pd.DataFrame(rows, columns=columns)


def _notes(
    data: _Data, selection: str | None, cost_in: str, best: Frontier, fitted: JudgeWeights | None
) -> Iterator[str]:
    if selection is None:
        yield (
            "How the labelled records were chosen is not declared: the figures hold for records chosen alike. Declare it "
            "with load_labels(..., selection=...)."
        )
    if selection == "by_label":
        yield "The records were chosen by their label: losses and correlations do not carry over to all records."
    if data.left_out:
        yield f"{data.left_out} labelled records are left out: a judge gave no score, or people are split."
    if cost_in == "judges":
        yield "Not every judge's cost is known from these calls, so cost counts judges; give costs={judge: USD per record}."
    if fitted is None:
        yield "Weights could not be fitted on so few records, or labels of one kind."
    if len(best.chosen) > 1:
        yield f"The winner is not settled: {len(best.chosen)} panels win in one fold or another."


def _named(members: Sequence[int], judges: Sequence[str]) -> str:
    return ", ".join(judges[at] for at in members)


def _flat(found: Estimate) -> dict[str, float]:
    numbers = {"value": found.value, "low": found.low, "high": found.high}
    return {name: np.nan if number is None else number for name, number in numbers.items()}
