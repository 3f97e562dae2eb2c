"""The rows where a judge and people differ most, with the reasons of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.calibrate.labels import KEY, RATER, join
from jurimetrics.display import count, one_line
from jurimetrics.errors import InputError
from jurimetrics.results.pages import page_path, write_page

if TYPE_CHECKING:
    from jurimetrics.results import Results

KINDS = ("false pass", "false fail", "difference")
TITLES = {"false pass": "False passes", "false fail": "False fails", "difference": "Largest other differences"}
"""The kinds in the order in which they are shown, and how they are headed."""
_AS_TEXT = 5
_LONGEST = 160


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Disagreements:
    """Where judges and people part, in a notebook, as text (`print`) and as a page (`save_html`).

    `frame`: one row for each listed row. `kind`, `id`, `variant`, `metric`, `judge`, `score` (repeats averaged), `label`
    (mean of the raters), `difference` (score minus label), `distance` (its size as a share of the metric's range, 0 to 1;
    of a range that was not declared, of all scores and labels),
    `reason` of the judge (of the first repeat with a score), `rationale` of the raters who gave one ("rater: text", one a
    line; blank otherwise), `passed` and `label_passed`, the share of the repeats and of the raters that pass (NaN without a
    threshold), and `rater:<name>`, what each rater gave (NaN: not rated).
    `counts`: one row for each metric and judge: `rows` that are labelled and scored, `false_passes`, `false_fails`,
    `differences` and `agreed` of them; all of them, listed or not.
    `records`: the records of the listed rows.
    """

    frame: pd.DataFrame
    counts: pd.DataFrame
    records: pd.DataFrame

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"Disagreements({count(len(self.frame), 'row')} listed; in all {_in_words(self)})"

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        from jurimetrics.calibrate.disagreements_html import view

        return view(self)

    def of_kind(self) -> dict[str, int]:
        """How many rows there are of each kind, listed or not.

        >>> counts = pd.DataFrame({"false_passes": [2, 1], "false_fails": [0, 0], "differences": [4, 4]})
        >>> Disagreements(pd.DataFrame(), counts, pd.DataFrame()).of_kind()
        {'false pass': 3, 'false fail': 0, 'difference': 8}
        """
        columns = ("false_passes", "false_fails", "differences")
        return {kind: int(self.counts[name].sum()) for kind, name in zip(KINDS, columns, strict=True)}

    def save_html(self, path: str | PathLike[str]) -> Path:
        """Write all listed rows as one page without scripts or outside parts, and give its path.

        Folders are made if need be; a file that is there is replaced. Raises `InputError` where it cannot be written;
        then what was there stays.

        >>> import tempfile
        >>> from jurimetrics import Results, load_labels
        >>> scores = pd.DataFrame({"id": [1], "metric": "ok", "judge": "ann", "score": [1], "reason": ["<b>fine</b>"]})
        >>> results = Results.from_frame(scores, {"ok": {"range": (0, 1), "threshold": 1}})
        >>> found = disagreements_with_people(results, load_labels([{"id": 1, "metric": "ok", "label": 0}]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     "&lt;b&gt;fine&lt;/b&gt;" in found.save_html(f"{folder}/apart.html").read_text(encoding="utf-8")
        True
        """
        from jurimetrics.calibrate.disagreements_html import page

        target = page_path("save_html", path)
        return write_page("save_html", target, page(self))


def disagreements_with_people(results: Results, labels: pd.DataFrame, n: int = 20) -> Disagreements:
    """The false passes, the false fails and the largest other differences of each judge, at most `n` of each kind.

    `labels` is what :func:`load_labels` gives. A false pass is a row that the judge lets pass (of repeats, more than
    half) and more than half of the raters do not, under the metric's threshold; a false fail the reverse; without a
    threshold, and where both agree on pass or fail, a row is a "difference". Within a kind the largest distance comes
    first; rows where judge and people agree exactly are not listed.

    What is given shows itself in a notebook: counts first, then the rows by kind with question and answer and the reasons
    of judge and people side by side; `frame` has all of it.

    Raises `InputError` as `join` does, and for an `n` below 1.

    >>> from jurimetrics import Results, load_labels
    >>> scores = pd.DataFrame({"id": [1, 2], "metric": "grade", "judge": "ann", "score": [5, 2], "reason": ["good", "weak"]})
    >>> people = load_labels([{"id": 1, "metric": "grade", "label": 2, "rationale": "made up"},
    ...                       {"id": 2, "metric": "grade", "label": 2}])
    >>> graded = Results.from_frame(scores, {"grade": {"range": (1, 5), "threshold": 3}})
    >>> found = disagreements_with_people(graded, people)
    >>> found.frame[["kind", "id", "difference", "reason"]].values.tolist()
    [['false pass', '1', 3.0, 'good']]
    >>> print(found)
    2 rows of judges with labels: 1 false pass, 0 false fails, 0 other differences, 1 agreed
    <BLANKLINE>
    False passes: 1
    * 1 (grade): ann gives 5, people 2
      ann: good
      human: made up
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n must be a whole number from 1, not {n!r}")
    joined = join(results, labels)
    rows = joined[joined["label"].notna() & joined["score"].notna()].copy()
    rows["difference"] = rows["score"] - rows["label"]
    rows["distance"] = rows["difference"].abs() / rows["metric"].map(_lengths(rows, results.settings["metrics"]))
    rows["kind"] = _kinds(rows)
    # What `join` says of the labels beside the rows is no part of this frame, and frames in it cannot be compared.
    rows.attrs = {}
    counts = _counts(rows)
    rows = rows[rows["difference"] != 0]
    place = rows["kind"].map({name: at for at, name in enumerate(KINDS)})
    keys = [rows[name].to_numpy() for name in ("variant", "id", "metric", "judge")]
    rows = rows.iloc[np.lexsort((*keys, -rows["distance"].to_numpy(), place.to_numpy()))]
    rows = rows.groupby(["kind", "judge"], sort=False).head(n)
    said = _reasons(results).merge(rows[[*KEY, "judge"]], on=[*KEY, "judge"], how="right")
    rows["reason"] = said["reason"].fillna("").to_numpy()
    rows["rationale"] = _rationales(labels).reindex(pd.MultiIndex.from_frame(rows[KEY])).fillna("").to_numpy()
    raters = [name for name in rows.columns if str(name).startswith(RATER)]
    columns = ["kind", *KEY, "judge", "score", "label", "difference", "distance", "reason", "rationale", "passed",
               "label_passed", *raters]  # fmt: skip
    return Disagreements(rows[columns].reset_index(drop=True), counts, _records(results, rows))


def ratings(row: Mapping[Any, Any]) -> str:
    """What people gave a row of the frame: their mean, and of several raters what each gave.

    >>> ratings({"label": 1.5, "rater:ann": 1.0, "rater:bob": 2.0, "rater:cem": float("nan")})
    '1.5 (ann 1, bob 2)'
    """
    given = {str(name).removeprefix(RATER): value for name, value in row.items() if str(name).startswith(RATER)}
    there = [f"{name} {value:.3g}" for name, value in given.items() if not pd.isna(value)]
    return f"{row['label']:.3g}" + (f" ({', '.join(there)})" if len(there) > 1 else "")


def _lengths(rows: pd.DataFrame, declared: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """How long the range of each metric is; one that was taken from the scores goes on as far as the labels do."""
    found = {}
    for metric, mine in rows.groupby("metric", sort=False):
        low, high = declared[str(metric)]["range"]
        if declared[str(metric)].get("range_from_data"):
            low, high = min(low, mine["label"].min()), max(high, mine["label"].max())
        found[str(metric)] = float(high - low) or 1.0
    return found


def _kinds(rows: pd.DataFrame) -> Any:
    judge, people = rows["passed"].to_numpy(dtype=np.float64), rows["label_passed"].to_numpy(dtype=np.float64)
    # Comparisons with NaN (no threshold) are false.
    wrong = [(judge > 0.5) & (people < 0.5), (judge < 0.5) & (people > 0.5)]
    return np.select(wrong, list(KINDS[:2]), KINDS[2])


def _counts(rows: pd.DataFrame) -> pd.DataFrame:
    apart = rows["difference"] != 0
    told = rows[["metric", "judge"]].assign(
        rows=1,
        false_passes=apart & (rows["kind"] == KINDS[0]),
        false_fails=apart & (rows["kind"] == KINDS[1]),
        differences=apart & (rows["kind"] == KINDS[2]),
        agreed=~apart,
    )
    return (
        told.groupby(["metric", "judge"], sort=False, as_index=False)
        .sum()
        .astype(dict.fromkeys(["rows", "false_passes", "false_fails", "differences", "agreed"], "int64"))
    )


def _records(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    records = results.records
    listed = pd.MultiIndex.from_frame(rows[["id", "variant"]])
    return records[pd.MultiIndex.from_frame(records[["id", "variant"]]).isin(listed)].reset_index(drop=True)


def _reasons(results: Results) -> pd.DataFrame:
    scores = results.scores
    return scores.loc[scores["score"].notna(), [*KEY, "judge", "reason"]].drop_duplicates([*KEY, "judge"])


def _rationales(labels: pd.DataFrame) -> pd.Series[Any]:
    if "rationale" not in labels.columns:
        return pd.Series(dtype=object, index=pd.MultiIndex.from_arrays([[], [], []], names=KEY))
    told = labels[labels["rationale"].notna()].sort_values("rater", kind="stable")
    lines = told["rater"].astype(str) + ": " + told["rationale"].astype(str)
    return lines.groupby([told[name] for name in KEY]).agg("\n".join)


def _in_words(found: Disagreements) -> str:
    words = ("false passes", "false fails", "other differences")
    single = ("false pass", "false fail", "other difference")
    numbers = found.of_kind().values()
    return ", ".join(
        f"{number:,} {one if number == 1 else many}" for number, one, many in zip(numbers, single, words, strict=True)
    )


def _lines(found: Disagreements) -> Iterator[str]:
    agreed = int(found.counts["agreed"].sum())
    total = int(found.counts["rows"].sum())
    yield f"{count(total, 'row')} of judges with labels: {_in_words(found)}, {agreed:,} agreed"
    for kind, number in found.of_kind().items():
        mine = found.frame[found.frame["kind"] == kind]
        if mine.empty:
            continue
        shown = mine.head(_AS_TEXT)
        of = "" if len(shown) == number else f", of which {len(shown)} are shown"
        yield f"\n{TITLES[kind]}: {number:,}{of}"
        for row in shown.to_dict("records"):
            named = row["id"] + (f" of {row['variant']}" if row["variant"] else "")
            head = f"{named} ({row['metric']}): {row['judge']} gives {row['score']:.3g}, people {ratings(row)}"
            yield "* " + one_line(head, _LONGEST)
            said = [f"{row['judge']}: {row['reason']}"] if row["reason"] else []
            for line in (*said, *row["rationale"].splitlines()):
                yield "  " + one_line(line, _LONGEST)
