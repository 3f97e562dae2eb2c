"""Which records to label, with known probabilities, and how many."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.labels import load_labels
from jurimetrics.results.reading import headline_judge

if TYPE_CHECKING:
    from jurimetrics.results import Results

By = Literal["random", "score", "disagreement"]
BYS: tuple[By, ...] = ("random", "score", "disagreement")
Numbers = npt.NDArray[np.float64]
_TEXTS = ("question", "answer", "contexts", "reference")
_STRATA = 4
_FIRST_OF_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Sample:
    """Records drawn for labelling, with the probability that each had of being drawn.

    `records`: one row each, in random order: `id`, `variant`, `group`, `question`, `answer`, `contexts` (lists),
    `reference`, `probability` (above 0, at most 1) and `stratum` (words). `metrics`: what is to be labelled, each with
    its (low, high) range and its levels, None where any number goes. `by` and `seed` as drawn, `total` records there
    were. No score of a judge is among them.
    """

    records: pd.DataFrame
    metrics: dict[str, tuple[tuple[float, float], tuple[float, ...] | None]]
    by: By
    seed: int
    total: int

    def save(self, path: Path | str) -> Path:
        """Write the sheet to fill in as CSV and give the path: what the rater needs, the probability, and an empty
        column `label:<metric>` for each metric. Text that a spreadsheet would run as a formula gets a "'" in front."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        wanted = [f"label:{name}" for name in self.metrics]
        # With a byte order mark, from which spreadsheets tell UTF-8.
        with target.open("w", encoding="utf-8-sig", newline="") as file:
            sheet = csv.writer(file)
            sheet.writerow(["id", "variant", *_TEXTS, *wanted, "rater", "rationale", "probability"])
            for row in self.records.to_dict("records"):
                texts = [_harmless(_written(row[name])) for name in _TEXTS]
                blank = [""] * (len(wanted) + 2)
                sheet.writerow([row["id"], row["variant"], *texts, *blank, repr(row["probability"])])
        return target

    def read(self, path: Path | str) -> pd.DataFrame:
        """The labels of a filled-in sheet, as `load_labels(selection="probabilities")` gives them.

        Records that were drawn and left blank under a metric make the others of their stratum count for them: their
        probability is multiplied by the stratum's labelled share, as if the blanks had been left at random;
        `attrs["blank"]` counts them by metric. Raises `InputError` as `load_labels` does, for a record that was not
        drawn, a metric that was not asked, and where a stratum was left blank altogether.
        """
        labels = load_labels(path, selection="probabilities")
        return self.weighted(labels, str(path))

    def weighted(self, labels: pd.DataFrame, place: str = "labels") -> pd.DataFrame:
        """Labels of this sample, from wherever they came, with the probabilities that `read` gives them.

        `place` begins the messages of its errors.
        """
        drawn = self.records.set_index(["id", "variant"])[["probability", "stratum"]]
        keys = pd.MultiIndex.from_frame(labels[["id", "variant"]])
        if strange := [key for key in keys if key not in drawn.index]:
            raise InputError(f"{place}: id {strange[0][0]!r}, variant {strange[0][1]!r} is not in this sample")
        if odd := sorted(set(labels["metric"]) - set(self.metrics)):
            raise InputError(f"{place}: nobody was asked for {odd[0]!r}; asked were {', '.join(self.metrics)}")
        labels = labels.assign(probability=drawn["probability"].reindex(keys).to_numpy())
        stratum = drawn["stratum"].reindex(keys).to_numpy()
        blank: dict[str, int] = {}
        of_stratum = self.records["stratum"].value_counts()
        for metric in dict.fromkeys(labels["metric"]):
            mine = (labels["metric"] == metric).to_numpy()
            given = labels[mine].assign(stratum=stratum[mine]).drop_duplicates(["id", "variant"])
            held = given["stratum"].value_counts().reindex(of_stratum.index, fill_value=0)
            if (held == 0).any():
                raise InputError(
                    f"{place}: of {of_stratum.index[int(np.argmin(held))]!r} no record has a label for {metric!r}, so "
                    "nothing stands for those records"
                )
            shares = (held / of_stratum).reindex(stratum[mine]).to_numpy()
            labels.loc[mine, "probability"] = labels.loc[mine, "probability"].to_numpy() * shares
            blank[metric] = int(of_stratum.sum() - held.sum())
        labels.attrs = {"selection": "probabilities", "blank": blank}
        return labels


def sample_for_labelling(
    results: Results,
    n: int,
    by: By = "random",
    seed: int = 0,
    *,
    metrics: Sequence[str] | None = None,
    judge: str | None = None,
) -> Sample:
    """Draw `n` whole records (id and variant) for people to label under `metrics`, by default all that judges rate.

    "random": each with the same probability. "score": from each quarter of the range of scores of `judge` (default: the
    panel or only judge; else the mean of all) equally many records, so that rare scores are seen too. "disagreement":
    from each quarter of how far the judges (or a panel's members) can lie apart, a record of the second with twice the
    probability of one of the first, of the third three times, and so on. Scores and distances are shares of each
    metric's range, averaged over `metrics`. Records without any such number are a stratum of their own, and so is each
    variant.

    Every record has a probability above 0, which is kept: labels of the sample are declared
    `selection="probabilities"`. The same seed draws the same records.

    Raises `InputError` for an `n` below 1 or above the number of records, an unknown name, or where "disagreement" finds
    fewer than two judges.

    >>> from jurimetrics import Results
    >>> scores = pd.DataFrame({"id": range(100), "metric": "ok", "judge": "ann", "score": [0.9] * 90 + [0.1] * 10})
    >>> drawn = sample_for_labelling(Results.from_frame(scores), 20, by="score")
    >>> sorted(drawn.records["stratum"].value_counts().items())
    [('score 0 to 0', 10), ('score 1 to 1', 10)]
    >>> round(float((1 / drawn.records["probability"]).sum()), 6)
    100.0
    """
    records, settings = results.records, results.settings
    if by not in BYS:
        raise InputError(f"by: expected one of {', '.join(BYS)}, found {by!r}")
    if not 1 <= n <= len(records):
        raise InputError(f"n: expected 1 to {len(records)}, the number of records, found {n}")
    declared = settings["metrics"]
    names = (
        list(metrics) if metrics is not None else [name for name, one in declared.items() if one.get("judged", True)]
    )
    if strange := [name for name in names if name not in declared]:
        raise InputError(f"no metric {strange[0]!r}; there are: {', '.join(declared)}")
    if not names:
        raise InputError("no metric that judges rate; say metrics=[...]")
    random = np.random.default_rng(seed)
    # Drawn in the order of the keys, so that the order of the records never shows.
    order = np.lexsort((records["variant"].to_numpy(str), records["id"].to_numpy(str)))
    records = records.iloc[order].reset_index(drop=True)
    stratum, part, words = _strata(results, records, names, by, judge)
    sizes = np.bincount(stratum)
    counts = _allotted(
        n, sizes, sizes * part if by == "disagreement" else sizes if by == "random" else np.ones(len(sizes))
    )
    taken = np.concatenate(
        [random.choice(np.flatnonzero(stratum == one), size, replace=False) for one, size in enumerate(counts)]
    )
    taken = random.permutation(taken)
    drawn = records.iloc[taken][["id", "variant", "group", *_TEXTS]].reset_index(drop=True)
    drawn["probability"] = (counts / sizes)[stratum[taken]]
    drawn["stratum"] = [words[one] for one in stratum[taken]]
    scales = {name: (tuple(declared[name]["range"]), _levels(declared[name])) for name in names}
    return Sample(drawn, scales, by, seed, len(records))


def _levels(metric: dict[str, Any]) -> tuple[float, ...] | None:
    return None if metric.get("levels") is None else tuple(float(level) for level in metric["levels"])


def _strata(
    results: Results, records: pd.DataFrame, names: list[str], by: By, judge: str | None
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], list[str]]:
    """The stratum of each record; of each stratum which quarter of the range it is (1 to 4), and the words for it.

    Variants are strata of their own, so that what is said of one is as sure as what is said of all.
    """
    variant, variants = pd.factorize(records["variant"], sort=True)
    if by == "random":
        return variant, np.ones(len(variants), dtype=np.intp), [_named("all", name) for name in variants]
    numbers = _numbers(results, records, names, by, judge)
    # Equal parts of the range, not of the records: a quarter that is seldom reached is a stratum all the same.
    part = np.minimum(np.floor(np.where(np.isnan(numbers), 0.0, numbers) * _STRATA), _STRATA - 1)
    code = np.where(np.isnan(numbers), 0, part + 1).astype(np.intp) + (_STRATA + 1) * variant
    kinds, stratum = np.unique(code, return_inverse=True)
    words = [_named(_between(by, numbers[code == kind]), variants[kind // (_STRATA + 1)]) for kind in kinds]
    return stratum.astype(np.intp), np.maximum(1, kinds % (_STRATA + 1)), words


def _between(by: By, numbers: Numbers) -> str:
    return f"no {by}" if np.isnan(numbers).any() else f"{by} {numbers.min():.3g} to {numbers.max():.3g}"


def _named(words: str, variant: str) -> str:
    return f"{words}, {variant}" if variant else words


def _numbers(results: Results, records: pd.DataFrame, names: list[str], by: By, judge: str | None) -> Numbers:
    settings = results.settings
    scores = results.scores
    scores = scores[scores["metric"].isin(names)]
    judges = list(dict.fromkeys(scores["judge"]))
    panel = (settings.get("panel") or {}).get("name")
    if judge is not None and judge not in judges:
        raise InputError(f"no judge {judge!r}; there are: {', '.join(judges)}")
    if by == "score":
        chosen = judge or headline_judge(judges, settings)
        scores = scores[scores["judge"] == chosen] if chosen else scores
    else:
        scores = scores[scores["judge"] != panel]
        if scores["judge"].nunique() < 2:
            raise InputError("disagreement needs two judges or more; there is " + (", ".join(judges) or "none"))
    limits = scores["metric"].map({name: settings["metrics"][name]["range"] for name in names})
    low, high = limits.str[0].astype(float), limits.str[1].astype(float)
    scores = scores.assign(share=(scores["score"] - low) / (high - low).where(high > low, 1.0))
    by_judge = scores.groupby(["id", "variant", "metric", "judge"])["share"].mean()
    each = by_judge.groupby(level=["id", "variant", "metric"])
    told = each.mean() if by == "score" else (each.max() - each.min()).where(each.count() > 1)
    return (
        told.groupby(level=["id", "variant"])
        .mean()
        .reindex(pd.MultiIndex.from_frame(records[["id", "variant"]]))
        .to_numpy(dtype=np.float64)
    )


def _allotted(n: int, sizes: npt.NDArray[np.intp], parts: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """`n` divided over strata in these parts: at least two of each where it has them, never more than it has."""
    least = np.minimum(sizes, 2)
    if n < int(least.sum()):
        raise InputError(f"n: {n} records are too few for {len(sizes)} strata; at least {int(least.sum())} are needed")
    counts = least.copy()
    for _ in range(n - int(least.sum())):
        # One by one to whoever lies furthest behind its part and has any left.
        behind = np.where(counts < sizes, (counts + 1) / parts, np.inf)
        counts[int(np.argmin(behind))] += 1
    return counts


def _written(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else "\n\n".join(str(part) for part in value)


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FIRST_OF_FORMULA) else text
