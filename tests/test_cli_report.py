"""`jurimetrics report`: a file, an exit status, and one line for what cannot be used."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import jurimetrics as jm
import pandas as pd
import pytest
from compared import A, B, results, rows
from jurimetrics.cli import app
from typer.testing import CliRunner

pytest_plugins = ("mlflow_store",)

COMMAND = [sys.executable, "-c", "from jurimetrics.cli import main; main()"]


@pytest.fixture
def saved(project: Path) -> Path:
    """A folder of results: two variants under one metric."""
    return results(rows(A=A * 2, B=B * 2)).save(project / "results")


def call(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["report", *arguments])
    return done.exit_code, done.stdout, done.stderr


def labels(folder: Path) -> Path:
    path = folder / "labels.csv"
    lines = [{"id": f"r{at:02}", "variant": "A", "metric": "grade", "label": int(score > 0.45)}
             for at, score in enumerate(A * 2)]  # fmt: skip
    pd.DataFrame(lines).to_csv(path, index=False)
    return path


def test_a_folder_of_results_becomes_one_file(saved: Path, project: Path) -> None:
    status, printed, told = call("results")
    page = project / "report.html"
    assert (status, told) == (0, "")
    assert printed == f"report   {page.resolve()} ({page.stat().st_size / 1000:,.0f} kB)\n"
    assert "ann scores B higher by 0.14" in page.read_text(encoding="utf-8")
    assert sorted(path.name for path in project.iterdir()) == [".git", "report.html", "results"]


def test_options_reach_the_page(saved: Path, project: Path) -> None:
    fitted = jm.calibrate(jm.Results.load(saved), jm.load_labels(labels(project)), method="platt")
    fitted.save(project / "fitted.json")
    status, _, told = call(
        "results", "-o", "out/page.html", "--labels", "labels.csv", "--selection", "random", "--calibration", "fitted.json",
        "--baseline", "A", "--judge", "ann", "--title", "Which <one>?", "--worst", "1",
    )  # fmt: skip
    assert (status, told) == (0, "")
    text = (project / "out" / "page.html").read_text(encoding="utf-8")
    assert "<title>Which &lt;one&gt;?</title>" in text and "1 of 40 answers" in text
    assert "Every other variant is compared with A." in text and "Calibration: ann under grade" in text
    assert "Agreement of judges with people" in text and "What people would have said" in text


def test_an_experiment_that_ran_is_reported(project: Path) -> None:
    (project / "study").mkdir()
    (project / "study" / "records.jsonl").write_text(
        '{"answer": "Madrid.", "reference": "It is Madrid."}', encoding="utf-8"
    )
    (project / "study" / "experiment.toml").write_text(
        'data.records = "records.jsonl"\njudges = [{ kind = "baseline" }]\nmetrics.use = ["f1"]\nrun.store = "none"\n'
        "mlflow.log = false\n",
        encoding="utf-8",
    )
    status, _, told = call("study", "-o", "page.html")
    assert status == 2 and told.count("\n") == 1 and "jurimetrics run study" in told
    jm.run_experiment(project / "study")
    assert call("study", "-o", "page.html")[0] == 0
    assert "f1: mean" in (project / "page.html").read_text(encoding="utf-8").replace("</strong>", "").replace(
        "<strong>", ""
    )


@pytest.mark.usefixtures("mlflow_store")
def test_a_run_of_mlflow_is_reported(saved: Path, project: Path) -> None:
    run, _ = jm.log_run(jm.Results.load(saved), experiment="study", traces=0)
    status, _, told = call(run, "-o", "run.html")
    assert (status, told) == (0, "")
    # A run holds one variant: that of the first.
    assert "Evaluation of 20 answers" in (project / "run.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: nothing there"),
        (["results", "-o", "records.jsonl"], "expected a file that ends in .html, not 'records.jsonl'"),
        (["results", "--baseline", "C"], "no variant 'C'; variants: 'A', 'B'"),
        (["results", "--judge", "zoe"], "no judge 'zoe' gave scores; judges: ann"),
        (["results", "--worst", "1000"], "worst must be a whole number from 0 to 200, not 1000"),
        (["results", "--labels", "none.csv"], "none.csv"),
        (["results", "--selection", "random"], "no --labels are given"),
        (["results", "--labels", "labels.csv", "--selection", "chance"], "selection: expected one of"),
        (["results", "--calibration", "none.json"], "none.json: no such file"),
    ],
)
def test_bad_input_is_one_line_and_status_2(saved: Path, project: Path, arguments: list[str], said: str) -> None:
    labels(project)
    status, printed, told = call(*arguments)
    assert (status, printed) == (2, "")
    assert said in told and told.startswith("jurimetrics: ") and told.count("\n") == 1
    assert not (project / "report.html").exists() and not (project / "records.jsonl").exists()


def test_no_file_is_written_where_none_can_be(saved: Path, project: Path) -> None:
    (project / "file").write_text("", encoding="utf-8")
    status, _, told = call("results", "-o", "file/page.html")
    assert status == 2 and "cannot be written" in told and told.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for a browser")
def test_the_page_opens_in_the_readers_browser(saved: Path, project: Path) -> None:
    browser = project / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {project}/opened\n', encoding="utf-8")
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        [*COMMAND, "report", "results", "--open"], capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
        env={**os.environ, "BROWSER": f"{browser} %s"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (project / "opened").read_text(encoding="utf-8").strip() == (project / "report.html").resolve().as_uri()
