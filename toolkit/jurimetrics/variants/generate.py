"""Every variant's answer to every record, written by models and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jurimetrics.answers import Answers
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.functions import Function
from jurimetrics.engine.options import StoreChoice, check_whole, store_path
from jurimetrics.engine.plan_writing import plan_writing
from jurimetrics.engine.planned import Plan
from jurimetrics.engine.threads import in_own_thread
from jurimetrics.engine.writing import Order, Outcome, Writing
from jurimetrics.errors import InputError
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.judge import JudgeError
from jurimetrics.records import Record, iter_records
from jurimetrics.results.reading import calls_frame
from jurimetrics.tasks.task import Message
from jurimetrics.tasks.write import WriteAnswer
from jurimetrics.variants.variant import Variant, Variants, check_variants

_NOTHING: dict[str, Any] = dict.fromkeys(
    ("answer_latency_s", "answer_prompt_tokens", "answer_completion_tokens", "answer_cost_usd")
)


def generate(
    records: Any,
    variants: Variants,
    *,
    store: StoreChoice = "auto",
    concurrency: int = 64,
    retries: int = 4,
    retry_failed: bool = False,
    budget: float | Mapping[str, float] | None = None,
    progress: bool = True,
) -> Answers:
    """Write every variant's answer to every record.

    Answers of models are kept in the store like those of judges: running the same call again asks only for what is not
    there yet, and two variants that send the same prompt to the same model share one request. A key goes by what is
    sent: names, prices and limits are no part of it. The answers of functions are not kept, as nothing tells whether a
    function is still the same: they are called anew each time.

    Parameters
    ----------
    records : as `evaluate` takes them, each id once; what they hold of an answer is left out. An iterator is read to its
        end first.
    variants : one or several, with different names; a plain function is the variant of its name.
    store, concurrency, retries, retry_failed, budget, progress : as in `evaluate`; the calls of functions count towards
        a budget as far as they say what they cost.

    Returns
    -------
    Answers : record by record, the variants of each side by side in the order given. Question, contexts, reference,
        group and metadata are the record's, unless a function returned other contexts. `answer_latency_s`,
        `answer_prompt_tokens`, `answer_completion_tokens` and `answer_cost_usd` are those of the one request that brought
        the answer (None where unknown), also where it was made earlier; what failed tries took stands in `calls`. Where
        there is no answer, `answer_error` says why as "kind: message": `rejected` where the record lacks what the prompt
        asks for or the prompt is too long, `truncated` where the answer was cut off, `filtered`, `refused`, `unparsed`
        for a blank one, `budget`, `cancelled` after Ctrl-C, `crash` for an exception in a function, and the kinds of
        broken endpoints. Nothing of this ends the run, and `evaluate` makes no scores of it.

    Raises
    ------
    InputError : something given cannot be used (two variants of one name, a place in a prompt that no record can fill, a
        missing key), or an endpoint cannot be reached at all; said before money is spent.

    Examples
    --------
    >>> records = [{"id": "1", "question": "Who built the mill?"}, {"id": "2", "question": "When?"}]
    >>> answers = generate(records, Variant("echo", None, lambda record: record.question.upper()), store=None)
    >>> [(record.id, record.variant, record.answer) for record in answers]
    [('1', 'echo', 'WHO BUILT THE MILL?'), ('2', 'echo', 'WHEN?')]
    """
    held, chosen = prepared(records, variants)
    work = writing(
        orders(held, chosen),
        [one.writer for one in chosen],
        len(held) * len(chosen),
        store=store,
        concurrency=concurrency,
        retries=retries,
        retry_failed=retry_failed,
        budget=budget,
        progress=progress,
    )
    # Where nothing may be spent nothing is sent, and a key may be missing: what is stored is wanted alone.
    for one in chosen if work.budget.spent_out() is None else ():
        one.check()
    outcomes = iter(in_own_thread(work, "generate"))
    made = [_answered(record, one, next(outcomes)) for record in held for one in chosen]
    by = {one.name: one.written_by() for one in chosen}
    return Answers(made, written_by=by, calls=calls_frame(work.calls), notes=work.notes)


def plan_answers(
    records: Any,
    variants: Variants,
    *,
    store: StoreChoice = "auto",
    concurrency: int = 64,
    retry_failed: bool = False,
) -> Plan:
    """Say what `generate` with the same arguments would ask and cost; nothing is sent and nothing is written.

    Calls and prompts are those that `generate` sends, with what is stored and shared left out. How long an answer gets is
    taken from the answers of that model in the store, where there are at least five, else from `max_tokens`, else from an
    assumed range.

    Returns
    -------
    Plan : its `frame` has a line for each variant with a model, in the column `judge`; `metric` is "answer". The other
        columns, the ranges and `totals` are those of `plan`. Functions stand in the `notes` alone.

    Raises
    ------
    InputError : as `generate`, but keys may be missing.

    Examples
    --------
    >>> records = [{"id": str(at), "question": "Who built the mill?"} for at in range(3)]
    >>> variants = Variant.grid({"short": "{question}", "long": "{id} {question}"}, ["gpt-4.1-mini"])
    >>> plan_answers(records, variants, store=None).frame[["judge", "calls"]].values.tolist()
    [['short/gpt-4.1-mini', 1.0], ['long/gpt-4.1-mini', 3.0]]
    """
    check_whole("concurrency", concurrency, 1)
    held, chosen = prepared(records, variants)
    return plan_writing(
        orders(held, chosen),
        {one.name: one.writer for one in chosen if isinstance(one.writer, ChatJudge)},
        len(held),
        store=store_path(store),
        concurrency=concurrency,
        retry_failed=retry_failed,
    )


def prepared(records: Any, variants: Variants) -> tuple[list[Record], list[Variant]]:
    """Records and variants, checked. Raises `InputError` for an id that comes twice and a place that cannot be filled."""
    chosen = check_variants(variants)
    held = list(iter_records(records))
    seen: dict[str, str] = {}
    for record in held:
        if record.id in seen:
            both = f"variants {seen[record.id]!r} and {record.variant!r}"
            raise InputError(f"records: {record.id!r} comes twice ({both}); each question is needed once")
        seen[record.id] = record.variant
    for one in chosen:
        if one.prompt is not None:
            one.prompt.check(held)
    return held, chosen


def orders(records: Sequence[Record], variants: Sequence[Variant]) -> Iterator[Order]:
    """What is to be written, record by record."""
    for record in records:
        for variant in variants:
            prompt = variant.prompt
            lacking = () if prompt is None else prompt.lacking(record)
            yield order_of(record, variant, lacking, None if prompt is None else prompt.messages)


def order_of(
    record: Record, variant: Variant, lacking: Sequence[str], messages: Callable[[Record], list[Message]] | None
) -> Order:
    """The order of one answer; without `messages` it is a function that is asked."""
    if lacking:
        lacks = f"the record has no {' and no '.join(lacking)}"
        return Order(record, variant.name, variant.writer, lacks=lacks)
    task = None if messages is None else WriteAnswer(messages(record))
    return Order(record, variant.name, variant.writer, task)


def writing(
    wanted: Iterator[Order],
    writers: Sequence[ChatJudge | Function],
    total: int,
    *,
    store: StoreChoice,
    concurrency: int,
    retries: int,
    retry_failed: bool,
    budget: float | Mapping[str, float] | None,
    progress: bool,
) -> Writing:
    """The work of writing, its options checked. Raises `InputError`."""
    check_whole("concurrency", concurrency, 1)
    check_whole("retries", retries, 0)
    models = tuple(writer for writer in writers if isinstance(writer, ChatJudge))
    limits = Budget.of(budget)
    limits.check_prices(models)
    return Writing(
        orders=wanted,
        total=total,
        models=models,
        store=store_path(store),
        budget=limits,
        concurrency=concurrency,
        retries=retries,
        retry_failed=retry_failed,
        progress=progress,
    )


def _answered(record: Record, variant: Variant, outcome: Outcome) -> Record:
    model = variant.writer.model if isinstance(variant.writer, ChatJudge) else None
    if isinstance(outcome, JudgeError):
        return replace(
            record, variant=variant.name, answer=None, answer_model=model, answer_error=str(outcome), **_NOTHING
        )
    return replace(
        record,
        variant=variant.name,
        answer=outcome.answer,
        contexts=record.contexts if outcome.contexts is None else outcome.contexts,
        metadata={**record.metadata, **outcome.metadata},
        answer_model=model or outcome.model,
        answer_error=None,
        answer_latency_s=outcome.latency_s,
        answer_prompt_tokens=outcome.prompt_tokens,
        answer_completion_tokens=outcome.completion_tokens,
        answer_cost_usd=outcome.cost_usd,
    )
