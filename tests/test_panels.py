"""Panels designed by data: the report, the alternative annotator test and selective evaluation, on results and labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jurimetrics.calibrate.alternatives import alt_test
from jurimetrics.calibrate.calibration import calibrate
from jurimetrics.calibrate.consensus import consensus
from jurimetrics.calibrate.panels import PanelReport, panel_report
from jurimetrics.calibrate.trust import Heard, selective, trusted_stages
from jurimetrics.errors import InputError
from jurimetrics.judges.baseline import BaselineJudge
from jurimetrics.judges.cascade import Cascade
from jurimetrics.labels import load_labels
from jurimetrics.results import Results

N = 240
DECLARED = {"grade": {"range": (0, 10), "threshold": 5.0}}


def truth_and_scores(seed: int = 0) -> tuple[Any, dict[str, Any]]:
    """A good judge, one almost its copy, an independent one and one that is too lenient."""
    draw = np.random.default_rng(seed)
    truth = np.clip(draw.normal(5, 2, N), 0, 10)
    good = truth + draw.normal(0, 1, N)
    made = {
        "good": good,
        "copy": good + draw.normal(0, 0.2, N),
        "other": truth + draw.normal(0, 1, N),
        "lenient": truth + 3 + draw.normal(0, 1, N),
    }
    return truth, {name: np.clip(one, 0, 10) for name, one in made.items()}


def results_of(scores: dict[str, Any], declared: Any = None, groups: Any = None) -> Results:
    rows = [
        {"id": at, "metric": "grade", "judge": judge, "score": float(value), "group": str(groups[at] if groups else at)}
        for judge, values in scores.items()
        for at, value in enumerate(values)
    ]
    return Results.from_frame(pd.DataFrame(rows), declared or {"grade": {"range": (0, 10)}})


def labels_of(truth: Any, selection: Any = "random", every: int = 1, **more: Any) -> pd.DataFrame:
    rows = [
        {"id": at, "metric": "grade", "label": float(one), **more} for at, one in enumerate(truth) if at % every == 0
    ]
    return load_labels(rows, selection=selection)


def test_the_report_finds_the_redundant_and_the_biased_judge() -> None:
    truth, scores = truth_and_scores()
    report: Any = panel_report(results_of(scores), labels_of(truth))
    pairs = report.correlations.set_index(["judge", "other"])["correlation"]
    assert pairs.idxmax() == ("copy", "good") and pairs.max() > 0.9
    assert abs(pairs["good", "other"]) < 0.25
    alone = report.leave_one_out.set_index("judge")
    assert alone.loc["lenient", "high"] < 0 < alone.loc["other", "low"]
    assert set(report.winner) <= {"good", "copy", "other"} and "other" in report.winner
    assert report.estimates["effective_judges"].value < 3
    assert report.estimates["weights_gain"].low > 0
    assert report.weights["share"].sum() == pytest.approx(1)
    assert report.cost_in == "judges" and any("cost counts judges" in note for note in report.notes)
    assert len(report.labels_used) == N and report.selection == "random"


def test_frames_are_flat_and_agree_with_the_estimates() -> None:
    truth, scores = truth_and_scores()
    report: Any = panel_report(
        results_of(scores), labels_of(truth, every=3), costs={"good": 5, "copy": 4, "other": 1, "lenient": 1}
    )
    assert len(report.frontier) == 15 and report.frontier["winner"].sum() == 1
    best = report.frontier[report.frontier["winner"]].iloc[0]
    assert best["members"] == ", ".join(report.winner)
    assert best["loss"] == report.estimates["winner_loss"].value == report.frontier["loss"].min()
    assert report.frontier["cost"].is_monotonic_increasing and report.cost_in == "given"
    assert report.sizes["size"].tolist() == [1, 2, 3, 4] and math.isnan(report.sizes.loc[0, "less"])
    everyone = report.frontier.set_index("judges").loc[4]
    assert everyone["loss"] == pytest.approx(report.estimates["loss_of_all"].value) == report.sizes.loc[3, "average"]
    by_hand = np.abs(np.mean([scores[name][::3] for name in report.winner], axis=0) - truth[::3]).mean()
    assert best["loss"] == pytest.approx(by_hand)
    assert report.figures.set_index("figure").loc["winner_held_out", "value"] >= best["loss"] - 1e-9


def test_passes_are_compared_where_there_is_a_threshold() -> None:
    truth, scores = truth_and_scores()
    report = panel_report(results_of(scores, DECLARED), labels_of(truth), judges=["good", "lenient"])
    assert report.of == "passes"
    wrong = np.mean((scores["good"] >= 5) != (truth >= 5))
    assert report.frontier.set_index("members").loc["good", "loss"] == pytest.approx(wrong)
    assert report.fitted is not None and report.fitted.kind == "logistic"


def test_labels_drawn_with_probabilities_are_weighted() -> None:
    truth, scores = truth_and_scores()
    far = np.abs(scores["good"] - scores["other"]) > 1
    rows = [
        {"id": at, "metric": "grade", "label": one, "probability": 1.0 if far[at] else 0.25}
        for at, one in enumerate(truth)
        if far[at] or at % 4 == 0
    ]
    two: dict[str, Any] = {"judges": ["good", "other"]}
    weighted = panel_report(results_of(scores), load_labels(rows, selection="probabilities"), **two)
    blind = panel_report(results_of(scores), load_labels(rows), **two)
    everything = correlation_of(panel_report(results_of(scores), labels_of(truth), **two))
    assert abs(correlation_of(weighted) - everything) < 0.1 < abs(correlation_of(blind) - everything)
    with pytest.raises(InputError, match="declared a random subset"):
        panel_report(results_of({name: scores[name] for name in two["judges"]}), load_labels(rows, selection="random"))


def correlation_of(report: PanelReport) -> float:
    found = report.estimates["error_correlation"].value
    assert found is not None and found == pytest.approx(report.correlations.loc[0, "correlation"])
    return found


def test_costs_come_from_calls_and_never_from_the_store() -> None:
    truth, scores = truth_and_scores()
    results = results_of({name: scores[name] for name in ("good", "other")})
    frame = results.scores.assign(judge_cost_usd=lambda one: np.where(one["judge"] == "good", 0.02, 0.01))
    results._frames["scores"] = frame.assign(cached_calls=0)
    report = panel_report(results, labels_of(truth))
    assert report.cost_in == "USD per record"
    assert report.frontier["cost"].round(9).tolist() == [0.01, 0.02, 0.03]
    results._frames["scores"] = frame.assign(cached_calls=1)
    assert panel_report(results, labels_of(truth)).cost_in == "judges"


def test_what_a_report_refuses() -> None:
    truth, scores = truth_and_scores()
    results, labels = results_of(scores, DECLARED), labels_of(truth)
    with pytest.raises(InputError, match="two judges or more"):
        panel_report(results, labels, judges=["good"])
    with pytest.raises(InputError, match="no judge 'nobody'"):
        panel_report(results, labels, judges=["good", "nobody"])
    with pytest.raises(InputError, match="costs: none given for other"):
        panel_report(results, labels, judges=["good", "other"], costs={"good": 1})
    mapped = calibrate(results, labels, judge="good").apply(results)
    with pytest.raises(InputError, match="fitted to labels"):
        panel_report(mapped, labels, judges=["good (calibrated)", "other"])
    assert "good (calibrated)" not in panel_report(mapped, labels).judges
    chosen = calibrate(results, labels, judge="good", method="threshold").apply(results)
    with pytest.raises(InputError, match="was chosen on labels of the same groups"):
        panel_report(chosen, labels)


def raters_of(truth: Any, raters: int = 3, noise: float = 0.8, seed: int = 1) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    rows = [
        {
            "id": at,
            "metric": "grade",
            "rater": f"r{rater}",
            "label": float(np.clip(round(one + draw.normal(0, noise)), 0, 10)),
        }
        for at, one in enumerate(truth)
        for rater in range(raters)
    ]
    return load_labels(rows, selection="random")


def test_a_good_judge_stands_in_and_a_lenient_one_does_not() -> None:
    truth, scores = truth_and_scores()
    scores = {name: np.round(one) for name, one in scores.items()}
    found = alt_test(results_of(scores), raters_of(truth), 0.2)
    passed = found.frame.set_index("judge")["passed"]
    assert passed["good"] and not passed["lenient"]
    assert found.frame["records"].tolist() == [N] * 4 and len(found.by_rater) == 12
    assert set(found.by_rater["rater"]) == {"r0", "r1", "r2"}


def test_one_record_of_a_group_is_compared() -> None:
    truth, scores = truth_and_scores()
    groups = [at // 4 for at in range(N)]
    found = alt_test(results_of(scores, groups=groups), raters_of(truth), 0.2, judges=["good"])
    assert len(found.records_used) == N // 4 and found.left_out == N - N // 4
    assert len({int(one) // 4 for one, _ in found.records_used}) == N // 4
    assert any("one of each group" in note for note in found.notes)


@pytest.mark.parametrize("selection", [None, "by_label", "probabilities"])
def test_only_random_labels_carry_a_test_or_a_guarantee(selection: Any) -> None:
    truth, scores = truth_and_scores()
    labels = labels_of(truth, selection, probability=0.5)
    for asked in (lambda one: alt_test(one, labels, 0.2), lambda one: selective(one, labels, 0.1, 0.1)):
        with pytest.raises(InputError, match=r'load_labels\(\.\.\., selection="random"\)'):
            asked(results_of(scores, DECLARED))


def with_repeats(seed: int, n: int = 600) -> tuple[Results, pd.DataFrame, Any]:
    """A cheap judge that wavers where it errs, and a strong one; the truth is pass or fail."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, 2, n)
    hard = draw.uniform(size=n) < 0.4
    rows = []
    for judge, right in (("mini", np.where(hard, 0.6, 0.98)), ("big", np.where(hard, 0.97, 0.99))):
        for repeat in range(5):
            said = np.where(draw.uniform(size=n) < right, truth, 1 - truth)
            rows += [
                {"id": at, "metric": "ok", "judge": judge, "repeat": repeat, "score": float(one)}
                for at, one in enumerate(said)
            ]
    results = Results.from_frame(pd.DataFrame(rows), {"ok": {"range": (0, 1), "threshold": 0.5}})
    labels = load_labels([{"id": at, "metric": "ok", "label": one} for at, one in enumerate(truth)], selection="random")
    return results, labels, truth


def test_a_cascade_gets_thresholds_stage_by_stage() -> None:
    results, labels, _ = with_repeats(3)
    found = selective(results, labels, 0.1, 0.1, judges=["mini", "big"])
    assert found.repeats == 5 and len(found.stages) == 2
    mini, big = (stage.threshold for stage in found.stages)
    assert mini.delta == big.delta == 0.05
    assert mini.value is not None and mini.value > 0.8 and big.value is not None
    assert found.stages[0].part == 300 and 0 < found.stages[1].part < 300
    assert found.frame["threshold"].tolist() == found.thresholds
    stages = Cascade([BaselineJudge("mini"), BaselineJudge("big")], found.thresholds)
    assert stages.threshold("ok", 0) == mini.value
    alone = selective(results, labels, 0.1, 0.1, judges="mini")
    assert alone.stages[0].part == 600 and alone.stages[0].threshold.delta == 0.1


def test_a_judge_that_is_never_sure_enough_gets_no_threshold() -> None:
    results, labels, truth = with_repeats(4, n=80)
    assert selective(results, labels, 0.01, 0.1, judges="mini").thresholds == [None]
    wrong = load_labels(
        [{"id": at, "metric": "ok", "label": 1 - one} for at, one in enumerate(truth)], selection="random"
    )
    found = selective(results, wrong, 0.1, 0.1, judges="mini")
    assert found.thresholds == [None] and "disagree" in found.stages[0].threshold.why


def test_what_selective_refuses() -> None:
    results, labels, _ = with_repeats(5, n=100)
    once = results_of(truth_and_scores()[1], DECLARED)
    with pytest.raises(InputError, match="it spoke once"):
        selective(once, labels_of(truth_and_scores()[0]), 0.1, 0.1, judges="good")
    assert selective(
        once, labels_of(truth_and_scores()[0]), 0.1, 0.1, judges="good", confidence=lambda one: abs(one[0] - 5) / 5
    ).thresholds != [None]
    with pytest.raises(InputError, match="which judge"):
        selective(results, labels, 0.1, 0.1)
    with pytest.raises(InputError, match="need a threshold"):
        selective(results.with_thresholds({"ok": None}), labels, 0.1, 0.1, judges="mini")
    used = calibrate(results, labels, judge="mini").apply(results)
    with pytest.raises(InputError, match="nothing was fitted on"):
        selective(used, labels, 0.1, 0.1, judges="mini")


def test_the_guarantee_of_every_stage_holds() -> None:
    """P(some stage settles records of which more than alpha are wrong) is at most delta: .2, 300 draws, 2.6 errors of .023.

    The share of wrong verdicts that a stage would settle is known here: it is counted on 20,000 further records.
    """
    draw = np.random.default_rng(6)

    def heard(n: int) -> tuple[list[Heard], Any]:
        truth = draw.integers(0, 2, n)
        skill = draw.uniform(0.5, 1, n)
        voices = []
        for lift in (0.0, 0.5):
            sure = skill + lift * (1 - skill)
            voices.append(
                Heard(sure.round(2), np.where(draw.uniform(size=n) < sure, truth, 1 - truth).astype(float), 3)
            )
        return voices, truth.astype(float)

    many, truth = heard(20_000)
    missed = settled = 0
    for _ in range(300):
        voices, people = heard(300)
        stages = trusted_stages(["mini", "big"], voices, people, range(300), 0.15, 0.2)
        waiting, over = np.ones(len(truth), dtype=bool), False
        for stage, judge in zip(stages, many, strict=True):
            if stage.threshold.value is not None:
                mine = waiting & (judge.sure >= stage.threshold.value)
                over |= bool((judge.passed[mine] != truth[mine]).mean() > 0.155)
                settled += 1
                waiting &= ~mine
        missed += over
    assert settled > 300
    assert missed / 300 <= 0.2 + 2.6 * math.sqrt(0.16 / 300)


def test_a_consensus_without_labels_and_what_it_cannot_know() -> None:
    draw = np.random.default_rng(7)
    truth = draw.integers(0, 2, 300)
    right = {"a": 0.95, "b": 0.65, "c": 0.65, "d": 0.65}
    rows = [
        {"id": at, "metric": "ok", "judge": judge, "score": float(one if draw.uniform() < share else 1 - one)}
        for judge, share in right.items()
        for at, one in enumerate(truth)
    ]
    results = Results.from_frame(pd.DataFrame(rows), {"ok": {"range": (0, 1), "threshold": 0.5}})
    found = consensus(results)
    assert found.records["tied"].any() and found.records.loc[found.records["tied"], "majority"].isna().all()
    latent = (found.records["latent"] == truth).mean()
    assert latent > (found.records["majority"] == truth).mean() + 0.1
    assert found.judges.set_index("judge").loc["a", "accuracy"] == pytest.approx(0.95, abs=0.07)
    anchored = consensus(results, gold={(str(at), ""): 1.0 - truth[at] for at in range(3)})
    assert anchored.records["latent"].tolist()[:3] == (1.0 - truth[:3]).tolist()
    assert any("take" in note for note in found.notes)
    with pytest.raises(InputError, match="two judges or more"):
        consensus(results, judges=["a"])
    _, scores = truth_and_scores()
    with pytest.raises(InputError, match="are no verdicts"):
        consensus(results_of(scores))
