"""Reading files: encodings, CSV, JSON and Parquet as the field writes them; every fault names its place."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.tables import read_table


def rows_of(path: Path) -> list[dict[str, object]]:
    return [row.cells for row in read_table(path).rows]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


CELL = st.text(alphabet=st.sampled_from('a"\n\r,; \t\u2028é\x00\x85'), max_size=8)
SHEET = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=5))
QUOTING = st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])


@settings(deadline=None)  # files on a shared machine: the time of one example says nothing
@given(SHEET, QUOTING, st.sampled_from([("a.csv", ","), ("a.tsv", "\t")]))
def test_csv_reads_what_the_csv_module_writes(
    tmp_path_factory: pytest.TempPathFactory, sheet: list[list[str]], quoting: Any, kind: tuple[str, str]
) -> None:
    if quoting == csv.QUOTE_MINIMAL:  # the 3.11 writer leaves a lone carriage return unquoted
        sheet = [[cell.replace("\r", "") for cell in row] for row in sheet]
    names = [f"c{position}" for position in range(len(sheet[0]) if sheet else 1)]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=quoting, delimiter=kind[1]).writerows([names, *sheet])
    rows = list(read_table(write(tmp_path_factory.mktemp("csv") / kind[0], out.getvalue())).rows)
    assert [row.cells for row in rows] == [
        {name: cell if cell.strip() else None for name, cell in zip(names, row, strict=True)} for row in sheet
    ]
    # The line a row begins on: one more than the line ends written before it.
    before = [io.StringIO(newline="") for _ in rows]
    for position, prefix in enumerate(before):
        csv.writer(prefix, quoting=quoting, delimiter=kind[1]).writerows([names, *sheet[:position]])
    assert [row.line for row in rows] == [1 + len(list(io.StringIO(p.getvalue(), newline=""))) for p in before]


def test_a_huge_cell_is_read_and_the_limit_of_the_process_stays(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    huge = 'two\nlines and ""quotes"" ' * 100_000
    path = write(tmp_path / "a.csv", f'answer\n"{huge}"\n')
    rows = read_table(path).rows
    assert next(rows).cells == {"answer": huge.replace('""', '"')}
    assert len(huge) > before == csv.field_size_limit()
    with pytest.raises(csv.Error, match="field larger than field limit"):  # while our parser is still open
        list(csv.reader(["x" * len(huge)]))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_understood(tmp_path: Path, end: str) -> None:
    path = write(tmp_path / "a.csv", f"id,answer{end}1,one{end}{end}2,two{end}")
    assert [row["answer"] for row in rows_of(path)] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "id,answer\n1\n", ["row 1 (line 2)", "expected 2 cells", "found 1"]),
        ("a.csv", "id,answer\n1,a,b\n", ["row 1 (line 2)", "expected 2 cells", "found 3"]),
        ("a.csv", 'id,answer\n1,"a\nb"\n2,x,y\n', ["row 2 (line 4)"]),
        ("a.csv", 'id,answer\n1,"open\n2,b\n', ["row 1 (line 2)", "line 3: unexpected end", "never closed"]),
        ("a.csv", 'id,answer\n1,a\n\n2,"open\n3,"b"\n', ["row 2 (line 4)", "line 5: ',' expected", "never closed"]),
        ("a.csv", 'id,answer\n1,"a" b\n', ["row 1 (line 2)", "line 2: ',' expected", 'not written as ""']),
        ("a.tsv", 'id\tanswer\n1\t"a" \n', ["row 1 (line 2)", "line 2: '\t' expected", 'not written as ""']),
        ("a.csv", '\n"id,answer\n1,a\n', ["the header (line 2)", "line 3: unexpected end", "never closed"]),
        ("a.csv", "id,answer,id\n1,a,2\n", ["two columns are named 'id'", "id, answer, id"]),
        ("a.jsonl", '{"answer": "a"}\n{"answer": \n', ["row 2 (line 2)", "expected JSON"]),
        ("a.jsonl", '{"answer": "a", "answer": "b"}\n', ["row 1 (line 1)", "'answer' stands twice"]),
        ("a.jsonl", '{"answer": ' + "9" * 5000 + "}\n", ["row 1 (line 1)", "expected JSON"]),
        ("a.jsonl", "[" * 100_000 + "\n", ["row 1 (line 1)", "expected JSON"]),
        ("a.json", '{"answer": "a"}', ["array of objects", ".jsonl"]),
        ("a.json", '[{"answer": "a"},\n{]', ["line 2", "expected JSON"]),
        ("a.parquet", "no parquet", ["readable Parquet"]),
        ("a.xlsx", "", [".csv", ".parquet"]),
        ("a.csv", "id,answer\n1,é\n".encode("utf-16"), ["UTF-16", "as UTF-8 (in Excel: CSV UTF-8)"]),
        ("a.csv", "id,answer\n1,é\n".encode("utf-16-le"), ["UTF-16"]),
        ("a.jsonl", '{"answer": "é"}'.encode("utf-16-be"), ["UTF-16"]),
        (
            "a.csv",
            "id,answer\n1,a\n2,é\n".encode("latin-1"),
            ["0xE9", "line 3", "byte 17", "as UTF-8 (in Excel: CSV UTF-8)"],
        ),
        ("a.jsonl", b'{"answer": "a"}\n\xff\n', ["0xFF", "line 2", "byte 17"]),
    ],
)
def test_a_fault_names_the_file_and_the_place(tmp_path: Path, name: str, content: str | bytes, said: list[str]) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(InputError) as caught:
        rows_of(path)
    for part in [str(path), *said]:
        assert part in str(caught.value)


def test_excel_is_named_where_it_writes_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"save the file as UTF-8$"):
        rows_of(write(tmp_path / "a.jsonl", b"\xff"))


def test_a_file_that_is_not_there_is_said_before_any_row(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name in ("absent.csv", "folder.csv"):
        with pytest.raises(InputError, match=r"no such file"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("source", [{"answer": "a"}, b"a.csv", 3, None, pd.Series(["a"])])
def test_what_is_no_table_is_refused(source: object) -> None:
    with pytest.raises(InputError, match="expected a path, a DataFrame or a list"):
        read_table(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path, name: str) -> None:
    mark = "\t" if name == "a.tsv" else ","
    path = write(tmp_path / name, f"\ufeffid{mark}answer\n1{mark}a\n")
    assert rows_of(path) == [{"id": "1", "answer": "a"}]


def test_semicolons_separate_where_the_header_has_no_comma(tmp_path: Path) -> None:
    # What Excel saves as "CSV UTF-8" in much of Europe: a mark, semicolons, and commas that are text.
    excel = write(tmp_path / "a.csv", '\ufeffid;answer\r\n1;"Ja; 4,50 Euro"\r\n2;0,5\r\n')
    assert rows_of(excel) == [{"id": "1", "answer": "Ja; 4,50 Euro"}, {"id": "2", "answer": "0,5"}]
    quoted = write(tmp_path / "b.csv", '\n"id, own";"answer"\n1;a\n')
    assert rows_of(quoted) == [{"id, own": "1", "answer": "a"}]
    for header in ('"note;\nmore",answer', "note;more,answer"):
        (row,) = rows_of(write(tmp_path / "c.csv", f"{header}\n1;2,a\n"))
        assert list(row.values()) == ["1;2", "a"]
    with pytest.raises(InputError, match=r"row 1 \(line 2\): expected 2 cells .*, found 3; is a semicolon or"):
        rows_of(write(tmp_path / "d.csv", "id;answer\n1;a;b\n"))


def test_json_lines_end_only_where_a_line_ends(tmp_path: Path) -> None:
    texts = ["a\u2028b", "c\x85d", "e\x1cf"]
    path = write(tmp_path / "a.jsonl", "\ufeff" + "\n\n".join(json.dumps({"t": t}, ensure_ascii=False) for t in texts))
    table = read_table(path)
    rows = list(table.rows)
    assert [row.cells["t"] for row in rows] == texts
    assert [(row.number, row.line) for row in rows] == [(1, 1), (2, 3), (3, 5)]


def test_unnamed_columns_are_named_by_position(tmp_path: Path) -> None:
    # DataFrame.to_csv writes its index under no name; nothing of the file is thrown away for that.
    path = write(tmp_path / "a.csv", ",answer\n0,a\n")
    assert rows_of(path) == [{"column 1": "0", "answer": "a"}]


def test_a_frame_index_in_parquet_is_no_column(tmp_path: Path) -> None:
    pd.DataFrame({"answer": ["a", "b"]}, index=[5, 9]).to_parquet(tmp_path / "a.parquet")
    assert rows_of(tmp_path / "a.parquet") == [{"answer": "a"}, {"answer": "b"}]


def test_text_files_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "answer\n" + "good row\n" * 50_000 + '"never closed')
    rows = read_table(path).rows
    assert next(rows).cells == {"answer": "good row"}  # a reader of the whole file would have met the fault
    with pytest.raises(InputError, match="never closed"):
        list(rows)
