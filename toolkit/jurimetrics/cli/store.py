"""`jurimetrics store`: what the answers are that the project keeps, what they took, and the removal of some of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurimetrics.cli.console import aligned, answering, one_line, say
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.engine.held import Held
    from jurimetrics.engine.store import Store

_HEADINGS = ("judge", "kind", "answers", "prompt tokens", "completion tokens", "paid", "first", "last")


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
    from jurimetrics.engine.store import Store

    file = _found(path)
    with closing(Store(file)) as kept:
        if prune:
            _prune(file, kept, judge, _day(before), yes)
            return
        if judge is not None or before is not None or yes:
            raise InputError("--judge, --before and --yes go with --prune")
        say(_overview(file, kept))


def _found(path: Path | None) -> Path:
    """The file of the store. Raises `InputError` where there is none: it is not made by looking."""
    from jurimetrics.experiment import load_experiment
    from jurimetrics.project import is_file, is_folder, project_folder

    own = project_folder() / ".jurimetrics" / "store.db"
    file = own if path is None else path
    if path is not None and (is_folder(path) or path.suffix == ".toml"):
        kept = load_experiment(path).store
        if kept is None:
            raise InputError(f"{path}: this experiment keeps answers in memory only")
        file = own if kept == "auto" else Path(kept)
    if not is_file(file):
        raise InputError(f"{file}: no store there; the first evaluation makes one")
    return file


def _overview(file: Path, kept: Store) -> str:
    """Size, answers by judge and kind, what they were paid, failures kept apart."""
    from jurimetrics.display import dollars

    held = kept.overview()
    lines = [_cells(one) for one in held if one.answers]
    parts = [f"store    {file.resolve()} ({_size(file)})"]
    if lines:
        parts += ["", aligned(_HEADINGS, lines), ""]
    answers, unpriced = sum(one.answers for one in held), sum(one.unpriced for one in held)
    paid = f"{'at least ' if unpriced else ''}{dollars(sum(one.cost_usd for one in held))}"
    parts.append(f"answers  {answers:,}, paid {paid}: what asking all of them again would cost, and does not")
    if unpriced:
        parts.append(f"         {unpriced:,} without a known price")
    failures: Counter[tuple[str, str]] = Counter()
    for one in held:
        failures.update({(one.judge, failure): number for failure, number in one.failures.items()})
    for (name, failure), number in sorted(failures.items()):
        parts.append(f"failed   {number:,} x {failure} by {one_line(name, 60)}, asked again only with retry_failed")
    return "\n".join(parts)


def _cells(held: Held) -> Sequence[str]:
    from jurimetrics.display import dollars

    paid = (
        dollars(held.cost_usd) if not held.unpriced else f">= {dollars(held.cost_usd)}" if held.cost_usd else "unknown"
    )
    tokens = (f"{held.prompt_tokens:,}", f"{held.completion_tokens:,}")
    days = ("" if at is None else at.date().isoformat() for at in (held.first, held.last))
    return (one_line(held.judge, 40), one_line(held.kind, 20), f"{held.answers:,}", *tokens, paid, *days)


def _size(file: Path) -> str:
    """Bytes on disk, what is written ahead included."""
    ahead = file.with_name(f"{file.name}-wal")
    size = float(file.stat().st_size + (ahead.stat().st_size if ahead.is_file() else 0))
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--before must be a day such as 2026-01-31, not {text!r}") from None


def _prune(file: Path, kept: Store, judge: str | None, before: date | None, yes: bool) -> None:
    from jurimetrics.display import count

    if judge is None and before is None:
        raise InputError("--prune removes answers of a --judge or from before a day (--before); give one of them")
    answers, failures = kept.meant(judge=judge, before=before)
    what = f"{answers:,} of {len(kept):,} answers and {count(failures, 'failure')}"
    if not answers and not failures:
        say(f"nothing to remove: {what} are meant")
        return
    if not yes and not _attended():
        raise InputError(f"{what} would be removed for good; say --yes where nobody can be asked")
    if not yes and not typer.confirm(f"Remove {what} from {file.resolve()} for good?"):
        say("nothing removed")
        return
    removed = kept.prune(judge=judge, before=before)
    say(f"removed {removed:,} answers and failures together; {_size(file)} are left")


def _attended() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin is not None and sys.stdin.isatty()
