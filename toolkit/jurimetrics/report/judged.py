"""The judges: who they are, how often they answered, how far they agree with one another, and what speaks against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from jurimetrics.display import count, percent
from jurimetrics.report.facts import Facts
from jurimetrics.report.labelled import labelled
from jurimetrics.report.markup import Column, Markup, Piece, beside, bullets, joined, paragraph, section, table, under
from jurimetrics.report.words import known, with_interval
from jurimetrics.results.reading import COMPUTED
from jurimetrics.stats.agreement import alpha_formula, krippendorff_alpha

_FEWEST_FOR_CONSTANT = 8
_NEARLY, _FEWEST_FOR_NEARLY = 0.95, 20
_MOST_RESAMPLED = 1_000
"""Rows up to which an interval of agreement takes no noticeable time."""
_MOST_APART = 5
_MOST_OWN = 6
_KINDS = {"chat": "chat model", "baseline": "built-in rules", "recorded": "recorded scores"}
_FLAGS = {
    "no_claims": "the answer makes no claims, or is blank",
    "undecided": "the panel had no majority on some verdict",
    "member_failed": "a member of the panel gave no valid reply",
    "verdict_like_text": "the answer holds text in the shape of a verdict, as if to sway the judge",
    "judge_disagreed_with_itself": "the judge's words and its score contradict each other",
    "reference_by_model": "the reference was written by a model",
    "abstained": "no judge was sure enough",
    "escalated": "passed on to a stronger judge",
    "dropped": "claims without support in the text were dropped",
    "spans_ignored": "quotes that are not in the answer were ignored",
}


def judged(facts: Facts) -> Markup:
    """The section of the judges."""
    if facts.summary.empty:
        return Markup("")
    if not facts.judges:
        return section("judges", "Judges", paragraph("No judge took part: every score is computed."))
    return section(
        "judges",
        "Judges, and how far they can be trusted",
        _who(facts),
        labelled(facts),
        under("Judges against each other", _together(facts), _apart(facts)),
        under("What speaks against a judge", bullets([*_constant(facts), *own_family(facts), *_flagged(facts)])),
    )


def _who(facts: Facts) -> Markup:
    declared = facts.settings.get("judges") or {}
    counts = facts.summary.groupby("judge", sort=False)[["asked", "ok", "failed"]].sum().to_dict("index")
    panel = [facts.panel] if facts.panel is not None and facts.panel in counts else []
    rows: list[list[Piece]] = []
    for name in [*panel, *facts.judges]:
        one = declared.get(name) or {}
        asked, scored, failed = (int(counts[name][column]) for column in ("asked", "ok", "failed"))
        kind = _KINDS.get(str(one.get("kind")))
        if name == facts.panel:
            kind = "cascade" if (facts.settings.get("panel") or {}).get("rule") == "cascade" else "panel"
        rows.append(
            [
                joined([str(name), beside("read first" if name == facts.judge and facts.several else "")]),
                kind or str(one.get("kind") or "-"),
                str(one.get("model") or "-"),
                str(one.get("family") or "-"),
                f"{scored:,} of {asked:,}",
                percent(failed / asked) if asked else "-",
            ]
        )
    columns = [
        Column("judge", "name"), Column("kind", "word"), Column("model", "word"), Column("family", "word"),
        Column("rows scored"), Column("failed"),
    ]  # fmt: skip
    return table("Who judged", columns, rows)


def own_family(facts: Facts) -> list[str]:
    """A line on the judges that come from where answers of a variant came from; none where none does."""
    from jurimetrics.variants.families import own_families

    found = own_families(facts.settings, facts.records[["variant", "answer_model"]])
    said = list(dict.fromkeys(text for (judge, _), text in found.items() if judge in facts.judges))
    more = f"; and {len(said) - _MOST_OWN:,} more" if len(said) > _MOST_OWN else ""
    return [f"A judge may prefer its own: {'; '.join(said[:_MOST_OWN])}{more}."] if said else []


def _members(facts: Facts) -> pd.DataFrame:
    return facts.scores[facts.scores["judge"].isin(facts.judges)]


def _together(facts: Facts) -> Markup:
    """How far the judges agree under each metric: alpha, how far their scores lie apart, how often pass and fail split."""
    if not facts.several:
        return Markup("")
    rows: list[list[Piece]] = []
    for metric, mine in _members(facts).groupby("metric", sort=False):
        wide = mine.pivot_table(index=["group", "id", "variant"], columns="judge", values="score", aggfunc="mean")
        both = wide[wide.notna().sum(axis=1) > 1]
        if both.empty:
            continue
        span = facts.span(str(metric))
        apart = (both.max(axis=1) - both.min(axis=1)).mean() / span
        means = " · ".join(f"{name} {mean:.2f}" for name, mean in wide.mean().items())
        rows.append([str(metric), f"{len(both):,}", _alpha(both, span), f"{apart:.0%}", _split(mine), means])
    columns = [
        Column("metric", "name"), Column("answers"), Column("alpha [95 % interval]"), Column("mean distance"),
        Column("pass and fail split"), Column("mean score of each judge", "text"),
    ]  # fmt: skip
    said = paragraph(
        "Alpha (Krippendorff, interval scale): 1 where judges agree, 0 where they agree as by chance. Distance: the highest "
        "minus the lowest score of an answer, as a share of the metric's range. Judges that agree may be wrong together.",
        kind="aside",
    )
    shown = table("Judges against each other, by metric", columns, rows)
    return Markup(shown.html + said.html) if rows else Markup("")


def _alpha(both: pd.DataFrame, span: float) -> str:
    # To a 500th of the range: alpha does not feel it, and its time and memory grow with the number of different scores.
    ratings = np.round(both.to_numpy(dtype=np.float64).T / span * 500)
    if len(both) <= _MOST_RESAMPLED:
        found = krippendorff_alpha(ratings, "interval", both.index.get_level_values("group").tolist())
        return with_interval(found.value, found.low, found.high)
    value = float(alpha_formula("interval")(ratings, np.ones((1, ratings.shape[1])))[0])
    return with_interval(value, None, None)


def _split(mine: pd.DataFrame) -> str:
    there = mine.dropna(subset=["passed"])
    if there.empty:
        return "-"
    passes = there.assign(passed=there["passed"].astype(float)).groupby(["id", "variant", "repeat"])["passed"]
    sides = passes.agg(["min", "max", "count"])
    sides = sides[sides["count"] > 1]
    return percent(float((sides["min"] != sides["max"]).mean())) if len(sides) else "-"


def _apart(facts: Facts) -> Markup:
    """The answers that judges are furthest apart about, with what each said."""
    if not facts.several:
        return Markup("")
    members = _members(facts)
    scored = members[members["status"] == "ok"]
    key = ["id", "variant", "metric", "repeat"]
    ends = scored.groupby(key, sort=False)["score"].agg(["max", "min", "count"]).reset_index()
    ends["apart"] = (ends["max"] - ends["min"]) / ends["metric"].map(facts.span).astype(float)
    widest = ends[(ends["count"] > 1) & (ends["apart"] > 0)].nlargest(_MOST_APART, "apart")
    rows: list[list[Piece]] = []
    for line in widest.to_dict("records"):
        same = members[(members["id"] == line["id"]) & (members["variant"] == line["variant"])]
        same = same[(same["metric"] == line["metric"]) & (same["repeat"] == line["repeat"])]
        named = f"{line['id']} · {line['variant']}" if line["variant"] else str(line["id"])
        about = joined([named, beside(str(line["metric"]))])
        rows.append([about, f"{line['apart']:.0%}", bullets([_said(row) for row in _rows(same)])])
    columns = [Column("answer", "name"), Column("distance"), Column("what each said", "text")]
    return table("Where the judges are furthest apart", columns, rows)


def _rows(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.to_dict("records")


def _said(row: dict[Any, Any]) -> str:
    score = f"{row['score']:.3g}" if known(row["score"]) else str(row["status"]).replace("_", " ")
    why = str(row["error"] or row["reason"])
    why = why if len(why) <= 300 else f"{why[:299]}…"
    return f"{row['judge']} {score}" + (f": {why}" if why else "")


def _constant(facts: Facts) -> Iterator[str]:
    """A line on each judge that gives (nearly) always the same score under a metric."""
    scored = facts.scores[(facts.scores["status"] == "ok") & (facts.scores["judge"] != COMPUTED)]
    for (judge, metric), mine in scored.groupby(["judge", "metric"], sort=False):
        counts = mine["score"].value_counts()
        often, n = int(counts.iloc[0]), len(mine)
        if len(counts) == 1 and n >= _FEWEST_FOR_CONSTANT:
            score = f"{counts.index[0]:g} to all of {count(n, 'answer')}"
            yield f"{judge} gives {score} under {metric}: that tells no answers apart."
        elif often / n >= _NEARLY and n >= _FEWEST_FOR_NEARLY:
            yield f"{judge} gives {counts.index[0]:g} to {percent(often / n)} of {count(n, 'answer')} under {metric}."


def _flagged(facts: Facts) -> Iterator[str]:
    """A line on each flag that rows of judges carry."""
    rows = facts.scores[facts.scores["judge"] != COMPUTED]
    seen = Counter(
        (str(flag).partition(":")[0], judge)
        for flags, judge in zip(rows["flags"], rows["judge"], strict=True)
        for flag in flags
    )
    for name in sorted({flag for flag, _ in seen}):
        per = ", ".join(f"{judge} {number:,}" for (flag, judge), number in sorted(seen.items()) if flag == name)
        meaning = f": {_FLAGS[name]}" if name in _FLAGS else ""
        yield f"Rows flagged {name}{meaning} ({per})."
