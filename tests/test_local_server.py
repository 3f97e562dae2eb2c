"""A model of one's own behind an endpoint: what it needs is said in one line, and nothing of it stays."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"context": 0}, "context must be a whole number from 1, not 0"),
        ({"context": True}, "context must be a whole number from 1, not True"),
        ({"threads": "2"}, "threads must be a whole number from 1, not '2'"),
        ({"port": 0}, "port must be a whole number from 1 to 65535, or None, not 0"),
        ({"weights": 5}, "expected the path of a GGUF file or None, not 5"),
        ({"weights": "x" * 5000}, "no such file: x+; expected a GGUF file"),
        ({"name": " "}, "name must be a text that is not blank, or None, not ' '"),
        ({"name": 5}, "name must be a text that is not blank, or None, not 5"),
        ({"name": "a\0"}, "name must be a text that is not blank, or None, not"),
        ({"port": True}, "port must be a whole number from 1 to 65535, or None, not True"),
    ],
)
def test_what_cannot_be_meant_is_said(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    with pytest.raises(jm.InputError, match=words), jm.local_server(**{"weights": tmp_path / "a.gguf"} | options):
        pass


def test_a_port_on_which_something_listens_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with (
            pytest.raises(jm.InputError, match=f"port {port} is taken"),
            jm.local_server(tmp_path / "a.gguf", port=port),
        ):
            pass


@pytest.mark.local_model
def test_at_a_port_of_its_own_it_is_not_asked_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = []
    for _ in range(2):
        with jm.local_server(name="small", port=port) as address:
            assert address == f"http://127.0.0.1:{port}/v1"
            variant = jm.Variant("small", "Say: {question}", "small", base_url=address, price=0, max_tokens=16)
            found = jm.generate([{"question": "Yes."}], variant, store=tmp_path / "store.db", progress=False)
            said.append((found[0].answer, found[0].answer_error, found.totals().calls, found.totals().cached_calls))
    assert [one[2:] for one in said] == [(1, 0), (0, 1)]
    assert said[0][:2] == said[1][:2]


@pytest.mark.local_model
def test_a_file_that_is_no_model_is_said_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"this is no model" * 100)
    with (
        pytest.raises(jm.InputError, match=r"broken\.gguf did not start: .*\S") as refused,
        jm.local_server(tmp_path / "broken.gguf"),
    ):
        pass
    assert "File" not in str(refused.value) and "call last" not in str(refused.value), "no traceback of another process"


@pytest.mark.local_model
def test_a_proxy_of_the_surroundings_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with jm.local_server(name="small") as address:
        assert address.endswith("/v1")


@pytest.mark.local_model
def test_an_error_in_the_block_is_the_users_and_ends_the_server() -> None:
    with pytest.raises(ZeroDivisionError), jm.local_server(name="small") as address:
        assert address.endswith("/v1")
        raise ZeroDivisionError
    lost = jm.ChatJudge("small", base_url=address, price=0)
    with pytest.raises(jm.InputError, match="nobody listens"):
        jm.evaluate([{"answer": "Yes."}], ["fluency"], lost, store=None, progress=False)
