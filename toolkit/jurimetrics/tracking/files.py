"""The files of a run: rows and calls as Parquet, the summary, its answers highlighted, settings, prompts whole, figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurimetrics import plots
from jurimetrics.frames import write_part
from jurimetrics.plots.drawing import write_png
from jurimetrics.results.highlight import highlights_html
from jurimetrics.results.parts import calls_and_uses, rows_of
from jurimetrics.results.reading import read_parts
from jurimetrics.results.shares import ROW_KEY
from jurimetrics.tracking.measures import Evaluation
from jurimetrics.tracking.names import encode
from jurimetrics.tracking.written import write_prompt_files

if TYPE_CHECKING:
    from jurimetrics.results import Results

MOST_FIGURES = 12


def write_files(part: Evaluation, folder: Path) -> None:
    """Write what every run of one variant carries into `folder`, under the names it has among the run's artifacts.

    Rows, calls, uses and settings are enough to make the results again (`load_run`).
    """
    _write_rows(part, folder)
    part.summary.to_csv(folder / "summary.csv", index=False, encoding="utf-8")
    # Half of a surrogate pair, which settings may hold, is spelt out.
    page = highlights_html(part.scores, part.records, part.settings)
    (folder / "answers.html").write_text(page, encoding="utf-8", errors="backslashreplace")
    _write_json(folder / "settings.json", part.settings)
    prompts = part.settings.get("prompts") or {}
    for name, prompt in prompts.items():
        _write_prompt(folder / "prompts", name, prompt)
    write_prompt_files(part.settings, str(part.records["variant"].iloc[0]), folder)


def _write_rows(part: Evaluation, folder: Path) -> None:
    """The frames as the results show them, the calls of this variant's rows, and all uses of those by whomever."""
    variants = part.records["variant"].unique().tolist()
    rows = rows_of(variants)
    by_panel = read_parts(part.folder, "scores", [*ROW_KEY, "panel"], where=rows).to_pandas()
    part.scores.merge(by_panel, on=ROW_KEY, how="left").to_parquet(folder / "scores.parquet", index=False)
    part.records.to_parquet(folder / "records.parquet", index=False)
    for name, table in zip(("calls", "uses"), calls_and_uses(part.folder, rows), strict=True):
        write_part(table, folder / f"{name}.parquet")


def write_figures(results: Results, metrics: Sequence[str], folder: Path) -> list[Path]:
    """Draw the summary and the scores of the first twelve of `metrics` as PNG files into `folder`; which there are."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"summary": plots.summary(results)}
    for metric in metrics[:MOST_FIGURES]:
        drawn[f"scores_{encode(metric)}"] = plots.scores(results, metric)
    for name, axes in drawn.items():
        write_png(axes, folder / f"{name}.png")
    return [folder / f"{name}.png" for name in drawn]


def _write_prompt(folder: Path, name: str, prompt: Any) -> None:
    """A prompt as JSON, whole, and its messages as text, byte for byte."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / f"{encode(name)}.json", prompt)
    if isinstance(prompt, Mapping):
        for at, message in enumerate(prompt.get("messages") or (), 1):
            content = message.get("content") if isinstance(message, Mapping) else message
            if isinstance(content, str):
                (folder / f"{encode(name)}.{at}.txt").write_bytes(content.encode("utf-8", "surrogatepass"))


def _write_json(path: Path, value: Any) -> None:
    path.write_bytes(json.dumps(value, ensure_ascii=False, indent=2, default=str).encode("utf-8", "backslashreplace"))
