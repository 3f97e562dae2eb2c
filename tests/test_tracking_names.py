"""Names for MLflow: legal, reversible, and never two for one (M02)."""

from __future__ import annotations

import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.tracking.names import FIGURES, assessment_names, decode, encode, metric_name

M02 = [
    "a@k",
    "a[k]",
    "a,k",
    "p(95)",
    "50%",
    "/a",
    "a//b",
    "../x",
    "x" * 251,
    "忠实度",
    "m:1",
    "map@k",
    "score[judge]",
    "time(s)",
]


def legal(name: str) -> bool:
    """MLflow's rule on Windows, the stricter one."""
    unique = posixpath.normpath(name) == name and not name.startswith(("..", "/")) and name != "."
    return re.fullmatch(r"[/\w.\- ]+", name) is not None and unique and len(name) <= 250


@pytest.mark.parametrize("name", M02)
def test_awkward_names_become_legal_and_can_be_read_backwards(name: str) -> None:
    assert legal(encode(name))
    assert legal(metric_name(name, judge=name))
    assert decode(encode(name)) == (name if len(name) <= 110 else None)


@pytest.mark.parametrize(
    "name", ["faithfulness", "gpt-4.1-mini", "accuracy_clarity", "context_utilization", "忠实度", "a b"]
)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert encode(name) == name


@given(st.lists(st.text("_u4x0a@/.:é条 ", min_size=1, max_size=9) | st.text(min_size=1, max_size=300), unique=True))
def test_no_two_names_become_one(names: list[str]) -> None:
    encoded = [encode(name) for name in names]
    assert len(set(encoded)) == len(names)
    for name, text in zip(names, encoded, strict=True):
        assert legal(text)
        assert decode(text) in (name, None)


def test_long_names_with_one_beginning_stay_apart() -> None:
    first, second = encode("x" * 300), encode("x" * 301)
    assert first != second
    assert decode(first) is None


@pytest.mark.parametrize("judge", FIGURES)
def test_a_judge_may_be_called_like_a_figure(judge: str) -> None:
    assert metric_name("f1", judge=judge) != metric_name("f1", judge)
    assert decode(metric_name("f1", judge=judge).split("/")[1]) == judge


def test_a_name_with_a_slash_is_not_a_metric_and_its_judge() -> None:
    assert metric_name("a/b") != metric_name("a", judge="b")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InputError, match="without a name"):
        encode("")


def test_names_of_assessments_are_told_apart_in_any_order() -> None:
    pairs = [("a", "b-c"), ("a", "b.c"), ("a_b_c", ""), ("a", ""), ("x" * 200, ""), ("x" * 200, "y")]
    names = assessment_names(pairs)
    assert len(set(names.values())) == len(pairs)
    assert names["a_b_c", ""] == "a_b_c"
    assert names == assessment_names(reversed(pairs))
    assert all(re.fullmatch(r"\w+", name) for name in names.values())
