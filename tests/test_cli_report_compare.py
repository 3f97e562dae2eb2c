"""`jurimetrics report` compares as was decided: by `--primary`, or by the [compare] of the experiment it is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from compared import A, B, results, rows
from jurimetrics.cli import app
from jurimetrics.report import page as pages
from jurimetrics.variants.compare import Comparison
from typer.testing import CliRunner

FILE = """
data.records = "records.jsonl"
judges = [{ kind = "baseline" }]
metrics.use = ["f1", "faithfulness"]
run.store = "none"
mlflow.log = false
compare = { baseline = "A", primary = ["f1"], level = 0.9 }
"""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Comparison]:
    """The comparisons of the pages that are written."""
    found: list[Comparison] = []
    whole = pages.page

    def kept(facts: Any, title: str) -> str:
        found.append(facts.comparison)
        return whole(facts, title)

    monkeypatch.setattr(pages, "page", kept)
    return found


@pytest.fixture
def study(project: Path) -> Path:
    folder = project / "study"
    folder.mkdir()
    records = [
        {"id": str(at), "variant": variant, "answer": f"Madrid has {at} parks{more}.", "reference": f"Madrid has {at} parks.",
         "contexts": [f"Madrid has {at} parks."]}
        for at in range(9) for variant, more in (("A", ""), ("B", " and" * (1 + at % 3)))
    ]  # fmt: skip
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    (folder / "experiment.toml").write_text(FILE, encoding="utf-8")
    jm.run_experiment(folder)
    return folder


def call(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["report", *arguments])
    return done.exit_code, done.stderr


def family(found: Comparison) -> dict[str, str]:
    return dict(zip(found.frame["metric"], found.frame["family"], strict=True))


def test_primary_metrics_are_the_family_and_others_are_exploratory(project: Path, shown: list[Comparison]) -> None:
    lines = rows(A=[*A], B=[*B]) + rows("tone", A=[*A], B=[*B])
    results(lines, {"grade": {"range": (0, 1)}, "tone": {"range": (0, 1)}}).save(project / "results")
    assert call("results", "--primary", "tone") == (0, "")
    assert family(shown[0]) == {"tone": "primary", "grade": "exploratory"}
    assert call("results", "--primary", "tone", "--primary", "grade") == (0, "")
    assert set(family(shown[1]).values()) == {"primary"}
    status, told = call("results", "--primary", "none")
    assert status == 2 and "no metric 'none'; metrics: 'grade', 'tone'" in told and told.count("\n") == 1


@pytest.mark.parametrize("source", ["study", "study/experiment.toml"])
def test_an_experiment_is_compared_as_its_file_says(study: Path, shown: list[Comparison], source: str) -> None:
    assert call(source) == (0, "")
    assert (shown[0].baseline, shown[0].level) == ("A", 0.9)
    assert family(shown[0]) == {"f1": "primary", "faithfulness": "exploratory"}


def test_options_go_before_the_file(study: Path, shown: list[Comparison]) -> None:
    assert call("study", "--baseline", "B", "--primary", "faithfulness") == (0, "")
    assert (shown[0].baseline, shown[0].level) == ("B", 0.9)
    assert family(shown[0]) == {"f1": "exploratory", "faithfulness": "primary"}
    status, told = call("study", "--primary", "none")
    assert status == 2 and "no metric 'none'" in told
    status, told = call("study", "--baseline", "C")
    assert status == 2 and "no variant 'C'" in told
