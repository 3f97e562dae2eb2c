"""Where the project is: the folder that holds the store and the MLflow files unless the user says otherwise."""

from __future__ import annotations

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
