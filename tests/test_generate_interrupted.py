"""Generation that is stopped, refused or planned, and the variants that it takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from generated import SHORT, echo, records, variant
from generated import quick_retries as _quick_retries  # noqa: F401 - a fixture of all tests here
from jurimetrics.variants.generate import generate, plan_answers
from jurimetrics.variants.variant import Variant
from scripted_server import ScriptedServer, reply, served_apart


def test_interrupt_keeps_what_is_done_and_a_second_run_asks_the_rest(tmp_path: Path) -> None:
    stopped = threading.Event()

    def handler(call: Any) -> Any:
        if call.n == 9 and not stopped.is_set():
            stopped.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return echo(call)

    with ScriptedServer(handler, latency=0.02) as server:
        first = generate(records(40), variant(server), store=tmp_path / "s.db", concurrency=4)
        assert {one.answer_error for one in first.failed} == {"cancelled: interrupted"}
        assert 5 <= len(first) - len(first.failed) < 20 and len(first) == 40
        second = generate(records(40), variant(server), store=tmp_path / "s.db", concurrency=4)
        assert second.failed == [] and server.count <= 40 + 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("jurimetrics-")]


WRITE = """
import sys
from jurimetrics.variants.generate import generate
from jurimetrics.variants.variant import Variant
records = [{"id": str(at), "question": f"Who built mill {at}?"} for at in range(200)]
generate(records, Variant("a", "{question}", "m", base_url=sys.argv[1], price=0), store=sys.argv[2], concurrency=4)
"""


@pytest.mark.slow
def test_process_that_is_killed_costs_what_was_in_flight(tmp_path: Path) -> None:
    with served_apart("--latency", "0.01") as server:
        command = [sys.executable, "-c", WRITE, server.url, str(tmp_path / "s.db")]
        for goal in (30, 100):
            with subprocess.Popen(command) as process:
                deadline = time.monotonic() + 60
                while server.stats()["requests"] < goal and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.005)
                assert process.poll() is None, "it was to be killed before its end"
                os.kill(process.pid, signal.SIGKILL)
        assert subprocess.run(command, timeout=120).returncode == 0
        assert 200 <= server.stats()["requests"] <= 200 + 2 * 4


async def test_works_under_a_running_loop_and_twice_in_a_row() -> None:
    with ScriptedServer(echo) as server:
        for _ in range(2):
            assert generate(records(2), variant(server), store=None).failed == []


def test_never_more_in_flight_than_allowed() -> None:
    with ScriptedServer(echo, latency=0.01) as server:
        generate(records(20), [variant(server), variant(server, "b", "{question}", max_concurrency=3)], store=None)
        assert server.in_flight_max <= 3, "the smallest wish at an endpoint holds"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be"),
        ({"retries": -1}, "retries must be"),
        ({"store": 5}, "store must be a path"),
        ({"budget": -1}, "budget"),
        ({"variants": []}, "variants: none given"),
        ({"variants": "a"}, "expected a list of Variant"),
        ({"variants": ["a"]}, "expected a list of Variant, found str in it"),
        ({"records": []}, "no records"),
        (
            {"records": [{"id": "1", "answer": "x", "variant": "a"}, {"id": "1", "answer": "y", "variant": "b"}]},
            "twice",
        ),
    ],
)
def test_bad_input_is_one_line_before_anything_is_sent(options: dict[str, Any], message: str) -> None:
    with ScriptedServer(echo) as server:
        given: dict[str, Any] = {"records": records(1), "variants": variant(server), "store": None} | options
        with pytest.raises(jm.InputError, match=message):
            generate(given.pop("records"), given.pop("variants"), **given)
        assert server.count == 0


def test_two_variants_of_one_name_and_places_that_nobody_fills_are_refused() -> None:
    with ScriptedServer(echo) as server:
        with pytest.raises(jm.InputError, match="two are called 'a'"):
            generate(records(1), [variant(server), variant(server)], store=None)
        with pytest.raises(jm.InputError, match="no record has 'nmae' for the place"):
            generate(records(1), variant(server, prompt="{question} {nmae}"), store=None)
        assert server.count == 0


# ---------------------------------------------------------------------------------------------- variants


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Variant("", "{question}", "m"), "name must be one line"),
        (lambda: Variant(" a", "{question}", "m"), "name must be one line"),
        (lambda: Variant("a", None, "m"), "needs a Prompt or the text of one"),
        (lambda: Variant("a", "", "m"), "variant 'a': user: the text of a prompt is needed"),
        (lambda: Variant("a", "{question}", len), "its prompt must be None"),
        (lambda: Variant("a", "{question}", 5), "the name of a model or a function"),  # type: ignore[arg-type]
        (lambda: Variant("a", None, str), "the name of a model or a function"),
        (
            lambda: Variant("a", "{question}", "m", temperatur=0),
            "'temperatur' is no setting of a model; settings: .*temp",
        ),
        (lambda: Variant("a", "{question}", "m", temperature=-1), "^variant 'a': temperature must be"),
        (lambda: Variant("a", "{question}", "m", logprobs=True), "'logprobs' is no setting"),
        (lambda: Variant("a", None, len, temperature=0), "no setting of a function"),
        (lambda: Variant("a", None, len, timeout=0), "timeout must be"),
        (lambda: Variant("a", None, len, max_concurrency=0), "max_concurrency must be"),
        (lambda: Variant("a", None, len, family=5), "^variant 'a': family must be a text"),
        *(
            (
                lambda given=given: Variant("a", "{question}", "m", **given),
                f"^variant 'a': {next(iter(given))} must be ",
            )
            for given in (
                {"base_url": 5},
                {"base_url": " "},
                {"azure_endpoint": ""},
                {"api_version": 5},
                {"api_key_env": 5},
                {"family": 5},
                {"family": ""},
                {"price_as": 5},
                {"extra_headers": "x"},
                {"extra_body": [1]},
            )
        ),
        (lambda: Variant("a", "{question}", "m", extra_headers={5: "x"}), "the header 5 must be"),
        (lambda: Variant.grid(None, ["m"]), "list of Prompt, or texts by name"),  # type: ignore[arg-type]
        (lambda: Variant.grid([SHORT], None), 'dictionaries with "model"'),  # type: ignore[arg-type]
        (lambda: Variant.grid(["text"], ["m"]), "list of Prompt, or texts by name"),  # type: ignore[list-item]
        (lambda: Variant.grid([SHORT], [{"name": "m"}]), 'dictionaries with "model"'),
        (lambda: Variant.grid([SHORT], ["m", "m"]), "two are called 'short/m'"),
    ],
)
def test_variant_that_cannot_be_is_refused(made: Any, message: str) -> None:
    with pytest.raises(jm.InputError, match=message):
        made()


def test_value_of_an_unknown_setting_is_never_shown() -> None:
    with pytest.raises(jm.InputError) as caught:
        Variant("a", "{question}", "m", api_key="sk-canary")
    assert "api_key" in str(caught.value) and "canary" not in str(caught.value)


def test_grid_settings_of_a_model_go_before_the_shared_ones() -> None:
    models = ["big", {"model": "small", "name": "warm", "temperature": 0.9}]
    grid = Variant.grid([SHORT], models, temperature=0.1, base_url="http://127.0.0.1:9/v1")
    assert [one.written_by()["settings"]["temperature"] for one in grid] == [0.1, 0.9]
    assert [one.written_by()["model"] for one in grid] == ["big", "small"]


def test_plan_is_what_is_then_sent(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with ScriptedServer(echo) as server:
        variants = [*(variant(server, name, "{question}") for name in "ab"), variant(server, "c", model="m2")]
        given = [*records(10), *records(1, id="same", question="Who built mill 0?"), {"id": "none", "contexts": ["x"]}]
        plan = plan_answers(given, variants, store=store)
        assert server.count == 0 and not store.exists()
        generate(given, variants, store=store)
        assert plan.totals.calls == server.count == 20
        assert plan.frame["judge"].tolist() == ["a", "b", "c"] and set(plan.frame["metric"]) == {"answer"}
        assert plan.frame["calls"].tolist() == [5, 5, 10], "what two variants share is split between them"
        assert any("3 answers cannot be asked for" in note for note in plan.notes)
        later = plan_answers([*given, *records(1, id="new", question="Why?")], variants, store=store)
        assert (later.totals.calls, later.totals.stored) == (2, 20)
        assert later.totals.saved_usd == pytest.approx(generate(given, variants, store=store).totals().saved_usd)


def test_plan_of_a_store_whose_name_is_too_long_is_one_of_no_store() -> None:
    made = Variant("a", "{question}", "m", base_url="http://127.0.0.1:9/v1", max_tokens=5)
    assert plan_answers(records(3), made, store="x" * 5000).totals.calls == 3
    assert jm.plan(records(1), ["faithfulness"], jm.ChatJudge("m", base_url="http://127.0.0.1:9/v1"), store="x" * 5000)
    with pytest.raises(jm.InputError, match="cannot be opened or made"):
        generate(records(1), made, store="x" * 5000)


def test_plan_learns_how_long_answers_are(tmp_path: Path) -> None:
    with ScriptedServer(lambda call: reply("Monks.", usage=(30, 400))) as server:
        one = variant(server)
        guessed = plan_answers(records(20), one, store=tmp_path / "s.db")
        assert any("range is assumed" in note for note in guessed.notes)
        bounded = plan_answers(records(20), variant(server, max_tokens=100), store=tmp_path / "s.db")
        assert bounded.totals.completion_tokens[1] == 2000
        generate(records(10), one, store=tmp_path / "s.db")
        known = plan_answers(records(20), one, store=tmp_path / "s.db")
    low, high = known.totals.completion_tokens
    assert low <= 4000 <= high < guessed.totals.completion_tokens[1] and known.totals.cost_usd is not None
    assert not any("assumed" in note for note in known.notes)


def test_plan_of_functions_says_that_nothing_is_known_of_them(tmp_path: Path) -> None:
    plan = plan_answers(records(3), Variant("f", None, lambda record: "x"), store=None)
    assert plan.totals.calls == 0 and plan.notes == (
        "f is a function, called 3 times; what that takes is not known here.",
    )
    assert "f is a function" in str(plan) and "f is a function" in plan._repr_html_()


def test_plan_shows_variants_and_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plan = plan_answers(records(3), Variant("a", "{question}", "gpt-4.1-mini", max_tokens=100), store=None)
    assert str(plan).startswith("variant") and plan.totals.cost_usd is not None and 0 < plan.totals.cost_usd[1] < 0.01
