"""Where the project is, the folder that holds the store and the MLflow files unless the user says otherwise; and whether
something is at a path."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

MARKS = ("pyproject.toml", ".git", "mlruns", ".jurimetrics")


def project_folder(start: Path | None = None) -> Path:
    """The nearest folder from `start` (default: the working directory) upwards that holds one of `MARKS`, else `start`.

    So a notebook in `notebooks/` and a command at the top use one store.

    >>> project_folder().is_absolute()
    True
    """
    start = (start or Path.cwd()).resolve()
    # Not the root of the disk: whatever lies there is nobody's project.
    for folder in (start, *start.parents)[: max(1, len(start.parents))]:
        if any((folder / mark).exists() for mark in MARKS):
            return folder
    return start


def is_file(path: str | PathLike[str]) -> bool:
    """Whether a file is at `path`; False also where nobody can tell: a name that is too long, a folder that is closed.

    The method of a path raises for those.

    >>> is_file("x" * 5_000)
    False
    """
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_there(path: str | PathLike[str]) -> bool:
    """Whether anything is at `path`; False also where nobody can tell, as in `is_file`.

    >>> is_there("."), is_there("x" * 5_000)
    (True, False)
    """
    return os.path.exists(path)  # noqa: PTH110 - see is_file


def is_folder(path: str | PathLike[str]) -> bool:
    """Whether a folder is at `path`; False also where nobody can tell, as in `is_file`.

    >>> is_folder("."), is_folder("x" * 5_000)
    (True, False)
    """
    return os.path.isdir(path)  # noqa: PTH112 - see is_file
