"""`jurimetrics plan`: what an experiment would ask and cost; nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurimetrics.cli.console import answering, one_line, say

if TYPE_CHECKING:
    from jurimetrics.engine.planned import PlanTotals


@answering
def plan(
    path: Annotated[Path, typer.Argument(help="An experiment file, or its folder (experiment.toml there).")],
    store: Annotated[
        str | None, typer.Option(help='Where answers are kept: a file, "auto" (the project\'s own) or "none".')
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Plan to ask again what failed for good before.")
    ] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Records to plan on; the figures of more are scaled up from these.")
    ] = None,
) -> None:
    """Say what `run` would ask: calls, tokens, cost and time of each judge and metric, and what the store already has.

    Nothing is sent and nothing is written. Exit status: 0 done, 2 bad input.
    """
    from jurimetrics.engine.plan import SAMPLE
    from jurimetrics.engine.plan import plan as planned_for
    from jurimetrics.experiment import load_experiment
    from jurimetrics.experiment.load import named_store
    from jurimetrics.records import iter_records

    experiment = load_experiment(path)
    options = experiment.run.options()
    planned = planned_for(
        iter_records(experiment.records, columns=experiment.columns),
        experiment.metrics,
        experiment.asked,
        embedder=experiment.embedder,
        store=experiment.store if store is None else named_store(store, Path.cwd()),
        repeats=options.get("repeats", 1),
        concurrency=options.get("concurrency", 64),
        reason_language=options.get("reason_language"),
        retry_failed=retry_failed or options.get("retry_failed", False),
        sample=sample or SAMPLE,
    )
    say(one_line(f"{experiment.name}: {planned.records:,} records; nothing was sent", 120) + "\n")
    say(str(planned))
    for line in against(experiment.run.budget() or {}, planned.totals):
        say(line)


def against(budget: Mapping[str, float], totals: PlanTotals) -> list[str]:
    """How the plan compares with each limit of a budget.

    >>> from jurimetrics.engine.planned import PlanTotals
    >>> totals = PlanTotals(9, 5, (80, 90), (8, 9), (0.01, 0.02), (0.01, 0.02), (), 0.005, (2.0, 30.0))
    >>> against({"calls": 5, "usd": 0.015, "tokens": 200}, totals)
    ['budget of 5 calls: it will not be enough', 'budget of 0.015 usd: it may not be enough', 'budget of 200 tokens: enough']
    """
    lines = []
    tokens = [sum(ends) for ends in zip(totals.prompt_tokens, totals.completion_tokens, strict=True)]
    for unit, limit in budget.items():
        low, high = {"usd": totals.at_least_usd, "tokens": tokens, "calls": (totals.calls, totals.calls)}[unit]
        said = "it will not be enough" if low > limit else "it may not be enough" if high > limit else "enough"
        if unit == "usd" and totals.unpriced:
            said = f"it cannot be kept, no price is known for {', '.join(totals.unpriced)}"
        lines.append(f"budget of {limit:g} {unit}: {said}")
    return lines
