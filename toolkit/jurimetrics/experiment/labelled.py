"""The labels that an experiment file names: what people said of its records, and how these records were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jurimetrics.experiment.load import Experiment

if TYPE_CHECKING:
    import pandas as pd

    from jurimetrics.results import Results


def labels_of(experiment: Experiment) -> pd.DataFrame | None:
    """The labels as `load_labels` gives them, with the selection that the file declares; None where it names none.

    Raises `InputError` for a file of labels that cannot be read.
    """
    from jurimetrics.labels import load_labels

    return None if experiment.labels is None else load_labels(experiment.labels, selection=experiment.selection)


def fitting_labels(experiment: Experiment, results: Results) -> pd.DataFrame | None:
    """Those of `labels_of` whose record and metric have a row in the results; None where no label has.

    Labels may be there of metrics that this run does not measure: they are logged, but compare and correct nothing.
    """
    import pandas as pd

    labels = labels_of(experiment)
    if labels is None:
        return None
    scored = pd.MultiIndex.from_frame(results.scores[["id", "metric"]].drop_duplicates())
    fits = pd.MultiIndex.from_frame(labels[["id", "metric"]]).isin(scored)
    return labels[fits] if fits.any() else None
