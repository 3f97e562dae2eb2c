"""Variants against each other: verdicts, places, what each judge sees, and quality against cost and latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from jurimetrics.display import dollars, percent
from jurimetrics.errors import InputError
from jurimetrics.report.facts import Facts
from jurimetrics.report.figures import picture
from jurimetrics.report.markup import Column, Markup, Piece, beside, bullets, joined, paragraph, section, table, under
from jurimetrics.report.words import decided, known, listed, with_interval
from jurimetrics.results.reading import COMPUTED
from jurimetrics.variants.compare import Comparison

_MOST_LINES = 100
_MOST_DRAWN = 40
_MOST_FIGURES = 3
_MOST_JUDGES = 8
_UNITS = {"answer_cost_usd": "cost", "answer_latency_s": "latency", "answer_tokens": "tokens"}


def compared(facts: Facts) -> Markup:
    """The section of the comparison; nothing where there is one variant."""
    found = facts.comparison
    if found is None:
        why = [paragraph(facts.why["comparison"])] if "comparison" in facts.why else []
        return section("comparison", "Comparison of variants", *why)
    against = "" if found.baseline is None else f" Every other variant is compared with {found.baseline}."
    said = (
        "A difference is decided where its interval leaves out 0. Interval and p of a line that is not exploratory hold for "
        f"all such lines together.{against}"
    )
    return section(
        "comparison",
        "Comparison of variants",
        paragraph(said),
        paragraph(facts.why["differences"]) if "differences" in facts.why else Markup(""),
        _lines(found),
        *_figures(found),
        bullets(list(found.notes), kind="aside"),
        under("Places", _places(facts, found)),
        under("What each judge sees", _each_judge(facts, found)),
    )


def _lines(found: Comparison) -> Markup:
    labelled = bool((found.frame["labelled"] > 0).any())
    rows: list[list[Piece]] = []
    for line in found.frame.to_dict("records"):
        ends = ("low", "high") if line["family"] != "primary" else ("simultaneous_low", "simultaneous_high")
        people = with_interval(line["corrected"], line["corrected_low"], line["corrected_high"])
        p = line["p_adjusted"] if line["family"] == "primary" else line["p"]
        said = [*([] if line["higher_is_better"] else ["lower is better"]),
                *([] if line["family"] == "primary" else ["exploratory"])]  # fmt: skip
        rows.append(
            [
                joined([str(line["metric"]), beside(", ".join(said))]),
                f"{line['b'] or '(no name)'} - {line['a'] or '(no name)'}",
                f"{int(line['n']):,}",
                joined([with_interval(line["difference"], line[ends[0]], line[ends[1]]), beside(_worst_case(line))]),
                *([people] if labelled else []),
                "-" if not known(p) else f"{p:.4f}" if p < 0.1 else f"{p:.2f}",
                f"{line['wins']:,} / {line['ties']:,} / {line['losses']:,}",
                _verdict(line),
            ]
        )
    columns = [
        Column("metric", "name"), Column("variants", "word"), Column("n"),
        Column(f"difference [{found.level * 100:g} %]"),
        *([Column("corrected by labels")] if labelled else []), Column("p"), Column("wins / ties / losses"),
        Column("verdict", "text"),
    ]  # fmt: skip
    return table("Differences between variants", columns, rows, most=_MOST_LINES)


def _worst_case(line: Mapping[Any, Any]) -> str:
    """How far scores that are missing on one side could move the difference."""
    if line["only_a"] + line["only_b"] == 0 or not known(line["worst_low"]):
        return ""
    return f"{line['worst_low']:z.2f} to {line['worst_high']:z.2f} with what is missing"


def _verdict(line: Mapping[Any, Any]) -> Piece:
    kind = "decided" if decided(line) else "open"
    return joined([Markup(f'<span class="jr-{kind}">'), str(line["verdict"]), Markup("</span>")])


def _figures(found: Comparison) -> Iterator[Markup]:
    """A picture for each unit: metrics of different ranges do not share an axis."""
    from jurimetrics.plots import differences

    spans = {sheet.metric: tuple(sheet.declared.get("range") or (0.0, 1.0)) for sheet in found.sheets}
    unit = found.frame["metric"].map(lambda metric: spans.get(metric, (0.0, 1.0))[1] - spans.get(metric, (0.0, 1.0))[0])
    for span in list(dict.fromkeys(unit))[:_MOST_FIGURES]:
        mine = found.frame[unit == span]
        if mine["difference"].notna().any() and len(mine) <= _MOST_DRAWN:
            yield picture(
                differences(replace(found, frame=mine)),
                f"Differences of mean scores with the intervals that decide them, of metrics whose range is {span:g} long; "
                "filled marks are decided. The numbers are those of the table above.",
            )


def _places(facts: Facts, found: Comparison) -> Markup:
    """The variants in order, where there are three or more and all pairs were compared."""
    if found.baseline is not None or len(facts.variants) < 3:
        return Markup("")
    from jurimetrics.variants.leaderboard import leaderboard

    rows: list[list[Piece]] = [
        [
            str(line["metric"]),
            "-" if pd.isna(line["rank"]) else f"{int(line['rank'])}",
            str(line["variant"]) or "(no name)",
            f"{int(line['best_rank'])} to {int(line['worst_rank'])}",
            f"{line['mean']:.2f}" if known(line["mean"]) else "-",
            f"{int(line['n']):,}",
        ]
        for line in leaderboard(found).to_dict("records")
    ]
    columns = [
        Column("metric", "name"), Column("place"), Column("variant", "word"), Column("places not ruled out"), Column("mean"),
        Column("n"),
    ]  # fmt: skip
    return table("Variants in order of their means over the records that all have a score for", columns, rows)


def _each_judge(facts: Facts, found: Comparison) -> Markup:
    """The mean difference by each judge alone, untested: whether they point the same way."""
    if not 1 < len(facts.judges) <= _MOST_JUDGES:
        return Markup("")
    scored = facts.scores[facts.scores["judge"].isin(facts.judges) & (facts.scores["status"] == "ok")]
    means = scored.pivot_table(index="id", columns=["metric", "judge", "variant"], values="score")
    rows: list[list[Piece]] = []
    for line in found.frame.head(_MOST_LINES).to_dict("records"):
        cells = [_difference(means, str(line["metric"]), judge, line["a"], line["b"]) for judge in facts.judges]
        if any(cell != "-" for cell in cells):
            rows.append([str(line["metric"]), f"{line['b'] or '(no name)'} - {line['a'] or '(no name)'}", *cells])
    columns = [Column("metric", "name"), Column("variants", "word"), *(Column(name) for name in facts.judges)]
    said = paragraph("Mean differences by each judge alone; none of them is tested here.", kind="aside")
    shown = table("Mean difference by each judge", columns, rows, named=False)
    return Markup(shown.html + said.html) if rows else Markup("")


def _difference(means: pd.DataFrame, metric: str, judge: str, a: str, b: str) -> str:
    if (metric, judge, a) not in means.columns or (metric, judge, b) not in means.columns:
        return "-"
    gap = (means[metric, judge, b] - means[metric, judge, a]).dropna()
    return f"{gap.mean():+z.2f}" if len(gap) else "-"


def traded(facts: Facts) -> Markup:
    """Quality against what an answer costs and how long it takes; nothing where neither is known."""
    if facts.comparison is None:
        return Markup("")
    metric = str(facts.comparison.frame["metric"].iloc[0])
    found = dict(_tradeoffs(facts, metric))
    if not found:
        return Markup("")
    first = next(iter(found.values()))
    rows: list[list[Piece]] = []
    for at, line in enumerate(first.to_dict("records")):
        cells: list[Piece] = [_amount(name, frame.iloc[at]) for name, frame in found.items()]
        quality = with_interval(line["quality"], line["quality_low"], line["quality_high"])
        rows.append([str(line["variant"]) or "(no name)", quality, f"{int(line['n']):,}", *cells])
    columns = [
        Column("variant", "name"), Column("quality [95 % interval]"), Column("n"),
        *(Column(f"{_UNITS[name]} of an answer") for name in found),
    ]  # fmt: skip
    judge = str(first["judge"].iloc[0])
    scored = "computed" if judge == COMPUTED else f"as {facts.by if judge == facts.judge else judge} scores it"
    return section(
        "tradeoff",
        "Quality against cost and latency",
        paragraph(f"Quality is {metric}, {scored}, over the records that all variants share."),
        table("Quality and what an answer takes, without what judging took", columns, rows),
        bullets([_front(name, frame) for name, frame in found.items()]),
        *(_front_picture(name, frame) for name, frame in found.items() if name != "answer_tokens" or len(found) == 1),
    )


def _front_picture(name: str, frame: pd.DataFrame) -> Markup:
    from jurimetrics.plots import pareto

    if frame["amount"].nunique() < 2:  # marks over each other, on an axis of one number
        return Markup("")
    axes = pareto(frame)
    axes.locator_params(axis="x", nbins=5)
    return picture(
        axes,
        f"Mean quality against the mean {_UNITS[name]} of an answer, one mark for each variant with both intervals; filled "
        "marks are beaten by no other variant. The numbers are those of the table above.",
    )


def _tradeoffs(facts: Facts, metric: str) -> Iterator[tuple[str, pd.DataFrame]]:
    from jurimetrics.variants.tradeoff import AGAINST, tradeoff

    assert facts.comparison is not None
    judge = str(facts.comparison.frame["judge"].iloc[0])
    for against in AGAINST:
        try:
            frame = tradeoff(facts.results, metric, against, judge=judge)
        except InputError:  # variants that share no record have no quality to hold against anything
            return
        if frame["front"].notna().any():
            yield against, frame


def _amount(name: str, line: pd.Series[Any]) -> Piece:
    value, known_of, n = float(line["amount"]), int(line["known"]), int(line["n"])
    if not known(value):
        return "unknown"
    shown = {"answer_cost_usd": dollars(value), "answer_latency_s": f"{value:.3g} s", "answer_tokens": f"{value:,.0f}"}
    return joined([shown[name], beside("" if known_of == n else f"known of {percent(known_of / n)}")])


def _front(name: str, frame: pd.DataFrame) -> str:
    best = [str(one) for one in frame.loc[frame["front"].fillna(False).astype(bool), "variant"]]
    return f"Beaten by no other variant in both quality and {_UNITS[name]}, going by the means alone: {listed(best)}."
