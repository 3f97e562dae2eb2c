"""Calibration, corrected means, samples and budgets over results and labels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics.stats.corrected import corrected_mean
from jurimetrics.stats.estimate import Estimate

N = 600
RANDOM = np.random.default_rng(1)
TRUTH = (RANDOM.random(N) < 0.3).astype(int)
GROUPS = [f"g{at // 3}" for at in range(N)]
ERRORS = {"ann": (0.75, 0.95), "bob": (0.6, 0.9), "coin": (0.5, 0.5)}


def judged(sensitivity: float, specificity: float) -> Any:
    right = np.where(TRUTH == 1, RANDOM.random(N) < sensitivity, RANDOM.random(N) < specificity)
    return np.round(0.6 * np.where(right, TRUTH, 1 - TRUTH) + 0.4 * RANDOM.random(N), 3)


FRAME = pd.concat(
    pd.DataFrame(
        {"id": [f"r{at}" for at in range(N)], "metric": "ok", "judge": name, "score": judged(*errors), "group": GROUPS}
    )
    for name, errors in ERRORS.items()
)
METRICS: dict[str, Any] = {"ok": {"range": (0, 1), "threshold": 0.5}}


def results() -> jm.Results:
    return jm.Results.from_frame(FRAME, METRICS)


def labels(taken: Any, selection: Any, chance: Any = None) -> pd.DataFrame:
    rows = [
        {"id": f"r{at}", "metric": "ok", "label": int(TRUTH[at])} | ({} if chance is None else {"probability": chance})
        for at in taken
    ]
    return jm.load_labels(rows, selection=selection)


SOME = np.random.default_rng(2).choice(N, 200, replace=False)


def balanced(n: int = 60) -> Any:
    random = np.random.default_rng(3)
    return np.concatenate([random.choice(np.flatnonzero(kind == TRUTH), n, replace=False) for kind in (0, 1)])


def line(frame: pd.DataFrame, judge: str) -> Any:
    return frame[frame["judge"] == judge].iloc[0]


def test_random_labels_get_ppi_by_group() -> None:
    found = jm.corrected_means(results(), labels(SOME, "random"))
    assert found["judge"].tolist() == ["ann", "bob", "coin"]
    scores = FRAME[FRAME["judge"] == "ann"]["score"].to_numpy()
    given = np.full(N, np.nan)
    given[SOME] = TRUTH[SOME]
    ann = line(found, "ann")
    assert ann["corrected"] == corrected_mean(scores, given, groups=GROUPS, bounds=(0, 1))
    assert ann["labels_only"].value == pytest.approx(TRUTH[SOME].mean())
    assert ann["raw"] == pytest.approx(scores.mean())
    assert (ann["n"], ann["records"], ann["unscored"], ann["selection"]) == (200, 600, 0, "random")
    assert ann["method"].startswith("PPI++; lam 0.") and "200 labelled of 600" in ann["method"]
    assert [ann["value"], ann["low"], ann["high"]] == [
        ann["corrected"].value,
        ann["corrected"].low,
        ann["corrected"].high,
    ]
    # A coin helps nothing, and its interval is that of the labels.
    coin = line(found, "coin")
    assert coin["high"] - coin["low"] == pytest.approx(coin["labels_only"].high - coin["labels_only"].low, rel=0.03)


def test_selection_that_is_not_declared_is_refused_with_what_to_declare() -> None:
    with pytest.raises(jm.InputError, match=r'selection="random".*"probabilities".*"by_label"'):
        jm.corrected_means(results(), labels(SOME, None))


def test_probabilities_are_needed_and_used() -> None:
    found = line(jm.corrected_means(results(), labels(SOME, "probabilities", 1 / 3)), "ann")
    random = line(jm.corrected_means(results(), labels(SOME, "random")), "ann")
    assert found["method"].startswith("weighted PPI++")
    assert found["value"] == pytest.approx(random["value"], abs=0.01)
    bare = labels(SOME, "random")
    bare.attrs["selection"] = "probabilities"
    with pytest.raises(jm.InputError, match="no probability of having been drawn"):
        jm.corrected_means(results(), bare)


def test_labels_chosen_by_label_get_rogan_gladen_and_a_coin_gets_no_value() -> None:
    found = jm.corrected_means(results(), labels(balanced(), "by_label"))
    ann, coin = line(found, "ann"), line(found, "coin")
    assert ann["of"] == "pass rate" and ann["method"].startswith("Rogan-Gladen")
    assert ann["low"] <= 0.3 <= ann["high"] and ann["raw"] == pytest.approx((FRAME.iloc[:N]["score"] >= 0.5).mean())
    assert math.isnan(coin["value"]) and "cannot be told from chance" in coin["method"]
    assert ann["labels_only"].value is None
    only_coin = jm.Results.from_frame(FRAME[FRAME["judge"] == "coin"], METRICS)
    with pytest.raises(jm.InputError, match="cannot be told from chance"):
        jm.corrected_means(only_coin, labels(balanced(), "by_label"))


def test_pass_rates_need_a_threshold() -> None:
    bare = jm.Results.from_frame(FRAME, {"ok": {"range": (0, 1)}})
    with pytest.raises(jm.InputError, match="with_thresholds"):
        jm.corrected_means(bare, labels(balanced(), "by_label"))
    found = jm.corrected_means(results(), labels(SOME, "random"), of="pass rate")
    assert line(found, "ann")["raw"] == pytest.approx((FRAME.iloc[:N]["score"] >= 0.5).mean())
    assert line(found, "ann")["value"] == pytest.approx(0.3, abs=0.08)


def test_these_records_are_known_better_than_the_population() -> None:
    both = [
        line(jm.corrected_means(results(), labels(SOME, "random"), to), "bob") for to in ("population", "these records")
    ]  # type: ignore[arg-type]
    assert both[0]["value"] == both[1]["value"]
    assert both[1]["high"] - both[1]["low"] < 0.9 * (both[0]["high"] - both[0]["low"])


def test_records_without_a_score_are_counted_not_guessed() -> None:
    frame = FRAME[FRAME["judge"] == "ann"].reset_index(drop=True)
    frame.loc[:9, "score"] = np.nan
    found = jm.corrected_means(jm.Results.from_frame(frame, METRICS), labels(range(0, 300, 2), "random"))
    assert found.loc[0, ["n", "records", "unscored"]].tolist() == [145, 590, 10]


def test_labels_that_cannot_be_random_are_refused() -> None:
    scores = FRAME[FRAME["judge"] == "ann"]["score"].to_numpy()
    best = np.argsort(-scores)[:100]
    with pytest.raises(jm.InputError, match=r'declared a random subset.*selection="probabilities"'):
        jm.corrected_means(results(), labels(best, "random"))


# Calibration ----------------------------------------------------------------------------------------------------------


def test_calibration_holds_out_whole_groups_and_names_its_labels() -> None:
    found = jm.calibrate(results(), labels(SOME, "random"), judge="ann")
    assert set(found.labels_used) == {(f"r{at}", "") for at in SOME}
    assert found.n == 200 and found.groups == len({GROUPS[at] for at in SOME})
    # Of a coin the best map is the mean of the labels, whose error is their variance.
    coin = jm.calibrate(results(), labels(SOME, "random"), judge="coin").held_out
    assert coin["squared_error"].value == pytest.approx(TRUTH[SOME].var(), abs=0.01)
    assert coin["squared_error"].value < coin["raw_squared_error"].value - 0.02  # type: ignore[operator]
    assert found.held_out["youden"].value <= found.threshold.gain  # type: ignore[union-attr, operator]
    # What the judge fails scores at most .4 and what it passes at least .6: nothing lies between.
    assert 0.35 < found.threshold.value <= 0.65  # type: ignore[union-attr]
    assert found.frame["figure"].tolist() == list(found.held_out)
    assert found.reliability is not None and found.reliability.records.sum() == 200


@pytest.mark.parametrize("method", ["threshold", "linear", "isotonic", "platt"])
def test_calibration_is_the_same_after_saving(tmp_path: Path, method: Any) -> None:
    found = jm.calibrate(results(), labels(SOME, "random"), judge="ann", method=method)
    again = jm.Calibration.load(found.save(tmp_path / "deep" / "ann.json"))
    assert again.to_dict() == found.to_dict()
    if found.map is not None:
        assert again.map is not None
        assert again.map([0.1, 0.5, 0.9]).tolist() == found.map([0.1, 0.5, 0.9]).tolist()
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    with pytest.raises(jm.InputError, match="is no saved calibration"):
        jm.Calibration.load(tmp_path / "bad.json")
    with pytest.raises(jm.InputError, match="no such file"):
        jm.Calibration.load(tmp_path / "absent.json")


def test_calibration_does_not_change_with_the_order_of_rows_and_labels() -> None:
    one = jm.calibrate(results(), labels(SOME, "random"), judge="ann", method="isotonic")
    shuffled = jm.Results.from_frame(FRAME.sample(frac=1, random_state=0), METRICS)
    two = jm.calibrate(shuffled, labels(SOME[::-1], "random"), judge="ann", method="isotonic")
    assert one.data_digest == two.data_digest and one.to_dict() == two.to_dict()
    other = jm.calibrate(results(), labels(SOME[:-1], "random"), judge="ann", method="isotonic")
    assert other.labels_digest != one.labels_digest


def test_calibrated_scores_are_further_rows() -> None:
    frame = FRAME.reset_index(drop=True)
    frame.loc[0, "score"] = np.nan
    before = jm.Results.from_frame(frame, METRICS)
    found = jm.calibrate(before, labels(SOME, "random"), judge="ann", method="isotonic")
    after = found.apply(before)
    assert len(after.scores) == len(before.scores) + N
    rows = after.scores[after.scores["judge"] == "ann (calibrated)"].set_index("id")
    assert rows.loc["r0", "status"] == "undefined" and math.isnan(rows.loc["r0", "score"])
    scores = frame[frame["judge"] == "ann"].set_index("id")["score"]
    assert rows.loc["r5", "score"] == pytest.approx(float(found.map([scores["r5"]])[0]))  # type: ignore[misc]
    assert (rows["judge_cost_usd"] == 0).all()
    assert after.settings["judges"]["ann (calibrated)"] == {"kind": "calibrated", "of": "ann"}
    assert jm.Results.load(after.save(after.folder)).settings["calibrations"][0]["labels_digest"] == found.labels_digest
    assert "ann (calibrated)" not in before.scores["judge"].to_numpy()
    with pytest.raises(jm.InputError, match="already"):
        found.apply(after)


def test_a_threshold_applied_is_the_metrics_threshold() -> None:
    found = jm.calibrate(results(), labels(SOME, "random"), judge="ann", method="threshold")
    assert found.map is None and found.threshold is not None
    assert found.apply(results()).settings["metrics"]["ok"]["threshold"] == found.threshold.value


def test_platt_on_a_scale_gives_the_chance_of_passing_as_a_metric_of_its_own() -> None:
    frame = FRAME.assign(metric="grade", score=1 + 4 * FRAME["score"])
    rated = jm.Results.from_frame(frame, {"grade": {"range": (1, 5), "threshold": 4}})
    people = jm.load_labels(
        [{"id": f"r{at}", "metric": "grade", "label": 4 + TRUTH[at] if TRUTH[at] else 2} for at in SOME],
        selection="random",
    )
    after = jm.calibrate(rated, people, judge="ann", method="platt").apply(rated)
    rows = after.scores[after.scores["metric"] == "grade passed"]
    assert rows["score"].between(0, 1).all() and len(rows) == N
    assert rows["score"].mean() == pytest.approx(0.3, abs=0.06)


def test_labels_drawn_with_probabilities_weigh_in_the_map() -> None:
    # Half of the labels stand for nine times as many records as the other half.
    rows = [
        {"id": f"r{at}", "metric": "ok", "label": int(TRUTH[at]), "probability": 0.9 if at % 2 else 0.1} for at in SOME
    ]
    weighted = jm.calibrate(results(), jm.load_labels(rows, selection="probabilities"), judge="ann")
    scores = FRAME[FRAME["judge"] == "ann"]["score"].to_numpy()[SOME]
    slope = np.polyfit(scores, TRUTH[SOME], 1, w=np.sqrt(np.where(SOME % 2, 1 / 0.9, 1 / 0.1)))
    assert weighted.map is not None
    assert weighted.map.parameters == pytest.approx(slope)


def test_what_leaves_a_choice_or_is_too_little_is_refused() -> None:
    with pytest.raises(jm.InputError, match="which judge"):
        jm.calibrate(results(), labels(SOME, "random"))
    with pytest.raises(jm.InputError, match=r"7 labelled records of 7 groups are too few.*100 records"):
        jm.calibrate(results(), labels(range(0, 21, 3), "random"), judge="ann")
    with pytest.raises(jm.InputError, match="declare a threshold"):
        graded = jm.Results.from_frame(FRAME.assign(metric="g"), {"g": {"range": (0, 1)}})
        people = [{"id": f"r{at}", "metric": "g", "label": 0.2 + TRUTH[at] / 2} for at in SOME]
        jm.calibrate(graded, jm.load_labels(people), judge="ann", method="threshold")
    with pytest.raises(jm.InputError, match="people failed all"):
        jm.calibrate(results(), labels(np.flatnonzero(TRUTH == 0)[:50], "random"), judge="ann", method="threshold")
    with pytest.raises(jm.InputError, match="method: expected"):
        jm.calibrate(results(), labels(SOME, "random"), judge="ann", method="magic")  # type: ignore[arg-type]


def test_too_few_labels_say_what_n_would_do() -> None:
    few = jm.calibrate(results(), labels(SOME[:60], "random"), judge="ann", method="isotonic")
    assert any("about 200 would do" in note for note in few.notes)
    assert any("labels would tell it to ±0.05" in note for note in few.notes)
    chosen = jm.calibrate(results(), labels(balanced(), "by_label"), judge="ann")
    assert any("not the share of passes among all records" in note for note in chosen.notes)
    assert any("not declared" in note for note in jm.calibrate(results(), labels(SOME, None), judge="ann").notes)


# Labels used twice ----------------------------------------------------------------------------------------------------


def test_the_labels_of_a_calibration_correct_only_what_is_fitted_anew_without_them() -> None:
    taken, others = SOME[:100], SOME[100:]
    others = [at for at in others if GROUPS[at] not in {GROUPS[one] for one in taken}]
    after = jm.calibrate(results(), labels(taken, "random"), judge="ann", method="isotonic").apply(results())
    again = line(jm.corrected_means(after, labels(taken, "random")), "ann (calibrated)")
    assert "fitted anew on other folds" in again["method"]
    fresh = line(jm.corrected_means(after, labels(others, "random")), "ann (calibrated)")
    assert "fitted anew" not in fresh["method"]
    # Other records of the same groups are not independent of the labels that shaped the map.
    kin = [at for at in range(N) if at not in set(taken) and GROUPS[at] in {GROUPS[one] for one in taken}]
    assert "fitted anew" in line(jm.corrected_means(after, labels(kin, "random")), "ann (calibrated)")["method"]


def test_a_calibration_without_the_scores_it_maps_is_refused() -> None:
    after = jm.calibrate(results(), labels(SOME, "random"), judge="ann").apply(results())
    rows = after.scores
    kept = rows[rows["judge"] != "ann"]
    bare = jm.Results.from_frame(kept[["id", "metric", "judge", "score", "group"]], METRICS)
    bare._settings |= {name: after.settings[name] for name in ("judges", "calibrations")}
    with pytest.raises(jm.InputError, match="no longer in the results"):
        jm.corrected_means(bare, labels(SOME, "random"))


def test_a_threshold_chosen_on_the_labels_is_refused_by_them() -> None:
    taken = balanced()
    after = jm.calibrate(results(), labels(taken, "by_label"), judge="ann", method="threshold").apply(results())
    with pytest.raises(jm.InputError, match="chosen on labels of the same groups"):
        jm.corrected_means(after, labels(taken, "by_label"))
    beside = np.setdiff1d(np.arange(N), taken)
    with pytest.raises(jm.InputError, match="of the same groups"):
        jm.corrected_means(after, labels(beside[:150], "by_label"))
    others = beside[~np.isin(beside // 3, taken // 3)]
    assert line(jm.corrected_means(after, labels(others, "by_label")), "ann")["n"] == len(others)


def test_a_map_fitted_on_the_labels_is_not_corrected_by_their_errors() -> None:
    # Fitted to the very passes and fails that its errors are then counted on, it would seem better than it is.
    taken = balanced()
    after = jm.calibrate(results(), labels(taken, "by_label"), judge="ann", method="isotonic").apply(results())
    found = line(jm.corrected_means(after, labels(taken, "by_label")), "ann (calibrated)")
    assert math.isnan(found["value"]) and "fitted on labels of the same groups" in found["method"]
    rest = [at for at in range(N) if GROUPS[at] not in {GROUPS[one] for one in taken}]
    assert line(jm.corrected_means(after, labels(rest, "by_label")), "ann (calibrated)")["n"] == len(rest)


# Labels of another set ------------------------------------------------------------------------------------------------


def other_set(
    n: int = 240, seed: int = 9, errors: Any = None, share: float = 0.5, **options: Any
) -> tuple[jm.Results, Any]:
    """Records from elsewhere, `share` of which people pass, scored by the same judges, all labelled."""
    random = np.random.default_rng(seed)
    truth = (np.arange(n) < share * n).astype(int)
    parts = []
    for name, (sensitivity, specificity) in (errors or ERRORS).items():
        right = np.where(truth == 1, random.random(n) < sensitivity, random.random(n) < specificity)
        scores = np.round(0.6 * np.where(right, truth, 1 - truth) + 0.4 * random.random(n), 3)
        parts.append(
            pd.DataFrame({"id": [f"x{at}" for at in range(n)], "metric": "ok", "judge": name, "score": scores})
        )
    people = [{"id": f"x{at}", "metric": "ok", "label": int(truth[at])} for at in range(n)]
    frame = pd.concat(parts).assign(**options)
    return jm.Results.from_frame(frame, METRICS), jm.load_labels(people, selection="by_label")


def test_errors_on_an_external_set_correct_the_pass_rate_here() -> None:
    external, people = other_set()
    found = jm.corrected_means(results(), people, external=external)
    ann = line(found, "ann")
    # By hand: p from the records here, q0 and q1 from the external set alone.
    scores = external.scores
    passed = scores[scores["judge"] == "ann"].set_index("id")["score"] >= 0.5
    truth = people.set_index("id")["label"]
    q0, q1 = 1 - passed[truth == 0].mean(), passed[truth == 1].mean()
    p = (FRAME[FRAME["judge"] == "ann"]["score"] >= 0.5).mean()
    assert ann["value"] == pytest.approx((p + q0 - 1) / (q0 + q1 - 1))
    assert ann["raw"] == pytest.approx(p) and ann["low"] <= TRUTH.mean() <= ann["high"]
    assert ann[["of", "n", "records", "unscored", "selection"]].tolist() == ["pass rate", 240, 600, 0, "by_label"]
    assert ann["labels_only"].value is None and "if they carry over" in ann["method"]
    coin = line(found, "coin")
    assert math.isnan(coin["value"]) and "cannot be told from chance" in coin["method"]
    # The records here come in threes: the judge's pass rate is known as well as their groups allow.
    assert list(found.columns) == list(jm.corrected_means(results(), labels(SOME, "random")).columns)


def test_labels_of_an_external_set_must_say_how_they_were_chosen() -> None:
    external, people = other_set()
    random = people.copy()
    random.attrs = {"selection": "random"}
    assert line(jm.corrected_means(results(), random, external=external), "ann")["selection"] == "random"
    for selection, says in ((None, "not declared"), ("probabilities", "unequal probabilities")):
        people.attrs = {"selection": selection}
        with pytest.raises(jm.InputError, match=says):
            jm.corrected_means(results(), people, external=external)


def test_sets_that_were_judged_otherwise_are_not_put_together() -> None:
    external, people = other_set()
    with pytest.raises(
        jm.InputError, match=r"metric ok has threshold 0\.5 in the results and 0\.7 in the external set"
    ):
        jm.corrected_means(results(), people, external=external.with_thresholds({"ok": 0.7}))
    with pytest.raises(jm.InputError, match="nothing says what passes"):
        jm.corrected_means(results().with_thresholds({"ok": None}), people, external=external)
    external._settings["judges"]["ann"] |= {"reply_key": "b", "model": "m-2"}
    here = results()
    here._settings["judges"]["ann"] |= {"reply_key": "a", "model": "m-1"}
    with pytest.raises(
        jm.InputError, match=r"judge ann is set up otherwise in the results and in the external set \(model"
    ):
        jm.corrected_means(here, people, external=external)
    other = jm.Results.from_frame(FRAME.assign(metric="fine"), {"fine": METRICS["ok"]})
    with pytest.raises(jm.InputError, match="labels: of ok, which the results do not hold"):
        jm.corrected_means(other, people, external=other_set()[0])


def test_a_judge_that_did_not_score_the_external_set_has_no_value() -> None:
    external, people = other_set(errors={"ann": ERRORS["ann"]})
    found = jm.corrected_means(results(), people, external=external)
    assert line(found, "ann")["n"] == 240
    assert (
        math.isnan(line(found, "bob")["value"])
        and line(found, "bob")["method"] == "bob scored no ok of the external set"
    )
    with pytest.raises(jm.InputError, match="zoe scored no ok"):
        jm.corrected_means(jm.Results.from_frame(FRAME.assign(judge="zoe").drop_duplicates("id"), METRICS), people,
                           external=external)  # fmt: skip


def test_errors_are_taken_from_the_same_variant_where_there_is_one() -> None:
    external, people = other_set(n=240)
    variants = ["old" if int(name[1:]) % 2 else "new" for name in external.scores["id"]]
    frame = external.scores[["id", "metric", "judge", "score"]].assign(variant=variants)
    split = jm.Results.from_frame(frame, METRICS)
    told = people.assign(variant=["old" if int(name[1:]) % 2 else "new" for name in people["id"]])
    told.attrs = people.attrs
    here = jm.Results.from_frame(FRAME.assign(variant="new"), METRICS)
    mine = line(jm.corrected_means(here, told, external=split), "ann")
    assert mine["n"] == 120 and "all its variants" not in mine["method"]
    unknown = line(jm.corrected_means(results(), told, external=split), "ann")
    assert unknown["n"] == 240 and "on the external set of all its variants" in unknown["method"]


def test_a_threshold_chosen_on_the_external_labels_is_not_judged_by_them() -> None:
    external, people = other_set()
    made = jm.calibrate(external, people, judge="ann", method="threshold")
    with pytest.raises(jm.InputError, match="was chosen on labels of the same groups"):
        jm.corrected_means(made.apply(results()), people, external=made.apply(external))


@pytest.mark.slow
def test_an_external_set_keeps_its_level_where_errors_carry_over_and_not_where_they_do_not() -> None:
    """Truth .3 here, half passes there, 150 labels; a judge that is right in .85 of passes and .8 of fails on both sides,
    and one whose specificity is .65 there instead."""
    from jurimetrics.stats.rogan_gladen import transported_pass_rate

    random = np.random.default_rng(21)
    trials, covered, elsewhere = 1000, 0, 0
    truth = np.repeat([1.0, 0.0], 75)

    def verdicts(of: Any, specificity: float = 0.8) -> Any:
        return (random.random(len(of)) < np.where(of == 1, 0.85, 1 - specificity)).astype(float)

    for _ in range(trials):
        passed = verdicts((random.random(800) < 0.3).astype(float))
        found = transported_pass_rate(passed, verdicts(truth), truth)
        covered += found.low is not None and found.high is not None and found.low <= 0.3 <= found.high
        wrong = transported_pass_rate(passed, verdicts(truth, 0.65), truth)
        elsewhere += wrong.low is not None and wrong.high is not None and wrong.low <= 0.3 <= wrong.high
    assert 0.93 <= covered / trials <= 0.98, covered
    assert elsewhere / trials < 0.6, elsewhere


# Samples and budgets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["random", "score", "disagreement"])
def test_a_sample_goes_to_people_without_scores_and_comes_back_with_probabilities(tmp_path: Path, by: Any) -> None:
    drawn = jm.sample_for_labelling(results(), 150, by, seed=4, judge="ann" if by == "score" else None)
    assert len(drawn.records) == 150 and not drawn.records.duplicated(["id", "variant"]).any()
    assert (1 / drawn.records["probability"]).sum() == pytest.approx(N)
    path = drawn.save(tmp_path / "sheet.csv")
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(sheet.columns) == [
        "id", "variant", "question", "answer", "contexts", "reference", "label:ok", "rater", "rationale", "probability",
    ]  # fmt: skip
    sheet["label:ok"] = [str(TRUTH[int(name[1:])]) for name in sheet["id"]]
    sheet.loc[3:8, "label:ok"] = ["n/a", "", "-", "", "", ""]
    sheet.to_csv(path, index=False)
    back = drawn.read(path)
    assert back.attrs["selection"] == "probabilities" and back.attrs["blank"] == {"ok": 6} and len(back) == 144
    # The labelled stand for all records, those left blank too.
    assert (1 / back["probability"]).sum() == pytest.approx(N)
    found = line(jm.corrected_means(results(), back), "ann")
    assert found["low"] <= TRUTH.mean() <= found["high"] and "one by one" not in found["method"]


def test_a_sample_is_the_same_for_the_same_seed_whatever_the_order() -> None:
    shuffled = jm.Results.from_frame(FRAME.sample(frac=1, random_state=5), METRICS)
    one, two = (jm.sample_for_labelling(each, 40, "disagreement", 7).records for each in (results(), shuffled))
    assert one["id"].tolist() == two["id"].tolist()
    assert jm.sample_for_labelling(results(), 40, "disagreement", 8).records["id"].tolist() != one["id"].tolist()


def test_disputed_records_and_rare_scores_are_drawn_more_often() -> None:
    drawn = jm.sample_for_labelling(results(), 120, "disagreement").records
    chance = drawn.groupby("stratum")["probability"].first()
    assert chance.is_monotonic_increasing and chance.max() > 2.5 * chance.min() > 0


def test_each_variant_is_a_stratum() -> None:
    frame = FRAME.assign(variant=np.where(np.arange(len(FRAME)) % N < 100, "small", "large"))
    drawn = jm.sample_for_labelling(jm.Results.from_frame(frame, METRICS), 60).records
    assert drawn["variant"].value_counts().to_dict() == {"large": 50, "small": 10}
    assert drawn["probability"].to_numpy() == pytest.approx(0.1)


def test_formulas_in_answers_are_text_in_the_sheet(tmp_path: Path) -> None:
    records = [
        {"id": at, "answer": "=1+1" if at else "plain, with comma", "contexts": ["one", "two"]} for at in range(3)
    ]
    rated = jm.evaluate(records, ["fluency"], jm.BaselineJudge(), store=None, progress=False)
    sheet = pd.read_csv(jm.sample_for_labelling(rated, 3).save(tmp_path / "s.csv"), dtype=str).set_index("id")
    assert sheet.loc["1", "answer"] == "'=1+1" and sheet.loc["0", "answer"] == "plain, with comma"
    assert sheet.loc["0", "contexts"] == "one\n\ntwo"


def test_sheets_with_what_was_not_drawn_or_asked_are_refused(tmp_path: Path) -> None:
    drawn = jm.sample_for_labelling(results(), 30)
    first = drawn.records["id"][0]
    inside = [{"id": first, "metric": "ok", "label": 1, "probability": 0.05}]
    path = tmp_path / "x.csv"
    for rows, says in (
        ([{**inside[0], "id": "elsewhere"}], "not in this sample"),
        ([{**inside[0], "metric": "other"}], "nobody was asked for 'other'"),
    ):
        pd.DataFrame(rows).to_csv(path, index=False)
        with pytest.raises(jm.InputError, match=says):
            drawn.read(path)
    with pytest.raises(jm.InputError, match="expected 1 to 600"):
        jm.sample_for_labelling(results(), 601)
    with pytest.raises(jm.InputError, match="two judges"):
        jm.sample_for_labelling(jm.Results.from_frame(FRAME[FRAME["judge"] == "ann"], METRICS), 30, "disagreement")


def test_budget_plans_what_the_interval_then_has() -> None:
    pilot = SOME[:80]
    found = line(jm.label_budget(results(), labels(pilot, "random"), width=0.1, records=20_000), "ann")
    assert 80 < found["labels"] < found["labels_alone"] < 20_000
    coin = line(jm.label_budget(results(), labels(pilot, "random"), width=0.1, records=20_000), "coin")
    assert coin["labels"] == pytest.approx(coin["labels_alone"], rel=0.1)
    assert pd.isna(line(jm.label_budget(results(), labels(pilot, "random"), width=0.001), "ann")["labels"])
    with pytest.raises(jm.InputError, match="random subset"):
        jm.label_budget(results(), labels(pilot, "by_label"), width=0.1)
    with pytest.raises(jm.InputError, match="at least 10"):
        jm.label_budget(results(), labels(pilot[:9], "random"), width=0.1)


def test_the_function_stays_what_it_is_when_its_package_is_imported() -> None:
    import importlib

    importlib.import_module("jurimetrics.calibrate.corrected")
    assert callable(jm.calibrate) and jm.calibrate.__module__ == "jurimetrics.calibrate.calibration"
    assert isinstance(jm.corrected_means(results(), labels(SOME, "random")).loc[0, "corrected"], Estimate)
