"""A comparison of variants -> one MLflow run of the whole study, linked with the runs of its variants."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from jurimetrics import plots
from jurimetrics.cells import show
from jurimetrics.errors import InputError
from jurimetrics.plots.drawing import write_png
from jurimetrics.results import Results
from jurimetrics.tracking.measures import MOST_METRICS, changed_names, clip, rounded
from jurimetrics.tracking.names import encode
from jurimetrics.tracking.note import LONGEST_NOTE, escape
from jurimetrics.tracking.quiet import quiet_mlflow
from jurimetrics.tracking.sink import Sink, log_values, refusals, running, surroundings
from jurimetrics.tracking.store import find_store, open_experiment, open_store, patiently, require_answer

STUDY_RUN = "jurimetrics.study_run"
UNNAMED = "(no name)"
_READ = {"leaderboard": {"metric", "variant"}, "tradeoff": {"metric", "against", "front"}}


class Compared(Protocol):
    """A comparison of variants, as `compare` gives it."""

    @property
    def frame(self) -> pd.DataFrame: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def level(self) -> float: ...
    @property
    def baseline(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class _Linked:
    """The run of one variant that is there already."""

    variant: str
    run_id: str
    experiment_id: str
    start_ms: int


@dataclass(frozen=True, slots=True)
class _Study:
    """All that one study run is made of."""

    comparison: Compared
    results: Results
    linked: tuple[_Linked, ...]
    leaderboard: pd.DataFrame | None
    tradeoff: pd.DataFrame | None

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the comparison, those that were decided on beforehand first."""
        rows = [{str(name): value for name, value in row.items()} for row in self.comparison.frame.to_dict("records")]
        return sorted(rows, key=lambda line: line["family"] != "primary")


def log_comparison(
    comparison: Compared,
    results: Results,
    *,
    experiment: str,
    runs: Sequence[str] = (),
    leaderboard: pd.DataFrame | None = None,
    tradeoff: pd.DataFrame | None = None,
) -> str:
    """Log a comparison (`compare`) of the variants of `results` as one MLflow run of the whole study; its run id.

    The run is named after the experiment and tagged `jurimetrics.kind` = "study". `runs`: the ids that `log_run` gave;
    the study's note links to them, each of them gets the tag `jurimetrics.study_run`, and the study begins when the first
    of them did. `leaderboard` and `tradeoff` are the frames of the functions of these names (several trade-offs:
    concatenated).

    Metrics, under a hundred, primary ones first: `difference/<metric>/<b - a>` rounded to 4, then `p/...` (in the family;
    alone where exploratory), `n/...` and, where labels corrected it, `corrected/...`; what is undefined is left out.
    Params: baseline, primary and exploratory metrics, level, variants, judges. The note has the verdicts in words and
    what must be read beside them. Artifacts: the lines as the table `comparison.json` (those columns that are read first)
    and whole as CSV and Parquet, `leaderboard` and `tradeoff` alike, and figures as PNG.

    Nothing of the caller's is changed, as in `log_run`. The run ends FINISHED, FAILED, or KILLED if interrupted.
    Raises `InputError` for a run that is not there, a comparison of other results, values of other kinds, and where
    MLflow cannot be reached or refuses.

    >>> import os
    >>> from unittest.mock import patch
    >>> from jurimetrics import compare
    >>> rows = [{"id": i, "variant": v, "metric": "grade", "judge": "ann", "score": (3 + i % 3 + up) / 10}
    ...         for i in range(20) for v, up in (("A", 0), ("B", i % 4))]
    >>> results = Results.from_frame(pd.DataFrame(rows), {"grade": {"range": (0, 1)}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     uri = f"sqlite:///{Path(folder).as_posix()}/mlflow.db"
    ...     with patch.dict(os.environ, MLFLOW_TRACKING_URI=uri):
    ...         len(log_comparison(compare(results), results, experiment="grades"))
    32
    """
    if not isinstance(experiment, str) or not experiment.strip():
        raise InputError("experiment: the name of an MLflow experiment is needed")
    _check(comparison, results, runs, {"leaderboard": leaderboard, "tradeoff": tradeoff})
    store = find_store()
    with quiet_mlflow(), refusals(store):
        client = open_store(store)
        sink = Sink(store, client, open_experiment(client, store, experiment), experiment)
        linked = tuple(_linked(sink, run_id) for run_id in runs)
        study = _Study(comparison, results, linked, leaderboard, tradeoff)
        # A study begins with its first run. So it stands below its variants on the page of runs, whose columns are those
        # of the newest run first.
        start = min((one.start_ms for one in linked), default=None)
        with running(sink, experiment, _first_tags(sink, linked), start_ms=start and start - 1) as run_id:
            _log_columns(sink, run_id, study)
            _log_files(sink, run_id, study)
            for one in linked:
                patiently(client.set_tag, one.run_id, STUDY_RUN, run_id)
        return run_id


def _check(comparison: Any, results: Any, runs: Any, frames: Mapping[str, Any]) -> None:
    """Raise `InputError`, before there is a run, for what cannot be logged."""
    lines = getattr(comparison, "frame", None)
    if not isinstance(lines, pd.DataFrame) or not {"metric", "a", "b", "verdict"} <= set(lines.columns):
        raise InputError(f"comparison: expected what compare gives, found {type(comparison).__name__}")
    if not isinstance(results, Results):
        raise InputError(f"results: expected Results, found {type(results).__name__}")
    if not isinstance(runs, list | tuple) or not all(isinstance(one, str) for one in runs):
        raise InputError(f"runs: expected a list of run ids, found {show(runs)}")
    for name, frame in frames.items():
        needed = _READ[name]
        if frame is not None and not (isinstance(frame, pd.DataFrame) and needed <= set(frame.columns)):
            raise InputError(f"{name}: expected the frame that {name} gives, found {type(frame).__name__}")
    scores = results.scores
    for column, ends in (("metric", ("metric",)), ("variant", ("a", "b"))):
        there = set(scores[column])
        if strange := sorted({str(name) for end in ends for name in lines[end]} - there):
            raise InputError(f"comparison: it is of other results: {column} {strange[0]!r} is not in these")


def _linked(sink: Sink, run_id: str) -> _Linked:
    from mlflow.exceptions import MlflowException

    require_answer(sink.store)
    try:
        run = patiently(sink.client.get_run, run_id)
    except MlflowException as error:
        raise InputError(f"runs: there is no run {run_id!r} at {sink.store}") from error
    variant = run.data.tags.get("jurimetrics.variant") or run.info.run_name or ""
    return _Linked(variant, run_id, run.info.experiment_id, run.info.start_time)


def _first_tags(sink: Sink, linked: Sequence[_Linked]) -> dict[str, str]:
    return {
        **surroundings(sink),
        "jurimetrics.study": sink.experiment,
        "jurimetrics.kind": "study",
        **{f"jurimetrics.run.{encode(one.variant or UNNAMED)}": one.run_id for one in linked},
    }


def _log_columns(sink: Sink, run_id: str, study: _Study) -> None:
    names = [*study.comparison.frame["metric"], *map(_pair, study.lines)]
    tags = {**changed_names(list(dict.fromkeys(names))), "mlflow.note.content": _note(study)}
    values = _values(study.lines)
    if len(values) > MOST_METRICS:
        tags["jurimetrics.left_out"] = f"{len(values) - MOST_METRICS} more metrics stand in comparison.csv"
    kept = dict(list(values.items())[:MOST_METRICS])
    log_values(sink, run_id, kept, _params(study), tags, time.time_ns() // 1_000_000)


def _pair(line: Mapping[str, Any]) -> str:
    return f"{line['b'] or UNNAMED} - {line['a'] or UNNAMED}"


def _p(line: Mapping[str, Any]) -> Any:
    return line["p_adjusted"] if line["family"] == "primary" else line["p"]


def _values(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The metrics in the order in which they may be shown; all differences before the first p."""
    found = {}
    for figure in ("difference", "p", "n", "corrected"):
        for line in lines:
            value = rounded(_p(line), 6) if figure == "p" else rounded(line[figure])
            if value is not None:
                found[f"{figure}/{encode(str(line['metric']))}/{encode(_pair(line))}"] = value
    return found


def _params(study: _Study) -> dict[str, str]:
    settings, lines = study.results.settings, study.lines
    by_family = {
        family: ", ".join(dict.fromkeys(str(line["metric"]) for line in lines if line["family"] == family))
        for family in ("primary", "exploratory")
    }
    panel = settings.get("panel")
    found = {
        "baseline": "none: all pairs" if study.comparison.baseline is None else study.comparison.baseline or UNNAMED,
        **by_family,
        "level": f"{study.comparison.level:g}",
        "variants": ", ".join(dict.fromkeys(line[end] or UNNAMED for end in ("a", "b") for line in lines)),
        "judged by": ", ".join(dict.fromkeys(str(line["judge"]) for line in lines)),
        "judges": ", ".join(settings.get("judges") or ()),
        "panel": f"{panel.get('rule')} of {', '.join(panel.get('members') or ())}" if panel else "",
        "jurimetrics": str(settings.get("jurimetrics") or ""),
    }
    return {name: clip(value) for name, value in found.items() if value}


def _note(study: _Study) -> str:
    """The verdicts, what must be read beside them, and the runs; lines that do not fit are left out and counted."""
    end = ["", "To be read beside it:", "", *(f"- {escape(text)}" for text in study.comparison.notes), ""]
    if study.linked:
        links = [
            f"[{escape(one.variant or UNNAMED)}](#/experiments/{one.experiment_id}/runs/{one.run_id})"
            for one in study.linked
        ]
        end += [f"Runs of the variants: {', '.join(links)}", ""]
    end.append("`comparison.csv` and `comparison.parquet` hold every column, `figures/` the pictures.")
    said = [f"- **{escape(line['metric'])}**: {escape(line['verdict'])}" for line in study.lines]
    room = LONGEST_NOTE - sum(len(line) + 1 for line in end) - 60
    kept: list[str] = []
    for line in said:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    left = [f"- {len(said) - len(kept)} more verdicts stand in `comparison.csv`"] if len(kept) < len(said) else []
    return "\n".join([*kept, *left, *end])[:LONGEST_NOTE]


def _log_files(sink: Sink, run_id: str, study: _Study) -> None:
    require_answer(sink.store)
    frames = {"comparison": study.comparison.frame, "leaderboard": study.leaderboard, "tradeoff": study.tradeoff}
    with tempfile.TemporaryDirectory(prefix="jurimetrics-") as name:
        folder = Path(name)
        for title, frame in frames.items():
            if frame is not None:
                frame.to_csv(folder / f"{title}.csv", index=False, encoding="utf-8")
                frame.to_parquet(folder / f"{title}.parquet", index=False)
        _write_figures(study, folder / "figures")
        sink.client.log_artifacts(run_id, str(folder))
    for title, frame in frames.items():
        if frame is not None:
            shown = _readable(study.lines) if title == "comparison" else frame.round(6)
            table = shown.astype(object).where(shown.notna(), None)
            patiently(sink.client.log_table, run_id, data=table, artifact_file=f"{title}.json")


def _readable(lines: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The columns that are read first; the interval and p are those that the verdict goes by where nothing is corrected."""
    rows = []
    for line in lines:
        ends = ("simultaneous_low", "simultaneous_high") if line["family"] == "primary" else ("low", "high")
        row = {"metric": line["metric"], "variants": _pair(line), "difference": line["difference"]}
        row |= {"low": line[ends[0]], "high": line[ends[1]], "p": _p(line)}
        row |= {name: line[name] for name in ("n", "mean_a", "mean_b", "wins", "ties", "losses")}
        row |= {name: line[name] for name in ("corrected", "corrected_low", "corrected_high", "labelled", "needed")}
        rows.append({**row, "judge": line["judge"], "family": line["family"], "verdict": line["verdict"]})
    frame = pd.DataFrame(rows)
    empty = [name for name in ("corrected", "corrected_low", "corrected_high", "needed") if frame[name].isna().all()]
    frame = frame.drop(columns=[*empty, *(["labelled"] if not (frame["labelled"] > 0).any() else [])])
    return frame.round({name: 6 if name == "p" else 4 for name in frame.columns})


def _write_figures(study: _Study, folder: Path) -> None:
    folder.mkdir()
    drawn: dict[str, Any] = {"summary": plots.summary(study.results)}
    declared = study.results.settings["metrics"]
    metrics = [str(metric) for metric in dict.fromkeys(study.comparison.frame["metric"])]
    ranges = {tuple(declared.get(metric, {}).get("range") or ()) for metric in metrics}
    if len(ranges) == 1:
        drawn["differences"] = plots.differences(study.comparison)
    else:
        # On one axis the differences of the wider range would hide those of the narrower.
        drawn |= {f"differences_{encode(name)}": plots.differences(study.comparison, name) for name in metrics}
    if study.tradeoff is not None:
        for (metric, against), frame in study.tradeoff.groupby(["metric", "against"], sort=False):
            if frame["front"].notna().any():
                drawn[f"pareto_{encode(str(metric))}_{against}"] = plots.pareto(frame)
    for name, axes in drawn.items():
        write_png(axes, folder / f"{name}.png")
