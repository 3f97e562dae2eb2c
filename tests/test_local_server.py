"""A model of one's own behind an endpoint: what it needs is said in one line, and nothing of it stays."""

from __future__ import annotations

from pathlib import Path

import jurimetrics as jm
import pytest


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"context": 0}, "context must be a whole number from 1, not 0"),
        ({"context": True}, "context must be a whole number from 1, not True"),
        ({"threads": "2"}, "threads must be a whole number from 1, not '2'"),
    ],
)
def test_what_cannot_be_meant_is_said(tmp_path: Path, options: dict[str, int], words: str) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    with pytest.raises(jm.InputError, match=words), jm.local_server(tmp_path / "a.gguf", **options):
        pass


@pytest.mark.local_model
def test_a_file_that_is_no_model_is_said_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"this is no model" * 100)
    with (
        pytest.raises(jm.InputError, match=r"broken\.gguf did not start: .*\S"),
        jm.local_server(tmp_path / "broken.gguf"),
    ):
        pass


@pytest.mark.local_model
def test_an_error_in_the_block_is_the_users_and_ends_the_server() -> None:
    with pytest.raises(ZeroDivisionError), jm.local_server(name="small") as address:
        assert address.endswith("/v1")
        raise ZeroDivisionError
    lost = jm.ChatJudge("small", base_url=address, price=0)
    with pytest.raises(jm.InputError, match="nobody listens"):
        jm.evaluate([{"answer": "Yes."}], ["fluency"], lost, store=None, progress=False)
