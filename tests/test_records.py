"""Records in and back: what each rule protects is said beside its case."""

from __future__ import annotations

import copy
import csv
import json
import pickle
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.records import Record, iter_records, load_records, records_frame, scan_duplicates

MISSING = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN")]


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="")
    return path


def one(**cells: Any) -> Record:
    (record,) = load_records([cells])
    return record


# ---- fields


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_every_way_to_be_missing_is_the_same(missing: Any) -> None:
    names = ["id", "question", "answer", "contexts", "reference", "variant", "group", "model", "latency_s", "cost_usd"]
    names += ["prompt_tokens", "completion_tokens", "answer_error", "metadata", "note"]
    record = one(**dict.fromkeys(names, missing))
    assert record == Record("1") == one(answer=None)
    assert not any(record.has(name) for name in ("question", "answer", "contexts", "reference"))


@pytest.mark.parametrize(
    ("contexts", "kept"),
    [
        ([], ()),
        ([""], ()),
        (["  ", "\n"], ()),  # a judge shown an empty document imagines support
        (["a", None, float("nan"), pd.NA, "b"], ("a", "b")),
        ("a lone text", ("a lone text",)),
        ('["a", "b"]', ('["a", "b"]',)),  # text that looks like a list is a list only in a CSV cell
        (("a",), ("a",)),
        (np.array(["a", "b"]), ("a", "b")),
        (pd.Series(["a", None]), ("a",)),
        (pd.array(["a", None]), ("a",)),
        ("", ()),
    ],
    ids=repr,
)
def test_contexts(contexts: Any, kept: tuple[str, ...]) -> None:
    record = one(answer="a", contexts=contexts)
    assert record.contexts == kept
    assert record.has("contexts") == bool(kept)


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_answer_is_a_non_answer_while_blank_question_and_reference_are_missing(blank: str) -> None:
    record = one(answer=blank, question=blank, reference=blank)
    assert record.answer == blank
    assert record.has("answer") and not record.has("question") and not record.has("reference")


@pytest.mark.parametrize("answer", [None, "", " ", float("nan")])
def test_an_error_without_an_answer_is_a_failed_generation(answer: Any) -> None:
    record = one(answer=answer, answer_error="timeout")
    assert record.answer is None and not record.has("answer") and record.answer_error == "timeout"


def test_an_error_beside_an_answer_keeps_both() -> None:
    assert one(answer="half a", answer_error="cut off").answer == "half a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (42, "42"),
        (42.0, "42"),
        (0.1, "0.1"),
        (np.float32(0.1), "0.1"),
        (np.int64(3), "3"),
        (True, "true"),
        (np.bool_(False), "false"),
        (1e300, "1e+300"),
        (float("inf"), "inf"),
        (Decimal("2.50"), "2.50"),
        ("NA", "NA"),
    ],
)
def test_a_number_or_truth_value_as_answer_is_its_text(value: Any, text: str) -> None:
    assert one(answer=value).answer == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("007", "007"),
        (7, "7"),
        (7.0, "7"),
        (np.int64(7), "7"),
        (np.float64(7), "7"),
        (7.5, "7.5"),
        (" a ", " a "),
        (Decimal("7"), "7"),
        (2**60, str(2**60)),
        ("", "1"),
        ("  ", "1"),
        (None, "1"),
    ],
)
def test_ids(value: Any, text: str) -> None:
    record = one(id=value, answer="a")
    assert record.id == text == record.group


def test_whole_numbers_beside_a_missing_one_are_still_whole() -> None:
    frame = pd.DataFrame({"id": [7, np.nan], "answer": ["a", "b"], "prompt_tokens": [12, np.nan]})
    assert [record.id for record in load_records(frame)] == ["7", "2"]
    assert [record.answer_prompt_tokens for record in load_records(frame)] == [12, None]


def test_lone_surrogates_are_replaced_everywhere_and_other_text_is_kept() -> None:
    line = '{"id": "\\ud83d", "answer": "cut \\ud83d", "contexts": ["\\ude00 \\ud83d\\ude00"], '
    line += '"n": {"\\ud83d": "\\ud83d"}}'
    (record,) = load_records([json.loads(line)])
    assert (record.id, record.answer, record.contexts) == ("\ufffd", "cut \ufffd", ("\ufffd \U0001f600",))
    assert record.metadata == {"n": {"\ufffd": "\ufffd"}}
    record_text = json.dumps(record.as_dict(), ensure_ascii=False)
    assert record_text.encode("utf-8").decode("utf-8") == record_text
    assert one(answer="a\x00b").answer == "a\x00b"


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"answer": {"text": "a"}}, ['column "answer"', "expected text", "{'text': 'a'}"]),
        ({"response": ["a"]}, ['column "response"', "expected text"]),
        ({"answer": b"a"}, ['column "answer"', "expected text"]),
        ({"query": pd.Timestamp("2024-01-01")}, ['column "query"', "expected text"]),
        ({"answer": "a", "documents": [["a"]]}, ['column "documents"', "document 1", "['a']"]),
        ({"answer": "a", "contexts": ["a", 3]}, ['column "contexts"', "document 2", "3"]),
        ({"answer": "a", "contexts": [{"text": "a"}]}, ['column "contexts"', "document 1"]),
        ({"answer": "a", "contexts": np.array([["a"], ["b"]])}, ['column "contexts"', "document 1"]),
        ({"answer": "a", "contexts": {"a": 1}}, ['column "contexts"', "list of strings"]),
        ({"answer": "a", "contexts": 3}, ['column "contexts"', "list of strings"]),
        ({"answer": "a", "id": True}, ['column "id"', "True"]),
        ({"answer": "a", "id": float("inf")}, ['column "id"', "inf"]),
        ({"answer": "a", "latency_s": "fast"}, ['column "latency_s"', "expected a number", "'fast'"]),
        ({"answer": "a", "latency_s": "nan"}, ['column "latency_s"', "expected a number", "'nan'"]),
        ({"answer": "a", "latency_s": "1,5"}, ["'1,5'"]),
        ({"answer": "a", "latency_s": "1_000"}, ["'1_000'"]),
        ({"answer": "a", "latency_s": True}, ["True"]),
        ({"answer": "a", "latency_s": [1]}, ["[1]"]),
        ({"answer": "a", "latency_s": 1e400}, ["expected a number", "inf"]),
        ({"answer": "a", "Cost_USD": -0.1}, ['column "Cost_USD"', "at least 0", "-0.1"]),
        ({"answer": "a", "prompt_tokens": -1}, ['column "prompt_tokens"', "at least 0"]),
        ({"answer": "a", "completion_tokens": 1.5}, ['column "completion_tokens"', "whole number", "1.5"]),
        ({"answer": "a", "metadata": {"note": 1}, "note": 2}, ["metadata", "note"]),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_kind_names_row_column_and_value(cells: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        load_records([{"answer": "good"} | {name: None for name in cells if name != "answer"}, cells][::-1])
    for part in ["the list", "row 1", *said]:
        assert part in str(caught.value)


# ---- the record itself


def test_a_record_is_a_value() -> None:
    notes: dict[str, Any] = {
        "topic": "law",
        "n": [1, {"deep": np.int64(2)}],
        "none": None,
        "at": pd.Timestamp("2024-01-01"),
    }
    record = Record("7", answer="a", contexts=["x", ""], metadata=notes, answer_cost_usd=0)  # type: ignore[arg-type]
    notes["n"].append(3)
    assert record.metadata == {"topic": "law", "n": [1, {"deep": 2}], "at": "2024-01-01T00:00:00"}
    with pytest.raises(TypeError):
        record.metadata["topic"] = "other"  # type: ignore[index]
    with pytest.raises(AttributeError):
        record.answer = "b"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == Record(**record.as_dict()) == record
    assert hash(record) == hash(copy.deepcopy(record))
    assert json.loads(json.dumps(record.as_dict(), allow_nan=False)) == record.as_dict()
    assert record.has("answer_cost_usd") and not record.has("answer_latency_s")


@pytest.mark.parametrize(
    "wrong", [{"id": None}, {"id": ""}, {"answer": []}, {"metadata": "x"}, {"answer_cost_usd": -1}]
)
def test_a_record_made_by_hand_is_checked_alike(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Record(**({"id": "1"} | wrong))


def test_asking_for_a_field_that_is_none_is_an_error() -> None:
    with pytest.raises(InputError, match="no field 'answr'"):
        Record("1").has("answr")


# ---- columns


NAMES = {
    "question": "question query user_input input",
    "answer": "answer response output prediction",
    "contexts": "contexts context retrieved_contexts retrieval_context documents",
    "reference": "reference ground_truth ground_truth_answer expected_answer expected_output expected_response",
    "id": "id item row_id",
    "variant": "variant system",
    "answer_model": "answer_model model",
}


@pytest.mark.parametrize(("field", "name"), [(f, n) for f, names in NAMES.items() for n in names.split()])
def test_names_of_other_tools(field: str, name: str) -> None:
    record = one(**{f" {name.upper()} ": "x"}, **({} if field == "answer" else {"answer": "a"}))
    assert getattr(record, field) == (("x",) if field == "contexts" else "x")


def test_the_answers_own_cost_and_time() -> None:
    record = one(answer="a", model="m", latency_s="1.5", prompt_tokens="12.0", completion_tokens=3.0, cost_usd=".01")
    assert (record.answer_latency_s, record.answer_prompt_tokens, record.answer_completion_tokens) == (1.5, 12, 3)
    assert (record.answer_model, record.answer_cost_usd) == ("m", 0.01)
    assert type(record.answer_prompt_tokens) is int


def test_unknown_columns_become_metadata_under_their_own_name() -> None:
    record = one(answer="a", Defect=" x ", score=np.float64(1.5), empty=None)
    assert record.metadata == {"Defect": " x ", "score": 1.5}


def test_two_columns_that_mean_the_same_are_refused_by_name() -> None:
    for source in ([{"answer": "a", "Response": "b"}], pd.DataFrame({"answer": ["a"], "Response": ["b"]})):
        with pytest.raises(InputError, match='"answer", "Response" mean the same'):
            load_records(source)


def test_columns_that_mean_the_same_are_refused_in_different_lines_too() -> None:
    with pytest.raises(InputError, match='"answer", "output" mean the same'):
        load_records([{"answer": "a"}, {"output": "b"}])


def test_a_chosen_column_goes_before_the_known_names() -> None:
    rows = [{"answer": "old", "My Output": "new", "response": "other"}]
    (record,) = load_records(rows, columns={"answer": "my output"})
    assert record.answer == "new" and record.metadata == {"answer": "old", "response": "other"}
    assert load_records(records_frame([record])) == [record]  # even though a metadata name is a field's


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"answer": "absent"}, 'no column "absent"; found "id", "text"'),
        ({"reply": "text"}, '"reply" means nothing here'),
        ({"answer": "text", "reference": "text"}, "two meanings"),
    ],
)
def test_a_wrong_choice_is_refused(columns: dict[str, str], said: str) -> None:
    for source in ([{"id": 1, "text": "a"}], pd.DataFrame({"id": [1], "text": ["a"]})):
        with pytest.raises(InputError, match=said):
            load_records(source, columns=columns)


def test_nothing_to_evaluate_names_the_columns_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'expected a column for answer or .*, found "id", "text"'):
        load_records(pd.DataFrame({"id": [1], "text": ["a"]}))
    with pytest.raises(InputError, match="separated by something other than commas"):
        load_records(write(tmp_path / "a.csv", "id|answer\n1|a\n"))


def test_a_frame_with_one_name_twice_is_refused() -> None:
    with pytest.raises(InputError, match="two columns are named 'answer'"):
        load_records(pd.DataFrame([["a", "b"]], columns=["answer", "answer"]))
    with pytest.raises(InputError, match="two columns are named 'note'"):
        load_records([{"answer": "a", "note": 1, " note": 2}])
    with pytest.raises(InputError, match="two columns are named '1'"):
        load_records([{"answer": "a", "1": 1, 1: 2}])


# ---- id and variant


@pytest.mark.parametrize(
    ("first", "second"), [("a", "a"), (1, "1"), (7, 7.0), ("7", np.int64(7)), (None, "1")], ids=repr
)
def test_the_same_id_twice_is_refused_with_both_rows(first: Any, second: Any) -> None:
    rows = [{"id": first, "answer": "right"}, {"id": "x", "answer": "x"}, {"id": second, "answer": "wrong"}]
    with pytest.raises(InputError, match=r"row 1 and row 3 have the same id '.' and variant ''"):
        load_records(rows)
    with pytest.raises(InputError, match="row 1 and row 3"):
        scan_duplicates(rows)
    handed_out = iter_records(iter(rows))
    assert [next(handed_out).answer, next(handed_out).answer] == ["right", "x"]
    with pytest.raises(InputError, match="row 1 and row 3"):
        next(handed_out)


def test_positions_in_a_file_name_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'id,answer,system\n1,"two\nlines",v\n\n1,b,w\n1,c,v\n')
    with pytest.raises(InputError, match=r"row 1 \(line 2\) and row 3 \(line 6\) have the same id '1' and variant 'v'"):
        load_records(path)


def test_how_many_more_records_repeat_a_key_is_said_of_what_can_be_gone_through(tmp_path: Path) -> None:
    rows = [{"id": key, "answer": "a"} for key in "abacab"]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for source in (rows, [Record(**row) for row in rows], pd.DataFrame(rows), path):
        with pytest.raises(
            InputError, match=r"have the same id 'a' and variant ''; 2 more rows repeat an id and variant$"
        ):
            scan_duplicates(source)
    with pytest.raises(InputError, match=r"and variant ''; 1 more row repeats an id and variant$"):
        load_records(rows[:5])
    with pytest.raises(InputError, match=r"row 1 and row 3 have the same id 'a' and variant ''$"):
        load_records([*rows, {"id": "d", "answer": "a", "latency_s": "slow"}])


def test_a_stream_that_repeats_a_key_is_read_no_further() -> None:
    stream = iter([{"id": key, "answer": "a"} for key in "aaab"])
    with pytest.raises(InputError, match=r"row 1 and row 2 have the same id 'a' and variant ''$"):
        list(iter_records(stream))
    assert [row["id"] for row in stream] == ["a", "b"]


def test_ids_that_look_alike_are_not_the_same() -> None:
    assert len(load_records([{"id": i, "answer": "a"} for i in ("7", "007", "7.0", " 7", "\uff17")])) == 5


def test_records_are_taken_as_they_are_and_checked_together() -> None:
    record = Record("7", answer="a")
    assert load_records([record])[0] is record
    with pytest.raises(InputError, match="row 1 and row 2"):
        load_records([record, {"id": 7, "answer": "b"}])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("content", ["", "\n", "\ufeff"])
def test_an_empty_file_holds_no_records(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(InputError, match="no records"):
        load_records(write(tmp_path / name, content))


def test_an_empty_table_holds_no_records(tmp_path: Path) -> None:
    source: Any
    empty = pd.DataFrame({"answer": pd.Series([], dtype="str")})
    empty.to_parquet(tmp_path / "a.parquet")
    for source in ([], empty, pd.DataFrame(), tmp_path / "a.parquet", write(tmp_path / "a.csv", "id,answer\n")):
        with pytest.raises(InputError, match="no records"):
            load_records(source)
    for wrong in ("text", 3, None):
        with pytest.raises(InputError, match="row 1: expected an object"):
            load_records([wrong])


# ---- CSV cells


def test_csv_text_is_never_taken_for_missing(tmp_path: Path) -> None:
    answers = ["NA", "None", "null", "nan", "N/A", "", "  ", '""']
    path = tmp_path / "a.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as out:
        csv.writer(out).writerows([[" id ", "Answer"], *((f"00{i}", answer) for i, answer in enumerate(answers))])
    records = load_records(str(path))
    assert [record.answer for record in records] == ["NA", "None", "null", "nan", "N/A", None, None, '""']
    assert [record.id for record in records] == [f"00{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ('["a", "b"]', ("a", "b")),
        (' ["a", null, ""] ', ("a",)),
        ("[]", ()),
        ("['a', \"it's\"]", ("a", "it's")),  # as DataFrame.to_csv prints a list
        ("one document", ("one document",)),
        ("[1] as the report says", ("[1] as the report says",)),
        ("[the report]", ("[the report]",)),
        ('{"a": 1}', ('{"a": 1}',)),
        ("", ()),
    ],
)
def test_contexts_in_a_csv_cell(tmp_path: Path, cell: str, kept: tuple[str, ...]) -> None:
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([["answer", "contexts"], ["a", cell]])
    assert load_records(tmp_path / "a.csv")[0].contexts == kept


def test_a_cell_that_only_looks_like_a_list_is_warned_about(tmp_path: Path) -> None:
    # A printed numpy array: as a Python literal its two strings would join into one that nobody wrote.
    path = write(tmp_path / "a.csv", "answer,contexts\na,['one' 'two']\n")
    with pytest.warns(UserWarning, match="looks like a list"):
        assert load_records(path)[0].contexts == ("['one' 'two']",)


def test_a_json_list_of_other_things_in_a_csv_cell_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'answer,contexts\na,"[""x"", 1]"\n')
    with pytest.raises(InputError, match=r'a\.csv: row 1 \(line 2\), column "contexts": .*document 2 is 1'):
        load_records(path)


# ---- the caller's own


def test_the_frame_is_not_changed_and_its_index_plays_no_part() -> None:
    frame = pd.DataFrame(
        {
            "Response ": np.array(["a", None, "c"], dtype=object),
            "contexts": [["x", ""], None, np.array(["y"], dtype=object)],
            "system": pd.Categorical(["v", "w", "v"]),
            "tokens": pd.array([1, None, 3], dtype="Int64"),
            "note": [{"a": [1]}, None, {"b": float("nan")}],
        },
        index=[9, 9, 1],
    )
    before, cells_before = copy.deepcopy(frame), copy.deepcopy([list(frame[name]) for name in frame])
    records = load_records(frame)
    assert [(r.id, r.variant, r.answer, r.contexts) for r in records] == [
        ("1", "v", "a", ("x",)),
        ("2", "w", None, ()),
        ("3", "v", "c", ("y",)),
    ]
    assert [dict(r.metadata) for r in records] == [
        {"tokens": 1, "note": {"a": [1]}},
        {},
        {"tokens": 3, "note": {"b": None}},
    ]
    pd.testing.assert_frame_equal(frame, before)
    assert repr([list(frame[name]) for name in frame]) == repr(cells_before)


def test_streaming_reads_what_loading_reads(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "".join(f'{{"id": {n}, "answer": "a"}}\n' for n in range(2500)))
    frame = pd.read_json(path, lines=True, dtype=False)
    frame.to_parquet(tmp_path / "a.parquet")
    expected = load_records(path)
    assert len(expected) == scan_duplicates(path) == 2500
    for source in (path, tmp_path / "a.parquet", frame, iter(expected)):
        assert list(iter_records(source)) == expected


# ---- round trips

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FILLED = TEXT.filter(lambda text: bool(text.strip()))
AMOUNT = st.none() | st.floats(0, 1e9)
COUNT = st.none() | st.integers(0, 2**40)
UNTIMED = settings(deadline=None)  # files on a shared machine: the time of one example says nothing
RECORDS = st.lists(
    st.builds(
        Record,
        id=FILLED,
        question=st.none() | FILLED,
        answer=st.none() | TEXT,
        contexts=st.lists(FILLED, max_size=3).map(tuple),
        reference=st.none() | FILLED,
        variant=st.just("") | FILLED,
        group=st.just("") | FILLED,
        answer_model=st.none() | FILLED,
        answer_latency_s=AMOUNT,
        answer_prompt_tokens=COUNT,
        answer_completion_tokens=COUNT,
        answer_cost_usd=AMOUNT,
        answer_error=st.none() | FILLED,
        metadata=st.fixed_dictionaries(
            {}, optional={"topic": FILLED, " input": FILLED, "n": st.integers(0, 9), "flag": st.booleans()}
        ),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda record: record.key,
)


@UNTIMED
@given(RECORDS)
def test_round_trip_through_a_frame(records: list[Record]) -> None:
    frame = records_frame(records)
    assert load_records(frame) == records
    assert frame["answer_prompt_tokens"].dtype == "Int64" and frame["answer_cost_usd"].dtype == "float64"


@UNTIMED
@given(RECORDS)
def test_round_trip_through_parquet(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> None:
    path = tmp_path_factory.mktemp("parquet") / "a.parquet"
    records_frame(records).to_parquet(path)
    assert load_records(path) == records


@UNTIMED
@given(RECORDS, st.booleans())
def test_round_trip_through_json_lines(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], ascii_only: bool
) -> None:
    lines = [json.dumps(record.as_dict(), ensure_ascii=ascii_only) for record in records]
    folder = tmp_path_factory.mktemp("json")
    assert load_records(write(folder / "a.jsonl", "\n".join(lines))) == records
    assert load_records(write(folder / "a.json", f"[{','.join(lines)}]")) == records


@UNTIMED
@given(RECORDS)
def test_round_trip_through_csv(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    frame = records_frame(records).astype("object")
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, quoting=csv.QUOTE_ALL)
        writer.writerow(frame.columns)
        writer.writerows(
            [
                ["" if value is None or value is pd.NA or value != value else value for value in row]
                for row in frame.itertuples(index=False, name=None)
            ]
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "contexts .* looks like a list", UserWarning)
        read = load_records(path)
    # What a CSV cell cannot say: a blank answer is a blank cell, and numbers in unknown columns are text.
    for record, original in zip(read, records, strict=True):
        answer = original.answer if (original.answer or "").strip() else None
        notes = {name: value if isinstance(value, str) else str(value) for name, value in original.metadata.items()}
        assert record == Record(**(original.as_dict() | {"answer": answer, "metadata": notes}))


def test_a_frame_written_by_pandas_comes_back(tmp_path: Path) -> None:
    records = [Record("007", answer='NA "quoted"\n', contexts=("it's", 'a "b"')), Record("8", contexts=("x",))]
    records_frame(records).to_csv(tmp_path / "a.csv", index=False)
    assert load_records(tmp_path / "a.csv") == records


@UNTIMED
@given(RECORDS, st.randoms())
def test_the_order_of_columns_changes_nothing(records: list[Record], random: Any) -> None:
    frame = records_frame(records)
    names = list(frame.columns)
    random.shuffle(names)
    assert load_records(frame[names]) == records
