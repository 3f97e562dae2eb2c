"""`jurimetrics compare`: variants of one evaluation or of several runs, as a table with verdicts and what weakens them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurimetrics.cli.console import answering, one_line, say
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from jurimetrics.results import Results


@answering
def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_OR_DIR",
            help="MLflow run ids, folders of results, or experiments (folder or file) with results; several are joined.",
        ),
    ],
    baseline: Annotated[
        str | None, typer.Option(help="The variant that all others are compared with. Without it: all pairs.")
    ] = None,
    primary: Annotated[
        list[str] | None,
        typer.Option(help="A metric decided on beforehand; may be given several times. Without it: all of them."),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Compare only this metric; may be given several times.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="Whose scores are compared. Without it: the panel or the only judge.")
    ] = None,
    level: Annotated[float, typer.Option(help="The level of the intervals, between 0 and 1.")] = 0.95,
    labels: Annotated[
        Path | None,
        typer.Option(help="A table of what people said (CSV, JSONL, Parquet), to correct differences with."),
    ] = None,
    selection: Annotated[
        str | None,
        typer.Option(help='With --labels: how the labelled records were chosen, "random" or "probabilities".'),
    ] = None,
    detect: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=X", help="Say how many records would find a difference of X; several times."),
    ] = None,
    shared_only: Annotated[
        bool,
        typer.Option("--shared-only", help="Of several sources, compare only records with the same inputs in all."),
    ] = False,
    other_contexts: Annotated[
        bool,
        typer.Option(
            "--other-contexts",
            help="Of several sources, contexts may differ: they are part of what a system gave, such as what it retrieved.",
        ),
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="Write all columns of all lines into this file, too.")] = None,
) -> None:
    """Compare variants: differences with intervals, verdicts in words, and what must be read beside them.

    One source is compared within itself. Several are compared only where nothing but the variants differs between them,
    else it is said what does. Exit status: 0 done, 2 bad input.
    """
    from jurimetrics.cli.sources import open_results
    from jurimetrics.variants.runs import compare_runs, names_of

    given: list[Results] = [open_results(source) for source in sources]
    names = names_of(sources)
    found = compare_runs(
        given,
        _variant(baseline, sources, names, given),
        primary=primary or None,
        labels=_labels(labels, selection),
        judge=judge,
        metrics=metric or None,
        detect=_detect(detect),
        level=level,
        names=names,
        shared_only=shared_only,
        same_contexts=not other_contexts,
    )
    if csv is not None:
        found.frame.to_csv(csv, index=False, encoding="utf-8", errors="backslashreplace")
    say(str(found))
    if csv is not None:
        say(f"\n{len(found.frame):,} lines in {one_line(str(csv.resolve()), 400)}")


def _variant(baseline: str | None, sources: list[str], names: list[str], given: list[Any]) -> str | None:
    """A source may stand for its only variant: then it goes by the name that the comparison gives it."""
    if baseline in sources and len(given) > 1:
        return names[sources.index(str(baseline))]
    return baseline


def _labels(path: Path | None, selection: str | None) -> pd.DataFrame | None:
    from jurimetrics.labels import load_labels

    if path is None:
        if selection is not None:
            raise InputError("--selection goes with --labels, the file of the labels")
        return None
    if selection not in ("random", "probabilities"):
        raise InputError(
            "--labels needs --selection random or --selection probabilities: how the labelled records were chosen"
            + ("" if selection is None else f", not {selection!r}")
        )
    return load_labels(path, selection="random" if selection == "random" else "probabilities")


def _detect(given: list[str] | None) -> dict[str, float] | None:
    """METRIC=X as a mapping. Raises `InputError` for anything else."""
    found: dict[str, float] = {}
    for text in given or ():
        name, equals, number = text.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(f"--detect: expected METRIC=X, such as faithfulness=0.05, found {text!r}")
    return found or None
