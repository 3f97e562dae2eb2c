"""Every fault of an experiment file as one line: file, key, and what was expected there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from jurimetrics.errors import InputError
from jurimetrics.experiment.tables import ENDPOINTS, KINDS, SEVERAL, TABLES, ExperimentTable, Table

Place = tuple[str | int, ...]

# By name; `max_tokens`, `budget_tokens` and `api_key_env` are none, and a body may well hold a `prompt_cache_key`.
_KEY_NAME = re.compile(
    r"(^|[-_.])(api[-_]?key|secret|password|passwd|authorization|bearer|credentials?)$", re.IGNORECASE
)
_OFTEN_A_KEY = re.compile(r"(^|[-_.])(key|token)$", re.IGNORECASE)
# By value: the beginning that most providers give their keys; in a judge also other beginnings, and Azure's 32 digits.
_KEY_VALUE = re.compile(r"\s*(?:bearer\s+)?sk-[\w-]{6,}\s*$", re.IGNORECASE)
_KEY_OF_JUDGE = re.compile(
    r"\s*(?:(?:bearer|basic)\s+\S{6}|(?:(?:gsk|hf|ghp|r8|xai|pplx|nvapi|csk)[-_]|AIza|eyJ)[\w.-]{18}|[0-9a-f]{32}\s*$)",
    re.I,
)
_KEY_IN_ADDRESS = re.compile(
    r"//[^/@?#]*:[^/@?#]*@|[?&;](?:[\w.-]*[-_.])?(?:key|api-?key|apikey|token|secret|sig)=", re.I
)
_NO_KEY = 'an API key never stands in this file; name the variable that holds it: api_key_env = "OPENAI_API_KEY"'


def fault(file: object, place: Place | str, words: str) -> InputError:
    """The error to raise for a fault at a place.

    >>> str(fault("a.toml", ("judges", 1, "model"), "expected text, found 3"))
    'a.toml: judges[1].model: expected text, found 3'
    """
    return InputError(f"{file}: {place if isinstance(place, str) else dotted(place)}: {words}")


def dotted(place: Place) -> str:
    """A place in the file in the words of its author; the first of several tables is number 0.

    >>> dotted(("metrics", "rubrics", 0, "scale"))
    'metrics.rubrics[0].scale'
    """
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def shown(value: object) -> str:
    """A value of the file as its author would recognise it, in a few words on one line.

    >>> shown(True), shown("a"), shown({}), shown([1, 2])
    ('true', '"a"', 'a table', '[1, 2]')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        text = "[" + ", ".join(shown(each) for each in value[:6]) + (", ...]" if len(value) > 6 else "]")
    else:
        text = '"' + " ".join(value.split()) + '"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."


def meant(word: str, known: Iterable[str]) -> str:
    """`; did you mean "..."?` where a known word is close, else `; known: ...`.

    >>> meant("faithfulnes", ["f1", "faithfulness"]), meant("x", ["b", "a"])
    ('; did you mean "faithfulness"?', '; known: a, b')
    """
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, 1, 0.6)
    return f'; did you mean "{close[0]}"?' if close else f"; known: {', '.join(names)}"


def refuse_keys(file: object, content: Mapping[str, Any]) -> None:
    """Raise `InputError` where the file holds what looks like a key, by its name or its value; the value is not shown."""
    for place, value in _leaves(content, ()):
        if isinstance(value, str) and (_KEY_VALUE.match(value) or (place[0] in ENDPOINTS and _is_key(place, value))):
            raise fault(file, place, _NO_KEY)


def _is_key(place: Place, value: str) -> bool:
    name = next(step for step in reversed(place) if isinstance(step, str))
    often = "extra_body" not in place and _OFTEN_A_KEY.search(name)
    return bool(often or _KEY_NAME.search(name) or _KEY_OF_JUDGE.match(value) or _KEY_IN_ADDRESS.search(value))


def _leaves(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*place, number))
    else:
        yield place, value


def first_fault(file: object, content: Mapping[str, Any], error: ValidationError) -> InputError:
    """The one fault to tell of all that pydantic found: an unknown key before what may only follow from it."""
    details = sorted(
        error.errors(include_url=False, include_context=True), key=lambda one: one["type"] != "extra_forbidden"
    )
    kind, given = details[0]["type"], details[0]["input"]
    place = _place(content, details[0]["loc"])
    if kind == "extra_forbidden":
        return fault(file, place, "unknown key" + _unknown(content, place))
    if kind.startswith("union_tag"):
        kind = "missing" if kind == "union_tag_not_found" else kind
        expected = " or ".join(f'"{each}"' for each in KINDS)
        # The table lacks its kind, or has one that is not known.
        place = (*place, "kind")
        given = given.get("kind") if isinstance(given, Mapping) else given
    else:
        expected = _expected(content, place, kind)
    words = f"missing; expected {expected}" if kind == "missing" else f"expected {expected}, found {shown(given)}"
    return fault(file, place, words)


def _place(content: Any, location: tuple[str | int, ...]) -> Place:
    """Where a fault is, without the kinds that pydantic puts between a judge and its keys."""
    place: list[str | int] = []
    for step in location:
        inside_judge = len(place) == 2 and place[0] == "judges"
        if step == "[key]" or (inside_judge and step in KINDS and len(location) > 2 and location[2] is step):
            continue
        place.append(step)
    return tuple(place)


def _names(place: Place) -> tuple[str, ...]:
    return tuple(step for step in place if isinstance(step, str))


def _table(content: Any, place: Place) -> tuple[type[Table], str]:
    """The model of the innermost table around a place, and the key of that table which leads to the place."""
    names = _names(place)
    depth = max(depth for depth in range(len(names)) if names[:depth] in TABLES)
    models = TABLES[names[:depth]]
    if len(models) == 1:
        return models[0], names[depth]
    number = next(step for step in place if isinstance(step, int))
    kind = content["judges"][number].get("kind")
    return models[KINDS.index(kind)], names[depth]


def _expected(content: Any, place: Place, kind: str) -> str:
    names = _names(place)
    if names in TABLES and isinstance(place[-1], int):
        return f"a table [[{'.'.join(names)}]]"
    model, key = _table(content, place)
    if place[-1] != key and kind in _INNER:
        return _INNER[kind]
    return str(model.model_fields[key].description)


# Of what stands inside a value, such as one entry of a list.
_INNER = {"string_type": "text", "float_type": "a number", "finite_number": "a number"}


def _unknown(content: Any, place: Place) -> str:
    model, key = _table(content, place)
    own = difflib.get_close_matches(key, list(model.model_fields), 1, 0.75)
    if not own:
        here = _names(place)[:-1]
        for names, models in TABLES.items():
            # What those who are asked have in common is no reason to send the keys of one to another, nor is what the
            # whole file has too: every other table seems to have a name.
            asked = {names[0], here[0]} <= {*ENDPOINTS} if names and here else False
            alike = asked or key in ExperimentTable.model_fields
            if names and names != here and not alike and any(key in each.model_fields for each in models):
                name = ".".join(names)
                return f"; it belongs into {f'[[{name}]]' if names[-1] in SEVERAL else f'[{name}]'}"
    return meant(key, model.model_fields)
