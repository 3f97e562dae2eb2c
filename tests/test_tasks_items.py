"""Reading values and numbered items out of replies of every shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import ReplyError
from jurimetrics.tasks import items

SHAPE = items.Shape(
    "verdicts", "claim", "claim", lambda number, item: items.label(item.get("verdict"), ("yes", "no"), "verdict"), str
)


def one(number: Any, verdict: Any = "yes") -> dict[str, Any]:
    return {"claim": number, "verdict": verdict}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4, 4), (0, 0), (-1, -1), (4.0, 4), (1e1, 10), ("4", 4), (" 4 ", 4), ("４", 4), ("٤", 4), ("۴", 4), ("4.0", 4),
        ("+3", 3), ("-2", -2), ("007", 7),
        (True, None), (False, None), (4.5, None), ("4.5", None), ("4/5", None), ("8 out of 10", None), ("four", None),
        ("", None), (" ", None), ("1e1", None), ("minus one", None), (math.nan, None), (math.inf, None), (None, None),
        ("1²", None), ("1⁰", None), ("4①", None), ("½", None),
        ("NaN", None), ([4], None), ({"score": 4}, None), ("1" * 400, None),
    ],
)  # fmt: skip
def test_what_is_an_integer(value: Any, expected: int | None) -> None:
    assert items.is_whole(value) == expected


@pytest.mark.parametrize("value", [11, -1, "11", 85, 10.0000e1])
def test_a_number_off_the_scale_is_out_of_range_and_never_clamped(value: Any) -> None:
    with pytest.raises(ReplyError) as caught:
        items.whole(value, 0, 10, "score")
    assert caught.value.kind == "out_of_range"


@pytest.mark.parametrize("value", [None, True, "4/5", 4.5, [], math.nan, "high"])
def test_what_is_no_number_is_unparsed(value: Any) -> None:
    with pytest.raises(ReplyError) as caught:
        items.whole(value, 0, 10, "score")
    assert caught.value.kind == "unparsed"
    assert "score must be an integer from 0 to 10" in caught.value.fault


@pytest.mark.parametrize("value", ["no_check", "No_Check ", "no check", "NO-CHECK", "ｎｏ＿ｃｈｅｃｋ", "\nno_check"])
def test_a_label_is_read_apart_from_case_width_and_space(value: str) -> None:
    assert items.label(value, ("no_check", "supported"), "verdict") == "no_check"


@pytest.mark.parametrize(
    "value", ["", "not_supported", "supported!", "supported or no_check", None, True, 1, ["supported"]]
)
def test_anything_but_a_label_is_unparsed(value: Any) -> None:
    with pytest.raises(ReplyError, match="unparsed: verdict must be one of no_check, supported"):
        items.label(value, ("no_check", "supported"), "verdict")


@pytest.mark.parametrize("value", ["false", "true", 0, 1, None, "", []])
def test_only_booleans_are_booleans(value: Any) -> None:
    with pytest.raises(ReplyError, match="true or false"):
        items.truth(value, "sources_conflict")


def test_texts_and_lists() -> None:
    assert items.text(" x ", "reason") == "x"
    for value in (None, 1, ["x"]):
        with pytest.raises(ReplyError, match="reason must be a text"):
            items.text(value, "reason")
    assert items.listed({"spans": [1]}, "spans") == [1]
    assert items.listed({"spans": None}, "spans") == []
    for item in ({}, {"spans": "x"}, {"spans": {"quote": "x"}}):
        with pytest.raises(ReplyError, match="spans must be a list"):
            items.listed(item, "spans")


@pytest.mark.parametrize("reply", [None, [], "x", 3, [{}, {}], [[{}]]])
def test_one_object_is_one_object(reply: Any) -> None:
    with pytest.raises(ReplyError, match="one JSON object"):
        items.one_object(reply)


def test_a_long_value_is_shown_short() -> None:
    with pytest.raises(ReplyError) as caught:
        items.text(["x" * 1000], "reason")
    assert len(caught.value.fault) < 120


@pytest.mark.parametrize(
    "reply",
    [
        {"verdicts": [one(1), one(2, "no")]},
        {"verdicts": [one(2, "no"), one(1)]},
        [{"verdicts": [one(1), one(2, "no")]}],
        [one(1), one(2, "no")],
        {"verdicts": [one("1"), one(2.0, "NO ")]},
        {"verdicts": [one("１", "Yes"), one("٢", "no")], "comment": "ignored", "pass": True},
    ],
)
def test_reply_shapes_that_say_the_same(reply: Any) -> None:
    assert items.read_items(reply, SHAPE, range(1, 3)) == items.Reading(("yes", "no"), 0)


def test_a_single_item_without_its_list() -> None:
    assert items.read_items(one(1), SHAPE, range(1, 2)).values == ("yes",)


@pytest.mark.parametrize(
    "reply", [None, "yes", 3, {}, {"verdict": []}, {"verdicts": None}, {"verdicts": "yes"}, {"verdicts": {"1": "yes"}},
              [[one(1)]], [one(1), "yes"], [{"verdicts": []}, {"verdicts": []}], {"results": [one(1)]}]
)  # fmt: skip
def test_replies_of_another_shape_are_unparsed_and_keep_nothing(reply: Any) -> None:
    with pytest.raises(ReplyError) as caught:
        items.read_items(reply, SHAPE, range(1, 3))
    assert (caught.value.kind, caught.value.valid, caught.value.missing) == ("unparsed", {}, ())


@pytest.mark.parametrize(
    ("entries", "kind", "missing", "fault"),
    [
        ([one(1)], "incomplete", (2,), "claim 2 is missing"),
        ([], "incomplete", (1, 2), "claim 1 is missing; claim 2 is missing"),
        ([one(1), one(3)], "incomplete", (2,), "claim 2 is missing"),
        ([one(1), one(True)], "incomplete", (2,), "claim 2 is missing"),
        ([one(1), one(2, "maybe")], "unparsed", (2,), "claim 2: verdict must be one of yes, no, not 'maybe'"),
        ([one(1), one(2, None)], "unparsed", (2,), "not missing"),
        ([one(1), {"claim": 2}], "unparsed", (2,), "not missing"),
        ([one(1), one(2), one(2, "no")], "incomplete", (2,), "claim 2 is given 2 times with different answers"),
        ([one(1), one(2), one(2, "maybe")], "unparsed", (2,), "claim 2"),
        ([one(1), "yes"], "incomplete", (2,), "claim 2 is missing"),
    ],
)
def test_faulty_items_are_named_and_the_rest_is_kept(entries: list[Any], kind: str, missing: Any, fault: str) -> None:
    with pytest.raises(ReplyError) as caught:
        items.read_items({"verdicts": entries}, SHAPE, range(1, 3))
    assert (caught.value.kind, caught.value.missing) == (kind, missing)
    assert fault in caught.value.fault
    assert caught.value.valid == ({} if 1 in missing else {"verdicts": [one(1)], **dropped(entries)})


def test_out_of_range_outweighs_the_other_faults() -> None:
    shape = items.Shape("r", "doc", "document", lambda n, item: items.whole(item.get("s"), 0, 10, "score"), int)
    with pytest.raises(ReplyError) as caught:
        items.read_items({"r": [{"doc": 1, "s": "x"}, {"doc": 2, "s": 11}]}, shape, range(1, 5))
    assert (caught.value.kind, caught.value.missing) == ("out_of_range", (1, 2, 3, 4))


def test_a_long_list_of_faults_is_cut_with_its_length() -> None:
    with pytest.raises(ReplyError, match=r"claim 5 is missing; and 4 more$"):
        items.read_items({"verdicts": []}, SHAPE, range(1, 10))


@pytest.mark.parametrize(
    ("extra", "dropped"),
    [([], 0), ([one(3)], 1), ([one(0)], 1), ([one(-1), one(99)], 2), ([one(1)], 1), ([one(1), one(1)], 2),
     (["text"], 1), ([None], 1), ([{"verdict": "yes"}], 1), ([one("x")], 1)],
)  # fmt: skip
def test_unknown_and_repeated_items_are_dropped_and_counted(extra: list[Any], dropped: int) -> None:
    reading = items.read_items({"verdicts": [one(1), one(2), *extra]}, SHAPE, range(1, 3))
    assert reading.values == ("yes", "yes")
    assert reading.flags == ((f"dropped:{dropped}",) if dropped else ())


def test_a_window_asks_for_its_own_numbers() -> None:
    reading = items.read_items({"verdicts": [one(11), one(12, "no"), one(1)]}, SHAPE, range(11, 13))
    assert (reading.values, reading.dropped) == (("yes", "no"), 1)


def dropped(entries: list[Any]) -> dict[str, int]:
    """The count that a reply reduced to its valid items carries on."""
    known = [entry["claim"] for entry in entries if isinstance(entry, dict) and type(entry["claim"]) is int]
    count = len(entries) - len(set(known) & {1, 2})
    return {"dropped": count} if count else {}


def merged(previous: Mapping[str, Any], reply: Any) -> items.Reading[str]:
    return items.read_items(items.merge_items(previous, reply, SHAPE, range(1, 4)), SHAPE, range(1, 4))


def test_a_re_ask_adds_replaces_and_keeps() -> None:
    before = {"verdicts": [one(1), one(2)], "dropped": 1}
    assert merged(before, {"verdicts": [one(3, "no")]}).values == ("yes", "yes", "no")
    assert merged(before, [one(3, "no"), one(1, "no")]).values == ("no", "yes", "no")
    assert merged(before, one(3)).values == ("yes", "yes", "yes")
    assert merged(before, {"verdicts": [one(3), one(7)]}).flags == ("dropped:2",)


def test_an_invalid_new_item_never_displaces_a_valid_old_one() -> None:
    before = {"verdicts": [one(1), one(2)]}
    assert merged(before, {"verdicts": [one(3), one(1, "maybe")]}).values == ("yes", "yes", "yes")
    assert merged(before, {"verdicts": [one(3), one(1, "no"), one(1, "yes")]}).values == ("yes", "yes", "yes")


@pytest.mark.parametrize("reply", ["garbage", None, {}, {"verdicts": 3}, []])
def test_a_re_ask_that_fails_leaves_what_was_there(reply: Any) -> None:
    with pytest.raises(ReplyError) as caught:
        merged({"verdicts": [one(1), one(2)]}, reply)
    assert caught.value.missing == (3,)
    assert caught.value.valid["verdicts"] == [one(1), one(2)]


def test_a_re_ask_that_repeats_the_fault_names_it() -> None:
    with pytest.raises(ReplyError, match="unparsed: claim 3: verdict must be one of yes, no, not 'maybe'"):
        merged({"verdicts": [one(1), one(2)]}, {"verdicts": [one(3, "maybe")]})


def test_a_whole_re_ask_stands_alone() -> None:
    reply = {"verdicts": [one(1), one(2), one(3)]}
    assert items.merge_items({}, reply, SHAPE, range(1, 4)) is reply
    assert items.merge_items({"verdicts": []}, reply, SHAPE, range(1, 4)) is reply


entries = st.lists(
    st.builds(one, st.integers(-1, 5) | st.booleans() | st.none(), st.sampled_from(["yes", "no", "maybe", None, True])),
    max_size=8,
)


@given(entries)
def test_a_reply_is_read_whole_or_refused_with_all_it_lacks(given_entries: list[dict[str, Any]]) -> None:
    try:
        reading = items.read_items({"verdicts": given_entries}, SHAPE, range(1, 4))
    except ReplyError as error:
        kept = {entry["claim"] for entry in error.valid.get("verdicts", [])}
        assert error.missing and kept | set(error.missing) == {1, 2, 3} and not kept & set(error.missing)
    else:
        assert len(reading.values) == 3
        assert reading.dropped == len(given_entries) - 3


@given(entries, entries)
def test_merging_keeps_all_that_was_valid(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    def valid(read: Callable[[], Any]) -> set[int]:
        try:
            read()
        except ReplyError as error:
            return {1, 2, 3} - set(error.missing)
        return {1, 2, 3}

    before = valid(lambda: items.read_items({"verdicts": first}, SHAPE, range(1, 4)))
    after = valid(lambda: items.read_items({"verdicts": second}, SHAPE, range(1, 4)))
    assert valid(lambda: merged({"verdicts": first}, {"verdicts": second})) == before | after


def test_flags_are_joined_and_counts_added() -> None:
    assert items.joined_flags() == ()
    assert items.joined_flags(("b", "dropped:2"), ("a", "b"), ("dropped:10", "duplicate_claims:1")) == (
        "a", "b", "dropped:12", "duplicate_claims:1",
    )  # fmt: skip
