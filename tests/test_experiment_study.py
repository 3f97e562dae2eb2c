"""A whole study from one file: written, judged, compared, reported, logged; resumed, interrupted, killed, planned."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from jurimetrics.cli import app
from jurimetrics.experiment import (
    compare_experiment,
    evaluate_experiment,
    load_experiment,
    plan_experiment,
    run_experiment,
    write_answers,
)
from jurimetrics.tracking.store import Store
from mlflow import MlflowClient
from mlflow.entities import Run
from scripted_server import Answer, Call, ScriptedServer, error, reply
from typer.testing import CliRunner

pytest_plugins = ("mlflow_store",)
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

COMMAND = [sys.executable, "-c", "from jurimetrics.cli import main; main()"]
RECORDS, VARIANTS, JUDGES = 10, 4, 2
FILE = """
name = "mills"
data.records = "records.jsonl"
metrics.use = ["fluency", "f1"]
compare = { baseline = "short/small", primary = ["fluency"], detect = { fluency = 0.5 } }
report.file = "out/report.html"
run = { store = "store.db", concurrency = 4 }
panel = {}
references = { model = "best", base_url = "URL", price = [5, 10] }
[[prompts]]
file = "prompts/"
tag = "qa"
[[prompts]]
name = "short"
user = "In short: {question}"
[[models]]
model = "small"
base_url = "URL"
price = [1, 2]
temperature = 0.7
[[models]]
model = "large-2026"
name = "large"
base_url = "URL"
price = [2, 8]
[[judges]]
kind = "chat"
model = "ada"
base_url = "URL"
price = [1, 2]
[[judges]]
kind = "chat"
model = "bob"
base_url = "URL"
price = [1, 2]
"""
NAMES = ["full/small", "full/large", "short/small", "short/large"]


def handler(call: Call) -> Answer:
    """Writes and judges, by the request alone."""
    draw = int(hashlib.sha256(f"{call.model} {call.prompt}".encode()).hexdigest()[:8], 16)
    if call.schema is None:
        return reply(f"Monks built it {draw} years ago.", usage=(len(call.prompt) // 4, 9))
    return reply(json.dumps({"findings": "as drawn", "score": 1 + draw % 5}), usage=(len(call.prompt) // 4, 12))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(handler) as found:
        yield found


@pytest.fixture
def study(project: Path) -> Path:
    """A folder with questions, of which every other one has a reference, and prompts."""
    folder = project / "study"
    (folder / "prompts").mkdir(parents=True)
    rows: list[dict[str, Any]] = [
        {"id": f"q{at}", "question": f"Who built mill {at}?", "contexts": [f"Monks built mill {at}."]}
        for at in range(RECORDS)
    ]
    for row in rows[::2]:
        row["reference"] = "Monks built it."
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    full = '+++\ntags = ["qa"]\nsystem = "Be exact."\n+++\n{contexts}\n\n{question}\n'
    (folder / "prompts" / "full.md").write_text(full, encoding="utf-8")
    (folder / "prompts" / "other.md").write_text("Of another use: {question}", encoding="utf-8")
    return folder


def write(folder: Path, server: ScriptedServer, change: Callable[[str], str] = lambda text: text) -> Path:
    (folder / "experiment.toml").write_text(change(FILE).replace("URL", server.url), encoding="utf-8")
    return folder


def quiet(text: str) -> str:
    return text + "\n[mlflow]\nlog = false\n"


def client_of(store: Store) -> MlflowClient:
    return MlflowClient(tracking_uri=store.uri)


def runs_of(store: Store) -> list[Run]:
    found = client_of(store).get_experiment_by_name("mills")
    assert found is not None
    return list(client_of(store).search_runs([found.experiment_id]))


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "120"}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, encoding="utf-8", env=env, timeout=300, check=False
    )


def test_a_whole_study_is_written_judged_compared_reported_and_logged(
    study: Path, server: ScriptedServer, mlflow_store: Store
) -> None:
    results = run_experiment(write(study, server))
    by_model = server.by_model
    assert by_model == {"best": 5, "small": 20, "large-2026": 20, "ada": 40, "bob": 40} and server.repeats == 0
    assert results.settings["variants"] == NAMES and results.settings["reference_models"] == {"best": 5 * VARIANTS}
    by = results.settings["written_by"]
    assert (by["full/large"]["model"], by["full/large"]["system"], by["full/small"]["settings"]["temperature"]) == (
        "large-2026", "Be exact.", 0.7,
    )  # fmt: skip
    assert set(results.scores["status"]) == {"ok"}
    assert (study / "out" / "report.html").read_text(encoding="utf-8").count("short/small") > 3
    # The answers are among the records, and what they took beside them.
    assert results.records["answer"].str.startswith("Monks built it").all()
    calls = {
        name: pd.read_parquet(study / "results" / "writing" / f"{name}.parquet") for name in ("answers", "references")
    }
    assert {name: len(frame) for name, frame in calls.items()} == {"answers": 40, "references": 5}
    paid = results.records["answer_cost_usd"].sum()
    assert calls["answers"]["cost_usd"].sum() == pytest.approx(paid) and paid > 0

    found = compare_experiment(load_experiment(study), jm.Results.load(study / "results"))
    assert found is not None and (found.baseline, found.frame["family"].tolist().count("primary")) == ("short/small", 3)
    assert found.frame.loc[found.frame["metric"] == "fluency", "needed"].notna().all()

    client, runs = client_of(mlflow_store), runs_of(mlflow_store)
    (whole,) = [run for run in runs if run.data.tags.get("jurimetrics.kind") == "study"]
    others = {run.data.tags["jurimetrics.variant"]: run for run in runs if run is not whole}
    assert sorted(others) == sorted(NAMES)
    params = others["full/small"].data.params
    assert (params["prompt"], params["model"], params["temperature"]) == ("full", "small", "0.7")
    assert whole.data.params["baseline"] == "short/small" and whole.data.params["primary"] == "fluency"
    assert {run.data.tags["jurimetrics.study_run"] for run in others.values()} == {whole.info.run_id}
    listed = {item.path for item in client.list_artifacts(whole.info.run_id)}
    assert {"comparison.csv", "tradeoff.csv"} <= listed, "what the answers took is known, so quality stands against it"

    asked = server.count
    again = run_experiment(study)
    assert server.count == asked, "run again, it asks nobody"
    pd.testing.assert_frame_equal(again.scores[["id", "variant", "score"]], results.scores[["id", "variant", "score"]])


def test_plan_says_what_is_then_sent_and_nothing_afterwards(study: Path, server: ScriptedServer) -> None:
    experiment = load_experiment(write(study, server, quiet))
    stages = plan_experiment(experiment)
    assert server.count == 0 and not (study / "store.db").exists(), "a plan sends nothing and makes no store"
    assert list(stages) == ["references", "answers", "judging"]
    planned = {name: stage.totals.calls for name, stage in stages.items()}
    assert stages["answers"].frame["judge"].tolist() == NAMES
    assert "5 references and 40 answers" in stages["judging"].notes[0]
    run_experiment(study)
    sent = server.by_model
    assert planned == {
        "references": sent["best"], "answers": sent["small"] + sent["large-2026"], "judging": sent["ada"] + sent["bob"],
    }  # fmt: skip
    after = plan_experiment(experiment)
    assert [stage.totals.calls for stage in after.values()] == [0, 0, 0]
    assert [stage.totals.stored for stage in after.values()] == [5, 40, 80]
    assert not any("Not written yet" in note for note in after["judging"].notes)


def test_plan_of_half_a_study_counts_what_is_left(study: Path, server: ScriptedServer) -> None:
    experiment = load_experiment(write(study, server, quiet))
    assert write_answers(experiment, progress=False) is not None
    written = server.count
    stages = plan_experiment(experiment)
    assert [stage.totals.calls for stage in stages.values()] == [0, 0, 80] and server.count == written
    done = CliRunner().invoke(app, ["plan", str(study)])
    assert done.exit_code == 0 and server.count == written
    assert done.stdout.startswith("mills: 10 records, 4 variants, 40 answers; nothing was sent\n\nwriting references\n")
    assert re.search(r"^together: cost \$.*; 80 calls, 45 from the store; ", done.stdout, re.MULTILINE)


def test_what_run_prints(study: Path, server: ScriptedServer, mlflow_store: Store) -> None:
    done = call(
        "run", str(write(study, server, lambda text: text.replace("concurrency = 4", "budget_calls = 200"))), "--no-log"
    )
    assert (done.returncode, done.stderr) == (0, "")
    head, _, rest = done.stdout.partition("\n")
    assert head == "mills: 40 records, 4 variants, 2 metrics, 2 judges (ada, bob)"
    assert "\ncomparison of variants, each with short/small\n" in rest
    assert re.search(r"^    (undecided: .* as the panel scores them|the panel scores .*)", rest, re.MULTILINE)
    assert re.search(
        r"^writing  5 references: \$\S+, saved \$0; 5 calls, 0 from the store; \d+ tokens\n", rest, re.MULTILINE
    )
    assert re.search(
        r"^         40 answers: \$\S+, saved \$0; 40 calls, 0 from the store; [\d,]+ tokens\n", rest, re.MULTILINE
    )
    assert re.search(r"^judging  \$\S+, saved \$0; 80 calls, 0 from the store; ", rest, re.MULTILINE)
    assert "budget   of 200 calls: 45 for writing and 80 for judging\n" in rest
    assert f"report   {study / 'out' / 'report.html'}\n" in rest
    again = CliRunner().invoke(app, ["run", str(study)])
    assert again.exit_code == 0, again.output
    assert re.search(r"^         run [0-9a-f]{32} of the comparison$", again.stdout, re.MULTILINE)
    assert "budget   of 200 calls: 0 for writing and 0 for judging\n" in again.stdout


def test_one_budget_for_writing_and_judging(study: Path, server: ScriptedServer) -> None:
    def limited(text: str) -> str:
        return quiet(text.replace("concurrency = 4", "concurrency = 1, budget_calls = 60"))

    results = run_experiment(write(study, server, limited))
    assert (
        server.count == 60 and server.by_model["best"] + server.by_model["small"] + server.by_model["large-2026"] == 45
    )
    members = results.scores[results.scores["judge"].isin(["ada", "bob"])]
    assert members["error"].str.startswith("budget: 60 of 60 calls are made").sum() == 80 - 15
    # The budget ends in the middle of the writing: nothing is judged but what is there, and nothing is sent for it.
    (study / "store.db").unlink()
    server.forget()
    short = run_experiment(write(study, server, lambda text: limited(text).replace("60", "20")))
    assert server.count == 20 and short.records["answer_error"].notna().sum() == 40 - 15
    # With what is enough the next run pays for the rest alone.
    server.forget()
    whole = run_experiment(write(study, server, quiet))
    assert server.count == 125 - 20 and set(whole.scores["status"]) == {"ok"}


def test_answers_that_fail_count_as_failed_rows(study: Path) -> None:
    def half(asked: Call) -> Answer:
        return error(400, "not for me") if asked.model == "small" and "mill 3" not in asked.prompt else handler(asked)

    with ScriptedServer(half) as server:
        folder = str(write(study, server))
        done = call("run", folder, "--no-log")
        assert done.returncode == 1
        assert done.stderr == "45.0% of the rows failed; 20.0% are allowed (--max-failed)\n"
        # 18 answers, each under two judges, their panel and what is computed.
        assert "         so 72 rows, 45.0% of all, cannot be judged: counted as failed by --max-failed\n" in done.stdout
        assert re.search(
            r"^         18 answers failed: rejected, such as that to q0 by full/small: .*HTTP 400", done.stdout, re.M
        )
        assert call("run", folder, "--no-log", "--max-failed", "0.5").returncode == 0


def test_references_that_fail_count_where_one_is_needed(study: Path) -> None:
    with ScriptedServer(lambda asked: error(400, "no") if asked.model == "best" else handler(asked)) as server:
        done = call("run", str(write(study, server)), "--no-log", "--max-failed", "0.1")
    assert (done.returncode, done.stderr) == (1, "12.5% of the rows failed; 10.0% are allowed (--max-failed)\n")
    assert re.search(r"^         5 references failed: rejected, such as that to q1: ", done.stdout, re.MULTILINE)


def test_study_of_which_nothing_could_be_written_is_told_and_logged(study: Path, mlflow_store: Store) -> None:
    with ScriptedServer(lambda asked: error(400, "no")) as server:
        done = call("run", str(write(study, server)))
    assert (done.returncode, done.stderr) == (1, "100.0% of the rows failed; 20.0% are allowed (--max-failed)\n")
    assert "\nnot compared: no metric has rows of two variants\n" in done.stdout
    assert "judging  nothing: no request was sent\n" in done.stdout and (study / "out" / "report.html").is_file()
    assert len(re.findall(r"^         run [0-9a-f]{32} \S+/\S+$", done.stdout, re.MULTILINE)) == VARIANTS


def started(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "run", str(folder), "--no-log"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip


def wait_for(server: ScriptedServer, requests: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while server.count < requests and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    assert process.poll() is None, "it was to be stopped before its end"


@pytest.mark.slow
def test_interrupted_while_writing_and_while_judging_it_goes_on(study: Path) -> None:
    with ScriptedServer(handler, latency=0.03) as server:
        folder = write(study, server)
        process = started(folder)
        wait_for(server, 20, process)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == 130
        assert errors == (
            "interrupted while answers were written, nothing was judged; run the same command again to go on\n"
        )
        assert re.search(r"\d+ answers failed: cancelled, such as that to q\d+ by \S+: interrupted", printed)
        assert printed.endswith(f"answers  {folder / 'store.db'}\n") and not (folder / "results").exists()
        process = started(folder)
        wait_for(server, 75, process)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == 130 and errors.startswith("interrupted: what is done is kept, nothing was logged")
        assert "\nwriting  5 references: " in printed and "comparison of variants" not in printed
        assert jm.Results.load(folder / "results").settings["interrupted"] is True
        last = call("run", str(folder), "--no-log")
        assert last.returncode == 0, last.stderr
        assert 125 <= server.count <= 125 + 2 * 4, "what was in flight is asked again, and nothing else"


@pytest.mark.slow
def test_killed_it_goes_on(study: Path) -> None:
    with ScriptedServer(handler, latency=0.03) as server:
        folder = write(study, server)
        for goal in (15, 80):
            process = started(folder)
            wait_for(server, goal, process)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate(timeout=120)
        last = call("run", str(folder), "--no-log")
        assert last.returncode == 0, last.stderr
        assert 125 <= server.count <= 125 + 2 * 4
        asked = server.count
        assert call("run", str(folder), "--no-log").returncode == 0 and server.count == asked
    assert set(jm.Results.load(folder / "results").scores["status"]) == {"ok"}


def test_answers_that_are_there_are_compared_where_the_file_says_so(study: Path, mlflow_store: Store) -> None:
    answers = [
        {"id": str(at), "variant": name, "answer": f"It is {at} {word}.", "reference": f"It is {at} miles away."}
        for at in range(12)
        for name, word in (("old", "feet"), ("new", "miles away" if at % 4 else "miles"))
    ]
    (study / "records.jsonl").write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")
    file = (
        'data.records = "records.jsonl"\njudges = [{ kind = "baseline" }]\nmetrics.use = ["f1"]\nrun.store = "none"\n'
    )
    (study / "experiment.toml").write_text(file, encoding="utf-8")
    plain = call("run", str(study))
    assert plain.returncode == 0 and "comparison" not in plain.stdout and not (study / "results" / "writing").exists()
    (study / "experiment.toml").write_text(file + 'compare.baseline = "old"\n', encoding="utf-8")
    done = call("run", str(study))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^    f1 scores new higher by 0\.\d\d \[.*\] than old$", done.stdout, re.MULTILINE)
    assert re.search(r"^f1 +computed +new - old +12 ", done.stdout, re.MULTILINE)
    assert re.search(r"^         run [0-9a-f]{32} of the comparison$", done.stdout, re.MULTILINE)
    assert "cost     nothing: no request was sent" in done.stdout


def test_references_alone_are_written_for_answers_that_are_there(study: Path, server: ScriptedServer) -> None:
    answers = [{"id": str(at), "question": f"Who {at}?", "answer": f"Monk {at}."} for at in range(3)]
    (study / "records.jsonl").write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")
    file = (
        'data.records = "records.jsonl"\njudges = [{ kind = "baseline" }]\nmetrics.use = ["f1"]\nrun.store = "s.db"\n'
        f'references = {{ model = "best", base_url = "{server.url}" }}\nmlflow.log = false\n'
    )
    (study / "experiment.toml").write_text(file, encoding="utf-8")
    assert {name: stage.totals.calls for name, stage in plan_experiment(load_experiment(study)).items()} == {
        "references": 3, "judging": 0,
    }  # fmt: skip
    results = run_experiment(study)
    assert server.count == 3 and results.settings["reference_models"] == {"best": 3}
    assert [path.name for path in (study / "results" / "writing").iterdir()] == ["references.parquet"]


def test_several_judges_without_a_choice_are_judged_and_said_not_to_be_compared(
    study: Path, server: ScriptedServer
) -> None:
    def apart(text: str) -> str:
        return quiet(re.sub(r"^(panel|compare|report).*\n", "", text, flags=re.MULTILINE))

    experiment = load_experiment(write(study, server, apart))
    assert experiment.study.compare is None
    done = call("run", str(study))
    assert done.returncode == 0, done.stderr
    words = 'not compared: several judges and no panel; [compare] with judge = "..." says whose scores to compare\n'
    assert words in done.stdout
    results = jm.Results.load(study / "results")
    assert compare_experiment(experiment, results) is None and set(results.scores["judge"]) == {
        "ada",
        "bob",
        "computed",
    }


def test_prompts_of_the_registry_and_all_pairs(study: Path, server: ScriptedServer, mlflow_store: Store) -> None:
    from jurimetrics.prompts import Prompt
    from jurimetrics.tracking.registry import register_prompts

    register_prompts([Prompt("brief", "Briefly: {question}")])
    text = FILE.replace('file = "prompts/"\ntag = "qa"', 'registered = "prompts:/brief"')
    text = re.sub(r"^(compare|references).*\n", "", text, flags=re.MULTILINE)
    results = run_experiment(write(study, server, lambda _: text))
    assert results.settings["variants"] == ["brief/small", "brief/large", "short/small", "short/large"]
    assert results.settings["written_by"]["brief/small"]["user"] == "Briefly: {question}"
    client, runs = client_of(mlflow_store), runs_of(mlflow_store)
    (whole,) = [run for run in runs if run.data.tags.get("jurimetrics.kind") == "study"]
    assert whole.data.params["baseline"] == "none: all pairs"
    assert "leaderboard.csv" in {item.path for item in client.list_artifacts(whole.info.run_id)}


def test_steps_from_python_give_what_the_whole_gives(study: Path, server: ScriptedServer) -> None:
    experiment = load_experiment(write(study, server, quiet))
    written = write_answers(experiment, store="none", progress=False)
    assert written is not None and not written.interrupted and not (study / "store.db").exists()
    assert repr(written.records) == "Answers(40 answers by 4 variants to 10 records)"
    assert len(written.references or ()) == 10 and written.notes == []
    results = evaluate_experiment(experiment, written, progress=False)
    assert results.settings["written_by"] == written.records.written_by
    assert results.settings["variants"] == NAMES


def test_evaluated_alone_it_writes_first(study: Path, server: ScriptedServer) -> None:
    results = evaluate_experiment(load_experiment(write(study, server, quiet)), store="none", progress=False)
    assert results.settings["variants"] == NAMES
    assert results.records["answer"].notna().all() and results.records["reference"].notna().all()
    assert len(pd.read_parquet(study / "results" / "writing" / "answers.parquet")) == RECORDS * VARIANTS


def test_a_study_is_gated_by_the_answers_of_its_prompts_as_they_are_now(study: Path, server: ScriptedServer) -> None:
    file = write(study, server, quiet)
    run_experiment(file)
    (study / "results").rename(study / "old")
    gated = [file, "--against", study / "old", "--margin", 0.05, "--metric", "f1", "--no-log"]
    same = CliRunner().invoke(app, ["gate", *map(str, gated)])
    table = [line for line in same.output.splitlines() if line.startswith("f1 ")]
    assert same.exit_code == 3, same.output  # no score has changed, and ten records do not show that none would
    assert len(table) == VARIANTS and all(line.split()[3] == str(RECORDS) for line in table)
    assert "\njudging  $0, saved $" in same.stdout and "\ncost " not in same.stdout
    # A new wording of one prompt: what it brings about is asked for, and judged as an answer of the same variant.
    full = study / "prompts" / "full.md"
    full.write_text(full.read_text(encoding="utf-8") + "Say it in numbers.\n", encoding="utf-8")
    server.forget()
    changed = CliRunner().invoke(app, ["gate", *map(str, gated)])
    assert len([call for call in server.requests if call.schema is None]) == 2 * RECORDS
    bill = rf"^writing  5 references: .*\n {{9}}40 answers: \$.*; {2 * RECORDS} calls, .*\njudging  \$"
    assert re.search(bill, changed.stdout, re.MULTILINE), changed.stdout
    assert "Say it in numbers." in jm.Results.load(study / "results").settings["written_by"]["full/small"]["user"]


@pytest.mark.slow
def test_gate_that_is_interrupted_while_it_writes_compares_nothing(study: Path, server: ScriptedServer) -> None:
    import threading

    file = write(study, server, quiet)
    run_experiment(file)
    (study / "results").rename(study / "old")
    full = study / "prompts" / "full.md"
    full.write_text(full.read_text(encoding="utf-8") + "Say it in numbers.\n", encoding="utf-8")
    before = server.count

    def interrupting(asked: Call) -> Answer:
        if asked.n == before + 5:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return handler(asked)

    server.handler, server.latency = interrupting, 0.02
    gated = [file, "--against", study / "old", "--margin", 0.05, "--metric", "f1", "--no-log"]
    found = CliRunner().invoke(app, ["gate", *map(str, gated)])
    assert found.exit_code == 130, found.output
    assert "interrupted while answers were written, nothing was judged or compared" in found.stderr
    assert "\nwriting  5 references: " in found.stdout
    assert found.stdout.endswith(f"answers  {study / 'store.db'}\n") and not (study / "results").exists()


def test_interrupted_from_python_is_an_interrupt(study: Path) -> None:
    import threading

    def interrupting(asked: Call) -> Answer:
        if asked.n == 12:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return handler(asked)

    with ScriptedServer(interrupting, latency=0.02) as server:
        with pytest.raises(KeyboardInterrupt, match="answers were still being written"):
            run_experiment(write(study, server, quiet))
        assert not (study / "results").exists()
        assert set(run_experiment(study).scores["status"]) == {"ok"}
        assert 125 <= server.count <= 125 + 4
