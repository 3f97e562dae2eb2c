"""How everything was made: what wrote the answers, metrics, judges, options, prompts. Most of it is folded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jurimetrics.report.facts import Facts
from jurimetrics.report.markup import (
    Column,
    Markup,
    Piece,
    block,
    bullets,
    folded,
    paragraph,
    prose,
    put,
    section,
    table,
)

_LONGEST_VALUE = 200
_LONGEST_PROMPT = 12_000
_MOST_PROMPTS = 60
_ELSEWHERE = ("metrics", "judges", "panel", "prompts", "written_by", "notes", "rows", "variants", "calibrations")
"""Settings with a place of their own. The store is a path of one machine, which a page that is passed on need not name."""
_PRIVATE = ("store", "out", "folder")
_OF_JUDGES = ("model", "address", "family", "temperature", "seed", "max_tokens", "price", "price_as", "extra_body")


def written(facts: Facts) -> Markup:
    """The section on what wrote the answers; nothing where nobody said."""
    by = facts.settings.get("written_by")
    if not isinstance(by, Mapping) or not by:
        return Markup("")
    rows: list[list[Piece]] = []
    prompts = []
    for variant, one in by.items():
        said: Mapping[str, Any] = one if isinstance(one, Mapping) else {}
        version = f" ({said['prompt_version']})" if said.get("prompt_version") else ""
        settings = said.get("settings") or {}
        rows.append(
            [
                str(variant) or "(no name)",
                f"{said['prompt']}{version}" if said.get("prompt") else "-",
                str(said.get("model") or said.get("kind") or "-"),
                ", ".join(f"{name} {_value(value)}" for name, value in settings.items()) or "-",
            ]
        )
        texts = [{"role": role, "content": said.get(role)} for role in ("system", "user") if said.get(role)]
        prompts.append(folded(f"Prompt of {variant or 'the answers'}", *_messages(texts)))
    columns = [Column("variant", "name"), Column("prompt", "text"), Column("model", "text"), Column("settings", "text")]
    return section("written", "What wrote the answers", table("Variants", columns, rows), *prompts[:_MOST_PROMPTS])


def made(facts: Facts) -> Markup:
    """The section of the settings."""
    settings = facts.settings
    options = [
        [name.replace("_", " "), _value(value)]
        for name, value in settings.items()
        if name not in (*_ELSEWHERE, *_PRIVATE) and value not in (None, "", [], {})
    ]
    panel = [[name.replace("_", " "), _value(value)] for name, value in (settings.get("panel") or {}).items()]
    pair = [Column("setting", "name"), Column("value", "text")]
    return section(
        "settings",
        "Settings",
        folded("Metrics", _metrics(settings)),
        folded("Judges", _judges(settings)),
        folded("Panel", table("The panel", pair, panel)),
        folded("Evaluation", table("How it was evaluated", pair, options)),
    )


def _metrics(settings: Mapping[str, Any]) -> Markup:
    rows: list[list[Piece]] = []
    for name, one in settings["metrics"].items():
        low, high = one.get("range") or (0.0, 1.0)
        threshold = one.get("threshold")
        from_data = " (taken from the data)" if one.get("range_from_data") else ""
        rows.append(
            [
                str(name),
                f"{low:g} to {high:g}{from_data}",
                "higher" if one.get("higher_is_better", True) else "lower",
                "-" if threshold is None else f"{threshold:g}",
                ", ".join(map(str, one.get("needs") or ())) or "-",
                str(one.get("version") or "-"),
            ]
        )
    columns = [
        Column("metric", "name"), Column("range"), Column("better"), Column("threshold"), Column("needs", "text"),
        Column("version", "text"),
    ]  # fmt: skip
    return table("Metrics", columns, rows)


def _judges(settings: Mapping[str, Any]) -> Markup:
    rows: list[list[Piece]] = []
    for name, one in (settings.get("judges") or {}).items():
        said = [
            f"{key.replace('_', ' ')} {_value(one[key])}" for key in _OF_JUDGES if one.get(key) not in (None, "", {})
        ]
        rows.append([str(name), str(one.get("kind") or "-"), ", ".join(said) or "-"])
    return table("Judges", [Column("judge", "name"), Column("kind", "text"), Column("settings", "text")], rows)


def prompted(facts: Facts) -> Markup:
    """The section of the prompts that judges were asked with, each folded."""
    prompts = facts.settings.get("prompts")
    if not isinstance(prompts, Mapping) or not prompts:
        return Markup("")
    shown = list(_prompts(prompts))
    left = len(shown) - _MOST_PROMPTS
    more = paragraph(f"{left:,} more are not shown.") if left > 0 else Markup("")
    return section(
        "prompts",
        "Prompts of the judges",
        paragraph(
            "With stand-ins where the texts of a record stand. Folded parts are printed only where they are open."
        ),
        *shown[:_MOST_PROMPTS],
        more,
    )


def _prompts(prompts: Mapping[str, Any]) -> Iterator[Markup]:
    for name, one in prompts.items():
        messages = one.get("messages") if isinstance(one, Mapping) else None
        yield folded(str(name), *_messages(messages if isinstance(messages, list) else []))


def _messages(messages: list[Any]) -> Iterator[Markup]:
    for message in messages:
        if isinstance(message, Mapping):
            content = message.get("content")
            text = content if isinstance(content, str) else _value(content)
            yield Markup(
                f"<h3>{put(str(message.get('role') or 'message'), 40)}</h3>{block(prose(text, _LONGEST_PROMPT)).html}"
            )


def noted(facts: Facts) -> Markup:
    """The section of the notes, as `Results.notes` has them."""
    return section("notes", "Notes", bullets(list(facts.results.notes())))


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
