"""Pages of HTML as files: where they may go, and written so that one is seen whole or not at all."""

from __future__ import annotations

import secrets
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from jurimetrics.errors import InputError
from jurimetrics.project import is_folder

_LONGEST_START = 100
"""Characters of the name that an unfinished file begins with; the whole name and its ending may be too long for a disk."""


def page_path(who: str, path: Any) -> Path:
    """The path of a page that `who` is to write. Raises `InputError` for what is no path of an .html file.

    >>> page_path("report", "records.jsonl")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: report: expected a file that ends in .html, not 'records.jsonl'
    """
    if not isinstance(path, str | PathLike) or "\0" in str(fspath(path)):
        raise InputError(f"{who}: expected the path of an .html file, not {path!r}")
    target = Path(fspath(path))
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{who}: expected a file that ends in .html, not {str(path)!r}")
    if is_folder(target):
        raise InputError(f"{who}: {target} is a folder, expected a file")
    return target


def write_page(who: str, target: Path, text: str) -> Path:
    """Write a page and give its path; its folder is made, a file that is there is replaced.

    Raises `InputError` where it cannot be written; then nothing is left of it, and what was there stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page("report", Path(folder, "new", "a.html"), "<p>one").read_text(encoding="utf-8")
    '<p>one'
    """
    # Where the name is a link, what it leads to is replaced, not the link.
    whole = target.resolve()
    unfinished = whole.with_name(f".{whole.name[:_LONGEST_START]}.{secrets.token_hex(4)}")
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("xb") as file:
            file.write(text.encode("utf-8"))
        unfinished.replace(whole)
    except OSError as fault:
        raise InputError(f"{who}: {target} cannot be written ({fault.strerror or fault})") from None
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return target
