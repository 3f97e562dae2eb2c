"""Judges against people: labels joined, ceilings, ties, bias; the published figures on recorded judges."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics.calibrate.agreement import Agreement
from jurimetrics.calibrate.labels import join
from jurimetrics.calibrate.raters import rater_report
from jurimetrics.errors import InputError
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score


def graded(
    scores: dict[str, list[Any]], labels: dict[str, list[Any]], *, group: list[Any] | None = None, **declared: Any
) -> tuple[jm.Results, pd.DataFrame]:
    """Results and labels of one metric: a list of scores for each judge, a list of labels for each rater."""
    size = len(next(iter(scores.values())))
    groups = group or list(range(size))
    frame = pd.concat(
        pd.DataFrame({"id": range(size), "metric": "grade", "judge": name, "score": given, "group": groups})
        for name, given in scores.items()
    )
    people = [
        {"id": at, "metric": "grade", "rater": name, "label": label}
        for name, given in labels.items()
        for at, label in enumerate(given)
    ]
    results = jm.Results.from_frame(frame, {"grade": {"range": (1, 5)} | declared})
    return results, jm.load_labels(people, selection="random")


def made(size: int = 60, seed: int = 0) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    draw = np.random.default_rng(seed)
    truth = draw.normal(3, 1.2, size)

    def told(error: float) -> list[Any]:
        return np.clip(np.round(truth + draw.normal(0, error, size)), 1, 5).tolist()

    return {"ann": told(0.5), "bob": told(1.5)}, {"x": told(0.6), "y": told(0.6), "z": told(0.6)}


# -- labels joined


def test_join_keeps_every_record_and_says_who_said_what() -> None:
    results, labels = graded({"ann": [1, 2, 3]}, {"x": [1, "", 5], "y": [3, "", 5]}, threshold=3)
    rows = join(results, labels)
    assert rows["label"].tolist()[:1] == [2.0] and np.isnan(rows["label"][1]) and rows["label"][2] == 5.0
    assert rows["raters"].tolist() == [2, 0, 2]
    assert rows["tied"].tolist() == [True, False, False]
    assert rows["label_passed"].tolist()[0] == 0.5
    assert rows["passed"].tolist() == [0.0, 0.0, 1.0]
    assert rows["rater:y"].tolist()[0] == 3.0
    assert rows.attrs["selection"] == "random" and rows.attrs["raters"] == ["x", "y"]


def test_repeats_are_averaged_before_anything_else() -> None:
    frame = pd.DataFrame(
        {"id": [1, 1, 2, 2], "metric": "grade", "judge": "ann", "repeat": [0, 1, 0, 1], "score": [1, 4, 2, None]}
    )
    results = jm.Results.from_frame(frame, {"grade": {"range": (1, 5), "threshold": 3}})
    rows = join(results, jm.load_labels([{"id": 1, "metric": "grade", "label": 2}]))
    assert rows["score"].tolist() == [2.5, 2.0]
    assert rows["passed"].tolist() == [0.5, 0.0]
    assert rows["repeats"].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda rows: rows.assign(label=7.0),
            r"row 1 \(id '0', metric 'grade', rater 'x'\) is 7, outside the declared",
        ),
        (lambda rows: rows.drop(columns="rater"), "no column 'rater'"),
        (lambda rows: pd.concat([rows, rows]), "is given twice"),
        (lambda rows: rows.assign(id="z" + rows["id"]), "none meets a row of the results"),
        (lambda rows: rows.assign(metric="other"), "labels: of other, but the results hold grade"),
    ],
)
def test_labels_that_cannot_be_joined_are_refused(change: Any, says: str) -> None:
    results, labels = graded({"ann": [1, 2, 3]}, {"x": [1, 2, 5]})
    with pytest.raises(InputError, match=says):
        jm.agreement(results, change(labels))


def test_labels_that_meet_nothing_are_counted_and_listed() -> None:
    results, labels = graded({"ann": [1, 2, 3]}, {"x": [1, 2, 5]})
    more = pd.concat([labels, labels.iloc[:1].assign(id="elsewhere")], ignore_index=True)
    more.attrs = labels.attrs
    found = jm.agreement(results, more)
    assert found.unmatched["id"].tolist() == ["elsewhere"]
    assert "1 labels met no row of the results (see unmatched)" in found.notes


# -- one line for each judge


def test_every_number_of_a_line_from_its_definition() -> None:
    scores, people = made()
    results, labels = graded(scores, people)
    found = jm.agreement(results, labels, level="pooled")
    given = np.array(list(people.values()))
    for judge in ("ann", "bob"):
        mine = np.array(scores[judge])
        kappas = [cohen_kappa_score(mine, one, labels=range(1, 6), weights="quadratic") for one in given]
        assert found.estimate("kappa_quadratic", judge=judge).value == pytest.approx(np.mean(kappas))
        gold = spearmanr(mine, given.mean(axis=0))[0]
        assert found.estimate("spearman", judge=judge).value == pytest.approx(gold)
        others = [np.delete(given, at, axis=0).mean(axis=0) for at in range(3)]
        against = np.mean([spearmanr(mine, one)[0] for one in others])
        ceiling = np.mean([spearmanr(given[at], others[at])[0] for at in range(3)])
        assert found.estimate("spearman_others", judge=judge).value == pytest.approx(against)
        assert found.estimate("human_spearman", judge=judge).value == pytest.approx(ceiling)
        assert found.estimate("spearman_gap", judge=judge).value == pytest.approx(against - ceiling)
        bias = (mine - given.mean(axis=0)).mean()
        assert found.estimate("bias", judge=judge).value == pytest.approx(bias)
    humans = [cohen_kappa_score(one, two, labels=range(1, 6)) for one, two in combinations(given, 2)]
    assert found.estimate("human_kappa", judge="ann").value == pytest.approx(np.mean(humans))


def test_the_frame_is_flat_and_says_undefined_in_words() -> None:
    results, labels = graded(*made())
    frame = jm.agreement(results, labels).frame
    assert frame["judge"].tolist() == ["ann", "bob"] and set(frame["level"]) == {"group"}
    assert all(not isinstance(value, dict | list) for value in frame.iloc[0])
    for name in [column.removesuffix("_method") for column in frame if column.endswith("_method")]:
        for _, row in frame.iterrows():
            assert row[f"{name}_method"]
            assert np.isnan(row[name]) == row[f"{name}_method"].startswith("undefined: ")
            assert np.isnan(row[f"{name}_low"]) == np.isnan(row[f"{name}_high"])
    # Every record is a group of its own here, so there is nothing to rank within one.
    assert frame["spearman_method"][0].endswith(
        'each of the 60 groups has a single row; level="pooled" compares across groups'
    )
    assert frame["skipped_groups"].tolist() == [60, 60] and frame["used_groups"].tolist() == [0, 0]


def test_the_panel_has_a_line_and_its_broken_scores_get_correlations_but_no_kappa() -> None:
    scores, people = made()
    halves = [(one + two) / 2 for one, two in zip(scores["ann"], scores["bob"], strict=True)]
    results, labels = graded(scores | {"panel": halves}, people)
    settings = results.settings | {"panel": {"name": "panel", "rule": "mean", "members": ["ann", "bob"]}}
    found = jm.agreement(jm.Results(results.folder, settings), labels, level="pooled")
    assert {line.judge: line.kind for line in found.lines} == {"ann": "judge", "bob": "judge", "panel": "panel"}
    kappa = found.estimate("kappa", judge="panel")
    assert kappa.value is None and "is no whole step of the scale; see correlations and ICC" in kappa.method
    assert found.estimate("accuracy", judge="panel").value is None
    for name in ("spearman", "kendall", "pearson", "icc_2_1", "alpha_interval", "bias"):
        assert found.estimate(name, judge="panel").value is not None
    with pytest.raises(InputError, match="no whole step"):
        found.confusion("grade", "panel")


def test_s09_a_judge_that_always_passes_is_no_better_than_constant() -> None:
    results, labels = graded({"ann": [1] * 30}, {"x": [1] * 20 + [0] * 10}, range=(0, 1), threshold=0.5)
    found = jm.agreement(results, labels)
    line = found.lines[0]
    assert line.estimates["accuracy"].value == pytest.approx(2 / 3)
    assert line.estimates["kappa"].value == pytest.approx(0)
    assert "one side never varies" in line.estimates["kappa"].method
    assert line.estimates["accuracy_gain"].value == 0
    assert line.notes == ("no better than constant: always guessing 1 is right at least as often",)
    assert found.confusion("grade", "ann").loc["1"].tolist() == [10.0, 20.0]
    assert line.estimates["pass_agreement"].value == pytest.approx(2 / 3)
    assert line.estimates["spearman"].value is None


def test_s03_one_class_only_has_raw_agreement_but_no_kappa() -> None:
    results, labels = graded({"ann": [1] * 10}, {"x": [1] * 10}, range=(0, 1))
    found = jm.agreement(results, labels)
    assert found.estimate("raw_agreement").value == 1.0
    for name in ("kappa", "kappa_quadratic", "alpha_nominal"):
        assert found.estimate(name).value is None
        assert "one class only: both gave 1 in all 10 pairs; raw agreement 1.00" in found.estimate(name).method


def test_s13_ties_are_listed_left_out_and_settled_only_by_a_rule() -> None:
    people = {"w": [1, 1, 0, 1], "x": [1, 1, 0, 1], "y": [0, 1, 0, 0], "z": [0, 1, 0, 1]}
    results, labels = graded({"ann": [1, 1, 0, 1]}, people, range=(0, 1))
    found = jm.agreement(results, labels)
    assert found.ties["id"].tolist() == ["0"]
    assert found.frame["tied"][0] == 0.25
    assert found.confusion("grade", "ann").to_numpy().sum() == 3
    assert "grade: 25% of the labelled records have no majority; they are left out of accuracy and confusion" in (
        found.notes
    )
    highest, lowest = (jm.agreement(results, labels, ties=rule) for rule in ("highest", "lowest"))
    assert highest.estimate("accuracy").value == 1.0
    assert lowest.estimate("accuracy").value == 0.75
    # Order of rows and of raters never shows, whatever the seed.
    for seed in range(4):
        one, other = (
            jm.agreement(results, rows, ties="random", seed=seed).confusion("grade", "ann")
            for rows in (labels, shuffled(labels, seed))
        )
        pd.testing.assert_frame_equal(one, other)
    with pytest.raises(InputError, match="ties are"):
        jm.agreement(results, labels, ties="coin")  # type: ignore[arg-type]


def shuffled(labels: pd.DataFrame, seed: int) -> pd.DataFrame:
    again = labels.sample(frac=1, random_state=seed).reset_index(drop=True)
    again.attrs = labels.attrs
    return again


def test_the_order_of_rows_never_shows() -> None:
    scores, people = made(40)
    results, labels = graded(scores, people, group=[at % 10 for at in range(40)])
    one, other = (jm.agreement(results, rows).frame for rows in (labels, shuffled(labels, 3)))
    pd.testing.assert_frame_equal(one, other)


def test_raters_who_labelled_different_records() -> None:
    scores, people = made(80)
    for name, gap in (("x", slice(0, 30)), ("y", slice(50, 80))):
        people[name][gap] = [None] * len(people[name][gap])
    results, labels = graded(scores, people)
    found = jm.agreement(results, labels, level="pooled")
    kappas = []
    for given in people.values():
        there = [at for at, one in enumerate(given) if one is not None]
        kappas.append(cohen_kappa_score([scores["ann"][at] for at in there], [given[at] for at in there]))
    assert found.estimate("kappa", judge="ann").value == pytest.approx(np.mean(kappas))
    assert found.estimate("human_spearman", judge="ann").value is not None


def test_rows_without_a_score_are_counted_and_a_judge_without_any_is_told() -> None:
    scores, people = made(30)
    scores["ann"][:5] = [None] * 5
    results, labels = graded(scores | {"silent": [None] * 30}, people)
    frame = jm.agreement(results, labels).frame.set_index("judge")
    assert frame.loc["ann", ["n", "missing"]].tolist() == [25, 5]
    assert frame.loc["silent", ["n", "missing"]].tolist() == [0, 30]
    assert frame.loc["silent", "kappa_method"] == "undefined: the judge scored none of the labelled rows"
    assert set(jm.agreement(results, labels).lines[2].estimates) == set(
        jm.agreement(results, labels).lines[0].estimates
    )


def test_the_judge_to_beat() -> None:
    scores, people = made(80)
    results, labels = graded(scores, people)
    found = jm.agreement(results, labels, level="pooled", baseline="bob")
    over = found.estimate("spearman_over_baseline", judge="ann")
    difference = found.estimate("spearman", judge="ann").value - found.estimate("spearman", judge="bob").value  # type: ignore[operator]
    assert over.value == pytest.approx(difference) and over.low is not None and over.low > 0
    assert {line.judge: line.kind for line in found.lines} == {"ann": "judge", "bob": "baseline"}
    assert "no baseline judge" in found.estimate("kappa_over_baseline", judge="bob").method
    with pytest.raises(InputError, match="'eve' is none of the judges"):
        jm.agreement(results, labels, baseline="eve")


def test_known_probabilities_count_each_record_for_those_it_stands_for() -> None:
    scores, people = made(400)
    single = {"x": people["x"]}
    results, labels = graded(scores, single)
    # The worst half by the judge is labelled four times as often.
    score = pd.Series(scores["ann"])
    probability = np.where(score <= score.median(), 0.8, 0.2)
    kept = np.random.default_rng(1).uniform(size=400) < probability
    chosen = labels.assign(probability=probability)[kept].reset_index(drop=True)
    chosen.attrs = {"selection": "probabilities"}
    whole, weighted = (jm.agreement(results, rows, level="pooled") for rows in (labels, chosen))
    plain = chosen.drop(columns="probability")
    plain.attrs = {"selection": "random"}
    unweighted = jm.agreement(results, plain, level="pooled")
    truth, fair, naive = (one.estimate("bias", judge="ann") for one in (whole, weighted, unweighted))
    assert fair.low is not None and fair.high is not None and truth.value is not None
    assert fair.low <= truth.value <= fair.high
    mass = 1 / chosen["probability"].to_numpy()
    judged = score[chosen["id"].astype(int)].to_numpy()
    assert fair.value == pytest.approx(np.average(judged - chosen["label"].to_numpy(), weights=mass))
    assert fair.value != pytest.approx(naive.value)
    by_sklearn = cohen_kappa_score(judged, chosen["label"], labels=range(1, 6), sample_weight=mass)
    assert weighted.estimate("kappa", judge="ann").value == pytest.approx(by_sklearn)
    with pytest.raises(InputError, match="no probability of being chosen"):
        missing = chosen.assign(probability=np.nan)
        missing.attrs = chosen.attrs
        jm.agreement(results, missing)


def test_unknown_selection_is_said_not_guessed() -> None:
    results, labels = graded(*made(20))
    labels.attrs["selection"] = None
    assert any(
        "how the labelled records were chosen is not said" in note for note in jm.agreement(results, labels).notes
    )


def test_bad_arguments_are_refused() -> None:
    results, labels = graded(*made(20))
    with pytest.raises(InputError, match="level is"):
        jm.agreement(results, labels, level="row")  # type: ignore[arg-type]
    found = jm.agreement(results, labels)
    with pytest.raises(InputError, match="2 lines for metric"):
        found.estimate("kappa")
    with pytest.raises(InputError, match="no estimate 'kapa'"):
        found.estimate("kapa", judge="ann")


# -- bias, raters


def test_bias_by_language_length_variant_and_any_column(project: Path) -> None:
    answers = ["Short.", "The answer is a little longer than that.", "Die Antwort ist auf Deutsch und nicht kurz."]
    records = [
        {"id": at, "answer": answers[at % 3], "variant": "ab"[at % 2], "metadata": {"topic": ["law", "art"][at % 2]}}
        for at in range(30)
    ]
    results = jm.evaluate(records, ["fluency"], jm.BaselineJudge(), store=None)
    labels = jm.load_labels(
        [{"id": at, "variant": "ab"[at % 2], "metric": "fluency", "label": 1 + at % 5} for at in range(30)]
    )
    found = jm.agreement(results, labels)
    assert found.lines[0].kind == "baseline"
    rows = found.rows
    by_variant = found.bias_by("variant").set_index("slice")["bias"]
    for name in "ab":
        mine = rows[rows["variant"] == name]
        assert by_variant[name] == pytest.approx((mine["score"] - mine["label"]).mean())
    assert found.bias_by("topic")["slice"].tolist() == ["art", "law"]
    assert found.bias_by("language")["slice"].tolist() == ["de", "en", "und"]
    assert found.bias_by("length")["n"].sum() == 30
    assert (found.bias_by("length")["method"].str.len() > 0).all()
    with pytest.raises(InputError, match=r"no column 'colour'.*their metadata topic"):
        found.bias_by("colour")


def test_a_strict_rater_and_one_who_guesses_are_named() -> None:
    draw = np.random.default_rng(0)
    truth = draw.integers(2, 6, 80)
    people = {
        "fair": truth.tolist(),
        "close": np.clip(truth + draw.integers(-1, 2, 80), 1, 5).tolist(),
        "strict": (truth - 1).tolist(),
        "guess": draw.integers(1, 6, 80).tolist(),
        "alone": [None] * 80,
    }
    _, labels = graded({"ann": truth.tolist()}, people)
    extra = jm.load_labels([{"id": "x", "metric": "grade", "rater": "alone", "label": 3}])
    report = rater_report(pd.concat([labels, extra], ignore_index=True))
    remarks = report.frame.set_index("rater")["remark"]
    assert remarks["strict"] == "labels lower than the others"
    assert remarks["guess"] == "follows the others no better than by chance"
    assert remarks["alone"] == "shares no record with another rater"
    assert remarks["fair"] in ("", "labels higher than the others")
    assert report.overlap.loc[("grade", "fair"), "strict"] == 80
    assert report.overlap.loc[("grade", "fair"), "alone"] == 0
    worst = report.outliers.iloc[0]
    assert abs(worst["difference"]) == report.outliers["difference"].abs().max()
    assert len(report.outliers) == 20
    pair = report.pairs[(report.pairs["first"] == "close") & (report.pairs["second"] == "fair")].iloc[0]
    assert pair["kappa"] == pytest.approx(cohen_kappa_score(people["close"], people["fair"]))


# -- recorded judges and experts


@pytest.fixture(scope="module")
def summeval() -> tuple[jm.Results, pd.DataFrame]:
    path = Path(__file__).parents[2] / "shared" / "data" / "summeval_experts_judges.csv"
    if not path.is_file():
        pytest.skip("the labelled data folder ../shared/data is not here")
    rows = pd.read_csv(path).rename(columns={"doc_id": "id", "system_id": "variant", "dimension": "metric"})
    key = ["id", "variant", "metric"]
    judges = [name for name in rows if name.startswith("judge_")]
    scores = rows.melt(key, judges, "judge", "score").assign(group=lambda frame: frame["id"])
    people = rows.melt(key, [f"expert_{at}" for at in range(3)], "rater", "label")
    results = jm.Results.from_frame(scores, {name: {"range": (1, 5)} for name in rows["metric"].unique()})
    return results, jm.load_labels(people, selection="random")


def test_summeval_coherence_within_documents(summeval: tuple[jm.Results, pd.DataFrame]) -> None:
    results, labels = summeval
    frame = jm.agreement(results, labels[labels["metric"] == "coherence"]).frame.set_index("judge")
    published = {
        "judge_gpt-4o": (0.542, 0),
        "judge_gpt-4o-mini": (0.484, 0),
        "judge_gemini_flash": (0.473, 1),
        "judge_mistral-v03": (0.201, 8),
    }
    for judge, (rho, dropped) in published.items():
        assert round(frame.loc[judge, "spearman"], 3) == rho
        assert frame.loc[judge, "skipped_groups"] == dropped
        assert frame.loc[judge, "used_groups"] == 100 - dropped
        assert frame.loc[judge, "spearman_low"] < rho < frame.loc[judge, "spearman_high"]
    assert round(frame["tied"].iloc[0], 2) == 0.21


def test_summeval_relevance_seems_to_beat_people_until_others_are_the_measure(
    summeval: tuple[jm.Results, pd.DataFrame],
) -> None:
    results, labels = summeval
    found: Agreement = jm.agreement(results, labels[labels["metric"] == "relevance"], level="pooled")
    of = {name: found.estimate(name, judge="judge_gpt-4o-mini") for name in ("spearman", "spearman_others")}
    assert round(of["spearman"].value or 0, 3) == 0.480
    assert round(of["spearman_others"].value or 0, 3) == 0.453
    assert round(found.estimate("human_spearman", judge="judge_gpt-4o-mini").value or 0, 3) == 0.543
    gap = found.estimate("spearman_gap", judge="judge_gpt-4o-mini")
    assert gap.high is not None and gap.high < 0


def test_summeval_systems(summeval: tuple[jm.Results, pd.DataFrame]) -> None:
    results, labels = summeval
    found = jm.agreement(results, labels[labels["metric"] == "coherence"], level="system")
    best = found.estimate("spearman", judge="judge_gpt-4o")
    assert best.value == pytest.approx(0.7970588, abs=1e-6)
    assert "bootstrap of 16 systems and 100 groups" in best.method


def test_pandalm_people_among_themselves(shared_data: Path) -> None:
    path = shared_data / "pandalm_pairwise.jsonl"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in ../shared/data")
    votes = [json.loads(line)["human"] for line in path.read_text(encoding="utf-8").splitlines()]
    labels = jm.load_labels(
        [
            {"id": at, "metric": "preference", "rater": rater, "label": vote}
            for at, three in enumerate(votes)
            for rater, vote in enumerate(three)
        ]
    )
    assert sorted(rater_report(labels).pairs["kappa"].round(2)) == [0.85, 0.86, 0.88]
    assert rater_report(labels).pairs["kappa"].round(2).tolist() == [0.85, 0.88, 0.86]


@pytest.mark.parametrize(("part", "published"), [("cnndm", (0.682, 0.662, 0.532)), ("xsum", (0.461, 0.488, 0.399))])
def test_unieval_on_qags(shared_data: Path, part: str, published: tuple[float, ...]) -> None:
    path = shared_data / "qags_unieval_scores.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in ../shared/data")
    rows = pd.read_csv(path)
    rows = rows[rows["part"] == part].assign(id=lambda frame: range(len(frame)), metric="consistency", judge="unieval")
    results = jm.Results.from_frame(
        rows.rename(columns={"unieval_consistency": "score"})[["id", "metric", "judge", "score"]],
        {"consistency": {"range": (0, 1)}},
    )
    people = rows.rename(columns={"human_consistency": "label"})[["id", "metric", "label"]]
    found = jm.agreement(results, jm.load_labels(people, selection="random"), level="pooled")
    values = [found.estimate(name).value or 0 for name in ("pearson", "spearman", "kendall")]
    assert [round(value, 3) for value in values] == list(published)
    assert found.estimate("kappa").value is None


def test_groups_without_a_correlation_lend_no_certainty() -> None:
    # Twelve groups of five, in nine of which the judge gives the same throughout: three are too few for an interval.
    draw = np.random.default_rng(3)
    codes = [at // 5 for at in range(60)]
    scores = [float(draw.integers(1, 6)) if group < 3 else 4.0 for group in codes]
    results, labels = graded({"ann": scores}, {"x": draw.integers(1, 6, 60).tolist()}, group=codes)
    line = jm.agreement(results, labels).lines[0]
    assert (line.used_groups, line.skipped_groups) == (3, 9)
    found = line.estimates["spearman"]
    assert found.value is not None and found.low is None and found.n == 3
    assert found.method == "mean spearman within groups; no interval: 3 groups, 8 are needed"


def test_labels_that_made_a_calibration_do_not_judge_it() -> None:
    scores, people = made(80)
    results, labels = graded(scores, people, threshold=3)
    half = labels[labels["id"].astype(int) < 40]
    half.attrs = labels.attrs
    rest = labels[labels["id"].astype(int) >= 40]
    rest.attrs = labels.attrs
    mapped = jm.calibrate(results, half, judge="ann", method="linear").apply(results)
    reused, fresh = (jm.agreement(mapped, rows, level="pooled") for rows in (labels, rest))
    name = "ann (calibrated)"
    assert "fitted on labels of the same groups" in reused.estimate("pearson", judge=name).method
    assert reused.estimate("pearson", judge=name).value is None
    assert reused.estimate("pearson", judge="ann").value is not None
    assert fresh.estimate("pearson", judge=name).value == pytest.approx(fresh.estimate("pearson", judge="ann").value)
    moved = jm.calibrate(results, half, judge="ann", method="threshold").apply(results)
    reused, fresh = (jm.agreement(moved, rows, level="pooled") for rows in (labels, rest))
    assert "was chosen on labels of the same groups" in reused.estimate("pass_kappa", judge="ann").method
    assert reused.estimate("kappa", judge="ann").value is not None
    assert fresh.estimate("pass_kappa", judge="ann").value is not None
