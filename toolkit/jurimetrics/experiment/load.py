"""From an experiment file to the judges, metrics and settings that it names, all of it checked; nothing is sent."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from jurimetrics.errors import InputError
from jurimetrics.experiment.cascade import load_cascade, members_of_panel, under_thresholds
from jurimetrics.experiment.faults import Place, fault, first_fault, meant, refuse_keys
from jurimetrics.experiment.study import Scored, Study, load_study
from jurimetrics.experiment.tables import BaselineTable, ChatTable, ExperimentTable, MlflowTable, RubricTable, RunTable

if TYPE_CHECKING:
    from jurimetrics.judges.cascade import Cascade
    from jurimetrics.judges.judge import Judge
    from jurimetrics.judges.panel import Panel
    from jurimetrics.labels import Selection
    from jurimetrics.metrics.metric import Metric

FILE = "experiment.toml"


@dataclass(frozen=True, slots=True)
class Experiment:
    """A checked experiment file. All paths are those of the file's folder, `file` as it was given.

    `judges` in the order of the file; `embedder`, `panel` and `cascade` are None without tables [embedder], [panel] and
    [cascade] (with both, the panel is a stage of the cascade); `metrics` hold the default thresholds, but for a cascade
    those of the file, which decide how sure it is; `thresholds` what the file says instead, by the metrics' names in the
    results; `labels`, `selection` (how the labelled records were chosen) and `columns` are None where the file names none;
    `study` holds what writes answers and how they are compared and reported.
    """

    file: Path
    name: str
    description: str
    records: Path
    labels: Path | None
    selection: Selection | None
    columns: Mapping[str, str] | None
    judges: tuple[Judge, ...]
    embedder: Judge | None
    panel: Panel | None
    cascade: Cascade | None
    metrics: tuple[Metric, ...]
    thresholds: Mapping[str, float]
    run: RunTable
    mlflow: MlflowTable
    study: Study

    @property
    def asked(self) -> Cascade | Panel | tuple[Judge, ...]:
        """Who is asked, as `evaluate` takes it."""
        return self.cascade or self.panel or self.judges

    @property
    def out(self) -> Path:
        """The folder of the results."""
        return self.file.parent / self.run.out

    @property
    def store(self) -> Path | str | None:
        """Where answers are kept, as `evaluate` takes it."""
        return named_store(self.run.store, self.file.parent)


def named_store(word: str, folder: Path) -> Path | str | None:
    """A store as `evaluate` takes it: "auto", None for "none", else a path from `folder`."""
    return "auto" if word == "auto" else None if word == "none" else folder / Path(word).expanduser()


def load_experiment(path: Path | str) -> Experiment:
    """Read and check an experiment file, given by its path or its folder (`experiment.toml` there).

    Prompts are read from their files, those of MLflow's registry from there.

    Raises `InputError`, one line that names the file, the key and what was expected there, for whatever can be known
    before anything is asked: not TOML, an unknown key, a wrong type, a missing file, a metric, judge or threshold that
    is not there, something that looks like a key.

    >>> load_experiment("no/such/folder")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: no/such/folder: no such file or folder; expected an experiment file or its folder
    """
    file = _find(Path(path))
    content = _read(file)
    refuse_keys(file, content)
    try:
        table = ExperimentTable.model_validate(content)
    except ValidationError as error:
        raise first_fault(file, content, error) from None
    folder = file.parent
    judges = _judges(file, table)
    metrics = _metrics(file, table)
    by_name = _by_name(table, metrics)
    thresholds = _thresholds(file, table, by_name)
    panel = _panel(file, table, members_of_panel(file, table, judges))
    if table.cascade is not None:
        metrics = under_thresholds(metrics, thresholds)
    cascade = load_cascade(file, table, judges, panel, metrics)
    return Experiment(
        file=file,
        name=table.name or file.resolve().parent.name,
        description=table.description,
        records=_existing(file, "data.records", table.data.records),
        labels=None if table.data.labels is None else _existing(file, "data.labels", table.data.labels),
        selection=_selection(file, table),
        columns=table.data.columns,
        judges=judges,
        embedder=_embedder(file, table),
        panel=panel,
        cascade=cascade,
        metrics=metrics,
        thresholds=thresholds,
        run=_run(file, table, folder),
        mlflow=table.mlflow,
        study=load_study(file, table, Scored(by_name, judges, panel, cascade)),
    )


def _selection(file: Path, table: ExperimentTable) -> Selection | None:
    if table.data.selection is not None and table.data.labels is None:
        raise fault(file, "data.selection", "says how labelled records were chosen, but [data] names no labels")
    return table.data.selection


def _find(path: Path) -> Path:
    if path.is_dir():
        if not (path / FILE).is_file():
            raise InputError(f"{path}: no {FILE} in this folder")
        return path / FILE
    if not path.is_file():
        raise InputError(f"{path}: no such file or folder; expected an experiment file or its folder")
    return path


def _read(file: Path) -> dict[str, Any]:
    text = ""
    try:
        text = file.read_text(encoding="utf-8-sig")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error).replace("at end of document", f"at line {len(text.splitlines())}, the end of the file")
        raise InputError(f"{file}: not TOML: {' '.join(words.split())}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{file}: not TOML: line {line} is not UTF-8") from None
    except (OSError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from None


def _existing(file: Path, key: str, path: str) -> Path:
    found = file.parent / Path(path).expanduser()
    if not found.is_file():
        raise fault(file, key, f'no such file: "{path}"; expected a path from the folder of this file')
    return found


def _judges(file: Path, table: ExperimentTable) -> tuple[Judge, ...]:
    from jurimetrics.judges.panel import check_names

    judges: list[Judge] = []
    for number, each in enumerate(table.judges):
        try:
            judges.append(_judge(each))
        except InputError as error:
            raise fault(file, ("judges", number), str(error)) from None
    try:
        check_names([judge.name for judge in judges])
    except InputError as error:
        raise fault(file, "judges", str(error)) from None
    return tuple(judges)


def _judge(table: BaselineTable | ChatTable) -> Judge:
    if table.kind == "chat":
        from jurimetrics.judges.chat import ChatJudge

        return ChatJudge(**table.options())
    from jurimetrics.judges.baseline import BaselineJudge

    return BaselineJudge(**table.model_dump(exclude_unset=True, exclude={"kind"}))


def _embedder(file: Path, table: ExperimentTable) -> Judge | None:
    from jurimetrics.judges.embedders import EmbeddedEmbedder, EndpointEmbedder

    given = table.embedder
    if given is None:
        return None
    options = given.options()
    if given.kind == "endpoint":
        if given.model is None:
            raise fault(file, "embedder.model", "missing; expected text, the name of the model")
        try:
            return EndpointEmbedder(**options)
        except InputError as error:
            raise fault(file, "embedder", str(error)) from None
    for key in options:
        if key != "name":
            raise fault(file, ("embedder", key), 'only an embedder of kind "endpoint" has this key')
    return EmbeddedEmbedder(**options)


def _panel(file: Path, table: ExperimentTable, judges: tuple[Judge, ...]) -> Panel | None:
    from jurimetrics.judges.panel import Panel

    given = table.panel
    if given is None:
        return None
    by_name = {judge.name: judge for judge in judges}
    for name, weight in (given.weights or {}).items():
        if name not in by_name:
            raise fault(file, ("panel", "weights", name), "no such judge" + meant(name, by_name))
        if not weight > 0:
            raise fault(file, ("panel", "weights", name), f"expected a number above 0, found {weight:g}")
    if given.extractor not in (None, "each", *by_name):
        raise fault(
            file, "panel.extractor", f'no judge "{given.extractor}"' + meant(str(given.extractor), [*by_name, "each"])
        )
    if given.name in by_name:
        raise fault(file, "panel.name", f'a judge is called "{given.name}" too; expected another name')
    extractor: Any = given.extractor if given.extractor == "each" else by_name.get(given.extractor or "")
    try:
        return Panel(
            judges,
            rule=given.rule,
            vote_on=given.vote_on,
            weights=given.weights,
            quorum=given.quorum,
            extractor=extractor,
            name=given.name,
        )
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _metrics(file: Path, table: ExperimentTable) -> tuple[Metric, ...]:
    from jurimetrics.metrics import GROUPS, NAMES, resolve

    own = {each.name: _rubric(file, number, each) for number, each in enumerate(table.metrics.rubrics)}
    built_in = {*GROUPS, *NAMES}
    if len(own) < len(table.metrics.rubrics):
        raise fault(file, "metrics.rubrics", "two rubrics have the same name")
    for number, name in enumerate(table.metrics.use):
        place = ("metrics", "use", number)
        if name.startswith("preference"):
            _resolved(file, place, name)
        elif name not in built_in and name not in own:
            raise fault(file, place, f'no metric or group "{name}"' + meant(name, [*built_in, *own]))
    for name in own:
        if name in built_in:
            raise fault(file, "metrics.rubrics", f'"{name}" is a built-in metric or group; expected another name')
    chosen = [own.get(name, name) for name in table.metrics.use]
    chosen += [metric for name, metric in own.items() if name not in table.metrics.use]
    if not chosen:
        raise fault(
            file, "metrics.use", 'nothing is measured; expected a list of metrics or groups, such as ["rag", "f1"]'
        )
    return _with_options(file, table, resolve(chosen))


def _resolved(file: Path, place: Place, name: str) -> tuple[Metric, ...]:
    from jurimetrics.metrics import resolve

    try:
        return resolve(name)
    except InputError as error:
        raise fault(file, place, str(error).removeprefix("metrics: ")) from None


def _with_options(file: Path, table: ExperimentTable, metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """The metrics under the options of the file, in place of those without."""
    by_name = {metric.name: metric for metric in metrics}
    for name, options in table.metrics.options.items():
        place = ("metrics", "options", name)
        if name not in by_name:
            raise fault(file, place, "this metric is not used" + meant(name, by_name))
        if not options:
            raise fault(file, place, 'expected a table of options, such as { refusals = "worst" }, found an empty one')
        try:
            by_name[name] = by_name[name].using(**options)
        except InputError as error:
            raise fault(file, place, str(error)) from None
    return tuple(by_name.values())


def _rubric(file: Path, number: int, table: RubricTable) -> Metric:
    from jurimetrics.metrics.rubrics import rubric

    place = ("metrics", "rubrics", number)
    given = table.model_dump(exclude_unset=True)
    given["scale"] = tuple(table.scale)
    if table.levels is not None:
        given["levels"] = {}
        for value, words in table.levels.items():
            try:
                given["levels"][float(value)] = words
            except ValueError:
                raise fault(
                    file, (*place, "levels"), f'expected a number before each description, found "{value}"'
                ) from None
    try:
        return rubric(given.pop("text"), **given)
    except InputError as error:
        raise fault(file, place, str(error)) from None


def _by_name(table: ExperimentTable, metrics: tuple[Metric, ...]) -> dict[str, Metric]:
    """The metrics by what the file calls them: under options by the name that they have without."""
    by_name = {metric.name: metric for metric in metrics}
    return by_name | {name: _under_options(metrics, name) for name in table.metrics.options}


def _thresholds(file: Path, table: ExperimentTable, by_name: Mapping[str, Metric]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, threshold in table.metrics.thresholds.items():
        place = ("metrics", "thresholds", name)
        if name not in by_name:
            raise fault(file, place, "this metric is not used" + meant(name, by_name))
        low, high = by_name[name].range
        if not low <= threshold <= high:
            raise fault(file, place, f"expected a number from {low:g} to {high:g}, found {threshold:g}")
        found[by_name[name].name] = threshold
    return found


def _under_options(metrics: tuple[Metric, ...], name: str) -> Metric:
    return next(metric for metric in metrics if metric.options and metric.name.partition("(")[0] == name)


def _run(file: Path, table: ExperimentTable, folder: Path) -> RunTable:
    from jurimetrics.frames import SETTINGS

    out = folder / table.run.out
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / SETTINGS).exists())):
        raise fault(
            file, "run.out", f'"{table.run.out}" holds something other than results; expected a folder of its own'
        )
    return table.run
