"""Names that MLflow accepts: one fixed rule that can be read backwards, under which no two names become one.

MLflow takes letters, digits, `_`, `-`, `.`, space and `/` in the names of metrics, params and tags (`:` too, but not on
Windows), at most 250 of them, and refuses what is not a normal path (`/a`, `a//b`, `../x`). Here `/` is kept for the
step from a metric to its judge or its figure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from jurimetrics.errors import InputError

FIGURES = ("pass_rate", "n", "missing", "low", "high")
LONGEST = 110  # of one segment: `name.<metric>/<judge>` must stay within MLflow's 250 characters
_ILLEGAL = re.compile(r"_(?=u[0-9a-fx])|[^\w.\- ]")
_ILLEGAL_IN_PROMPTS = re.compile(r"_(?=u[0-9a-fx])|[^A-Za-z0-9_.\-]")  # the prompt registry takes ASCII only, no space
_ESCAPE = re.compile(r"_u([0-9a-f]+)_")
_CUT = re.compile(r"_ux[0-9a-f]{16}$")


def encode(name: str) -> str:
    """`name` as one legal segment of an MLflow name: an illegal character becomes `_u<hex>_`, all else stays as it is.

    A segment over 110 characters is cut and ends in `_ux` and 16 digits of the SHA-256 of the name: only then the name
    itself must be looked up (in the run's tag). Raises `InputError` for an empty name.

    >>> encode("faithfulness"), encode("map@k"), encode("a/b"), encode("..")
    ('faithfulness', 'map_u40_k', 'a_u2f_b', '_u2e_.')
    """
    return _encoded(name, _ILLEGAL)


def prompt_name(name: str) -> str:
    """`name` as MLflow's prompt registry takes it: ASCII letters, digits, `_`, `-` and `.`; else the rule of `encode`.

    >>> prompt_name("short"), prompt_name("short answer/v2"), decode(prompt_name("kurz: é"))
    ('short', 'short_u20_answer_u2f_v2', 'kurz: é')
    """
    return _encoded(name, _ILLEGAL_IN_PROMPTS)


def _encoded(name: str, illegal: re.Pattern[str]) -> str:
    if not name:
        raise InputError("a metric or judge without a name cannot be logged to MLflow")
    text = illegal.sub(_escape, name)
    if text == "." or text.startswith(".."):
        text = "_u2e_" + text[1:]
    if len(text) > LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        text = f"{text[: LONGEST - 19]}_ux{digest}"
    return text


def decode(segment: str) -> str | None:
    """The name that `encode` was given; None where it was cut.

    >>> decode("map_u40_k"), decode(encode("x" * 300))
    ('map@k', None)
    """
    if _CUT.search(segment):
        return None
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), segment)


def metric_name(metric: str, part: str = "", *, judge: str = "") -> str:
    """The MLflow name of a metric's headline, of its mean under one judge, or of one of its `FIGURES`.

    >>> metric_name("faithfulness"), metric_name("f1", "n"), metric_name("f1", judge="n")
    ('faithfulness', 'f1/n', 'f1/_u6e_')
    """
    name = encode(metric)
    if part:
        return f"{name}/{part}"
    if not judge:
        return name
    return f"{name}/{_escape_first(judge) if judge in FIGURES else encode(judge)}"


def assessment_names(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A name without "/" for every (metric, judge) pair; the judge is "" for the headline of a metric.

    Letters, digits and `_` only. Where two pairs would get the same name, all but an exact one get a digest at the end,
    whatever their order.

    >>> assessment_names([("faithfulness", ""), ("faithfulness", "gpt-4.1-mini")])[("faithfulness", "gpt-4.1-mini")]
    'faithfulness_gpt_4_1_mini'
    """
    plain = {pair: _plain(pair) for pair in pairs}
    owners: dict[str, list[tuple[str, str]]] = {}
    for pair, name in plain.items():
        owners.setdefault(name, []).append(pair)
    names = {}
    for pair, name in plain.items():
        alone = len(owners[name]) == 1 and len(name) <= LONGEST
        names[pair] = name if alone or pair == (name, "") else f"{name[:LONGEST]}_{_digest(pair)}"
    return names


def _plain(pair: tuple[str, str]) -> str:
    return re.sub(r"\W", "_", "_".join(part for part in pair if part))


def _digest(pair: tuple[str, str]) -> str:
    return hashlib.sha256("\0".join(pair).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _escape(found: re.Match[str]) -> str:
    return f"_u{ord(found[0]):x}_"


def _escape_first(text: str) -> str:
    return f"_u{ord(text[0]):x}_{text[1:]}"
