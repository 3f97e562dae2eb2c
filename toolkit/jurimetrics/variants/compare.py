"""Comparison of variants: one line for each metric and pair, with intervals and verdicts that cannot contradict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from jurimetrics.display import count
from jurimetrics.errors import InputError
from jurimetrics.stats.flips import FLIPS, Flipped
from jurimetrics.variants.families import own_families
from jurimetrics.variants.notes import notes
from jurimetrics.variants.pairs import Pair, flips_of, line, needed, pairs_of
from jurimetrics.variants.people import NOT_LABELLED, check_labels, corrected
from jurimetrics.variants.serving import pair_serving, serving_notes, serving_of
from jurimetrics.variants.sheets import Sheet, sheets
from jurimetrics.variants.words import verdict

if TYPE_CHECKING:
    from jurimetrics.results import Results

Detect = float | Mapping[str, float] | None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What `compare` found: `frame`, one line for each metric and pair of variants (columns there); `notes`, what must be
    read beside it; `level`, `baseline` (None: all pairs) and `panel` (its name, None without one); `sheets`, the scores
    that were compared; `refused`, (metric, a, b) of the lines that the judge decides nothing of, since another model answered
    for it with each variant. Shown as a table by a notebook and by `print`.

    >>> from jurimetrics import Results
    >>> rows = [{"id": i, "variant": v, "metric": "grade", "judge": "ann", "score": (3 + i % 3 + up) / 10}
    ...         for i in range(20) for v, up in (("A", 0), ("B", i % 4))]
    >>> compare(Results.from_frame(pd.DataFrame(rows), {"grade": {"range": (0, 1)}}))
    Comparison(1 metric, 1 pair of variants, 1 of 1 line decided)
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]
    level: float
    baseline: str | None
    panel: str | None
    sheets: tuple[Sheet, ...]
    refused: frozenset[tuple[str, str, str]] = frozenset()

    def __str__(self) -> str:
        from jurimetrics.variants.show import comparison_text

        return comparison_text(self)

    def __repr__(self) -> str:
        metrics, pairs = self.frame["metric"].nunique(), len(self.frame[["a", "b"]].drop_duplicates())
        decided = int((~self.frame["verdict"].str.contains("undecided|no verdict")).sum())
        return (
            f"Comparison({count(metrics, 'metric')}, {count(pairs, 'pair')} of variants, "
            f"{decided} of {count(len(self.frame), 'line')} decided)"
        )

    def _repr_html_(self) -> str:
        from jurimetrics.variants.show import comparison_html

        return comparison_html(self)


def compare(
    results: Results,
    baseline: str | None = None,
    *,
    primary: Sequence[str] | None = None,
    labels: pd.DataFrame | None = None,
    judge: str | None = None,
    metrics: Sequence[str] | None = None,
    detect: Detect = None,
    power: float = 0.8,
    level: float = 0.95,
    flips: int = FLIPS,
    seed: int = 0,
) -> Comparison:
    """Compare the variants of `results` on the records they share.

    `baseline`: compare every other variant with this one; by default all pairs. `primary`: the metrics decided on
    beforehand; they and the pairs are one family, in which the chance of any false finding is at most 1 - `level`.
    Others are exploratory, each judged alone and marked so. By default all metrics are primary, the strictest reading.
    `metrics`: only these. `judge`: whose scores (default: the panel, or the only judge). Repeats are averaged first.
    `labels`: what people said (`load_labels`, with how the records were chosen); where records are labelled under both
    variants, the verdict is about people. `detect`: a difference in the metric's unit, or one for each metric, for which
    the number of records needed at `power` is given. `flips`, `seed`: sign patterns drawn where there are more than 14
    groups.

    Columns of `frame`: `metric`, `judge`, the variants `a` and `b`, `family` ("primary" or "exploratory"),
    `higher_is_better`; `n` records with both scores in so many `groups`, `only_a` and `only_b` with one alone,
    `coverage_a`, `coverage_b` (share of a variant's records that have a score), `answered_a`, `answered_b` (as in
    `Results.summary`);
    `mean_a`, `mean_b` over the n, `difference` = b - a with `low`, `high` and `p` alone, and `simultaneous_low`,
    `simultaneous_high`, `p_adjusted` for the whole family at once (NaN for exploratory lines); each interval leaves out 0
    exactly where its p is at most 1 - `level`: both come from the same sign flips by group (see `sign_flips`; exact up to
    14 groups);
    `effect_size` (d_z); `wins`, `ties`, `losses` of b in the metric's direction;
    `pass_a`, `pass_b`, and where every pair stands alone `only_a_passes`, `only_b_passes`, `mcnemar_p` (mid-p; alone);
    `worst_low`, `worst_high`, the mean difference if scores missing on one side lay anywhere in the metric's range;
    `needed` records (NaN without `detect`), at the level that decides the line;
    `corrected`, `corrected_low`, `corrected_high` from `labelled` pairs (PPI++ on differences, `corrected_mean`; the
    level is divided among the family's lines) with `corrected_method`; `own_family`, judges that share a model or family
    with a variant; `method`; `verdict` in words, which says no more than the interval.

    No interval and no verdict below 8 groups, and no verdict where another model answered for the judge with each of the
    two variants; where fingerprints or the mix of models differ, the verdict says so. Raises `InputError` for fewer than
    two variants, names that are not there, several judges without a choice, records whose group differs between variants,
    labels chosen in an unknown way.

    Sources: Hartigan, JASA 64 (1969); Canay, Romano, Shaikh, Econometrica 85 (2017); Westfall and Young,
    "Resampling-based multiple testing" (1993); Miller, arXiv 2411.00640.

    >>> from jurimetrics import Results
    >>> rows = [{"id": i, "variant": v, "metric": "grade", "judge": "ann", "score": (3 + i % 3 + up) / 10}
    ...         for i in range(20) for v, up in (("A", 0), ("B", i % 4))]
    >>> found = compare(Results.from_frame(pd.DataFrame(rows), {"grade": {"range": (0, 1)}}))
    >>> found.frame.loc[0, "verdict"]
    'ann scores B higher by 0.15 [0.10, 0.20] than A'
    """
    _check(level, power)
    compared = sheets(results, judge, metrics)
    declared = _primary(compared, primary)
    if baseline is not None and baseline not in compared[0].variants:
        raise InputError(f"compare: no variant {baseline!r}; variants: {', '.join(map(repr, compared[0].variants))}")
    pairs = [pair for sheet in compared for pair in pairs_of(sheet, baseline, sheet.metric in declared)]
    if not pairs:
        raise InputError("compare: no metric has rows of two variants")
    settings = results.settings
    people = None if labels is None else check_labels(labels)
    lines = lines_of(pairs, level, flips, seed, answered=_answered(results), people=people)
    shared = own_families(settings, results.records[["variant", "answer_model"]])
    panel = (settings.get("panel") or {}).get("name")
    wanted = _detect(detect, compared)
    several = serving_of(results, compared)
    served = [pair_serving(several.get((pair.sheet.metric, pair.sheet.judge), []), *pair.names) for pair in pairs]
    for pair, one, by in zip(pairs, lines, served, strict=True):
        one["needed"] = needed(pair, wanted.get(pair.sheet.metric), one.pop("alpha"), power)
        said = [shared[one["judge"], name] for name in pair.names if (one["judge"], name) in shared]
        one["own_family"] = "; ".join(said)
        one["verdict"] = verdict({**one, "refused": by.refused, "flagged": by.flagged}, panel)
    frame = pd.DataFrame(lines)[[*COLUMNS]]
    told = [*serving_notes(served), *notes(frame, settings, primary, compared, labels is not None)]
    refused = frozenset((pair.sheet.metric, *pair.names) for pair, by in zip(pairs, served, strict=True) if by.refused)
    return Comparison(frame, tuple(told), level, baseline, panel, tuple(compared), refused)


COLUMNS = (
    "metric", "judge", "a", "b", "family", "higher_is_better", "n", "groups", "only_a", "only_b", "coverage_a",
    "coverage_b", "answered_a", "answered_b", "mean_a", "mean_b", "difference", "low", "high", "p", "simultaneous_low",
    "simultaneous_high", "p_adjusted", "effect_size", "wins", "ties", "losses", "pass_a", "pass_b", "only_a_passes",
    "only_b_passes", "mcnemar_p", "worst_low", "worst_high", "needed", "corrected", "corrected_low", "corrected_high",
    "labelled", "corrected_method", "own_family", "method", "verdict",
)  # fmt: skip


def lines_of(
    pairs: Sequence[Pair],
    level: float,
    flips: int,
    seed: int,
    *,
    answered: Mapping[tuple[str, str, str], float] | None = None,
    people: pd.DataFrame | None = None,
) -> list[dict[str, Any]]:
    """The lines of a comparison in the order of `pairs`, the primary ones tested as one family."""
    tested: dict[bool, Flipped | None] = {}
    places: dict[bool, list[int]] = {}
    for kind in (True, False):
        places[kind] = [at for at, pair in enumerate(pairs) if pair.primary is kind]
        tested[kind] = flips_of([pairs[at] for at in places[kind]], level, flips, seed)
    found: list[dict[str, Any]] = [{} for _ in pairs]
    for kind, of_kind in tested.items():
        for column, at in enumerate(places[kind]):
            assert of_kind is not None
            one = line(pairs[at], of_kind, column, answered or {})
            one["alpha"] = of_kind.alpha if kind else 1 - level
            one |= NOT_LABELLED
            if people is not None:
                share = max(1, len(places[True])) if kind else 1
                one |= corrected(pairs[at].sheet, people, pairs[at].a, pairs[at].b, 1 - (1 - level) / share)
            found[at] = one
    return found


def _check(level: float, power: float) -> None:
    for name, value in (("level", level), ("power", power)):
        if not 0 < value < 1:
            raise InputError(f"{name} must lie between 0 and 1, not {value!r}")


def _primary(compared: Sequence[Sheet], primary: Sequence[str] | None) -> set[str]:
    names = [sheet.metric for sheet in compared]
    if primary is None:
        return set(names)
    if isinstance(primary, str):
        raise InputError(f"primary: expected a list of metrics, found {primary!r}")
    if strange := [name for name in primary if name not in names]:
        raise InputError(f"primary: no metric {strange[0]!r}; metrics: {', '.join(names)}")
    return set(primary)


def _detect(detect: Detect, compared: Sequence[Sheet]) -> dict[str, float]:
    names = [sheet.metric for sheet in compared]
    wanted = dict(detect) if isinstance(detect, Mapping) else dict.fromkeys(names, detect) if detect is not None else {}
    for name, value in wanted.items():
        if name not in names:
            raise InputError(f"detect: no metric {name!r}; metrics: {', '.join(names)}")
        if value is None or not math.isfinite(value) or value == 0:
            raise InputError(f"detect: {name} needs a difference other than 0, not {value!r}")
    return {name: float(value) for name, value in wanted.items() if value is not None}


def _answered(results: Results) -> dict[tuple[str, str, str], float]:
    """The share of answers that are answers, by metric, judge and variant; NaN where a metric asks for no claims."""
    if not any(one.get("asks_claims") for one in results.settings["metrics"].values()):
        return {}
    table = results.summary()
    keys = zip(table["metric"], table["judge"], table["variant"], strict=True)
    return dict(zip(keys, table["answered"].astype(float), strict=True))
