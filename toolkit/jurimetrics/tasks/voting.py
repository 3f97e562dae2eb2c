"""What a panel makes of several labels or numbers, and how far they lie apart.

The order of judges never changes a result: judges are taken by name and sums are exact. None is a judge that failed: it
withholds its vote, and a majority is still counted over all that were asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, TypeVar

from jurimetrics.errors import InputError, NoMajority
from jurimetrics.tasks.task import Items, Rule

T = TypeVar("T")
C = TypeVar("C")


def by_item(answers: Mapping[str, Items[T] | None]) -> list[dict[str, T | None]]:
    """Members' answers turned from judge -> items to item -> judge -> value; judges by name, None for a failed one.

    Raises `InputError` where nobody answered or the answers are not equally long: then they are not about the same items.

    >>> by_item({"b": Items(("x", "y")), "a": None})
    [{'a': None, 'b': 'x'}, {'a': None, 'b': 'y'}]
    """
    lengths = sorted({len(items) for items in answers.values() if items is not None})
    if len(lengths) != 1:
        said = f"their answers have {lengths} items" if lengths else "no judge answered"
        raise InputError(f"the panel cannot vote: {said}")
    members = sorted(answers.items())
    return [{judge: None if items is None else items[at] for judge, items in members} for at in range(lengths[0])]


def choices(ballot: Mapping[str, T | None], choice: Callable[[T], C]) -> dict[str, C | None]:
    """What of each judge's value is voted on; None for a judge that failed.

    >>> choices({"a": "yes", "b": None}, len)
    {'a': 3, 'b': None}
    """
    return {judge: None if value is None else choice(value) for judge, value in ballot.items()}


def nearest(ballot: Mapping[str, T | None], value: float, number: Callable[[T], float]) -> T:
    """The value whose number lies nearest to `value`, the first by judge name among equals: whose words are shown.

    >>> nearest({"b": 2.0, "a": 4.0, "c": None}, 3.0, float)
    4.0
    """
    given = [given for _, given in sorted(ballot.items()) if given is not None]
    return min(given, key=lambda one: abs(number(one) - value))


def majority_label(labels: Mapping[str, str | None], rule: Rule) -> str | None:
    """The label of more than half of the judges asked, by count or (rule `weighted`) by weight; None if there is none.

    `labels` maps judge name to label, None for a judge that failed. Raises `InputError` for a judge without a weight.

    >>> majority_label({"a": "pass", "b": None, "c": "fail"}, Rule("majority")) is None
    True
    >>> majority_label({"a": "pass", "b": "pass", "c": None}, Rule())
    'pass'
    """
    weights = _weights(labels, rule)
    total = sum(weights.values(), Fraction(0))
    for option in sorted({option for option in labels.values() if option is not None}):
        if 2 * sum((weights[judge] for judge in labels if labels[judge] == option), Fraction(0)) > total:
            return option
    return None


def combine(values: Mapping[str, float | None], rule: Rule, levels: Sequence[float] | None = None) -> float:
    """One number of several judges' numbers, by the panel's rule.

    `values` maps judge name to number, None for a judge that failed. `majority` takes the level of more than half of
    the judges asked and needs the declared `levels`; for all other rules only those that answered count. `trimmed_mean`
    drops the smallest and the largest where there are three or more. A `callable` gets the numbers in the order of the
    judges' names. Means are exact before they are rounded once, so equal judges give their own number.

    Raises `NoMajority` where no level has more than half; `InputError` where nobody answered, a majority is asked over
    undeclared levels, a judge has no weight, or a judge or a callable gives something that is no finite number.

    >>> combine({"a": 1.0, "b": 2.0, "c": None}, Rule("median"))
    1.5
    >>> combine({"a": 4.0, "b": 4.0, "c": 1.0}, Rule("majority"), levels=(1, 2, 3, 4, 5))
    4.0
    """
    answered = {judge: _finite(value, judge) for judge, value in sorted(values.items()) if value is not None}
    if not answered:
        raise InputError("there is nothing to combine: no judge answered")
    numbers = list(answered.values())
    ordered = sorted(numbers)
    if rule.name == "mean":
        return _mean(ordered)
    if rule.name == "median":
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else _mean(ordered[middle - 1 : middle + 1])
    if rule.name == "trimmed_mean":
        return _mean(ordered[1:-1] if len(ordered) >= 3 else ordered)
    if rule.name == "majority":
        return _majority_level(values, levels)
    if rule.name == "weighted":
        return _weighted_mean(answered, rule)
    if rule.name == "min":
        return ordered[0]
    if rule.name == "max":
        return ordered[-1]
    if rule.name == "callable" and rule.function is not None:
        return _finite(rule.function(numbers), "the panel's rule")
    raise InputError(f"a panel has no rule {rule.name!r}")


def _mean(ordered: Sequence[float]) -> float:
    return float(sum((Fraction(number) for number in ordered), Fraction(0)) / len(ordered))


def _weights(names: Iterable[str], rule: Rule) -> dict[str, Fraction]:
    """Exact weights of the judges: 0.1, 0.2 and 0.3 are tenths, so that half is half."""
    if rule.name != "weighted":
        return dict.fromkeys(names, Fraction(1))
    given = rule.weights or {}
    lacking = sorted(name for name in names if name not in given)
    if lacking:
        raise InputError(f"the panel gives no weight to {', '.join(lacking)}")
    return {name: Fraction(repr(float(given[name]))) for name in names}


def _weighted_mean(answered: Mapping[str, float], rule: Rule) -> float:
    weights = _weights(answered, rule)
    total = sum(weights.values(), Fraction(0))
    return float(sum((weights[judge] * Fraction(answered[judge]) for judge in answered), Fraction(0)) / total)


def _majority_level(values: Mapping[str, float | None], levels: Sequence[float] | None) -> float:
    if levels is None:
        raise InputError("a majority needs declared levels: this rating has none; use median or mean")
    known = {float(level) for level in levels}
    votes = {judge: None if value is None else float(value) for judge, value in values.items()}
    strange = sorted({vote for vote in votes.values() if vote is not None} - known)
    if strange:
        raise InputError(f"{strange[0]:g} is none of the declared levels {', '.join(f'{x:g}' for x in sorted(known))}")
    counts = {level: sum(vote == level for vote in votes.values()) for level in known}
    for level in sorted(known):
        if 2 * counts[level] > len(votes):
            return level
    tally = ", ".join(f"{level:g}: {counts[level]}" for level in sorted(known) if counts[level])
    raise NoMajority(f"no level has more than half of {len(votes)} votes ({tally})")


def _finite(value: Any, giver: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"{giver} gave {value!r}, which is no finite number")
    return float(value)


def entropy(labels: Iterable[str | None]) -> float | None:
    """Disagreement of labels in bits (Shannon entropy, natural estimate): 0 where all agree, 1 where two halves differ.

    None labels (failed judges) are left out; None where fewer than two labels are left: nothing to disagree on.

    >>> entropy(["a", "b"]), entropy(["a", "a"]), entropy(["a", None])
    (1.0, 0.0, None)
    """
    given = [label for label in labels if label is not None]
    if len(given) < 2:
        return None
    shares = sorted(given.count(option) / len(given) for option in set(given))
    return math.fsum(share * math.log2(1 / share) for share in shares)


def spread(values: Iterable[float | None]) -> float | None:
    """Disagreement of numbers: largest minus smallest, in their own unit; None where fewer than two are given.

    >>> spread([1.0, 4.0, None]), spread([2.0])
    (3.0, None)
    """
    given = [value for value in values if value is not None]
    return max(given) - min(given) if len(given) >= 2 else None


def mean_disagreement(parts: Iterable[float | None]) -> float | None:
    """The mean disagreement over items; None where no item had two votes.

    >>> mean_disagreement([1.0, 0.0, None])
    0.5
    """
    given = sorted(part for part in parts if part is not None)
    return _mean(given) if given else None
