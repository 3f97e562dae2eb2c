"""The top of the page: what was evaluated, by whom, the sentences a reader needs, and what to bear in mind with them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from jurimetrics.display import count, dollars, percent
from jurimetrics.report.facts import Facts
from jurimetrics.report.judged import own_family
from jurimetrics.report.labelled import trusted
from jurimetrics.report.markup import Markup, Piece, bullets, joined, paragraph, put, strong
from jurimetrics.report.words import decided, known, listed, with_interval
from jurimetrics.results.parts import questions_of_models, references_told
from jurimetrics.results.unanswered import unanswered_notes

_MOST_SENTENCES = 6
_MOST_TRUSTED = 3


def default_title(facts: Facts) -> str:
    """What the page is called where nobody named it."""
    variants = facts.variants
    if 2 <= len(variants) <= 4:
        return f"{listed(variants)} compared"
    return f"Evaluation of {count(len(facts.records), 'answer')}"


def head(facts: Facts, title: str) -> Markup:
    """Everything above the first section."""
    lead = bullets([*sentences(facts), *trusted(facts)[:_MOST_TRUSTED]])
    found = [
        f'<header><h1 dir="auto">{put(title, 200)}</h1>',
        paragraph(about(facts), kind="about").html,
        f'<div class="jr-lead"><h2>What was found</h2>{lead.html}</div>',
        _key_figures(facts),
        "</header>",
    ]
    warned = bullets(list(warnings(facts)))
    if warned.html:
        found.append(f'<section id="mind" class="jr-mind"><h2>Bear in mind</h2>{warned.html}</section>')
    return Markup("".join(found))


def about(facts: Facts) -> str:
    """What was evaluated, by whom and when, in one sentence or two."""
    records, variants = len(facts.records), len(facts.variants)
    what = count(records, "answer")
    if variants > 1:
        what += f" ({count(facts.records['id'].nunique(), 'record')} under {count(variants, 'variant')})"
    metrics = count(facts.summary["metric"].nunique(), "metric")
    return f"{what}, {metrics}, {who(facts)}. {_made(facts)}"


def who(facts: Facts) -> str:
    """Who judged.

    The judges by name, or the panel with its rule and its members.
    """
    panel, judges = facts.settings.get("panel") or {}, facts.judges
    if panel and facts.panel in set(facts.summary["judge"]):
        members = [str(name) for name in panel.get("members") or judges]
        kind = "the cascade" if panel.get("rule") == "cascade" else "the panel"
        rule = "" if panel.get("rule") == "cascade" else f" (rule: {str(panel.get('rule')).replace('_', ' ')})"
        name = "" if panel["name"] in ("panel", "cascade") else f" {panel['name']}"
        return f"judged by {kind}{name} of {listed(members)}{rule}"
    return f"judged by {listed(judges)}" if judges else "computed, without any judge"


def _made(facts: Facts) -> str:
    made, version = facts.settings.get("created"), facts.settings.get("jurimetrics")
    parts = []
    if isinstance(made, str):
        parts.append(f"Evaluated {_day(made)}")
    if version:
        parts.append(f"jurimetrics {version}")
    return f"{', '.join(parts)}." if parts else ""


def _day(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment.tzinfo else f"{moment:%Y-%m-%d %H:%M}"


def sentences(facts: Facts) -> list[Piece]:
    """The sentences a reader needs: decided differences first, else the means that are read first."""
    if facts.comparison is None:
        lines = facts.headlines.to_dict("records")
        said = [_mean(facts, line) for line in lines[:_MOST_SENTENCES]]
        more = [f"{len(lines) - _MOST_SENTENCES:,} more lines stand in the summary."] if len(lines) > len(said) else []
        return [*said, *more] or ["There are no scores."]
    lines = facts.comparison.frame.to_dict("records")
    clear = [line for line in lines if decided(line)]
    found: list[Piece] = [
        joined([strong(f"{line['metric']}: "), f"{line['verdict']}."]) for line in clear[:_MOST_SENTENCES]
    ]
    if len(clear) > _MOST_SENTENCES:
        found.append(f"{len(clear) - _MOST_SENTENCES:,} more differences are decided.")
    primary = sum(line["family"] == "primary" for line in lines)
    if not clear:
        found.append(
            f"No difference between the variants is decided: none of {count(primary, 'comparison')} leaves out 0."
        )
        found += [_open(line) for line in lines[:3] if line["family"] == "primary"]
    elif primary > len(clear):
        metrics = list(
            dict.fromkeys(line["metric"] for line in lines if not decided(line) and line["family"] == "primary")
        )
        found.append(f"Not decided: {count(primary - len(clear), 'comparison')} ({listed(metrics, 12)}).")
    return found


def _open(line: dict[Any, Any]) -> Piece:
    return joined([strong(f"{line['metric']}: "), f"{line['verdict']}."])


def _mean(facts: Facts, line: dict[Any, Any]) -> Piece:
    of = f" of {line['variant']}" if len(facts.variants) > 1 or line["variant"] else ""
    if not known(line["mean"]):
        return joined([strong(f"{line['metric']}{of}: "), "no scores."])
    low, high = facts.settings["metrics"].get(line["metric"], {}).get("range") or (0.0, 1.0)
    scale = "" if (low, high) == (0, 1) else f" on a scale from {low:g} to {high:g}"
    direction = "" if line["higher_is_better"] else "; lower is better"
    passes = ""
    if known(line["pass_rate"]):
        side = "at least" if line["higher_is_better"] else "at most"
        passes = f"; {percent(line['pass_rate'])} pass ({side} {line['threshold']:g})"
    mean = with_interval(line["mean"], line["low"], line["high"])
    answers = count(int(line["n"]), "answer")
    return joined([strong(f"{line['metric']}{of}: "), f"mean {mean}{scale} over {answers}{passes}{direction}."])


def _key_figures(facts: Facts) -> str:
    asked, failed = int(facts.summary["asked"].sum()), int(facts.summary["failed"].sum())
    totals = facts.results.totals()
    spent = "unknown" if totals.cost_usd is None else dollars(totals.cost_usd)
    if totals.cost_usd is None and totals.at_least_usd > 0:
        spent = f"at least {dollars(totals.at_least_usd)}"
    pairs = [
        ("answers", f"{len(facts.records):,}"),
        ("variants", f"{len(facts.variants):,}"),
        ("metrics", f"{facts.summary['metric'].nunique():,}"),
        ("judges", f"{len(facts.judges):,}"),
        ("rows without a valid reply", f"{percent(failed / asked)}" if asked else "-"),
        ("cost of judging", spent),
    ]
    shown = "".join(f"<div><dt>{put(name)}</dt><dd>{put(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="jr-figures">{shown}</dl>'


def warnings(facts: Facts) -> Iterator[str]:
    """What changes how the sentences above are to be read, one line each."""
    settings = facts.settings
    if settings.get("interrupted"):
        yield "The evaluation was interrupted: what was done until then is here, and the rest is missing."
    kinds = {name: (settings.get("judges") or {}).get(name, {}).get("kind") for name in facts.judges}
    if kinds and set(kinds.values()) == {"baseline"}:
        yield (
            "The built-in baseline alone gave these scores. It compares words, numbers, names and negation and understands "
            "nothing: it is the floor that a real judge must beat, not a verdict."
        )
    if facts.judges and facts.agreement is None and not facts.calibrations:
        yield "No labels of people were given: these are scores of judges, and nothing here says how far they can be trusted."
    if not facts.alone and facts.several:
        why = "as was asked for" if facts.chosen else "the first of them"
        yield (
            f"No panel made one verdict of the judges' scores: those of {facts.by}, {why}, are read first, and the others "
            "stand beside."
        )
    if failed := int(facts.summary["failed"].sum()):
        yield (
            f"{count(failed, 'row')} of {int(facts.summary['asked'].sum()):,} have no score because no valid reply came; "
            "they are counted under Failures, and no number stands in for them."
        )
    lacking = facts.records[facts.records["answer"].isna()]
    yield from unanswered_notes(facts.scores, lacking, settings)
    yield from _references(facts)
    yield from own_family(facts)


def _references(facts: Facts) -> Iterator[str]:
    written = facts.settings.get("reference_models")
    if not isinstance(written, dict) or not written:
        return
    told = references_told(written, questions_of_models(facts.results.folder))
    by = listed([f"{model}, for {of}" for model, of in told.items()])
    metrics = facts.scores.loc[["reference_by_model" in flags for flags in facts.scores["flags"]], "metric"].unique()
    of = f" ({listed(list(metrics))})" if len(metrics) else ""
    yield (
        f"References were written by a model, not by people: {by}. Scores that compare with a reference{of} say how near "
        "an answer is to that model's."
    )
