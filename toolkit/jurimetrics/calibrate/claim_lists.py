"""The claims that judges and people found in each answer, and what they said of them, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from jurimetrics.calibrate.labels import require_results
from jurimetrics.calibrate.part_labels import VERDICTS
from jurimetrics.errors import InputError
from jurimetrics.results.claims import Checked, read_checked

if TYPE_CHECKING:
    from jurimetrics.results import Results

Key = tuple[str, str]
_VERDICTS = {"supported": "supported", "entailed": "supported", "contradicted": "contradicted", "unknown": "unknown",
             "neutral": "unknown"}  # fmt: skip


class Said(NamedTuple):
    """One claim and the verdict on it (None: not rated), with the reason (of people the rationale)."""

    claim: str
    verdict: str | None
    reason: str = ""
    undecided: bool = False


Lists = dict[Key, list[Said]]


class Judged(NamedTuple):
    """The claims of one judge by answer; `silent`, answers whose row holds none and does not say that there are none;
    the extractors that its rows name."""

    lists: Lists
    silent: tuple[Key, ...]
    extractors: frozenset[str]


def claims_of_people(labels: pd.DataFrame, known: Mapping[Key, str]) -> tuple[dict[str, Lists], pd.DataFrame]:
    """The claims of each rater by answer, of the answers in `known`; and the labels of other answers.

    Raises `InputError` where a column is lacking, a label is no verdict, or no answer is known.

    >>> people = pd.DataFrame({"id": ["1"], "variant": "", "rater": "ann", "claim": "It is old.", "label": ["supported"]})
    >>> claims_of_people(people, {("1", ""): "1"})[0]["ann"][("1", "")][0].verdict
    'supported'
    """
    check_part_labels(labels, ("id", "variant", "rater", "claim", "label"), "load_claim_labels")
    met = [key in known for key in zip(labels["id"], labels["variant"], strict=True)]
    refuse_unmet(labels, met, known)
    found: dict[str, Lists] = {}
    rationale = labels["rationale"] if "rationale" in labels.columns else pd.Series("", index=labels.index)
    columns = [labels[name] for name in ("id", "variant", "rater", "claim", "label")]
    for identity, variant, rater, claim, label, why, there in zip(*columns, rationale, met, strict=True):
        if not there:
            continue
        verdict = None if pd.isna(label) else str(label)
        if verdict is not None and verdict not in VERDICTS:
            raise InputError(f"labels: id {identity!r}: {verdict!r} is none of {', '.join(VERDICTS)}; read them with "
                             "load_claim_labels")  # fmt: skip
        listed = found.setdefault(str(rater), {}).setdefault((identity, variant), [])
        if isinstance(claim, str) and claim:
            listed.append(Said(claim, verdict, why if isinstance(why, str) else ""))
    unmatched = labels[[not there for there in met]].reset_index(drop=True)
    return dict(sorted(found.items())), unmatched


def check_part_labels(labels: pd.DataFrame, columns: Sequence[str], reader: str) -> None:
    """Raise `InputError` unless `labels` is a frame with rows and these columns."""
    if not isinstance(labels, pd.DataFrame):
        raise InputError(f"labels: expected the frame that {reader} gives, found {type(labels).__name__}")
    if lacking := [name for name in columns if name not in labels.columns]:
        found = ", ".join(map(str, labels.columns)) or "none"
        raise InputError(f"labels: no column {lacking[0]!r}; read them with {reader} (found: {found})")
    if labels.empty:
        raise InputError("labels: there are none")


def refuse_unmet(labels: pd.DataFrame, met: Sequence[bool], known: Mapping[Key, Any]) -> None:
    """Raise `InputError` where no label is of a known answer; shows the first of both."""
    if any(met):
        return
    mine = labels.iloc[0]
    theirs = next(iter(known), None)
    told = f"id {theirs[0]!r}, variant {theirs[1]!r}" if theirs else "none"
    raise InputError(
        "labels: none is of an answer in the results by id and variant; the first label is of id "
        f"{mine['id']!r}, variant {mine['variant']!r}, the first answer {told}"
    )


def claims_of_judges(results: Results, metric: str, against: str | None) -> tuple[dict[str, Judged], str]:
    """The claims of each judge under `metric` by answer (of repeats the first), and what they were checked against.

    Raises `InputError` where there is no such metric, no row of it holds claims, or claims were checked against several
    things and `against` does not say which.
    """
    settings, scores = require_results(results).settings, results.scores
    if metric not in settings["metrics"]:
        raise InputError(f"no metric {metric!r}; there are: {', '.join(settings['metrics'])}")
    rows = scores[scores["metric"] == metric].sort_values("repeat", kind="stable")
    read = [
        [one for one in read_checked(details, settings["metrics"][metric]) if not one.sentence]
        for details in rows["details"]
    ]
    side = _against(metric, against, read)
    found: dict[str, tuple[Lists, dict[Key, None], set[str]]] = {}
    for row, checked in zip(rows.to_dict("records"), read, strict=True):
        lists, silent, extractors = found.setdefault(row["judge"], ({}, {}, set()))
        mine = [_said(one) for one in checked if one.against == side]
        key = (row["id"], row["variant"])
        # An answer that makes no claims is flagged so; any other row without claims failed, or never had them.
        if key not in lists and (mine or "no_claims" in row["flags"]):
            lists[key] = mine
        silent[key] = None
        extractors |= _extractor(row["details"])
    order = scores.loc[scores["metric"] == metric, "judge"].drop_duplicates()
    return {name: _judged(*found[name]) for name in order}, side


def _judged(lists: Lists, keys: Mapping[Key, None], extractors: set[str]) -> Judged:
    return Judged(lists, tuple(key for key in keys if key not in lists), frozenset(extractors))


def _against(metric: str, against: str | None, read: Sequence[Sequence[Checked]]) -> str:
    there = list(dict.fromkeys(one.against for checked in read for one in checked))
    if not there:
        raise InputError(
            f"{metric}: no row holds claims; only metrics that check claims keep them, in rows that were evaluated here "
            "(span_agreement compares marked stretches, agreement whole scores)"
        )
    if against is None and len(there) > 1:
        raise InputError(f"{metric}: which? say against=...; there are: {', '.join(there)}")
    if against is not None and against not in there:
        raise InputError(f"{metric}: no claims were checked against {against!r}; there are: {', '.join(there)}")
    return against or there[0]


def _said(one: Checked) -> Said:
    return Said(one.claim, _VERDICTS.get(one.verdict), one.reason, bool(one.undecided))


def _extractor(details: Any) -> set[str]:
    parsed = json.loads(details) if isinstance(details, str) and details else {}
    name = parsed.get("extractor") if isinstance(parsed, Mapping) else None
    return {name} if isinstance(name, str) else set()
