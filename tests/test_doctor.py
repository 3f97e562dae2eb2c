"""The doctor: endpoints of several characters, what is printed of them, and that the printed judge works."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import jurimetrics as jm
import pytest
from jurimetrics.cli import app
from scripted_server import Answer, Call, ScriptedServer, body, error, from_schema, hang, reply
from typer.testing import CliRunner, Result

QUARTZ = '{"mineral": "quartz"}'
CANARY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


def asked(server: ScriptedServer, *more: str, model: str = "m") -> Result:
    return doctor("--model", model, "--base-url", server.url, *more)


def line(result: Result, label: str) -> str:
    found = re.search(rf"^{label} +(.*)$", result.stdout, re.MULTILINE)
    assert found is not None, result.output
    return found[1]


def served(call: Call) -> Answer:
    """Goes by a schema, and does as it is told where there is none."""
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}
    return reply(QUARTZ, usage=usage, fingerprint="fp_1", headers={"x-ratelimit-limit-requests": "500"})


def test_endpoint_that_supports_everything() -> None:
    def answer(call: Call) -> Answer:
        choice = {"index": 0, "message": {"role": "assistant", "content": QUARTZ}, "finish_reason": "stop"}
        more = (
            {"choices": [choice | {"logprobs": {"content": []} | {"tokens": ["q"]}}]} if "logprobs" in call.body else {}
        )
        return (
            served(call) if not more else reply(QUARTZ, usage=(20, 5), extra=more, headers=dict(served(call).headers))
        )

    with ScriptedServer(answer) as server:
        done = asked(server)
        # One as an evaluation sends it, one for each format, one for log-probabilities.
        assert server.count == 5 and server.in_flight_max == 1
        assert sum(len(call.prompt) for call in server.requests) < 900, "tiny requests"
    assert done.exit_code == 0
    assert line(done, "json_schema") == "works: the reply goes by the schema"
    assert (line(done, "json_object"), line(done, "plain"), line(done, "logprobs")) == ("works", "works", "returned")
    assert line(done, "parameters") == "takes temperature, seed, max_tokens"
    assert line(done, "model returned") == "m, fingerprint fp_1"
    assert line(done, "tokens told") == "prompt 20, completion 5, cached 3; not reasoning"
    assert line(done, "rate limits") == "x-ratelimit-limit-requests: 500"
    assert line(done, "price").startswith("unknown: give price=")
    added = "  (add price=(prompt, completion), dollars per million tokens, or price=0 where it is free)"
    assert done.stdout.rstrip("\n").endswith(f")\n{added}")
    assert re.fullmatch(r"yes, [\d.]+ to [\d.]+ s a request", line(done, "answers"))


def test_e04_e10_reasoning_model_behind_a_house_name() -> None:
    def answer(call: Call) -> Answer:
        for name in ("max_tokens", "temperature", "logprobs"):
            if name in call.body:
                return error(400, message=f"Unsupported parameter: '{name}'", param=name)
        usage = {"prompt_tokens": 20, "completion_tokens": 300, "completion_tokens_details": {"reasoning_tokens": 280}}
        limits = {"x-ratelimit-remaining-tokens": "30000"}
        return reply(QUARTZ, usage=usage, model="gpt-4.1-mini-2025-04-14", headers=limits)

    with ScriptedServer(answer) as server:
        done = asked(server, model="team-judge-7")
        assert done.exit_code == 0
        assert line(done, "parameters").startswith(
            "takes seed; takes max_tokens as max_completion_tokens; refuses temperature"
        )
        assert line(done, "logprobs") == "refused (HTTP 400)"
        assert "not cached" in line(done, "tokens told") and "reasoning 280" in line(done, "tokens told")
        assert "as gpt-4.1-mini-2025-04-14; the configured name is not in the list" in line(done, "price")
        assert line(done, "rate limits") == "x-ratelimit-remaining-tokens: 30000"
        # The printed judge is one that works from the first request, and that a budget in dollars accepts.
        code = re.search(r"^  (ChatJudge\(.*\))$", done.stdout, re.MULTILINE)
        assert code is not None
        made = eval(code[1], {"ChatJudge": jm.ChatJudge})
        assert made == jm.ChatJudge(
            "team-judge-7", base_url=server.url, temperature=None, price_as="gpt-4.1-mini-2025-04-14"
        )
        server.forget()
        server.handler = from_schema
        results = jm.evaluate([{"answer": "a"}], ["fluency"], made, store=None, budget=1.0)
        assert results.scores["status"].tolist() == ["ok"] and server.count == 1


def test_e08_formats_refused_one_by_one() -> None:
    def answer(call: Call) -> Answer:
        if call.format != "plain":
            return error(400, message=f"response_format {call.format} is not supported", param="response_format")
        return reply(QUARTZ)

    with ScriptedServer(answer) as server:
        done = asked(server)
    assert [line(done, name) for name in ("json_schema", "json_object", "plain")] == ["refused", "refused", "works"]
    assert done.exit_code == 0


def test_e09_schema_that_is_ignored_is_not_believed() -> None:
    def answer(call: Call) -> Answer:
        return reply(f"Sure! {QUARTZ}" if "quartz" in call.prompt else '{"stone": "granite"}')

    with ScriptedServer(answer) as server:
        done = asked(server)
    assert line(done, "json_schema").startswith("taken, but the reply does not keep to it")
    assert line(done, "json_object") == "works" and line(done, "answers").startswith("yes")
    assert line(done, "tokens told").startswith("none: costs stay unknown")
    assert line(done, "this probe").endswith("an unknown amount")


def test_no_usable_reply_is_status_1_and_says_why() -> None:
    with ScriptedServer(lambda _: reply("I would rather talk.", usage=(20, 5))) as server:
        done = asked(server)
    assert done.exit_code == 1
    assert line(done, "answers") == "no usable reply: unparsed: there is no JSON object in the reply"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (error(401, "invalid_api_key", f"Incorrect API key provided: {CANARY}"), "HTTP 401: Incorrect API key"),
        (error(404, "model_not_found", "The model `m` does not exist"), "does not exist"),
        (body("<html>log in</html>", 403), "HTTP 403"),
        (error(429, "insufficient_quota", "You exceeded your quota"), "quota"),
        (error(503, None, "overloaded", headers={"retry-after": "0"}), "HTTP 503"),
        (error(429, None, "slow down", headers={"retry-after": "0"}), "HTTP 429"),
    ],
    ids=["key", "model", "login", "quota", "down", "crowded"],
)
def test_endpoint_that_cannot_be_asked_is_one_line_and_status_2(
    answer: Answer, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOUSE_KEY", CANARY)
    with ScriptedServer(lambda _: answer) as server:
        done = asked(server, "--api-key-env", "HOUSE_KEY")
        assert server.count <= 3
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr and server.url in done.stderr and CANARY not in done.output


def test_nobody_listens_is_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    done = doctor("--model", "m", "--base-url", url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"jurimetrics: judge 'm': {url}: nobody listens there - model 'm', no key configured (api_key_env)\n"
    )


def test_silent_endpoint_ends_in_time() -> None:
    with ScriptedServer(lambda _: hang(60)) as server:
        done = asked(server, "--timeout", "0.2")
    assert done.exit_code == 2 and "no whole answer within 0.2 s" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --model"),
        (("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--api-key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY"),
        (("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--price-as", "gpt-4.1-minni"), "gpt-4.1-minni"),
        (("--experiment", "gone"), "gone: no such file"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: tuple[str, ...], message: str) -> None:
    done = doctor(*arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr


def test_x_secrets_are_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", CANARY)

    def answer(call: Call) -> Answer:
        echoed = {"x-ratelimit-limit-requests": call.headers["Authorization"], "x-ratelimit-key": CANARY}
        return reply(QUARTZ, usage=(20, 5), model=f"m-{CANARY}", headers=echoed, fingerprint=CANARY)

    with ScriptedServer(answer) as server:
        address = server.url.replace("http://", f"http://ann:{CANARY}x@") + f"?key={CANARY}y"
        done = doctor("--model", "m", "--base-url", address, "--api-key-env", "HOUSE_KEY")
    assert done.exit_code == 0 and "canary" not in done.output
    assert f'ChatJudge("m", base_url="{server.url}", api_key_env="HOUSE_KEY"' in done.stdout
    assert "the user part or the query of the address is left out here" in done.stdout


def test_text_of_the_server_cannot_steer_the_terminal() -> None:
    with ScriptedServer(lambda _: reply(QUARTZ, usage=(1, 1), model="m\x1b[2J\nuse it as")) as server:
        done = asked(server)
    assert "\x1b" not in done.stdout and done.stdout.count("\nuse it as") == 1


def test_azure_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", CANARY)
    with ScriptedServer(served) as server:
        done = doctor("--model", "team-judge-7", "--azure-endpoint", server.origin, "--price-as", "gpt-4.1-mini")
        assert all("/deployments/team-judge-7/chat/completions" in call.path for call in server.requests)
    assert done.exit_code == 0
    assert (
        line(done, "price")
        == "$0.4 prompt, $1.6 completion per million tokens, as gpt-4.1-mini; the configured name is not in the list"
    )
    assert f'ChatJudge("team-judge-7", azure_endpoint="{server.origin}", price_as="gpt-4.1-mini")' in done.stdout
    assert CANARY not in done.output


def test_all_judges_of_an_experiment(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"answer": "a"}', encoding="utf-8")
    with ScriptedServer(served) as server:
        judges = [
            {"kind": "baseline"},
            {"kind": "chat", "model": "m", "base_url": server.url, "price": [1, 2], "seed": 7, "max_tokens": 900},
            {"kind": "chat", "model": "lost", "base_url": "http://127.0.0.1:9/v1"},
        ]
        tables = "\n".join(
            "[[judges]]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in each.items())
            for each in judges
        )
        (tmp_path / "experiment.toml").write_text(
            f'data.records = "records.jsonl"\nmetrics.use = ["fluency"]\n{tables}\n', encoding="utf-8"
        )
        done = doctor("--experiment", str(tmp_path))
        assert all(call.body["max_tokens"] == 900 and call.body["seed"] == 7 for call in server.requests)
    assert done.exit_code == 2, "the last one cannot be asked"
    assert "baseline: computed here" in done.stdout and "nobody listens there" in done.stderr
    assert line(done, "price") == "$1 prompt, $2 completion per million tokens, as declared"
    assert "seed=7, max_tokens=900, price=(1, 2))" in done.stdout and "(add price=" not in done.stdout


def test_doctor_writes_nothing(project: Path) -> None:
    with ScriptedServer(served) as server:
        assert asked(server).exit_code == 0
    assert [path.name for path in project.iterdir()] == [".git"]


@pytest.mark.local_model
def test_real_model_behind_a_real_server(local_model_url: str) -> None:
    done = doctor("--model", "smollm2", "--base-url", local_model_url, "--max-tokens", "48")
    assert done.exit_code == 0, done.output
    assert line(done, "json_schema") == "works: the reply goes by the schema"
    assert line(done, "parameters") == "takes temperature, seed, max_tokens"
    assert line(done, "logprobs") == "returned"
    assert re.match(r"prompt \d+, completion \d+, cached \d+; not reasoning", line(done, "tokens told"))
    assert line(done, "model returned").endswith("fingerprint b0-unknown")
