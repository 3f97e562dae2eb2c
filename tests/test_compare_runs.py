"""Runs compared: ids, folders and results; an alarm forbids it, and one judge must have judged both variants."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from compared import A, B, rows
from compared import results as recorded
from evaluations import evaluation
from jurimetrics import InputError, Results, compare, probes
from jurimetrics.judges.judge import Reply, Request
from jurimetrics.judges.session import Session
from jurimetrics.labels import load_labels
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.store import Store
from jurimetrics.variants.compare import COLUMNS, Comparison
from jurimetrics.variants.leaderboard import leaderboard
from jurimetrics.variants.runs import compare_runs, names_of
from jurimetrics.variants.slices import slices
from jurimetrics.variants.tradeoff import tradeoff
from scripted_judge import ScriptedJudge, answer_all

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def lines(found: Comparison) -> pd.DataFrame:
    """What was found, whatever the variants are called."""
    return found.frame.drop(columns=["a", "b", "verdict", "own_family"])


# --- the same as within one evaluation ---


def test_two_runs_are_compared_as_within_one_evaluation() -> None:
    within = compare(recorded(rows(A=A, B=B)), detect=0.1)
    apart = [recorded(rows(**{"": scores})) for scores in (A, B)]
    found = compare_runs(apart, names=["A", "B"], detect=0.1)
    pd.testing.assert_frame_equal(found.frame, within.frame)
    assert [note for note in found.notes if "is called" not in note] == list(within.notes)
    # The mean difference by hand.
    assert found.frame.loc[0, "difference"] == pytest.approx(np.mean(np.subtract(B, A)))


def test_all_options_are_those_of_compare() -> None:
    apart = [recorded(rows(**{name: scores})) for name, scores in (("A", A), ("B", B))]
    people = [
        {"id": f"r{at:02}", "variant": v, "metric": "grade", "label": s}
        for v, x in (("A", A), ("B", B))
        for at, s in enumerate(x[:9])
    ]
    labels = load_labels(pd.DataFrame(people), selection="random")
    options: dict[str, Any] = {
        "primary": [], "labels": labels, "judge": "ann", "metrics": ["grade"], "detect": {"grade": 0.2}, "power": 0.9,
        "level": 0.8, "flips": 99, "seed": 3,
    }  # fmt: skip
    found = compare_runs(apart, "A", **options)
    pd.testing.assert_frame_equal(found.frame, compare(recorded(rows(A=A, B=B)), "A", **options).frame)
    assert (found.level, found.baseline) == (0.8, "A")
    assert found.frame.loc[0, "labelled"] == 9


def test_one_run_with_several_variants_is_compared_within(tmp_path: Path) -> None:
    one = evaluation(tmp_path, ["a", "b"], gain=0.1)
    found = compare_runs([one.folder], "a")
    pd.testing.assert_frame_equal(found.frame, compare(one, "a").frame)
    assert found.notes == compare(one, "a").notes


# --- what runs are called ---


def test_ids_folders_and_results_are_taken_and_named(tmp_path: Path, mlflow_store: Store) -> None:
    old, new, third = (evaluation(tmp_path, gain=gain) for gain in (0.0, 0.1, 0.2))
    run_id = log_run(old, experiment="e", traces=0)[0]
    (tmp_path / "june").mkdir()
    folder = new.save(tmp_path / "june" / "results")
    found = compare_runs([run_id, folder, third], run_id)
    assert found.baseline == run_id[:8]
    assert list(found.frame["b"].unique()) == ["june", "#3"]
    by_name = compare_runs([run_id, str(folder), third], "june", metrics=["f1"])
    assert by_name.baseline == "june"
    assert set(by_name.frame["metric"]) == {"f1"}
    assert (
        f"Variant '' of {run_id[:8]} is called {run_id[:8]!r}, since several results have one of that name."
        in found.notes
    )
    held = compare_runs([old, new, third], "#1", names=["#1", "#2", "#3"])
    pd.testing.assert_frame_equal(lines(found), lines(held))


def test_names_tell_runs_apart(project: Path) -> None:
    assert names_of(["a/results", "b/results/", "c"]) == ["a", "b", "c"]
    assert names_of(["x/same", "y/same", "other"]) == ["x/same", "y/same", "other"]
    assert names_of(["same", "same"]) == ["same #1", "same #2"]
    assert names_of(["results"]) == [project.name]
    ids = ["01234567" + "0" * 24, "01234567" + "1" * 24, "runs:/" + "2" * 32]
    assert names_of(ids) == [*ids[:2], "2" * 8]


def test_the_baseline_is_a_variant_or_a_run_that_has_one(tmp_path: Path) -> None:
    one, two = evaluation(tmp_path, ["a", "b"]), evaluation(tmp_path, ["c"])
    assert set(compare_runs([one, two], "c", names=["x", "y"]).frame["a"]) == {"c"}
    assert compare_runs([one, two], "y", names=["x", "y"]).baseline == "c"
    with pytest.raises(InputError, match="baseline: x has 2 variants; name one: 'a', 'b'"):
        compare_runs([one, two], "x", names=["x", "y"])
    with pytest.raises(InputError, match="no variant 'z'; variants: 'a', 'b', 'c'"):
        compare_runs([one, two], "z")


def test_what_is_no_run_is_refused(project: Path, tmp_path: Path) -> None:
    one = evaluation(tmp_path)
    for given, words in (
        ([], "expected a list of run ids, folders or results"),
        ("abc", "expected a list of run ids, folders or results"),
        ([one, 3], "expected a run id, a folder or Results, found int"),
        ([one, "nowhere"], "nowhere: no such folder"),
        ([one, "0" * 32], "MLflow store sqlite.*: there is none yet"),
        ([one], "two variants are needed, found 1"),
        ([one, one.folder], "are the same evaluation of variant ''"),
    ):
        with pytest.raises(InputError, match=words):
            compare_runs(given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="2 runs and 1 names; one for each is needed"):
        compare_runs([one, evaluation(tmp_path)], names=["x"])


# --- what forbids it ---


def test_what_differs_is_refused_by_name(tmp_path: Path) -> None:
    def stricter(settings: dict[str, Any]) -> None:
        settings["metrics"]["clear"]["version"] = "2"
        settings["panel"]["rule"] = "mean"

    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"], records=11, change=stricter)
    with pytest.raises(InputError) as caught:
        compare_runs([one, other], names=["may", "june"])
    assert str(caught.value) == (
        "may and june must not be compared: 1 record is in may alone ('r11'); shared_only=True compares the 11 records "
        "that are alike; metric clear is version 1 in may and 2 in june; the panel differs in rule: median in may and "
        "mean in june"
    )
    with pytest.raises(
        InputError, match=r"^#1 and #2 must not be compared: metric clear is version 1 in #1 and 2 in #2;"
    ):
        compare_runs([one, other], shared_only=True)
    found = compare_runs([one, other], shared_only=True, metrics=["f1"])
    assert found.frame[["metric", "n", "only_a", "only_b"]].values.tolist() == [["f1", 11, 0, 0]]
    assert (
        found.notes[0]
        == "Only the 11 records with the same inputs in #1 and #2 count: 1 record is in #1 alone ('r11')."
    )


def test_a_changed_retriever_is_compared_where_it_is_said_to_be_one(tmp_path: Path) -> None:
    found_otherwise = {at: {"contexts": [f"Passage {at}."]} for at in range(12)}
    old, new = evaluation(tmp_path, ["old"]), evaluation(tmp_path, ["new"], gain=0.2, record=found_otherwise)
    with pytest.raises(
        InputError, match=r"12 records have other contexts .*; same_contexts=False \(--other-contexts\)"
    ):
        compare_runs([old, new], "old")
    found = compare_runs([old, new], "old", same_contexts=False)
    assert found.notes[0] == (
        "Contexts count as what each system gave, as its answers do: they differ between #1 and #2 in 12 of 12 records "
        "('r00', 'r01', 'r02', ...)."
    )
    same = compare_runs([old, evaluation(tmp_path, ["new"], gain=0.2)], "old")
    pd.testing.assert_frame_equal(found.frame, same.frame)
    assert found.notes[1:] == same.notes


def test_thresholds_may_differ_and_the_first_holds(tmp_path: Path) -> None:
    one = evaluation(tmp_path, ["a"])
    other = evaluation(tmp_path, ["b"], gain=0.2).with_thresholds({"clear": 0.1})
    found = compare_runs([one, other])
    assert found.notes[0].startswith(
        "The threshold of clear is 0.5 in #1 and 0.1 in #2; thresholds are applied afterwards"
    )
    scores = other.scores.query("metric == 'clear' and judge == 'panel'")["score"]
    assert found.frame.loc[0, "pass_b"] == pytest.approx((scores >= 0.5).mean())


@dataclass(frozen=True)
class Report:
    """What a drift report is to a comparison."""

    alarms: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()


def test_an_alarm_forbids_it_with_its_reason(tmp_path: Path) -> None:
    pair = [evaluation(tmp_path, [name]) for name in ("a", "b")]
    with pytest.raises(
        InputError, match=r"the judge is not the one it was: clear by ann moved by \+0.2; ann was served"
    ):
        compare_runs(pair, drifted=Report(("clear by ann moved by +0.2", "ann was served by the model m-2")))
    found = compare_runs(pair, drifted=Report(undecided=("ann: all answers came from the store",)))
    assert found.notes[0] == (
        "Whether the judges are the ones they were could not be told: ann: all answers came from the store."
    )
    assert compare_runs(pair, drifted=Report()).notes == compare_runs(pair).notes


def test_an_alarm_of_the_probe_forbids_it(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": range(12), "metric": "clear", "judge": "ann", "score": [1, 2, 3, 4] * 3})
    scale = {"clear": {"range": (0, 9)}}
    before, after = (Results.from_frame(frame.assign(score=frame["score"] + up), scale) for up in (0, [0, 1, 1, 1] * 3))
    found = probes.drift(before, after)
    with pytest.raises(InputError, match=r"clear by ann moved by \+0.75 \[0.5, 1\] over 12 records"):
        compare_runs([evaluation(tmp_path, [name]) for name in ("a", "b")], drifted=found)


# --- one judge for both, within one evaluation ---


@dataclass(frozen=True)
class Served(ScriptedJudge):
    """A scripted judge whose endpoint says who answered, which may depend on the answer that is judged."""

    by: Any = None
    mark: Any = None

    async def attempt(self, request: Request, session: Session) -> Reply:
        reply = await super().attempt(request, session)
        answer = str(getattr(request.task, "answer", ""))
        by, mark = (one(answer) if callable(one) else one for one in (self.by, self.mark))
        return replace(reply, trace=replace(reply.trace, model=by, fingerprint=mark))


def judged(judge: Any, variants: tuple[str, ...] = ("short", "long"), metrics: Any = ("fluency",)) -> Results:
    """Ten records of each variant; four of the short answers get a higher score than the long ones."""
    made = [
        {
            "id": f"r{at}",
            "variant": name,
            "question": "Why?",
            "reference": f"short {at}",
            "answer": f"{name} {at}. " + "And more. " * (at % 3),
        }
        for at in range(10)
        for name in variants
    ]
    return jm.evaluate(made, list(metrics), judge, store=None, progress=False)


def scored(task: Any, repeat: int) -> Any:
    return answer_all(task, score=3 + ("short" in task.answer and "And more" not in task.answer))


def test_no_verdict_where_another_model_judged_each_variant() -> None:
    turned = judged(Served("ann", scored, by=lambda answer: "m-1" if "short" in answer else "m-2", mark="f-1"))
    found = compare(turned)
    line = found.frame.iloc[0]
    assert tuple(line.index) == COLUMNS
    assert line["verdict"] == "no verdict: ann was served by the model m-1 for short and by m-2 for long"
    assert not math.isnan(line["difference"]), "the figures stay"
    assert found.notes[0] == (
        "No verdict, since not one judge judged both: ann was served by the model m-1 for short and by m-2 for long. "
        "Judge all variants again in one evaluation."
    )
    assert "0 of 1 line decided" in repr(found)
    assert "no verdict: ann was served" in str(found) and "no verdict: ann was served" in found._repr_html_()


def test_another_fingerprint_or_mix_stands_with_the_verdict() -> None:
    marked = judged(Served("ann", scored, by="m-1", mark=lambda answer: "f-1" if "short" in answer else "f-2"))
    found = compare(marked)
    said = "NOT judged alike: ann was served by the fingerprint f-1 for short and by f-2 for long"
    assert said in found.frame.loc[0, "verdict"] and found.frame.loc[0, "verdict"].startswith(
        ("ann scores", "undecided")
    )
    assert found.notes[0].startswith("Not judged alike: ann was served by the fingerprint f-1 for short")
    # Half of short, none of long: a mix that is not the same.
    half = judged(
        Served("ann", scored, by=lambda answer: f"m-{int('short' in answer and int(answer.split('.')[0][-1]) % 2)}")
    )
    verdict = compare(half).frame.loc[0, "verdict"]
    assert "NOT judged alike: ann was served by the model m-0 (50%), m-1 (50%) for short and by m-0 for long" in verdict


def test_the_same_mix_for_both_is_a_note() -> None:
    mixed = judged(Served("ann", scored, by=lambda answer: f"m-{int(answer.split('.')[0][-1]) % 2}"))
    found = compare(mixed)
    assert "judged alike" not in found.frame.loc[0, "verdict"] and "no verdict" not in found.frame.loc[0, "verdict"]
    assert found.notes[0].startswith("Several answered for one judge, in much the same mix for both: ann was served by")
    steady = compare(judged(Served("ann", scored, by="m-1", mark="f-1")))
    assert not any("answered for one judge" in note or "served" in note for note in steady.notes)


def test_the_members_of_a_panel_and_only_what_the_metric_used_count() -> None:
    turned = Served("ann", scored, by=lambda answer: "m-1" if "short" in answer else "m-2")
    found = compare(judged(jm.Panel([turned, Served("bob", scored, by="m-1")]), metrics=("fluency", "f1")))
    verdicts = found.frame.set_index("metric")["verdict"]
    assert "ann was served by the model m-1 for short and by m-2 for long" in verdicts["fluency"]
    assert "bob" not in verdicts["fluency"]
    assert "served" not in verdicts.drop("fluency").to_string()
    alone = compare(judged([turned, Served("bob", scored, by="m-1")]), judge="bob")
    assert "served" not in alone.frame.loc[0, "verdict"]


def test_only_the_pair_that_was_judged_apart_gets_no_verdict() -> None:
    turned = Served("ann", scored, by=lambda answer: "m-2" if "third" in answer else "m-1")
    found = compare(judged(turned, ("short", "long", "third"))).frame.set_index(["a", "b"])["verdict"]
    assert "served" not in found["short", "long"]
    assert found["short", "third"].startswith("no verdict: ann was served by the model m-1 for short")
    assert found["long", "third"].startswith("no verdict: ann was served by the model m-1 for long")


def test_a_place_is_left_open_where_another_model_judged() -> None:
    def each(task: Any, repeat: int) -> Any:
        at = int(task.answer.split(".")[0][-1])
        return answer_all(
            task, score={"short": 1, "long": 2 + at % 2, "third": 4 + (at % 3 == 0)}[task.answer.split()[0]]
        )

    names = ("short", "long", "third")
    alike = leaderboard(judged(Served("ann", each, by="m-1"), names)).set_index("variant")
    places = ["best_rank", "worst_rank"]
    assert alike.loc[["third", "long", "short"], places].values.tolist() == [[1, 1], [2, 2], [3, 3]]
    turned = judged(Served("ann", each, by=lambda answer: "m-2" if "third" in answer else "m-1"), names)
    found = leaderboard(turned)
    board = found.set_index("variant")
    # Long is ahead of short as before; third was judged by another and may stand anywhere.
    assert board.loc[["third", "long", "short"], places].values.tolist() == [[1, 3], [1, 2], [2, 3]]
    assert found.attrs["notes"][0].startswith(
        "No verdict, since not one judge judged both: ann was served by the model m-1"
    )
    assert compare(turned).refused == {("fluency", "short", "third"), ("fluency", "long", "third")}


def test_a_slice_that_was_judged_apart_has_no_verdict() -> None:
    made = [
        {
            "id": f"r{at}",
            "variant": name,
            "answer": f"{name} {at}.",
            "metadata": {"half": "first" if at < 10 else "second"},
        }
        for at in range(20)
        for name in ("short", "long")
    ]

    def each(task: Any, repeat: int) -> Any:
        name, number = task.answer.rstrip(".").split()
        return answer_all(task, score=2 + (name == "short") * (1 + int(number) % 2))

    def by(answer: str) -> str:
        name, number = answer.rstrip(".").split()
        return "m-2" if name == "long" and int(number) >= 10 else "m-1"

    done = jm.evaluate(made, ["fluency"], Served("ann", each, by=by), store=None, progress=False)
    found = slices(done, "half")
    verdicts = found.set_index("slice")["verdict"]
    assert (
        verdicts["first"].startswith("exploratory: ann scores long lower by 1.5") and "served" not in verdicts["first"]
    )
    assert (
        verdicts["second"] == "exploratory: no verdict: ann was served by the model m-1 for short and by m-2 for long"
    )
    assert found.attrs["notes"] == [
        "No verdict, since not one judge judged both: ann was served by the model m-1 for short and by m-2 for long. Judge "
        "all variants again in one evaluation."
    ]
    # Of all records the mix differs, which weakens the verdict and does not forbid one.
    assert "NOT judged alike" in compare(done).frame.loc[0, "verdict"]


def test_the_front_is_open_where_another_model_judged_what_costs_no_more() -> None:
    costs = {"cheap": 0.01, "middle": 0.02, "dear": 0.03}

    def each(task: Any, repeat: int) -> Any:
        return answer_all(task, score=3)

    def front(by: Any) -> tuple[list[Any], list[str]]:
        made = [
            {"id": f"r{at}", "variant": name, "answer": f"{name} {at}.", "cost_usd": cost}
            for at in range(10)
            for name, cost in costs.items()
        ]
        done = jm.evaluate(made, ["fluency"], Served("ann", each, by=by), store=None, progress=False)
        found = tradeoff(done, "fluency")
        return found["front"].tolist(), found.attrs["notes"]

    assert front("m-1") == ([True, False, False], [])
    # Middle may be better than cheap or not, which nobody judged alike; dear is beaten by cheap, whatever middle is worth.
    places, notes = front(lambda answer: "m-2" if "middle" in answer else "m-1")
    assert places == [True, pd.NA, False]
    assert notes[0].startswith("No verdict, since not one judge judged both: ann was served by the model m-1 for cheap")
    # Whatever cheap is worth, nothing that costs more can beat it, and both others may be beaten by it.
    places, _ = front(lambda answer: "m-2" if "cheap" in answer else "m-1")
    assert places == [True, pd.NA, False]


def test_labels_of_both_tell_all_the_same() -> None:
    turned = judged(Served("ann", scored, by=lambda answer: "m-1" if "short" in answer else "m-2"))
    people = [
        {"id": f"r{at}", "variant": name, "metric": "fluency", "label": 3 + (name == "short")}
        for at in range(10)
        for name in ("short", "long")
    ]
    labels = load_labels(
        pd.DataFrame(people).assign(label=lambda frame: frame["label"] - (frame.index % 7 == 0)), selection="random"
    )
    verdict = compare(turned, labels=labels).frame.loc[0, "verdict"]
    assert verdict.startswith("people, as estimated from labels and judge,") or verdict.startswith("undecided")
