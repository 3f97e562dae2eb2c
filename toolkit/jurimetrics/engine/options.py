"""Options that everything which asks takes alike, checked before anything is sent."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from jurimetrics.errors import InputError
from jurimetrics.project import project_folder

StoreChoice = Path | str | None
"""A path, "auto" for the project's own store, or None to keep answers in memory only."""


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise `InputError` for what is no whole number from `least`.

    >>> check_whole("retries", -1, 0)
    Traceback (most recent call last):
    jurimetrics.errors.InputError: retries must be a whole number from 0, not -1
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number from {least}, not {value!r}")


def path_of(name: str, given: Any) -> Path | None:
    """An option that is a path or None. Raises `InputError` for anything else.

    >>> path_of("out", None) is None
    True
    """
    if given is None:
        return None
    if not isinstance(given, str | PathLike) or "\0" in fspath(given) or not fspath(given):
        raise InputError(f"{name} must be a path or None, not {given!r}")
    return Path(given)


def store_path(store: StoreChoice) -> Path | None:
    """Where answers are kept: None is in memory. Raises `InputError` for what is no path.

    >>> store_path("auto").name
    'store.db'
    """
    return project_folder() / ".jurimetrics" / "store.db" if store == "auto" else path_of("store", store)


def check_language(language: Any) -> None:
    """Raise `InputError` for what is no name of a language; None is that of the answer.

    >>> check_language("German")
    """
    if language is None:
        return
    if not isinstance(language, str) or not language.strip() or not language.isprintable():
        raise InputError(f'reason_language is the name of a language, such as "German", not {language!r}')
