"""`jurimetrics calibrate`: agreement, calibration and corrected means as printed, what is written and logged, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics.calibrate.calibration import Calibration
from jurimetrics.cli import app
from jurimetrics.tracking.store import Store, find_store, open_store
from typer.testing import CliRunner, Result

pytest_plugins = ("mlflow_store",)

N = 400


def make(project: Path, judges: tuple[str, ...] = ("ann",), metric: str = "grade", n: int = N) -> Path:
    """Results of n records by judges who follow the true grade by a step more or less; `floor` does not follow it at all."""
    random = np.random.default_rng(5)
    truth = random.integers(1, 6, N)
    parts = []
    for name in judges:
        said = random.integers(1, 6, N) if name == "floor" else np.clip(truth + random.integers(-1, 2, N), 1, 5)
        frame = pd.DataFrame({"id": [f"q{at}" for at in range(N)], "metric": metric, "judge": name, "score": said})
        parts.append(frame.head(n))
    declared = {metric: {"range": (1, 5), "threshold": 3}}
    results = jm.Results.from_frame(pd.concat(parts, ignore_index=True), declared)
    folder = results.save(project / "results")
    told = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    if "floor" in judges:
        told["judges"]["floor"]["kind"] = "baseline"
        (folder / "settings.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def label(project: Path, every: int = 2, raters: tuple[str, ...] = ("eva", "tom"), metric: str = "grade") -> Path:
    """People's labels of every so-many-th record: the true grade, tom one step off now and then."""
    truth = np.random.default_rng(5).integers(1, 6, N)
    rows = [
        {"id": f"q{at}", "metric": metric, "rater": name, "label": min(5, truth[at] + (name == "tom" and at % 6 == 0))}
        for at in range(0, N, every)
        for name in raters
    ]
    pd.DataFrame(rows).to_csv(project / "labels.csv", index=False)
    return project / "labels.csv"


def call(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


def part(text: str, head: str) -> str:
    """One of the three parts of what is printed."""
    return text[text.index(head) :].split("\n\n")[0]


def test_agreement_calibration_and_corrected_means_are_printed_with_their_intervals(project: Path) -> None:
    folder, labels = make(project, ("ann", "floor")), label(project)
    found = call(folder, "--labels", labels, "--selection", "random", "--judge", "ann")
    assert found.exit_code == 0, found.output
    agreed = part(found.stdout, "Agreement with people")
    figures = jm.agreement(jm.Results.load(folder), jm.load_labels(labels, selection="random"), level="pooled")
    mine = figures.frame.set_index("judge").loc["ann"]
    assert mine["n"] == 200

    def shown(name: str) -> str:
        return f"{mine[name]:.2f} [{mine[f'{name}_low']:.2f}, {mine[f'{name}_high']:.2f}]"

    (line,) = re.findall(r"^grade +ann .*$", agreed, re.MULTILINE)
    expected = ["grade", "ann", "200"]
    expected += [shown(name) for name in ("spearman", "human_spearman", "spearman_over_baseline")]
    expected += [shown(name) for name in ("kappa_quadratic", "human_kappa_quadratic", "bias")]
    assert re.split(r"  +", line) == expected
    fitted = part(found.stdout, "Calibration of ann under grade")
    made = jm.calibrate(jm.Results.load(folder), jm.load_labels(labels, selection="random"), judge="ann")
    assert made.threshold is not None
    assert "200 labelled records in 200 groups, chosen random" in fitted
    assert f"threshold  passes at >= {made.threshold.value:g}: " in fitted
    worth = made.held_out["youden"]
    assert f"on other records {worth.value:.2f} [{worth.low:.2f}, {worth.high:.2f}], n = {worth.n}" in fitted
    error = made.held_out["squared_error"]
    assert f"squared error on other records {error.value:.2f} [{error.low:.2f}, {error.high:.2f}], n = 200" in fitted
    corrected = part(found.stdout, "What people would have said of all records")
    table = jm.corrected_means(jm.Results.load(folder), jm.load_labels(labels, selection="random")).set_index("judge")
    one = table.loc["ann"]
    assert f"{one['raw']:.2f}" in corrected and f"{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}]" in corrected
    assert "200 of 400" in corrected


def test_the_calibration_is_written_and_read_again(project: Path) -> None:
    folder, labels, file = make(project), label(project), project / "deep" / "calibration.json"
    found = call(folder, "--labels", labels, "--selection", "random", "-o", file)
    assert found.exit_code == 0 and f"calibration  {file}" in found.stdout
    made = jm.calibrate(jm.Results.load(folder), jm.load_labels(labels, selection="random"))
    assert Calibration.load(file).to_dict() == made.to_dict()


@pytest.mark.parametrize(
    ("method", "said"), [("isotonic", "isotonic: "), ("platt", "platt: probability"), ("threshold", "none was")]
)
def test_methods(project: Path, method: str, said: str) -> None:
    found = call(make(project), "--labels", label(project, 1), "--selection", "random", "--method", method)
    assert found.exit_code == 0
    assert re.search(rf"^map +{re.escape(said)}", found.stdout, re.MULTILINE)


def test_judges_side_by_side_are_calibrated_each_and_the_baseline_is_not(project: Path) -> None:
    folder, labels = make(project, ("ann", "bob", "floor")), label(project)
    found = call(folder, "--labels", labels, "--selection", "random")
    assert found.exit_code == 0
    assert re.findall(r"^Calibration of (\w+) under grade", found.stdout, re.MULTILINE) == ["ann", "bob"]
    written = call(folder, "--labels", labels, "--selection", "random", "-o", project / "c.json")
    assert (
        written.exit_code == 2
        and "--out holds one calibration, and there would be 2: grade by ann, grade by bob" in written.stderr
    )
    assert not (project / "c.json").exists()
    one = call(folder, "--labels", labels, "--selection", "random", "-o", project / "c.json", "--judge", "bob")
    assert one.exit_code == 0 and Calibration.load(project / "c.json").judge == "bob"


def test_too_few_labels_are_a_refusal_that_says_how_many_would_do(project: Path) -> None:
    folder, labels = make(project), label(project, 60)  # seven records
    found = call(folder, "--labels", labels, "--selection", "random", "-o", project / "c.json")
    assert found.exit_code == 1, found.output
    said = part(found.stdout, "Calibration of ann under grade")
    assert (
        "none: grade by ann: 7 labelled records of 7 groups are too few; 8 groups are the least, about 100 records"
        in said
    )
    assert "nothing written or logged, since no calibration came of these labels" in found.stdout
    assert not (project / "c.json").exists()
    assert found.stdout.count("* grade by ann: no interval: 7 rows, 8 are needed.") == 1
    assert "too few to say how many would do" in found.stdout
    assert "nan" not in found.stdout.lower() and found.stderr == ""


def test_more_labels_needed_are_told(project: Path) -> None:
    found = call(make(project), "--labels", label(project, 8), "--selection", "random")
    table = part(found.stdout, "What people would have said of all records")
    budget = jm.label_budget(
        jm.Results.load(project / "results"), jm.load_labels(project / "labels.csv", selection="random"), 0.4
    )
    assert re.search(rf"^grade +ann .* 50 of 400 +{int(budget['labels'].iloc[0])}$", table, re.MULTILINE)


def test_without_a_selection_nothing_is_corrected_and_it_says_what_to_say(project: Path) -> None:
    found = call(make(project), "--labels", label(project))
    assert found.exit_code == 0
    said = part(found.stdout, "What people would have said of all records")
    assert "none: say how the labelled records were chosen" in said and "--selection random" in said
    assert "in an unknown way" in found.stdout


def test_labels_chosen_by_label_correct_the_pass_rate(project: Path) -> None:
    found = call(make(project), "--labels", label(project), "--selection", "by_label")
    assert found.exit_code == 0
    assert "* The pass rate of each judge's scores" in found.stdout


def test_one_rater_is_no_ceiling_and_it_says_so(project: Path) -> None:
    found = call(make(project), "--labels", label(project, raters=("eva",)), "--selection", "random")
    assert found.exit_code == 0
    assert re.search(r"^grade +ann +200 +0\.\d\d \[\S+ \S+\] +- +- ", found.stdout, re.MULTILINE)
    assert re.search(r"^\* grade by ann: undefined: .* of people.*two are needed", found.stdout, re.MULTILINE)


def test_text_of_others_cannot_steer_the_terminal(project: Path) -> None:
    name = "gr\x1b[31made"
    found = call(make(project, metric=name), "--labels", label(project, metric=name), "--selection", "random")
    assert found.exit_code == 0, found.output
    assert "\x1b" not in found.stdout and "gr\ufffd[31made" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--selection", "chance"), "--selection: expected one of random, probabilities, by_label, found 'chance'"),
        (("--method", "spline"), "--method: expected one of threshold, isotonic, platt, linear, found 'spline'"),
        (("--correlate", "rows"), "--correlate: expected one of pooled, group, system, found 'rows'"),
        (("--metric", "style"), "no label is of 'style'; labelled: grade"),
        (("--judge", "bob"), "no labelled record has a row of the judge 'bob'; judges: ann"),
        (("--attach",), "--attach adds to a run of MLflow, and "),
    ],
)
def test_bad_input_is_one_line_and_status_2(project: Path, arguments: tuple[str, ...], said: str) -> None:
    found = call(make(project), "--labels", label(project), *arguments)
    assert found.exit_code == 2
    assert found.stderr.startswith("jurimetrics: ") and said in found.stderr and found.stderr.count("\n") == 1
    assert found.stdout == ""


def test_it_names_its_own_option_where_the_choice_of_records_is_not_said(project: Path) -> None:
    found = call(make(project, n=60), "--labels", label(project))
    assert found.exit_code == 0, found.output
    assert "describe these records and no others; declare it with --selection random." in found.stdout
    assert "figures hold for records chosen alike. Declare it with --selection." in found.stdout
    assert "load_labels" not in found.stdout and "selection=" not in found.stdout


def test_missing_files_and_labels_of_other_records(project: Path) -> None:
    folder, labels = make(project), label(project)
    assert call("gone", "--labels", labels).exit_code == 2
    assert call(folder, "--labels", project / "gone.csv").exit_code == 2
    labels.write_text("id,metric,label\nz,grade,1\n", encoding="utf-8")
    other = call(folder, "--labels", labels, "--selection", "random")
    assert other.exit_code == 2 and "none meets a row of the results" in other.stderr


def test_it_is_logged_beside_the_results_or_attached_to_their_run(project: Path, mlflow_store: Store) -> None:
    folder, labels = make(project, n=60), label(project)
    logged = call(folder, "--labels", labels, "--selection", "random", "--log", "calibrated")
    assert logged.exit_code == 0, logged.output
    (run_id,) = re.findall(r"^MLflow +run ([0-9a-f]{32})  calibrations/grade\.ann\.json$", logged.stdout, re.MULTILINE)
    client = open_store(find_store())
    made = jm.calibrate(jm.Results.load(folder), jm.load_labels(labels, selection="random"))
    assert client.get_run(run_id).data.tags["jurimetrics.calibration.grade"] == made.data_digest
    attached = call(run_id, "--labels", label(project, 3), "--selection", "random", "--attach")
    assert attached.exit_code == 0, attached.output
    assert f"run {run_id}  calibrations/grade.ann.json" in attached.stdout
    again = client.get_run(run_id).data.tags["jurimetrics.calibration.grade"]
    assert again != made.data_digest


def test_mlflow_that_is_away_is_said_before_anything_is_computed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    found = call(make(project), "--labels", label(project), "--log", "calibrated")
    assert found.exit_code == 2 and "127.0.0.1:9" in found.stderr and found.stdout == ""
