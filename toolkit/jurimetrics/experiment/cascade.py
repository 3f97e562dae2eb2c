"""The table [cascade] of an experiment file: stages by name, and from which agreement of its voices each is trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurimetrics.errors import InputError
from jurimetrics.experiment.faults import Place, fault, meant, shown
from jurimetrics.experiment.tables import CascadeTable, ExperimentTable

if TYPE_CHECKING:
    from jurimetrics.judges.cascade import Cascade
    from jurimetrics.judges.judge import Judge
    from jurimetrics.judges.panel import Panel
    from jurimetrics.metrics.metric import Metric

NEVER = "never"
"""How a file, which knows no None, writes the threshold of a stage that is never trusted and so never asked."""


def members_of_panel(file: Path, table: ExperimentTable, judges: tuple[Judge, ...]) -> tuple[Judge, ...]:
    """The judges of the panel: all of them, or beside a cascade those that are no stage by themselves.

    Raises `InputError` where the panel is no stage of the cascade or nobody is left for it.
    """
    if table.panel is None or table.cascade is None:
        return judges
    if table.panel.name not in table.cascade.stages:
        raise fault(
            file,
            "cascade.stages",
            f'beside a cascade the panel is one of its stages; expected "{table.panel.name}" among them, or no table [panel]',
        )
    if table.panel.extractor is not None:
        raise fault(file, "panel.extractor", "in a cascade all stages have one; give it to [cascade]")
    if table.panel.vote_on != "scores":
        raise fault(file, "panel.vote_on", 'a stage of a cascade votes on scores; expected "scores"')
    members = tuple(judge for judge in judges if judge.name not in table.cascade.stages)
    if not members:
        raise fault(file, "panel", "no judge is left for it: each is a stage of the cascade by itself")
    return members


def under_thresholds(metrics: tuple[Metric, ...], thresholds: Mapping[str, float]) -> tuple[Metric, ...]:
    """The metrics with the thresholds of the file: a stage is as sure as its voices agree on pass and fail."""
    return tuple(replace(metric, threshold=thresholds.get(metric.name, metric.threshold)) for metric in metrics)


def load_cascade(
    file: Path, table: ExperimentTable, judges: tuple[Judge, ...], panel: Panel | None, metrics: tuple[Metric, ...]
) -> Cascade | None:
    """The cascade that the file asks for, None without the table. Raises `InputError` for whatever does not go together."""
    from jurimetrics.judges.cascade import Cascade

    given = table.cascade
    if given is None:
        return None
    by_name: dict[str, Judge] = {judge.name: judge for judge in judges}
    stages = _stages(file, given, by_name, panel)
    if given.extractor not in (None, "each", *by_name):
        known = meant(str(given.extractor), [*by_name, "each"])
        raise fault(file, "cascade.extractor", f'no judge "{given.extractor}"{known}')
    if given.name in by_name or (panel is not None and given.name == panel.name):
        taken = "a judge" if given.name in by_name else "the panel"
        raise fault(file, "cascade.name", f'{taken} is called "{given.name}" too; expected another name')
    extractor: Any = given.extractor if given.extractor == "each" else by_name.get(given.extractor or "")
    thresholds = _thresholds(file, table, metrics)
    try:
        cascade = Cascade(stages, thresholds, extractor=extractor, name=given.name)
    except InputError as error:
        raise fault(file, "cascade", str(error).removeprefix("cascade: ")) from None
    _check_voices(file, cascade, metrics, table.run.repeats or 1)
    return cascade


def _stages(file: Path, given: CascadeTable, by_name: Mapping[str, Judge], panel: Panel | None) -> list[Judge | Panel]:
    known: dict[str, Judge | Panel] = {**by_name, **({panel.name: panel} if panel is not None else {})}
    for number, name in enumerate(given.stages):
        place = ("cascade", "stages", number)
        if name not in known:
            raise fault(file, place, f'no judge "{name}"' + meant(name, known))
        if name in given.stages[:number]:
            raise fault(file, place, f'"{name}" is a stage already')
    busy = {*given.stages, given.extractor, *(one.name for one in (panel.judges if panel is not None else ()))}
    for number, name in enumerate(by_name):
        if name not in busy:
            raise fault(file, ("judges", number), f'"{name}" is never asked: it is no stage of the cascade')
    return [known[name] for name in given.stages]


def _thresholds(file: Path, table: ExperimentTable, metrics: tuple[Metric, ...]) -> Any:
    """What the file says, as `Cascade` takes it: a list, or lists by the metrics' names in the results."""
    given = table.cascade.thresholds if table.cascade is not None else None
    place: Place = ("cascade", "thresholds")
    if not isinstance(given, Mapping):
        return _of_stages(file, place, table, given)
    # As everywhere in the file a metric under options is called by the name that it has without them.
    names = {metric.name.partition("(")[0] if metric.options else metric.name: metric.name for metric in metrics}
    for name in given:
        if name not in names:
            raise fault(file, (*place, name), "this metric is not used" + meant(name, names))
    for metric in metrics:
        if metric.judged and metric.name not in {names[name] for name in given}:
            raise fault(file, place, f"missing for {metric.name}; expected a list of it too")
    return {names[name]: _of_stages(file, (*place, name), table, one) for name, one in given.items()}


def _of_stages(file: Path, place: Place, table: ExperimentTable, given: Any) -> list[float | None]:
    stages = len(table.cascade.stages) if table.cascade is not None else 0
    if not isinstance(given, Sequence) or isinstance(given, str):
        expected = CascadeTable.model_fields["thresholds"].description if len(place) == 2 else "a list"
        raise fault(file, place, f"expected {expected}, found {shown(given)}")
    for number, one in enumerate(given):
        number_given = isinstance(one, int | float) and not isinstance(one, bool)
        if one != NEVER and not (number_given and 0 <= one <= 1):
            raise fault(file, (*place, number), f'expected a number from 0 to 1 or "never", found {shown(one)}')
    if len(given) not in (stages - 1, stages):
        many = f"{stages - 1} or {stages}" if stages > 1 else "1"
        raise fault(
            file, place, f"expected {many} of them, one for each stage (the last may go without), found {len(given)}"
        )
    if all(one == NEVER for one in given) and len(given) == stages:
        raise fault(file, place, "no stage is ever trusted; expected a number for one of them")
    return [None if one == NEVER else float(one) for one in given]


def _check_voices(file: Path, cascade: Cascade, metrics: tuple[Metric, ...], repeats: int) -> None:
    """Raise `InputError` for a stage that speaks once: how far its voices agree cannot be told then."""
    from jurimetrics.engine.cascading import voices
    from jurimetrics.judges.panel import Panel

    for at, (stage, spoken) in enumerate(zip(cascade.judges, voices(cascade, repeats), strict=True)):
        limits = [cascade.threshold(metric.name, at) for metric in metrics if metric.judged]
        if len(spoken) > 1 or all(one is None or one == -math.inf for one in limits):
            continue
        if isinstance(stage, Panel) or stage.endpoint is None:
            why = "is a panel of one" if isinstance(stage, Panel) else "is computed here and always says the same"
            raise fault(
                file, ("cascade", "stages", at), f'"{stage.name}" {why}, so how sure it is cannot be told; expected '
                "a judge that is asked several times, or a panel of several",
            )  # fmt: skip
        raise fault(
            file, "run.repeats", f'expected 3 or more: the stage "{stage.name}" is as sure as its repeats agree'
        )
