"""Labels from MLflow's review queues: a sample becomes a queue for each rater, and their answers become labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from jurimetrics.calibrate.sampling import Sample
from jurimetrics.errors import InputError
from jurimetrics.project import project_folder
from jurimetrics.tracking.names import encode
from jurimetrics.tracking.reviews import (
    Desk,
    Question,
    desk,
    open_queues,
    read_answers,
    read_sample,
    reviews_of,
    why_no_queues,
)
from jurimetrics.tracking.store import find_store

if TYPE_CHECKING:
    from jurimetrics.metrics.metric import Metric

EXPERIMENT = "review"
_SHOWN = ("question", "answer", "contexts", "reference")


@dataclass(frozen=True, slots=True)
class Review:
    """A sample that raters have before them; `print(review)` says where.

    `experiment` and `experiment_id` in MLflow, `run_id` the run that keeps the sample, `addresses` the page of each
    rater's queue; of a database it begins with "#", after the address of whoever serves it (`jurimetrics ui`). Where
    MLflow has no review queues, `experiment_id` and `run_id` are None, and `sheets` has a CSV file for each rater
    instead. `sample.metrics` are the ones that are asked.
    """

    sample: Sample
    raters: tuple[str, ...]
    experiment: str
    experiment_id: str | None = None
    run_id: str | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    sheets: Mapping[str, Path] = field(default_factory=dict)

    def __str__(self) -> str:
        where = self.addresses or self.sheets
        served = any(str(place).startswith("#") for place in where.values())
        told = ", in the pages that `jurimetrics ui` opens" if served else ""
        lines = [f"{len(self.sample.records)} records to label{told}:"]
        return "\n".join([*lines, *(f"  {rater}: {place}" for rater, place in where.items())])


def open_review(
    sample: Sample,
    metrics: Sequence[str | Metric] | None = None,
    raters: Sequence[str] = ("human",),
    *,
    experiment: str | None = None,
) -> Review:
    """Put the records of a sample before people in MLflow's review queues, and say where.

    `metrics`: what is asked, names or metrics of the sample (default: all of them); "yes" (1) or "no" (0) where the
    levels are 0 and 1, a choice where there are ten levels or fewer, else a number in the range. Each answer takes a
    rationale. `raters`: each gets a queue of this name with traces of their own, on which stand the question, the
    contexts, the reference and the answer: nothing that a judge or another rater said, no variant, no probability.
    `experiment`: its name in MLflow (default: "review"); the store is the one of `log_run`.

    MLflow calls these functions experimental. Where it has none, a sheet for each rater is written into the folder
    `reviews` of the project instead, and a warning names them. Either way `labels_from_review` reads the answers.
    The caller's tracking URI, active run, tracing, environment and logging are left as found.

    Raises `InputError` for a metric that is not in the sample, for raters that are none, blank or named twice (in any
    case), and where MLflow cannot be reached or refuses.

    >>> import os, tempfile
    >>> from unittest.mock import patch
    >>> from jurimetrics import Results, sample_for_labelling
    >>> scores = pd.DataFrame({"id": range(9), "metric": "grade", "judge": "ann", "score": range(9), "answer": "Yes."})
    >>> sample = sample_for_labelling(Results.from_frame(scores), 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     uri = f"sqlite:///{Path(folder).as_posix()}/mlflow.db"
    ...     with patch.dict(os.environ, MLFLOW_TRACKING_URI=uri):
    ...         review = open_review(sample, raters=["Ann", "Bo"], experiment="grades")
    >>> print(review)  # doctest: +ELLIPSIS
    3 records to label, in the pages that `jurimetrics ui` opens:
      Ann: #/experiments/1/review-queue?selectedQueueId=...
      Bo: #/experiments/1/review-queue?selectedQueueId=...
    """
    asked = _asked(sample, metrics)
    names = _raters(raters)
    name = EXPERIMENT if experiment is None else experiment
    if not isinstance(name, str) or not name.strip():
        raise InputError("experiment: the name of an MLflow experiment is needed")
    store = find_store()
    with desk(store, name) as at:
        if why := why_no_queues(at):
            review = Review(asked, names, name, sheets=_sheets(asked, names, name))
            warnings.warn(f"no review queues, as {why}; {review}", UserWarning, stacklevel=2)
            return review
        opened = open_queues(at, _plain(asked), _questions(asked), names, _kept(asked))
        addresses = {rater: _address(at, queue_id) for rater, queue_id in opened.queues.items()}
        return Review(asked, names, name, at.experiment_id, opened.run_id, addresses)


def labels_from_review(review: Review | str, *, run_id: str | None = None) -> pd.DataFrame:
    """The submitted answers of a review as labels, as `load_labels` gives them.

    `review`: what `open_review` gave, or the name of its experiment, from any later session; `run_id` chooses where the
    experiment has several reviews. Only records that the rater has submitted count.

    Columns `id`, `variant`, `metric`, `rater` (whose queue it is), `label` (float on the metric's scale), `probability`
    and `rationale` (None: none given), in the order of the sample. `attrs`: `selection` "probabilities"; `blank` as in
    `Sample.read`, whose rule for records left blank holds here too; `pending` and `declined`, how many records each
    rater has not submitted, or has declined to answer.

    Raises `InputError` where nothing is submitted, an answer is not on the metric's scale, two people answered in one
    queue, all records of a stratum are blank, or there is no such review.

    >>> import tempfile
    >>> from jurimetrics import Results, sample_for_labelling
    >>> scores = pd.DataFrame({"id": range(4), "metric": "grade", "judge": "ann", "score": range(4)})
    >>> sample = sample_for_labelling(Results.from_frame(scores), 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sheet = sample.save(Path(folder) / "ann.csv")
    ...     filled = pd.read_csv(sheet).assign(**{"label:grade": [3, 1]})
    ...     filled.to_csv(sheet, index=False)
    ...     labels = labels_from_review(Review(sample, ("Ann",), "grades", sheets={"Ann": sheet}))
    >>> labels[["rater", "label", "probability"]].values.tolist()
    [['Ann', 3.0, 0.5], ['Ann', 1.0, 0.5]]
    """
    if isinstance(review, Review):
        if review.run_id is None:
            return _from_sheets(review)
        name, run_id = review.experiment, review.run_id
    else:
        name = review
    with desk(find_store(), name, make=False) as at:
        run_id = _only(reviews_of(at), run_id, f"experiment {name!r} at {at.store}")
        kept = read_sample(at, run_id)
        sample = _restored(kept)
        answers = read_answers(at, run_id, _questions(sample), kept)
    if not answers.given:
        waiting = ", ".join(f"{many} records wait for {rater}" for rater, many in answers.pending.items())
        raise InputError(f"review {run_id}: nothing is submitted yet; {waiting}")
    labels = pd.DataFrame(answers.given)
    keys = sample.records.iloc[labels["row"]][["id", "variant"]].reset_index(drop=True)
    labels = pd.concat([keys, labels.drop(columns="row")], axis=1).assign(probability=math.nan)
    labels = labels[["id", "variant", "metric", "rater", "label", "probability", "rationale"]]
    labels["rationale"] = labels["rationale"].astype("str")
    found = sample.weighted(labels, f"review {run_id}")
    found.attrs |= {"pending": answers.pending, "declined": answers.declined}
    return found


def _asked(sample: Sample, metrics: Sequence[str | Metric] | None) -> Sample:
    if metrics is None:
        return sample
    if isinstance(metrics, str):
        raise InputError(f"metrics: expected a list, as in [{metrics!r}]")
    names = [one if isinstance(one, str) else one.name for one in metrics]
    if strange := [name for name in names if name not in sample.metrics]:
        raise InputError(f"metrics: {strange[0]!r} is not in this sample; there are: {', '.join(sample.metrics)}")
    if not names:
        raise InputError("metrics: none is asked")
    return replace(sample, metrics={name: sample.metrics[name] for name in names})


def _raters(raters: Sequence[str]) -> tuple[str, ...]:
    if isinstance(raters, str):
        raise InputError(f"raters: expected a list, as in [{raters!r}]")
    if not raters or not all(isinstance(name, str) and name.strip() for name in raters):
        raise InputError("raters: expected the name of at least one")
    names = tuple(name.strip() for name in raters)
    # MLflow does not tell users apart by the case of their names.
    if len({name.casefold() for name in names}) < len(names):
        raise InputError(f"raters: one is named twice: {', '.join(names)}")
    return names


def _questions(sample: Sample) -> list[Question]:
    return [Question(name, low, high, levels) for name, ((low, high), levels) in sample.metrics.items()]


def _plain(sample: Sample) -> list[dict[str, Any]]:
    """What is shown of the records, as JSON has it: text, lists and None."""
    return [{name: _value(row[name]) for name in _SHOWN} for row in sample.records.to_dict("records")]


def _value(value: Any) -> Any:
    if value is None or isinstance(value, float):  # NaN
        return None
    if isinstance(value, str):
        return value
    return [str(part) for part in value]


def _kept(sample: Sample) -> dict[str, Any]:
    """A sample as JSON; `_restored` is the other way round. Texts stand on the traces, so they are not kept twice."""
    scales = {
        name: {"range": [end if math.isfinite(end) else None for end in limits], "levels": levels and list(levels)}
        for name, (limits, levels) in sample.metrics.items()
    }
    records = sample.records.drop(columns=list(_SHOWN)).to_dict("records")
    return {
        "jurimetrics": "review", "by": sample.by, "seed": sample.seed, "total": sample.total, "metrics": scales,
        "records": records,
    }  # fmt: skip


def _restored(kept: Mapping[str, Any]) -> Sample:
    """The sample without its texts."""
    scales = {}
    for name, one in kept["metrics"].items():
        low, high = one["range"]
        limits = (-math.inf if low is None else low, math.inf if high is None else high)
        scales[name] = (limits, None if one["levels"] is None else tuple(one["levels"]))
    return Sample(pd.DataFrame(kept["records"]), scales, kept["by"], kept["seed"], kept["total"])


def _address(at: Desk, queue_id: str) -> str:
    page = f"#/experiments/{at.experiment_id}/review-queue?selectedQueueId={queue_id}"
    return f"{str(at.store).rstrip('/')}/{page}" if at.store.uri.lower().startswith("http") else page


def _only(found: Sequence[str], run_id: str | None, place: str) -> str:
    if not found:
        raise InputError(f"{place}: no review was opened there")
    if run_id is None and len(found) > 1:
        raise InputError(f"{place}: {len(found)} reviews; say run_id=, one of {', '.join(found)}")
    if run_id is not None and run_id not in found:
        raise InputError(f"{place}: no review {run_id!r}; there are: {', '.join(found)}")
    return found[0] if run_id is None else run_id


def _sheets(sample: Sample, raters: Sequence[str], experiment: str) -> dict[str, Path]:
    """A sheet for each rater, never over one that is there: it may be filled in."""
    folder, number = project_folder() / "reviews" / encode(experiment), 1
    while folder.exists():
        number += 1
        folder = folder.with_name(f"{encode(experiment)} ({number})")
    return {rater: sample.save(folder / f"{encode(rater)}.csv") for rater in raters}


def _from_sheets(review: Review) -> pd.DataFrame:
    """The labels of the sheets of all raters together; a sheet is of the rater it was written for."""
    from jurimetrics.labels import load_labels

    read = []
    for rater, path in review.sheets.items():
        try:
            labels = load_labels(path, selection="probabilities")
        except InputError as error:
            if "no labels" not in str(error):
                raise
            continue
        read.append(labels.assign(rater=rater))
    if not read:
        raise InputError(f"no label in any of {', '.join(map(str, review.sheets.values()))}")
    return review.sample.weighted(pd.concat(read, ignore_index=True), "the sheets")
