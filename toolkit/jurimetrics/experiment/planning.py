"""What an experiment would ask and cost, stage by stage: references, answers, judging. Nothing is sent."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurimetrics.experiment.load import Experiment
from jurimetrics.experiment.studying import check_study, store_of

if TYPE_CHECKING:
    from jurimetrics.engine.planned import Plan
    from jurimetrics.records import Record

REFERENCES, ANSWERS, JUDGING = "references", "answers", "judging"
"""The stages, in the order in which they are run."""
_LONGEST_STAND_IN = 600
_NOT_THERE = "budget"


def plan_experiment(
    experiment: Experiment,
    *,
    store: Path | str | None = None,
    retry_failed: bool = False,
    sample: int | None = None,
) -> dict[str, Plan]:
    """A plan for each stage of an experiment: "references" and "answers" where the file has any written, and "judging".

    Of what is written the calls are exact. The judging of answers that are in the store is planned on these, that of all
    others on stand-ins (the reference, else the start of the first document, else the question), which a note says.
    `store` and `retry_failed` go before what the file says; `sample` is how many records the judging is planned on.

    Raises `InputError` as `run_experiment`, but keys may be missing.
    """
    from jurimetrics.engine.plan import SAMPLE, plan
    from jurimetrics.records import iter_records

    options = experiment.run.options()
    common = {
        "store": store_of(experiment, store),
        "concurrency": options.get("concurrency", 64),
        "retry_failed": retry_failed or options.get("retry_failed", False),
    }
    check_study(experiment, keys=False)
    records: Any = iter_records(experiment.records, columns=experiment.columns)
    stages: dict[str, Plan] = {}
    note = ""
    if experiment.study.writes:
        records, note = _to_be_judged(experiment, list(records), common, stages)
    judging = plan(
        records,
        experiment.metrics,
        experiment.asked,
        embedder=experiment.embedder,
        repeats=options.get("repeats", 1),
        reason_language=options.get("reason_language"),
        sample=sample or SAMPLE,
        **common,
    )
    stages[JUDGING] = replace(judging, notes=(note, *judging.notes)) if note else judging
    return stages


def _to_be_judged(
    experiment: Experiment, records: list[Record], common: dict[str, Any], stages: dict[str, Plan]
) -> tuple[list[Record], str]:
    """The records with what the store holds of references and answers, else with stand-ins; plans go into `stages`."""
    from jurimetrics.display import count
    from jurimetrics.engine.budget import Budget
    from jurimetrics.engine.options import store_path
    from jurimetrics.variants.generate import generate, plan_answers
    from jurimetrics.variants.references import ERROR, plan_references, write_references

    study = experiment.study
    path = store_path(common["store"])
    # With nothing to spend what is stored comes back and all else fails; a store that is not there is not made for that.
    stored: dict[str, Any] = {
        **{name: value for name, value in common.items() if name != "store"},
        "store": path if path is not None and path.exists() else None,
        "budget": Budget(calls=0),
        "progress": False,
    }
    lacking, said = 0, []
    if study.references is not None:
        stages[REFERENCES] = plan_references(records, **study.references, **common)
        found = write_references(records, **study.references, **stored)
        records = [_with_reference(one) if _open(one.metadata.get(ERROR)) else one for one in found]
        lacking = sum(new is not old for new, old in zip(records, found, strict=True))
        said += [f"{count(lacking, 'reference')}"] if lacking else []
    if study.variants:
        stages[ANSWERS] = plan_answers(records, study.variants, **common)
        answers = generate(records, study.variants, **stored)
        records = [_with_answer(one) if _open(one.answer_error) else one for one in answers]
        lacking = sum(new is not old for new, old in zip(records, answers, strict=True))
        said += [f"{count(lacking, 'answer')}"] if lacking else []
    if not said:
        return records, ""
    return records, (
        f"Not written yet: {' and '.join(said)}. In their place stands the reference, else the start of the first document, "
        "else the question; longer answers take more tokens, and more claims may take more calls."
    )


def _open(error: Any) -> bool:
    """Whether nothing is known of a text yet: it did not fail before, it was not asked for."""
    return str(error or "").startswith(f"{_NOT_THERE}:")


def _with_reference(record: Record) -> Record:
    return replace(record, reference=_stand_in(record, "reference"))


def _with_answer(record: Record) -> Record:
    return replace(record, answer=_stand_in(record, record.variant), answer_error=None)


def _stand_in(record: Record, for_whom: str) -> str:
    """A text of likely length that differs between records and variants, as answers do: equal ones are judged once."""
    digest = hashlib.sha256(f"{record.id}\0{for_whom}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    word = digest.translate(str.maketrans("0123456789", "ghijklmnop"))
    text = record.reference or (record.contexts[0] if record.contexts else record.question or "")
    return f"{word} {text[:_LONGEST_STAND_IN]}"
