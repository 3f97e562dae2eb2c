"""Experiment files: every fault is one line that names file, key and expectation; a good one runs as written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jurimetrics as jm
import pytest
from jurimetrics.errors import InputError
from jurimetrics.experiment import check_ready, evaluate_experiment, load_experiment, run_experiment
from scripted_server import ScriptedServer, from_schema

QUICKSTART = Path(__file__).parents[1] / "experiments" / "quickstart"
RECORDS = [
    {
        "id": "a",
        "answer": "Madrid is in Spain.",
        "contexts": ["Madrid is in Spain."],
        "reference": "Madrid is in Spain.",
    },
    {"id": "b", "answer": "Rome is in Spain.", "contexts": ["Rome is in Italy."], "reference": "Rome is in Italy."},
]
DATA = 'data.records = "records.jsonl"\n'
JUDGES = 'judges = [{ kind = "baseline" }]\n'
METRICS = 'metrics.use = ["faithfulness", "f1"]\n'
GOOD = DATA + JUDGES + METRICS
NO_KEY = 'an API key never stands in this file; name the variable that holds it: api_key_env = "OPENAI_API_KEY"'
A_MODEL = 'text, the name of the model, such as "gpt-4.1-mini"'


@pytest.fixture
def folder(project: Path) -> Path:
    """A study with records and labels; its file is written by the test."""
    study = project / "study"
    study.mkdir()
    (study / "records.jsonl").write_text("\n".join(map(json.dumps, RECORDS)), encoding="utf-8")
    (study / "labels.csv").write_text("id,metric,label\na,faithfulness,1\n", encoding="utf-8")
    return study


def write(folder: Path, text: str) -> Path:
    (folder / "experiment.toml").write_text(text, encoding="utf-8")
    return folder


def chat(options: str) -> str:
    return DATA + METRICS + f'judges = [{{ kind = "baseline" }}, {{ kind = "chat", {options} }}]\n'


FAULTS: dict[str, tuple[str, str]] = {
    # [embedder]
    "embedder without kind": (GOOD + "[embedder]", 'embedder.kind: missing; expected "embedded" or "endpoint"'),
    "embedder of no kind": (
        GOOD + 'embedder.kind = "local"',
        'embedder.kind: expected "embedded" or "endpoint", found "local"',
    ),
    "embedder without model": (
        GOOD + 'embedder.kind = "endpoint"',
        "embedder.model: missing; expected text, the name of the model",
    ),
    "embedded with a model": (
        GOOD + 'embedder = { kind = "embedded", model = "m" }',
        'embedder.model: only an embedder of kind "endpoint" has this key',
    ),
    "embedder with a key": (
        GOOD + 'embedder = { kind = "endpoint", model = "m", extra_headers = { api-key = "x" } }',
        f"embedder.extra_headers.api-key: {NO_KEY}",
    ),
    "embedder with an odd key": (
        GOOD + 'embedder = { kind = "endpoint", modell = "m" }',
        'embedder.modell: unknown key; did you mean "model"?',
    ),
    "embedder somewhere": (
        GOOD + 'embedder = { kind = "endpoint", model = "m", base_url = "nowhere" }',
        "embedder: embedder 'm': base_url must be an address such as https://host/v1",
    ),
    # Options of metrics, and pairs of variants.
    "options of a metric that is not used": (
        GOOD + 'metrics.options = { hallucination = { refusals = "worst" } }',
        "metrics.options.hallucination: this metric is not used; known: f1, faithfulness",
    ),
    "option of another metric": (
        GOOD + "metrics.options = { faithfulness = { seed = 3 } }",
        "metrics.options.faithfulness: faithfulness has no option 'seed'; it has: refusals",
    ),
    "option of another value": (
        GOOD + 'metrics.options = { faithfulness = { refusals = "best" } }',
        "metrics.options.faithfulness: faithfulness: refusals is one of 'exclude', 'worst', not 'best'",
    ),
    "options empty": (
        GOOD + "metrics.options = { faithfulness = {} }",
        'metrics.options.faithfulness: expected a table of options, such as { refusals = "worst" }, found an empty one',
    ),
    "options no table": (
        GOOD + 'metrics.options = "worst"',
        "metrics.options: expected a table of metric and options, such as "
        '{ faithfulness = { refusals = "worst" } }, found "worst"',
    ),
    "one variant preferred": (
        DATA + JUDGES + 'metrics.use = ["preference(a)"]',
        "metrics.use[0]: 'preference(a)' is not of the form preference(one variant, another), without quotation marks",
    ),
    # The file as a whole.
    "no judges": (
        DATA + METRICS,
        'judges: missing; expected one or more tables [[judges]] with kind = "baseline" or "chat"',
    ),
    "judges empty": (
        DATA + METRICS + "judges = []",
        'judges: expected one or more tables [[judges]] with kind = "baseline" or "chat", found []',
    ),
    "judges a table": (
        DATA + METRICS + '[judges]\nkind = "baseline"',
        'judges: expected one or more tables [[judges]] with kind = "baseline" or "chat", found a table',
    ),
    "no data": (JUDGES + METRICS, 'data: missing; expected a table [data] with records = "..."'),
    "no metrics": (DATA + JUDGES, 'metrics: missing; expected a table [metrics] with use = ["..."]'),
    "table is text": (GOOD + 'run = "fast"', 'run: expected a table [run], found "fast"'),
    "unknown table": (GOOD + "[judge]\n", 'judge: unknown key; did you mean "judges"?'),
    "key of another table": (GOOD + "budget_usd = 2", "budget_usd: unknown key; it belongs into [run]"),
    "name is a number": (GOOD + "name = 3", "name: expected text, the name of the study, found 3"),
    # [data]
    "records missing": (
        JUDGES + METRICS + 'data.records = "gone.csv"',
        'data.records: no such file: "gone.csv"; expected a path from the folder of this file',
    ),
    "records a folder": (
        JUDGES + METRICS + 'data.records = "."',
        'data.records: no such file: "."; expected a path from the folder of this file',
    ),
    "records a list": (
        JUDGES + METRICS + "data.records = [1, true]",
        'data.records: expected the path of a file of records, such as "records.jsonl", found [1, true]',
    ),
    "labels missing": (
        GOOD + 'data.labels = "gone.csv"',
        'data.labels: no such file: "gone.csv"; expected a path from the folder of this file',
    ),
    "unknown data key": (GOOD + 'data.record = "x"', 'data.record: unknown key; did you mean "records"?'),
    "column not text": (GOOD + "data.columns = { answer = 1 }", "data.columns.answer: expected text, found 1"),
    # [[judges]]
    "no kind": (DATA + METRICS + "judges = [{}]", 'judges[0].kind: missing; expected "baseline" or "chat"'),
    "unknown kind": (
        DATA + METRICS + 'judges = [{ kind = "chatt" }]',
        'judges[0].kind: expected "baseline" or "chat", found "chatt"',
    ),
    "kind a number": (
        DATA + METRICS + "judges = [{ kind = 3 }]",
        'judges[0].kind: expected "baseline" or "chat", found 3',
    ),
    "judge a number": (DATA + METRICS + "judges = [3]", "judges[0]: expected a table [[judges]], found 3"),
    "misspelt model": (chat('modle = "m"'), 'judges[1].modle: unknown key; did you mean "model"?'),
    "no model": (chat("seed = 1"), f"judges[1].model: missing; expected {A_MODEL}"),
    "model a number": (chat("model = 3"), f"judges[1].model: expected {A_MODEL}, found 3"),
    "model empty": (chat('model = ""'), f'judges[1].model: expected {A_MODEL}, found ""'),
    "seed a fraction": (chat('model = "m", seed = 1.5'), "judges[1].seed: expected a whole number, found 1.5"),
    "tokens a truth value": (
        chat('model = "m", max_tokens = true'),
        "judges[1].max_tokens: expected a whole number above 0, found true",
    ),
    "timeout zero": (
        chat('model = "m", timeout = 0'),
        "judges[1].timeout: expected a number of seconds above 0, found 0",
    ),
    "header a number": (
        chat('model = "m", extra_headers = { team = 1 }'),
        "judges[1].extra_headers.team: expected text, found 1",
    ),
    "model of the baseline": (
        DATA + METRICS + 'judges = [{ kind = "baseline", model = "m" }]',
        "judges[0].model: unknown key; known: kind, name",
    ),
    "price a text": (
        chat('model = "m", price = "cheap"'),
        "judges[1]: price must be 0 (free) or (prompt, completion[, cached]) in US dollars per million tokens, each 0 or "
        "more, not 'cheap'",
    ),
    "two of one name": (
        DATA + METRICS + 'judges = [{ kind = "baseline" }, { kind = "baseline" }]',
        "judges: two judges are called 'baseline'; give one of them another name=",
    ),
    # Keys
    "key": (chat('model = "m", api_key = "abc"'), f"judges[1].api_key: {NO_KEY}"),
    "key as the name of a variable": (
        chat('model = "m", api_key_env = "sk-CANARY12345"'),
        f"judges[1].api_key_env: {NO_KEY}",
    ),
    "azure key as a variable": (
        chat('model = "m", api_key_env = "c0ffee00c0ffee00c0ffee00c0ffee00"'),
        f"judges[1].api_key_env: {NO_KEY}",
    ),
    "not a variable": (
        chat('model = "m", api_key_env = "MY KEY"'),
        'judges[1].api_key_env: expected the name of an environment variable, such as "OPENAI_API_KEY", found "MY KEY"',
    ),
    "key in a header": (
        chat('model = "m", extra_headers = { Authorization = "Bearer canary12345" }'),
        f"judges[1].extra_headers.Authorization: {NO_KEY}",
    ),
    "key in a header of any name": (
        chat('model = "m", extra_headers = { x = "Bearer canary12345" }'),
        f"judges[1].extra_headers.x: {NO_KEY}",
    ),
    "password in the address": (
        chat('model = "m", base_url = "https://ann:canary@host/v1"'),
        f"judges[1].base_url: {NO_KEY}",
    ),
    "key in the address": (
        chat('model = "m", base_url = "https://host/v1?api-key=canary"'),
        f"judges[1].base_url: {NO_KEY}",
    ),
    "key in a wrong place": (GOOD + 'description = "sk-CANARY12345"', f"description: {NO_KEY}"),
    "key under an unknown name": (GOOD + '[run]\nOPENAI = "sk-proj-CANARY_12345"', f"run.OPENAI: {NO_KEY}"),
    # [panel]
    "rule": (
        GOOD + 'panel.rule = "mode"',
        'panel.rule: expected one of mean, median, trimmed_mean, majority, weighted, min, max, found "mode"',
    ),
    "weights of nobody": (
        GOOD + 'panel.rule = "weighted"\npanel.weights = { baselin = 1 }',
        'panel.weights.baselin: no such judge; did you mean "baseline"?',
    ),
    "weight zero": (
        GOOD + 'panel.rule = "weighted"\npanel.weights = { baseline = 0 }',
        "panel.weights.baseline: expected a number above 0, found 0",
    ),
    "weight a text": (
        GOOD + 'panel.rule = "weighted"\npanel.weights = { baseline = "much" }',
        'panel.weights.baseline: expected a number, found "much"',
    ),
    "weights without the rule": (
        GOOD + "panel.weights = { baseline = 1 }",
        'panel: weights and the rule "weighted" go together',
    ),
    "quorum too large": (GOOD + "panel.quorum = 3", "panel: quorum 3 is not between 1 and 1, the number of judges"),
    "rule without verdicts": (
        GOOD + 'panel.rule = "max"',
        'panel: the rule max says nothing of single verdicts; use vote_on="scores"',
    ),
    "extractor nobody": (
        GOOD + 'panel.extractor = "gpt"',
        'panel.extractor: no judge "gpt"; known: baseline, each',
    ),
    "panel named as a judge": (
        GOOD + 'panel.name = "baseline"',
        'panel.name: a judge is called "baseline" too; expected another name',
    ),
    # [metrics]
    "metric misspelt": (
        DATA + JUDGES + 'metrics.use = ["f1", "faithfulnes"]',
        'metrics.use[1]: no metric or group "faithfulnes"; did you mean "faithfulness"?',
    ),
    "use a text": (
        DATA + JUDGES + 'metrics.use = "f1"',
        'metrics.use: expected a list of metrics or groups, such as ["rag", "f1"], found "f1"',
    ),
    "use a list of numbers": (DATA + JUDGES + "metrics.use = [2]", "metrics.use[0]: expected text, found 2"),
    "nothing measured": (
        DATA + JUDGES + "metrics.use = []",
        'metrics.use: nothing is measured; expected a list of metrics or groups, such as ["rag", "f1"]',
    ),
    "threshold outside": (
        GOOD + "metrics.thresholds = { faithfulness = 3 }",
        "metrics.thresholds.faithfulness: expected a number from 0 to 1, found 3",
    ),
    "threshold not a number": (
        GOOD + "metrics.thresholds = { f1 = nan }",
        "metrics.thresholds.f1: expected a number, found nan",
    ),
    "threshold of a metric not used": (
        GOOD + "metrics.thresholds = { fluency = 4 }",
        "metrics.thresholds.fluency: this metric is not used; known: f1, faithfulness",
    ),
    "threshold misspelt": (
        GOOD + "metrics.thresholds = { faithfullness = 0.9 }",
        'metrics.thresholds.faithfullness: this metric is not used; did you mean "faithfulness"?',
    ),
    "rubric without text": (
        GOOD + '[[metrics.rubrics]]\nname = "polite"',
        "metrics.rubrics[0].text: missing; expected text, the criterion in a sentence or a few",
    ),
    "rubric level": (
        GOOD + '[[metrics.rubrics]]\nname = "polite"\ntext = "Is it polite?"\nlevels = { low = "rude" }',
        'metrics.rubrics[0].levels: expected a number before each description, found "low"',
    ),
    "rubric level outside": (
        GOOD + '[[metrics.rubrics]]\nname = "polite"\ntext = "Is it polite?"\nlevels = { 6 = "kind" }',
        "metrics.rubrics[0]: rubric 'polite': level 6 is outside the scale 1 to 5",
    ),
    "rubric scale": (
        GOOD + '[[metrics.rubrics]]\nname = "polite"\ntext = "Is it polite?"\nscale = [1]',
        "metrics.rubrics[0].scale: expected the lowest and the highest value, such as [1, 5], found [1]",
    ),
    "rubric named as a metric": (
        GOOD + '[[metrics.rubrics]]\nname = "f1"\ntext = "Is it polite?"',
        'metrics.rubrics: "f1" is a built-in metric or group; expected another name',
    ),
    "rubrics of one name": (
        GOOD + 2 * '[[metrics.rubrics]]\nname = "polite"\ntext = "Is it polite?"\n',
        "metrics.rubrics: two rubrics have the same name",
    ),
    # [run] and [mlflow]
    "budget a text": (
        GOOD + 'run.budget_usd = "2"',
        'run.budget_usd: expected a number of US dollars above 0, found "2"',
    ),
    "budget nothing": (GOOD + "run.budget_calls = 0", "run.budget_calls: expected a whole number above 0, found 0"),
    "repeats": (GOOD + "run.repeats = 0", "run.repeats: expected a whole number above 0, found 0"),
    "retries": (GOOD + "run.retries = -1", "run.retries: expected a whole number from 0, found -1"),
    "out elsewhere": (
        GOOD + 'run.out = "."',
        'run.out: "." holds something other than results; expected a folder of its own',
    ),
    "log a word": (GOOD + 'mlflow.log = "yes"', 'mlflow.log: expected true or false, found "yes"'),
    "traces": (GOOD + "mlflow.traces = -1", "mlflow.traces: expected a whole number of records from 0, found -1"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_one_line(folder: Path, name: str) -> None:
    text, message = FAULTS[name]
    with pytest.raises(InputError) as raised:
        load_experiment(write(folder, text))
    assert str(raised.value) == f"{folder / 'experiment.toml'}: {message}"
    assert "\n" not in str(raised.value)
    assert "canary" not in str(raised.value).lower()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'name = "a\nb"', "not TOML: Illegal character '\\n' (at line 1, column 10)"),
        (b"a = 1\na = 2", "not TOML: Cannot overwrite a value (at line 2, the end of the file)"),
        (b'a = 1\nname = "\xe9"', "not TOML: line 2 is not UTF-8"),
        (b"{}", "not TOML: Invalid statement (at line 1, column 1)"),
    ],
)
def test_what_is_not_toml_is_said_with_its_line(folder: Path, content: bytes, message: str) -> None:
    file = folder / "experiment.toml"
    file.write_bytes(content)
    with pytest.raises(InputError) as raised:
        load_experiment(file)
    assert str(raised.value) == f"{file}: {message}"


def test_missing_file_and_folder_without_one(project: Path) -> None:
    with pytest.raises(InputError, match=r"^gone: no such file or folder; expected an experiment file or its folder$"):
        load_experiment("gone")
    with pytest.raises(InputError, match=r"no experiment\.toml in this folder$"):
        load_experiment(project)


@pytest.mark.parametrize(
    "text",
    [
        chat('model = "m", extra_body = { prompt_cache_key = "study" }'),
        chat('model = "m", max_tokens = 5, extra_headers = { "X-Team" = "evaluation" }'),
        chat('model = "hf-mixtral"'),
        GOOD + 'description = "how tokens, keys and secrets are told apart"',
        GOOD + '[[metrics.rubrics]]\nname = "token"\ntext = "Does it explain what a token is?"',
    ],
)
def test_what_is_no_key_is_not_taken_for_one(folder: Path, text: str) -> None:
    assert load_experiment(write(folder, text)).name == "study"


def test_everything_that_may_stand_in_a_file_arrives(folder: Path) -> None:
    write(
        folder,
        """
        name = "all of it"
        description = "what is asked"
        [data]
        records = "records.jsonl"
        labels = "labels.csv"
        columns = { answer = "answer" }
        [[judges]]
        kind = "baseline"
        name = "floor"
        [[judges]]
        kind = "chat"
        model = "m"
        name = "a"
        base_url = "http://127.0.0.1:9/v1"
        temperature = 0
        max_tokens = 300
        price = [0.4, 1.6]
        extra_headers = { x = "y" }
        [panel]
        rule = "weighted"
        weights = { floor = 1, a = 2.5 }
        quorum = 2
        extractor = "a"
        name = "jury"
        [metrics]
        use = ["polite", "faithfulness"]
        thresholds = { faithfulness = 1, polite = 4 }
        [[metrics.rubrics]]
        name = "polite"
        text = "Is it polite?"
        scale = [1, 5]
        levels = { 1 = "rude", 5 = "kind" }
        needs = ["answer"]
        uses = ["question"]
        [run]
        budget_usd = 2
        budget_calls = 10
        store = "answers.db"
        repeats = 2
        reason_language = "German"
        out = "rows"
        [mlflow]
        experiment = "elsewhere"
        traces = 0
        """,
    )
    found = load_experiment(folder / "experiment.toml")
    assert (found.name, found.description) == ("all of it", "what is asked")
    assert (found.records, found.labels) == (folder / "records.jsonl", folder / "labels.csv")
    assert [judge.name for judge in found.judges] == ["floor", "a"]
    assert found.panel is not None
    assert found.panel.settings() == {
        "name": "jury",
        "rule": "weighted",
        "vote_on": "verdicts",
        "weights": {"floor": 1.0, "a": 2.5},
        "quorum": 2,
        "members": ["a", "floor"],
        "extractor": "a",
    }
    assert [metric.name for metric in found.metrics] == ["polite", "faithfulness"]
    assert found.metrics[0].levels == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert found.thresholds == {"faithfulness": 1.0, "polite": 4.0}
    assert found.run.budget() == {"usd": 2.0, "calls": 10}
    assert found.run.options() == {"repeats": 2, "reason_language": "German"}
    assert (found.store, found.out) == (folder / "answers.db", folder / "rows")
    assert (found.mlflow.experiment, found.mlflow.traces, found.mlflow.log) == ("elsewhere", 0, True)


def test_metrics_under_options_pairs_and_an_embedder_arrive(folder: Path) -> None:
    write(
        folder,
        DATA
        + JUDGES
        + """
        embedder = { kind = "endpoint", model = "e", base_url = "http://127.0.0.1:9/v1", dimensions = 8, price = 0 }
        [metrics]
        use = ["faithfulness", "consensus", "preference(old, new)"]
        options = { faithfulness = { refusals = "worst" }, consensus = { orders = 4 } }
        thresholds = { faithfulness = 0.9 }
        """,
    )
    found = load_experiment(folder)
    names = ["faithfulness(refusals=worst)", "consensus(orders=4)", "preference(old,new)"]
    assert [metric.name for metric in found.metrics] == names
    assert found.thresholds == {"faithfulness(refusals=worst)": 0.9}
    assert found.embedder is not None
    assert (found.embedder.name, found.embedder.settings()["dimensions"]) == ("e", 8)


def test_options_and_embedder_of_the_file_decide_the_rows(folder: Path) -> None:
    refusal = {"id": "c", "answer": "I do not know.", "contexts": ["Rome is in Italy."], "reference": "Rome is in Italy."}
    (folder / "records.jsonl").write_text(json.dumps(refusal), encoding="utf-8")
    with ScriptedServer(from_schema) as server:
        options = f'kind = "endpoint", model = "e", base_url = "{server.url}"'
        metrics = 'use = ["faithfulness", "similarity_score"]\noptions = { faithfulness = { refusals = "worst" } }\n'
        text = DATA + JUDGES + f"embedder = {{ {options} }}\n[metrics]\n{metrics}[mlflow]\nlog = false\n"
        results = run_experiment(write(folder, text + '[run]\nstore = "none"\n'))
        scores = results.scores.set_index("metric")["score"]
        assert scores["faithfulness(refusals=worst)"] == 0.0
        assert server.count == 1 and results.settings["embedder"]["model"] == "e"


@pytest.mark.parametrize(("word", "store"), [("auto", "auto"), ("none", None)])
def test_words_for_stores(folder: Path, word: str, store: str | None) -> None:
    assert load_experiment(write(folder, GOOD + f'run.store = "{word}"')).store == store


def test_file_with_a_byte_order_mark_and_windows_lines(folder: Path) -> None:
    (folder / "experiment.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_experiment(folder).name == "study"


def test_the_quickstart_file_is_good() -> None:
    found = load_experiment(QUICKSTART)
    assert (found.name, [judge.name for judge in found.judges], found.panel) == ("quickstart", ["baseline"], None)
    assert [metric.name for metric in found.metrics][-3:] == ["coherence", "fluency", "f1"]


def test_run_scores_applies_thresholds_saves_and_leaves_the_folder_to_git(folder: Path) -> None:
    write(folder, GOOD + "metrics.thresholds = { f1 = 0.7 }\nmlflow.log = false")
    results = run_experiment(folder)
    assert results.folder == folder / "results"
    f1 = results.scores[results.scores["metric"] == "f1"]
    # "rome is in spain" and "rome is in italy" share 3 of 4 words each.
    assert f1["score"].tolist() == [1.0, 0.75]
    assert f1["passed"].tolist() == [True, True]
    assert results.settings["metrics"]["f1"]["threshold"] == 0.7
    assert jm.Results.load(folder / "results").settings["metrics"]["f1"]["threshold"] == 0.7
    assert (folder / "results" / ".gitignore").read_text(encoding="utf-8").endswith("*\n")
    again = run_experiment(folder)
    assert again.scores["score"].tolist() == results.scores["score"].tolist()


def test_columns_of_the_file_are_mapped(folder: Path) -> None:
    rows = [{"id": 1, "mine": "Madrid", "theirs": "Madrid"}]
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = 'data.columns = { answer = "mine", reference = "theirs" }\n'
    write(folder, DATA + columns + JUDGES + 'metrics.use = ["f1"]\nmlflow.log = false')
    assert run_experiment(folder).scores["score"].tolist() == [1.0]


def test_a_bad_record_is_refused_before_anything_is_asked(folder: Path) -> None:
    (folder / "records.jsonl").write_text('{"id": 1, "answer": "a"}\n{"id": 1, "answer": "b"}\n', encoding="utf-8")
    with ScriptedServer(from_schema) as server:
        judge = f'judges = [{{ kind = "chat", model = "m", base_url = "{server.url}" }}]\n'
        write(folder, DATA + judge + METRICS + "mlflow.log = false")
        with pytest.raises(InputError, match=r"records\.jsonl: .* have the same id '1' and variant ''"):
            run_experiment(folder)
        assert server.count == 0


def test_labels_of_other_records_are_refused_before_anything_is_asked(folder: Path) -> None:
    (folder / "labels.csv").write_text("id,metric,label\nz,faithfulness,1\n", encoding="utf-8")
    experiment = load_experiment(write(folder, GOOD + 'data.labels = "labels.csv"\nmlflow.log = false'))
    with pytest.raises(InputError, match=r"experiment\.toml: data\.labels: no label is of a record in records\.jsonl$"):
        check_ready(experiment)


def test_missing_key_is_said_with_file_judge_and_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    experiment = load_experiment(write(folder, chat('model = "m", api_key_env = "NO_SUCH_KEY"') + "mlflow.log = false"))
    with pytest.raises(InputError, match=r"experiment\.toml: judges\[1\]: .*NO_SUCH_KEY"):
        check_ready(experiment)


def test_mlflow_that_is_away_is_said_before_anything_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    experiment = load_experiment(write(folder, GOOD))
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9"):
        check_ready(experiment)
    check_ready(experiment, log=False)


def test_a_panel_of_chat_judges_runs_and_runs_again_without_asking(folder: Path) -> None:
    with ScriptedServer(from_schema) as server:
        judges = "".join(
            f'[[judges]]\nkind = "chat"\nmodel = "{name}"\nbase_url = "{server.url}"\nprice = 0\n'
            for name in ("one", "two")
        )
        write(
            folder,
            DATA
            + 'metrics.use = ["fluency", "f1"]\n'
            + '[panel]\nrule = "median"\n'
            + judges
            + '[run]\nstore = "s.db"\n[mlflow]\nlog = false',
        )
        first = run_experiment(folder)
        asked = server.count
        second = run_experiment(folder)
        assert asked > 0
        assert server.count == asked
    assert set(first.scores["judge"]) == {"one", "two", "panel", "computed"}
    assert second.scores["score"].equals(first.scores["score"])
    assert (folder / "s.db").exists()


def test_the_store_given_goes_before_the_file(folder: Path) -> None:
    with ScriptedServer(from_schema) as server:
        judge = f'judges = [{{ kind = "chat", model = "m", base_url = "{server.url}", price = 0 }}]\n'
        experiment = load_experiment(write(folder, DATA + judge + METRICS + 'run.store = "s.db"'))
        evaluate_experiment(experiment, store="none", progress=False)
    assert not (folder / "s.db").exists()


def test_importing_loads_no_frames() -> None:
    script = "import sys, json, jurimetrics.experiment, jurimetrics.cli; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", check=True)
    loaded = json.loads(done.stdout)
    assert [name for name in ("pandas", "pyarrow", "numpy", "mlflow", "openai", "matplotlib") if name in loaded] == []
