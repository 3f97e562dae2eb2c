"""Every claim, fact and sentence that was checked, one by one, with who said what of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from jurimetrics.tasks.voting import entropy

COLUMNS = (
    "id", "variant", "metric", "judge", "repeat", "against", "number", "claim", "verdict", "reason", "undecided", "evidence",
)  # fmt: skip
_ROW = ("id", "variant", "metric", "judge", "repeat")
# What a panel's votes on the facts of a reference are called in the details.
_ENTAILMENT = {"supported": "entailed", "contradicted": "contradicted", "unknown": "neutral"}


@dataclass(frozen=True, slots=True)
class Checked:
    """One claim, fact or sentence and what was found of it.

    `against` is what it was laid beside: "contexts", "reference" or "answer" (facts of the reference). `number` counts
    from 1 within that. `sentence` is True for a sentence of the answer. `undecided` is None where the details do not
    say. `evidence`: (document from 1, quote). `votes`: judge -> verdict, None for one that failed; {} but for panels.
    """

    against: str
    number: int
    claim: str
    verdict: str
    reason: str
    undecided: bool | None = None
    evidence: tuple[tuple[int, str], ...] = ()
    votes: Mapping[str, str | None] = field(default_factory=dict)
    sentence: bool = False


def checked(details: Mapping[str, Any], needs: Sequence[str]) -> list[Checked]:
    """What the details of one row hold of claims, facts and sentences, in the order they were asked about.

    `needs` are the fields that the metric needs: they tell what its claims were checked against.

    >>> verdict = {"claim": "It is old.", "verdict": "unknown", "reason": "no majority", "undecided": True}
    >>> ballots = {"votes": [{"kind": "check", "votes": [{"ada": "supported", "bob": "unknown"}]}]}
    >>> found = checked({"verdicts": [verdict], "panel": ballots}, ["answer", "contexts"])[0]
    >>> found.against, found.verdict, found.votes["ada"]
    ('contexts', 'unknown', 'supported')
    """
    ballots = _ballots(details)
    found = []
    for kind, against, entries in _sections(details, needs):
        votes = _take(ballots, kind, len(entries))
        if against == "answer":
            votes = [{judge: _ENTAILMENT.get(said or "", said) for judge, said in one.items()} for one in votes]
        found += [
            _checked(against, number, entry, of_entry, kind)
            for number, (entry, of_entry) in enumerate(zip(entries, votes, strict=True), 1)
        ]
    return found


def claims(scores: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """The long frame of `Results.claims`, out of a score frame with `details` as JSON text.

    >>> details = json.dumps({"verdicts": [{"claim": "It is old.", "verdict": "supported", "reason": "said so"}]})
    >>> row = {"id": "1", "variant": "", "metric": "m", "judge": "ada", "repeat": 0, "details": details}
    >>> claims(pd.DataFrame([row]), {"metrics": {"m": {"needs": ["contexts"]}}})[["claim", "verdict"]].values.tolist()
    [['It is old.', 'supported']]
    """
    found = list(_rows(scores, settings))
    panel = settings.get("panel")
    if panel is None:
        found = _side_by_side(found)
    members = panel["members"] if panel and panel.get("vote_on") == "verdicts" else ()
    voters = list(dict.fromkeys([*members, *(name for _, one in found for name in one.votes)]))
    values = _values(found)
    table = {name: [value[at] for value in values] for at, name in enumerate(COLUMNS)}
    table |= {f"vote:{name}": [one.votes.get(name) for _, one in found] for name in voters}
    frame = pd.DataFrame({name: pd.Series(column, dtype=_dtype(name)) for name, column in table.items()})
    frame["disagreement"] = pd.Series([entropy(one.votes.values()) for _, one in found], dtype="float64")
    return frame


def _dtype(name: str) -> Any:
    return {"repeat": "int64", "number": "int64", "undecided": "boolean", "evidence": object}.get(name, str)


def _values(found: Sequence[tuple[tuple[Any, ...], Checked]]) -> list[tuple[Any, ...]]:
    return [
        (*key, one.against, one.number, one.claim, one.verdict, one.reason, one.undecided, list(one.evidence))
        for key, one in found
    ]


def _rows(scores: pd.DataFrame, settings: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, ...], Checked]]:
    for *key, details in scores[[*_ROW, "details"]].itertuples(index=False, name=None):
        for one in read_checked(details, settings["metrics"].get(key[2], {})):
            yield tuple(key), one


def read_checked(details: object, metric: Mapping[str, Any]) -> list[Checked]:
    """`checked` of details as JSON text ("" or missing: nothing) under the settings of their metric."""
    parsed = json.loads(details) if isinstance(details, str) and details else {}
    return checked(parsed, metric.get("needs") or ()) if isinstance(parsed, Mapping) else []


def _side_by_side(found: list[tuple[tuple[Any, ...], Checked]]) -> list[tuple[tuple[Any, ...], Checked]]:
    """Without a panel: the verdicts of all judges on the same claim, beside each of them."""
    said: dict[tuple[Any, ...], dict[str, str | None]] = {}
    for key, one in found:
        said.setdefault(_same(key, one), {})[key[3]] = one.verdict
    together = [(key, one, said[_same(key, one)]) for key, one in found]
    return [(key, replace(one, votes=votes) if len(votes) > 1 else one) for key, one, votes in together]


def _same(key: tuple[Any, ...], one: Checked) -> tuple[Any, ...]:
    return (*key[:3], key[4], one.against, one.number, one.claim)


def _sections(details: Mapping[str, Any], needs: Sequence[str]) -> Iterator[tuple[str, str, list[Mapping[str, Any]]]]:
    """Kind of task, what it was checked against, entries; in the order in which the metrics ask."""
    facts: list[Mapping[str, Any]] = [
        {**fact, "claim": _text(fact.get("fact"), "content"), "verdict": fact.get("entailment")}
        for fact in _entries(details, "evaluated_facts")
    ]
    both = _entries(details, "claims")
    yield "check", "answer", facts
    yield "check", "contexts" if "contexts" in needs else "reference", _entries(details, "verdicts")
    for against in ("contexts", "reference"):
        yield "check", against, [one[against] for one in both if isinstance(one.get(against), Mapping)]
    sentences = _entries(details, "sentences")
    yield "sentences", "contexts", [{**one, "claim": one.get("text"), "verdict": one.get("label")} for one in sentences]


def _entries(details: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    given = details.get(name)
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


def _text(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else value


def _ballots(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    panel = details.get("panel")
    return _entries(panel, "votes") if isinstance(panel, Mapping) else []


def _take(ballots: list[Mapping[str, Any]], kind: str, length: int) -> list[dict[str, str | None]]:
    """The next votes on this kind of task, if there are as many as entries; they are taken out of `ballots`."""
    at = next((at for at, one in enumerate(ballots) if one.get("kind") == kind), None)
    if not length or at is None or len(_entries(ballots[at], "votes")) != length:
        return [{} for _ in range(length)]
    return [
        {str(judge): None if said is None else str(said) for judge, said in one.items()}
        for one in _entries(ballots.pop(at), "votes")
    ]


def _checked(
    against: str, number: int, entry: Mapping[str, Any], votes: Mapping[str, str | None], kind: str
) -> Checked:
    undecided = entry.get("undecided")
    quotes = [
        (one["doc"] if isinstance(one.get("doc"), int) else 0, str(one.get("quote") or ""))
        for one in _entries(entry, "evidence")
    ]
    return Checked(
        against,
        number,
        str(entry.get("claim") or ""),
        str(entry.get("verdict") or entry.get("label") or ""),
        str(entry.get("reason") or ""),
        undecided if isinstance(undecided, bool) else None,
        tuple(quote for quote in quotes if quote[1]),
        votes,
        kind == "sentences",
    )
