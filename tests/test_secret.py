"""Secrets that never print, and their removal by value in every spelling."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import traceback
from dataclasses import asdict, dataclass
from urllib.parse import quote, quote_plus

import pytest
from jurimetrics.judges.secret import Redactor, Secret

VALUE = 'sk-CANARY/42+"é"='


@dataclass(frozen=True)
class Holder:
    key: Secret


@pytest.mark.parametrize(
    "shown",
    [
        lambda s: str(s),
        lambda s: repr(s),
        lambda s: f"{s}",
        lambda s: f"{s!r} {s!s} {s:>10}",
        lambda s: "%s %r" % (s, s),  # noqa: UP031 - the old way of formatting must not leak either
        lambda s: "key " + s,
        lambda s: s + " key",
        lambda s: ",".join([s, s]),
        lambda s: json.dumps({"key": s, "list": [s]}),
        lambda s: pickle.dumps(s).decode("latin-1"),
        lambda s: repr(Holder(s)) + str(asdict(Holder(s))),
        lambda s: s.upper() + s[:] + s.strip(),
        lambda s: s.encode().decode(),
        lambda s: "".join(traceback.format_exception(ValueError(s))),
        lambda s: str(vars(Holder(s))),
    ],
)
def test_shows_stars_only(shown) -> None:  # type: ignore[no-untyped-def]
    text = shown(Secret(VALUE))
    assert "***" in text
    assert "CANARY" not in text


def test_reveal_copy_and_equality() -> None:
    secret = Secret(VALUE)
    assert secret.reveal() == VALUE
    assert copy.deepcopy(secret).reveal() == copy.copy(secret).reveal() == Secret(secret).reveal() == VALUE
    assert secret == Secret(VALUE)
    assert secret != Secret("another value")
    assert secret not in (VALUE, "***")
    assert len({secret, Secret(VALUE), Secret("another value")}) == 2


def test_a_pickled_secret_comes_back_as_stars() -> None:
    assert pickle.loads(pickle.dumps(Secret(VALUE))).reveal() == "***"


@pytest.mark.parametrize(
    "spelling",
    [
        VALUE,
        quote(VALUE, safe=""),
        quote(VALUE),
        quote_plus(VALUE),
        quote(VALUE, safe="").replace("%2F", "%2f").replace("%C3", "%c3"),
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1].replace("/", "\\/"),
        json.dumps(VALUE)[1:-1],
        base64.b64encode(VALUE.encode()).decode(),
        base64.b64encode(f"{VALUE}:".encode()).decode(),
        base64.b64encode(f":{VALUE}".encode()).decode(),
    ],
)
def test_redacts_each_spelling(spelling: str) -> None:
    redactor = Redactor([Secret(VALUE), Secret("another-secret")])
    assert redactor.redact(f"Authorization: Bearer {spelling}, wrong key") == "Authorization: Bearer ***, wrong key"


def test_redacts_a_pair_of_user_and_password() -> None:
    pair = base64.b64encode(b"user:CANARY-42").decode()
    redactor = Redactor([Secret("user:CANARY-42"), Secret("CANARY-42")])
    assert redactor.redact(f"Basic {pair}; https://user:CANARY-42@host") == "Basic ***; https://***@host"


def test_short_secrets_are_words() -> None:
    assert Redactor([Secret("test"), Secret("")]).redact("a test of nothing") == "a test of nothing"


def test_longest_first() -> None:
    assert Redactor([Secret("abcdefgh"), Secret("abcdefgh-ijkl")]).redact("abcdefgh-ijkl") == "***"
