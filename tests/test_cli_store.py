"""`jurimetrics store` shows and prunes; `jurimetrics plan` says what an experiment would take."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.cli import app
from jurimetrics.engine.store import Store
from jurimetrics.judges.judge import JudgeError, Trace, Usage
from scripted_replies import valid
from scripted_server import ScriptedServer
from typer.testing import CliRunner, Result

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def call(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=typed)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Answers of two judges, one of them without a known price, from two days, and a failure."""
    path = tmp_path / "s.db"
    store = Store(path)
    known, unknown = Trace(usage=Usage(100, 10), cost_usd=0.002), Trace(usage=Usage(50, None))
    for at in range(3):
        store.keep(f"a{at}", judge_key="ja", judge="ada", kind="rate", data={}, trace=known)
    store.keep("a9", judge_key="ja", judge="ada", kind="check", data={}, trace=known)
    store.keep("b0", judge_key="jb", judge="bob", kind="rate", data={}, trace=unknown)
    store.keep_failure("b1", "bob", "rate", JudgeError("filtered", "violence"))
    store._db.execute("UPDATE answers SET at = '2025-03-01T10:00:00+00:00' WHERE key = 'a0'")
    store.close()
    return path


def keys(path: Path) -> set[str]:
    store = Store(path)
    found = {key for key in ("a0", "a1", "a2", "a9", "b0") if store.holds(key)}
    store.close()
    return found


# ---------------------------------------------------------------------------------------------- store


def test_overview_counts_answers_tokens_and_what_was_paid(kept: Path) -> None:
    done = call("store", str(kept))
    assert done.exit_code == 0
    assert re.search(rf"^store    {re.escape(str(kept))} \(\d+ kB\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^ada    rate   3 +300 +30 +\$0\.006 +2025-03-01  \d{4}-\d\d-\d\d$", done.stdout, re.MULTILINE)
    assert re.search(r"^ada    check  1 +100 +10 +\$0\.002 ", done.stdout, re.MULTILINE)
    assert re.search(r"^bob    rate   1 +50 +0 +unknown ", done.stdout, re.MULTILINE)
    assert "answers  5, paid at least $0.008: what asking all of them again would cost" in done.stdout
    assert "1 without a known price" in done.stdout
    assert "failed   1 x filtered by bob, asked again only with retry_failed" in done.stdout


def test_overview_of_what_an_evaluation_kept(project: Path) -> None:
    with ScriptedServer(valid) as server:
        judge = jm.ChatJudge("m", base_url=server.url, price=(10.0, 100.0))
        results = jm.evaluate([{"answer": "a"}, {"answer": "b"}], ["fluency", "readability"], judge)
    done = call("store")
    paid = re.search(r"answers  4, paid \$([\d.]+):", done.stdout)
    assert paid is not None and float(paid[1]) == pytest.approx(results.totals().cost_usd, rel=0.05)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (("--judge", "ada"), {"b0"}),
        (("--before", "2025-03-02"), {"a1", "a2", "a9", "b0"}),
        (("--judge", "bob", "--before", "2025-03-02"), {"a0", "a1", "a2", "a9", "b0"}),
        (("--judge", "bob"), {"a0", "a1", "a2", "a9"}),
    ],
)
def test_prune_removes_what_was_named_and_nothing_else(kept: Path, options: tuple[str, ...], left: set[str]) -> None:
    done = call("store", str(kept), "--prune", *options, "--yes")
    assert done.exit_code == 0, done.output
    assert keys(kept) == left
    failures = call("store", str(kept)).stdout.count("x filtered by bob")
    assert failures == (0 if options == ("--judge", "bob") else 1)


def test_prune_asks_first_and_a_no_removes_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(kept)
    refused = call("store", str(kept), "--prune", "--judge", "ada")
    assert refused.exit_code == 2 and "say --yes where nobody can be asked" in refused.stderr and keys(kept) == before
    # The module, which the package's command of the same name hides.
    monkeypatch.setattr(sys.modules["jurimetrics.cli.store"], "_attended", lambda: True)
    no = call("store", str(kept), "--prune", "--judge", "ada", typed="n\n")
    assert no.exit_code == 0 and "Remove 4 of 5 answers and 0 failures" in no.stdout and "nothing removed" in no.stdout
    assert keys(kept) == before
    assert call("store", str(kept), "--prune", "--judge", "ada", typed="y\n").exit_code == 0 and keys(kept) == {"b0"}


def test_pruned_answers_are_asked_again_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with ScriptedServer(valid) as server:
        judges = [jm.ChatJudge(name, base_url=server.url, price=0) for name in ("m", "n")]
        for _ in range(2):
            jm.evaluate([{"answer": "a"}], ["fluency"], judges, store=path)
        assert server.count == 2
        call("store", str(path), "--prune", "--judge", "n", "--yes")
        jm.evaluate([{"answer": "a"}], ["fluency"], judges, store=path)
        assert server.by_model == {"m": 1, "n": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prune", "--yes"), "--prune removes answers of a --judge or from before a day"),
        (("--judge", "ada"), "go with --prune"),
        (("--prune", "--before", "yesterday"), "--before must be a day such as 2026-01-31, not 'yesterday'"),
    ],
)
def test_unclear_wishes_remove_nothing(kept: Path, options: tuple[str, ...], message: str) -> None:
    done = call("store", str(kept), *options)
    assert done.exit_code == 2 and message in done.stderr and done.stderr.count("\n") == 1
    assert len(keys(kept)) == 5


def test_looking_makes_no_store_and_leaves_other_files_alone(project: Path) -> None:
    done = call("store")
    assert done.exit_code == 2 and "no store there" in done.stderr
    other = project / "other.db"
    other.write_bytes(b"this is no database" * 100)
    done = call("store", str(other))
    assert done.exit_code == 2 and "other.db" in done.stderr and done.stderr.count("\n") == 1
    assert other.read_bytes() == b"this is no database" * 100 and not (project / ".jurimetrics").exists()


# ---------------------------------------------------------------------------------------------- plan


def study(folder: Path, url: str, more: str = "", **judge: Any) -> Path:
    rows = [{"id": str(at), "answer": f"Madrid has {at} parks.", "contexts": ["Madrid has parks."]} for at in range(9)]
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = "".join(f", {name} = {json.dumps(value)}" for name, value in judge.items())
    (folder / "experiment.toml").write_text(
        'data.records = "records.jsonl"\nmetrics.use = ["faithfulness", "fluency"]\nrun.store = "answers.db"\n'
        f'mlflow.log = false\njudges = [{{ kind = "chat", model = "m", base_url = "{url}"{options} }}]\n{more}',
        encoding="utf-8",
    )
    return folder


def test_plan_of_an_experiment_is_what_it_then_asks(project: Path) -> None:
    with ScriptedServer(valid) as server:
        folder = str(study(project, server.url, price=[10, 100]))
        done = call("plan", folder)
        assert done.exit_code == 0, done.output
        assert server.count == 0 and not (project / "answers.db").exists()
        assert done.stdout.startswith(f"{project.name}: 9 records; nothing was sent\n\njudge  metric ")
        assert re.search(r"^m      faithfulness     18       0 ", done.stdout, re.MULTILINE)
        assert re.search(r"^m      all              27       0 ", done.stdout, re.MULTILINE)
        assert "27 calls, 0 from the store" in done.stdout
        assert call("run", folder).exit_code == 0
        assert server.count == 27
        assert "0 calls, 27 from the store" in call("plan", folder).stdout
        assert "27 calls, 0 from the store" in call("plan", folder, "--store", "none").stdout


def test_plan_follows_what_the_file_says(project: Path) -> None:
    repeated = call("plan", str(study(project, NOWHERE, "run.repeats = 3\nrun.reason_language = 'German'\n")))
    # Claims once, checks and ratings three times.
    assert "63 calls, 0 from the store" in repeated.stdout
    mapped = study(project, NOWHERE, 'data.columns = { answer = "my_output" }\n')
    (mapped / "records.jsonl").write_text(
        '{"my_output": "Madrid has parks.", "contexts": ["Madrid."]}', encoding="utf-8"
    )
    assert "3 calls, 0 from the store" in call("plan", str(mapped)).stdout
    assert "scaled up" in call("plan", str(study(project, NOWHERE)), "--sample", "3").stdout


@pytest.mark.parametrize(
    ("budget", "judge", "said"),
    [
        ("run.budget_calls = 26", {}, "budget of 26 calls: it will not be enough"),
        ("run.budget_calls = 27", {}, "budget of 27 calls: enough"),
        ("run.budget_usd = 0.2", {"price": [10, 100]}, "budget of 0.2 usd: it may not be enough"),
        ("run.budget_usd = 0.2", {}, "budget of 0.2 usd: it cannot be kept, no price is known for m"),
        ("run.budget_tokens = 900000", {}, "budget of 900000 tokens: enough"),
    ],
)
def test_plan_compares_with_the_budget(project: Path, budget: str, judge: dict[str, Any], said: str) -> None:
    assert said in call("plan", str(study(project, NOWHERE, budget + "\n", **judge))).stdout


def test_plan_of_bad_input_is_one_line_and_status_2(project: Path) -> None:
    for arguments in (("gone",), (str(study(project, NOWHERE, "run.budgt = 1\n")),)):
        done = call("plan", *arguments)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
