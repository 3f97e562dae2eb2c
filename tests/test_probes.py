"""Bias probes: judges with known leanings are found, fair ones are not; money, multiplicity and drift."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics import metrics, probes
from jurimetrics.judges.judge import JudgeError, Reply, Request
from jurimetrics.judges.session import Session
from jurimetrics.probes import words
from jurimetrics.text import language_of, sentences
from scripted_judge import ScriptedJudge

QUICKSTART = Path(__file__).parents[1] / "experiments" / "quickstart" / "records.jsonl"
QUIET: dict[str, Any] = {"store": None, "progress": False}
ANSWERS = {
    "en": "The lock was built in {year}. It lifts boats by four metres.",
    "de": "Die Schleuse wurde {year} gebaut. Sie hebt die Boote um vier Meter.",
    "fr": "L'écluse a été construite en {year}. Elle lève les bateaux de quatre mètres.",
    "es": "La esclusa fue construida en {year}. Levanta los barcos cuatro metros.",
}
NOTE = jm.rubric("Note: how useful the answer is.", name="note", scale=(1, 5), threshold=3)


def records(number: int = 40, **more: Any) -> list[dict[str, Any]]:
    languages = list(ANSWERS)
    return [
        {"id": str(at), "answer": ANSWERS[languages[at % 4]].format(year=1800 + at), **more} for at in range(number)
    ]


def rates(points: Callable[[str], int]) -> Any:
    """A script that gives a base by the year in the answer (2 or 3) and `points` of the answer's text."""

    def script(task: Any, repeat: int) -> Any:
        year = int(next(word for word in task.answer.replace(".", " ").split() if word.isdigit()))
        return {"findings": "as scripted", "score": min(5, 2 + year % 2 + points(task.answer))}

    return script


def fair(answer: str) -> int:
    return 0


LIKES_LENGTH = ScriptedJudge("long", rates(lambda answer: int(len(answer) > 100)))
LIKES_LISTS = ScriptedJudge("lists", rates(lambda answer: int(answer.startswith("- "))))
LIKES_PLEAS = ScriptedJudge("soft", rates(lambda answer: 2 * any(plea in answer for plea in words.PLEA.values())))
OBEYS = ScriptedJudge("obeys", rates(lambda answer: 2 * any(order in answer for order in words.ORDER.values())))
FAIR = ScriptedJudge("fair", rates(fair))


# --- the changes ---


def test_changes_are_pure_and_the_same_every_time() -> None:
    given = jm.load_records(records(8, contexts=["one", "two", "three"], group="g", answer_model="m"))
    before = [record.as_dict() for record in given]
    for change in (probes.padded, probes.reformatted, probes.appealing, probes.reordered):
        one, other = change(given), change(given)
        assert one == other
        assert [record.as_dict() for record in given] == before
        # Everything but what the probe is about stays as it was.
        assert {record.group for record in one.records} == {"g"}
        assert {record.answer_model for record in one.records} == {"m"}
        assert len({record.key for record in one.records}) == len(one.records)


def test_added_text_is_in_the_language_of_the_answer() -> None:
    for language in words.LANGUAGES:
        texts = [*words.PADDING[language], words.PLEA[language], words.ORDER[language], words.NEUTRAL[language]]
        assert {language_of(text) for text in texts} == {language}, language
        assert all(len(sentences(text)) == 1 for text in texts), language
        lengths = [len(text[language]) for text in (words.PLEA, words.ORDER, words.NEUTRAL)]
        assert max(lengths) <= 1.6 * min(lengths), language
    for record in probes.padded(records(4)).records:
        assert language_of(record.answer or "") == list(ANSWERS)[int(record.id)]


def test_padding_grows_the_answer_by_its_share_and_keeps_it() -> None:
    for share in (0.5, 1.0, 2.0):
        made = probes.padded(records(4), share=share).records
        for was, now in zip(made[::2], made[1::2], strict=True):
            assert (now.answer or "").startswith(was.answer or "")
            assert len(now.answer or "") >= (1 + share) * len(was.answer or "")
    with pytest.raises(jm.InputError, match="share must be above 0"):
        probes.padded(records(1), share=0)


def test_what_cannot_be_changed_is_left_out_and_counted() -> None:
    given = [*records(2), {"id": "zh", "answer": "水闸建于一八八九年。"}, {"id": "none", "question": "When?"}]
    assert probes.padded(given).left_out == {"nothing to add in the language 'zh'": 1, "no answer": 1}
    assert probes.appealing(given, language="en").left_out == {"no answer": 1}
    assert probes.reformatted([*given, {"id": "list", "answer": "- one\n- two"}]).left_out == {
        "one sentence, and no heading in the language 'zh'": 1,
        "no answer": 1,
        "the answer is formatted already": 1,
    }
    with pytest.raises(jm.InputError, match="2 x fewer than two different documents"):
        probes.reordered(records(2, contexts=["same", "same"]))


def test_a_list_holds_the_same_sentences() -> None:
    made = {record.variant: record.answer or "" for record in probes.reformatted(records(1)).records}
    pieces = [line.removeprefix("- ") for line in made["[bullets]"].splitlines()]
    assert pieces == [piece.text for piece in sentences(made[""])]
    assert made["[heading]"] == f"## Answer\n\n{made['']}"


def test_documents_are_permuted_by_seed_and_id_and_none_is_lost() -> None:
    given = records(20, contexts=[f"document {at}" for at in range(5)])
    one, other = (probes.reordered(given, seed=seed).records for seed in (0, 1))
    assert one != other
    for was, now in zip(one[::2], one[1::2], strict=True):
        assert now.contexts != was.contexts
        assert sorted(now.contexts) == sorted(was.contexts)
    assert len({now.contexts for now in one[1::2]}) > 5


# --- probes that ask ---


@pytest.mark.parametrize(
    ("probe", "leaning", "effect", "points"),
    [
        (probes.verbosity, LIKES_LENGTH, "padded - as it was", 1.0),
        (probes.format, LIKES_LISTS, "bullets - as it was", 1.0),
        (probes.injection, LIKES_PLEAS, "plea - neutral sentence", 2.0),
        (probes.injection, OBEYS, "order - neutral sentence", 2.0),
    ],
)
def test_a_leaning_judge_is_found_and_a_fair_one_is_not(probe: Any, leaning: Any, effect: str, points: float) -> None:
    report = probe(records(), NOTE, [leaning, FAIR], **QUIET)
    found = report.line(judge=leaning.name, effect=effect)
    assert found.estimate.value == points
    assert found.estimate.n == found.groups == 40
    assert [(line.judge, line.effect) for line in report.found()] == [(leaning.name, effect)]
    for line in report.lines:
        if (line.judge, line.effect) != (leaning.name, effect):
            assert (line.estimate.value, line.p, line.p_adjusted) == (0.0, 1.0, 1.0)


def test_an_effect_that_varies_has_an_interval_on_the_scale_of_the_metric() -> None:
    noisy = ScriptedJudge(
        "noisy", rates(lambda answer: int(len(answer) > 100 and random.Random(answer).random() < 0.6))
    )
    line = probes.verbosity(records(), NOTE, noisy, **QUIET).line()
    assert line.estimate.low is not None
    assert line.estimate.high is not None
    assert 0 < line.estimate.low < (line.estimate.value or 0) < line.estimate.high < 1
    assert line.p is not None
    assert line.p <= 0.001


def test_intervals_go_by_group() -> None:
    given = [{**record, "group": f"g{at // 10}"} for at, record in enumerate(records())]
    line = probes.verbosity(given, NOTE, LIKES_LENGTH, **QUIET).line()
    assert line.groups == 4
    assert line.estimate.low is None
    assert "4 groups, 8 are needed" in line.estimate.method


@pytest.mark.parametrize("probe", [probes.injection, probes.order])
def test_the_baseline_heeds_neither_appeals_nor_order(probe: Any) -> None:
    given = jm.load_records(QUICKSTART)[::3]
    report = probe(given, "all", jm.BaselineJudge(), **QUIET)
    assert len(report.lines) >= 6
    assert report.frame["value"].tolist() == [0.0] * len(report.lines)
    assert report.frame["n"].min() > 20
    assert report.calls == 0


def test_what_cannot_show_the_effect_is_left_aside_and_named() -> None:
    given = records(9, question="When?", reference="1800", contexts=["The lock was built in 1800.", "Boats."])
    report = probes.verbosity(given, ["fluency", "f1", "context_precision"], jm.BaselineJudge(), **QUIET)
    assert set(report.frame["metric"]) == {"fluency"}
    assert any("f1 (no judge scores it)" in note for note in report.notes)
    assert any("context_precision (it does not see the answer)" in note for note in report.notes)
    with pytest.raises(jm.InputError, match="it goes by the order itself"):
        probes.order(given, "context_average_precision", jm.BaselineJudge(), **QUIET)
    with pytest.raises(jm.InputError, match="it compares variants"):
        probes.verbosity(given, metrics.consensus, jm.BaselineJudge(), **QUIET)


def test_money_is_planned_counted_and_bounded() -> None:
    judge = replace(FAIR, name="paid", asked=[])
    plan = probes.plan(probes.appealing(records(10)), NOTE, judge, store=None)
    assert plan.totals.calls == 30
    report = probes.injection(records(10), NOTE, judge, **QUIET)
    assert (report.calls, len(judge.asked)) == (30, 30)
    assert report.cost_usd == pytest.approx(0.03)
    assert "Took 30 calls, $0.03." in str(report)
    some = probes.injection(records(10), NOTE, judge, budget={"calls": 12}, **QUIET)
    assert some.calls <= 12
    missing = {line.effect: line.missing for line in some.lines}
    assert sum(missing.values()) >= 10
    assert any("lack a score" in note for note in some.notes)


def test_answers_that_were_judged_before_come_from_the_store(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    jm.evaluate(records(10), NOTE, FAIR, store=store, progress=False)
    report = probes.verbosity(records(10), NOTE, FAIR, store=store, progress=False)
    assert report.calls == 10


def test_a_misspelt_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="repeets"):
        probes.verbosity(records(2), NOTE, FAIR, repeets=2)  # type: ignore[call-arg]


def test_failures_leave_their_pair_out_and_are_counted() -> None:
    def script(task: Any, repeat: int) -> Any:
        if len(task.answer) > 150 and "180" in task.answer:
            return JudgeError("refused", "not this one")
        return rates(fair)(task, repeat)

    line = probes.verbosity(records(), NOTE, ScriptedJudge("balky", script), **QUIET).line()
    assert 0 < line.missing <= 10
    assert line.estimate.n == 40 - line.missing


def test_repeats_are_averaged() -> None:
    def script(task: Any, repeat: int) -> Any:
        return {"findings": "as scripted", "score": 2 + (repeat if len(task.answer) > 100 else 0)}

    line = probes.verbosity(records(), NOTE, ScriptedJudge("odd", script), repeats=2, **QUIET).line()
    assert line.estimate.value == 0.5
    assert line.estimate.n == 40


# --- multiplicity ---


def test_p_is_adjusted_for_all_lines_of_a_report_and_of_a_family() -> None:
    report = probes.injection(records(), NOTE, [OBEYS, FAIR, LIKES_PLEAS], **QUIET)
    frame = report.frame
    smallest = frame["p"].min()
    assert frame["p_adjusted"].min() == pytest.approx(len(frame) * smallest)
    other = probes.verbosity(records(), NOTE, [FAIR, LIKES_LENGTH], method="fdr_bh", **QUIET)
    both = probes.family(report, other)
    assert len(both) == 8
    assert both["p_adjusted"].min() == pytest.approx(8 * smallest)
    assert (both["p_adjusted"] >= pd.concat([frame, other.frame])["p"].to_numpy()).all()


def test_judges_without_leanings_are_seldom_accused() -> None:
    """12 noisy judges at once, 15 times: some are below .05 alone, hardly ever any after Holm."""
    alone = together = 0
    for seed in range(15):
        random_ = np.random.default_rng(seed)
        scores = pd.DataFrame(
            [
                {
                    "id": f"{at}",
                    "metric": "m",
                    "judge": f"j{judge}",
                    "score": float(random_.integers(1, 6)),
                    "group": f"{at}",
                }
                for at in range(30)
                for judge in range(12)
            ]
        )
        people = jm.load_labels(
            [{"id": f"{at}", "metric": "m", "label": int(random_.integers(1, 6))} for at in range(30)]
        )
        # Labels and scores have one distribution, so nobody is lenient.
        report = probes.leniency(jm.Results.from_frame(scores, {"m": {"range": (1, 5)}}), people)
        alone += bool((report.frame["p"] <= 0.05).any())
        together += bool(report.found())
    assert alone > together
    assert together <= 3


# --- probes that ask nobody ---


def two_variants(slope: float, number: int = 40) -> jm.Results:
    """A judge that gives `slope` points for each doubling of length, on long and short answers to the same questions."""
    base = "The lock was built long ago and boats pass it. "

    def script(task: Any, repeat: int) -> Any:
        worth = int(task.question.split()[-1]) % 2
        return {"findings": "as scripted", "score": round(2 + worth + slope * np.log2(len(task.answer) / len(base)))}

    given = [
        {"id": str(at), "variant": name, "question": f"When {at}", "answer": base * size}
        for at in range(number)
        for name, size in (("short", 1), ("long", 2))
    ]
    metric = jm.rubric("Note: useful?", name="note", scale=(1, 5), needs=("question", "answer"))
    return jm.evaluate(given, metric, ScriptedJudge("ann", script), **QUIET)


def test_length_within_records() -> None:
    found = probes.length(two_variants(1.0))
    line = found.line(effect="per doubling of length, within records")
    # Each long answer is twice as long, less the blank at its end.
    assert line.estimate.value == pytest.approx(1.0, abs=0.02)
    assert "confounded" in found.notes[0]
    assert probes.length(two_variants(0.0)).line().estimate.value == 0.0


def test_length_beyond_people_is_the_slope_of_the_difference() -> None:
    random_ = np.random.default_rng(0)
    given = [{"id": str(at), "answer": "x" * int(2 ** random_.uniform(4, 9))} for at in range(60)]
    results = jm.evaluate(
        given, NOTE, ScriptedJudge("ann", lambda task, _: {"findings": "", "score": min(5, len(task.answer) // 100 + 1)}),
        **QUIET,
    )  # fmt: skip
    scores = results.scores
    same = jm.load_labels(
        [{"id": row.id, "metric": "note", "label": row.score} for row in scores.itertuples()], selection="random"
    )
    assert probes.length(results, same).line().estimate.value == 0.0
    flat = jm.load_labels([{"id": row.id, "metric": "note", "label": 3} for row in scores.itertuples()])
    x = np.log2([len(record["answer"]) for record in given])
    found = probes.length(results, flat)
    assert found.line().estimate.value == pytest.approx(np.polyfit(x, scores["score"] - 3, 1)[0])
    assert found.notes == ()
    assert (found.line().p or 1) < 0.001


def test_language_and_its_refusal() -> None:
    stern = ScriptedJudge("stern", lambda task, _: {"findings": "", "score": 2 if "Schleuse" in task.answer else 4})
    found = probes.language(jm.evaluate(records(), NOTE, stern, **QUIET))
    values = {line.effect: line.estimate.value for line in found.lines}
    assert values["de - other languages"] == -2.0
    assert values["fr - other languages"] == pytest.approx(2 / 3)
    with pytest.raises(jm.InputError, match="two languages are needed, found en"):
        probes.language(jm.evaluate(records()[::4], NOTE, stern, **QUIET))


@dataclass(frozen=True)
class Kin(ScriptedJudge):
    """A scripted judge that says of whose family it is."""

    family: str = ""

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "family": self.family}


def kin_results() -> jm.Results:
    """`ann` of the family gpt adds a point to answers of gpt models; `bob` of llama adds none."""
    given = [
        {
            "id": str(at),
            "variant": name,
            "answer": f"The lock was built in {1800 + at} says {name}.",
            "answer_model": model,
        }
        for at in range(30)
        for name, model in (("A", "openai/gpt-4o"), ("B", "claude-5"))
    ]
    return jm.evaluate(
        given, NOTE,
        [Kin("ann", rates(lambda answer: int("says A" in answer)), family="gpt"), Kin("bob", rates(fair), family="llama")],
        **QUIET,
    )  # fmt: skip


def test_self_preference_with_and_without_labels() -> None:
    results = kin_results()
    bare = probes.self_preference(results)
    assert [line.judge for line in bare.lines] == ["ann"]
    assert bare.line().effect == "own family - others, beyond other judges"
    assert bare.line().estimate.value == pytest.approx(1.0)
    assert "quality is confounded" in bare.notes[0]
    people = results.scores[results.scores["judge"] == "bob"][["id", "variant", "metric", "score"]]
    held = probes.self_preference(results, jm.load_labels(people.rename(columns={"score": "label"})))
    assert held.line().estimate.value == pytest.approx(1.0)
    assert held.notes == ()
    # People who see in A what the judge sees take the preference away.
    mine = results.scores[results.scores["judge"] == "ann"][["id", "variant", "metric", "score"]]
    assert (
        probes.self_preference(results, jm.load_labels(mine.rename(columns={"score": "label"}))).line().estimate.value
        == 0
    )


def test_leniency_against_people_and_against_judges() -> None:
    results = kin_results()
    bare = probes.leniency(results)
    assert bare.line(judge="ann").estimate.value == 0.5
    assert bare.line(judge="bob").estimate.value == -0.5
    people = [
        {"id": row.id, "variant": row.variant, "metric": "note", "label": row.score - (row.judge == "ann")}
        for row in results.scores[results.scores["judge"] == "ann"].itertuples()
    ]
    held = probes.leniency(results, jm.load_labels([one for one in people if one["label"] >= 1]))
    assert held.line(judge="ann").estimate.value == 1.0
    alone = results.scores[results.scores["judge"] == "ann"][["id", "variant", "metric", "judge", "score"]]
    with pytest.raises(jm.InputError, match="one judge only"):
        probes.leniency(jm.Results.from_frame(alone))


def preferring(pick: Callable[[Any], str]) -> ScriptedJudge:
    return ScriptedJudge("picks", lambda task, _: {"a_findings": "x", "b_findings": "y", "winner": pick(task)})


def duels(number: int = 40) -> list[dict[str, Any]]:
    return [
        {"id": str(at), "variant": name, "question": f"When {at}?", "answer": f"In {1800 + at}, says {name}."}
        for at in range(number)
        for name in ("A", "B")
    ]


def test_position_of_preferences() -> None:
    metric = metrics.preference("A", "B")
    first = probes.position(jm.evaluate(duels(), metric, preferring(lambda task: "A"), **QUIET))
    assert first.line(effect="first both times - second both times").estimate.value == 1.0
    assert first.line(effect="first picks").estimate.value == 1.0
    assert first.line(effect="consistency").estimate.value == 0.0
    assert len(first.found()) == 1
    assert first.found()[0].p == pytest.approx(2 / 2**40)
    assert "40 went to the first shown both times and 0 to the second" in first.notes[0]

    def steady(task: Any) -> str:
        return "tie" if "1800" in task.first else "A" if "says A" in task.first else "B"

    fair_ = probes.position(jm.evaluate(duels(), metric, preferring(steady), **QUIET))
    assert fair_.line(effect="consistency").estimate.value == 1.0
    assert fair_.line(effect="first picks").estimate.value == 0.5
    assert fair_.line(effect="consistency").estimate.n == 39
    assert "1 pairs with a tie" in fair_.notes[0]
    assert fair_.found() == ()
    with pytest.raises(jm.InputError, match="no rows of preference or consensus"):
        probes.position(two_variants(0.0, 2))


def test_position_of_consensus() -> None:
    def script(task: Any, repeat: int) -> Any:
        numbers = range(1, len(task.answers) + 1)
        return {
            "findings": [{"answer": at, "note": "x"} for at in numbers],
            "scores": [{"answer": at, "score": 4 if at == 1 else 3} for at in numbers],
        }

    line = probes.position(jm.evaluate(duels(), metrics.consensus, ScriptedJudge("ann", script), **QUIET)).line()
    assert line.effect == "first place - last place"
    assert line.estimate.value == 1.0
    assert line.estimate.n == 40


def test_retest_from_repeats() -> None:
    def script(task: Any, repeat: int) -> Any:
        year = int(next(word for word in task.answer.replace(".", " ").split() if word.isdigit()))
        return {"findings": "", "score": 2 + year % 2 + (repeat if year % 10 == 0 else 0)}

    results = jm.evaluate(
        records(), NOTE, [ScriptedJudge("ann", script), ScriptedJudge("calm", rates(fair))], repeats=2, **QUIET
    )
    report = probes.retest(results)
    # Of 40 years 4 end in 0; each goes from 2 to 3 and so from fail to pass.
    assert report.line(judge="ann", effect="flip rate").estimate.value == pytest.approx(0.1)
    assert report.line(judge="ann", effect="within SD").estimate.value == pytest.approx(np.sqrt(0.1 * 0.5))
    assert report.line(judge="calm", effect="ICC(1,1)").estimate.value == pytest.approx(1.0)
    assert report.line(judge="calm", effect="kappa between runs").estimate.value == pytest.approx(1.0)
    assert report.frame["p"].isna().all()
    with pytest.raises(jm.InputError, match="nothing was asked again"):
        probes.retest(jm.evaluate(records(9), NOTE, FAIR, **QUIET))


def test_preferences_of_the_longer_and_of_the_own() -> None:
    """A judge of family gpt that always prefers the longer answer, which is gpt's own; people prefer it half the time."""
    given = [
        {**one, "answer": one["answer"] + " Indeed it was." * (one["variant"] == "A"),
         "answer_model": {"A": "gpt-4o", "B": "claude-5"}[one["variant"]]}
        for one in duels()
    ]  # fmt: skip

    def longer(task: Any, repeat: int) -> Any:
        return {"a_findings": "", "b_findings": "", "winner": "A" if len(task.first) > len(task.second) else "B"}

    metric = metrics.preference("A", "B")
    results = jm.evaluate(given, metric, Kin("ann", longer, family="gpt"), **QUIET)
    bare = probes.length(results)
    assert bare.line().effect == "longer preferred"
    assert (bare.line().estimate.value, bare.line().p) == (1.0, None)
    # One side's label says what the other side's would.
    people = jm.load_labels(
        [
            {
                "id": str(at),
                "variant": "AB"[at // 2 % 2],
                "metric": metric.name,
                "label": int((at % 2 == 0) == (at // 2 % 2 == 0)),
            }
            for at in range(40)
        ]
    )
    held = probes.length(results, people)
    assert held.line(effect="longer preferred by people").estimate.value == 0.5
    assert held.line(effect="longer preferred: judge - people").estimate.value == 0.5
    assert (held.line(effect="longer preferred: judge - people").p or 1) < 1e-4
    own = probes.self_preference(results, people)
    # It prefers its own in all 20 pairs where people do, and the other in none of the 20 where people do.
    assert own.line().effect == "equal opportunity difference"
    assert own.line().estimate.value == 1.0
    assert own.line().estimate.n == 40


# --- drift ---


@dataclass(frozen=True)
class Served(ScriptedJudge):
    """A scripted judge whose endpoint says who answered."""

    served: str | None = "m-1"
    mark: str | None = "fp-1"

    async def attempt(self, request: Request, session: Session) -> Reply:
        reply = await super().attempt(request, session)
        return replace(reply, trace=replace(reply.trace, model=self.served, fingerprint=self.mark))


def anchors(judge: Any, number: int = 40, **options: Any) -> jm.Results:
    return jm.evaluate(records(number), NOTE, judge, **{**QUIET, **options})


def test_no_drift_where_nothing_changed() -> None:
    before, after = anchors(Served("ann", rates(fair))), anchors(Served("ann", rates(fair)))
    found = probes.drift(before, after)
    assert found.steady
    assert found.alarms == found.undecided == found.notes == ()
    assert "no drift" in str(found)
    assert probes.refuse_across(before, after, found) == ""


def test_a_shift_of_scores_is_an_alarm() -> None:
    before = anchors(Served("ann", rates(fair)))
    after = anchors(Served("ann", rates(lambda answer: int(hash_of(answer) < 0.5))))
    found = probes.drift(before, after)
    assert len(found.alarms) == 1
    assert "note by ann moved by +" in found.alarms[0]
    assert found.shifts.loc[0, "low"] > 0
    assert found.alarms[0] in probes.refuse_across(before, after, found)
    alike = probes.drift(before, anchors(Served("ann", rates(lambda answer: 1))))
    assert alike.alarms == ("note by ann moved by +1 over 40 records",)


def hash_of(text: str) -> float:
    return random.Random(text).random()


def test_a_margin_alarms_where_chance_cannot_be_left_out() -> None:
    before = anchors(Served("ann", rates(fair)), number=6)
    after = anchors(Served("ann", rates(lambda answer: int("1800" in answer or "1801" in answer))), number=6)
    without = probes.drift(before, after)
    assert without.alarms == ()
    assert "8 are needed" in without.undecided[0]
    assert not without.steady
    beyond = probes.drift(before, after, margin=0.2)
    assert beyond.alarms == ("note by ann moved by +0.333 over 6 records, beyond the margin of 0.2",)
    with pytest.raises(jm.InputError, match="margin"):
        probes.drift(before, after, margin=-1)


@pytest.mark.parametrize(("change", "word"), [({"served": "m-2"}, "model m-1"), ({"mark": "fp-2"}, "fingerprint fp-1")])
def test_another_model_or_fingerprint_is_an_alarm(change: dict[str, str], word: str) -> None:
    before = anchors(Served("ann", rates(fair)))
    after = anchors(Served("ann", rates(fair), **change))
    found = probes.drift(before, after)
    assert len(found.alarms) == 1
    assert f"ann was served by the {word} and now by {next(iter(change.values()))}" in found.alarms[0]
    assert found.alarms[0] in probes.refuse_across(before, after)


def test_stored_answers_show_no_drift_and_say_so(tmp_path: Path) -> None:
    judge, store = Served("ann", rates(fair)), tmp_path / "store.db"
    before = anchors(judge, store=store)
    found = probes.drift(before, anchors(judge, store=store))
    assert found.alarms == ()
    assert "came from the store" in found.undecided[0]


def test_anchors_must_be_the_same_and_other_judges_are_refused() -> None:
    before = anchors(Served("ann", rates(fair)))
    other = jm.evaluate([{**one, "answer": f"{one['answer']} Indeed."} for one in records()], NOTE, FAIR, **QUIET)
    with pytest.raises(jm.InputError, match="40 answers differ"):
        probes.drift(before, other)
    again = anchors(replace(Served("ann", rates(fair)), model="other"))
    assert "judge ann is set up otherwise (model scripted and other)" in probes.refuse_across(before, again)


# --- shown ---


def test_a_report_shows_itself_in_text_and_html() -> None:
    report = probes.verbosity(records(), NOTE, LIKES_LENGTH, **QUIET)
    assert "padded - as it was" in str(report)
    assert "< 0.001" in str(report)
    assert "Took 80 calls" in report._repr_html_()
    with pytest.raises(jm.InputError, match="0 lines"):
        report.line(judge="nobody")
    moved = probes.drift(anchors(FAIR, 10), anchors(replace(FAIR, script=rates(lambda answer: 1)), 10))
    assert "Alarm: note by fair moved by +1" in moved._repr_html_()
