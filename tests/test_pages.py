"""Pages as files: where they may go, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from jurimetrics.errors import InputError
from jurimetrics.results.pages import page_path, write_page


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("given", [None, 5, "a\0.html", b"a\0.html", ["a.html"]])
def test_what_is_no_path_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match=r"^x: expected the path of an \.html file, not "):
        page_path("x", given)


def test_a_name_that_is_too_long_is_refused_in_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    target = page_path("x", tmp_path / ("n" * 300 + ".html"))
    with pytest.raises(InputError, match=r"^x: .* cannot be written \(File name too long\)$"):
        write_page("x", target, "page")
    assert names(tmp_path) == []


def test_a_name_as_long_as_the_disk_takes_is_written(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250 + ".html")
    assert write_page("x", target, "page").read_text(encoding="utf-8") == "page" and names(tmp_path) == [target.name]


def test_what_was_there_stays_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.html" / "b").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be written"):
        write_page("x", tmp_path / "a.html", "page")
    assert names(tmp_path) == ["a.html"] and names(tmp_path / "a.html") == ["b"]


def test_a_link_goes_on_leading_to_the_page(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real.html").write_text("before", encoding="utf-8")
    (tmp_path / "link.html").symlink_to(tmp_path / "deep" / "real.html")
    write_page("x", tmp_path / "link.html", "after")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "deep" / "real.html").read_text(encoding="utf-8") == "after"


def test_who_may_read_it_is_decided_as_for_any_file(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        written = write_page("x", tmp_path / "private.html", "page")
    finally:
        os.umask(before)
    assert written.stat().st_mode & 0o777 == 0o600
