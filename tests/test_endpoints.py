"""Whole evaluations against a real HTTP server on loopback that misbehaves on purpose."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from scripted_server import (
    Call,
    ScriptedServer,
    allow,
    body,
    drop,
    error,
    from_schema,
    hang,
    reply,
    served_apart,
    with_faults,
)

GOOD = json.dumps({"findings": "clear", "score": 4})
KINDS = ["coherence"]


def records(count: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "id": str(at),
            "question": "Where is Madrid?",
            "answer": f"Madrid is in Spain. It has {at} rivers and {at} hills.",
            "contexts": [f"Madrid is in Spain. It has {at} rivers.", "Bread is baked."],
            "reference": f"In Spain, with {at} rivers.",
        }
        for at in range(count)
    ]


def judge(server: ScriptedServer, name: str = "scripted", **options: Any) -> jm.ChatJudge:
    return jm.ChatJudge(name, base_url=server.url, price=0, **{"timeout": 5.0, **options})


def run(server: ScriptedServer, count: int = 1, metrics: Any = KINDS, **options: Any) -> jm.Results:
    return jm.evaluate(records(count), metrics, judge(server), store=None, **options)


def only_row(results: jm.Results) -> dict[str, Any]:
    assert len(results.scores) == 1
    found: dict[str, Any] = results.scores.iloc[0].to_dict()
    return found


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.limits.FIRST_WAIT_S", 0.01)


def test_e08_refused_schema_steps_down_and_is_remembered() -> None:
    def handler(call: Call) -> Any:
        if call.format != "plain":
            return error(400, message=f"response_format {call.format} is not supported", param="response_format")
        return reply(GOOD)

    with ScriptedServer(handler) as server:
        results = run(server, 10)
        assert (results.scores["score"] == 4).all()
        assert server.count == 10 + 2, "two requests are spent on learning, in the whole run"
        assert set(results.calls.loc[results.calls["status"] == "ok", "format"]) == {"plain"}


def test_e08_what_was_learned_is_kept_in_the_store(tmp_path: Path) -> None:
    def handler(call: Call) -> Any:
        return (
            error(400, message="json_schema unsupported", param="response_format")
            if call.format == "json_schema"
            else reply(GOOD)
        )

    with ScriptedServer(handler) as server:
        for count in (2, 4):
            jm.evaluate(records(count), KINDS, judge(server), store=tmp_path / "s.db")
        assert server.count == 4 + 1


def test_e04_max_tokens_is_renamed_with_one_wasted_call() -> None:
    def handler(call: Call) -> Any:
        if "max_tokens" in call.body:
            return error(
                400, message="Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", param="max_tokens"
            )
        return reply(GOOD)

    with ScriptedServer(handler) as server:
        results = jm.evaluate(records(20), KINDS, judge(server, max_tokens=900), store=None)
        assert (results.scores["status"] == "ok").all() and server.count == 21
        ok = results.calls[results.calls["status"] == "ok"]
        assert all("max_tokens" in refused for refused in ok["refused_parameters"])


def test_e05_every_metric_runs_where_parameters_are_refused() -> None:
    def handler(call: Call) -> Any:
        for name in ("max_tokens", "temperature"):
            if name in call.body:
                return error(400, message=f"Unsupported parameter: '{name}'", param=name)
        return from_schema(call)

    with ScriptedServer(handler) as server:
        results = jm.evaluate(records(2), "all", judge(server, max_tokens=900), store=None)
        rejected = results.scores["error"].str.startswith("rejected")
        assert not rejected.any()


def test_j06_fenced_reply_is_read() -> None:
    with ScriptedServer(lambda call: reply(f"Here you are:\n```json\n{GOOD}\n```\nDone.")) as server:
        assert only_row(run(server))["score"] == 4


def test_j03_cut_off_reply_is_never_a_number_and_says_the_limit() -> None:
    cut = '{"findings": "good", "score": 1'
    with ScriptedServer(lambda call: reply(cut, finish_reason="length", usage=(50, 16))) as server:
        row = only_row(run(server))
        assert row["status"] == "failed" and row["error"].startswith("truncated:") and "16" in row["error"]
        assert server.count == 2, "once more with more room, then it is final"


def test_j03_more_room_mends_a_cut_off_reply() -> None:
    def handler(call: Call) -> Any:
        return reply('{"findings": "go', finish_reason="length") if call.n == 0 else reply(GOOD)

    with ScriptedServer(handler) as server:
        assert only_row(run(server))["score"] == 4


def test_e07_limit_eaten_by_reasoning_is_explained() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 64}}
    with ScriptedServer(lambda call: reply("", finish_reason="length", usage=usage)) as server:
        assert "64" in only_row(run(server))["error"] and "reasoning" in only_row(run(server))["error"]


@pytest.mark.parametrize("answer", [reply(None, refusal="I cannot judge this."), reply("I can't help with that.")])
def test_j15_refusal_of_the_judge_is_its_own_failure(answer: Any) -> None:
    with ScriptedServer(lambda call: answer) as server:
        row = only_row(run(server))
        assert row["error"].startswith("refused:") and row["status"] == "failed"


def test_e01_content_filter_is_final_for_its_row_alone() -> None:
    def handler(call: Call) -> Any:
        if "has 7 rivers" in call.prompt:
            return error(400, code="content_filter", message="The response was filtered: violence")
        return reply(GOOD)

    with ScriptedServer(handler) as server:
        results = run(server, 30)
        assert results.scores["status"].value_counts().to_dict() == {"ok": 29, "failed": 1}
        assert server.count == 30
        assert results.scores.loc[results.scores["id"] == "7", "error"].item().startswith("filtered:")


def test_e02_filter_server_error_and_broken_body_cost_three_rows() -> None:
    def handler(call: Call) -> Any:
        if "has 7 rivers" in call.prompt:
            return error(400, code="content_filter")
        if "has 8 rivers" in call.prompt:
            return error(500, message="boom")
        if "has 9 rivers" in call.prompt:
            return body("<html>gateway</html>", 200)
        return reply(GOOD)

    with ScriptedServer(handler) as server:
        results = run(server, 40, retries=1)
        assert results.scores["status"].value_counts().to_dict() == {"ok": 37, "failed": 3}
        kinds = results.scores.set_index("id")["error"].str.partition(":")[0]
        assert [kinds[str(at)] for at in (7, 8, 9)] == ["filtered", "transport", "transport"]


def test_429_with_retry_after_is_waited_for() -> None:
    def handler(call: Call) -> Any:
        return error(429, message="slow down", headers={"Retry-After": "0.3"}) if call.n == 0 else reply(GOOD)

    with ScriptedServer(handler) as server:
        started = time.monotonic()
        results = run(server)
        assert only_row(results)["score"] == 4 and time.monotonic() - started >= 0.3
        assert results.calls["status"].tolist() == ["rate_limited", "ok"]


def test_dropped_connection_and_500_are_tried_again() -> None:
    def handler(call: Call) -> Any:
        return (drop(), error(500), reply(GOOD))[min(call.n, 2)]

    with ScriptedServer(handler) as server:
        assert only_row(run(server))["score"] == 4


def test_k09_no_usage_is_unknown_not_zero() -> None:
    with ScriptedServer(lambda call: reply(GOOD, usage=None)) as server:
        paid = jm.ChatJudge("scripted", base_url=server.url, price=(1.0, 2.0))
        results = jm.evaluate(records(1), KINDS, paid, store=None)
        assert results.calls["prompt_tokens"].isna().all() and results.calls["cost_usd"].isna().all()
        assert results.scores["judge_cost_usd"].isna().all()


def test_e09_server_that_ignores_the_format_is_validated_all_the_same() -> None:
    def handler(call: Call) -> Any:
        return reply("The answer is quite good, I give it a 5.") if call.n == 0 else reply(f"Well. {GOOD}")

    with ScriptedServer(handler) as server:
        assert only_row(run(server))["score"] == 4
        assert server.count == 2


def test_j11_value_outside_the_scale_is_not_clamped() -> None:
    with ScriptedServer(lambda call: reply('{"findings": "x", "score": 85}')) as server:
        row = only_row(run(server))
        assert row["error"].startswith("out_of_range:") and server.count == 2


def test_incomplete_reply_is_asked_once_for_the_missing_items() -> None:
    def handler(call: Call) -> Any:
        if call.schema_name != "check":
            return from_schema(call)
        asked = [1, 2] if call.n < 2 else [2]
        given = [1] if call.n < 2 else [2]
        del asked
        return reply(
            json.dumps(
                {
                    "verdicts": [
                        {"claim": at, "evidence": [], "reason": "r", "sources_conflict": False, "verdict": "unknown"}
                        for at in given
                    ]
                }
            )
        )

    claims = {"sentences": [{"at": at, "check": "factual", "claims": [f"claim {at}"]} for at in (1, 2)]}

    def with_claims(call: Call) -> Any:
        return reply(json.dumps(claims)) if call.schema_name == "claims" else handler(call)

    with ScriptedServer(with_claims) as server:
        row = only_row(run(server, metrics=["faithfulness"]))
        assert row["status"] == "ok" and row["score"] == 0 and server.count == 3


@pytest.mark.parametrize("status", [401, 403])
def test_wrong_key_ends_at_once_and_names_address_and_variable(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "sk-CANARY-0123456789")
    with ScriptedServer(lambda call: error(status, message="Incorrect API key sk-CANARY-0123456789")) as server:
        bad = jm.ChatJudge("scripted", base_url=server.url, api_key_env="HOUSE_KEY")
        with pytest.raises(jm.InputError) as raised:
            jm.evaluate(records(60), KINDS, bad, store=None)
        assert server.count == 1
        assert (
            "HOUSE_KEY" in str(raised.value) and server.url in str(raised.value) and "CANARY" not in str(raised.value)
        )


def test_missing_key_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOUSE_KEY", raising=False)
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        bad = jm.ChatJudge("scripted", base_url=server.url, api_key_env="HOUSE_KEY")
        with pytest.raises(jm.InputError, match="HOUSE_KEY"):
            jm.evaluate(records(1), KINDS, bad, store=None)
        assert server.count == 0


def test_endpoint_that_is_down_is_said_within_seconds() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    started = time.monotonic()
    with pytest.raises(jm.InputError, match=address.replace(".", r"\.")):
        jm.evaluate(records(60), KINDS, jm.ChatJudge("scripted", base_url=address), store=None)
    assert time.monotonic() - started < 10


def test_model_that_is_not_there_ends_at_once() -> None:
    with ScriptedServer(lambda call: error(404, code="model_not_found", message="no such model")) as server:
        with pytest.raises(jm.InputError, match="no-model"):
            jm.evaluate(records(60), KINDS, judge(server, "no-model"), store=None)
        assert server.count == 1


def test_e14_hung_and_dripping_calls_end_within_the_limit() -> None:
    def handler(call: Call) -> Any:
        from scripted_server import drip

        if "has 5 rivers" in call.prompt:
            return hang(600)
        if "has 6 rivers" in call.prompt:
            return drip(GOOD, 1)
        return reply(GOOD)

    with ScriptedServer(handler) as server:
        started = time.monotonic()
        results = jm.evaluate(records(20), KINDS, judge(server, timeout=0.5), store=None, retries=1)
        assert time.monotonic() - started < 10
        assert results.scores["status"].value_counts().to_dict() == {"ok": 18, "failed": 2}
        assert set(results.failures()["kind"]) == {"timeout"}


def test_e12_limits_of_an_endpoint_are_shared_and_nothing_is_missing() -> None:
    limited = allow(lambda call: from_schema(call), in_flight=5, per_second=60, retry_after=1)
    with ScriptedServer(limited, latency=0.01) as server:
        judges = [judge(server, name, max_concurrency=5) for name in ("a", "b", "c")]
        results = jm.evaluate(records(15), ["coherence", "fluency", "accuracy_clarity"], judges, store=None)
        assert (results.scores["status"] == "ok").all()
        assert server.in_flight_max <= 5


def test_c04_random_faults_lose_nothing() -> None:
    faulty = with_faults(
        from_schema, {"429": 0.05, "malformed": 0.03, "drop": 0.01, "500": 0.01}, seed=1, retry_after=0
    )
    with ScriptedServer(faulty, latency=0.001) as server:
        results = jm.evaluate(records(150), ["coherence", "fluency"], judge(server), store=None)
        assert len(results.scores) == 300 and (results.scores["status"] == "ok").all()
        assert sum(faulty.served.values()) > 10


def test_zero_identical_requests() -> None:
    with ScriptedServer(from_schema, latency=0.002) as server:
        jm.evaluate(records(20), "all", jm.Panel([judge(server, name) for name in "abc"]), store=None)
        assert server.repeats == 0


SCRIPT = """
import sys, jurimetrics as jm
from test_endpoints import records
judge = jm.ChatJudge("scripted", base_url=sys.argv[1], price=0, timeout=5.0)
print("started", flush=True)
results = jm.evaluate(records(120), ["coherence", "fluency"], judge, store=sys.argv[2], concurrency=8)
print(results.scores["status"].value_counts().to_dict(), flush=True)
"""


def test_z01_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    with served_apart("--latency", "0.02", "--handler", "scripted_server:from_schema") as server:
        store = tmp_path / "s.db"
        paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", SCRIPT, server.url, str(store)]
        killed = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while server.stats()["requests"] < 140 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True
        )
        assert "{'ok': 240}" in done.stdout
        requests = server.stats()["requests"]
        assert 240 <= requests <= 240 + 8, "what was answered is never asked again"


@pytest.mark.parametrize("place", ["cell", "pytest", "thread"])
def test_c01_same_call_in_three_places(place: str, tmp_path: Path) -> None:
    import threading

    with ScriptedServer(from_schema) as server:
        if place == "pytest":
            assert only_row(run(server))["status"] == "ok"
        elif place == "thread":
            found: list[str] = []
            worker = threading.Thread(target=lambda: found.append(only_row(run(server))["status"]))
            worker.start()
            worker.join()
            assert found == ["ok"]
        else:
            import nbformat
            from nbclient import NotebookClient

            source = (
                f"import jurimetrics as jm\n"
                f"judge = jm.ChatJudge('scripted', base_url={server.url!r}, price=0)\n"
                f"r = jm.evaluate({records(1)!r}, ['coherence'], judge, store=None)\nr.scores['status'].tolist()"
            )
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
            NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
            outputs = notebook.cells[0].outputs
            results = [out for out in outputs if out["output_type"] == "execute_result"]
            assert results[0]["data"]["text/plain"] == "['ok']"
