"""The built-in metrics by name, and the groups they form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from jurimetrics.errors import InputError
from jurimetrics.metrics.alignment import alignment, alignment_completeness, alignment_correctness
from jurimetrics.metrics.criteria import (
    accuracy_clarity,
    coherence,
    comprehensiveness,
    correctness,
    fluency,
    groundedness,
    readability,
    relevance,
    similarity,
)
from jurimetrics.metrics.embedding import cross_similarity, similarity_score
from jurimetrics.metrics.grounding import (
    context_average_precision,
    context_precision,
    faithfulness,
    hallucination,
    noise_sensitivity,
    noise_share,
)
from jurimetrics.metrics.metric import Metric
from jurimetrics.metrics.overlap import exact_match, f1
from jurimetrics.metrics.rubrics import batched
from jurimetrics.metrics.together import consensus, preference

GROUPS: dict[str, tuple[Metric, ...]] = {
    "rag": (
        faithfulness,
        hallucination,
        noise_sensitivity,
        noise_share,
        context_precision,
        context_average_precision,
        accuracy_clarity,
    ),
    "qa": (relevance, groundedness, fluency, coherence, similarity, f1),
    "quality": (coherence, fluency, relevance, groundedness, similarity, accuracy_clarity),
    "criteria": (correctness, comprehensiveness, readability),
    "alignment": (alignment_correctness, alignment_completeness, alignment),
    "overlap": (f1, exact_match, similarity_score, cross_similarity),
}
# What compares variants is in no group: it has no value where there is one variant, and is named where it is wanted.
GROUPS["all"] = tuple(dict.fromkeys(each for group in GROUPS.values() for each in group))
NAMES: tuple[str, ...] = tuple(sorted({*(each.name for each in GROUPS["all"]), consensus.name}))
"""The built-in metrics that are called by a name alone; `preference` is called with the names of two variants."""

_VARIANT = r"\s*([^\s,()'\"](?:[^,()'\"]*[^\s,()'\"])?)\s*"
_PREFERENCE = re.compile(rf"preference\({_VARIANT},{_VARIANT}\)")

__all__ = [
    "GROUPS",
    "NAMES",
    "accuracy_clarity",
    "alignment",
    "alignment_completeness",
    "alignment_correctness",
    "batched",
    "coherence",
    "comprehensiveness",
    "consensus",
    "context_average_precision",
    "context_precision",
    "correctness",
    "cross_similarity",
    "exact_match",
    "f1",
    "faithfulness",
    "fluency",
    "groundedness",
    "hallucination",
    "noise_sensitivity",
    "noise_share",
    "preference",
    "readability",
    "relevance",
    "resolve",
    "similarity",
    "similarity_score",
]


def resolve(chosen: Metric | str | Sequence[Metric | str]) -> tuple[Metric, ...]:
    """Metrics from what a user writes: metrics, their names, names of groups; each once, in the order given.

    `preference` is written with the names of two variants, without quotation marks; where those hold commas, brackets or
    quotation marks, call the function of that name instead.

    Raises `InputError` for an unknown name (listing the known ones) and for two different metrics of one name.

    >>> [metric.name for metric in resolve(["f1", "overlap"])][:2]
    ['f1', 'exact_match']
    >>> [metric.name for metric in resolve(["consensus", "preference(old, new)"])]
    ['consensus', 'preference(old,new)']
    """
    if not isinstance(chosen, Metric | Iterable):
        raise InputError(f"metrics: expected a metric or its name, or a list of them, found {type(chosen).__name__}")
    items = [chosen] if isinstance(chosen, Metric | str) else list(chosen)
    found: dict[str, Metric] = {}
    for item in items:
        for each in _named(item) if isinstance(item, str) else (item,):
            if not isinstance(each, Metric):
                raise InputError(f"metrics: expected a metric or its name, found {type(each).__name__}")
            if found.setdefault(each.name, each) != each:
                raise InputError(f"metrics: two different metrics are called {each.name!r}")
    if not found:
        raise InputError("metrics: none given")
    return tuple(found.values())


def _named(name: str) -> tuple[Metric, ...]:
    if name in GROUPS:
        return GROUPS[name]
    if name in NAMES:
        return (next(each for each in (*GROUPS["all"], consensus) if each.name == name),)
    pair = _PREFERENCE.fullmatch(name.strip())
    if pair is not None:
        return (preference(pair[1], pair[2]),)
    if name.startswith("preference"):
        raise InputError(
            f"metrics: {name!r} is not of the form preference(one variant, another), without quotation marks"
        )
    near = get_close_matches(name, [*NAMES, *GROUPS], n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise InputError(f"metrics: no {name!r}{hint}; metrics: {', '.join(NAMES)}; groups: {', '.join(GROUPS)}")
