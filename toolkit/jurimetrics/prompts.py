"""Prompts as data: a text with places for what a record holds, filled in one pass, known by a version of its own."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from jurimetrics import cells
from jurimetrics.errors import InputError
from jurimetrics.records import Record
from jurimetrics.tasks.task import Message, fingerprint
from jurimetrics.text import is_blank

PLACES = ("question", "contexts", "reference", "answer", "id")
"""The fields of a record that a prompt may ask for; any other name is one of the record's metadata."""
DOCUMENTS_APART = "\n\n"
_METADATA = "metadata."
_FIELDS = frozenset(each.name for each in fields(Record))
_NAME = r"metadata\.[^\s{}](?:[^{}\r\n]*[^\s{}])?|[^\W\d]\w*"
_MOST_NAMES = 20
_LONGEST_SHOWN = 4000
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True, repr=False)
class Prompt:
    r"""What a model is told to write an answer: a user message, perhaps a system message, with places to fill.

    A place is `{question}` or `{{question}}` (also `{{ question }}`), which mean the same: one of `question`, `contexts`
    (put in with a blank line between the documents), `reference`, `answer`, `id`, or a name among the record's metadata:
    `{metadata.topic}`, or `{topic}` where no field of a record is called so. Other braces, as in JSON, are text.

    Attributes
    ----------
    name : one line of text.
    user, system : the messages, kept character by character: nothing is stripped or normalised. "" is no system message.
    tags : words to choose by, e.g. the use case; a library of prompts may serve several.
    description : for people; never sent.
    variables : the names of the places in the order of the text. `None` finds them: every `{identifier}` is one. Where
        they are given, exactly these are places and all else is text, which is how `{name}` in an example of code stays
        as it is. Each must occur. A copy with another text (`dataclasses.replace`) needs `variables=None` to find anew.
    version : 12 hex digits of a SHA-256 over system, user and variables: it changes with any character of them, and with
        nothing else. Not given but made.

    Raises
    ------
    InputError : a value of a wrong type, a blank text, a name among `variables` that does not occur; names the field.

    Examples
    --------
    >>> prompt = Prompt("short", "Answer from these:\n{contexts}\n\nQ: {{question}}", system='Reply as {"answer": "..."}')
    >>> prompt
    Prompt('short', version ..., places: contexts, question, 'Answer from these: {contexts} Q: {{question}}')
    >>> prompt.messages({"question": "Who pays {contexts}?", "contexts": ["One.", "Two."]})[1]["content"]
    'Answer from these:\nOne.\n\nTwo.\n\nQ: Who pays {contexts}?'
    """

    name: str
    user: str
    system: str = ""
    tags: tuple[str, ...] = ()
    description: str = ""
    variables: tuple[str, ...] | None = None
    version: str = field(init=False)

    def __post_init__(self) -> None:
        for key in ("name", "user", "system", "description"):
            _require_text(key, getattr(self, key))
        if is_blank(self.name) or self.name != self.name.strip() or len(self.name.splitlines()) > 1:
            raise InputError(f"name: expected one line of text without spaces around it, found {cells.show(self.name)}")
        if is_blank(self.user):
            raise InputError("user: the text of a prompt is needed, found a blank one")
        if self.system and is_blank(self.system):
            raise InputError("system: expected a text, or none at all, found a blank one")
        object.__setattr__(self, "tags", _words("tags", self.tags))
        if self.variables is None:
            found = _names(_FOUND, self.system, self.user)
        else:
            found = _declared(_words("variables", self.variables), self.system, self.user)
        object.__setattr__(self, "variables", found)
        content = {"system": self.system, "user": self.user, "variables": found}
        object.__setattr__(self, "version", fingerprint(content)[:12])

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the places, which `variables` holds too.

        >>> Prompt("short", "{question} {metadata.topic}").places
        ('question', 'metadata.topic')
        """
        return self.variables or ()

    def messages(self, values: Record | Mapping[str, Any]) -> list[Message]:
        """The chat messages with every place filled from a record, or from values by their names.

        One pass over the text: what is put in is never looked at again. Text goes in as it is, a number as its text,
        documents with a blank line between them, any other list or mapping as JSON.

        Raises `InputError` that names what is lacking; ask `lacking` first where that may be.

        >>> Prompt("short", "{topic}: {question}").messages(Record("7", question="Why?", metadata={"topic": "law"}))
        [{'role': 'user', 'content': 'law: Why?'}]
        """
        texts = {name: _text(values, name) for name in self.places}
        absent = [name for name, text in texts.items() if text is None]
        if absent:
            raise InputError(f"prompt {self.name!r}: nothing is given for {_listed(absent)}")
        filled = [("system", self.system)] if self.system else []
        return [
            {"role": role, "content": _pattern(self.places).sub(lambda at: texts[at[1] or at[2]] or "", text)}
            for role, text in [*filled, ("user", self.user)]
        ]

    def lacking(self, values: Record | Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the places for which a record, or values by their names, hold nothing; () where all can be filled.

        A blank answer is there; a blank question or reference, no document, and NaN are not.

        >>> Prompt("short", "{question} {contexts} {topic}").lacking(Record("7", question="Why?"))
        ('contexts', 'topic')
        """
        return tuple(name for name in self.places if _text(values, name) is None)

    def check(self, records: Iterable[Record]) -> None:
        """Raise `InputError` for a place that none of `records` can fill, naming it and the names that there are.

        >>> Prompt("short", "{question} {nmae}").check([Record("7", question="Why?", metadata={"topic": "law"})])
        Traceback (most recent call last):
        jurimetrics.errors.InputError: prompt 'short': no record has 'nmae' for the place {nmae}; known: question, id, topic; if it is no place but text, list the places as variables = ["question"]
        """  # noqa: E501 - one line of output
        wanted = dict.fromkeys(self.places)
        known: dict[str, None] = {}
        for record in records:
            if not wanted and known:
                break
            known |= dict.fromkeys([*(name for name in PLACES if record.has(name)), *record.metadata])
            wanted = {name: None for name in wanted if _text(record, name) is None}
        if wanted:
            raise InputError(self._unknown(next(iter(wanted)), list(known)))

    def _unknown(self, name: str, known: list[str]) -> str:
        others = json.dumps([other for other in self.places if other != name], ensure_ascii=False)
        some = ", ".join(known[:_MOST_NAMES]) or "nothing"
        more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
        return (
            f"prompt {self.name!r}: no record has {name!r} for the place {{{name}}}; known: {some}{more}; "
            f"if it is no place but text, list the places as variables = {others}"
        )

    def __repr__(self) -> str:
        places = ", ".join(self.places) or "none"
        start = " ".join(self.user[:200].split())
        start = start if len(start) <= 50 and len(self.user) <= 200 else start[:49] + "…"
        return f"Prompt({self.name!r}, version {self.version}, places: {places}, {start!r})"

    def _repr_html_(self) -> str:
        about = [f"version {self.version}", *([f"tags: {', '.join(self.tags)}"] if self.tags else [])]
        parts = [("system", self.system)] if self.system else []
        bodies = "".join(
            f"<div>{role}</div><pre dir='auto' style='white-space:pre-wrap;margin:.2em 0 .6em'>{self._marked(text)}</pre>"
            for role, text in [*parts, ("user", self.user)]
        )
        described = f"<p>{_escaped(self.description)}</p>" if self.description else ""
        # The class keeps a notebook from setting other people's text as formulas.
        return (
            f"<div class='tex2jax_ignore mathjax_ignore'><b>{_escaped(self.name)}</b> "
            f"({_escaped('; '.join(about))}){described}{bodies}</div>"
        )

    def _marked(self, text: str) -> str:
        """`text` as HTML with its places marked, cut visibly where it is long."""
        cut = text[:_LONGEST_SHOWN]
        pieces, end = [], 0
        for at in _pattern(self.places).finditer(cut):
            pieces += [_escaped(cut[end : at.start()]), f"<b>{_escaped(at[0])}</b>"]
            end = at.end()
        more = f" … ({len(text) - len(cut):,} more characters)" if len(text) > len(cut) else ""
        return "".join([*pieces, _escaped(cut[end:]), more])


def _places(names: str) -> re.Pattern[str]:
    return re.compile(r"\{\{[ \t]*(" + names + r")[ \t]*\}\}|\{(" + names + r")\}")


_FOUND = _places(_NAME)


@lru_cache(maxsize=256)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """What finds exactly these places; nothing at all where there are none."""
    return _places("|".join(map(re.escape, names))) if names else re.compile(r"(?!)")


def _names(pattern: re.Pattern[str], *texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(at[1] or at[2] for text in texts for at in pattern.finditer(text)))


def _declared(names: tuple[str, ...], *texts: str) -> tuple[str, ...]:
    for name in names:
        if set(name) & set("{}\r\n"):
            raise InputError(f"variables: expected names without braces and on one line, found {name!r}")
    found = _names(_pattern(names), *texts)
    for name in names:
        if name not in found:
            raise InputError(f"variables: {name!r} is listed, but the text has no place {{{name}}}")
    return found


def _text(values: Record | Mapping[str, Any], name: str) -> str | None:
    """What fills the place `name`; None where there is nothing."""
    if isinstance(values, Record):
        found = _of_record(values, name)
    else:
        found = values.get(name)
        inner = values.get("metadata")
        if found is None and isinstance(inner, Mapping) and name not in _FIELDS:
            found = inner.get(name.removeprefix(_METADATA))
    if cells.is_missing(found):
        return None
    if name == "contexts":
        return DOCUMENTS_APART.join(cells.read_documents(found)) or None
    if isinstance(found, (Mapping, list, tuple)):
        return json.dumps(cells.plain(found), ensure_ascii=False)
    return cells.read_text(found)


def _of_record(record: Record, name: str) -> Any:
    if name in PLACES:
        return getattr(record, name)
    if name.startswith(_METADATA):
        return record.metadata.get(name.removeprefix(_METADATA))
    return None if name in _FIELDS else record.metadata.get(name)


def _require_text(key: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{key}: expected text, found {cells.show(value)}")
    if cells.clean_text(value) != value:
        raise InputError(f"{key}: half of a surrogate pair stands in the text, which cannot be sent")


def _words(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) and word.strip() for word in value):
        raise InputError(f"{key}: expected a list of names, found {cells.show(value)}")
    for word in value:
        _require_text(key, word)
    return tuple(dict.fromkeys(value))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def _escaped(text: str) -> str:
    return html.escape("".join("\ufffd" if _steers(char) else char for char in text))


def _steers(char: str) -> bool:
    """Whether a character controls a page, or turns the direction of all that follows."""
    if char in "\t\r\n":
        return False
    return char in _TURNS or unicodedata.category(char) in ("Cc", "Zl", "Zp")
