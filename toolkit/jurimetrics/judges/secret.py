"""Text that must never be printed, and its removal by value from every text that leaves the process."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

SHOWN = "***"
SHORTEST = 8
"""Secrets below this many characters are not looked for in texts: `test` or `none`, the usual keys of local servers,
are words, and taking them out would change what a judge said."""


_PERCENT = re.compile("%([0-9A-F]{2})")


class Secret(str):
    """A text that shows as `***` wherever it is printed, formatted, joined, copied to JSON or pickled.

    It is a string of three stars that carries the real value out of sight, so that forgetting to reveal it sends stars
    and never the value. Two secrets are equal where their values are; a secret never equals a plain text. A pickled
    secret comes back as the stars.

    >>> key = Secret("sk-123")
    >>> f"{key} {key!r}", key.reveal(), key == "sk-123"
    ('*** ***', 'sk-123', False)
    """

    __slots__ = ("_value",)
    _value: str

    def __new__(cls, value: str) -> Secret:
        made = super().__new__(cls, SHOWN)
        made._value = value.reveal() if isinstance(value, Secret) else value
        return made

    def reveal(self) -> str:
        """The value itself; for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return SHOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (SHOWN,)


class Redactor:
    """Replaces the values of secrets in texts by `***`, in each spelling in which a server or a library echoes them.

    Spellings: as it is, percent-encoded, as inside JSON, and base64 (alone, as user or as password of a Basic header,
    and of `user:password` where the secret is such a pair). Secrets shorter than `SHORTEST` are left alone.

    >>> redactor = Redactor([Secret("canary/12345")])
    >>> redactor.redact("no key canary/12345 at ?key=canary%2F12345"), redactor.redact("test")
    ('no key *** at ?key=***', 'test')
    """

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        spelled = {spelling for secret in secrets for spelling in _spellings(secret.reveal())}
        longest_first = sorted(spelled, key=lambda spelling: (-len(spelling), spelling))
        patterns = [_PERCENT.sub(r"%(?i:\1)", re.escape(spelling)) for spelling in longest_first]
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    def redact(self, text: str) -> str:
        """`text` without the secrets."""
        return text if self._pattern is None else self._pattern.sub(SHOWN, text)


def _spellings(value: str) -> set[str]:
    if len(value) < SHORTEST:
        return set()
    encoded = {_base64(value), _base64(f"{value}:"), _base64(f":{value}")}
    bare = {spelling.rstrip("=") for spelling in encoded}
    percent = {quote(value, safe=""), quote(value), quote_plus(value)}
    in_json = {json.dumps(value, ensure_ascii=narrow)[1:-1] for narrow in (True, False)}
    return {value} | encoded | bare | percent | in_json | {spelling.replace("/", "\\/") for spelling in in_json}


def _base64(value: str) -> str:
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")
