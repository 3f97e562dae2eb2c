"""A library of prompts: a folder of text and TOML files, one file, or MLflow's prompt registry."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jurimetrics import cells
from jurimetrics.errors import InputError
from jurimetrics.project import is_file, is_folder
from jurimetrics.prompts import Prompt

FENCE = "+++"
KEYS = ("name", "description", "tags", "system", "variables")
_SUFFIXES = (".md", ".toml")
_FENCE_LINE = re.compile(r"\+\+\+[ \t]*(?:\r?\n|\Z)")
_LONE_RETURN = re.compile(r"\+\+\+[ \t]*\r(?!\n)")
_YAML = re.compile(r"---[ \t]*\r?\n((?:.*\n)*?)---[ \t]*(?:\r?\n|\Z)")
_NEXT_FENCE = re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


def load_prompts(source: str | Path, *, tag: str | None = None) -> list[Prompt]:
    r"""Read prompts from a folder, a file, or an MLflow URI; sorted by name, only those with `tag` where one is given.

    A folder: every `.md` and `.toml` file in it; hidden ones, a README and inner folders are left out.

    `.md`: the user message, as it stands but for blank lines around it. Before it there may be TOML (no YAML) between two
    lines `+++` with the keys `name` (default: the file's name without its end), `description`, `tags`, `system` and
    `variables` (see `Prompt`).

    `.toml`: these keys and `user`, which is needed; or many prompts as `[[prompts]]` tables, each with a `name` of its
    own. TOML reads all ends of lines as "\n"; in a `.md` text they stay as they are.

    `prompts:/<name>/<version>`, `prompts:/<name>@<alias>` or `prompts:/<name>`: one prompt of the registry of the MLflow
    that `log_run` writes to.

    Raises `InputError` in one line that names file and key: for an unknown key, a wrong type, an empty text, two prompts
    of a name, nothing found, and a `tag` that no prompt has, with the tags that there are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = '+++\ntags = ["qa"]\nsystem = "Be brief."\n+++\n\nAnswer: {question}\n'
    ...     _ = Path(folder, "short.md").write_text(text, encoding="utf-8")
    ...     load_prompts(folder, tag="qa")[0].messages({"question": "Why?"})
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Answer: Why?'}]
    """
    if tag is not None and not isinstance(tag, str):
        raise InputError(f"tag: expected text, found {cells.show(tag)}")
    if isinstance(source, str) and source.startswith("prompts:/"):
        from jurimetrics.tracking.registry import load_registered

        return _tagged([load_registered(source)], tag, source)
    if not isinstance(source, (str, Path)) or not str(source).strip():
        raise InputError(f"expected the path of a folder or file, or prompts:/<name>, found {cells.show(source)}")
    return _tagged(_loaded(_path(source)), tag, str(source))


def _path(source: str | Path) -> Path:
    try:
        return Path(source).expanduser()
    except RuntimeError:
        raise InputError(f"{source}: there is no such user, so no such folder") from None


def _loaded(path: Path) -> list[Prompt]:
    owners: dict[str, Path] = {}
    found = []
    for file in _files(path):
        for prompt in _toml_prompts(file) if file.suffix.casefold() == ".toml" else [_text_prompt(file)]:
            if prompt.name in owners:
                first = "" if owners[prompt.name] == file else f" and in {owners[prompt.name]}"
                raise InputError(f'{file}: name: two prompts are called "{prompt.name}", here{first}')
            owners[prompt.name] = file
            found.append(prompt)
    return found


def _files(path: Path) -> list[Path]:
    if is_folder(path):
        try:
            found = [file for file in path.iterdir() if file.suffix.casefold() in _SUFFIXES and is_file(file)]
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error}") from None
        # It says to people what lies there. Sent to a model it would be a variant that nobody meant.
        prompts = [file for file in found if file.stem.casefold() != "readme" and not file.name.startswith(".")]
        if not prompts:
            beside = " beside the README" if found else ""
            raise InputError(f"{path}: no .md or .toml file in this folder{beside}")
        return sorted(prompts)
    if not is_file(path):
        raise InputError(f"{path}: no such file or folder; expected a folder of .md and .toml files, or one of them")
    if path.suffix.casefold() not in _SUFFIXES:
        raise InputError(f"{path}: expected a .md or a .toml file")
    return [path]


def _tagged(prompts: list[Prompt], tag: str | None, source: str) -> list[Prompt]:
    chosen = sorted((each for each in prompts if tag is None or tag in each.tags), key=lambda each: each.name)
    if not chosen:
        known = sorted({word for each in prompts for word in each.tags})
        there = f"tags: {', '.join(known)}" if known else "no prompt has any tag"
        raise InputError(f'{source}: no prompt has the tag "{tag}"; {there}')
    return chosen


def _text_prompt(file: Path) -> Prompt:
    text = _read(file)
    _refuse_other_fronts(file, text)
    table: Mapping[str, Any] = {}
    fence = _FENCE_LINE.match(text)
    if fence:
        end = _NEXT_FENCE.search(text, fence.end())
        if end is None:
            raise InputError(f'{file}: line 1 is "{FENCE}", but no other line "{FENCE}" ends what it begins')
        # A line for the fence, so that an error names the line of the file.
        table = _toml(file, "\n" + text[fence.end() : end.start()])
        text = text[end.end() :]
        if "user" in table:
            raise InputError(f'{file}: user: what stands below the second "{FENCE}" is the user message')
    return _prompt(file, "", {"name": file.stem, **table}, _without_blank_lines(text))


def _refuse_other_fronts(file: Path, text: str) -> None:
    """Raise `InputError` for what is meant as front matter and would be sent to the model as text."""
    if _LONE_RETURN.match(text):
        raise InputError(
            f"{file}: its lines end in a carriage return alone; save it with ends of lines as \\n or \\r\\n"
        )
    other = _YAML.match(text)
    named = [line.partition(":")[0].strip() for line in other[1].splitlines() if ":" in line] if other else []
    if key := next((name for name in named if name in KEYS), None):
        raise InputError(
            f'{file}: {key}: front matter is TOML between two lines "{FENCE}", as in {key} = ..., not YAML between "---"'
        )


def _toml_prompts(file: Path) -> Iterator[Prompt]:
    table = _toml(file, _read(file))
    if "prompts" not in table:
        yield _prompt(file, "", {"name": file.stem, **table})
        return
    others = [key for key in table if key != "prompts"]
    if others:
        raise InputError(f"{file}: {others[0]}: expected nothing beside [[prompts]]; a key belongs to one of them")
    many = table["prompts"]
    if not isinstance(many, list) or not many or not all(isinstance(each, Mapping) for each in many):
        raise InputError(f"{file}: prompts: expected tables [[prompts]], found {cells.show(many)}")
    for at, each in enumerate(many):
        if "name" not in each:
            raise InputError(f"{file}: prompts[{at}].name: needed, as there may be several prompts in this file")
        yield _prompt(file, f"prompts[{at}].", each)


def _prompt(file: Path, place: str, table: Mapping[str, Any], user: str | None = None) -> Prompt:
    known = KEYS if user is not None else (*KEYS, "user")
    unknown = [key for key in table if key not in known]
    if unknown:
        raise InputError(f"{file}: {place}{unknown[0]}: no key of a prompt; known: {', '.join(known)}")
    if user is None and "user" not in table:
        raise InputError(f"{file}: {place}user: needed, the text of the user message")
    given = table if user is None else {**table, "user": user}
    try:
        return Prompt(**given)
    except InputError as error:
        raise InputError(f"{file}: {place}{error}") from None


def _without_blank_lines(text: str) -> str:
    """`text` without the blank lines before and after it, and without the end of its last line."""
    lines = re.split(r"(\r?\n)", text)  # line, its end, line, its end, ..., line
    filled = [at for at, line in enumerate(lines) if line.strip(" \t\r\n")]
    return "".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{file}: line {line} is not UTF-8") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error}") from None


def _toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error).replace("at end of document", f"at line {len(text.splitlines())}, the end of it")
        raise InputError(f"{file}: not TOML: {' '.join(words.split())}") from None
    except RecursionError:
        raise InputError(f"{file}: not TOML: nested too deeply") from None
