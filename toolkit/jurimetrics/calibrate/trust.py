"""How sure must a judge be so that its verdict can be trusted unseen? Selective evaluation on results and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.labelled import people_pass
from jurimetrics.calibrate.labels import join
from jurimetrics.calibrate.panels import judges_of, one_of
from jurimetrics.calibrate.reuse import refuse_fitted
from jurimetrics.calibrate.trials import Key, need_random, one_per_group
from jurimetrics.errors import InputError
from jurimetrics.judges.cascade import agreement_confidence
from jurimetrics.metrics.metric import passes
from jurimetrics.stats.folds import fold_codes
from jurimetrics.stats.selective import GRID, TrustThreshold, trust_threshold, useful_grid

if TYPE_CHECKING:
    from jurimetrics.results import Results

Numbers = npt.NDArray[np.float64]


class StageTrust(NamedTuple):
    """One stage: its judge, from which confidence it is trusted, and how many labelled records of its part it was asked
    of (those that the stages before did not settle)."""

    judge: str
    threshold: TrustThreshold
    part: int


@dataclass(frozen=True, slots=True)
class Selective:
    """From which confidence the verdicts (pass or fail) of judges may be trusted without asking people.

    With probability 1 - `delta` at most `alpha` of the verdicts that each stage settles differ from those of most people,
    for records drawn as the labelled ones were. `thresholds` go into a `Cascade`, asked with the same `repeats` under the
    same threshold of the metric; a judge whose threshold is None is never trusted, so a cascade that ends in None or in a
    number abstains where nobody is sure enough. `labels_used`: id and variant of the labelled records.
    """

    metric: str
    alpha: float
    delta: float
    stages: tuple[StageTrust, ...]
    repeats: int
    labels_used: tuple[Key, ...]
    notes: tuple[str, ...]

    @property
    def thresholds(self) -> list[float | None]:
        """The threshold of each stage."""
        return [one.threshold.value for one in self.stages]

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each stage: `judge`, `threshold` (NaN: none), `n` trusted of `of` labelled records asked about,
        `coverage`, their share, `wrong` of them, `upper`, the bound on that share, `tested` thresholds and `why` none."""
        rows = []
        for stage in self.stages:
            found = asdict(stage.threshold)
            rows.append({"judge": stage.judge, "threshold": found.pop("value"), **found})
        columns = ["judge", "threshold", "n", "of", "coverage", "wrong", "upper", "tested", "why"]
        return pd.DataFrame(rows, columns=columns).astype({"threshold": "float64", "upper": "float64"})

    def __str__(self) -> str:
        return "\n".join([self.frame.to_string(index=False), *self.notes])


def selective(
    results: Results,
    labels: pd.DataFrame,
    alpha: float,
    delta: float,
    *,
    metric: str | None = None,
    judges: str | Sequence[str] | None = None,
    confidence: Callable[[list[float]], float] | None = None,
    grid: Sequence[float] = GRID,
) -> Selective:
    """From which confidence a judge's pass or fail may be trusted so that at most `alpha` of it differs from people's, with
    probability 1 - `delta`; for several judges, from cheap to strong, a threshold for each stage of a `Cascade`.

    `judges`: the stages in order (default: the panel or the only judge). Its verdict is that of the mean of its repeats,
    or of a panel's score; its confidence how many of its repeats, or of the panel's members, agree with it
    (`agreement_confidence`), or `confidence` of the list of their scores. `grid`: thresholds from strict to loose, fixed
    beforehand; it starts where enough records reach it, which looks at no label.

    Each of J stages has a part of the labelled groups of its own and `delta` / J, and is tested on the records of its part
    that the stages before did not settle. Of each group one record counts. The labels must not have been used before:
    those of a calibration are refused; weights, frontier and prompts chosen on them are for the caller to keep apart.

    Raises `InputError` unless the labels are declared a random subset (weighted ones carry no such guarantee); where the
    scores show that they are not, the metric has no threshold, a calibration used them, a judge has one voice only, or no
    labelled record serves. Source: Jung, Brahman and Choi, ICLR 2025, arXiv 2407.18370.

    >>> from jurimetrics import Results, load_labels
    >>> rows = [{"id": i, "metric": "ok", "judge": "ann", "repeat": r, "score": float(i % 3 > 0 or r == i % 2)}
    ...         for i in range(120) for r in range(3)]
    >>> people = [{"id": i, "metric": "ok", "label": int(i % 3 > 0 or i % 2)} for i in range(120)]
    >>> results = Results.from_frame(pd.DataFrame(rows), {"ok": {"range": (0, 1), "threshold": 0.5}})
    >>> found = selective(results, load_labels(people, selection="random"), alpha=0.1, delta=0.1)
    >>> found.thresholds, found.stages[0].threshold.n
    ([0.67], 80)
    """
    settings = results.settings
    joined = join(results, labels)
    need_random(joined, "selective")
    name = one_of("metric", metric, list(dict.fromkeys(joined.loc[joined["raters"] > 0, "metric"])))
    declared = settings["metrics"][name]
    if declared.get("threshold") is None:
        raise InputError(f"{name}: verdicts need a threshold, as in results.with_thresholds({{{name!r}: ...}})")
    rows = joined[joined["metric"] == name]
    stages = _stages(settings, rows, judges)
    keys, people, groups, left_out = _verdicts(rows, declared)
    refuse_fitted(settings, rows, name)
    voices = [_voices(results, name, judge, keys, declared, confidence) for judge in stages]
    found = trusted_stages(stages, voices, people, groups, alpha, delta, grid)
    repeats = max(heard.most for heard in voices)
    notes = tuple(_selective_notes(left_out, len(stages), found))
    return Selective(name, alpha, delta, tuple(found), repeats, tuple(keys), notes)


class Heard(NamedTuple):
    """Of each labelled record how sure a judge is (minus infinity: no score) and whether it passes; `most` voices."""

    sure: Numbers
    passed: Numbers
    most: int


def trusted_stages(
    judges: Sequence[str],
    voices: Sequence[Heard],
    people: Numbers,
    groups: Sequence[Any],
    alpha: float,
    delta: float,
    grid: Sequence[float] = GRID,
) -> list[StageTrust]:
    """The threshold of each judge in turn, on its own part of the groups and what the judges before did not settle.

    >>> heard = Heard(np.ones(60), np.ones(60), 3)
    >>> [one.part for one in trusted_stages(["ann", "bob"], [heard, heard], np.ones(60), range(60), 0.2, 0.2)]
    [30, 0]
    """
    part = fold_codes(groups, len(judges))
    waiting, found = np.ones(len(people), dtype=bool), []
    for at, (judge, heard) in enumerate(zip(judges, voices, strict=True)):
        found.append(_stage(judge, heard, people, (part == at) & waiting, alpha, delta / len(judges), grid))
        limit = found[-1].threshold.value
        if limit is not None:
            waiting &= ~(heard.sure >= limit - 1e-12)
    return found


def _stages(settings: Mapping[str, Any], rows: pd.DataFrame, judges: str | Sequence[str] | None) -> list[str]:
    together = settings.get("panel") or {}
    if together.get("rule") == "cascade" and (judges is None or together["name"] in judges):
        raise InputError(
            f"{together['name']} is a cascade, whose thresholds are what is asked for: name its judges in turn"
        )
    if judges is None:
        panel = list(dict.fromkeys(rows.loc[rows["panel"], "judge"]))
        there = panel or judges_of(settings, rows, None)
        return [one_of("judge", None, there)] if len(there) != 1 else there
    return judges_of(settings, rows, [judges] if isinstance(judges, str) else judges)


def _verdicts(rows: pd.DataFrame, declared: Mapping[str, Any]) -> tuple[list[Key], Numbers, list[Any], int]:
    """One labelled record of each group: its key, what most people said (1 or 0), its group; how many are left out."""
    labelled = rows[rows["raters"] > 0].drop_duplicates(["id", "variant"])
    told = people_pass(labelled, bool(declared.get("higher_is_better", True)))
    settled = labelled.assign(people=told)[~np.isnan(told)]
    if settled.empty:
        raise InputError("no labelled record was passed or failed by most people")
    keys, _ = one_per_group(settled)
    kept = settled.set_index(["id", "variant"]).loc[keys]
    return keys, kept["people"].to_numpy(dtype=np.float64), kept["group"].tolist(), len(labelled) - len(keys)


def _voices(
    results: Results, metric: str, judge: str, keys: Sequence[Key], declared: Mapping[str, Any],
    confidence: Callable[[list[float]], float] | None,
) -> Heard:  # fmt: skip
    scores = results.scores
    panel = results.settings.get("panel") or {}
    speak = panel["members"] if judge == panel.get("name") else [judge]
    mine = scores[(scores["metric"] == metric) & scores["judge"].isin({judge, *speak})]
    by_key = dict(iter(mine.groupby(["id", "variant"], sort=False)))
    side = partial(
        passes, threshold=declared["threshold"], higher_is_better=bool(declared.get("higher_is_better", True))
    )
    sure, passed, most = np.full(len(keys), -np.inf), np.full(len(keys), np.nan), 0
    for at, key in enumerate(keys):
        part = by_key.get(key)
        if part is None:
            continue
        spoken = part.loc[part["judge"].isin(speak), "score"].to_numpy(dtype=np.float64)
        own = part.loc[part["judge"] == judge, "score"].to_numpy(dtype=np.float64)
        most = max(most, len(spoken))
        # As a cascade does: without a score of more than half of its voices a stage says nothing.
        if 2 * np.isfinite(own).sum() <= len(own):
            continue
        said = float(np.nanmean(own))
        values = [None if np.isnan(one) else float(one) for one in spoken]
        passed[at] = side(said)
        if confidence is not None:
            sure[at] = float(confidence([one for one in values if one is not None]))
        else:
            sure[at] = agreement_confidence(values, said, side, 1.0)
    if confidence is None and most < 2:
        raise InputError(
            f"{judge}: it spoke once, so how sure it is cannot be told from agreement; evaluate with repeats=3 or more, take "
            "a panel, or give confidence="
        )
    if np.isnan(sure).any():
        raise InputError(f"{judge}: the confidence of a record is no number")
    return Heard(sure, passed, most)


def _stage(
    judge: str, heard: Heard, people: Numbers, mine: npt.NDArray[np.bool_], alpha: float, delta: float,
    grid: Sequence[float],
) -> StageTrust:  # fmt: skip
    # What never reaches a threshold still counts among the records that the judge was asked about.
    lowest = min(grid) - 1.0
    sure = np.where(np.isneginf(heard.sure[mine]), lowest, heard.sure[mine])
    right = heard.passed[mine] == people[mine]
    steps = useful_grid(sure, alpha, delta, grid)
    if steps:
        return StageTrust(judge, trust_threshold(sure, right, alpha, delta, steps), int(mine.sum()))
    why = f"{int(mine.sum())} labelled records are too few for any threshold to pass"
    return StageTrust(
        judge, TrustThreshold(None, alpha, delta, 0, 0, None, 0.0, 0, int(mine.sum()), why), int(mine.sum())
    )


def _selective_notes(left_out: int, stages: int, found: Sequence[StageTrust]) -> Iterator[str]:
    if left_out:
        yield f"{left_out} labelled records are left out: people are split, or another of their group counts."
    if stages > 1:
        yield f"Each of the {stages} stages was tested on a part of the labels of its own, at delta / {stages}."
    if never := [one.judge for one in found if one.threshold.value is None]:
        yield f"Not to be trusted at any confidence: {', '.join(never)}."
