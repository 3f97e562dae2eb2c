"""Bias probes that ask nobody: what existing results show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jurimetrics as jm
import numpy as np
import pytest
from jurimetrics import metrics, probes
from leaning_judges import (
    FAIR,
    NOTE,
    QUIET,
    fair,
    rates,
    records,
)
from scripted_judge import ScriptedJudge


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
