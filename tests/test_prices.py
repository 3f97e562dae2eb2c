"""What a request cost: parts of wholes, declared prices, names with and without dates, and what stays unknown."""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Usage
from jurimetrics.judges.prices import check_price, price_call

OPENAI = "https://api.openai.com/v1"
GATEWAY = "https://gateway.example/llm/v1"
AZURE = "https://house.openai.azure.com"
WHEN = datetime(2026, 6, 1, tzinfo=UTC)
SOME = Usage(prompt=1_000_000, completion=1_000_000)


def priced(usage: Usage, model: str, returned: str | None = None, **more: Any) -> float | None:
    return price_call(usage, model, returned, **{"when": WHEN, "base_url": OPENAI} | more)


def test_k01_cached_and_reasoning_are_parts() -> None:
    # 1,000 fresh at 2.5, 9,000 cached at 1.25, 1,000 completion (800 of them reasoning) at 10, per million.
    usage = Usage(prompt=10_000, completion=1_000, cached=9_000, reasoning=800)
    assert priced(usage, "x", price=(2.5, 10, 1.25)) == pytest.approx(0.02375, abs=1e-15)
    assert priced(usage, "gpt-4o") == pytest.approx(0.02375, abs=1e-15)


def test_cached_without_a_price_of_its_own_is_prompt() -> None:
    assert priced(Usage(100, 0, cached=60), "x", price=(2.0, 8.0)) == pytest.approx(100 * 2e-6, abs=1e-15)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(10, 5, cached=11),
        Usage(10, 5, reasoning=6),
        Usage(-1, 5),
        Usage(10, 5, cached=-1),
        Usage(),
        Usage(prompt=10),
        Usage(completion=10),
        Usage(cached=3, reasoning=3),
    ],
)
def test_k09_what_does_not_add_up_or_is_missing_is_unknown(usage: Usage) -> None:
    assert priced(usage, "x", price=(1, 1)) is None
    assert priced(usage, "gpt-4o") is None


def test_free_is_zero_whatever_is_known() -> None:
    for price in (0, 0.0, (0, 0), (0, 0, 0)):
        assert priced(Usage(), "x", price=price) == 0.0


def test_k05_mapped_unmapped_misspelt() -> None:
    mapped = priced(SOME, "team-judge-7", "team-judge-7", price_as="gpt-4.1-mini", base_url=AZURE)
    assert mapped == pytest.approx(0.4 + 1.6)
    assert priced(SOME, "team-judge-7", "team-judge-7", base_url=AZURE) is None
    with pytest.raises(InputError, match="gpt-4\\.1-minni"):
        check_price(None, "gpt-4.1-minni")
    check_price(None, "gpt-4.1-mini")


def test_price_as_holds_alone() -> None:
    assert priced(SOME, "gpt-4o", "gpt-4o", price_as="gpt-4.1-mini") == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("model", "returned"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini-2031-02-03"),
        ("gpt-4.1-mini-2031-02-03", None),
        ("house", "gpt-4.1-mini"),
        ("house", "gpt-4.1-mini-2031-02-03"),
        ("house", "gpt-4.1-mini-20310203"),
        ("gpt-4.1-mini", ""),
        ("gpt-4.1-mini", "\x00" * 10_000),
    ],
)
@pytest.mark.parametrize("base_url", [OPENAI, AZURE, GATEWAY, "http://127.0.0.1:8000/v1", None])
def test_k06_dated_and_returned_names(model: str, returned: str | None, base_url: str | None) -> None:
    assert priced(SOME, model, returned, base_url=base_url) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "model", ["mistral-7b", "deepseek-r1", "gpt-oss-20b", "gemma-3-27b", "llama-3.1-8b", "SmolLM2"]
)
def test_a_model_that_anyone_can_serve_has_no_price_at_an_unknown_address(model: str) -> None:
    assert priced(SOME, model, model, base_url="http://127.0.0.1:8080/v1") is None


def test_whose_price_is_decided_by_the_address() -> None:
    assert priced(SOME, "openai/gpt-oss-20b", base_url="https://api.groq.com/openai/v1") is not None
    assert priced(SOME, "claude-sonnet-4-5", base_url="https://api.groq.com/openai/v1") is None
    assert priced(SOME, "gpt-4o", base_url="https://user:pass@api.openai.com/v1?key=1") == pytest.approx(12.5)


def test_long_context_tier_is_of_the_single_request() -> None:
    # gemini-2.5-pro: 1.25 a million prompt tokens up to 200,000 of them in one request, 2.5 beyond.
    google = "https://generativelanguage.googleapis.com/v1beta/openai"
    short = priced(Usage(100_000, 0), "gemini-2.5-pro", base_url=google)
    long = priced(Usage(300_000, 0), "gemini-2.5-pro", base_url=google)
    assert short == pytest.approx(0.125)
    assert long == pytest.approx(0.75)


def test_an_entry_without_token_prices_is_unknown_not_free() -> None:
    from genai_prices.data_snapshot import get_snapshot

    bare = [
        (provider.id, model)
        for provider in get_snapshot().providers
        if provider.id == "openai"
        for model in provider.models
        if model.get_prices(WHEN).input_mtok is None or model.get_prices(WHEN).output_mtok is None
    ]
    assert bare
    for _, model in bare:
        assert priced(SOME, model.id) is None


@pytest.mark.parametrize(
    "price", [(1,), (1, 2, 3, 4), (-1, 2), (float("nan"), 1), (float("inf"), 1), ("1", 2), 5, True, "free"]
)
def test_prices_that_cannot_be_used_are_refused(price: Any) -> None:
    with pytest.raises(InputError, match="price must be"):
        check_price(price, None)


def test_price_and_price_as_exclude_each_other() -> None:
    with pytest.raises(InputError, match="exclude"):
        check_price((1, 2), "gpt-4o")


def test_no_network_and_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the price list went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = threading.enumerate()
    assert priced(SOME, "gpt-4.1-nano") is not None
    assert threading.enumerate() == before
    check_price(None, "gpt-4o-mini")
