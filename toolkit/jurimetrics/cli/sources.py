"""Results by what a user calls them: a folder, an experiment, or a run of MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jurimetrics.errors import InputError
from jurimetrics.project import is_file, is_folder

if TYPE_CHECKING:
    from jurimetrics.experiment import Experiment
    from jurimetrics.results import Results

_KINDS = "a folder of results, an experiment (its folder or file), or an MLflow run id (32 digits from 0 to f)"


def open_results(text: str) -> Results:
    """The results that `text` names, tried in this order: a folder of results, an experiment whose results are there, the
    id of an MLflow run, also as `runs:/<id>`.

    Raises `InputError`, one line that says what was tried, where nothing is there or it cannot be read.

    >>> open_results("no-such-thing")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: no-such-thing: nothing there; expected a folder of results, an experiment (its folder \
or file), or an MLflow run id (32 digits from 0 to f)
    """
    from jurimetrics.experiment.load import FILE
    from jurimetrics.frames import SETTINGS
    from jurimetrics.results import Results

    path = Path(text)
    if is_folder(path):
        if is_file(path / SETTINGS):
            return Results.load(path)
        if not is_file(path / FILE):
            raise InputError(f"{text}: neither {SETTINGS} (results) nor {FILE} (an experiment) is in this folder")
        return _of_experiment(path)
    if is_file(path):
        if path.suffix == ".toml":
            return _of_experiment(path)
        raise InputError(f"{text}: is a file; expected {_KINDS}")
    return _of_run(text)


def experiment_of(text: str) -> Experiment | None:
    """The experiment that `text` names, None where it names results or a run. Raises `InputError` as `load_experiment`.

    >>> experiment_of("no-such-thing") is None
    True
    """
    from jurimetrics.experiment.load import FILE, load_experiment
    from jurimetrics.frames import SETTINGS

    path = Path(text)
    named = is_file(path / FILE) and not is_file(path / SETTINGS) if is_folder(path) else path.suffix == ".toml"
    return load_experiment(path) if named and path.exists() else None


def _of_experiment(path: Path) -> Results:
    from jurimetrics.experiment import load_experiment
    from jurimetrics.frames import SETTINGS
    from jurimetrics.results import Results

    out = load_experiment(path).out
    if not (out / SETTINGS).is_file():
        raise InputError(f"{path}: no results of this experiment in {out}; make them with: jurimetrics run {path}")
    return Results.load(out)


def _of_run(text: str) -> Results:
    from jurimetrics.tracking.load import is_run_id, load_run

    run_id = text.removeprefix("runs:/")
    if not is_run_id(run_id):
        raise InputError(f"{text}: nothing there; expected {_KINDS}")
    return load_run(run_id)
