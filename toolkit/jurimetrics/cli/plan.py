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
    """Say what `run` would ask: calls, tokens, cost and time of each variant, judge and metric, and what the store has.

    Nothing is sent and nothing is written. Exit status: 0 done, 2 bad input.
    """
    from jurimetrics.display import count
    from jurimetrics.engine.planned import summed
    from jurimetrics.experiment import load_experiment, plan_experiment

    experiment = load_experiment(path)
    stages = plan_experiment(experiment, store=store, retry_failed=retry_failed, sample=sample)
    totals = summed([stage.totals for stage in stages.values()])
    said = [f"{stages['judging'].records:,} records"]
    if variants := len(experiment.study.variants):
        records = stages["answers"].records
        said = [count(records, "record"), count(variants, "variant"), count(records * variants, "answer")]
    say(one_line(f"{experiment.name}: {', '.join(said)}; nothing was sent", 120) + "\n")
    if len(stages) == 1:
        say(str(stages["judging"]))
    else:
        for name, stage in stages.items():
            say(f"{name if name == 'judging' else f'writing {name}'}\n\n{stage}\n")
        say(f"together: {totals}")
    for line in against(experiment.run.budget() or {}, totals):
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
