"""The command: what it prints, and the exit status that says what happened."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import jurimetrics as jm
import pytest
from jurimetrics.cli import app
from jurimetrics.cli.console import one_line
from scripted_server import Answer, Call, ScriptedServer, error, from_schema, hang
from typer.testing import CliRunner

QUICKSTART = Path(__file__).parents[1] / "experiments" / "quickstart"
COMMAND = [sys.executable, "-c", "from jurimetrics.cli import main; main()"]
RECORD = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."], "reference": "Madrid is in Spain."}


def call(*arguments: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "120", **surroundings},
        timeout=120,
        check=False,
    )


@pytest.fixture
def study(project: Path) -> Path:
    """A study of ten records whose judge is the test's own server."""
    folder = project / "study"
    folder.mkdir()
    rows = [{"id": str(number), **RECORD, "answer": f"Madrid has {number} parks."} for number in range(10)]
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def chat_study(study: Path, url: str, more: str = "") -> Path:
    (study / "experiment.toml").write_text(
        'data.records = "records.jsonl"\nmetrics.use = ["fluency"]\nrun.store = "answers.db"\n'
        f'judges = [{{ kind = "chat", model = "m", base_url = "{url}" }}]\n{more}',
        encoding="utf-8",
    )
    return study


def test_quickstart_from_records_to_mlflow(project: Path) -> None:
    shutil.copytree(QUICKSTART, project / "quickstart", ignore=shutil.ignore_patterns("results"))
    uri = f"sqlite:///{(project / 'runs' / 'mlflow.db').as_posix()}"
    # An ASCII locale, and text of other scripts in what is printed: nothing may break or be lost.
    done = call("run", "quickstart", MLFLOW_TRACKING_URI=uri, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    printed = done.stdout
    assert printed.startswith("quickstart: 86 records, 2 variants, 10 metrics, 1 judge (baseline)\n")
    for metric in ("faithfulness", "hallucination", "noise_sensitivity", "coherence", "fluency", "f1"):
        assert len(re.findall(rf"^{metric}\s", printed, re.MULTILINE)) == 2, f"one line of {metric} for each variant"
    assert re.search(r"^ +\d+ x unsupported, such as \w+ of .* by baseline: ", printed, re.MULTILINE)
    assert "cost     nothing: no request was sent" in printed
    assert f"results  {project / 'quickstart' / 'results'}" in printed
    assert f"MLflow   {uri}" in printed
    assert len(re.findall(r"run [0-9a-f]{32} (?:concise|detailed)$", printed, re.MULTILINE)) == 2
    assert "make ui" in printed
    assert "The baseline judge alone gave these scores." in printed
    assert '[[judges]]\nkind = "chat"\nmodel = "gpt-4.1-mini"' in printed
    assert "alembic" not in printed.lower()
    assert len(jm.Results.load(project / "quickstart" / "results").records) == 86


def test_text_of_every_script_under_an_ascii_locale(study: Path) -> None:
    answer = "\u0645\u062f\u0631\u064a\u062f \u0641\u064a \u0625\u0633\u0628\u0627\u0646\u064a\u0627. \U0001f600 \ud83d"
    name = "\u0645\u062f\u0631\u064a\u062f-\U0001f600"
    row = {"id": name, "variant": "\u5317\u4eac", "answer": answer, "contexts": [answer]}
    (study / "records.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (study / "experiment.toml").write_text(
        'data.records = "records.jsonl"\nmetrics.use = ["faithfulness"]\njudges = [{ kind = "baseline" }]\n'
        'run.store = "none"\n',
        encoding="utf-8",
    )
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    # A file that is opened without its encoding would be read in the locale's: here that is an error.
    strict = {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error::EncodingWarning"}
    done = call("run", str(study), "--no-log", "--max-failed", "1", **ascii_only, **strict)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"1 x unsupported, such as faithfulness of {name} (\u5317\u4eac) by baseline: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "gone"), "jurimetrics: gone: no such file or folder; expected an experiment file or its folder\n"),
        (("metrics", "faithfulnes"), "jurimetrics: metrics: no 'faithfulnes' (did you mean 'faithfulness'?); metrics: "),
        (("judge",), "jurimetrics: no metric can be applied: give --answer, "),
        (
            ("judge", "--answer", "a", "--base-url", "http://127.0.0.1:9"),
            "jurimetrics: --base-url and --api-key-env go with",
        ),
        (
            (
                "judge",
                "--answer",
                "a",
                "--model",
                "m",
                "--api-key-env",
                "NO_SUCH_KEY",
                "--base-url",
                "http://127.0.0.1:9/v1",
            ),
            "NO_SUCH_KEY",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(project: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_endpoint_that_is_down_is_bad_input_with_its_address(study: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    started = time.monotonic()
    done = call("run", str(chat_study(study, url)), "--no-log")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert url in done.stderr
    assert time.monotonic() - started < 20


def test_too_many_failed_rows_are_status_1(study: Path) -> None:
    def answer(asked: Call) -> Answer:
        # Three of ten records are refused for good.
        refused = any(f"has {number} parks" in asked.prompt for number in (1, 2, 3))
        return error(400, message="this prompt is not for me") if refused else from_schema(asked)

    with ScriptedServer(answer) as server:
        folder = str(chat_study(study, server.url))
        over = call("run", folder, "--no-log")
        under = call("run", folder, "--no-log", "--max-failed", "0.3")
    assert (over.returncode, under.returncode) == (1, 0), over.stderr + under.stderr
    assert "30.0% of the rows failed; 20.0% are allowed (--max-failed)" in over.stderr
    assert "failed   3 rows, 30.0% of all" in over.stdout
    assert re.search(r"3 x rejected, such as fluency of \d by m: .*this prompt is not for me", over.stdout)
    assert "The baseline judge alone" not in over.stdout


def test_unknown_price_is_said_as_at_least(study: Path) -> None:
    with ScriptedServer(from_schema) as server:
        done = call("run", str(chat_study(study, server.url)), "--no-log")
    assert done.returncode == 0, done.stderr
    assert "cost     at least $0 (10 calls without a known price)" in done.stdout


def test_interrupted_is_status_130_and_what_is_done_is_not_asked_again(study: Path) -> None:
    def answer(asked: Call) -> Answer:
        late = any(f"has {number} parks" in asked.prompt for number in (7, 8, 9))
        return hang(60) if late and not asked.tries else from_schema(asked)

    with ScriptedServer(answer) as server:
        folder = chat_study(study, server.url)
        process = subprocess.Popen(
            [*COMMAND, "run", str(folder), "--no-log"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        until = time.monotonic() + 60
        while server.count < 10 and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)  # the seven that are answered are on their way back
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
        assert errors == (
            "interrupted: what is done is kept, nothing was logged to MLflow; run the same command again to go on\n"
        )
        assert "3 x cancelled" in printed
        assert jm.Results.load(folder / "results").scores["status"].value_counts().to_dict() == {"ok": 7, "failed": 3}
        again = call("run", str(folder), "--no-log")
        assert again.returncode == 0, again.stderr
        assert server.count == 13
    assert jm.Results.load(folder / "results").scores["status"].tolist() == ["ok"] * 10


def test_run_again_goes_on_where_it_was(study: Path) -> None:
    def answer(asked: Call) -> Answer:
        return from_schema(asked) if asked.tries or "has 9 parks" not in asked.prompt else error(401, "not yet")

    with ScriptedServer(answer) as server:
        folder = str(chat_study(study, server.url))
        call("run", folder, "--no-log")
        first = server.count
        done = call("run", folder, "--no-log", "--retry-failed")
        assert done.returncode == 0, done.stderr
        assert server.count == first + 1
    assert "9 from the store" in done.stdout


def test_mlflow_is_down_is_said_before_anything_is_asked(study: Path) -> None:
    with ScriptedServer(from_schema) as server:
        done = call("run", str(chat_study(study, server.url)), MLFLOW_TRACKING_URI="http://127.0.0.1:9")
        assert done.returncode == 2
        assert server.count == 0
    assert "http://127.0.0.1:9" in done.stderr


def test_metrics_are_listed_with_what_they_cost() -> None:
    done = CliRunner().invoke(app, ["metrics"])
    assert done.exit_code == 0
    assert re.search(r"^faithfulness +0 to 1 +higher +>= 0\.8 +answer, contexts +claims, check +2$", done.stdout, re.M)
    assert re.search(r"^hallucination +0 to 1 +lower +<= 0\.2 ", done.stdout, re.MULTILINE)
    assert re.search(r"^noise_share .* claims, check x 2 +3$", done.stdout, re.MULTILINE)
    assert re.search(r"^f1 .* nobody: computed +0$", done.stdout, re.MULTILINE)
    # Claims once, three checks of which two are alike, sentences, documents, one rubric.
    rag = CliRunner().invoke(app, ["metrics", "rag"]).stdout
    assert "Together 6 calls a record and judge, not 12" in rag


def test_one_metric_is_defined_and_its_prompts_are_printed() -> None:
    defined = CliRunner().invoke(app, ["metrics", "faithfulness"]).stdout
    assert "Supported claims over claims" in defined
    sent = CliRunner().invoke(app, ["metrics", "faithfulness", "--prompt"]).stdout
    assert re.findall(r"^===== (\w+)@", sent, re.MULTILINE) == ["claims", "check"]
    assert sent.count("----- system") == sent.count("----- user") == sent.count("----- reply schema") == 2
    assert "{answer}" in sent
    schemas = re.findall(r"^----- reply schema\n(.*?)\n(?=\n|=====|\Z)", sent + "\n", re.MULTILINE | re.DOTALL)
    assert [json.loads(schema)["type"] for schema in schemas] == ["object", "object"]
    assert CliRunner().invoke(app, ["metrics", "f1", "--prompt"]).stdout == "f1: computed, nothing is sent\n"


def test_judge_of_one_record_prints_score_reason_and_details(project: Path) -> None:
    done = call(
        "judge", "--answer", "Madrid is in Spain.", "--context", "Madrid is in Spain.", "--metric", "faithfulness",
        "--store", "none",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    head, reason, details = done.stdout.split("\n", 2)
    assert head == "faithfulness  1  passes (at least 0.8)  [baseline]"
    assert reason.startswith("  1 claim: 1 supported")
    assert details.startswith("    verdicts:\n      - claim: Madrid is in Spain.\n        verdict: supported\n")


def test_judge_takes_all_metrics_that_the_record_allows(project: Path) -> None:
    done = call("judge", "--answer", "Madrid.", "--reference", "Madrid.", "--store", "none")
    shown = re.findall(r"^(\w+)  .*\[(\w+)\]$", done.stdout, re.MULTILINE)
    names = dict(shown)
    assert {"f1", "fluency", "accuracy_clarity"} <= set(names)
    assert not {"faithfulness", "context_precision"} & set(names)
    assert done.returncode == 0
    assert (names["f1"], names["fluency"]) == ("computed", "baseline")


def test_judge_says_what_the_baseline_has_no_answer_to(project: Path) -> None:
    # It rates correctness against a reference only. That is no failure where nobody asked for it.
    done = call("judge", "--answer", "Madrid.", "--store", "none")
    assert re.search(r"^not answered by baseline: .*correctness", done.stdout, re.MULTILINE)
    assert done.returncode == 0
    assert call("judge", "--answer", "a", "--metric", "correctness", "--store", "none").returncode == 1


def test_judge_asks_a_server(project: Path) -> None:
    with ScriptedServer(from_schema) as server:
        done = call("judge", "--answer", "a", "--metric", "fluency", "--model", "m", "--base-url", server.url)
        assert server.count == 1
    assert done.returncode == 0, done.stderr
    assert re.match(r"fluency  [1-5]  .*\[m\]\n", done.stdout)
    assert (project / ".jurimetrics" / "store.db").exists()


def test_judge_with_a_failed_row_is_status_1(project: Path) -> None:
    with ScriptedServer(lambda _: error(400, "no")) as server:
        done = call("judge", "--answer", "a", "--metric", "fluency", "--model", "m", "--base-url", server.url)
    assert done.returncode == 1
    assert done.stdout.startswith("fluency  failed  [m]\n  rejected: ")


def test_text_of_others_cannot_steer_the_terminal() -> None:
    assert one_line("\x1b[2J\x07a\r\nb", 40) == "\ufffd[2J\ufffda  b"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"


def test_ui_serves_the_store_of_the_project_from_any_folder_in_it(project: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    inner = project / "notebooks" / "deep"
    inner.mkdir(parents=True)
    process = subprocess.Popen(
        [*COMMAND, "ui", "--port", str(port)],
        cwd=inner,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"MLflow store  sqlite:///{project.as_posix()}/mlruns/mlflow.db\n"
        assert f"http://127.0.0.1:{port}" in process.stdout.readline()
        assert _answers(f"http://127.0.0.1:{port}/health")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=30)
    assert (project / "mlruns" / "mlflow.db").exists()


def _answers(address: str) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(address, timeout=5) as found:
                return bool(found.status == 200)
        except OSError:
            time.sleep(0.2)
    return False


def test_ui_says_that_a_port_is_taken_and_where_a_server_is(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = call("ui", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == f"jurimetrics: port {port} is taken; give another one: jurimetrics ui --port {port + 1}\n"
    served = call("ui", MLFLOW_TRACKING_URI="http://ann:canary@127.0.0.1:9")
    assert (served.returncode, served.stdout) == (0, "MLflow is served already: http://ann:***@127.0.0.1:9\n")


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['jurimetrics', '--help']\n"
        "import jurimetrics.cli\n"
        "try:\n    jurimetrics.cli.main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print(sorted(name for name in ('pandas', 'mlflow', 'openai', 'pydantic') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.rstrip().endswith("[]")
    for name in ("run", "metrics", "judge", "ui"):
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE)
