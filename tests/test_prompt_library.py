"""Prompts from folders and files: what is read, and every fault as one line that names file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jurimetrics.errors import InputError
from jurimetrics.prompts import Prompt
from jurimetrics.records import Record
from jurimetrics.variants.library import load_prompts


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return folder


MANY = """
[[prompts]]
name = "b"
user = '{question}'
tags = ["qa", "short"]

[[prompts]]
name = "a"
user = \"\"\"
Documents:
{contexts}
\"\"\"
system = "Be brief."
description = "Twö lines"
"""


def test_a_folder_is_a_library(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "prompts",
        {
            "zeta.md": "Q: {question}",
            "Many.TOML": MANY,
            "c.toml": 'user = "{answer} {x}"\nvariables = ["answer"]\n',
            "notes.txt": "no prompt",
            ".hidden.md": "+++ broken",
            "d.md": '+++\nname = "aa"\ntags = ["qa"]\nsystem = "S"\ndescription = "D"\nvariables = []\n+++\n{question}\n',
        },
    )
    write(folder / "inner", {"e.md": "deeper"})
    found = load_prompts(folder)
    assert found == [
        Prompt("a", "Documents:\n{contexts}\n", system="Be brief.", description="Twö lines"),
        Prompt("aa", "{question}", system="S", tags=("qa",), description="D", variables=()),
        Prompt("b", "{question}", tags=("qa", "short")),
        Prompt("c", "{answer} {x}", variables=("answer",)),
        Prompt("zeta", "Q: {question}"),
    ]
    assert load_prompts(str(folder)) == found
    assert [prompt.name for prompt in load_prompts(folder, tag="qa")] == ["aa", "b"]
    assert [prompt.name for prompt in load_prompts(folder / "Many.TOML")] == ["a", "b"]
    assert load_prompts(folder / "zeta.md")[0].messages(Record("1", question="Why?"))[0]["content"] == "Q: Why?"


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"one\r\n\r\ntwo\r\n", "one\r\n\r\ntwo"),
        (b"\n \n\t\n  indented\n  more  \n \n\n", "  indented\n  more  "),
        (b"\xef\xbb\xbfone\rtwo\r", "one\rtwo\r"),
        ("e\u0301 \u00e9 \u200b{question}\u00a0".encode(), "e\u0301 \u00e9 \u200b{question}\u00a0"),
        (b"+++\r\ntags = []\r\n+++\r\n\r\none\r\ntwo\r\n", "one\r\ntwo"),
        (b"+++ \n+++\none\n+++\ntwo", "one\n+++\ntwo"),
        (b"++++\none", "++++\none"),
        (b"\n+++\none", "+++\none"),
        (b'{"a": {"b": {question}}}', '{"a": {"b": {question}}}'),
        (b"one\x00two", "one\x00two"),
    ],
)
def test_a_text_is_kept_byte_for_byte_but_for_blank_lines_around_it(
    content: bytes, wanted: str, tmp_path: Path
) -> None:
    (prompt,) = load_prompts(write(tmp_path, {"p.md": content}) / "p.md")
    assert prompt.user == wanted
    assert prompt.version == Prompt("p", wanted).version


def test_a_long_text_with_many_blank_lines_is_read_at_once(tmp_path: Path) -> None:
    text = "x" + "\n" * 20_000 + "{question}" + " \n" * 20_000
    (prompt,) = load_prompts(write(tmp_path, {"p.md": text}) / "p.md")
    assert prompt.user == "x" + "\n" * 20_000 + "{question} "


FAULTS: list[tuple[str, str | bytes, str]] = [
    ("p.md", "", "user: the text of a prompt is needed, found a blank one"),
    ("p.md", " \n\n", "user: the text of a prompt is needed, found a blank one"),
    ("p.md", "+++\n+++\n", "user: the text of a prompt is needed, found a blank one"),
    ("p.md", "+++\ntags = []\ntext", 'line 1 is "+++", but no other line "+++" ends what it begins'),
    ("p.md", "+++\ntags = []\n\nname = \n+++\nx", "not TOML: Invalid value (at line 4, column 8)"),
    ("p.md", "+++\ntags = [\n+++\nx", "not TOML: Invalid value (at line 2, the end of it)"),
    ("p.md", "+++\ntag = 'qa'\n+++\nx", "tag: no key of a prompt; known: name, description, tags, system, variables"),
    ("p.md", "+++\nuser = 'a'\n+++\nx", 'user: what stands below the second "+++" is the user message'),
    ("p.md", "+++\ntags = 'qa'\n+++\nx", "tags: expected a list of names, found 'qa'"),
    ("p.md", "+++\ntags = [1]\n+++\nx", "tags: expected a list of names, found [1]"),
    ("p.md", "+++\nname = 7\n+++\nx", "name: expected text, found 7"),
    ("p.md", "+++\nname = ' '\n+++\nx", "name: expected one line of text without spaces around it, found ' '"),
    ("p.md", "+++\nsystem = ''' '''\n+++\nx", "system: expected a text, or none at all, found a blank one"),
    ("p.md", "+++\ndescription = true\n+++\nx", "description: expected text, found True"),
    ("p.md", "+++\nvariables = 'x'\n+++\n{x}", "variables: expected a list of names, found 'x'"),
    (
        "p.md", "+++\nvariables = ['x']\n+++\n{y}", "variables: 'x' is listed, but the text has no place {x}",
    ),
    ("p.md", b"one\ntwo \xff\n", "line 2 is not UTF-8"),
    ("p.toml", "", "user: needed, the text of the user message"),
    ("p.toml", "user = 'x'\nversion = 2\n",
     "version: no key of a prompt; known: name, description, tags, system, variables, user"),
    ("p.toml", "user = ['x']\n", "user: expected text, found ['x']"),
    ("p.toml", "user = \"x\n", "not TOML: Illegal character '\\n' (at line 1, column 10)"),
    ("p.toml", "user = 'x'\nuser = 'y'\n", "not TOML: Cannot overwrite a value (at line 2, column 11)"),
    ("p.toml", "user = 'x'\n[system]\ntext = 'y'\n", "system: expected text, found {'text': 'y'}"),
    ("p.toml", "prompts = []\n", "prompts: expected tables [[prompts]], found []"),
    ("p.toml", "[prompts]\nuser = 'x'\n", "prompts: expected tables [[prompts]], found {'user': 'x'}"),
    ("p.toml", "tags = ['qa']\n[[prompts]]\nname = 'a'\nuser = 'x'\n",
     "tags: expected nothing beside [[prompts]]; a key belongs to one of them"),
    ("p.toml", "[[prompts]]\nname = 'a'\nuser = 'x'\n[[prompts]]\nuser = 'y'\n",
     "prompts[1].name: needed, as there may be several prompts in this file"),
    ("p.toml", "[[prompts]]\nname = 'a'\nuser = 'x'\n[[prompts]]\nname = 'b'\n",
     "prompts[1].user: needed, the text of the user message"),
    ("p.toml", "[[prompts]]\nname = 'a'\nuser = ''\n", "prompts[0].user: the text of a prompt is needed, found a blank one"),
    ("p.toml", "[[prompts]]\nname = 'a'\nuser = 'x'\nusr = 1\n",
     "prompts[0].usr: no key of a prompt; known: name, description, tags, system, variables, user"),
    ("p.toml", "[[prompts]]\nname = 'a'\nuser = 'x'\n[[prompts]]\nname = 'a'\nuser = 'y'\n",
     'name: two prompts are called "a", here'),
    ("p.toml", "user = 'x'\nd = " + "[" * 5000 + "]" * 5000, "not TOML: nested too deeply"),
    ("p.txt", "x", "expected a .md or a .toml file"),
    ("p.md", "---\nmodel: m\ntags: [qa]\n---\nx", 'tags: front matter is TOML between two lines "+++", as in tags = ..., '
     'not YAML between "---"'),
    ("p.md", "---\r\nname: a\r\n---\r\nx", 'name: front matter is TOML between two lines "+++", as in name = ..., '
     'not YAML between "---"'),
    ("p.md", "+++\rtags = []\r+++\rx", "its lines end in a carriage return alone; save it with ends of lines as "
     "\\n or \\r\\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "words"), FAULTS, ids=[words[:40] for *_, words in FAULTS])
def test_every_fault_is_one_line_that_names_file_and_key(
    name: str, content: str | bytes, words: str, tmp_path: Path
) -> None:
    file = write(tmp_path, {name: content}) / name
    with pytest.raises(InputError) as found:
        load_prompts(file)
    assert str(found.value) == f"{file}: {words}"


@pytest.mark.parametrize(
    "text",
    ["---\nContext: {contexts}\n---\n{question}", "---\nname: {question}", "a\n---\nname: b\n---\nc", "---\n---\nx"],
)
def test_lines_of_a_text_are_no_front_matter_of_another_kind(text: str, tmp_path: Path) -> None:
    assert load_prompts(write(tmp_path, {"p.md": text}))[0].user == text


def test_a_readme_is_no_prompt_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"README.md": "# What lies here: {placeholders}"})
    with pytest.raises(InputError, match=r"no \.md or \.toml file in this folder beside the README$"):
        load_prompts(tmp_path)
    write(tmp_path, {"a.md": "{question}", "ReadMe.toml": "user = 'x'"})
    assert [prompt.name for prompt in load_prompts(tmp_path)] == ["a"]
    assert load_prompts(tmp_path / "README.md")[0].name == "README"  # whoever names it means it


def test_two_files_with_prompts_of_one_name(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "x", "b.toml": "name = 'a'\nuser = 'x'\n"})
    with pytest.raises(InputError) as found:
        load_prompts(tmp_path)
    assert (
        str(found.value) == f'{tmp_path / "b.toml"}: name: two prompts are called "a", here and in {tmp_path / "a.md"}'
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere", "nowhere: no such file or folder; expected a folder of .md and .toml files, or one of them"),
        ("empty", "empty: no .md or .toml file in this folder"),
        ("x" * 5000, "x" * 5000 + ": no such file or folder; expected a folder of .md and .toml files, or one of them"),
        ("~no-such-user/a", "~no-such-user/a: there is no such user, so no such folder"),
        ("", "expected the path of a folder or file, or prompts:/<name>, found ''"),
        (None, "expected the path of a folder or file, or prompts:/<name>, found None"),
        (["a.md"], "expected the path of a folder or file, or prompts:/<name>, found ['a.md']"),
        (
            "prompts:/",
            "expected prompts:/<name>, prompts:/<name>/<version> or prompts:/<name>@<alias>, found 'prompts:/'",
        ),
    ],
)
def test_a_source_that_is_none(source: Any, words: str, project: Path) -> None:
    (project / "empty").mkdir()
    with pytest.raises(InputError) as found:
        load_prompts(source)
    assert str(found.value) == words
    assert not (project / "mlruns").exists()


def test_a_tag_that_no_prompt_has_is_said_with_those_there_are(tmp_path: Path) -> None:
    write(
        tmp_path, {"a.md": "x", "b.toml": "user = 'x'\ntags = ['qa', 'law']\n", "c.toml": "user = 'y'\ntags = ['qa']\n"}
    )
    with pytest.raises(InputError) as found:
        load_prompts(tmp_path, tag="QA")
    assert str(found.value) == f'{tmp_path}: no prompt has the tag "QA"; tags: law, qa'
    with pytest.raises(InputError) as found:
        load_prompts(tmp_path / "a.md", tag="qa")
    assert str(found.value) == f'{tmp_path / "a.md"}: no prompt has the tag "qa"; no prompt has any tag'
    with pytest.raises(InputError, match="tag: expected text, found 3"):
        load_prompts(tmp_path, tag=3)  # type: ignore[arg-type]
