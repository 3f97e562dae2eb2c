"""What `jurimetrics run` tells at its end: the summary, the failures, the cost, where everything is, what comes next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jurimetrics.cli.console import one_line

if TYPE_CHECKING:
    from jurimetrics.answers import Answers
    from jurimetrics.experiment import Experiment, Written
    from jurimetrics.records import Record
    from jurimetrics.results import Results
    from jurimetrics.results.summary import Totals
    from jurimetrics.variants.compare import Comparison

_LONGEST_EXAMPLE = 160
_BASELINE_ALONE = """
The baseline judge alone gave these scores. It compares words, numbers, names and negation with the documents and looks
at the surface of the text; it understands nothing. It is the floor that a real judge must beat, not a verdict.
To add a real one, put these lines into {file}:

[[judges]]
kind = "chat"
model = "gpt-4.1-mini"   # key: the variable OPENAI_API_KEY; base_url = "http://..." for any compatible server"""


def outcome(
    experiment: Experiment, results: Results, width: int, written: Written | None = None, said: str = ""
) -> str:
    """The summary table, what is `said` of the comparison, the failures by kind, the cost, and where everything is."""
    from jurimetrics.display import count, summary_text

    settings = results.settings
    names = ", ".join(settings["judges"])
    head = (
        f"{experiment.name}: {count(settings['records'], 'record')}, {count(len(settings['variants']), 'variant')}, "
        f"{count(len(settings['metrics']), 'metric')}, {count(len(settings['judges']), 'judge')} ({names})"
    )
    spent = [f"cost     {cost(results)}"]
    if written is not None:
        spent = [*writing(written), *_lost(results), f"judging  {cost(results)}", *of_budget(experiment, written)]
    places = [*spent, f"results  {results.folder.resolve()}", f"answers  {kept_in(settings['store'])}"]
    between = [said, ""] if said else []
    return "\n".join(
        [one_line(head, width), "", summary_text(results, width), "", *between, *failures(results), *places]
    )


def kept_in(store: str | None) -> str:
    """Where answers are kept, in words."""
    return str(Path(store).resolve()) if store else "kept in memory only, and gone now"


def unjudged(experiment: Experiment, store: str | None) -> list[str]:
    """Where the answers are that were written before an interruption."""
    from jurimetrics.engine.options import store_path
    from jurimetrics.experiment.studying import store_of

    path = store_path(store_of(experiment, store))
    return [f"answers  {kept_in(None if path is None else str(path))}"]


def writing(written: Written) -> list[str]:
    """What was written and what that took; of failures one line for each kind, with the first as an example."""
    from jurimetrics.display import count
    from jurimetrics.variants.references import ERROR, MODEL

    lines: list[str] = []
    if written.references is not None:
        made = sum(MODEL in record.metadata for record in written.references)
        errors = [
            (str(record.metadata[ERROR]), record)
            for record in written.references
            if record.reference is None and ERROR in record.metadata
        ]
        lines += [f"{count(made, 'reference')}: {_took(written.references)}", *_unwritten("reference", errors)]
    if written.answers is not None:
        made = sum(record.answer is not None for record in written.answers)
        errors = [(str(record.answer_error), record) for record in written.answers.failed]
        lines += [f"{count(made, 'answer')}: {_took(written.answers)}", *_unwritten("answer", errors)]
    return [f"{'' if at else 'writing':9}{line}" for at, line in enumerate(lines)]


def _lost(results: Results) -> list[str]:
    """What the failures of writing mean for the rows."""
    from jurimetrics.display import count

    rows = never_written(results)
    if not rows:
        return []
    share = rows / int(results.summary()["asked"].sum())
    return [f"{'':9}so {count(rows, 'row')}, {share:.1%} of all, cannot be judged: counted as failed by --max-failed"]


def _took(part: Answers) -> str:
    told = cost_of(part.totals())
    return told.rpartition(";")[0] or told  # without the failed rows, which are told with their kinds


def _unwritten(what: str, errors: list[tuple[str, Record]]) -> list[str]:
    """One line for each kind of failure, the most frequent first."""
    from jurimetrics.display import count

    kinds: dict[str, list[tuple[str, Record]]] = {}
    for error, record in errors:
        kinds.setdefault(error.partition(": ")[0], []).append((error.partition(": ")[2], record))
    lines: list[str] = []
    for kind, failed in sorted(kinds.items(), key=lambda one: -len(one[1])):
        message, record = failed[0]
        by = f" by {record.variant}" if record.variant else ""
        example = one_line(f"to {record.id}{by}: {message}", _LONGEST_EXAMPLE)
        lines.append(f"{count(len(failed), what)} failed: {kind}, such as that {example}")
    return lines


def of_budget(experiment: Experiment, written: Written) -> list[str]:
    """How the budget was shared, one line for each of its limits."""
    from jurimetrics.display import dollars

    lines: list[str] = []
    for unit, limit in (experiment.run.budget() or {}).items():
        shown = dollars if unit == "usd" else _whole
        spent, all_spent = written.spent[unit], {
            "usd": written.budget.spent_usd, "tokens": written.budget.spent_tokens, "calls": written.budget.spent_calls,
        }[unit]  # fmt: skip
        words = f"{shown(spent)} for writing and {shown(all_spent - spent)} for judging"
        of = f"of {shown(limit)}" if unit == "usd" else f"of {shown(limit)} {unit}"
        lines.append(f"{'' if lines else 'budget':9}{of}: {words}")
    return lines


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def failures(results: Results) -> list[str]:
    """One line for each kind of failure, the most frequent first, with the first such row as an example."""
    from jurimetrics.display import count

    failed = results.failures()
    if failed.empty:
        return []
    asked = int(results.summary()["asked"].sum())
    lines = [f"failed   {count(len(failed), 'row')}, {len(failed) / asked:.1%} of all"]
    for kind, rows in failed.groupby("kind", sort=False):
        first = rows.iloc[0]
        variant = f" ({first['variant']})" if first["variant"] else ""
        example = f"{first['metric']} of {first['id']}{variant} by {first['judge']}: {first['message']}"
        lines.append(f"         {len(rows):,} x {kind}, such as {one_line(example, _LONGEST_EXAMPLE)}")
    return lines


def failed_share(results: Results) -> float:
    """Failed rows among all rows asked for, with those of `never_written`; 0 where there is none."""
    table = results.summary()
    asked = int(table["asked"].sum())
    return (int(table["failed"].sum()) + never_written(results)) / asked if asked else 0.0


def never_written(results: Results) -> int:
    """How many rows have no score because an answer or a reference for them was to be written here and could not be."""
    from jurimetrics.variants.references import ERROR

    settings, records = results.settings, results.records
    unwritten = records["variant"].isin(settings.get("written_by") or {}) & records["answer_error"].notna()
    no_reference = records["reference"].isna() & records["metadata"].str.contains(f'"{ERROR}"', regex=False)
    if not (unwritten | no_reference).any():
        return 0
    of_reference = [name for name, declared in settings["metrics"].items() if "reference" in declared.get("needs", ())]
    rows = results.scores[["id", "variant", "metric", "status"]]
    rows = rows[rows["status"] == "not_applicable"]
    keys = rows.set_index(["id", "variant"]).index
    lost, vain = (
        keys.isin(list(records.loc[which, ["id", "variant"]].itertuples(index=False, name=None)))
        for which in (unwritten, no_reference)
    )
    return int((lost | (vain & rows["metric"].isin(of_reference).to_numpy())).sum())


def compared(found: Comparison | None, why: str) -> str:
    """The comparison as a table with its verdicts and notes; or why there is none, "" where none was asked for."""
    if found is None:
        return f"not compared: {one_line(why, 400)}" if why else ""
    against = "all pairs" if found.baseline is None else f"each with {one_line(found.baseline or '(no name)', 60)}"
    return f"comparison of variants, {against}\n\n{found}"


def cost(results: Results) -> str:
    """What the judging took, in words."""
    return cost_of(results.totals())


def cost_of(totals: Totals) -> str:
    """The same of any bill."""
    if not totals.calls and not totals.cached_calls:
        return "nothing: no request was sent"
    return str(totals).removeprefix("cost ")


def logged(experiment: Experiment, results: Results, run_ids: list[str], study: str = "") -> str:
    """Where the runs are, with that of the whole study where variants were compared, and how to look at them."""
    from jurimetrics.tracking.store import find_store

    lines = [f"MLflow   {find_store()}"]
    lines.append(f"         experiment {experiment.mlflow.experiment or experiment.name}")
    for variant, run_id in zip(results.settings["variants"], run_ids, strict=True):
        lines.append(f"         run {run_id} {one_line(variant, 60)}".rstrip())
    if study:
        lines.append(f"         run {study} of the comparison")
    return "\n".join([*lines, "         to look at them: jurimetrics ui (in a clone of jurimetrics: make ui)"])


def baseline_alone(experiment: Experiment) -> str:
    """What must be said of scores that no model gave, and how to get others; "" where a real judge took part."""
    if any(judge.endpoint is not None for judge in experiment.judges):
        return ""
    return _BASELINE_ALONE.format(file=experiment.file)
