"""What a metric sends: its prompts, shown with placeholders where the record's text would stand."""

from __future__ import annotations

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
            asked.append(sent)
        return stand_in(task)

    if not metric.judged:
        return []
    records: Any = PLACEHOLDER
    if metric.together:
        names = metric.variants or ("first", "second")
        records = [replace(PLACEHOLDER, variant=name, answer=f"{{answer of {name}}}") for name in names]
    run: Any = metric(records, ask)
    try:
        # Nothing here waits, so the metric runs to its end at the first step; one that waits for more is left there.
        run.send(None)
    except StopIteration:
        return asked
    except Exception:  # noqa: BLE001 - a metric of the user's may not bear placeholders; what it asked until then is shown
        return asked
    run.close()
    return asked


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
