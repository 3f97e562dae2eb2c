"""A run of failures that are all alike: the next request would fail too, so it is not sent and not paid."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jurimetrics.errors import FailureKind
from jurimetrics.judges.judge import JudgeError

ALIKE = 20
"""Calls that failed for good, one like the other and none answered between them, after which no more are sent."""
FATAL = 3
"""The same for failures that every further request must meet (a key that was revoked, a model that was removed)."""

SELDOM = 0.1
"""Up to this share of unreadable replies they are accidents, which do not come twice; above it they are the judge's way."""

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_NUMBERS = re.compile(r"(?=[\w-]*\d)[\w-]+(?:\.\d+)*")


def likeness(message: str) -> str:
    """A message without what differs from request to request: numbers, ids, quotations.

    >>> likeness("HTTP 500: request req_8f3a21 failed after 12.5 s for 'x'") == likeness(
    ...     "HTTP 500: request req_11c9be failed after 3 s for 'y'")
    True
    >>> likeness("content filter (hate)") == likeness("content filter (violence)")
    False
    """
    return _NUMBERS.sub("#", _QUOTED.sub("'...'", message))


@dataclass
class Streak:
    """The last calls of one judge for one question, as far as they failed alike. An answer ends it.

    >>> streak = Streak()
    >>> for number in range(20):
    ...     streak.failed(JudgeError("filtered", f"content filter, request {number}"))
    >>> str(streak.ended())
    'filtered: not asked: the last 20 requests failed alike (content filter, request 19)'
    """

    count: int = 0
    read: int = 0
    unread: int = 0
    """Replies that could be read, and that could not."""
    _kind: FailureKind = "rejected"
    _like: str = ""
    _message: str = ""
    _fatal: bool = False

    def answered(self) -> None:
        """A call was answered."""
        self.count = 0

    @property
    def mostly_read(self) -> bool:
        """Whether enough replies came, and seldom one that could not be read."""
        return self.read >= ALIKE and self.unread <= SELDOM * self.read

    def failed(self, error: JudgeError) -> None:
        """A call failed for good, after all its tries. What was still under way at the end adds nothing."""
        if self.ended() is not None:
            return
        like = likeness(error.message)
        if (error.kind, like, error.fatal) != (self._kind, self._like, self._fatal):
            self.count = 0
        self._kind, self._like, self._fatal = error.kind, like, error.fatal
        self._message = error.message
        self.count += 1

    def ended(self) -> JudgeError | None:
        """The failure of whatever is not asked any more; None while there is hope."""
        if self.count < (FATAL if self._fatal else ALIKE):
            return None
        said = f"not asked: the last {self.count} requests failed alike ({self._message})"
        return JudgeError(self._kind, said, fatal=self._fatal)
