"""Rubrics: one criterion, a declared scale, described levels; the built-in ones and the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jurimetrics.errors import InputError
from jurimetrics.metrics.metric import NEEDS, Ask, Metric, Score, metric
from jurimetrics.records import Record
from jurimetrics.tasks.rate import RateRubric
from jurimetrics.text import is_blank


def rubric(
    text: str,
    *,
    name: str,
    scale: tuple[float, float] = (1, 5),
    levels: Mapping[float, str] | None = None,
    needs: Sequence[str] = ("answer",),
    uses: Sequence[str] = (),
    step: float = 1,
    threshold: float | None = None,
    higher_is_better: bool = True,
) -> Metric:
    """A metric of any criterion, rated by the judge on a declared scale.

    Parameters
    ----------
    text : the criterion, in one or a few sentences; braces and the like stay text.
    name : the metric's name.
    scale : the lowest and highest value; prompt, schema and check all come from it.
    levels : descriptions by value, such as `{1: "cannot be followed", 5: "clear throughout"}`.
    needs : fields of the record that the judge must see; a record that lacks one is `not_applicable`.
    uses : further fields, shown where the record has them.
    step : distance of neighbouring values, 1 or 0.1.
    threshold : what passes; None for the middle of the scale.

    Raises
    ------
    InputError : a level outside the scale, a blank criterion, an unknown field, a threshold outside the scale.

    >>> polite = rubric("The answer is polite.", name="polite", levels={1: "rude", 5: "kind"})
    >>> polite.range, polite.threshold, polite.levels
    ((1.0, 5.0), 3.0, (1.0, 2.0, 3.0, 4.0, 5.0))
    """
    _check(text, name, scale, levels, step)
    _check_fields(name, needs, uses)
    low, high = scale
    described = tuple(sorted((float(value), said) for value, said in (levels or {}).items()))
    shown = (*needs, *(field for field in uses if field not in needs))

    async def rate(record: Record, ask: Ask) -> Score:
        if is_blank(record.answer or ""):
            # Judges give empty texts marks; there is nothing to rate.
            return Score.undefined("the answer is blank", flags=("no_claims",))
        fields = {field: getattr(record, field) for field in shown if record.has(field)}
        rating = await ask(
            RateRubric(
                criterion=name,
                text=text,
                scale=(float(low), float(high)),
                step=step,
                levels=described,
                answer=record.answer or "",
                question=fields.get("question"),
                contexts=fields.get("contexts", ()),
                reference=fields.get("reference"),
            )
        )
        return Score(rating.value, rating.reason, {"rating": rating.value})

    rate.__name__ = name
    rate.__doc__ = text
    steps = round((high - low) / step)
    few = tuple(low + step * at for at in range(steps + 1)) if step == 1 else None
    return metric(
        name=name,
        needs=tuple(needs),
        range=(low, high),
        higher_is_better=higher_is_better,
        threshold=(low + high) / 2 if threshold is None else threshold,
        levels=few,
        asks=(RateRubric,),
    )(rate)


def _check(
    text: str,
    name: str,
    scale: tuple[float, float],
    levels: Mapping[float, str] | None,
    step: float,
) -> None:
    low, high = scale
    if not text.strip() or not name.strip():
        raise InputError("rubric: the criterion and its name must not be blank")
    if not low < high:
        raise InputError(f"rubric {name!r}: the scale {low:g} to {high:g} is empty")
    if step not in (1, 0.1):
        raise InputError(f"rubric {name!r}: step is 1 or 0.1, not {step!r}")
    for value in levels or {}:
        if not low <= value <= high:
            raise InputError(f"rubric {name!r}: level {value:g} is outside the scale {low:g} to {high:g}")


def _check_fields(name: str, needs: Sequence[str], uses: Sequence[str]) -> None:
    if "answer" not in needs:
        raise InputError(f"rubric {name!r}: it rates an answer, so it needs one")
    for field in uses:
        if field not in NEEDS:
            raise InputError(f"rubric {name!r}: a record has no field {field!r} to use")


coherence = rubric(
    "Coherence: the answer presents its ideas in a logical order and connects them, so that a reader follows the thought "
    "from beginning to end; where there is a question, it is the question that the thought leads to.",
    name="coherence",
    uses=("question",),
    levels={
        1: "No thread: disconnected words or sentences, or nothing to do with the question.",
        2: "Pieces of a thread: sentences stand side by side without connection or contradict each other.",
        3: "A thread with gaps: the order is understandable, transitions are missing or abrupt.",
        4: "A clear thread: ideas follow from each other with small lapses at most.",
        5: "A thread without a gap: every sentence follows from the one before and leads to the point.",
    },
)

fluency = rubric(
    "Fluency: grammar, spelling, choice of words and sentence structure of the answer, as language, whatever it says.",
    name="fluency",
    levels={
        1: "Hardly language: errors keep the reader from understanding most of it.",
        2: "Broken: frequent errors or a very small vocabulary; the meaning must be guessed in places.",
        3: "Understandable: some errors or clumsy sentences, the meaning is clear.",
        4: "Well written: correct but for slips, varied words and sentences.",
        5: "As a skilled writer writes: correct, precise, varied and natural throughout.",
    },
)

accuracy_clarity = rubric(
    "Accuracy and clarity together, as one value. Accuracy: the key points, data and ideas of the reference are in the "
    "answer and nothing contradicts them. Clarity: structure, readability and concision of the answer.",
    name="accuracy_clarity",
    needs=("answer", "reference"),
    uses=("question",),
    scale=(0, 1),
    step=0.1,
    threshold=0.7,
    levels={
        0: "Incomplete and confusing: the key points are missing or wrong, or it cannot be read.",
        0.3: "Few of the key points, or serious errors, or hard to read.",
        0.5: "About half of the key points, understandable.",
        0.8: "Nearly all key points, correct, easy to read.",
        1: "Complete, correct and clear.",
    },
)
