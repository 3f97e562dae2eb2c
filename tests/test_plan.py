"""The plan: what an evaluation would ask, against what the same evaluation then asked of a server."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jurimetrics as jm
import pytest
from jurimetrics.engine.standins import prompt_tokens
from jurimetrics.metrics import batched, consensus, correctness, fluency, preference, readability
from jurimetrics.metrics.metric import Score, metric
from jurimetrics.tasks.rate import RateRubric
from jurimetrics.tasks.task import Split
from scripted_replies import valid
from scripted_server import Call, ScriptedServer, error, from_schema, reply

NOWHERE = "http://127.0.0.1:9/v1"
QUICKSTART = Path(__file__).parents[1] / "experiments" / "quickstart" / "records.jsonl"
DECIDED = ["hallucination", "context_precision", "coherence", "fluency", "accuracy_clarity", "readability", "f1"]
"""Metrics whose calls do not depend on what a judge finds."""


def records(count: int = 3, sentences: int = 2, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": str(at),
            "question": f"What of Madrid, case {at}?",
            "answer": " ".join(f"Madrid has {at + 10 * number} bridges over the river." for number in range(sentences)),
            "contexts": [f"Madrid is in Spain. It has {at} rivers.", "Bread is baked."],
            "reference": f"In Spain, with {at} rivers.",
        }
        | more
        for at in range(count)
    ]


def judge(url: str = NOWHERE, model: str = "m", **options: Any) -> jm.ChatJudge:
    return jm.ChatJudge(model, base_url=url, **{"price": (10.0, 100.0), **options})


def by_metric(planned: Any, column: str = "calls") -> dict[str, float]:
    return dict(planned.frame.groupby("metric")[column].sum())


# ---------------------------------------------------------------------------------------------- how good it is


def compared(source: Any, metrics: Any, judges: Any, **options: Any) -> tuple[Any, jm.Results]:
    planned = jm.plan(source, metrics, judges, **options)
    return planned, jm.evaluate(source, metrics, judges, **options)


def test_calls_are_exact_where_stand_ins_decide_and_tokens_and_cost_lie_in_the_range() -> None:
    with ScriptedServer(valid) as server:
        judges = [judge(server.url), judge(server.url, "n", price=(1.0, 2.0))]
        planned, results = compared(QUICKSTART, DECIDED, judges, store=None)
    assert planned.totals.calls == results.totals().calls == server.count
    for name in ("m", "n"):
        of_judge = results.calls[results.calls["judge"] == name]
        assert planned.frame.loc[planned.frame["judge"] == name, "calls"].sum() == pytest.approx(len(of_judge))
    # The server counts a token for four characters.
    totals = results.totals()
    assert totals.prompt_tokens is not None
    assert planned.totals.prompt_tokens[0] <= totals.prompt_tokens <= planned.totals.prompt_tokens[1]
    for name in DECIDED[:-1]:
        shares = results.scores.loc[results.scores["metric"] == name, "judge_prompt_tokens"].sum()
        lines = planned.frame[planned.frame["metric"] == name]
        assert lines["prompt_tokens_low"].sum() <= shares <= lines["prompt_tokens_high"].sum(), name
    assert planned.totals.completion_tokens[0] <= totals.completion_tokens <= planned.totals.completion_tokens[1]
    assert totals.cost_usd is not None and planned.totals.cost_usd is not None
    assert planned.totals.cost_usd[0] <= totals.cost_usd <= planned.totals.cost_usd[1]


def test_calls_that_depend_on_claims_are_near() -> None:
    with ScriptedServer(valid) as server:
        metrics = ["faithfulness", "noise_sensitivity", "alignment"]
        planned, results = compared(QUICKSTART, metrics, [judge(server.url), judge(server.url, "n")], store=None)
    calls, tokens = results.totals().calls, results.totals().prompt_tokens
    # The server finds a claim in every sentence, the stand-ins none in greetings and questions.
    assert planned.totals.calls == pytest.approx(calls, rel=0.1)
    assert tokens is not None and planned.totals.prompt_tokens[0] <= tokens <= planned.totals.prompt_tokens[1]


@pytest.mark.parametrize(
    ("metrics", "options", "sentences"),
    [
        (["coherence"], {"repeats": 3}, 2),
        (["faithfulness", "noise_share", "hallucination"], {}, 23),
        (batched([correctness, readability, fluency]), {}, 2),
    ],
    ids=["repeats", "shared and split", "batched"],
)
def test_what_is_shared_split_and_repeated_is_counted_as_it_is_asked(
    metrics: Any, options: dict[str, Any], sentences: int
) -> None:
    def answer(call: Call) -> Any:
        # Distinct claims, as the stand-ins have them, and a rating under each criterion.
        if call.schema_name == "criteria":
            return reply(json.dumps({"ratings": [{"criterion": at, "findings": "f", "score": 3} for at in (1, 2, 3)]}))
        if call.schema_name != "claims":
            return valid(call)
        data = json.loads(valid(call).payload["choices"][0]["message"]["content"])  # type: ignore[index]
        for sentence in data["sentences"]:
            sentence["claims"] = [f"{call.key} says {sentence['at']}."]
        return reply(json.dumps(data))

    with ScriptedServer(answer) as server:
        planned, _ = compared(records(4, sentences=sentences), metrics, judge(server.url), store=None, **options)
        assert planned.totals.calls == server.count > 0


def test_long_evidence_is_split_by_what_a_judge_can_read() -> None:
    long = records(1, contexts=["Madrid is in Spain. " * 600, "It has rivers. " * 600])
    with ScriptedServer(valid) as server:
        small = judge(server.url, max_input_tokens=2500)
        planned, _ = compared(long, ["hallucination"], small, store=None)
        assert planned.totals.calls == server.count > 2
    assert jm.plan(long, ["hallucination"], judge(), store=None).totals.calls == 1


def test_extractor_is_paid_once_and_by_whoever_extracts() -> None:
    judges = [judge(model="b"), judge(model="a")]
    shared = jm.plan(records(5), ["faithfulness"], jm.Panel(judges), store=None).frame.set_index("judge")["calls"]
    assert shared.to_dict() == {"a": 10, "b": 5}
    each = jm.Panel(judges, extractor="each", vote_on="scores")
    assert jm.plan(records(5), ["faithfulness"], each, store=None).totals.calls == 20
    outside = jm.Panel([judges[0], jm.BaselineJudge()], extractor=judges[1])
    assert jm.plan(records(5), ["faithfulness"], outside, store=None).frame.set_index("judge")["calls"].to_dict() == {
        "a": 5,
        "b": 5,
    }


def test_metrics_that_compare_variants_see_them_wherever_they_stand() -> None:
    both = [
        record | {"variant": name, "answer": f"{name} has {record['id']}."} for name in "xy" for record in records(3)
    ]
    planned = jm.plan(both, [consensus, preference("x", "y")], judge(), store=None, sample=3)
    with ScriptedServer(from_schema) as server:
        jm.evaluate(both, [preference("x", "y")], judge(server.url), store=None)
        assert by_metric(planned)["preference(x,y)"] == server.count == 6
    assert planned.notes[0].startswith("Counted"), "all variants of the first ids are there, so nothing is scaled"
    assert jm.plan(records(3), [preference("x", "y")], judge(), store=None).totals.calls == 0


def test_embedder_has_its_own_line_and_price() -> None:
    vectors = jm.EndpointEmbedder("v", base_url=NOWHERE, price=1.0)
    planned = jm.plan(records(4), ["similarity_score", "f1"], judge(), store=None, embedder=vectors)
    line = planned.frame[planned.frame["judge"] == "v"].iloc[0]
    assert line["metric"] == "similarity_score" and line["calls"] == 4 and line["completion_tokens_high"] == 0
    assert line["cost_usd_high"] == pytest.approx(line["prompt_tokens_high"] / 1e6, rel=0.1)


# ---------------------------------------------------------------------------------------------- the store


def test_plan_counts_what_the_store_has_and_what_it_saved(tmp_path: Path) -> None:
    with ScriptedServer(valid) as server:
        first = jm.evaluate(records(4), DECIDED, judge(server.url), store=tmp_path / "s.db")
        asked = server.count
        planned = jm.plan(records(6), DECIDED, judge(server.url), store=tmp_path / "s.db")
        assert server.count == asked
        assert planned.totals.stored == asked == first.totals().calls
        assert planned.totals.saved_usd == pytest.approx(first.totals().cost_usd)
        jm.evaluate(records(6), DECIDED, judge(server.url), store=tmp_path / "s.db")
        assert server.count - asked == planned.totals.calls
        done = jm.plan(records(6), DECIDED, judge(server.url), store=tmp_path / "s.db").totals
    assert (done.calls, done.prompt_tokens, done.cost_usd, done.seconds) == (0, (0, 0), (0, 0), (0, 0))


def test_answers_of_another_repeat_or_reason_language_are_not_in_the_store(tmp_path: Path) -> None:
    with ScriptedServer(valid) as server:
        options: dict[str, Any] = {"store": tmp_path / "s.db"}
        jm.evaluate(records(2), ["fluency"], judge(server.url), **options)
        assert jm.plan(records(2), ["fluency"], judge(server.url), **options, repeats=3).totals.calls == 4
        assert (
            jm.plan(records(2), ["fluency"], judge(server.url), **options, reason_language="German").totals.calls == 2
        )


def test_final_failures_are_not_planned_again_unless_wanted(tmp_path: Path) -> None:
    def answer(call: Call) -> Any:
        return error(400, "content_filter", "no") if "case 1" in call.prompt else valid(call)

    with ScriptedServer(answer) as server:
        options: dict[str, Any] = {"store": tmp_path / "s.db"}
        jm.evaluate(records(3), ["relevance"], judge(server.url), **options)
        planned = jm.plan(records(3), ["relevance"], judge(server.url), **options)
        again = jm.plan(records(3), ["relevance"], judge(server.url), **options, retry_failed=True)
    assert (planned.totals.calls, planned.totals.stored, again.totals.calls) == (0, 2, 1)
    assert any("1 ask failed for good before" in note for note in planned.notes)


def test_latency_and_length_of_replies_are_learned_from_the_store(tmp_path: Path) -> None:
    with ScriptedServer(valid, latency=0.2) as server:
        narrow = judge(server.url, max_concurrency=4)
        before = jm.plan(records(20), ["fluency"], narrow, store=tmp_path / "s.db").totals
        jm.evaluate(records(8), ["fluency"], narrow, store=tmp_path / "s.db")
        after = jm.plan(records(20), ["fluency"], narrow, store=tmp_path / "s.db").totals
    # Twelve calls of 0.2 s and 60 tokens, four at a time.
    assert after.calls == 12 and after.seconds[0] < 0.2 * 12 / 4 < after.seconds[1] < 2
    assert before.seconds[1] > 5
    assert after.completion_tokens == (12 * 48, 12 * 75)


def test_plan_makes_no_store_and_sends_nothing(project: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.05)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        assert jm.plan(records(2), "all", judge(url)).totals.calls > 0
        with pytest.raises(TimeoutError):
            listening.accept()
    assert not (project / ".jurimetrics").exists()


# ---------------------------------------------------------------------------------------------- money and time


def test_k05_unknown_price_is_unknown_and_totals_say_at_least() -> None:
    planned = jm.plan(records(2), ["fluency"], [judge(), judge(model="house", price=None)], store=None)
    frame = planned.frame.set_index("judge")
    assert frame.loc["house", ["cost_usd_low", "cost_usd_high"]].isna().all()
    assert planned.totals.cost_usd is None and planned.totals.unpriced == ("house",)
    assert planned.totals.at_least_usd == tuple(frame.loc["m", ["cost_usd_low", "cost_usd_high"]])
    assert "cost at least $" in str(planned.totals) and "no price is known for house" in str(planned.totals)
    assert "unknown" in str(planned) and ">= $" in str(planned)


def test_time_follows_concurrency_and_limits_of_the_endpoint() -> None:
    def most(**options: Any) -> float:
        wide = options.pop("concurrency", 64)
        return float(
            jm.plan(records(40), ["fluency"], judge(**options), store=None, concurrency=wide).totals.seconds[1]
        )

    assert most(concurrency=4) == pytest.approx(10 * most(concurrency=40))
    assert most(max_concurrency=4) == most(concurrency=4)
    assert most(requests_per_minute=10) == pytest.approx(240)
    assert most(tokens_per_minute=1000) > 600
    # Two endpoints are asked side by side.
    two = [judge(), judge("http://127.0.0.1:10/v1", "n")]
    assert jm.plan(records(40), ["fluency"], two, store=None).totals.seconds[1] == pytest.approx(most())


def test_columns_add_up_to_the_totals() -> None:
    planned = jm.plan(records(7), "all", jm.Panel([judge(), judge(model="n"), jm.BaselineJudge()]), store=None)
    assert planned.frame["calls"].sum() == pytest.approx(planned.totals.calls)
    assert planned.frame["cost_usd_high"].sum() == pytest.approx(planned.totals.cost_usd[1])
    assert set(planned.frame["judge"]) == {"m", "n"}
    assert any(note.startswith("Stand-ins agree") for note in planned.notes)


@pytest.mark.parametrize(
    "text", ["English words of ordinary length, 42 of them.", "Дом стоит у реки.", "東京は日本の首都です。"]
)
def test_tokens_are_bounded_by_bytes_of_any_script(text: str) -> None:
    """Bounds by known counts: o200k and SmolLM2's vocabulary lie between a token for 5 bytes and one for 1.3."""
    span = prompt_tokens(RateRubric("clear", "Is it clear?", text * 200))
    size = len((text * 200).encode())
    assert span.low < size / 5 + 600 and span.high > size / 3.1 and span.low < span.high


# ---------------------------------------------------------------------------------------------- many, odd, shown


def test_many_records_are_planned_on_the_first_and_scaled() -> None:
    whole = jm.plan(records(60), ["faithfulness"], judge(), store=None)
    part = jm.plan(iter(records(60)), ["faithfulness"], judge(), store=None, sample=20)
    assert part.totals.calls == whole.totals.calls == 120
    assert part.totals.prompt_tokens[1] == pytest.approx(whole.totals.prompt_tokens[1], rel=0.02)
    assert part.notes[0] == "Planned on the first 20 of 60 records and scaled up."


@dataclass(frozen=True)
class OwnTask:
    """A kind that only its author knows."""

    text: str
    kind: ClassVar[str] = "own"
    version: ClassVar[str] = "1"
    shared: ClassVar[bool] = False
    schema: ClassVar[dict[str, Any]] = {"type": "object"}

    @property
    def data(self) -> dict[str, Any]:
        return {"text": self.text}

    def messages(self, reason_language: str | None = None) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.text}]

    def split(self, max_tokens: int | None = None) -> Split:
        return Split((self,), lambda answers: answers[0])  # type: ignore[arg-type]


@metric(needs=["answer"], range=(0, 1))
async def own(record: Any, ask: Any) -> Score:
    """Asks its own task, and a second one that nobody can foresee."""
    await ask(OwnTask(record.answer))
    await ask(OwnTask(record.answer + " again"))
    return Score(1.0)


def test_own_kind_of_task_is_counted_as_far_as_it_can_be_foreseen() -> None:
    planned = jm.plan(records(3), [own, "fluency"], judge(), store=None)
    assert by_metric(planned) == {"own": 3, "fluency": 3}
    assert any("tasks of kind own" in note for note in planned.notes)


def test_text_in_a_language_without_rules_is_planned_all_the_same() -> None:
    japanese = {"answer": "東京は日本の首都です。人口は多い。", "contexts": ["東京は日本の首都です。"]}
    planned = jm.plan(
        [japanese, japanese | {"contexts": ["京都は古い都です。"]}],
        ["faithfulness", "hallucination"],
        judge(),
        store=None,
    )
    assert planned.totals.calls == 1 + 2 + 2


def test_lacking_fields_ask_nothing() -> None:
    assert jm.plan(records(2, contexts=None), ["faithfulness"], judge(), store=None).totals.calls == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [({"metrics": ["gone"]}, "gone"), ({"sample": 0}, "sample must be"), ({"concurrency": True}, "concurrency must be"),
     ({"repeats": 0}, "repeats must be"), ({"records": [{"id": "1"}, {"id": "1"}]}, "same id")],
)  # fmt: skip
def test_bad_input_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(jm.InputError, match=message):
        jm.plan(**({"records": records(1), "metrics": ["f1"], "judges": judge(), "store": None} | given))


async def test_works_under_a_running_loop_and_leaves_no_thread() -> None:
    before = threading.active_count()
    assert jm.plan(records(1), ["fluency"], judge(), store=None).totals.calls == 1
    assert threading.active_count() == before


def test_terminal_and_notebook_show_the_same_and_escape_names() -> None:
    named = judge(name="<b>\x1b[31mx</b>")
    planned = jm.plan(records(1), ["fluency", "coherence"], [named, judge()], store=None)
    page, text = planned._repr_html_(), str(planned)
    assert "<b>" not in page and "&lt;b&gt;" in page and "\x1b" not in text and "\x1b" not in page
    assert len(page) < 6000
    for shown in (page, text):
        assert "fluency" in shown and "prompt tokens" in shown and "Counted with stand-ins" in shown
    assert max(map(len, text.split("\n\n")[0].splitlines())) < 160
