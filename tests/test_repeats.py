"""Repeats of one judge: its disagreement with itself is shown, and so is an endpoint that changes on the way."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.display import results_html, summary_text
from jurimetrics.judges.judge import Reply, Request
from jurimetrics.judges.session import Session
from scripted_judge import ScriptedJudge, answer_all

RECORDS = [{"id": str(at), "answer": f"Bread {at} is baked."} for at in range(4)]
HARM = jm.rubric("Harm: how harmful the answer is.", name="harm", scale=(0, 5), higher_is_better=False, threshold=2)
BENIGN = "nothing in it is harmful"


def says(score: Any) -> Any:
    return lambda task, repeat: {"findings": BENIGN, "score": score(task, repeat)}


@dataclass(frozen=True)
class Served(ScriptedJudge):
    """A scripted judge whose endpoint says under which fingerprint and model each request was answered."""

    marks: tuple[str | None, ...] = (None,)
    models: tuple[str, ...] = ("scripted",)

    async def attempt(self, request: Request, session: Session) -> Reply:
        at = len(self.asked)
        reply = await super().attempt(request, session)
        mark, model = self.marks[at % len(self.marks)], self.models[at % len(self.models)]
        return replace(reply, trace=replace(reply.trace, fingerprint=mark, model=model))


def run(judge: Any, metrics: Any = (HARM,), repeats: int = 1, **options: Any) -> jm.Results:
    return jm.evaluate(RECORDS, list(metrics), judge, store=options.pop("store", None), repeats=repeats, **options)


def test_j14_a_judge_that_contradicts_itself_is_shown_to() -> None:
    found = run(ScriptedJudge("fake", says(lambda task, repeat: 5 * (repeat % 2))), repeats=4)
    line = found.summary().iloc[0]
    # 0, 5, 0, 5: variance 4 x 2.5^2 / 3; of six pairs four differ.
    assert line["within_sd"] == pytest.approx(math.sqrt(25 / 3)) and line["flip_rate"] == pytest.approx(4 / 6)
    note = (
        "Asked again about the same answer, a judge gives other scores: harm by fake "
        "(standard deviation 2.9, 67% of pairs flip between pass and fail)."
    )
    assert note in found.notes() and note in summary_text(found, 200) and note in results_html(found)


def test_j14_score_and_reason_stay_side_by_side() -> None:
    found = run(ScriptedJudge("fake", says(lambda task, repeat: 5 * (repeat % 2))), repeats=2)
    rows = found.scores[["repeat", "score", "reason"]].drop_duplicates().to_numpy().tolist()
    assert rows == [[0, 0.0, BENIGN], [1, 5.0, BENIGN]]


def test_s10_a_coin_gives_spread_over_five_repeats() -> None:
    coin = random.Random(7)
    thrown = {(at, repeat): coin.choice([0, 5]) for at in range(4) for repeat in range(5)}
    judge = ScriptedJudge("fake", says(lambda task, repeat: thrown[int(task.answer.split()[1]), repeat]))
    line = run(judge, repeats=5).summary().iloc[0]
    variances, flips = [], []
    for at in range(4):
        values = [thrown[at, repeat] for repeat in range(5)]
        mean = sum(values) / 5
        variances.append(sum((value - mean) ** 2 for value in values) / 4)
        flips.append(values.count(0) * values.count(5) / 10)
    assert line["within_sd"] == pytest.approx(math.sqrt(sum(variances) / 4)) and line["within_sd"] > 0
    assert line["flip_rate"] == pytest.approx(sum(flips) / 4) and line["n"] == 4


def test_a_steady_judge_has_no_note() -> None:
    found = run(ScriptedJudge("fake", says(lambda task, repeat: 3)), repeats=3)
    line = found.summary().iloc[0]
    assert (line["within_sd"], line["flip_rate"]) == (0.0, 0.0)
    assert not [note for note in found.notes() if "Asked again" in note]
    once = run(ScriptedJudge("fake", says(lambda task, repeat: 5)))
    assert math.isnan(once.summary().loc[0, "within_sd"]) and not [n for n in once.notes() if "Asked again" in n]  # type: ignore[arg-type]


def test_a_metric_without_threshold_flips_nothing() -> None:
    judge = ScriptedJudge("fake", says(lambda task, repeat: 5 * (repeat % 2)))
    found = run(judge, repeats=2).with_thresholds({"harm": None})
    assert math.isnan(found.summary().loc[0, "flip_rate"])  # type: ignore[arg-type]
    assert "harm by fake (standard deviation 3.5)." in " ".join(found.notes())


def test_the_least_steady_come_first_and_the_rest_are_counted() -> None:
    rubrics = [jm.rubric(f"Harm {at}?", name=f"harm{at}", scale=(0, 5), threshold=2) for at in range(7)]

    def score(task: Any, repeat: int) -> int:
        at = int(task.criterion.removeprefix("harm"))
        return at if repeat == 0 else 0  # 0 and 1 fail both times; 2 and more flip

    note = next(
        n
        for n in run(ScriptedJudge("fake", says(lambda t, r: min(5, score(t, r)))), rubrics, 2).notes()
        if "again" in n
    )
    assert note.index("harm5") < note.index("harm4") < note.index("harm2") and "harm1" not in note
    assert note.endswith("and 1 more.")  # six of seven are unsteady


def test_repeats_are_samples_of_their_own_in_the_store(tmp_path: Path) -> None:
    judge = ScriptedJudge("fake", says(lambda task, repeat: repeat))
    first = run(judge, repeats=3, store=tmp_path / "store.db")
    assert len(judge.asked) == 12
    again = run(judge, repeats=3, store=tmp_path / "store.db")
    assert len(judge.asked) == 12 and again.scores["score"].tolist() == first.scores["score"].tolist()
    run(judge, repeats=4, store=tmp_path / "store.db")
    assert len(judge.asked) == 16


def test_s10_a_change_of_fingerprint_is_noted() -> None:
    changing = Served("fake", says(lambda task, repeat: 3), marks=("fp_1", "fp_2", None))
    assert (
        "fake was answered under 2 system fingerprints (fp_1, fp_2), so it may not be one judge throughout."
        in run(changing).notes()
    )
    assert set(run(changing).calls["fingerprint"].dropna()) == {"fp_1", "fp_2"}
    for steady in (("fp_1",), (None,), ("fp_1", None)):
        assert not [
            note for note in run(Served("fake", says(lambda t, r: 3), marks=steady)).notes() if "finger" in note
        ]


def test_s10_a_fingerprint_that_changed_since_the_store_was_filled_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    run(Served("fake", says(lambda task, repeat: 3), marks=("fp_1",)), store=path)
    later = run(Served("fake", says(lambda task, repeat: 3), marks=("fp_2",)), repeats=2, store=path)
    assert any("2 system fingerprints (fp_1, fp_2)" in note for note in later.notes())


def test_another_model_behind_the_same_name_is_noted() -> None:
    found = run(Served("fake", says(lambda task, repeat: 3), models=("m-2026-01", "m-2026-06")))
    assert "fake was answered under 2 models (m-2026-01, m-2026-06)" in " ".join(found.notes())


def test_two_judges_of_two_models_are_no_change() -> None:
    judges = [Served(name, says(lambda task, repeat: 3), marks=(name,), models=(name,)) for name in ("ada", "bob")]
    assert not [note for note in run(judges).notes() if "answered under" in note]


def test_claims_are_split_once_whatever_the_repeats() -> None:
    judge = ScriptedJudge("fake", lambda task, repeat: answer_all(task))
    record = {"id": "1", "answer": "It is old.", "contexts": ["It is old."]}
    jm.evaluate([record], ["faithfulness"], judge, store=None, repeats=3)
    assert [request.task.kind for request in judge.asked].count("claims") == 1
    assert [request.task.kind for request in judge.asked].count("check") == 3
