"""What a metric sends: its prompts, shown with placeholders where the record's text would stand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jurimetrics.metrics.metric import Metric
from jurimetrics.records import Record
from jurimetrics.tasks.check import CheckClaims, Verdict
from jurimetrics.tasks.checklist import Check, CheckList
from jurimetrics.tasks.claims import Claim, ExtractClaims
from jurimetrics.tasks.criteria import RateCriteria, RateOneOf, Ratings
from jurimetrics.tasks.documents import DocumentRating, RateDocuments
from jurimetrics.tasks.prefer import PreferOne, Preferred
from jurimetrics.tasks.rate import RateRubric, Rating
from jurimetrics.tasks.sentences import FindUnsupported
from jurimetrics.tasks.task import Items, Task
from jurimetrics.tasks.together import Place, ScoreTogether, TogetherScore

PLACEHOLDER = Record(
    id="{id}",
    question="{question}",
    answer="{answer}",
    contexts=("{first document}", "{second document}"),
    reference="{reference}",
)

STEPS = 100
"""Turns of the event loop that a metric is given to ask what it asks; its asks are answered at once."""


def prompts_of(metrics: Sequence[Metric], reason_language: str | None = None) -> dict[str, dict[str, Any]]:
    """The messages and the reply schema of everything that the metrics ask, by a name of kind, version and number.

    A metric of the user's that does more than ask the toolkit's tasks is shown up to the first thing it asks.

    >>> from jurimetrics.metrics import faithfulness
    >>> [name.partition("@")[0] for name in prompts_of([faithfulness])]
    ['claims', 'check']
    """
    tasks = {task: None for metric in metrics for task in tasks_of(metric)}
    found: dict[str, dict[str, Any]] = {}
    for task in tasks:
        name = f"{task.kind}@{task.version}"
        number = sum(known.partition("#")[0] == name for known in found)
        # Several rubrics share one kind and version and differ in their criterion.
        shown = {"messages": task.messages(reason_language), "schema": task.schema}
        found[f"{name}#{number + 1}" if number else name] = shown
    return found


def tasks_of(metric: Metric) -> list[Task[Any]]:
    """The tasks that a metric asks of a record of placeholders, in order, each once."""
    asked: list[Task[Any]] = []

    async def ask(task: Task[Any]) -> Any:
        # What goes out for one criterion of several is the call for all of them.
        sent = task.batch if isinstance(task, RateOneOf) else task
        if sent not in asked:
            # A task of the user's that cannot be shown fails here, in the metric's hands.
            hash((sent.kind, sent.version, sent)), sent.messages(), sent.schema
            asked.append(sent)
        return stand_in(task)

    if metric.judged:
        records: Any = PLACEHOLDER
        if metric.together:
            names = metric.variants or ("first", "second")
            records = [replace(PLACEHOLDER, variant=name, answer=f"{{answer of {name}}}") for name in names]
        # A loop of its own, so that nothing the metric starts outlives the look at it or reaches the caller's loop.
        thread = threading.Thread(target=lambda: _run_apart(metric, records, ask), name="jurimetrics-prompts")
        thread.start()
        thread.join()
    return asked


def _run_apart(metric: Metric, records: Any, ask: Any) -> None:
    """Run a metric until it ends or waits for something else than its own asks; what it leaves behind is cancelled."""

    async def run() -> None:
        try:
            await metric(records, ask)
        except BaseException:  # noqa: BLE001 - a metric of the user's may not bear placeholders; it is run in earnest later
            return

    async def look() -> None:
        started = asyncio.create_task(run())
        for _ in range(STEPS):
            if started.done():
                break
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for one in left:
            one.cancel()
        if left:
            await asyncio.wait(left, timeout=0.1)

    loop = asyncio.new_event_loop()
    # What its tasks ended with is told when the metric is run in earnest.
    loop.set_exception_handler(lambda loop, context: None)
    try:
        loop.run_until_complete(look())
    finally:
        loop.close()


def stand_in(task: Task[Any]) -> Any:
    """An answer of the right shape to a task of the toolkit. Raises `TypeError` for any other task.

    >>> stand_in(CheckClaims(("It is old.",), ("It was built in 1901.",)))[0].label
    'supported'
    """
    if isinstance(task, ExtractClaims):
        return Items((Claim("{claim}", 0),))
    if isinstance(task, CheckClaims):
        return Items(tuple(Verdict(claim, "supported", "") for claim in task.claims))
    if isinstance(task, FindUnsupported):
        return Items(())
    if isinstance(task, RateDocuments):
        return Items(tuple(DocumentRating(at, 1.0, "") for at in range(len(task.documents))))
    if isinstance(task, RateRubric):
        return Rating(task.scale[1], "")
    if isinstance(task, RateOneOf):
        return Rating(task.batch.rubrics[0].scale[1], "")
    if isinstance(task, RateCriteria):
        return Ratings(tuple(Rating(rubric.scale[1], "") for rubric in task.rubrics))
    if isinstance(task, CheckList):
        return Items(tuple(Check(requirement, "yes", "") for requirement in task.requirements))
    if isinstance(task, ScoreTogether):
        return Items(tuple(TogetherScore(1.0, "", (Place(0, at, 1.0),)) for at in range(len(task.answers))))
    if isinstance(task, PreferOne):
        return Preferred("tie", "", "")
    raise TypeError(f"no stand-in answer for {type(task).__name__}")
