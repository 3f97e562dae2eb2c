"""Live bias probes: judges with known leanings are found, fair ones are not; money and multiplicity."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics import metrics, probes
from jurimetrics.judges.judge import JudgeError
from jurimetrics.probes import words
from jurimetrics.text import language_of, sentences
from leaning_judges import (
    ANSWERS,
    FAIR,
    LIKES_LENGTH,
    LIKES_LISTS,
    LIKES_PLEAS,
    NOTE,
    OBEYS,
    QUICKSTART,
    QUIET,
    fair,
    rates,
    records,
)
from scripted_judge import ScriptedJudge

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
