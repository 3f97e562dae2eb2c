"""`jurimetrics judge`: one record from the command line, one judge, scores with their reasons."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurimetrics.cli.console import FAILED_ROWS, INTERRUPTED, answering, one_line, say, width
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.judges.judge import Judge
    from jurimetrics.metrics.metric import Metric
    from jurimetrics.records import Record


@answering
def judge(
    answer: Annotated[str | None, typer.Option(help="The answer to score.")] = None,
    question: Annotated[str | None, typer.Option(help="The question it answers.")] = None,
    context: Annotated[list[str] | None, typer.Option(help="A retrieved document; may be given several times.")] = None,
    reference: Annotated[str | None, typer.Option(help="The expected answer.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="A metric or group; may be given several times. Without it: all that the record allows."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that judges. Without it: the baseline judge.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The address of an OpenAI-compatible server.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="The NAME of the variable that holds the key.")] = None,
    store: Annotated[
        str, typer.Option(help='Where answers are kept: a file, "auto" (the project\'s own) or "none".')
    ] = "auto",
) -> None:
    """Score one record and print score, reason and details of each metric.

    Exit status: 0 done, 1 a row failed, 2 bad input, 130 interrupted.
    """
    from jurimetrics.engine.evaluate import evaluate
    from jurimetrics.experiment.load import named_store
    from jurimetrics.records import Record

    record = Record("1", question=question, answer=answer, contexts=tuple(context or ()), reference=reference)
    chosen = _metrics(metric, record)
    asked = _judge(model, base_url, api_key_env)
    results = evaluate([record], chosen, asked, store=named_store(store, Path.cwd()))
    by_name = {each.name: each for each in chosen}
    rows = results.scores.to_dict("records")
    # Where nobody asked for a certain metric, what this judge has no answer to is no failure.
    unanswered = [] if metric else [row["metric"] for row in rows if str(row["error"]).startswith("unsupported")]
    for row in rows:
        if row["metric"] not in unanswered:
            say(_told(row, by_name[row["metric"]]) + "\n")
    if unanswered:
        say(f"not answered by {asked.name}: {', '.join(unanswered)}")
    if results.totals().calls or results.totals().cached_calls:
        say(str(results.totals()))
    if results.settings["interrupted"]:
        raise typer.Exit(INTERRUPTED)
    if any(row["status"] == "failed" and row["metric"] not in unanswered for row in rows):
        raise typer.Exit(FAILED_ROWS)


def _metrics(names: list[str] | None, record: Record) -> tuple[Metric, ...]:
    from jurimetrics.metrics import resolve

    if names:
        return resolve(names)
    found = tuple(metric for metric in resolve("all") if not metric.missing(record) and not metric.together)
    if not found:
        raise InputError("no metric can be applied: give --answer, and --context or --reference to compare it with")
    return found


def _judge(model: str | None, base_url: str | None, api_key_env: str | None) -> Judge:
    if model is not None:
        from jurimetrics.judges.chat import ChatJudge

        return ChatJudge(model, base_url=base_url, api_key_env=api_key_env)
    if base_url is not None or api_key_env is not None:
        raise InputError("--base-url and --api-key-env go with --model, the name of the model there")
    from jurimetrics.judges.baseline import BaselineJudge

    return BaselineJudge()


def _told(row: Mapping[Any, Any], metric: Metric) -> str:
    """One row in words: the score and whether it passes, the reason, the details."""
    value = f"{row['score']:.4g}" if row["status"] == "ok" else row["status"].replace("_", " ")
    lines = [
        f"{metric.name}  {value}{_passing(row, metric)}  [{row['judge']}]",
        *_wrapped(row["error"] or row["reason"], 2),
    ]
    details = json.loads(row["details"]) if isinstance(row["details"], str) else row["details"]
    return "\n".join([*lines, *_outline(details, 4)])


def _passing(row: Mapping[Any, Any], metric: Metric) -> str:
    if row["status"] != "ok" or metric.threshold is None:
        return ""
    side = "at least" if metric.higher_is_better else "at most"
    return f"  {'passes' if row['passed'] else 'does not pass'} ({side} {metric.threshold:g})"


def _outline(value: Any, indent: int) -> list[str]:
    """Details as an indented outline, without what is empty."""
    if isinstance(value, Mapping):
        lines = []
        for name, inner in value.items():
            if inner is None or inner is False or inner in ("", [], {}):
                continue
            if isinstance(inner, Mapping | list):
                lines += [*_wrapped(f"{name}:", indent), *_outline(inner, indent + 2)]
            else:
                lines += _wrapped(f"{name}: {inner:g}" if isinstance(inner, float) else f"{name}: {inner}", indent)
        return lines
    if isinstance(value, list):
        lines = []
        for inner in value:
            item = _outline(inner, indent + 2)
            lines += [" " * indent + "- " + line[indent + 2 :] if at == 0 else line for at, line in enumerate(item)]
        return lines
    return _wrapped(str(value), indent)


def _wrapped(text: str, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(one_line(text, 4_000), width(), initial_indent=space, subsequent_indent=space + "  ")
