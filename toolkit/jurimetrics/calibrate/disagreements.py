"""The rows where a judge and people differ most, with the reasons of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.calibrate.labels import KEY, RATER, join
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.results import Results

_KINDS = ("false pass", "false fail", "difference")


def disagreements_with_people(results: Results, labels: pd.DataFrame, n: int = 20) -> pd.DataFrame:
    """The false passes, the false fails and the largest other differences of each judge, at most `n` of each kind.

    `labels` is what :func:`load_labels` gives. A false pass is a row that the judge lets pass (of repeats, more than
    half) and more than half of the raters do not, under the metric's threshold; a false fail the reverse; without a
    threshold, and where both agree on pass or fail, a row is a "difference". Within a kind the largest distance comes
    first; rows where judge and people agree exactly are not listed.

    Columns: `kind`, `id`, `variant`, `metric`, `judge`, `score` (repeats averaged), `label` (mean of the raters),
    `difference` (score minus label), `distance` (its size as a share of the metric's range, 0 to 1), `reason` of the
    judge (of the first repeat with a score), `rationale` of the raters who gave one ("rater: text", one a line; blank
    otherwise), and `rater:<name>`.

    Raises `InputError` as `join` does, and for an `n` below 1.

    >>> from jurimetrics import Results, load_labels
    >>> scores = pd.DataFrame({"id": [1, 2], "metric": "grade", "judge": "ann", "score": [5, 2], "reason": ["good", "weak"]})
    >>> people = load_labels([{"id": 1, "metric": "grade", "label": 2}, {"id": 2, "metric": "grade", "label": 2}])
    >>> graded = Results.from_frame(scores, {"grade": {"range": (1, 5), "threshold": 3}})
    >>> disagreements_with_people(graded, people)[["kind", "id", "difference", "reason"]].values.tolist()
    [['false pass', '1', 3.0, 'good']]
    """
    if n < 1:
        raise InputError(f"n must be 1 or more, not {n}")
    joined = join(results, labels)
    rows = joined[joined["label"].notna() & joined["score"].notna()].copy()
    ranges = {name: one["range"] for name, one in results.settings["metrics"].items()}
    rows["difference"] = rows["score"] - rows["label"]
    rows["distance"] = rows["difference"].abs() / rows["metric"].map({name: b - a for name, (a, b) in ranges.items()})
    rows["kind"] = _kinds(rows)
    rows = rows[rows["difference"] != 0]
    place = rows["kind"].map({name: at for at, name in enumerate(_KINDS)})
    keys = [rows[name].to_numpy() for name in ("variant", "id", "metric", "judge")]
    rows = rows.iloc[np.lexsort((*keys, -rows["distance"].to_numpy(), place.to_numpy()))]
    rows = rows.groupby(["kind", "judge"], sort=False).head(n)
    said = _reasons(results).merge(rows[[*KEY, "judge"]], on=[*KEY, "judge"], how="right")
    rows["reason"] = said["reason"].fillna("").to_numpy()
    rows["rationale"] = _rationales(labels).reindex(pd.MultiIndex.from_frame(rows[KEY])).fillna("").to_numpy()
    raters = [name for name in rows.columns if str(name).startswith(RATER)]
    columns = ["kind", *KEY, "judge", "score", "label", "difference", "distance", "reason", "rationale", *raters]
    return rows[columns].reset_index(drop=True)


def _kinds(rows: pd.DataFrame) -> Any:
    judge, people = rows["passed"].to_numpy(dtype=np.float64), rows["label_passed"].to_numpy(dtype=np.float64)
    # Comparisons with NaN (no threshold) are false.
    wrong = [(judge > 0.5) & (people < 0.5), (judge < 0.5) & (people > 0.5)]
    return np.select(wrong, list(_KINDS[:2]), _KINDS[2])


def _reasons(results: Results) -> pd.DataFrame:
    scores = results.scores
    return scores.loc[scores["score"].notna(), [*KEY, "judge", "reason"]].drop_duplicates([*KEY, "judge"])


def _rationales(labels: pd.DataFrame) -> pd.Series[Any]:
    if "rationale" not in labels.columns:
        return pd.Series(dtype=object, index=pd.MultiIndex.from_arrays([[], [], []], names=KEY))
    told = labels[labels["rationale"].notna()].sort_values("rater", kind="stable")
    lines = told["rater"].astype(str) + ": " + told["rationale"].astype(str)
    return lines.groupby([told[name] for name in KEY]).agg("\n".join)
