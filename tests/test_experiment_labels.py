"""Labels that an experiment file names: they correct a comparison where the file says how they were chosen."""

from __future__ import annotations

import json
from pathlib import Path

import jurimetrics as jm
import pytest
from jurimetrics.experiment import compare_experiment, evaluate_experiment, load_experiment
from jurimetrics.experiment.studying import report_experiment

RECORDS = 40
FILE = """
name = "labelled"
data = { records = "records.jsonl", labels = "labels.csv", SELECTION }
metrics.use = ["fluency"]
judges = [{ kind = "baseline" }]
compare.primary = ["fluency"]
report.file = "report.html"
run.store = "none"
mlflow.log = false
"""
WORDS = ("It opened.", "It it opened opened in in 1889.", "The lock was opened in 1889, and it is old.")


def study(folder: Path, selection: str, metric: str = "fluency") -> Path:
    """Forty questions under two variants; people find B one level more fluent than A in every second record."""
    rows = [
        {"id": str(at), "variant": name, "answer": WORDS[(at + shift) % 3], "contexts": ["It opened in 1889."]}
        for at in range(RECORDS)
        for shift, name in enumerate("AB")
    ]
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    labels = ["id,variant,metric,label"]
    labels += [f"{at},{name},{metric},{3 + (name == 'B') * (at % 2)}" for at in range(0, RECORDS) for name in "AB"]
    (folder / "labels.csv").write_text("\n".join(labels), encoding="utf-8")
    file = folder / "experiment.toml"
    file.write_text(FILE.replace(", SELECTION", selection), encoding="utf-8")
    return file


def run(file: Path) -> tuple[jm.Comparison, str]:
    experiment = load_experiment(file)
    results = evaluate_experiment(experiment, progress=False)
    found = compare_experiment(experiment, results)
    assert found is not None
    page = report_experiment(experiment, results, found)
    assert page is not None
    return found, page.read_text(encoding="utf-8")


def test_labels_chosen_at_random_correct_the_difference(tmp_path: Path) -> None:
    found, page = run(study(tmp_path, ', selection = "random"'))
    line = found.frame.iloc[0]
    assert line["labelled"] == RECORDS
    # All records are labelled, so what people said is the corrected difference: one level in half of the records.
    assert line["corrected"] == pytest.approx(0.5, abs=1e-9)
    assert line["verdict"].startswith("people, as estimated from labels and judge, score B higher by 0.5")
    assert "people, as estimated from labels" in page


def test_labels_of_an_unknown_choice_are_shown_and_correct_nothing(tmp_path: Path) -> None:
    found, page = run(study(tmp_path, ""))
    assert found.frame.loc[0, "labelled"] == 0
    assert "people, as estimated" not in page
    assert "No labels of people were given" not in page, "agreement with the labels that are there is shown"


def test_labels_of_another_metric_correct_and_show_nothing(tmp_path: Path) -> None:
    found, page = run(study(tmp_path, ', selection = "random"', metric="coherence"))
    assert found.frame.loc[0, "labelled"] == 0
    assert "No labels of people were given" in page


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (', selection = "chance"', 'data.selection: expected how the labelled records were chosen: "random", '),
        (", selection = 1", "data.selection: expected how the labelled records were chosen"),
    ],
)
def test_a_choice_that_is_not_known_is_told(tmp_path: Path, selection: str, words: str) -> None:
    with pytest.raises(jm.InputError, match=words):
        load_experiment(study(tmp_path, selection))


def test_a_choice_without_labels_is_told(tmp_path: Path) -> None:
    file = study(tmp_path, ', selection = "random"')
    file.write_text(file.read_text(encoding="utf-8").replace(', labels = "labels.csv"', ""), encoding="utf-8")
    with pytest.raises(jm.InputError, match=r"data\.selection: .* \[data\] names no labels"):
        load_experiment(file)
