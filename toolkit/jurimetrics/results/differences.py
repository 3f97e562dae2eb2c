"""Why scores of two results must not be compared with each other, in words that name what differs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from jurimetrics.display import count, one_line
from jurimetrics.results.inputs import Shared, examples, inputs_of
from jurimetrics.results.reading import read_parts
from jurimetrics.results.served import Names, common, listed, served_otherwise

if TYPE_CHECKING:
    from jurimetrics.results.view import Results

PLAIN_NAMES: Names = ("one", "the other")
_SET_UP = (
    "kind", "model", "address", "temperature", "seed", "max_tokens", "logprobs", "extra_body", "api_version",
)  # fmt: skip
_PANEL = ("name", "members", "rule", "vote_on", "quorum", "weights", "extractor", "stages", "thresholds", "confidence")
_TOGETHER = ("together", "prefer")


@dataclass(frozen=True, slots=True)
class Differences:
    """`reasons` why scores must not be compared, () where nothing speaks against it, and `notes` that must be read
    beside a comparison all the same."""

    reasons: tuple[str, ...]
    notes: tuple[str, ...]


def differences(
    one: Results,
    other: Results,
    names: Names = PLAIN_NAMES,
    *,
    shared_only: bool = False,
    same_contexts: bool = True,
    metrics: Collection[str] | None = None,
) -> Differences:
    """What differs between two evaluations so that their scores cannot be told apart from it.

    Reasons: records in one alone or with another question, contexts, reference or group (answers may differ; with
    `shared_only` a note, as long as some are alike; without `same_contexts` contexts are part of what a system gave, as
    its answers are, and a note says in how many records they differ); a metric of both with another range, direction,
    version, options or levels, or one that scores the variants of a record together; and, unless all metrics are computed,
    a judge that is set up otherwise or was served by another model or fingerprint, another panel, extractor, embedder,
    wording, number of repeats or language of the reasons. Notes: thresholds (they are applied afterwards), metrics and
    judges of one alone, what cannot be told. `names` are what the two are called; `metrics`: only these are looked at.

    >>> import pandas as pd
    >>> from jurimetrics import Results
    >>> frame = pd.DataFrame({"id": ["1", "2"], "metric": "grade", "judge": "ann", "score": [0.5, 1.0]})
    >>> one, other = Results.from_frame(frame), Results.from_frame(frame.head(1))
    >>> differences(one, other, ("A", "B")).reasons[0]
    "1 record is in A alone ('2'); shared_only=True compares the 1 record that is alike"
    """
    first, second = one.settings, other.settings
    reasons, notes = _data(one, other, names, shared_only, same_contexts)
    both = [name for name in first["metrics"] if name in second["metrics"] and (metrics is None or name in metrics)]
    reasons += [*_no_metric(first, second, names, both, metrics), *of_versions(first, second, names, both)]
    reasons += [*_of_scales(first, second, names, both), *_of_options(first, second, names, metrics)]
    reasons += _together(one, other, both)
    notes += [*_thresholds(first, second, names, both), *_alone(first, second, names, "metrics", metrics)]
    if any(first["metrics"][name].get("judged", True) for name in both):
        reasons += [*_no_judge(first, second, names), *of_set_ups(first, second, names), *_panels(first, second, names)]
        reasons += [*_extractors(one, other, names), *_asked(first, second, names)]
        served, untold = served_otherwise(one, other, names)
        reasons += served
        notes += [
            *untold,
            *_alone(first, second, names, "judges", None),
            *_versions_of_the_toolkit(first, second, names),
        ]
    return Differences(tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(notes)))


# --- records ---


def _data(
    one: Results, other: Results, names: Names, shared_only: bool, same_contexts: bool
) -> tuple[list[str], list[str]]:
    shared = Shared.of(inputs_of(one), inputs_of(other), same_contexts=same_contexts)
    said, notes = shared.said(names), _retrieved(shared, names)
    if not said:
        return [], notes
    alike = count(len(shared.alike), "record")
    verb = "is" if len(shared.alike) == 1 else "are"
    way = ""
    if shared.by_contexts_alone:
        way = "; same_contexts=False (--other-contexts) takes contexts as part of what a system gave"
    if not shared.alike:
        return [f"no record with the same inputs is in both: {'; '.join(said)}{way}"], []
    if shared_only:
        only = f"Only the {alike} with the same inputs in {names[0]} and {names[1]} count: {'; '.join(said)}."
        return [], [only, *notes]
    return [f"{'; '.join(said)}; shared_only=True compares the {alike} that {verb} alike{way}"], []


def _retrieved(shared: Shared, names: Names) -> list[str]:
    if not shared.retrieved:
        return []
    differ = f"{len(shared.retrieved):,} of {count(len(shared.alike), 'record')}"
    return [
        f"Contexts count as what each system gave, as its answers do: they differ between {names[0]} and {names[1]} in "
        f"{differ} ({examples(shared.retrieved)})."
    ]


# --- metrics ---


def of_versions(
    one: Mapping[str, Any], other: Mapping[str, Any], names: Names = PLAIN_NAMES, both: Collection[str] | None = None
) -> list[str]:
    """Metrics of both settings that are of another version.

    >>> of_versions({"metrics": {"m": {"version": "1"}}}, {"metrics": {"m": {"version": "2"}}})
    ['metric m is version 1 in one and 2 in the other']
    """
    return [
        f"metric {name} is version {old.get('version')} in {names[0]} and {new.get('version')} in {names[1]}"
        for name, old, new in common(one["metrics"], other["metrics"])
        if old.get("version") != new.get("version") and (both is None or name in both)
    ]


def _no_metric(
    one: Mapping[str, Any], other: Mapping[str, Any], names: Names, both: Sequence[str], wanted: Collection[str] | None
) -> list[str]:
    if both:
        return []
    of_one, of_other = (listed(list(settings["metrics"])) for settings in (one, other))
    what = "no metric" if wanted is None else f"none of {listed(list(wanted))}"
    return [f"{what} is in both ({names[0]}: {of_one}; {names[1]}: {of_other})"]


def _of_scales(one: Mapping[str, Any], other: Mapping[str, Any], names: Names, both: Sequence[str]) -> Iterator[str]:
    for name in both:
        old, new = one["metrics"][name], other["metrics"][name]
        if _range_differs(old, new):
            yield f"metric {name} has the range {_span(old)} in {names[0]} and {_span(new)} in {names[1]}"
        if (up := bool(old.get("higher_is_better", True))) != bool(new.get("higher_is_better", True)):
            first, second = names if up else names[::-1]
            yield f"metric {name} is better where it is higher in {first} and where it is lower in {second}"
        if old.get("levels") != new.get("levels"):
            levels = [_value(one.get("levels")) for one in (old, new)]
            yield f"metric {name} has the levels {levels[0]} in {names[0]} and {levels[1]} in {names[1]}"


def _range_differs(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """A range that was taken from the data is none that was declared: it only must not leave a declared one."""
    ranges = [tuple(one["range"]) for one in (old, new) if one.get("range")]
    guessed = [bool(one.get("range_from_data")) for one in (old, new)]
    if len(ranges) < 2 or all(guessed):
        return False
    if any(guessed):
        inner, outer = ranges if guessed[0] else ranges[::-1]
        return not (outer[0] <= inner[0] and inner[1] <= outer[1])
    return ranges[0] != ranges[1]


def _span(metric: Mapping[str, Any]) -> str:
    low, high = metric["range"]
    return f"{low:g} to {high:g}{' (from its data)' if metric.get('range_from_data') else ''}"


def _of_options(
    one: Mapping[str, Any], other: Mapping[str, Any], names: Names, metrics: Collection[str] | None
) -> Iterator[str]:
    """A metric of one alone that the other has under other options: its name holds them."""
    alone = [
        {name.partition("(")[0]: name for name in mine["metrics"] if name not in its["metrics"]}
        for mine, its in ((one, other), (other, one))
    ]
    wanted = {name.partition("(")[0] for name in metrics} if metrics is not None else None
    for base in [name for name in alone[0] if name in alone[1] and name != "preference"]:
        if wanted is None or base in wanted:
            yield f"metric {base} has other options: {alone[0][base]} in {names[0]} and {alone[1][base]} in {names[1]}"


def _together(one: Results, other: Results, both: Sequence[str]) -> Iterator[str]:
    """Metrics whose scores depend on which answers the judge saw beside each other."""
    relative = _relative_metrics(one) | _relative_metrics(other)
    for name in both:
        if name in relative:
            yield f"metric {name} scores the answers to a question together, and these were not shown together"


def _relative_metrics(results: Results) -> set[str]:
    asked = read_parts(results.folder, "calls", ["ask"], where=pc.field("kind").isin(list(_TOGETHER)))
    if not asked.num_rows:
        return set()
    by = pc.field("ask").isin(asked.column("ask").unique())
    return set(read_parts(results.folder, "uses", ["metric"], where=by).column("metric").unique().to_pylist())


def _thresholds(one: Mapping[str, Any], other: Mapping[str, Any], names: Names, both: Sequence[str]) -> Iterator[str]:
    for name in both:
        old, new = (settings["metrics"][name].get("threshold") for settings in (one, other))
        if old != new:
            yield (
                f"The threshold of {name} is {_limit(old)} in {names[0]} and {_limit(new)} in {names[1]}; thresholds are "
                f"applied afterwards: {_limit(old)} holds for all here."
            )


def _limit(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:g}"


# --- judges ---


def of_set_ups(one: Mapping[str, Any], other: Mapping[str, Any], names: Names = PLAIN_NAMES) -> list[str]:
    """Judges of both settings whose replies could differ by how they are set up.

    >>> judges = [{"judges": {"ann": {"model": model, "reply_key": model}}} for model in ("m-1", "m-2")]
    >>> of_set_ups(*judges)
    ['judge ann is set up otherwise (model m-1 and m-2)']
    """
    where = "" if names == PLAIN_NAMES else f" in {names[0]} and in {names[1]}"
    return [
        f"judge {name} is set up otherwise{where} ({', '.join(_differing(old, new)) or 'sampling'})"
        for name, old, new in common(one.get("judges", {}), other.get("judges", {}))
        if old.get("reply_key") != new.get("reply_key")
    ]


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} {_value(old.get(name))} and {_value(new.get(name))}"
        for name in _SET_UP
        if old.get(name) != new.get(name)
    ]


def _no_judge(one: Mapping[str, Any], other: Mapping[str, Any], names: Names) -> list[str]:
    old, new = one.get("judges", {}), other.get("judges", {})
    if not old or not new or old.keys() & new.keys():
        return []
    return [f"no judge is in both ({names[0]}: {listed(list(old))}; {names[1]}: {listed(list(new))})"]


def _panels(one: Mapping[str, Any], other: Mapping[str, Any], names: Names) -> Iterator[str]:
    old, new = one.get("panel"), other.get("panel")
    if bool(old) != bool(new):
        which, what = (names, old) if old else (names[::-1], new)
        assert what is not None
        yield f"{which[0]} has the panel {what['name']} ({what['rule']} of {_value(what['members'])}) and {which[1]} has none"
    elif old and new:
        for key in _PANEL:
            if old.get(key) != new.get(key):
                yield (
                    f"the panel differs in {key.replace('_', ' ')}: {_value(old.get(key))} in {names[0]} and "
                    f"{_value(new.get(key))} in {names[1]}"
                )


def _extractors(one: Results, other: Results, names: Names) -> Iterator[str]:
    """Without a panel the judges that are there decide who splits claims for all."""
    settings = one.settings, other.settings
    if (
        any(each.get("panel") for each in settings)
        or settings[0].get("judges", {}).keys() == settings[1].get("judges", {}).keys()
    ):
        return
    old, new = (
        sorted(
            read_parts(each.folder, "calls", ["judge"], where=pc.field("kind") == "claims")
            .column("judge")
            .unique()
            .to_pylist()
        )
        for each in (one, other)
    )
    if old and new and old != new:
        yield f"claims were split by {listed(old)} in {names[0]} and by {listed(new)} in {names[1]}"


def _asked(one: Mapping[str, Any], other: Mapping[str, Any], names: Names) -> Iterator[str]:
    """What is the same for all judges: embedder, wording, maps, repeats, language."""
    old, new = one.get("embedder"), other.get("embedder")
    if old and new and old.get("reply_key") != new.get("reply_key"):
        what = ", ".join(_differing(old, new)) or "model"
        yield f"the embedder is set up otherwise in {names[0]} and in {names[1]} ({what})"
    wordings = _wordings(one), _wordings(other)
    for kind, old_versions, new_versions in common(*wordings):
        if old_versions != new_versions:
            yield (
                f"the wording of the task {kind} is version {listed(sorted(old_versions))} in {names[0]} and "
                f"{listed(sorted(new_versions))} in {names[1]}"
            )
    mapped = [name for name, each in one.get("judges", {}).items() if each.get("kind") == "calibrated"]
    if mapped and one.get("calibrations") != other.get("calibrations"):
        yield from (f"the scores of {name} are mapped otherwise" for name in mapped if name in other.get("judges", {}))
    if (often := one.get("repeats", 1)) != (its := other.get("repeats", 1)):
        yield f"judges were asked {_times(often)} in {names[0]} and {_times(its)} in {names[1]}"
    if (language := one.get("reason_language")) != (its := other.get("reason_language")):
        spoken = [name or "that of the answer" for name in (language, its)]
        yield f"the language of the reasons is {spoken[0]} in {names[0]} and {spoken[1]} in {names[1]}"


def _wordings(settings: Mapping[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in settings.get("prompts") or {}:
        kind, _, version = name.partition("#")[0].partition("@")
        found.setdefault(kind, set()).add(version)
    return found


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _versions_of_the_toolkit(one: Mapping[str, Any], other: Mapping[str, Any], names: Names) -> Iterator[str]:
    old, new = one.get("jurimetrics"), other.get("jurimetrics")
    if old != new:
        yield f"{names[0]} was made by jurimetrics {old} and {names[1]} by {new}."


# --- words ---


def _alone(
    one: Mapping[str, Any], other: Mapping[str, Any], names: Names, what: str, wanted: Collection[str] | None
) -> Iterator[str]:
    for mine, its, name in ((one, other, names[0]), (other, one, names[1])):
        alone = [
            each for each in mine.get(what, {}) if each not in its.get(what, {}) and (not wanted or each in wanted)
        ]
        if alone:
            yield f"{what.capitalize()} of {name} alone, not compared: {listed(alone)}."


def _value(value: Any) -> str:
    """A setting in words, on one line and cut."""
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return one_line(str(value), 80)
