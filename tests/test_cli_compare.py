"""`jurimetrics compare`: one source within itself, several as runs, and every bad input in one line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jurimetrics as jm
import pandas as pd
import pytest
from compared import A, B, results, rows
from evaluations import evaluation
from jurimetrics.cli import app
from jurimetrics.results import Results
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.store import Store
from jurimetrics.variants.compare import COLUMNS
from typer.testing import CliRunner, Result

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def refused(*arguments: object) -> str:
    """The one line on standard error of a command that ends with status 2 and prints nothing else."""
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("jurimetrics: ")
    return line.removeprefix("jurimetrics: ")


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A folder of results with two variants and two metrics."""
    lines = [*rows(A=A, B=B), *rows("other", "ann", A=B, B=A)]
    scales = {name: {"range": (0, 1), "threshold": 0.5} for name in ("grade", "other")}
    return results(lines, scales).save(tmp_path / "both")


def test_one_source_is_compared_within_itself(both: Path) -> None:
    done = call(both)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{jm.compare(Results.load(both))}\n"
    assert "B - A" in done.stdout and "* 2 comparisons decided as one family" in done.stdout


def test_options_reach_the_comparison(both: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.csv"
    options = ["--baseline", "B", "--primary", "grade", "--level", "0.8", "--judge", "ann"]
    done = call(both, *options, "--detect", "grade=0.1", "--detect", "other=0.2", "--csv", file)
    assert (done.exit_code, done.stderr) == (0, "")
    wanted = jm.compare(
        Results.load(both), "B", primary=["grade"], level=0.8, judge="ann", detect={"grade": 0.1, "other": 0.2}
    )
    assert done.stdout == f"{wanted}\n\n2 lines in {file}\n"
    assert "n needed" in done.stdout and "exploratory: " in done.stdout
    kept = pd.read_csv(file)
    assert tuple(kept.columns) == COLUMNS
    assert kept["difference"].tolist() == pytest.approx(wanted.frame["difference"].tolist())
    only = call(both, "--metric", "other")
    assert only.exit_code == 0 and "grade" not in only.stdout


def test_labels_correct_a_difference(both: Path, tmp_path: Path) -> None:
    people = [
        {"id": f"r{at:02}", "variant": v, "label:grade": s}
        for v, each in (("A", A), ("B", B))
        for at, s in enumerate(each)
    ]
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(map(json.dumps, people)), encoding="utf-8")
    done = call(both, "--metric", "grade", "--labels", file, "--selection", "random")
    assert done.exit_code == 0, done.stderr
    labels = jm.load_labels(file, selection="random")
    assert done.stdout == f"{jm.compare(Results.load(both), metrics=['grade'], labels=labels)}\n"
    assert "people, as estimated from labels and judge," in done.stdout and "corrected [interval]" in done.stdout
    assert "--labels needs --selection random or --selection probabilities" in refused(both, "--labels", file)
    assert refused(both, "--labels", file, "--selection", "by_label").endswith("not 'by_label'")
    assert refused(both, "--selection", "random") == "--selection goes with --labels, the file of the labels"


def test_runs_folders_and_experiments_are_compared(mlflow_store: Store, project: Path, tmp_path: Path) -> None:
    run_id = log_run(evaluation(tmp_path), experiment="e", traces=0)[0]
    (project / "june").mkdir()
    evaluation(tmp_path, gain=0.3).save(project / "june" / "results")
    done = call(run_id, "june/results", "--baseline", run_id)
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"june - {run_id[:8]}" in done.stdout
    assert re.search(r"the panel scores june higher by 0\.\d+ \[0\.", done.stdout)
    assert "* Variant '' of june is called 'june', since several results have one of that name." in done.stdout
    by_variant = call(f"runs:/{run_id}", "june/results", "--baseline", "june")
    assert f"{run_id[:8]} - june" in by_variant.stdout


def test_experiments_stand_for_their_results(project: Path) -> None:
    for name, answer in (("old", "It is old."), ("new", "It is new and {}.")):
        study = project / name
        study.mkdir()
        texts = [{"id": str(at), "answer": answer.format(at), "reference": f"It is new and {at}."} for at in range(10)]
        (study / "records.jsonl").write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
        (study / "experiment.toml").write_text(
            'data.records = "records.jsonl"\njudges = [{ kind = "baseline" }]\nmetrics.use = ["f1"]\nrun.store = "none"\n'
            "mlflow.log = false\n",
            encoding="utf-8",
        )
    assert "no results of this experiment in" in refused("old", "new")
    for name in ("old", "new"):
        jm.run_experiment(project / name)
    for sources in (("old", "new"), ("old/results", "new"), ("old", "new/experiment.toml")):
        done = call(*sources, "--baseline", "old")
        assert done.exit_code == 0, done.stderr
        assert "new - old" in done.stdout


def test_what_differs_is_said(tmp_path: Path, project: Path) -> None:
    evaluation(tmp_path, ["a"]).save(project / "may")
    evaluation(tmp_path, ["b"], records=9, served="m-2").save(project / "june")
    said = refused("may", "june")
    assert said == (
        "may and june must not be compared: 3 records are in may alone ('r09', 'r10', 'r11'); --shared-only compares the "
        "9 records that are alike; judge ann was served by the model m-1 in may and by m-2 in june; judge bob was served by "
        "the model m-1 in may and by m-2 in june"
    )
    evaluation(tmp_path, ["b"], records=9).save(project / "june")
    done = call("may", "june", "--shared-only")
    assert done.exit_code == 0, done.stderr
    assert "* Only the 9 records with the same inputs in may and june count: 3 records are in may alone" in done.stdout


def test_other_contexts_are_compared_when_asked_for(tmp_path: Path, project: Path) -> None:
    evaluation(tmp_path, ["a"]).save(project / "may")
    evaluation(tmp_path, ["b"], record={3: {"contexts": ["?"]}}).save(project / "june")
    assert refused("may", "june") == (
        "may and june must not be compared: 1 record has other contexts ('r03'); --shared-only compares the 11 records "
        "that are alike; --other-contexts takes contexts as part of what a system gave"
    )
    done = call("may", "june", "--other-contexts")
    assert done.exit_code == 0, done.stderr
    said = "they differ between may and june in 1 of 12 records ('r03')."
    assert said in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: nothing there; expected a folder of results, an experiment"),
        (["0" * 32], "there is none yet"),
        (["both", "both"], "both #1 and both #2 are the same evaluation of variant 'A'"),
        (["both", "--baseline", "C"], "no variant 'C'; variants: 'A', 'B'"),
        (["both", "--metric", "x"], "no metric 'x'; metrics: grade, other"),
        (["both", "--primary", "x"], "no metric 'x'; metrics: grade, other"),
        (["both", "--judge", "x"], "no rows of a judge 'x'; judges: ann"),
        (["both", "--level", "95"], "level must lie between 0 and 1, not 95"),
        (["both", "--detect", "grade"], "expected METRIC=X, such as faithfulness=0.05, found 'grade'"),
        (["both", "--detect", "grade=much"], "expected METRIC=X, such as faithfulness=0.05, found 'grade=much'"),
        (["both", "--detect", "=1"], "expected METRIC=X"),
        (["both", "--detect", "x=1"], "detect: no metric 'x'"),
        (["both", "--labels", "none.csv", "--selection", "random"], "none.csv"),
        (["both", "--csv", "no/such/folder/lines.csv"], "no/such/folder|No such file|non-existent directory"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], words: str, both: Path, project: Path, tmp_path: Path) -> None:
    assert re.search(words, refused(*arguments))


def test_without_sources_the_usage_is_said() -> None:
    done = call()
    assert done.exit_code == 2
    assert "RUN_OR_DIR" in done.stderr


def test_text_of_every_script_under_an_ascii_locale(tmp_path: Path) -> None:
    names = ("\u0645\u062f\u0631\u064a\u062f", "\x1b[31m\u5317\u4eac \U0001f600")
    results(rows(**{names[0]: A, names[1]: B})).save(tmp_path / "both")
    done = subprocess.run(
        [sys.executable, "-c", "from jurimetrics.cli import main; main()", "compare", "both", "--csv", "lines.csv"],
        capture_output=True,
        cwd=tmp_path,
        env={"PATH": "", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": str(tmp_path)},
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    printed = done.stdout.decode("utf-8")
    assert names[0] in printed and "\u5317\u4eac" in printed
    assert "\x1b" not in printed, "nothing that steers a terminal"
    assert names[1] in (tmp_path / "lines.csv").read_text(encoding="utf-8")


def test_the_example_study_is_compared(project: Path) -> None:
    quickstart = Path(__file__).parents[1] / "experiments" / "quickstart"
    shutil.copytree(quickstart, project / "quickstart", ignore=shutil.ignore_patterns("results"))
    assert CliRunner().invoke(app, ["run", "quickstart", "--no-log", "--max-failed", "1"]).exit_code == 0
    done = call("quickstart", "--primary", "faithfulness", "--baseline", "concise")
    assert done.exit_code == 0, done.stderr
    assert "detailed - concise" in done.stdout and "faithfulness" in done.stdout
