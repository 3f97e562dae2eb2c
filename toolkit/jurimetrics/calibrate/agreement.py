"""How far judges agree with people, and how far people agree with one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.calibrate.bias import bias_slices
from jurimetrics.calibrate.labels import join
from jurimetrics.calibrate.lines import AgreementLine, Plan, lines_of
from jurimetrics.calibrate.majority import Ties, settled, tied_records
from jurimetrics.calibrate.sheet import Measure
from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.ranks import Level
from jurimetrics.stats.resampling import RESAMPLES

if TYPE_CHECKING:
    from jurimetrics.results import Results

_SHOWN = ("raw_agreement", "kappa", "kappa_quadratic", "alpha_ordinal", "spearman", "human_spearman", "icc_2_1", "bias")
_UNKNOWN = (
    "how the labelled records were chosen is not said, so the figures describe these records and no others; "
    'declare it with load_labels(..., selection="random")'
)
_BY_LABEL = (
    "the records were chosen by their label: raw agreement, kappa, AC, alpha and bias depend on that choice and do not "
    "carry over to all records"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Agreement:
    """Judges held against people: one line for each metric and judge, the panel among them.

    `lines` hold the estimates, `level` says over what the correlations were taken, `notes` what must be read beside the
    figures, `ties` the records whose raters gave no single most frequent label, `unmatched` the labels that met no row
    of the results. `rows` are the labelled rows themselves, as `join` gives them.
    """

    lines: tuple[AgreementLine, ...]
    level: Level
    confidence: float
    notes: tuple[str, ...]
    ties: pd.DataFrame
    unmatched: pd.DataFrame
    rows: pd.DataFrame
    results: Results

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each line. Columns: `metric`, `judge`, `kind` ("judge", "panel" or "baseline"), `level`, `n` rows
        that are labelled and scored, `missing` labelled rows that the judge gave no score, `groups`, `raters`, `tied`
        (share of rows without a majority), `used_groups` and `skipped_groups` (a side is constant), `constant` (the most
        frequent majority label) and `constant_accuracy` (what always guessing it gets), `version` of the metric,
        `notes`; then for each estimate its value under its name (NaN where it has none),
        `<name>_low`, `<name>_high`, `<name>_n` and `<name>_method`, which says in words how it was made or why not."""
        return pd.DataFrame([_flat(line, self.level) for line in self.lines])

    def estimate(self, name: str, metric: str | None = None, judge: str | None = None) -> Estimate:
        """One estimate by its name; metric and judge may be left out where there is one. Raises `InputError` otherwise."""
        found = [one for one in self.lines if metric in (None, one.metric) and judge in (None, one.judge)]
        if len(found) != 1:
            known = ", ".join(f"{one.metric} by {one.judge}" for one in self.lines)
            raise InputError(f"{len(found)} lines for metric {metric!r}, judge {judge!r}; there are: {known}")
        if name not in found[0].estimates:
            raise InputError(f"no estimate {name!r}; there are: {', '.join(found[0].estimates)}")
        return found[0].estimates[name]

    def confusion(self, metric: str, judge: str) -> pd.DataFrame:
        """Counts of the judge's steps (rows) where most people gave each step (columns); tied records as `ties` said.

        Raises `InputError` where there is no such line or the scores are no whole steps.
        """
        for line in self.lines:
            if (line.metric, line.judge) == (metric, judge):
                if line.confusion is None:
                    raise InputError(f"{metric} by {judge}: {line.estimates['kappa'].method}")
                return line.confusion.copy()
        raise InputError(f"no line for {metric!r} by {judge!r}")

    def bias_by(self, column: str) -> pd.DataFrame:
        """The mean of judge minus people in slices of the records.

        `column` is "variant", "group", "language" (that of the metadata, else found from the answer), "length" (thirds
        of the answers by characters), any column of the records, or a key of their metadata; numbers with more than
        eight different values are cut into thirds. One row for each metric, judge and slice: `metric`, `judge`, `slice`,
        `n`, `bias` in the metric's unit with `low`, `high`, and `method`. The slices are exploratory: their intervals
        allow for no other than themselves. Raises `InputError` for a column that no record has.
        """
        return bias_slices(self.rows, self.results, column, self.confidence)

    def __repr__(self) -> str:
        return f"Agreement({len(self.lines)} lines, level={self.level!r}, {len(self.ties)} ties)"

    def __str__(self) -> str:
        return self._compact().to_string(index=False) + "".join(f"\n{note}" for note in self.notes)

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return self._compact().to_html(index=False, escape=True) + notes

    def _compact(self) -> pd.DataFrame:
        lines = [
            {"metric": line.metric, "judge": line.judge, "n": line.n}
            | {name: _short(line.estimates[name]) for name in _SHOWN}
            for line in self.lines
        ]
        return pd.DataFrame(lines)


def agreement(
    results: Results,
    labels: pd.DataFrame,
    level: Level = "group",
    *,
    ties: Ties = "leave out",
    baseline: str | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """How far each judge agrees with people, beside how far people agree with one another.

    `labels` are what :func:`load_labels` gives, joined by id, variant and metric; repeats are averaged first. Every line
    (metric and judge) has these estimates, each with its interval by the results' `group`:

    * of the judge with each rater in turn, averaged: `raw_agreement`, `kappa`, `kappa_linear`, `kappa_quadratic`,
      `ac1`, `ac2_quadratic` (on the metric's declared scale of whole steps; undefined for other scores),
      `alpha_nominal`, `alpha_ordinal`, `alpha_interval`;
    * of the judge with the mean rater: `spearman`, `kendall`, `pearson`, at `level`: "group" the mean of the groups' own
      correlations (groups in which a side is constant are counted as skipped), "pooled" over all rows, "system" of the
      variants' means (systems are resampled as well); `icc_2_1`, `icc_2_k`; `bias`, the mean of judge minus people;
    * the ceiling: `human_<name>`, of every two raters, or for correlations of each rater with the mean of the others;
      `<correlation>_others`, the judge's with the same means; `<name>_gap`, the judge's minus the human one;
    * `accuracy`, the share of rows where the judge gave the label of most raters, and `accuracy_gain` over guessing
      always the most frequent label; `pass_agreement` and `pass_kappa` under the metric's threshold;
    * `spearman_over_baseline` and `kappa_over_baseline`, minus the baseline judge's on the rows both scored.

    What does not exist has the value None and says why in `method`. `ties` is what to do with records without a
    majority ("leave out", "lowest", "highest", "random" by `seed`); they count fully everywhere else. `baseline` names
    the judge to beat (default: the built-in one, if it is there). With `selection="probabilities"` every record counts
    by one over its probability. Scores and thresholds that a calibration made from labels of the same groups are not
    judged by these: their estimates are undefined and say so.

    Intervals are conditional on these raters. Raises `InputError` as `join` does, for another level or rule, and where
    no labelled row has a score.

    Sources: for the ceiling Calderon, Reichart and Dror, arXiv 2501.10970; for the levels Liu and others, arXiv
    2303.16634; see the functions of `jurimetrics.stats` for each statistic.

    >>> from jurimetrics import Results, load_labels
    >>> ids = range(10)
    >>> scores = pd.DataFrame({"id": ids, "metric": "grade", "judge": "ann", "score": [1, 2, 3, 4, 5, 1, 2, 3, 4, 4]})
    >>> people = [{"id": at, "metric": "grade", "label": label} for at, label in zip(ids, [1, 2, 3, 4, 5, 2, 2, 3, 3, 5])]
    >>> found = agreement(Results.from_frame(scores, {"grade": {"range": (1, 5)}}), load_labels(people), level="pooled")
    >>> found.frame.loc[0, ["n", "raw_agreement", "kappa", "spearman"]].astype(float).round(2).tolist()
    [10.0, 0.7, 0.63, 0.94]
    >>> print(found.estimate("human_kappa"))
    no value (undefined: kappa of people: one rater only, two are needed)
    """
    if level not in ("group", "pooled", "system"):
        raise InputError(f"level is 'group', 'pooled' or 'system', not {level!r}")
    joined = join(results, labels)
    selection = joined.attrs["selection"]
    rows = joined[joined["raters"] > 0].reset_index(drop=True)
    if not rows["score"].notna().any():
        raise InputError("agreement: no labelled row has a score")
    rows["settled"] = settled(rows, ties, seed)
    rows["weight"] = _weights(rows, selection)
    measure = Measure(level, confidence, resamples, seed)
    plan = Plan(results.settings, joined, baseline, selection == "probabilities", measure)
    lines = lines_of(rows, plan)
    notes = _notes(rows, selection, joined.attrs, ties)
    return Agreement(
        tuple(lines), level, confidence, tuple(notes), tied_records(rows), joined.attrs["unmatched"], rows, results
    )


def _weights(rows: pd.DataFrame, selection: str | None) -> Any:
    if selection != "probabilities":
        return np.ones(len(rows))
    if rows["probability"].isna().any():
        row = rows[rows["probability"].isna()].iloc[0]
        raise InputError(f"labels: id {row['id']!r}, metric {row['metric']!r} has no probability of being chosen")
    return 1 / rows["probability"].to_numpy(dtype=np.float64)


def _notes(rows: pd.DataFrame, selection: str | None, told: Mapping[Any, Any], ties: Ties) -> list[str]:
    notes = []
    if selection is None:
        notes.append(_UNKNOWN)
    if selection == "by_label":
        notes.append(_BY_LABEL)
    records = rows.drop_duplicates(["id", "variant", "metric"])
    for metric, share in records.groupby("metric", sort=False)["tied"].mean().items():
        if share > 0:
            done = "left out of accuracy and confusion" if ties == "leave out" else f"settled by the rule {ties!r}"
            notes.append(f"{metric}: {share:.0%} of the labelled records have no majority; they are {done}")
    for metric in told["scale_from_data"]:
        if metric in set(rows["metric"]):
            notes.append(f"{metric}: nobody declared its range, so its scale is taken from scores and labels")
    if len(told["unmatched"]):
        notes.append(f"{len(told['unmatched'])} labels met no row of the results (see unmatched)")
    if len(told["raters"]) > 1:
        notes.append("intervals are conditional on these raters")
    return notes


def _flat(line: AgreementLine, level: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "metric": line.metric,
        "judge": line.judge,
        "kind": line.kind,
        "level": level,
        "n": line.n,
        "missing": line.missing,
        "groups": line.groups,
        "raters": line.raters,
        "tied": line.tied,
        "used_groups": line.used_groups,
        "skipped_groups": line.skipped_groups,
        "constant": line.constant,
        "constant_accuracy": _minus(line.estimates["accuracy"], line.estimates["accuracy_gain"]),
        "version": line.version,
        "notes": "; ".join(line.notes),
    }
    for name, one in line.estimates.items():
        numbers = {"": one.value, "_low": one.low, "_high": one.high}
        found |= {f"{name}{ending}": np.nan if number is None else number for ending, number in numbers.items()}
        found |= {f"{name}_n": one.n, f"{name}_method": one.method}
    return found


def _minus(first: Estimate, second: Estimate) -> float:
    return np.nan if first.value is None or second.value is None else first.value - second.value


def _short(found: Estimate) -> str:
    if found.value is None:
        return "undefined"
    if found.low is None or found.high is None:
        return f"{found.value:.2f}"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
