"""What several judges say of items together when nobody knows the truth: the most frequent label, and Dawid and Skene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError

Numbers = npt.NDArray[np.float64]
Column = Sequence[Any] | npt.NDArray[Any]
_NEVER = -1e12
"""The logarithm of a chance of 0: any other class is likelier, and 0 times it is 0."""


class MostFrequent(NamedTuple):
    """One entry for each of `items` (sorted): the `label` given most often (None where several are, `tied`
    then), the `share` of its ratings that gave the most frequent label (0 to 1), and how many `ratings` it has."""

    items: tuple[Any, ...]
    label: tuple[Any, ...]
    share: Numbers
    tied: npt.NDArray[np.bool_]
    ratings: npt.NDArray[np.int_]


def most_frequent(items: Column, labels: Column) -> MostFrequent:
    """The label that most judges gave each item; a tie stays a tie.

    `items`, `labels`: n entries each, one for each rating; a label that is None or NaN is no rating. Raises `InputError`
    for lengths that differ.

    >>> found = most_frequent([1, 1, 1, 2, 2], ["a", "b", "a", "a", "b"])
    >>> found.label, found.tied.tolist()
    (('a', None), [False, True])
    """
    names, _, classes, counts = _counted(items, [0] * len(items), labels, None)
    each = counts[:, 0, :]
    most, total = each.max(axis=1), each.sum(axis=1)
    tied = (each == most[:, None]).sum(axis=1) > 1
    best = tuple(None if one else classes[at] for one, at in zip(tied, each.argmax(axis=1), strict=True))
    return MostFrequent(names, best, most / total, tied, total.astype(np.int_))


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """A fitted model of judges who err each in their own way.

    `classes` are the K labels, `items` the N items, `judges` the J judges, each sorted. `prevalence`: how frequent each
    class is (K). `errors`: J x K x K, the chance that the judge gives the label of the column where the truth is the
    class of the row; a row of NaN where no item it rated can be of that class. `posterior`: N x K, how likely each item
    is of each class. `log_likelihood` of the labels seen; `iterations`, the steps after
    the first; `converged` is False where it still rose.
    """

    classes: tuple[Any, ...]
    items: tuple[Any, ...]
    judges: tuple[Any, ...]
    prevalence: Numbers
    errors: Numbers
    posterior: Numbers
    log_likelihood: float
    iterations: int
    converged: bool

    @property
    def labels(self) -> tuple[Any, ...]:
        """The likeliest class of each item (of equally likely ones the first)."""
        return tuple(self.classes[at] for at in self.posterior.argmax(axis=1))

    @property
    def accuracy(self) -> Numbers:
        """How often each judge is right according to the model, over the classes as frequent as they are (J)."""
        right = np.diagonal(self.errors, axis1=1, axis2=2)
        return np.asarray(np.where(self.prevalence > 0, right * self.prevalence, 0.0).sum(axis=1))


def dawid_skene(
    items: Column,
    judges: Column,
    labels: Column,
    *,
    classes: Sequence[Any] | None = None,
    gold: Mapping[Any, Any] | None = None,
    smoothing: float = 0.0,
    tolerance: float = 1e-12,
    iterations: int = 10_000,
) -> DawidSkene:
    """The truth about items, and every judge's chances of each error, estimated together from labels alone.

    `items`, `judges`, `labels`: n entries each, one for each rating; repeated ratings of one item by one judge all count,
    missing labels (None, NaN) are left out. `classes`: all labels that are possible (default: those that occur). `gold`
    maps items to a class that is known, which anchors the meaning of the classes. `smoothing` is added to every count of
    a judge's labels, so that what a judge never did is not impossible. EM, started from the shares of labels of each
    item, in logarithms, ends when the log-likelihood of the labels seen rises by less than `tolerance`.

    It assumes that judges err independently given the truth. Judges that share errors (models of one family) break that:
    their joint errors are taken for the truth, and without gold nothing in the labels shows it. Classes may also have
    changed names where judges are worse than chance.

    Raises `InputError` for lengths that differ, no ratings, labels or gold outside `classes`, or negative smoothing.
    Source: Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", Applied
    Statistics 28 (1979), 20-28.

    >>> items, judges = [1, 1, 1, 2, 2, 2, 3, 3, 3] * 2, ["a", "b", "c"] * 6
    >>> found = dawid_skene(items, judges, [1, 1, 0, 0, 0, 0, 1, 1, 1] * 2)
    >>> found.labels, found.converged
    ((1, 0, 1), True)
    """
    if smoothing < 0:
        raise InputError(f"smoothing must be 0 or more, not {smoothing:g}")
    names, raters, known, counts = _counted(items, judges, labels, classes)
    fixed = _gold(names, known, gold or {})
    flat = counts.reshape(len(names), -1)
    total = counts.sum(axis=(1, 2))
    posterior = np.where(np.isnan(fixed), counts.sum(axis=1) / total[:, None], fixed)
    previous, done = -np.inf, 0
    while True:
        prevalence, errors = _chances(posterior, counts, smoothing)
        posterior, likelihood = _truths(prevalence, errors, flat, fixed)
        converged = abs(likelihood - previous) < tolerance
        if converged or done >= iterations:
            break
        previous, done = likelihood, done + 1
    return DawidSkene(known, names, raters, prevalence, errors, posterior, likelihood, done, converged)


def _chances(posterior: Numbers, counts: Numbers, smoothing: float) -> tuple[Numbers, Numbers]:
    """Prevalence (K) and errors (J x K x K) given how likely each item is of each class."""
    given = np.einsum("ik,ijl->jkl", posterior, counts) + smoothing
    total = given.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.where(total > 0, given / total, np.nan)
    return posterior.mean(axis=0), errors


def _truths(prevalence: Numbers, errors: Numbers, flat: Numbers, fixed: Numbers) -> tuple[Numbers, float]:
    """How likely each item is of each class, and the log-likelihood of the labels."""
    judges, classes, _ = errors.shape
    with np.errstate(divide="ignore"):
        # A row without a chance belongs to a class that no item of this judge can have: it says nothing.
        log_errors = np.where(np.isnan(errors), 0.0, np.maximum(np.log(errors), _NEVER))
        log_prior = np.maximum(np.log(prevalence), _NEVER)
    joint = flat @ log_errors.transpose(0, 2, 1).reshape(judges * classes, classes) + log_prior
    joint = np.where(np.isnan(fixed), joint, np.where(fixed == 1, joint, -np.inf))
    top = joint.max(axis=1, keepdims=True)
    weight = np.exp(joint - top)
    sums = weight.sum(axis=1, keepdims=True)
    return weight / sums, float((top + np.log(sums)).sum())


def _gold(names: tuple[Any, ...], classes: tuple[Any, ...], gold: Mapping[Any, Any]) -> Numbers:
    """N x K: NaN where the class is to be estimated, else 1 for the known class and 0 for the others."""
    fixed = np.full((len(names), len(classes)), np.nan)
    for at, name in enumerate(names):
        if name in gold:
            if gold[name] not in classes:
                raise InputError(f"gold: {gold[name]!r} of item {name!r} is none of the classes")
            fixed[at] = [float(one == gold[name]) for one in classes]
    return fixed


def _counted(
    items: Column, judges: Column, labels: Column, classes: Sequence[Any] | None
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...], Numbers]:
    """Items, judges and classes, and how often each judge gave each item each label (N x J x K)."""
    if not len(items) == len(judges) == len(labels):
        raise InputError(f"{len(items)} items, {len(judges)} judges, {len(labels)} labels: must be equally many")
    columns = (items, judges, labels)
    plain = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]
    rows = [row for row in zip(*plain, strict=True) if row[2] is not None and row[2] == row[2]]
    if not rows:
        raise InputError("there are no ratings")
    names, raters, seen = (_sorted({row[at] for row in rows}) for at in range(3))
    known = seen if classes is None else tuple(classes)
    strange = [one for one in seen if one not in known]
    if strange or len(set(known)) < len(known):
        raise InputError(f"labels: {strange[0]!r} is none of the classes" if strange else "a class is named twice")
    places = [{name: at for at, name in enumerate(one)} for one in (names, raters, known)]
    codes = [np.array([place[row[at]] for row in rows], dtype=np.intp) for at, place in enumerate(places)]
    counts = np.zeros((len(names), len(raters), len(known)))
    np.add.at(counts, tuple(codes), 1.0)
    return names, raters, known, counts


def _sorted(names: set[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(names))
    except TypeError:
        return tuple(sorted(names, key=str))
