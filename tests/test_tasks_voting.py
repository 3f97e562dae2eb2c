"""Votes and combined ratings, by hand-computed values and as properties."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import InputError, NoMajority
from jurimetrics.tasks.task import Items, Rule
from jurimetrics.tasks.voting import (
    by_item,
    choices,
    combine,
    entropy,
    majority_label,
    mean_disagreement,
    nearest,
    spread,
)

judges = st.sampled_from(["ada", "bea", "cy", "dan", "eve"])
numbers = st.floats(-100, 100)
ballots = st.dictionaries(judges, st.sampled_from(["yes", "no", "maybe", None]), min_size=1)
ratings = st.dictionaries(judges, numbers | st.none(), min_size=1).filter(
    lambda d: any(v is not None for v in d.values())
)
RULES = [Rule("mean"), Rule("median"), Rule("trimmed_mean"), Rule("min"), Rule("max"),
         Rule("weighted", weights={"ada": 0.1, "bea": 0.2, "cy": 0.3, "dan": 0.4, "eve": 1.7}),
         Rule("callable", function=lambda given: given[0])]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"a": "pass"}, "pass"),
        ({"a": None}, None),
        ({"a": "pass", "b": "fail"}, None),
        ({"a": "pass", "b": "pass"}, "pass"),
        ({"a": "pass", "b": None}, None),
        ({"a": "pass", "b": None, "c": "fail"}, None),
        ({"a": "pass", "b": "pass", "c": None}, "pass"),
        ({"a": "pass", "b": None, "c": None}, None),
        ({"a": "x", "b": "y", "c": "z"}, None),
        ({"a": "x", "b": "x", "c": "y", "d": "y"}, None),
        ({"a": "x", "b": "x", "c": "y", "d": "z"}, None),
        ({"a": "x", "b": "x", "c": "x", "d": "z"}, "x"),
        ({"a": "x", "b": "x", "c": "x", "d": None, "e": None}, "x"),
        ({"a": "x", "b": "x", "c": None, "d": None, "e": None}, None),
    ],
)
def test_a_majority_is_more_than_half_of_the_judges_asked(labels: dict[str, str | None], expected: str | None) -> None:
    for order in permutations(labels.items()):
        assert majority_label(dict(order), Rule("majority")) == expected


def test_weights_count_instead_of_heads_and_half_is_not_more_than_half() -> None:
    rule = Rule("weighted", weights={"a": 0.1, "b": 0.2, "c": 0.3})
    assert majority_label({"a": "x", "b": "x", "c": "y"}, rule) is None  # 0.3 of 0.6, in tenths exactly half
    assert majority_label({"a": "x", "b": "y", "c": "x"}, rule) == "x"
    assert majority_label({"a": None, "b": "y", "c": "y"}, rule) == "y"
    assert majority_label({"a": None, "b": None, "c": "y"}, rule) is None  # the others' weight stays in the panel
    heavy = Rule("weighted", weights={"a": 5, "b": 1, "c": 1})
    assert majority_label({"a": "x", "b": "y", "c": "y"}, heavy) == "x"


def test_a_judge_without_a_weight_is_named() -> None:
    with pytest.raises(InputError, match="no weight to b, c"):
        majority_label({"a": "x", "c": "x", "b": None}, Rule("weighted", weights={"a": 1}))
    with pytest.raises(InputError, match="no weight to c"):
        combine({"c": 1.0}, Rule("weighted", weights={"a": 1}))


@pytest.mark.parametrize("rule", [Rule("mean"), Rule("median"), Rule("majority")])
def test_other_rules_count_heads_for_labels(rule: Rule) -> None:
    assert majority_label({"a": "x", "b": "y", "c": "y"}, rule) == "y"


@pytest.mark.parametrize(
    ("values", "rule", "expected"),
    [
        ({"a": 1, "b": 2, "c": 6}, Rule("mean"), 3.0),
        ({"a": 1, "b": None, "c": 6}, Rule("mean"), 3.5),
        ({"a": 1, "b": 2, "c": 6}, Rule("median"), 2.0),
        ({"a": 1, "b": 2, "c": 6, "d": 5}, Rule("median"), 3.5),
        ({"a": 1, "b": None, "c": None}, Rule("median"), 1.0),
        ({"a": 1, "b": 2, "c": 6}, Rule("trimmed_mean"), 2.0),
        ({"a": 1, "b": 2, "c": 6, "d": 4}, Rule("trimmed_mean"), 3.0),
        ({"a": 1, "b": 2}, Rule("trimmed_mean"), 1.5),
        ({"a": 1, "b": 2, "c": None}, Rule("trimmed_mean"), 1.5),
        ({"a": 4, "b": 4, "c": 1}, Rule("majority"), 4.0),
        ({"a": 4, "b": 4, "c": None}, Rule("majority"), 4.0),
        ({"a": 1, "b": 4}, Rule("weighted", weights={"a": 1, "b": 3}), 3.25),
        ({"a": 1, "b": None}, Rule("weighted", weights={"a": 1, "b": 3}), 1.0),
        ({"a": 1, "b": 2, "c": 6}, Rule("min"), 1.0),
        ({"a": 1, "b": 2, "c": 6}, Rule("max"), 6.0),
        ({"c": 6, "a": 1, "b": 2}, Rule("callable", function=lambda given: given[-1] - given[0]), 5.0),
        ({"a": 0.1, "b": 0.1, "c": 0.1}, Rule("mean"), 0.1),
    ],
)
def test_combined_ratings(values: dict[str, float | None], rule: Rule, expected: float) -> None:
    for order in permutations(values.items()):
        assert combine(dict(order), rule, levels=(1, 2, 3, 4, 5, 6)) == expected


@pytest.mark.parametrize(
    "values", [{"a": 1, "b": 4}, {"a": 1, "b": 4, "c": None}, {"a": 1, "b": 2, "c": 4}, {"a": 4, "b": None, "c": None}]
)
def test_no_level_with_more_than_half_is_no_majority(values: dict[str, float | None]) -> None:
    for order in permutations(values.items()):
        with pytest.raises(NoMajority, match=f"more than half of {len(values)} votes"):
            combine(dict(order), Rule("majority"), levels=(1, 2, 3, 4, 5))


def test_a_majority_needs_declared_levels_and_values_on_them() -> None:
    with pytest.raises(InputError, match="declared levels"):
        combine({"a": 1.0}, Rule("majority"))
    with pytest.raises(InputError, match=r"2\.5 is none of the declared levels"):
        combine({"a": 2.5, "b": 2.5}, Rule("majority"), levels=(1, 2, 3))


def test_tenths_are_levels() -> None:
    levels = tuple(score / 10 for score in range(11))
    assert combine({"a": 0.3, "b": 3 / 10, "c": 0.7}, Rule("majority"), levels) == 0.3


def test_nobody_answered_is_refused() -> None:
    with pytest.raises(InputError, match="no judge answered"):
        combine({"a": None, "b": None}, Rule("mean"))


@pytest.mark.parametrize("given_back", [math.nan, math.inf, None, "3", True])
def test_a_callable_must_give_a_finite_number(given_back: Any) -> None:
    with pytest.raises(InputError, match="no finite number"):
        combine({"a": 1.0}, Rule("callable", function=lambda given: given_back))


def test_a_callable_may_give_a_numpy_number() -> None:
    assert combine({"a": 1.0, "b": 2.0}, Rule("callable", function=lambda given: np.float32(np.mean(given)))) == 1.5


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match="no rule 'mode'"):
        combine({"a": 1.0}, Rule("mode"))


@given(ballots, st.randoms())
def test_the_order_of_judges_never_changes_a_vote(labels: dict[str, str | None], random: Any) -> None:
    order = list(labels.items())
    random.shuffle(order)
    for rule in (Rule("majority"), RULES[5]):
        assert majority_label(dict(order), rule) == majority_label(labels, rule)
    assert entropy(label for _, label in order) == entropy(labels.values())


@given(ratings, st.randoms())
def test_the_order_of_judges_never_changes_a_rating(values: dict[str, float | None], random: Any) -> None:
    order = list(values.items())
    random.shuffle(order)
    for rule in RULES:
        assert combine(dict(order), rule) == combine(values, rule)
    assert spread(value for _, value in order) == spread(values.values())


@given(numbers, st.lists(judges, min_size=1, unique=True))
def test_equal_judges_give_their_own_number(value: float, names: list[str]) -> None:
    for rule in RULES:
        assert combine(dict.fromkeys(names, value), rule) == value


@given(ratings)
def test_a_combined_rating_lies_between_the_ratings(values: dict[str, float | None]) -> None:
    given_values = [value for value in values.values() if value is not None]
    for rule in RULES:
        assert min(given_values) <= combine(values, rule) <= max(given_values)


@given(ballots)
def test_at_most_one_label_has_a_majority(labels: dict[str, str | None]) -> None:
    winner = majority_label(labels, Rule())
    counted = {label: list(labels.values()).count(label) for label in set(labels.values()) - {None}}
    assert [label for label, n in counted.items() if n > len(labels) / 2] == ([winner] if winner else [])


def test_entropy_in_bits() -> None:
    assert entropy(["x", "y"]) == 1
    assert entropy(["x", "x", "x"]) == 0
    assert entropy(["a", "b", "c", "d"]) == 2
    # H(1/3, 2/3) = log2 3 - 2/3
    assert entropy(["x", "x", "y"]) == pytest.approx(math.log2(3) - 2 / 3, abs=1e-12)
    assert entropy(["x", None, "y"]) == 1
    assert entropy([]) is None
    assert entropy(["x", None]) is None


def test_spread_and_mean_disagreement() -> None:
    assert spread([1.0, None, 4.5]) == 3.5
    assert spread([2.0, 2.0]) == 0
    assert spread([None, 2.0]) is None
    assert mean_disagreement([None, None]) is None
    assert mean_disagreement([1.0, None, 0.5]) == 0.75


def test_answers_turn_into_ballots_by_name() -> None:
    turned = by_item({"b": Items((1, 2)), "a": Items((3, 4)), "c": None})
    assert [list(ballot.items()) for ballot in turned] == [
        [("a", 3), ("b", 1), ("c", None)],
        [("a", 4), ("b", 2), ("c", None)],
    ]
    assert choices(turned[0], lambda value: value * 10) == {"a": 30, "b": 10, "c": None}
    assert by_item({"a": Items(())}) == []


def test_answers_about_different_items_cannot_be_voted_on() -> None:
    with pytest.raises(InputError, match="cannot vote"):
        by_item({"a": Items((1, 2)), "b": Items((1,))})
    with pytest.raises(InputError, match="no judge answered"):
        by_item({"a": None})


def test_the_nearest_value_is_the_first_by_name_among_equals() -> None:
    assert nearest({"b": (1.0, "b"), "a": (3.0, "a"), "c": None}, 2.0, lambda value: value[0]) == (3.0, "a")
    assert nearest({"b": (2.0, "b"), "a": (3.0, "a")}, 2.0, lambda value: value[0]) == (2.0, "b")
