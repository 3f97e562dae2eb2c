"""Whose row a call belongs to: tokens and cost of every call, split over the rows that used it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

ROW_KEY = ["id", "variant", "metric", "judge", "repeat"]
Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Amount:
    """One quantity per row or per ask: the part that is known, and where a part of it is not."""

    known: Numbers
    unknown: npt.NDArray[np.bool_]

    @property
    def strict(self) -> Numbers:
        """The quantity, NaN where any part of it is unknown (unknown is not zero)."""
        return np.where(self.unknown, np.nan, self.known)


@dataclass(frozen=True, slots=True)
class Bill:
    """What each ask took and which rows used it. Made by `bill`; `row` is -1 for a use whose row was never written.

    `shared` holds quantities that are split over the rows that used an ask (`cost_usd`, `prompt_tokens`,
    `completion_tokens`); `whole` those that every row sees whole (`sent`, `cached` requests, `latency_s`).
    """

    rows: int
    row: Places
    ask: Places
    members: Places
    shared: Mapping[str, Amount]
    whole: Mapping[str, Numbers]

    def share(self, name: str) -> Amount:
        """Each row's share of a quantity: an equal part of every ask it used, 0 where it used none."""
        amount = self.shared[name]
        here = self.row >= 0
        row, ask = self.row[here], self.ask[here]
        parts = amount.known[ask] / self.members[ask]
        known = np.bincount(row, weights=parts, minlength=self.rows)
        unknown = np.bincount(row, weights=amount.unknown[ask], minlength=self.rows) > 0
        return Amount(known.astype(np.float64), unknown)

    def total(self, name: str) -> Numbers:
        """For each row the sum over the asks it used, each taken whole."""
        here = self.row >= 0
        return np.bincount(self.row[here], weights=self.whole[name][self.ask[here]], minlength=self.rows).astype(float)

    def distinct(self, name: str, group: Places, groups: int) -> Numbers:
        """For each group of rows (`group[row]`, from 0) the sum over the distinct asks its rows used."""
        here = self.row >= 0
        pairs = np.unique(group[self.row[here]] * len(self.members) + self.ask[here])
        if not len(pairs):
            return np.zeros(groups)
        owner, ask = np.divmod(pairs, len(self.members))
        return np.bincount(owner, weights=self.whole[name][ask], minlength=groups).astype(np.float64)


def bill(rows: pd.DataFrame, calls: pd.DataFrame, uses: pd.DataFrame) -> Bill:
    """Join rows, calls and uses.

    `rows` has the columns id, variant, metric, judge, repeat; `calls` those of the call frame, `uses` the same key and
    `ask`. A row that used an ask several times counts once. The tokens of a call count where it was sent: an answer
    from the store took none. A call without a known price or token count makes the share of every row that used it
    unknown.

    >>> rows = pd.DataFrame({"id": ["1", "2"], "variant": "", "metric": "m", "judge": "j", "repeat": 0})
    >>> calls = pd.DataFrame({"ask": ["a", "a"], "from_store": False, "latency_s": 1.0, "cost_usd": [0.2, 0.4],
    ...                       "prompt_tokens": [10, None], "completion_tokens": [1, 1]})
    >>> uses = rows.assign(ask="a")
    >>> found = bill(rows, calls, uses)
    >>> found.share("cost_usd").strict.round(6).tolist(), found.share("prompt_tokens").strict.tolist()
    ([0.3, 0.3], [nan, nan])
    >>> found.total("sent").tolist(), found.distinct("sent", np.array([0, 0]), 1).tolist()
    ([2.0, 2.0], [2.0])
    """
    ask, names = pd.factorize(pd.concat([calls["ask"], uses["ask"]], ignore_index=True))
    of_call, of_use = ask[: len(calls)], ask[len(calls) :]
    key = _row_codes(rows, uses)
    of_row, used_by = key[: len(rows)], key[len(rows) :]
    _, first = np.unique(np.stack([of_use, used_by]), axis=1, return_index=True) if len(uses) else (None, slice(0))
    of_use, used_by = of_use[first], used_by[first]
    stored = calls["from_store"].to_numpy(dtype=bool)

    def summed(values: Numbers) -> Numbers:
        return np.bincount(of_call, weights=values, minlength=len(names)).astype(np.float64)

    def amount(column: str, free: npt.NDArray[np.bool_]) -> Amount:
        values = np.where(free, 0.0, calls[column].to_numpy(dtype=np.float64, na_value=np.nan))
        gone = np.isnan(values)
        return Amount(summed(np.where(gone, 0.0, values)), summed(gone.astype(np.float64)) > 0)

    return Bill(
        rows=len(rows),
        row=pd.Index(of_row).get_indexer(pd.Index(used_by)),
        ask=of_use,
        members=np.bincount(of_use, minlength=len(names)),
        shared={
            "cost_usd": amount("cost_usd", np.zeros(len(calls), dtype=bool)),
            "prompt_tokens": amount("prompt_tokens", stored),
            "completion_tokens": amount("completion_tokens", stored),
        },
        whole={
            "sent": summed((~stored).astype(np.float64)),
            "cached": summed(stored.astype(np.float64)),
            "latency_s": summed(calls["latency_s"].to_numpy(dtype=np.float64, na_value=np.nan)),
        },
    )


def _row_codes(rows: pd.DataFrame, uses: pd.DataFrame) -> Places:
    """One whole number for each distinct key, over the rows and then the uses."""
    codes = np.zeros(len(rows) + len(uses), dtype=np.int64)
    for column in ROW_KEY:
        found, names = pd.factorize(pd.concat([rows[column], uses[column]], ignore_index=True))
        # Codes stay dense, so that five columns of many values can never run over 64 bits.
        codes, _ = pd.factorize(codes * (len(names) + 1) + found)
    return codes
