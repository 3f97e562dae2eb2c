"""The errors of the toolkit and the closed list of failure kinds.

A failure of one row is a value (a kind and a message in the frame), never an exception that ends the run. The exceptions
here are for what must stop before anything is sent (`InputError`) and for what travels between a task, a judge and the
engine (`ReplyError`, `NoMajority`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

FailureKind = Literal[
    "timeout",
    "transport",
    "rate_limited",
    "rejected",
    "filtered",
    "refused",
    "truncated",
    "unparsed",
    "out_of_range",
    "incomplete",
    "quorum",
    "unsupported",
    "budget",
    "cancelled",
    "crash",
]
"""Why a row failed. `timeout` no answer in time; `transport` the connection or the server broke; `rate_limited` still
refused after all waiting; `rejected` the endpoint refused the request for good (key, model, parameters); `filtered` a
content filter; `refused` the judge declined; `truncated` the reply was cut off; `unparsed` no reply of the asked shape;
`out_of_range` a value outside the declared scale; `incomplete` items missing after the re-ask; `quorum` too few members
of the panel answered; `unsupported` the judge cannot answer this kind; `budget` the money or tokens allowed are spent;
`cancelled` interrupted; `crash` an error in the metric's own code."""

FAILURE_KINDS: tuple[str, ...] = get_args(FailureKind)


class InputError(ValueError):
    """What the user gave cannot be used; said in one line, before anything is sent.

    >>> raise InputError("records.csv: no column for the answer; found: id, text")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: records.csv: no column for the answer; found: id, text
    """


@dataclass
class ReplyError(Exception):
    """A judge's reply is not what the task asked for; raised by a task's `read`.

    `kind` is `unparsed`, `out_of_range` or `incomplete`; `fault` says in words that can be shown to the judge what is
    wrong. For a task over numbered items `valid` holds the reply reduced to its valid items and `missing` the numbers
    (from 1) that must be asked again; both are empty where the whole reply is unusable.

    >>> str(ReplyError("incomplete", "claim 2 has no verdict", {"verdicts": []}, (2,)))
    'incomplete: claim 2 has no verdict'
    """

    kind: FailureKind
    fault: str
    valid: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.fault}"


class NoMajority(Exception):  # noqa: N818 - not an error: the panel has no value here
    """The members of a panel do not agree on one level by more than half: the score is undefined, not failed.

    >>> raise NoMajority("levels 1, 3 and 5 got one vote each")
    Traceback (most recent call last):
    jurimetrics.errors.NoMajority: levels 1, 3 and 5 got one vote each
    """
