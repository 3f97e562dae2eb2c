"""`jurimetrics store`: what the answers are that the project keeps, what they took, and the removal of some of them."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from jurimetrics.cli.console import aligned, answering, one_line, say
from jurimetrics.errors import InputError

_HEADINGS = ("judge", "kind", "answers", "prompt tokens", "completion tokens", "paid", "first", "last")


class Line(NamedTuple):
    """The answers of one judge and kind; `paid_usd` is of those whose price is known, `unpriced` are the others."""

    judge: str
    kind: str
    answers: int
    prompt: int
    completion: int
    paid_usd: float
    unpriced: int
    first: str
    last: str


@answering
def store(
    path: Annotated[
        Path | None, typer.Argument(help="The file, or a folder with an experiment; without it the project's own.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove answers: those of --judge, and from before --before.")
    ] = False,
    judge: Annotated[str | None, typer.Option(help="With --prune: the judge whose answers go.")] = None,
    before: Annotated[
        str | None, typer.Option(help="With --prune: answers from before this day go, e.g. 2026-01-31.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether to remove them.")] = False,
) -> None:
    """Show what the store of answers holds and what it saves; remove answers on request.

    Exit status: 0 done, 2 bad input.
    """
    file = _found(path)
    if prune:
        _prune(file, judge, _day(before), yes)
        return
    if judge is not None or before is not None or yes:
        raise InputError("--judge, --before and --yes go with --prune")
    say(overview(file))


def _found(path: Path | None) -> Path:
    """The file of the store. Raises `InputError` where there is none: it is not made by looking."""
    from jurimetrics.engine.store import Store
    from jurimetrics.experiment import load_experiment
    from jurimetrics.project import project_folder

    own = project_folder() / ".jurimetrics" / "store.db"
    file = own if path is None else path
    if path is not None and (path.is_dir() or path.suffix == ".toml"):
        kept = load_experiment(path).store
        if kept is None:
            raise InputError(f"{path}: this experiment keeps answers in memory only")
        file = own if kept == "auto" else Path(kept)
    if not file.is_file():
        raise InputError(f"{file}: no store there; the first evaluation makes one")
    Store(file).close()  # says what is wrong with a file that is no store
    return file


def overview(file: Path) -> str:
    """Size, answers by judge and kind, what they were paid, failures kept apart."""
    from jurimetrics.display import dollars

    with _opened(file) as database:
        lines = [Line(*row) for row in database.execute(_ANSWERS)]
        failures = list(database.execute("SELECT judge, failure, count(*) FROM failures GROUP BY 1, 2 ORDER BY 1, 2"))
    parts = [f"store    {file.resolve()} ({_size(file)})"]
    if lines:
        parts += ["", aligned(_HEADINGS, [_cells(line) for line in lines]), ""]
    answers, unpriced = sum(line.answers for line in lines), sum(line.unpriced for line in lines)
    paid = f"{'at least ' if unpriced else ''}{dollars(sum(line.paid_usd for line in lines))}"
    parts.append(f"answers  {answers:,}, paid {paid}: what asking all of them again would cost, and does not")
    if unpriced:
        parts.append(f"         {unpriced:,} without a known price")
    for name, failure, number in failures:
        parts.append(f"failed   {number:,} x {failure} by {one_line(name, 60)}, asked again only with retry_failed")
    return "\n".join(parts)


_ANSWERS = """
SELECT judge, kind, count(*), total(json_extract(trace, '$.usage[0]')), total(json_extract(trace, '$.usage[1]')),
    total(json_extract(trace, '$.cost_usd')), sum(json_extract(trace, '$.cost_usd') IS NULL), min(at), max(at)
FROM answers GROUP BY judge, kind ORDER BY judge, kind
"""


def _cells(line: Line) -> Sequence[str]:
    from jurimetrics.display import dollars

    paid = (
        dollars(line.paid_usd) if not line.unpriced else f">= {dollars(line.paid_usd)}" if line.paid_usd else "unknown"
    )
    tokens = (f"{line.prompt:,.0f}", f"{line.completion:,.0f}")
    days = (line.first[:10], line.last[:10])
    return (one_line(line.judge, 40), one_line(line.kind, 20), f"{line.answers:,}", *tokens, paid, *days)


def _size(file: Path) -> str:
    """Bytes on disk, what is written ahead included."""
    ahead = file.with_name(f"{file.name}-wal")
    size = float(file.stat().st_size + (ahead.stat().st_size if ahead.is_file() else 0))
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _day(text: str | None) -> str | None:
    try:
        return None if text is None else date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"--before must be a day such as 2026-01-31, not {text!r}") from None


def _prune(file: Path, judge: str | None, before: str | None, yes: bool) -> None:
    from jurimetrics.display import count

    if judge is None and before is None:
        raise InputError("--prune removes answers of a --judge or from before a day (--before); give one of them")
    conditions = [("judge = ?", judge), ("at < ?", before)]
    where = " AND ".join(condition for condition, value in conditions if value is not None)
    values = [value for _, value in conditions if value is not None]
    with _opened(file) as database:
        counted = [
            database.execute(f"SELECT count(*) FROM {table} WHERE {where}", values).fetchone()[0]  # noqa: S608
            for table in ("answers", "failures")
        ]
        held = database.execute("SELECT count(*) FROM answers").fetchone()[0]
        what = f"{counted[0]:,} of {held:,} answers and {count(counted[1], 'failure')}"
        if not any(counted):
            say(f"nothing to remove: {what} are meant")
            return
        if not yes and not _attended():
            raise InputError(f"{what} would be removed for good; say --yes where nobody can be asked")
        if not yes and not typer.confirm(f"Remove {what} from {file.resolve()} for good?"):
            say("nothing removed")
            return
        database.execute("BEGIN IMMEDIATE")
        for table in ("answers", "failures"):
            database.execute(f"DELETE FROM {table} WHERE {where}", values)  # noqa: S608
        database.execute("COMMIT")
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    say(f"removed {count(counted[0], 'answer')} and {count(counted[1], 'failure')}; {_size(file)} are left")


def _attended() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """The database. Raises `InputError` where it is damaged, or in use for longer than can be waited for."""
    database = sqlite3.connect(file, isolation_level=None, timeout=10)
    try:
        yield database
    except sqlite3.DatabaseError as error:
        raise InputError(f"store {file}: {error}") from None
    finally:
        database.close()
