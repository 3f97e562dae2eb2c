"""`jurimetrics metrics`: what there is to measure with, how it is defined, and what it sends."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from jurimetrics.cli.console import aligned, answering, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jurimetrics.metrics.metric import Metric

_HEADINGS = ("name", "range", "better", "passes at", "needs", "asks", "calls")


@answering
def metrics(
    name: Annotated[str | None, typer.Argument(help="A metric or a group; all of them without it.")] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the prompts and reply schemas that are sent.")
    ] = False,
) -> None:
    """List the metrics; with a NAME say how one is defined, with --prompt what it sends to a judge.

    Calls are those of one record and one judge, for up to ten claims, sentences or documents.
    """
    from jurimetrics.metrics import GROUPS, resolve

    chosen = resolve("all" if name is None else name)
    if prompt:
        say(prompts(chosen))
    elif name is None or name in GROUPS:
        say(table(chosen))
        say(groups() if name is None else "")
    else:
        say(table(chosen))
        say("")
        say(inspect.getdoc(chosen[0].function) or "")


def table(chosen: Sequence[Metric]) -> str:
    """The metrics as a table, and what they cost together where they share what they ask."""
    from jurimetrics.metrics.prompts import tasks_of

    asked = {metric.name: tasks_of(metric) for metric in chosen}
    lines = [_line(metric, [task.kind for task in asked[metric.name]]) for metric in chosen]
    apart = sum(len(tasks) for tasks in asked.values())
    together = len({task for tasks in asked.values() for task in tasks})
    text = aligned(_HEADINGS, lines)
    if together < apart:
        text += (
            f"\n\nTogether {together} calls a record and judge, not {apart}: what two metrics ask alike is asked once."
        )
    return text


def _line(metric: Metric, kinds: Sequence[str]) -> tuple[str, ...]:
    low, high = metric.range
    asks = ", ".join(kind if number == 1 else f"{kind} x {number}" for kind, number in Counter(kinds).items())
    return (
        metric.name,
        f"{low:g} to {high:g}",
        "higher" if metric.higher_is_better else "lower",
        "-" if metric.threshold is None else f"{'>=' if metric.higher_is_better else '<='} {metric.threshold:g}",
        ", ".join(metric.needs),
        asks or "nobody: computed",
        str(len(kinds)),
    )


def groups() -> str:
    """The groups and what is in them."""
    from jurimetrics.metrics import GROUPS

    longest = max(map(len, GROUPS))
    lines = [f"{name.ljust(longest)}  {', '.join(metric.name for metric in group)}" for name, group in GROUPS.items()]
    return "\nGroups\n" + "\n".join(lines)


def prompts(chosen: Sequence[Metric]) -> str:
    """Every prompt of the metrics with its reply schema; where the record's text would stand there is a placeholder."""
    from jurimetrics.metrics.prompts import prompts_of

    parts = []
    for name, sent in prompts_of(chosen).items():
        parts.append(f"===== {name}")
        for message in sent["messages"]:
            parts += [f"----- {message['role']}", str(message["content"]).rstrip()]
        parts += ["----- reply schema", json.dumps(sent["schema"], ensure_ascii=False, indent=2), ""]
    return "\n".join(parts).rstrip() or f"{', '.join(metric.name for metric in chosen)}: computed, nothing is sent"
