"""Variants of several runs compared: what speaks against it is found first and said."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.flips import FLIPS
from jurimetrics.variants.compare import Comparison, Detect, compare

if TYPE_CHECKING:
    from jurimetrics.results import Results

Run = str | PathLike[str] | object
_SHOWN = 8  # digits of a run id that tell it from others
_LIKE_ALL = ("results", "experiment.toml")  # names that say nothing: the folder around them is meant


class Drifted(Protocol):
    """What `probes.drift` found: an alarm forbids a comparison."""

    @property
    def alarms(self) -> Collection[str]: ...


def compare_runs(
    runs: Sequence[Run],
    baseline: str | None = None,
    *,
    primary: Sequence[str] | None = None,
    labels: pd.DataFrame | None = None,
    judge: str | None = None,
    metrics: Sequence[str] | None = None,
    detect: Detect = None,
    power: float = 0.8,
    level: float = 0.95,
    flips: int = FLIPS,
    seed: int = 0,
    names: Sequence[str] | None = None,
    drifted: Drifted | None = None,
    shared_only: bool = False,
    same_contexts: bool = True,
) -> Comparison:
    """Compare the variants of several runs, as `compare` does those of one evaluation.

    `runs` are ids of MLflow runs, folders of results, or `Results`. Runs of one evaluation always go together; of several
    evaluations only what is alike is compared, and anything else is refused with what differs: the records but for their
    answers, metrics, judges and who answered for them, panel, wording, repeats (`joined` and `differences` say all).
    `shared_only`: only records with the same inputs in all of them. `same_contexts`: False compares systems that retrieve
    otherwise: contexts are then part of what a system gave, as its answers are, and a note says in how many records they
    differ; questions, references and groups must be the same all the same. `drifted`: what `probes.drift` said of the judges
    between these runs; with an alarm nothing is compared.

    `names` are what the runs are called, by default folders and the first digits of run ids. A variant that several runs
    have is called "variant (name)", or by the name alone where it has none; so it is called in `labels`, too. `baseline`
    is a variant, or a run by name or id where it has one variant alone. The other parameters are those of `compare`.

    Returns the comparison; what differs and does not forbid it, thresholds for one, stands first in its `notes`.

    Raises `InputError`, one line that names what differs, or whatever `compare`, `load_run` and `Results.load` refuse.

    >>> from jurimetrics import Results
    >>> rows = pd.DataFrame([{"id": at, "metric": "grade", "judge": "ann", "score": (at % 5) / 10} for at in range(20)])
    >>> better = rows.assign(score=rows["score"] + [0.1, 0.2, 0.3, 0.1] * 5)
    >>> scale = {"grade": {"range": (0, 1)}}
    >>> old, new = Results.from_frame(rows, scale), Results.from_frame(better, scale)
    >>> compare_runs([old, new], "old", names=["old", "new"]).frame.loc[0, "verdict"]
    'ann scores new higher by 0.17 [0.13, 0.21] than old'
    """
    if isinstance(runs, str | PathLike) or not isinstance(runs, Sequence) or not runs:
        raise InputError("compare_runs: expected a list of run ids, folders or results")
    alarms = list(drifted.alarms) if drifted is not None else []
    if alarms:
        raise InputError(f"these runs must not be compared, the judge is not the one it was: {'; '.join(alarms)}")
    given = [_opened(run) for run in runs]
    called = names if names is not None else names_of(runs)
    if len(called) != len(given):
        raise InputError(f"compare_runs: {len(given)} runs and {len(called)} names; one for each is needed")
    together = _together(given, called, shared_only, same_contexts, metrics)
    found = compare(
        together,
        _variant(baseline, together, runs, called),
        primary=primary,
        labels=labels,
        judge=judge,
        metrics=metrics,
        detect=detect,
        power=power,
        level=level,
        flips=flips,
        seed=seed,
    )
    told = [*_undecided(drifted), *(together.settings.get("notes", ()) if len(given) > 1 else ())]
    return replace(found, notes=(*told, *found.notes))


def names_of(runs: Sequence[Run]) -> list[str]:
    """What runs are called: the name of a folder or the first digits of a run id, the whole where that is not enough.

    >>> names_of(["study/old/results", "study/new/results", "0123456789abcdef0123456789abcdef"])
    ['old', 'new', '01234567']
    """
    from jurimetrics.tracking.load import is_run_id

    short, long = [], []
    for at, run in enumerate(runs, 1):
        text = fspath(run) if isinstance(run, str | PathLike) else f"#{at}"
        path = Path(text).expanduser()
        tail = path.resolve().parent.name if path.name in _LIKE_ALL else path.name
        bare = text.removeprefix("runs:/")
        long.append(text)
        short.append(bare[:_SHOWN] if is_run_id(bare) else tail or text)
    whole = [text if long.count(text) == 1 else f"{text} #{at}" for at, text in enumerate(long, 1)]
    return [brief if short.count(brief) == 1 else text for brief, text in zip(short, whole, strict=True)]


def _opened(run: Run) -> Results:
    from jurimetrics.results import Results
    from jurimetrics.tracking.load import is_run_id, load_run

    if isinstance(run, Results):
        return run
    if not isinstance(run, str | PathLike):
        raise InputError(f"compare_runs: expected a run id, a folder or Results, found {type(run).__name__}")
    text = fspath(run)
    if is_run_id(text) and not Path(text).is_dir():
        return load_run(text)
    return Results.load(text)


def _together(
    given: Sequence[Results],
    called: Sequence[str],
    shared_only: bool,
    same_contexts: bool,
    metrics: Sequence[str] | None,
) -> Results:
    from jurimetrics.results.joined import joined

    if len(given) == 1:
        return given[0]
    return joined(given, called, shared_only=shared_only, same_contexts=same_contexts, metrics=metrics)


def _variant(baseline: str | None, together: Results, runs: Sequence[Run], called: Sequence[str]) -> str | None:
    """The variant that is meant: a name of one, or of a run that has one alone."""
    there = list(together.settings.get("variants") or ())
    if baseline is None or baseline in there:
        return baseline
    for at, (run, name) in enumerate(zip(runs, called, strict=True)):
        if baseline in (name, run) and len(runs) > 1:
            own = list(together.settings["joined"][at]["variants"].values())
            if len(own) != 1:
                raise InputError(f"baseline: {baseline} has {len(own)} variants; name one: {', '.join(map(repr, own))}")
            return str(own[0])
    return baseline


def _undecided(drifted: Drifted | None) -> list[str]:
    said = list(getattr(drifted, "undecided", ()))
    return [f"Whether the judges are the ones they were could not be told: {'; '.join(said)}."] if said else []
