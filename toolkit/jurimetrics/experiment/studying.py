"""Running a study: references and answers are written, then judged by `run.py`, compared, reported, and logged as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurimetrics.errors import InputError
from jurimetrics.experiment.faults import fault
from jurimetrics.experiment.labelled import fitting_labels
from jurimetrics.experiment.load import Experiment, named_store
from jurimetrics.experiment.study import no_variant, refusing

if TYPE_CHECKING:
    from jurimetrics.answers import Answers
    from jurimetrics.engine.budget import Budget
    from jurimetrics.records import Record
    from jurimetrics.results import Results
    from jurimetrics.variants.compare import Comparison

WRITING = "writing"
"""The folder in the results that keeps what writing took: `answers.parquet`, `references.parquet`, call frames."""
_STOPPED = "cancelled"
_MOST_TRADED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What was written before the judging.

    Attributes
    ----------
    records : what is judged.
    references, answers : the writing itself, None where there was none of it.
    budget : the one budget of writing and judging, which goes on with what is left.
    spent : unit -> what writing took, of the units that are limited.
    interrupted : whether Ctrl-C ended it; then nothing is judged.
    """

    records: Answers
    references: Answers | None
    answers: Answers | None
    budget: Budget
    spent: Mapping[str, float]
    interrupted: bool

    @property
    def notes(self) -> list[str]:
        """What must be read beside what was written."""
        parts = [part for part in (self.references, self.answers) if part is not None]
        return list(dict.fromkeys(note for part in parts for note in part.notes))

    def save(self, results: Path) -> None:
        """Keep the calls of the writing in the folder of the results, whose records hold the answers themselves."""
        folder = results / WRITING
        folder.mkdir(exist_ok=True)
        for name, part in (("references", self.references), ("answers", self.answers)):
            if part is not None:
                part.calls.to_parquet(folder / f"{name}.parquet", index=False)


def write_answers(
    experiment: Experiment, *, store: Path | str | None = None, retry_failed: bool = False, progress: bool = True
) -> Written | None:
    """Write the references and answers that the file asks for; None where it asks for none.

    `store` and `retry_failed` go before what the file says, as in `evaluate_experiment`. What is written stays in the
    store, so the same call again asks only for what is not there. Raises `InputError` as `generate`.
    """
    from jurimetrics.engine.budget import Budget
    from jurimetrics.records import iter_records
    from jurimetrics.variants.generate import generate
    from jurimetrics.variants.references import write_references

    study = experiment.study
    if not study.writes:
        return None
    names = {"concurrency", "retries", "retry_failed"}
    options = {name: value for name, value in experiment.run.options().items() if name in names}
    limits = Budget.of(experiment.run.budget())
    options |= {"budget": limits, "progress": progress, "store": store_of(experiment, store)}
    if retry_failed:
        options["retry_failed"] = True
    records: Any = list(iter_records(experiment.records, columns=experiment.columns))
    references = answers = None
    if study.references is not None:
        records = references = write_references(records, **study.references, **options)
    if study.variants and not _interrupted(references or ()):
        records = answers = generate(records, study.variants, **options)
    every = {"usd": limits.spent_usd, "tokens": limits.spent_tokens, "calls": limits.spent_calls}
    return Written(
        records=records,
        references=references,
        answers=answers,
        budget=limits,
        spent={unit: every[unit] for unit in experiment.run.budget() or {}},
        interrupted=_interrupted(references or ()) or _interrupted(answers or ()),
    )


def store_of(experiment: Experiment, store: Path | str | None) -> Path | str | None:
    """The store that was given from the working folder, else that of the file."""
    return experiment.store if store is None else named_store(str(store), Path.cwd())


def _interrupted(records: Iterable[Record]) -> bool:
    from jurimetrics.variants.references import ERROR

    errors = (record.answer_error or (record.reference is None and record.metadata.get(ERROR)) for record in records)
    return any(str(error).startswith(_STOPPED) for error in errors if error)


# --- checks ---


def check_study(experiment: Experiment, *, keys: bool = True) -> None:
    """Raise `InputError` for what would only fail later, when others are paid: a place in a prompt that no record fills, a
    baseline that is no variant of the records, a price that a budget needs; with `keys` a key that is not there."""
    study = experiment.study
    if study.variants:
        _check_prompts(experiment)
    elif study.compare is not None:
        _check_variants(experiment, study.compare.get("baseline"))
    if not study.writes:
        return
    for place, writer in study.writers() if keys else ():
        refusing(experiment.file, place, writer.check)
    _check_judging(experiment)


def _check_prompts(experiment: Experiment) -> None:
    from jurimetrics.records import iter_records

    seen: dict[str, str] = {}
    held = []
    for record in iter_records(experiment.records, columns=experiment.columns):
        if record.id in seen:
            both = f'variants "{seen[record.id]}" and "{record.variant}"'
            raise fault(
                experiment.file,
                "data.records",
                f'"{record.id}" comes twice ({both}); [[prompts]] need each question once',
            )
        seen[record.id] = record.variant
        # A reference that will be written is as good as one that is there.
        will_have = record.reference is None and experiment.study.references is not None
        held.append(replace(record, reference="-") if will_have else record)
    for place, prompt in experiment.study.prompts:
        refusing(experiment.file, place, partial(prompt.check, held))


def _check_variants(experiment: Experiment, baseline: str | None) -> None:
    """What `compare` would refuse of the records when all is paid for."""
    from jurimetrics.records import iter_records

    groups: dict[str, str] = {}
    variants: dict[str, None] = {}
    for record in iter_records(experiment.records, columns=experiment.columns):
        variants.setdefault(record.variant)
        first = groups.setdefault(record.id, record.group)
        if first != record.group:
            words = (
                f'"{record.id}" has two groups, "{first}" and "{record.group}"; [compare] needs one for all its answers'
            )
            raise fault(experiment.file, "data.records", words)
    names = [f'"{name}"' for name in variants]
    if len(names) < 2:
        words = f"two variants are needed, {experiment.records.name} has one: {', '.join(names)}"
        raise fault(experiment.file, "compare", words)
    if baseline is not None and baseline not in variants:
        raise fault(experiment.file, "compare.baseline", no_variant(baseline, list(variants)))


def _check_judging(experiment: Experiment) -> None:
    from jurimetrics.engine.budget import Budget
    from jurimetrics.engine.setup import set_up

    repeats = experiment.run.options().get("repeats", 1)
    asked = set_up(experiment.metrics, experiment.asked, repeats, experiment.embedder, sends=False)
    models = [writer.writer for _, writer in experiment.study.writers()]
    everybody: list[Any] = [*models, *asked.judges(), *([asked.embedder] if asked.embeds else [])]
    try:
        Budget.of(experiment.run.budget()).check_prices(everybody)
    except InputError as error:
        raise fault(experiment.file, "run.budget_usd", str(error).removeprefix("budget: ")) from None


# --- after the judging ---


def compare_experiment(experiment: Experiment, results: Results) -> Comparison | None:
    """Compare the variants as the file says; None where it asks for no comparison.

    Where the file says how labelled records were chosen, their labels correct the differences. Nothing is asked, so it can
    be done again with results that were loaded. Raises `InputError` as `compare`.
    """
    from jurimetrics.variants.compare import compare

    options = experiment.study.compare
    if options is None:
        return None
    corrects = experiment.selection in ("random", "probabilities")
    return compare(results, labels=fitting_labels(experiment, results) if corrects else None, **options)


def report_experiment(experiment: Experiment, results: Results, compared: Comparison | None) -> Path | None:
    """Write the file of [report] and give its path; None without that table. Raises `InputError` as `report`."""
    from jurimetrics.report.page import report

    path = experiment.study.report
    if path is None:
        return None
    judge = (experiment.study.compare or {}).get("judge")
    return report(results, path, comparison=compared, judge=judge, labels=fitting_labels(experiment, results))


def log_study(experiment: Experiment, results: Results, compared: Comparison, runs: list[str]) -> str:
    """Log the comparison as the run of the study, linked with the runs of its variants, and give its id."""
    from jurimetrics.tracking.study import log_comparison
    from jurimetrics.variants.leaderboard import leaderboard

    return log_comparison(
        compared,
        results,
        experiment=experiment.mlflow.experiment or experiment.name,
        runs=runs,
        leaderboard=leaderboard(compared) if compared.baseline is None else None,
        tradeoff=_tradeoffs(results, compared),
    )


def _tradeoffs(results: Results, compared: Comparison) -> Any:
    """Quality against what the answers took, as far as that is known, for the first few primary metrics."""
    import pandas as pd

    from jurimetrics.variants.tradeoff import AGAINST, tradeoff

    lines = compared.frame[compared.frame["family"] == "primary"]
    first = lines.drop_duplicates("metric").head(_MOST_TRADED)
    pairs = zip(first["metric"].astype(str), first["judge"].astype(str), strict=True)
    frames = [tradeoff(results, metric, against, judge=judge) for metric, judge in pairs for against in AGAINST]
    known = [frame for frame in frames if frame["front"].notna().any()]
    return pd.concat(known, ignore_index=True) if known else None
