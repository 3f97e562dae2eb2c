"""How the command speaks: UTF-8 whatever the locale, one line for bad input, an exit status that says what happened."""

from __future__ import annotations

import errno
import functools
import inspect
import io
import re
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from typing import ParamSpec, TypeVar

import typer

from jurimetrics.errors import InputError

FAILED_ROWS, BAD_INPUT, INTERRUPTED = 1, 2, 130

# What the library calls an argument, by the parameter of a command that is its option, and how the option is written.
_ARGUMENTS = (
    ("shared_only", re.compile(r"\bshared_only=True\b"), "--shared-only"),
    ("other_contexts", re.compile(r"\bsame_contexts=False\b(?: \(--other-contexts\))?"), "--other-contexts"),
    ("selection", re.compile(r"\bload_labels\(\.\.\., selection=\.\.\.\)"), "--selection"),
    ("selection", re.compile(r"""\bload_labels\(\.\.\., selection=(["'])(\w+)\1\)"""), r"--selection \2"),
    ("selection", re.compile(r"""\bselection=(["'])(\w+)\1"""), r"--selection \2"),
)

P = ParamSpec("P")
R = TypeVar("R")


def speak_utf8() -> None:
    """Write UTF-8 to both streams, and escapes for what cannot be written at all (half of a surrogate pair)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def say(text: str = "") -> None:
    """A line of the answer, on standard output."""
    typer.echo(text)


def warn(text: str) -> None:
    """A line about the answer, on standard error."""
    typer.echo(text, err=True)


def answering(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose bad input is one line and exit status 2, and whose interruption is exit status 130.

    The line names the options of this command where the library names arguments.
    """
    options = frozenset(inspect.signature(command).parameters)

    @functools.wraps(command)
    def answered(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except InputError as error:
            warn("jurimetrics: " + in_options(" ".join(str(error).split()), options))
            raise typer.Exit(BAD_INPUT) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read the output has enough
                raise
            warn(f"jurimetrics: {error}")
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            warn("interrupted; what was answered until now is in the store")
            raise typer.Exit(INTERRUPTED) from None

    return answered


def in_options(text: str, options: Collection[str]) -> str:
    """What the library says, in the options of a command, which are named as its parameters are; all else stays.

    >>> in_options("shared_only=True compares the 9 records that are alike", {"shared_only"})
    '--shared-only compares the 9 records that are alike'
    >>> in_options('declare it with load_labels(..., selection="random")', {"selection"})
    'declare it with --selection random'
    """
    for name, argument, option in _ARGUMENTS:
        text = argument.sub(option, text) if name in options else text
    return text


def width(least: int = 100) -> int:
    """Columns to fill: those of the terminal, but enough for a table where there is none to ask."""
    return max(shutil.get_terminal_size((120, 24)).columns, least)


def one_line(text: str, longest: int) -> str:
    r"""Other people's text on one line, cut to `longest`, without characters that would steer a terminal.

    >>> one_line("red: \x1b[31m\nnext", 40)
    'red: \ufffd[31m next'
    """
    from jurimetrics import display

    return display.one_line(text, longest)


def aligned(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of plain text, columns to the left, two spaces between them.

    >>> print(aligned(["name", "n"], [["faithfulness", "3"], ["f1", "12"]]))
    name          n
    ------------  --
    faithfulness  3
    f1            12
    """
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    rows = [headings, ["-" * each for each in widths], *lines]
    return "\n".join(
        "  ".join(cell.ljust(each) for cell, each in zip(row, widths, strict=True)).rstrip() for row in rows
    )
