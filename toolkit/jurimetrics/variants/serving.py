"""Whether one judge judged both variants: models and fingerprints that answered for a judge, by variant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from jurimetrics.results.reading import read_parts
from jurimetrics.results.served import SERVED, listed
from jurimetrics.variants.sheets import Sheet

if TYPE_CHECKING:
    from jurimetrics.results import Results

SAME_MIX = 0.2
"""Shares of calls by one model or fingerprint that differ by more between two variants are not the same mix."""


@dataclass(frozen=True, slots=True)
class Served:
    """Who answered for `judge` under one metric: `shares[variant][name]`, 0 to 1, of the calls that its rows used; `word`
    says whether names are those of models or fingerprints."""

    judge: str
    word: str
    shares: Mapping[str, Mapping[str, float]]

    def said(self, a: str, b: str) -> str:
        """In words, with shares where a variant had more than one."""
        said = [f"by {self._named(name)} for {name or '(no name)'}" for name in (a, b)]
        return f"{self.judge} was served by the {self.word} {' and '.join(said).removeprefix('by ')}"

    def _named(self, variant: str) -> str:
        shares = self.shares[variant]
        return listed(sorted(shares if len(shares) == 1 else (f"{name} ({part:.0%})" for name, part in shares.items())))

    def apart(self, a: str, b: str) -> bool:
        """Whether nobody answered for both."""
        return not set(self.shares[a]) & set(self.shares[b])

    def same(self, a: str, b: str) -> bool:
        """Whether the same answered for both, in much the same mix."""
        one, other = self.shares[a], self.shares[b]
        return set(one) == set(other) and all(abs(one[name] - other[name]) <= SAME_MIX for name in one)


@dataclass(frozen=True, slots=True)
class Serving:
    """What must be said of one line: `refused`, why no verdict is given ("" where one is); `flagged`, what stands with
    the verdict; `mixed`, what is only a note."""

    refused: str = ""
    flagged: str = ""
    mixed: str = ""


def serving_of(
    results: Results, compared: Sequence[Sheet], ids: Collection[str] | None = None
) -> dict[tuple[str, str], list[Served]]:
    """For each metric and judge that is compared, those that were not answered for by one and the same throughout.

    `ids`: only what rows of these records used.
    """
    used = results._kept("answered_for", lambda: _used(results.folder))
    if used is None:
        return {}
    if ids is not None:
        used = used[used["id"].isin(ids)]
    found = {}
    for sheet in compared:
        members = _members(sheet.judge, results.settings)
        mine = used[(used["metric"] == sheet.metric) & used["judge"].isin(members)]
        if several := list(_several(mine.drop(columns=["id", "judge"]).drop_duplicates())):
            found[sheet.metric, sheet.judge] = several
    return found


def _used(folder: Path) -> pd.DataFrame | None:
    """Who answered for what each row used; None where one and the same answered for each judge."""
    calls = read_parts(folder, "calls", ["ask", "judge", *SERVED]).to_pandas()
    if not (calls.groupby("judge")[[*SERVED]].nunique() > 1).any(axis=None):
        return None
    uses = read_parts(folder, "uses", ["ask", "id", "variant", "metric", "judge"]).to_pandas().drop_duplicates()
    used: pd.DataFrame = uses.merge(calls, on="ask", suffixes=("", "_asked"))
    return used


def pair_serving(several: Sequence[Served], a: str, b: str) -> Serving:
    """What must be said where variants `a` and `b` are compared by a judge for whom several answered.

    No verdict is given where another model answered for each of them: the difference may be theirs. Where fingerprints
    have nothing in common, or the mix is another, it stands with the verdict.

    >>> turned = Served("ann", "model", {"A": {"m-1": 1.0}, "B": {"m-2": 1.0}})
    >>> pair_serving([turned], "A", "B").refused
    'ann was served by the model m-1 for A and by m-2 for B'
    >>> mixed = Served("ann", "model", {"A": {"m-1": 0.5, "m-2": 0.5}, "B": {"m-1": 0.6, "m-2": 0.4}})
    >>> pair_serving([mixed], "A", "B").flagged, pair_serving([mixed], "A", "B").mixed != ""
    ('', True)
    """
    said: dict[str, list[str]] = {"refused": [], "flagged": [], "mixed": []}
    for one in several:
        if a not in one.shares or b not in one.shares or len({*one.shares[a], *one.shares[b]}) < 2:
            continue
        kind = "mixed" if one.same(a, b) else "flagged"
        kind = "refused" if one.word == SERVED["model_returned"] and one.apart(a, b) else kind
        said[kind].append(one.said(a, b))
    return Serving(**{kind: "; ".join(texts) for kind, texts in said.items()})


def serving_notes(found: Sequence[Serving]) -> list[str]:
    """One sentence for each kind of fault, the worst first.

    >>> serving_notes([Serving(flagged="ann was served by the fingerprint f-1 for A and by f-2 for B")])
    ['Not judged alike: ann was served by the fingerprint f-1 for A and by f-2 for B. The judge may make the difference.']
    """
    told = []
    for kind, head, tail in (
        ("refused", "No verdict, since not one judge judged both", "Judge all variants again in one evaluation."),
        ("flagged", "Not judged alike", "The judge may make the difference."),
        ("mixed", "Several answered for one judge, in much the same mix for both", "It weakens a comparison little."),
    ):
        if texts := dict.fromkeys(text for one in found if (text := getattr(one, kind))):
            told.append(f"{head}: {'; '.join(texts)}. {tail}")
    return told


def _members(judge: str, settings: Mapping[str, Any]) -> list[str]:
    """Whose rows stand behind a judge: a panel's members, the judge whose scores a calibration maps."""
    source = str(settings.get("judges", {}).get(judge, {}).get("of") or judge)
    panel = settings.get("panel") or {}
    return list(panel.get("members") or ()) if source == panel.get("name") else [source]


def _several(calls: pd.DataFrame) -> Iterator[Served]:
    for judge, mine in calls.groupby("judge_asked", sort=True):
        for column, word in SERVED.items():
            named = mine.dropna(subset=[column])
            if named[column].nunique() > 1:
                shares = {
                    str(variant): {str(name): float(part) for name, part in of.value_counts(normalize=True).items()}
                    for variant, of in named.groupby("variant")[column]
                }
                yield Served(str(judge), word, shares)
