"""A plain function is a variant under its own name."""

from __future__ import annotations

import functools

import jurimetrics as jm
import pytest

RECORDS = [{"id": "1", "question": "Why?"}, {"id": "2", "question": "When?"}]


def echo(record: jm.Record) -> str:
    return f"You asked: {record.question}"


async def shout(record: jm.Record) -> str:
    return (record.question or "").upper()


def test_functions_are_called_as_they_are_named() -> None:
    answers = jm.generate(RECORDS, [echo, shout], store=None, progress=False)
    assert [(one.id, one.variant, one.answer) for one in answers] == [
        ("1", "echo", "You asked: Why?"), ("1", "shout", "WHY?"),
        ("2", "echo", "You asked: When?"), ("2", "shout", "WHEN?"),
    ]  # fmt: skip
    assert [one.variant for one in jm.generate(RECORDS, echo, store=None, progress=False)] == ["echo"] * 2


@pytest.mark.parametrize("nameless", [lambda record: "x", functools.partial(echo)])
def test_a_function_without_a_name_is_given_one(nameless: object) -> None:
    with pytest.raises(jm.InputError, match='give it one: Variant\\("name", None, function\\)'):
        jm.generate(RECORDS, [nameless], store=None, progress=False)  # type: ignore[list-item]


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(jm.InputError, match="two are called 'echo'"):
        jm.generate(RECORDS, [echo, echo], store=None, progress=False)
    with pytest.raises(jm.InputError, match="expected a list of Variant, found type in it"):
        jm.generate(RECORDS, [dict], store=None, progress=False)
