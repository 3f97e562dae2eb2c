"""Folders of results copied whole, and looked at before they are loaded."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jurimetrics.errors import InputError
from jurimetrics.frames import SCHEMAS, SETTINGS, read_settings, write_settings
from jurimetrics.project import is_folder
from jurimetrics.results.reading import read_parts


def save_folder(folder: Path, target: Path, settings: Mapping[str, Any]) -> Path:
    """Copy the parts in `folder` into `target` with `settings`; see `Results.save`.

    >>> from jurimetrics.frames import RowWriter
    >>> made = Path(tempfile.mkdtemp())
    >>> RowWriter(made / "one").close({"metrics": {}})
    >>> save_folder(made / "one", made / "two", read_settings(made / "one")).name
    'two'
    """
    if target.exists() and folder.exists() and target.samefile(folder):
        write_settings(target, settings)
        return target
    if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not (target / SETTINGS).exists())):
        raise InputError(f"{target}: holds something other than results; choose another folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for table in SCHEMAS:
            (fresh / table).mkdir()
            for part in (folder / table).glob("part-*.parquet"):
                shutil.copyfile(part, fresh / table / part.name)
        write_settings(fresh, settings)
        _swap(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def check_folder(path: Path) -> dict[str, Any]:
    """The settings of a folder of results in which everything is there; see `Results.load`.

    >>> check_folder(Path("nowhere"))
    Traceback (most recent call last):
    jurimetrics.errors.InputError: nowhere: no such folder
    """
    if not is_folder(path):
        raise InputError(f"{path}: no such folder")
    settings = read_settings(path)
    for table, schema in SCHEMAS.items():
        rows = read_parts(path, table, [schema.names[0]]).num_rows
        _check_columns(path, table)
        expected = settings.get("rows", {}).get(table, rows)
        if rows != expected:
            raise InputError(f"{path / table}: {expected:,} rows were written, {rows:,} are there; a part is missing")
    return settings


def _check_columns(folder: Path, table: str) -> None:
    import pyarrow.parquet as pq

    for path in sorted((folder / table).glob("part-*.parquet")):
        if lacking := [name for name in SCHEMAS[table].names if name not in pq.read_schema(path).names]:
            raise InputError(f"{path}: lacks the column {lacking[0]!r}; was it written by another version?")


def _swap(fresh: Path, target: Path) -> None:
    """Put `fresh` where `target` is; at no moment is the old gone before the new is there under some name."""
    if not target.exists():
        fresh.rename(target)
        return
    old = target.with_name(f"{fresh.name}.old")
    target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old)
