"""The study of recorded judges: it runs on any table of its form, and what its README quotes is what a run prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

STUDY = Path(__file__).parents[1] / "experiments" / "summeval-judges"
DATA = Path(__file__).parents[2] / "shared" / "data" / "summeval_experts_judges.csv"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(STUDY / "run.py"), *map(str, arguments)],
        capture_output=True, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip


def table() -> pd.DataFrame:
    """70 documents, 4 systems, two dimensions; one judge follows the experts, one gives nearly always 5."""
    chance = np.random.default_rng(0)
    rows = []
    for document in range(70):
        for system in range(4):
            for dimension in ("coherence", "fluency"):
                truth = chance.integers(1, 6)
                near = [int(np.clip(truth + step, 1, 5)) for step in chance.integers(-1, 2, 3)]
                rows.append((f"d{document}", f"M{system}", dimension, *near[:2], near[2], 5 - (chance.random() < 0.1)))
    columns = ["doc_id", "system_id", "dimension", "expert_0", "expert_1", "judge_near", "judge_five"]
    return pd.DataFrame(rows, columns=columns)


def test_any_table_of_the_form_is_analysed(tmp_path: Path) -> None:
    given = table()
    given["judge_near"] = given["judge_near"].astype("Int64").where(given.index != 0)
    given.to_csv(tmp_path / "table.csv", index=False)
    done = run(tmp_path / "table.csv")
    assert done.returncode == 0, done.stderr[-2000:]
    headings = re.findall(r"^## (.+)$", done.stdout, re.MULTILINE)
    assert len(headings) == 6 and "labels of 25 documents" in headings[4]
    first = done.stdout.split("## ")[1].splitlines()
    near = next(line.split() for line in first if line.split()[:2] == ["coherence", "near"])
    assert near[2] == "279" and float(near[3]) > 0.5, "one score is missing"
    last = [line.split() for line in done.stdout.split("## ")[6].splitlines() if " near " in line]
    truth = given.groupby("dimension")[["expert_0", "expert_1"]].mean().mean(axis=1)
    assert {line[0]: float(line[-1]) for line in last} == pytest.approx(truth.to_dict(), abs=0.001)


def test_another_table_is_refused_in_one_line(tmp_path: Path) -> None:
    table().drop(columns="doc_id").to_csv(tmp_path / "a.csv", index=False)
    table().drop(columns=["expert_0", "expert_1"]).to_csv(tmp_path / "b.csv", index=False)
    said = {name: run(tmp_path / name) for name in ("a.csv", "b.csv", "none.csv")}
    assert "no column 'doc_id'" in said["a.csv"].stderr and "expert_<number>" in said["b.csv"].stderr
    for done in said.values():
        assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1
    assert "TABLE.csv" in run().stderr


@pytest.mark.skipif(not DATA.is_file(), reason="the table of SummEval's ratings lies beside the project, not in it")
def test_the_readme_quotes_what_is_printed() -> None:
    done = run(DATA)
    assert done.returncode == 0, done.stderr[-2000:]
    answer = (STUDY / "README.md").read_text(encoding="utf-8").partition("## Answer")[2].partition("## What this")[0]
    quoted = re.findall(r"-?\d\.\d\d+(?: \[[^\]]+\])?", answer)
    assert len(quoted) > 40
    printed = " ".join(done.stdout.split())
    assert [figure for figure in quoted if not all(part in printed for part in re.findall(r"-?\d\.\d+", figure))] == []
    for dimension, judge, raw in re.findall(r"^\| (\w+) \| (\S+) \| (\d\.\d{3}) \| ", answer, re.MULTILINE):
        assert re.search(rf"^ *{dimension} +{judge} .*{raw}", done.stdout, re.MULTILINE), (dimension, judge, raw)
