"""A calibration in MLflow, beside the run of the results that it is for."""

from __future__ import annotations

from jurimetrics.calibrate.calibration import Calibration
from jurimetrics.tracking.attach import attach_json
from jurimetrics.tracking.names import encode


def log_calibration(calibration: Calibration, run_id: str) -> str:
    """Add a calibration to a run that `log_run` made, and give the path of its artifact there.

    The artifact is what `Calibration.save` writes and `Calibration.load` reads after a download, with the digests of the
    labels and of the scores it was fitted on. The tag `jurimetrics.calibration.<metric>` has the digest of both. Another
    calibration of the same metric and judge takes the place of the first.

    Raises `InputError` where MLflow cannot be reached, refuses, or has no such run.

    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from unittest.mock import patch
    >>> import pandas as pd
    >>> from jurimetrics import Results, calibrate, load_labels, log_run
    >>> grades = [1, 2, 3, 4, 5] * 8
    >>> scores = pd.DataFrame({"id": range(40), "metric": "grade", "judge": "ann", "score": grades})
    >>> people = [{"id": at, "metric": "grade", "label": min(5, grade + at % 2)} for at, grade in enumerate(grades)]
    >>> results = Results.from_frame(scores)
    >>> found = calibrate(results, load_labels(people, selection="random"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     uri = f"sqlite:///{Path(folder).as_posix()}/mlflow.db"
    ...     with patch.dict(os.environ, MLFLOW_TRACKING_URI=uri):
    ...         log_calibration(found, log_run(results, experiment="grades")[0])
    'calibrations/grade.ann.json'
    """
    path = f"calibrations/{encode(calibration.metric)}.{encode(calibration.judge)}.json"
    tags = {f"jurimetrics.calibration.{encode(calibration.metric)}": calibration.data_digest}
    attach_json(run_id, path, calibration.to_dict(), tags)
    return path
