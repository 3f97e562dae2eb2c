"""Prompts that a server finds too long are asked in parts, whatever was declared; what cannot be split is not scored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.judges.lengths import too_long
from jurimetrics.judges.session import Session
from local_model import MODEL
from scripted_replies import valid
from scripted_server import Answer, Call, Handler, ScriptedServer, error, reply

SENTENCE = "The old hall of the town stands beside the river and was built of red brick in the year {}. "
DOCUMENTS = tuple("".join(SENTENCE.format(1700 + 40 * doc + at) for at in range(20)) for doc in range(4))
RECORD = {"id": "1", "question": "How old is it?", "answer": "It is old. It is red.", "contexts": DOCUMENTS}


def openai(call: Call, most: int) -> Answer:
    said = f"This model's maximum context length is {most} tokens. However, your messages resulted in "
    return error(400, "context_length_exceeded", f"{said}{len(call.prompt)} tokens.", "messages")


def llama_cpp(call: Call, most: int) -> Answer:
    counts = {"n_prompt_tokens": len(call.prompt), "n_ctx": most}
    fault = {"code": 400, "message": "the request exceeds the available context size", **counts}
    return Answer("send", {"error": {**fault, "type": "exceed_context_size_error"}}, status=400)


def wordless(call: Call, most: int) -> Answer:
    return error(413, message="Request Entity Too Large")


def bounded(most: int, refuse: Callable[[Call, int], Answer] = openai) -> Handler:
    return lambda call: refuse(call, most) if len(call.prompt) > most else valid(call)


def judge(server: ScriptedServer, **declared: Any) -> jm.ChatJudge:
    return jm.ChatJudge("scripted", name="a", base_url=server.url, **declared)


def run(server: ScriptedServer, metrics: Any = "faithfulness", records: Any = (RECORD,), **options: Any) -> Any:
    return jm.evaluate(
        list(records), metrics, options.pop("judge", None) or judge(server), **{"store": None, **options}
    )


@pytest.mark.parametrize("refuse", [openai, llama_cpp, wordless])
@pytest.mark.parametrize("declared", [None, 1_000_000])
def test_evidence_is_split_after_a_refusal(refuse: Callable[[Call, int], Answer], declared: int | None) -> None:
    with ScriptedServer(bounded(6_000, refuse)) as server:
        results = run(server, judge=judge(server, max_input_tokens=declared))
        [row] = results.scores.to_dict("records")
        assert row["status"] == "ok" and "split" in row["flags"]
        refused = [call for call in server.requests if len(call.prompt) > 6_000]
        assert len(refused) == 1 and server.repeats == 0
        shown = "".join(call.prompt for call in server.requests if len(call.prompt) <= 6_000)
        assert all(f"in the year {1700 + 40 * doc + at}." in shown for doc in range(4) for at in range(20))
        assert (results.calls["status"] == "rejected").sum() == len(refused)


def test_without_numbers_it_is_found_step_by_step() -> None:
    with ScriptedServer(bounded(3_600, wordless)) as server:
        [row] = run(server).scores.to_dict("records")
        lengths = [len(call.prompt) for call in server.requests if len(call.prompt) > 3_600]
        assert row["status"] == "ok" and "split" in row["flags"] and 2 <= len(lengths) <= 8 and server.repeats == 0


def test_what_cannot_be_split_is_not_applicable() -> None:
    with ScriptedServer(bounded(6_000)) as server:
        results = run(server, ["groundedness", "coherence"])
        rows = {row["metric"]: row for row in results.scores.to_dict("records")}
        assert rows["groundedness"]["status"] == "not_applicable" and "does not fit" in rows["groundedness"]["reason"]
        assert rows["coherence"]["status"] == "ok" and server.count == 2


def test_only_the_first_record_pays_for_finding_out() -> None:
    records = [{**RECORD, "id": str(at), "answer": f"It is {at} years old."} for at in range(12)]
    with ScriptedServer(bounded(6_000)) as server:
        results = run(server, records=records, concurrency=4)
        assert (results.scores["status"] == "ok").all()
        # What was in flight beside the first one may be refused too.
        assert sum(len(call.prompt) > 6_000 for call in server.requests) <= 4


def test_what_was_learned_is_kept_and_a_second_run_asks_nobody(tmp_path: Path) -> None:
    short = {**RECORD, "id": "short", "contexts": DOCUMENTS[:1]}
    store = tmp_path / "store.db"
    with ScriptedServer(bounded(6_000)) as server:
        first = run(server, ["faithfulness", "groundedness"], [short, RECORD], store=store)
        asked = server.count
        again = run(server, ["faithfulness", "groundedness"], [short, RECORD], store=store)
        assert server.count == asked and list(again.scores["score"][:2]) == list(first.scores["score"][:2])
        assert list(again.scores["status"]) == list(first.scores["status"])
        run(server, records=[{**RECORD, "answer": "It is new."}], store=store)
        assert sum(len(call.prompt) > 6_000 for call in server.requests) == 2, (
            "one check and one rubric, of the first run"
        )


def test_answers_from_before_a_limit_was_learned_stay(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with ScriptedServer(valid) as server:
        whole = run(server, store=store)
        server.handler = bounded(6_000)
        run(server, records=[{**RECORD, "id": "2", "answer": "It is new."}], store=store)
        asked = server.count
        again = run(server, store=store)
        assert server.count == asked and list(again.scores["score"]) == list(whole.scores["score"])


def test_a_larger_context_is_found_again_on_demand(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with ScriptedServer(bounded(6_000)) as server:
        assert list(run(server, "groundedness", store=store).scores["status"]) == ["not_applicable"]
        server.handler = valid
        assert list(run(server, "groundedness", store=store).scores["status"]) == ["not_applicable"]
        assert list(run(server, "groundedness", store=store, retry_failed=True).scores["status"]) == ["ok"]


def test_a_reply_that_is_too_long_is_no_matter_of_the_prompt(tmp_path: Path) -> None:
    said = "maximum context length is 9000 tokens. However, you requested 9392 tokens "
    said += "(1200 in the messages, 8192 in the completion)"

    def handler(call: Call) -> Answer:
        if "max_tokens" in call.body:
            return error(400, "context_length_exceeded", said)
        return reply('{"findings": "it', finish_reason="length", usage=(1200, 4096))

    with ScriptedServer(handler) as server:
        [row] = run(server, "groundedness", store=tmp_path / "store.db").scores.to_dict("records")
        assert (row["status"], row["error"].partition(":")[0]) == ("failed", "truncated") and server.count == 2
        server.handler = valid
        assert list(run(server, "groundedness", store=tmp_path / "store.db").scores["status"]) == ["ok"]


def test_a_server_that_refuses_everything_is_asked_a_bounded_number_of_times() -> None:
    with ScriptedServer(bounded(10, wordless)) as server:
        [row] = run(server).scores.to_dict("records")
        assert row["status"] == "not_applicable" and server.count <= 8


@pytest.mark.parametrize(
    ("message", "counted", "allowed"),
    [
        ("prompt is too long: 210,000 tokens > 200,000 maximum", 210_000, 200_000),
        (
            "the request exceeds the available context size. request (5210 tokens), context size (4096 tokens)",
            5210,
            4096,
        ),
        (
            "This model's maximum context length is 4097 tokens, however you requested 5000 tokens "
            "(4000 in your prompt; 1000 for the completion)",
            4000,
            3097,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5210 tokens (4210 in the messages, "
            "1000 in the completion). Please reduce the length of the messages or completion.",
            4210,
            3096,
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            1_200_000,
            1_048_576,
        ),
    ],
)
def test_numbers_are_read_from_the_usual_messages(message: str, counted: int | None, allowed: int | None) -> None:
    told = too_long(message)
    assert told is not None and (told.counted, told.allowed) == (counted, allowed)


def test_limits_of_another_shape_are_learned_anew() -> None:
    facts = {"format": "plain", "renamed": [], "dropped": [], "settled": True}
    assert Session({"e:m": facts}).learned["e:m"]["narrowed"] == []
    assert Session({"e:m": {**facts, "narrowed": ["x"]}}).learned == {}
    assert Session({"e:m": {**facts, "narrowed": [9, 5]}}, widened=True).learned["e:m"]["narrowed"] == []


def test_a_real_server_with_a_small_context(local_model_url: str) -> None:
    model = jm.ChatJudge(MODEL, base_url=local_model_url, max_tokens=60, timeout=60)
    contexts = ["".join(SENTENCE.format(1000 + at) for at in range(160 * doc, 160 * doc + 160)) for doc in range(2)]
    results = run(None, "groundedness", [{**RECORD, "contexts": contexts}], judge=model)  # type: ignore[arg-type]
    [row] = results.scores.to_dict("records")
    assert row["status"] == "not_applicable" and "does not fit" in row["reason"]
    assert list(results.calls["status"]) == ["rejected"]
