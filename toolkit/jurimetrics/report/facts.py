"""What a report is made of: the results with everything that is computed of them once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.results.highlight import shown_judge
from jurimetrics.results.reading import COMPUTED, headline_judge

if TYPE_CHECKING:
    from jurimetrics.calibrate.agreement import Agreement
    from jurimetrics.calibrate.calibration import Calibration
    from jurimetrics.results import Results
    from jurimetrics.variants.compare import Comparison

_CORRECTS = ("random", "probabilities")


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """`judge` is whose scores are read first: `chosen` by whoever asked, or `alone`, by a panel or as the only one. Where
    something is not there, `why` says of it ("comparison", "differences", "corrected") why not."""

    results: Results
    settings: Mapping[str, Any]
    summary: pd.DataFrame
    scores: pd.DataFrame
    records: pd.DataFrame
    judge: str
    alone: bool
    chosen: bool
    labels: pd.DataFrame | None
    agreement: Agreement | None
    corrected: pd.DataFrame | None
    calibrations: tuple[Calibration, ...]
    comparison: Comparison | None
    why: Mapping[str, str]
    worst: int

    @property
    def panel(self) -> str | None:
        """The name of the panel, None without one."""
        name: str | None = (self.settings.get("panel") or {}).get("name")
        return name

    @property
    def by(self) -> str:
        """Whose scores are read first, as a sentence says it."""
        return f"the {self.judge}" if self.judge == self.panel and self.judge in ("panel", "cascade") else self.judge

    @property
    def variants(self) -> list[str]:
        """Names of variants, declared ones in their order first."""
        there = set(self.summary["variant"])
        declared = [str(name) for name in self.settings.get("variants") or () if name in there]
        return [*declared, *sorted(there - set(declared))]

    @property
    def judges(self) -> list[str]:
        """Names of the judges that gave scores, without a panel and without what is computed."""
        return [name for name in dict.fromkeys(self.summary["judge"]) if name not in (COMPUTED, self.panel)]

    @property
    def several(self) -> bool:
        """Whether there is more than one judge beside what is computed."""
        return len(self.judges) > 1

    @property
    def headlines(self) -> pd.DataFrame:
        """The lines of the summary that are read first: those of `judge` and of what is computed."""
        return self.summary[self.summary["judge"].isin([self.judge, COMPUTED])]

    def span(self, metric: str) -> float:
        """The length of a metric's range; 1 where it has none."""
        low, high = (self.settings["metrics"].get(metric, {}).get("range") or (0.0, 1.0))[:2]
        return float(high) - float(low) or 1.0


def gather(
    results: Results,
    *,
    comparison: Comparison | None,
    calibration: Calibration | Sequence[Calibration] | None,
    agreement: Agreement | None,
    labels: pd.DataFrame | Path | str | None,
    baseline: str | None,
    judge: str | None,
    worst: int,
    primary: Sequence[str] | None = None,
) -> Facts:
    """Everything of `results` that the page shows; see `report` for the options and the errors."""
    settings, scores, summary = results.settings, results.scores, results.summary()
    names = list(dict.fromkeys(scores["judge"]))
    if judge is not None and judge not in names:
        raise InputError(f"report: no judge {judge!r} gave scores; judges: {', '.join(names) or 'none'}")
    chosen = judge or shown_judge(scores, settings)
    judged = [name for name in names if name != COMPUTED]
    people = _labels(labels)
    why: dict[str, str] = {}
    if comparison is None:
        comparison = _compared(results, summary, chosen, baseline, people, why, primary)
    else:
        _check_comparison(comparison, summary)
    if agreement is not None:
        _check_agreement(agreement)
    elif people is not None:
        from jurimetrics.calibrate.agreement import agreement as agree

        agreement = agree(results, people)
    return Facts(
        results=results,
        settings=settings,
        summary=summary,
        scores=scores,
        records=results.records,
        judge=chosen,
        alone=headline_judge(judged, settings) == chosen or not judged,
        chosen=judge is not None,
        labels=people,
        agreement=agreement,
        corrected=None if people is None else _corrected(results, people, why),
        calibrations=_calibrations(calibration),
        comparison=comparison,
        why=why,
        worst=worst,
    )


def _labels(labels: pd.DataFrame | Path | str | None) -> pd.DataFrame | None:
    if labels is None or (isinstance(labels, pd.DataFrame) and "selection" in labels.attrs):
        return labels
    from jurimetrics.labels import load_labels

    return load_labels(labels)


def _compared(
    results: Results, summary: pd.DataFrame, judge: str, baseline: str | None, people: pd.DataFrame | None,
    why: dict[str, str], primary: Sequence[str] | None,
) -> Comparison | None:  # fmt: skip
    """The variants compared by the scores of `judge`, with labels where these allow it."""
    from jurimetrics.variants.compare import compare

    variants = list(dict.fromkeys(summary["variant"]))
    if baseline is not None and baseline not in variants:
        raise InputError(f"report: no variant {baseline!r}; variants: {', '.join(map(repr, variants)) or 'none'}")
    if strange := sorted(set(primary or ()) - set(summary["metric"])):
        raise InputError(
            f"report: no metric {strange[0]!r}; metrics: {', '.join(map(repr, dict.fromkeys(summary['metric']))) or 'none'}"
        )
    if len(variants) < 2:
        return None
    chosen = None if judge == COMPUTED else judge
    if people is not None and people.attrs.get("selection") in _CORRECTS:
        try:
            return compare(results, baseline, primary=primary, judge=chosen, labels=people)
        except InputError as fault:
            why["differences"] = f"Differences are not corrected by the labels: {fault}."
    elif people is not None:
        why["differences"] = (
            "Differences are not corrected by the labels: that needs records chosen at random or with known probabilities, "
            "and labels that say so (selection)."
        )
    try:
        return compare(results, baseline, primary=primary, judge=chosen)
    except InputError as fault:
        why["comparison"] = f"The variants are not compared: {str(fault).removeprefix('compare: ')}."
        return None


def _check_comparison(comparison: Comparison, summary: pd.DataFrame) -> None:
    """Refuse what is no comparison, and one of other results than those reported."""
    from jurimetrics.variants.compare import Comparison

    if not isinstance(comparison, Comparison):
        raise InputError(f"report: comparison is what compare gives, not {type(comparison).__name__}")
    for column, there in (("metric", "metric"), ("judge", "judge"), ("a", "variant"), ("b", "variant")):
        if strange := sorted(set(comparison.frame[column]) - set(summary[there])):
            raise InputError(
                f"report: the comparison is of other results: {there} {strange[0]!r} is not in these; there are: "
                f"{', '.join(map(repr, dict.fromkeys(summary[there])))}"
            )


def _check_agreement(given: Agreement) -> None:
    from jurimetrics.calibrate.agreement import Agreement

    if not isinstance(given, Agreement):
        raise InputError(f"report: agreement is what agreement gives, not {type(given).__name__}")


def _corrected(results: Results, people: pd.DataFrame, why: dict[str, str]) -> pd.DataFrame | None:
    from jurimetrics.calibrate.corrected import corrected_means

    if people.attrs.get("selection") is None:
        why["corrected"] = (
            "What people would have said of all records is not estimated: the labels do not say how the labelled records "
            'were chosen (selection="random", "probabilities" or "by_label").'
        )
        return None
    try:
        return corrected_means(results, people)
    except InputError as fault:
        why["corrected"] = f"What people would have said of all records is not estimated: {fault}."
        return None


def _calibrations(given: Calibration | Sequence[Calibration] | None) -> tuple[Calibration, ...]:
    from jurimetrics.calibrate.calibration import Calibration

    several = tuple(given or ()) if given is None or isinstance(given, list | tuple) else (given,)
    if strange := [one for one in several if not isinstance(one, Calibration)]:
        raise InputError(f"report: calibration is what calibrate gives, not {type(strange[0]).__name__}")
    return several
