"""May a judge stand in for a rater? The alternative annotator test on results and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.labelled import is_binary
from jurimetrics.calibrate.labels import RATER, join
from jurimetrics.calibrate.panels import judges_of, one_of
from jurimetrics.calibrate.reuse import refuse_shaped_threshold
from jurimetrics.calibrate.trials import Key, need_random, one_per_group
from jurimetrics.errors import InputError
from jurimetrics.stats import alternative
from jurimetrics.stats.alternative import AltTest, Closeness

if TYPE_CHECKING:
    from jurimetrics.results import Results

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The alternative annotator test of each judge under one metric; `tests` by judge, `raters` their names in order.

    `records_used`: id and variant of the records that were compared, one to a group; `left_out` labelled ones of the same
    groups are not; `notes` what must be read beside it.
    """

    metric: str
    tests: Mapping[str, AltTest]
    raters: tuple[str, ...]
    records_used: tuple[Key, ...]
    left_out: int
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each judge: `metric`, `judge`, `winning_rate` (share of raters it can stand in for), `passed`,
        `advantage` (chance to come at least as close to the others as a rater), `epsilon`, `q`, `closeness`, `raters`
        tested, `records`."""
        rows = [
            {"metric": self.metric, "judge": judge, "winning_rate": one.winning_rate, "passed": one.passed,
             "advantage": one.advantage, "epsilon": one.epsilon, "q": one.q, "closeness": one.closeness,
             "raters": len(one.annotators), "records": len(self.records_used)}
            for judge, one in self.tests.items()
        ]  # fmt: skip
        return pd.DataFrame(rows)

    @property
    def by_rater(self) -> pd.DataFrame:
        """One row for each judge and rater tested: `judge`, `rater`, `n`, `judge_wins`, `rater_wins` (shares; ties count
        for both), `p`, `adjusted`, `rejected` (the judge can stand in for this rater)."""
        rows = [
            (judge, self.raters[one.annotator], *one[1:])
            for judge, test in self.tests.items()
            for one in test.annotators
        ]
        columns = ["judge", "rater", "n", "judge_wins", "rater_wins", "p", "adjusted", "rejected"]
        return pd.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        return "\n".join([self.frame.to_string(index=False), *self.notes])


def alt_test(
    results: Results,
    labels: pd.DataFrame,
    epsilon: float,
    *,
    metric: str | None = None,
    judges: Sequence[str] | None = None,
    closeness: Closeness | None = None,
    q: float = 0.05,
) -> Alternatives:
    """Whether each judge may stand in for a rater: see `jurimetrics.stats.alternative.alt_test`.

    `epsilon`, stated beforehand: .2 where raters are experts, .15 skilled, .1 crowd workers. `judges`: by default all that
    were not fitted to labels, the panel among them. `closeness`: "accuracy" (same label), the default for labels 0 and 1,
    which then stand beside the judge's pass and fail where its scores are others; "rmse", the default for scales. Of each
    group one record is compared, that with the most raters, else drawn by a hash of its id: records that share a source
    are no independent trials.

    Raises `InputError` unless the labels are declared a random subset; where the judges' scores show that they are not;
    where the threshold was chosen on labels at hand; and with fewer than two raters of 30 records.
    Source: Calderon, Reichart and Dror, ACL 2025, arXiv 2501.10970.

    >>> from jurimetrics import Results, load_labels
    >>> grades = [1, 2, 3, 4, 5] * 8
    >>> scores = pd.DataFrame({"id": range(40), "metric": "grade", "judge": "ann", "score": grades})
    >>> people = [{"id": i, "metric": "grade", "rater": rater, "label": min(5, grade + (i % every == 0))}
    ...           for i, grade in enumerate(grades) for rater, every in (("x", 3), ("y", 4), ("z", 5))]
    >>> found = alt_test(Results.from_frame(scores), load_labels(people, selection="random"), epsilon=0.2)
    >>> found.frame[["judge", "winning_rate", "passed", "raters", "records"]].values.tolist()
    [['ann', 1.0, True, 3, 40]]
    """
    settings = results.settings
    joined = join(results, labels)
    need_random(joined, "alt_test")
    name = one_of("metric", metric, list(dict.fromkeys(joined.loc[joined["raters"] > 0, "metric"])))
    rows = joined[joined["metric"] == name]
    named = judges if judges is not None else _with_panel(settings, rows)
    chosen = judges_of(settings, rows, named)
    columns = [column for column in rows.columns if str(column).startswith(RATER)]
    binary = is_binary(rows[rows["raters"] > 0])
    keys, left_out = one_per_group(rows[rows["raters"] > 1])
    by = closeness or ("accuracy" if binary else "rmse")
    if binary:
        refuse_shaped_threshold(settings, rows, name)
    tests = {}
    for judge in chosen:
        mine = rows[rows["judge"] == judge].set_index(["id", "variant"])
        mine = mine.reindex(pd.MultiIndex.from_tuples(keys, names=["id", "variant"]))
        people = mine[columns].to_numpy(dtype=np.float64).T
        tests[judge] = alternative.alt_test(_said(mine, judge, by, binary), people, epsilon, closeness=by, q=q)
    raters = tuple(str(column)[len(RATER) :] for column in columns)
    return Alternatives(name, tests, raters, tuple(keys), left_out, tuple(_alt_notes(tests, raters, left_out)))


def _with_panel(settings: Mapping[str, Any], rows: pd.DataFrame) -> list[str]:
    return [*judges_of(settings, rows, None), *dict.fromkeys(rows.loc[rows["panel"], "judge"])]


def _said(mine: pd.DataFrame, judge: str, closeness: str, binary: bool) -> Numbers:
    """The judge's labels: its scores, or for labels 0 and 1 its passes where the scores are others."""
    score = mine["score"].to_numpy(dtype=np.float64)
    given = score[~np.isnan(score)]
    if closeness != "accuracy" or not binary or np.isin(given, (0.0, 1.0)).all():
        return score
    share = mine["passed"].to_numpy(dtype=np.float64)
    if np.isnan(share).all():
        raise InputError(
            f"{judge}: its scores are not 0 and 1 as the labels are; declare a threshold, or closeness='rmse'"
        )
    return np.where(np.isnan(share) | (share == 0.5), np.nan, (share > 0.5).astype(np.float64))


def _alt_notes(tests: Mapping[str, AltTest], raters: Sequence[str], left_out: int) -> Iterator[str]:
    if left_out:
        yield f"{left_out} labelled records are left out: one of each group is compared."
    if silent := sorted({raters[at] for one in tests.values() for at in one.left_out}):
        yield f"Too few records to be tested, but heard among the others: {', '.join(silent)}."
    if any(len(one.annotators) == 2 for one in tests.values()):
        yield "Two raters were tested; three and more are better."
    if len(tests) > 1:
        yield "Each judge is tested by itself: of many judges one may pass by chance."
