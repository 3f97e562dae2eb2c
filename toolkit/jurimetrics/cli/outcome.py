"""What `jurimetrics run` tells at its end: the summary, the failures, the cost, where everything is, what comes next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jurimetrics.cli.console import one_line

if TYPE_CHECKING:
    from jurimetrics.experiment import Experiment
    from jurimetrics.results import Results

_LONGEST_EXAMPLE = 160
_BASELINE_ALONE = """
The baseline judge alone gave these scores. It compares words, numbers, names and negation with the documents and looks
at the surface of the text; it understands nothing. It is the floor that a real judge must beat, not a verdict.
To add a real one, put these lines into {file}:

[[judges]]
kind = "chat"
model = "gpt-4.1-mini"   # key: the variable OPENAI_API_KEY; base_url = "http://..." for any compatible server"""


def outcome(experiment: Experiment, results: Results, width: int) -> str:
    """The summary table, the failures by kind, the cost, and where results and answers are."""
    from jurimetrics.display import count, summary_text

    settings = results.settings
    names = ", ".join(settings["judges"])
    head = (
        f"{experiment.name}: {count(settings['records'], 'record')}, {count(len(settings['variants']), 'variant')}, "
        f"{count(len(settings['metrics']), 'metric')}, {count(len(settings['judges']), 'judge')} ({names})"
    )
    store = Path(settings["store"]).resolve() if settings["store"] else "kept in memory only, and gone now"
    places = [f"cost     {cost(results)}", f"results  {results.folder.resolve()}", f"answers  {store}"]
    return "\n".join([one_line(head, width), "", summary_text(results, width), "", *failures(results), *places])


def failures(results: Results) -> list[str]:
    """One line for each kind of failure, the most frequent first, with the first such row as an example."""
    from jurimetrics.display import count

    failed = results.failures()
    if failed.empty:
        return []
    lines = [f"failed   {count(len(failed), 'row')}, {failed_share(results):.1%} of all"]
    for kind, rows in failed.groupby("kind", sort=False):
        first = rows.iloc[0]
        variant = f" ({first['variant']})" if first["variant"] else ""
        example = f"{first['metric']} of {first['id']}{variant} by {first['judge']}: {first['message']}"
        lines.append(f"         {len(rows):,} x {kind}, such as {one_line(example, _LONGEST_EXAMPLE)}")
    return lines


def failed_share(results: Results) -> float:
    """Failed rows among all rows asked for; 0 where there is none."""
    table = results.summary()
    asked = int(table["asked"].sum())
    return float(table["failed"].sum()) / asked if asked else 0.0


def cost(results: Results) -> str:
    """What the run took, in words."""
    totals = results.totals()
    if not totals.calls and not totals.cached_calls:
        return "nothing: no request was sent"
    return str(totals).removeprefix("cost ")


def logged(experiment: Experiment, results: Results, run_ids: list[str]) -> str:
    """Where the runs are and how to look at them."""
    from jurimetrics.tracking.store import find_store

    lines = [f"MLflow   {find_store()}"]
    lines.append(f"         experiment {experiment.mlflow.experiment or experiment.name}")
    for variant, run_id in zip(results.settings["variants"], run_ids, strict=True):
        lines.append(f"         run {run_id} {one_line(variant, 60)}".rstrip())
    return "\n".join([*lines, "         to look at them: make ui (or: jurimetrics ui)"])


def baseline_alone(experiment: Experiment) -> str:
    """What must be said of scores that no model gave, and how to get others; "" where a real judge took part."""
    if any(judge.endpoint is not None for judge in experiment.judges):
        return ""
    return _BASELINE_ALONE.format(file=experiment.file)
