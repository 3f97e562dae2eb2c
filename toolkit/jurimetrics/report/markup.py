"""Pieces of a page. What is not `Markup` is text of others: it is escaped wherever it is put in, and never an attribute."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jurimetrics.display import one_line, plain_text

_LONGEST_LINE = 300
MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML of the toolkit's own making.

    >>> Markup("<b>bold</b>").html
    '<b>bold</b>'
    """

    html: str


Piece: TypeAlias = str | Markup
Kind: TypeAlias = Literal["name", "word", "text", "number"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, a fixed text, and what stands in it: "name" heads the row, "number" stands at the
    right, a "word" is short, "text" may be long. It is left out where there is only "-" in it, unless `kept`.

    >>> Column("metric", "name").kind
    'name'
    """

    heading: str
    kind: Kind = "number"
    kept: bool = False


def put(piece: Piece, longest: int = _LONGEST_LINE) -> str:
    r"""A piece as HTML: text escaped, on one line, without controls, cut to `longest`.

    >>> put("<b>\x00"), put(Markup("<b>"))
    ('&lt;b&gt;\ufffd', '<b>')
    """
    return piece.html if isinstance(piece, Markup) else html.escape(one_line(piece, longest), quote=True)


def joined(pieces: Iterable[Piece], between: str = "") -> Markup:
    """Pieces one after the other; `between` is text.

    >>> joined(["a", Markup("<br>"), "<"], ", ").html
    'a, <br>, &lt;'
    """
    return Markup(html.escape(between).join(put(piece) for piece in pieces))


def prose(text: str, longest: int) -> Markup:
    """Text with its lines; of one longer than `longest` the beginning, and how much is left out.

    >>> prose("one\\ntwo <three>", 7).html
    'one\\ntwo<span class="jm-gap"> … 8 characters left out</span>'
    """
    shown = html.escape(plain_text(text[:longest]), quote=True)
    left = len(text) - longest
    gap = f'<span class="jm-gap"> … {left:,} characters left out</span>' if left > 0 else ""
    return Markup(f"{shown}{gap}")


def block(inner: Markup) -> Markup:
    """A text of others with its lines, in the direction of its script."""
    return Markup(f'<div class="jm-text" dir="auto">{inner.html}</div>')


def strong(text: str) -> Markup:
    """Text that stands out.

    >>> strong("B").html
    '<strong>B</strong>'
    """
    return Markup(f"<strong>{put(text)}</strong>")


def beside(text: str) -> Markup:
    """Text of lesser weight, on a line of its own below what it belongs to; "" is nothing."""
    return Markup(f'<span class="jm-beside">{put(text)}</span>' if text else "")


def paragraph(*pieces: Piece, kind: str = "") -> Markup:
    """A paragraph; `kind` is one of the classes of the style.

    >>> paragraph("1 < 2").html
    '<p>1 &lt; 2</p>'
    """
    return Markup(f"<p{_class(kind)}>{''.join(put(piece, 2_000) for piece in pieces)}</p>")


def bullets(items: Sequence[Piece], kind: str = "", most: int = MOST_ROWS) -> Markup:
    """A list, of which `most` items are shown; "" where there is none."""
    if not items:
        return Markup("")
    shown = "".join(f'<li dir="auto">{put(item, 1_500)}</li>' for item in items[:most])
    more = f"<li>{len(items) - most:,} more are not shown.</li>" if len(items) > most else ""
    return Markup(f"<ul{_class(kind)}>{shown}{more}</ul>")


def section(name: str, title: str, *parts: Markup) -> Markup:
    """A section of the page; `name` and `title` are fixed texts. Without any content it is left out.

    >>> section("notes", "Notes", Markup("")).html
    ''
    """
    inner = "".join(part.html for part in parts)
    return Markup(f'<section id="{name}"><h2>{title}</h2>{inner}</section>' if inner else "")


def under(title: str, *parts: Markup) -> Markup:
    """Parts under a heading of the third level; nothing where they are empty."""
    inner = "".join(part.html for part in parts)
    return Markup(f"<h3>{put(title)}</h3>{inner}" if inner else "")


def folded(title: str, *parts: Markup) -> Markup:
    """Parts that are shown when asked for; on paper only where they were opened before."""
    inner = "".join(part.html for part in parts)
    return Markup(f"<details><summary>{put(title)}</summary>{inner}</details>" if inner else "")


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Piece]],
    *,
    most: int = MOST_ROWS,
    named: bool = True,
) -> Markup:
    """A table with its caption, of which `most` rows are shown; nothing where there are no rows.

    On a phone the cells of a row stand below each other, each with its heading. `named=False` is for headings that came
    from data: such a table scrolls sideways instead.

    >>> "<td class=\\"jr-number\\" data-label=\\"n\\">&lt;3</td>" in table("Rows", [Column("n")], [["<3"]]).html
    True
    """
    if not rows:
        return Markup("")
    used = [
        at for at, one in enumerate(columns) if one.kept or one.kind == "name" or any(row[at] != "-" for row in rows)
    ]
    columns, rows = [columns[at] for at in used], [[row[at] for at in used] for row in rows]
    head = "".join(f'<th scope="col" class="jr-{one.kind}">{put(one.heading, 80)}</th>' for one in columns)
    body = "".join(
        f"<tr>{''.join(_cell(piece, one, named) for piece, one in zip(row, columns, strict=True))}</tr>"
        for row in rows[:most]
    )
    left = f"<p>{most:,} of {len(rows):,} rows are shown.</p>" if len(rows) > most else ""
    return Markup(
        f'<div class="jr-table{" jr-stack" if named else ""}" tabindex="0" role="region" aria-label="{put(caption)}">'
        f"<table><caption>{put(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{left}"
    )


def _cell(piece: Piece, column: Column, named: bool) -> str:
    label = f' data-label="{put(column.heading)}"' if named else ""
    if column.kind == "name":
        return f'<th scope="row" class="jr-name" dir="auto">{put(piece)}</th>'
    direction = "" if column.kind == "number" else ' dir="auto"'
    return f'<td class="jr-{column.kind}"{direction}{label}>{put(piece, 1_500)}</td>'


def _class(kind: str) -> str:
    return f' class="jr-{kind}"' if kind else ""
