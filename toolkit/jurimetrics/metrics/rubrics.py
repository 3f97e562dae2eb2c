"""Metrics of one's own: a rubric with described levels, a checklist of requirements, several rubrics in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jurimetrics.errors import InputError
from jurimetrics.metrics.metric import NEEDS, Ask, Metric, Score, is_number, metric, named, number_range
from jurimetrics.records import Record
from jurimetrics.tasks.checklist import Check, CheckList
from jurimetrics.tasks.criteria import RateCriteria, RateOneOf
from jurimetrics.tasks.rate import RateRubric, Rating
from jurimetrics.tasks.task import ITEMS_PER_CALL, fingerprint
from jurimetrics.text import is_blank

BATCHED = "(batched)"
"""What the name of a rubric ends in when it is asked together with others."""


@dataclass(frozen=True)
class Rubric:
    """What a rubric asks: the program of a metric made by `rubric`.

    `needs` and `uses` are the fields of the record that are shown; a record may lack those in `uses`.
    """

    name: str
    text: str
    scale: tuple[float, float]
    step: float
    levels: tuple[tuple[float, str], ...]
    needs: tuple[str, ...]
    uses: tuple[str, ...]

    def __post_init__(self) -> None:
        # What `jurimetrics metrics NAME` says of it.
        object.__setattr__(self, "__doc__", self.text)

    async def __call__(self, record: Record, ask: Ask) -> Score:
        """The rating of one record."""
        if is_blank(record.answer or ""):
            return blank_answer()
        return rated(await ask(self.task(record)))

    def task(self, record: Record) -> RateRubric:
        """What is asked about a record."""
        return RateRubric(
            criterion=self.name,
            text=self.text,
            scale=self.scale,
            step=self.step,
            levels=self.levels,
            **shown_of(record, (*self.needs, *self.uses)),
        )


@dataclass(frozen=True)
class InBatch:
    """The program of one rubric that is asked in one call with its `siblings`, itself among them."""

    rubric: Rubric
    siblings: tuple[Rubric, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.rubric.text)

    async def __call__(self, record: Record, ask: Ask) -> Score:
        """The rating of one record, out of the call that rates it under all siblings it has the fields for."""
        if is_blank(record.answer or ""):
            return blank_answer()
        asked = [one.task(record) for one in self.siblings if all(record.has(need) for need in one.needs)]
        # The first criterion colours those after it, so each stands first for some records; which one is settled by the
        # answer alone, so that the same question is the same call.
        first = int(fingerprint(record.answer or "")[:8], 16) % len(asked)
        batch = RateCriteria((*asked[first:], *asked[:first]))
        return rated(await ask(RateOneOf(batch, self.rubric.name)))


@dataclass(frozen=True)
class Requirements:
    """The program of a metric made by `checklist`."""

    requirements: tuple[str, ...]
    shown: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", "The share of requirements met: " + "; ".join(self.requirements))

    async def __call__(self, record: Record, ask: Ask) -> Score:
        """The share met by one record's answer."""
        if is_blank(record.answer or ""):
            return blank_answer()
        checks = await ask(CheckList(self.requirements, **shown_of(record, self.shown)))
        met = sum(check.met for check in checks)
        missed = [f"not met: {check.requirement} ({check.reason})" for check in checks if not check.met]
        reason = "; ".join([f"{met} of {len(checks)} requirements met", *missed])
        return Score(met / len(checks), reason, {"checks": [_check(check) for check in checks]} | _bounds(checks))


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
    """A metric of any criterion, rated by the judge on a declared scale, in a call of its own.

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

    Several rubrics go out in one call with `batched`.

    Raises
    ------
    InputError : a level outside the scale, a blank criterion, an unknown field, a threshold outside the scale.

    >>> polite = rubric("The answer is polite.", name="polite", levels={1: "rude", 5: "kind"})
    >>> polite.range, polite.threshold, polite.levels
    ((1.0, 5.0), 3.0, (1.0, 2.0, 3.0, 4.0, 5.0))
    """
    _check_scale(text, name, scale, levels, step)
    needs, uses = check_fields(f"rubric {name!r}", needs, uses)
    low, high = map(float, scale)
    described = tuple(sorted((float(value), said) for value, said in (levels or {}).items()))
    program = Rubric(name, text, (low, high), step, described, needs, uses)
    # Whatever no judge could be asked is refused here and not at the first record.
    specimen = RateRubric(name, text, "", scale=program.scale, step=step, levels=described)
    return metric(
        name=name,
        needs=needs,
        range=(low, high),
        higher_is_better=higher_is_better,
        threshold=(low + high) / 2 if threshold is None else threshold,
        levels=specimen.values if step == 1 else None,
        asks=(RateRubric,),
        version=_version([text, list(program.scale), step, described]),
    )(program)


def batched(rubrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """The same rubrics asked in one call for each record, instead of one call each: a metric for each, in the order given.

    Each is called as its rubric with "(batched)" behind, such as `coherence(batched)`, and has its range, threshold and
    needs; so both ways can stand in one evaluation, and `halo` measures what the shared call does to the ratings. Every
    criterion is shown what any of them needs or uses. A record that lacks a field is asked about under the others.
    A criterion that the judge leaves out even when asked again fails (`incomplete`) for itself alone; names that were
    not asked for are dropped and counted in the flag `dropped:N`. The order of the criteria turns from record to record.

    Raises `InputError` for fewer than two rubrics or more than ten, for one given twice, and for a metric that is no
    rubric.

    >>> from jurimetrics.metrics import coherence, fluency
    >>> [metric.name for metric in batched([coherence, fluency])]
    ['coherence(batched)', 'fluency(batched)']
    """
    programs = []
    for one in rubrics:
        if not isinstance(one, Metric) or not isinstance(one.function, Rubric):
            found = one.name if isinstance(one, Metric) else repr(one)
            raise InputError(f"batched: {found} is no rubric, and only rubrics can be asked in one call")
        programs.append(one.function)
    names = [program.name for program in programs]
    if not 2 <= len(names) <= ITEMS_PER_CALL:
        raise InputError(f"batched: expected 2 to {ITEMS_PER_CALL} rubrics, found {len(names)}")
    if len(set(names)) < len(names):
        raise InputError(f"batched: a rubric is given twice: {', '.join(names)}")
    # By name, so that the order in which they are given makes no other call of it.
    siblings = tuple(sorted(programs, key=lambda program: program.name))
    beside = fingerprint([one.version for one in sorted(rubrics, key=lambda one: one.name)])[:8]
    return tuple(
        replace(
            one,
            name=f"{one.name}{BATCHED}",
            function=InBatch(program, siblings),
            # Each sibling is still a rubric, with what a rubric demands of a panel's rule.
            asks=(RateRubric, RateCriteria),
            version=f"{one.version}+batched:{beside}",
        )
        for one, program in zip(rubrics, programs, strict=True)
    )


def checklist(
    requirements: Sequence[str],
    *,
    name: str,
    needs: Sequence[str] = ("answer",),
    uses: Sequence[str] = (),
    threshold: float = 1.0,
) -> Metric:
    """A metric of several yes-or-no requirements, asked in one call: the share that the answer meets.

    Parameters
    ----------
    requirements : one sentence each, such as `"names the source"`; ten go into one call.
    name : the metric's name.
    needs, uses : fields of the record that the judge sees, as for `rubric`.
    threshold : what passes, 0 to 1. By default all: a requirement is something required.

    The score is 0 to 1, higher is better; the details say of each requirement whether it is met and why. Where a panel is
    undecided on one, it counts as not met, the row is flagged `undecided` and the details hold the score with it counted
    both ways (`undecided_low`, `undecided_high`). A blank answer is `undefined`. Source: CheckEval (arXiv 2403.18771).

    Raises `InputError` without requirements, for a blank one or one given twice, an unknown field or a threshold outside
    0 to 1.

    >>> letter = checklist(["greets the reader", "names a date"], name="letter")
    >>> letter.range, letter.threshold, letter.levels
    ((0.0, 1.0), 1.0, (0.0, 0.5, 1.0))
    """
    if not isinstance(name, str) or is_blank(name):
        raise InputError("checklist: the name must not be blank, and is a text")
    named("checklist", name)
    if isinstance(requirements, str) or not isinstance(requirements, Sequence):
        held = "one text" if isinstance(requirements, str) else type(requirements).__name__
        raise InputError(f"checklist {name!r}: expected a list of requirements, found {held}")
    for requirement in requirements:
        if not isinstance(requirement, str):
            raise InputError(f"checklist {name!r}: a requirement is a text, not {requirement!r}")
    needs, uses = check_fields(f"checklist {name!r}", needs, uses)
    wanted = tuple(" ".join(requirement.split()) for requirement in requirements)
    # Whatever cannot be asked is refused here and not at the first record.
    CheckList(wanted, "")
    return metric(
        name=name,
        needs=needs,
        range=(0, 1),
        threshold=threshold,
        levels=[met / len(wanted) for met in range(len(wanted) + 1)],
        asks=(CheckList,),
        version=_version(list(wanted)),
    )(Requirements(wanted, (*needs, *uses)))


def blank_answer() -> Score:
    """The score of a blank answer under any rubric: judges give empty texts marks, but there is nothing to rate."""
    return Score.undefined("the answer is blank", flags=("no_claims",))


def rated(rating: Rating) -> Score:
    """The score that a rating is."""
    return Score(rating.value, rating.reason, {"rating": rating.value})


def shown_of(record: Record, fields: Sequence[str]) -> dict[str, Any]:
    """What a judge is shown of a record, as the fields of a task; what the record lacks is left out."""
    shown = {name: getattr(record, name) for name in fields if name != "answer" and record.has(name)}
    return {"answer": record.answer or "", **shown}


def check_fields(what: str, needs: Sequence[str], uses: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields needed, and those used besides. Raises `InputError` where the answer is not needed or one is unknown."""
    if isinstance(needs, str) or isinstance(uses, str):
        raise InputError(f"{what}: needs and uses are lists of fields")
    if "answer" not in needs:
        raise InputError(f"{what}: it rates an answer, so it needs one")
    for name in (*needs, *uses):
        if name not in NEEDS:
            raise InputError(f"{what}: a record has no field {name!r} to use")
    return tuple(dict.fromkeys(needs)), tuple(name for name in dict.fromkeys(uses) if name not in needs)


def _check_scale(
    text: str, name: str, scale: tuple[float, float], levels: Mapping[float, str] | None, step: float
) -> None:
    if not isinstance(text, str) or is_blank(text) or not isinstance(name, str) or is_blank(name):
        raise InputError("rubric: the criterion and its name must not be blank, and are texts")
    named("rubric", name)
    low, high = number_range(f"rubric {name!r}: the scale", scale)
    if step not in (1, 0.1):
        raise InputError(f"rubric {name!r}: step is 1 or 0.1, not {step!r}")
    if levels is not None and not isinstance(levels, Mapping):
        raise InputError(f"rubric {name!r}: levels are a mapping of values to descriptions, not {levels!r}")
    for value, said in (levels or {}).items():
        if not is_number(value) or not isinstance(said, str) or is_blank(said):
            raise InputError(f"rubric {name!r}: a level is a number and its description, not {value!r}: {said!r}")
        if not low <= value <= high:
            raise InputError(f"rubric {name!r}: level {value:g} is outside the scale {low:g} to {high:g}")


def _version(wording: Any) -> str:
    return fingerprint(wording)[:12]


def _check(check: Check) -> dict[str, Any]:
    return {
        "requirement": check.requirement,
        "met": check.met,
        "reason": check.reason,
        "undecided": check.undecided,
    }


def _bounds(checks: Sequence[Check]) -> dict[str, Any]:
    undecided = sum(check.undecided for check in checks)
    if not undecided:
        return {}
    met = sum(check.met for check in checks)
    return {
        "undecided": undecided,
        "undecided_low": met / len(checks),
        "undecided_high": (met + undecided) / len(checks),
    }
