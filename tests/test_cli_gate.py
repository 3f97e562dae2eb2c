"""`jurimetrics gate`: what it prints and writes, and the exit status that a system of continuous integration reads."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jurimetrics as jm
import pytest
from jurimetrics.cli import app
from jurimetrics.experiment import run_experiment
from jurimetrics.tracking.store import Store
from scripted_server import Answer, Call, ScriptedServer, from_schema, hang
from typer.testing import CliRunner, Result

pytest_plugins = ("mlflow_store",)

COMMAND = [sys.executable, "-c", "from jurimetrics.cli import main; main()"]
GOOD, BAD = "Madrid is in Spain.", "No idea."


def records(n: int, bad: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Records of which the first `bad` have an answer that shares no word with the reference."""
    return [
        {"id": f"q{at}", "question": "Where?", "answer": BAD if at < bad else GOOD, "reference": GOOD, **more}
        for at in range(n)
    ]


def study(project: Path, name: str, rows: list[dict[str, Any]], more: str = 'metrics.use = ["f1"]') -> Path:
    folder = project / name
    folder.mkdir()
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    head = 'data.records = "records.jsonl"\njudges = [{ kind = "baseline" }]\nrun.store = "none"\nmlflow.log = false\n'
    (folder / "experiment.toml").write_text(head + more, encoding="utf-8")
    return folder


def done(project: Path, rows: list[dict[str, Any]], more: str = 'metrics.use = ["f1"]') -> Path:
    """A study that was run: the results to hold others against."""
    folder = study(project, "old", rows, more)
    run_experiment(folder)
    return folder


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["gate", *map(str, arguments)])


@pytest.mark.parametrize(
    ("n", "bad", "status", "said"),
    [
        (80, 0, 0, "passed: nothing is worse by its margin or more"),
        (80, 40, 1, "failed: worse by more than its margin: f1"),
        (20, 0, 3, "inconclusive: not decided: f1; about 72 records would decide"),
        (80, 3, 3, "inconclusive: not decided: f1"),
    ],
)
def test_exit_status_says_the_outcome(project: Path, n: int, bad: int, status: int, said: str) -> None:
    old = done(project, records(n))
    found = call(study(project, "new", records(n, bad)), "--against", old, "--margin", "0.05")
    assert found.exit_code == status, found.output
    assert found.stdout.splitlines()[-1].startswith(said)
    table = [line for line in found.stdout.splitlines() if line.startswith("f1 ")]
    assert len(table) == 1 and re.search(rf"^f1 +computed +{n} +100% +1\.000 ", table[0])
    assert jm.Results.load(project / "new" / "results").settings["records"] == n


def test_as_a_process_of_its_own(project: Path) -> None:
    old = done(project, records(20))
    new = study(project, "new", records(20, 15))
    found = subprocess.run(
        [*COMMAND, "gate", str(new), "--against", str(old / "results"), "--margin", "0.05"],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout.startswith(f"new: 20 records, against {old / 'results'}\n")


def test_junit_is_written_for_every_outcome(project: Path) -> None:
    old = done(project, records(20))
    file = project / "reports" / "junit.xml"
    for name, bad, counts in (("worse", 15, ("1", "0")), ("open", 0, ("0", "1"))):
        call(study(project, name, records(20, bad)), "--against", old, "--margin", "0.05", "--junit", file)
        suite = ElementTree.parse(file).getroot().find("testsuite")
        assert suite is not None and suite.attrib["name"] == name
        assert (suite.attrib["failures"], suite.attrib["errors"]) == counts


def test_margins_by_metric(project: Path) -> None:
    more = 'metrics.use = ["f1", "fluency"]'
    old = done(project, records(80), more)
    new = study(project, "new", records(80, 4), more)
    loose = call(new, "--against", old, "--margin", "0.05", "--margin-of", "f1=0.3", "--margin-of", "fluency=3.5")
    assert loose.exit_code == 0, loose.output
    lines = dict(re.findall(r"^(f1|fluency) .* (\S+) +passed ", loose.stdout, re.MULTILINE))
    assert lines == {"f1": "0.3", "fluency": "3.5"}
    only = call(new, "--against", old, "--margin-of", "f1=0.3")
    assert only.exit_code == 0 and "\nfluency " not in only.stdout
    named = call(new, "--against", old, "--margin", "0.3", "--metric", "f1")
    assert named.exit_code == 0 and "\nfluency " not in named.stdout


def test_a_run_that_loses_its_bad_rows_does_not_pass(project: Path) -> None:
    old = done(project, records(100, 20))
    rows = records(100, 20)
    for row in rows[:20]:
        row["answer"] = None
    new = study(project, "new", rows)
    found = call(new, "--against", old, "--margin", "0.05")
    # The twenty had 0 already: to lose them costs nothing. Others have 1.
    assert found.exit_code == 0 and re.search(r"^f1 +computed +80 +100%, 80% ", found.stdout, re.MULTILINE)
    for row in rows[20:40]:
        row["answer"] = None
    (new / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    holed = call(new, "--against", old, "--margin", "0.07")
    assert holed.exit_code == 3 and "40 scores missing in the new run could turn it" in holed.stdout
    allowed = call(new, "--against", old, "--margin", "0.07", "--max-missing", "0.4")
    assert allowed.exit_code == 0, allowed.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give --margin, or --margin-of for each metric to gate"),
        (("--margin-of", "f1"), "--margin-of: expected a metric and its margin, such as faithfulness=0.05, found 'f1'"),
        (("--margin-of", "f1=much"), "--margin-of: expected a metric and its margin"),
        (("--margin-of", "f2=0.1"), "no metric 'f2' in "),
        (("--margin", "0.1", "--metric", "fluency"), "no metric 'fluency' in "),
        (("--margin", "5"), "margin: 5 is no margin for f1, which lies between 0 and 1"),
        (("--margin-of", "f1=nan"), "margin: f1 needs a number from 0, not nan"),
        (("--margin", "0.1", "--level", "95"), "level must lie between 0 and 1, not 95"),
        (("--margin", "0.1", "--junit", "."), "--junit .: is a folder; expected the path of a file"),
    ],
)
def test_bad_input_is_one_line_and_status_2(project: Path, arguments: tuple[str, ...], said: str) -> None:
    old = done(project, records(10))
    found = call(study(project, "new", records(10)), "--against", old, *arguments)
    assert found.exit_code == 2, found.output
    assert found.stderr.startswith("jurimetrics: ") and said in found.stderr and found.stderr.count("\n") == 1


def test_what_must_not_be_compared_is_refused_with_the_reason(project: Path) -> None:
    old = done(project, records(10), 'metrics.use = ["f1", "fluency"]')
    asked = records(10)
    asked[3]["question"] = "Who?"
    found = call(study(project, "other", asked), "--against", old, "--margin", "0.1")
    assert found.exit_code == 2
    assert "1 record has another question ('q3')" in found.stderr
    fewer = call(study(project, "fewer", records(9)), "--against", old, "--margin", "0.1")
    assert fewer.exit_code == 2 and "1 record is in the old run alone ('q9'); --shared-only compares" in fewer.stderr
    shared = call(project / "fewer", "--against", old, "--margin", "0.1", "--shared-only")
    assert shared.exit_code == 3 and "Only the 9 records" in shared.stdout


def test_a_changed_retriever_is_gated_with_other_contexts(project: Path) -> None:
    """Also under a metric that judges what was retrieved."""
    more = 'metrics.use = ["f1", "context_precision"]'
    old = done(project, records(80, contexts=["Madrid is the capital of Spain."]), more)
    new = study(project, "new", records(80, contexts=["Cats sleep all day."]), more)
    found = call(new, "--against", old, "--margin", "0.05")
    assert found.exit_code == 2
    assert "80 records have other contexts ('q0', 'q1', 'q2', ...); --other-contexts takes contexts" in found.stderr
    found = call(new, "--against", old, "--margin", "0.05", "--other-contexts")
    assert found.exit_code == 1, found.output
    said = "they differ between the old run and the new run in 80 of 80 records"
    assert said in " ".join(found.stdout.split())
    assert found.stdout.splitlines()[-1] == "failed: worse by more than its margin: context_precision"


def test_another_version_of_a_metric_or_set_up_of_a_judge_is_refused_before_anything_is_asked(project: Path) -> None:
    with ScriptedServer(from_schema) as server:

        def judged(name: str, temperature: float) -> Path:
            folder = study(project, name, records(10), 'metrics.use = ["fluency"]')
            text = (folder / "experiment.toml").read_text(encoding="utf-8")
            chat = (
                f'{{ kind = "chat", model = "m", temperature = {temperature}, base_url = "{server.url}", price = 0 }}'
            )
            (folder / "experiment.toml").write_text(text.replace('{ kind = "baseline" }', chat), encoding="utf-8")
            return folder

        run_experiment(judged("old", 0))
        asked = server.count
        warmer = call(judged("new", 0.5), "--against", project / "old", "--margin", "0.5")
        assert warmer.exit_code == 2 and "judge m is set up otherwise" in warmer.stderr
        told = json.loads((project / "old" / "results" / "settings.json").read_text(encoding="utf-8"))
        told["metrics"]["fluency"]["version"] = "0"
        (project / "old" / "results" / "settings.json").write_text(json.dumps(told), encoding="utf-8")
        shutil.rmtree(project / "new")
        older = call(judged("new", 0), "--against", project / "old", "--margin", "0.5")
        assert older.exit_code == 2 and "metric fluency is version" in older.stderr
        assert server.count == asked


def test_the_results_that_it_would_overwrite_are_no_run_to_hold_it_against(project: Path) -> None:
    old = done(project, records(10))
    for against in (old, old / "results", old / "experiment.toml"):
        found = call(old, "--against", against, "--margin", "0.1")
        assert found.exit_code == 2 and "keep a copy elsewhere" in found.stderr
    assert len(jm.Results.load(old / "results").scores) == 10


def test_interrupted_is_status_130_and_nothing_is_compared(project: Path) -> None:
    def answer(asked: Call) -> Answer:
        late = any(f"number {at} " in asked.prompt for at in (7, 8, 9))
        return hang(60) if late and not asked.tries else from_schema(asked)

    rows = [{**row, "answer": f"It is number {at} of all."} for at, row in enumerate(records(10))]
    with ScriptedServer(answer) as server:
        for name in ("old", "new"):
            folder = study(project, name, rows, 'metrics.use = ["fluency"]')
            text = (folder / "experiment.toml").read_text(encoding="utf-8")
            chat = f'{{ kind = "chat", model = "m", base_url = "{server.url}", price = 0 }}'
            text = text.replace('{ kind = "baseline" }', chat).replace('"none"', '"answers.db"')
            (folder / "experiment.toml").write_text(text, encoding="utf-8")
        server.handler = from_schema
        run_experiment(project / "old")
        server.handler = answer
        server.forget()
        process = subprocess.Popen(
            [*COMMAND, "gate", str(project / "new"), "--against", str(project / "old"), "--margin", "1", "--junit", "j.xml"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip
        until = time.monotonic() + 60
        while server.count < 10 and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
        assert "nothing was compared; run the same command again to go on" in errors
        assert printed == "" and not (project / "j.xml").exists()
        again = call(project / "new", "--against", project / "old", "--margin", "1")
        assert again.exit_code == 3, again.output


def test_against_a_run_of_mlflow_and_the_new_run_is_logged(project: Path, mlflow_store: Store) -> None:
    old = done(project, records(80))
    (run_id,) = jm.log_run(jm.Results.load(old / "results"), experiment="base")
    new = study(project, "new", records(80))
    text = (new / "experiment.toml").read_text(encoding="utf-8")
    (new / "experiment.toml").write_text(text.replace("mlflow.log = false", ""), encoding="utf-8")
    found = call(new, "--against", run_id, "--margin", "0.05")
    assert found.exit_code == 0, found.output
    assert re.search(r"^ +run [0-9a-f]{32}$", found.stdout, re.MULTILINE)
    silent = call(new, "--against", f"runs:/{run_id}", "--margin", "0.05", "--no-log")
    assert silent.exit_code == 0 and "MLflow" not in silent.stdout
