"""The tables of a study in an experiment file: every fault is one line with file and key, before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jurimetrics.errors import InputError
from jurimetrics.experiment import check_ready, load_experiment, plan_experiment, run_experiment
from jurimetrics.experiment.faults import _NO_KEY as NO_KEY
from scripted_server import ScriptedServer, from_schema

RECORDS = [{"id": str(at), "question": f"Who built mill {at}?", "topic": "mills"} for at in range(3)]
BASE = 'data.records = "records.jsonl"\nrun.store = "none"\nmlflow.log = false\n'
JUDGE = 'judges = [{ kind = "baseline" }]\nmetrics.use = ["fluency", "f1"]\n'
TWO_JUDGES = (
    'judges = [{ kind = "baseline" }, { kind = "baseline", name = "other" }]\nmetrics.use = ["fluency", "f1"]\n'
)
PROMPT = 'prompts = [{ name = "short", user = "{question}" }]\n'
PROMPTS = 'prompts = [{ name = "short", user = "{question}" }, { name = "long", user = "Say: {question}" }]\n'
MODEL = 'models = [{ model = "m", base_url = "http://127.0.0.1:9/v1" }]\n'
STUDY = BASE + JUDGE + PROMPTS + MODEL
KINDS = 'expected file = "prompts/", or registered = "prompts:/name", or name and user'
A_MODEL = 'text, the name of the model, such as "gpt-4.1-mini"'


@pytest.fixture
def folder(project: Path) -> Path:
    """A study with records of questions and a folder of prompts; its file is written by the test."""
    study = project / "study"
    (study / "prompts").mkdir(parents=True)
    (study / "prompts" / "short.md").write_text('+++\ntags = ["qa"]\n+++\nIn short: {question}\n', encoding="utf-8")
    (study / "records.jsonl").write_text("\n".join(map(json.dumps, RECORDS)), encoding="utf-8")
    return study


def write(folder: Path, text: str) -> Path:
    (folder / "experiment.toml").write_text(text, encoding="utf-8")
    return folder


def prompts(table: str) -> str:
    return BASE + JUDGE + MODEL + f"prompts = [{{ {table} }}]\n"


def models(table: str) -> str:
    return BASE + JUDGE + PROMPTS + f"models = [{{ {table} }}]\n"


FAULTS: dict[str, tuple[str, str]] = {
    # [[prompts]]
    "prompts alone": (
        BASE + JUDGE + PROMPT,
        'models: missing; [[prompts]] need one or more tables [[models]] with model = "..."',
    ),
    "models alone": (
        BASE + JUDGE + MODEL,
        f"prompts: missing; [[models]] need one or more tables [[prompts]]: {KINDS}",
    ),
    "no prompts": (
        BASE + JUDGE + MODEL + "prompts = []",
        'prompts: expected one or more tables [[prompts]] with file = "...", or name and user, found []',
    ),
    "prompts a text": (
        BASE + JUDGE + MODEL + 'prompts = "prompts/"',
        'prompts: expected one or more tables [[prompts]] with file = "...", or name and user, found "prompts/"',
    ),
    "a prompt a text": (BASE + JUDGE + MODEL + 'prompts = ["a"]', 'prompts[0]: expected a table [[prompts]], found "a"'),
    "unknown key of a prompt": (prompts('fiel = "a"'), 'prompts[0].fiel: unknown key; did you mean "file"?'),
    "empty prompt": (prompts(""), f"prompts[0]: missing; {KINDS}"),
    "prompt begun": (prompts('name = "a"'), f"prompts[0].user: missing; {KINDS}"),
    "prompt without a name": (
        prompts('user = "{question}"'),
        "prompts[0].name: missing; expected text, the name of the prompt",
    ),
    "prompt of two kinds": (prompts('file = "prompts", user = "a"'), f"prompts[0].user: beside file; {KINDS}"),
    "file with a text": (
        prompts('file = "prompts", system = "a"'),
        "prompts[0].system: belongs to a prompt that is written here, not to one of a file",
    ),
    "tag of what is written here": (
        prompts('name = "a", user = "b", tag = "qa"'),
        "prompts[0].tag: chooses among the prompts of a file; expected tags for those of this one",
    ),
    "tag of what is registered": (
        prompts('registered = "prompts:/a", tag = "qa"'),
        "prompts[0].tag: chooses among the prompts of a file; beside registered there is one alone",
    ),
    "blank prompt": (
        prompts('name = "a", user = " "'),
        "prompts[0].user: the text of a prompt is needed, found a blank one",
    ),
    "variable that is no place": (
        prompts('name = "a", user = "{question}", variables = ["topic"]'),
        "prompts[0].variables: 'topic' is listed, but the text has no place {topic}",
    ),
    "prompts missing": (
        prompts('file = "gone"'),
        'prompts[0].file: no such file or folder: "gone"; expected a path from the folder of this file',
    ),
    "registered as a file": (
        prompts('file = "prompts:/a"'),
        'prompts[0].file: expected a path; a prompt of MLflow goes by registered = "prompts:/a"',
    ),
    "file as registered": (
        prompts('registered = "a.md"'),
        'prompts[0].registered: expected an address such as "prompts:/brief@champion", found "a.md"',
    ),
    "two prompts of a name": (
        BASE + JUDGE + MODEL + 'prompts = [{ file = "prompts" }, { name = "short", user = "a" }]',
        'prompts[1]: a prompt of prompts[0] is called "short" too; expected other names',
    ),
    # [[models]] and [references]
    "model without model": (models('name = "m"'), f"models[0].model: missing; expected {A_MODEL}"),
    "unknown key of a model": (
        models('model = "m", temprature = 1'),
        'models[0].temprature: unknown key; did you mean "temperature"?',
    ),
    "judge's key of a model": (models('model = "m", logprobs = true'), "models[0].logprobs: unknown key; known: "
        "api_key_env, api_version, azure_endpoint, base_url, extra_body, extra_headers, family, max_concurrency, "
        "max_input_tokens, max_tokens, model, name, price, price_as, requests_per_minute, seed, temperature, timeout, "
        "tokens_per_minute"),
    "price of a model": (
        models('model = "m", price = "cheap"'),
        "models[0]: price must be 0 (free) or (prompt, completion[, cached]) in US dollars per million tokens, each 0 or "
        "more, not 'cheap'",
    ),
    "two models of a name": (
        BASE + JUDGE + PROMPTS + 'models = [{ model = "m" }, { model = "n", name = "m" }]',
        'models[1]: called "m" as models[0] is; expected a name of its own',
    ),
    "two variants of a name": (
        BASE + JUDGE + 'prompts = [{ name = "a", user = "x" }, { name = "a/b", user = "y" }]\n'
        'models = [{ model = "b/c" }, { model = "c" }]',
        "models: variants: two are called 'a/b/c'; answers could not be told apart",
    ),
    "key of a model": (models('model = "m", api_key = "canary12345"'), f"models[0].api_key: {NO_KEY}"),
    "key in the address of a model": (
        models('model = "m", base_url = "https://host/v1?api-key=canary"'),
        f"models[0].base_url: {NO_KEY}",
    ),
    "key of the references": (
        STUDY + 'references = { model = "m", extra_headers = { Authorization = "Bearer canary12345" } }',
        f"references.extra_headers.Authorization: {NO_KEY}",
    ),
    "references by nobody": (STUDY + "references = {}", f"references.model: missing; expected {A_MODEL}"),
    "references under a name": (
        STUDY + 'references = { model = "m", name = "best" }',
        "references.name: unknown key; known: api_key_env, api_version, azure_endpoint, base_url, extra_body, "
        "extra_headers, family, max_concurrency, max_input_tokens, max_tokens, model, price, price_as, "
        "requests_per_minute, seed, temperature, timeout, tokens_per_minute",
    ),
    "references from nowhere": (
        STUDY + 'references = { model = "m", base_url = "nowhere" }',
        "references: base_url must be an address such as https://host/v1",
    ),
    # [compare] and [report]
    "baseline that is no variant": (
        STUDY + 'compare.baseline = "shrt/m"',
        'compare.baseline: no variant "shrt/m"; did you mean "short/m"?',
    ),
    "baseline far from any": (
        STUDY + 'compare.baseline = "x"',
        'compare.baseline: no variant "x"; known: long/m, short/m',
    ),
    "one variant compared": (
        BASE + JUDGE + PROMPT + MODEL + "[compare]",
        'compare: one prompt and one model are one variant, "short/m"; two or more are needed',
    ),
    "primary metric that is not used": (
        STUDY + 'compare.primary = ["f1", "fluencey"]',
        'compare.primary[1]: no metric "fluencey" is used; did you mean "fluency"?',
    ),
    "primary a text": (
        STUDY + 'compare.primary = "f1"',
        'compare.primary: expected a list of metrics, such as ["faithfulness"], found "f1"',
    ),
    "difference of another metric": (
        STUDY + "compare.detect = { faithfulness = 0.1 }",
        'compare.detect.faithfulness: no metric "faithfulness" is used; known: f1, fluency',
    ),
    "difference of nothing": (
        STUDY + "compare.detect = { f1 = 0 }",
        "compare.detect.f1: expected a number above 0, found 0",
    ),
    "level": (STUDY + "compare.level = 95", "compare.level: expected a number between 0 and 1, found 95"),
    "judge that is not there": (
        STUDY + 'compare.judge = "ann"',
        'compare.judge: no judge "ann"; known: baseline',
    ),
    "judges without a choice": (
        BASE + TWO_JUDGES + PROMPTS + MODEL + "[compare]",
        'compare.judge: missing; without a panel one of the judges is expected: "baseline", "other"',
    ),
    "judge of what is computed": (
        BASE + 'judges = [{ kind = "baseline" }]\nmetrics.use = ["f1"]\n' + PROMPTS + MODEL
        + 'compare.judge = "baseline"',
        "compare.judge: nothing is judged, every metric is computed here; expected no such key",
    ),
    "unknown key of the comparison": (STUDY + "compare.metric = 1", 'compare.metric: unknown key; known: baseline, '
        "detect, judge, level, primary"),
    "key of the comparison elsewhere": (STUDY + "run.baseline = 1", "run.baseline: unknown key; it belongs into [compare]"),
    "key of a prompt elsewhere": (STUDY + 'data.tag = "qa"', "data.tag: unknown key; it belongs into [[prompts]]"),
    "report without a file": (STUDY + "[report]", 'report.file: missing; expected the path of the file to write, such as '
        '"report.html"'),
    "report of another kind": (
        STUDY + 'report.file = "report.pdf"',
        'report.file: expected a file that ends in .html, found "report.pdf"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_one_line(folder: Path, name: str) -> None:
    text, message = FAULTS[name]
    with pytest.raises(InputError) as raised:
        load_experiment(write(folder, text))
    assert str(raised.value) == f"{folder / 'experiment.toml'}: {message}"
    assert "canary" not in str(raised.value).lower()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'file = "prompts"',
            "prompts[0].file: {folder}/prompts/short.md: sytem: no key of a prompt; known: name, description, tags, system, "
            "variables",
        ),
        (
            'file = "prompts/short.md", tag = "law"',
            "prompts[0].file: {folder}/prompts/short.md: sytem: no key of a prompt; known: name, description, tags, system, "
            "variables",
        ),
    ],
)
def test_fault_in_a_file_of_prompts_names_both_files(folder: Path, table: str, message: str) -> None:
    (folder / "prompts" / "short.md").write_text('+++\nsytem = "a"\n+++\n{question}', encoding="utf-8")
    with pytest.raises(InputError) as raised:
        load_experiment(write(folder, prompts(table)))
    assert str(raised.value) == f"{folder / 'experiment.toml'}: {message.format(folder=folder)}"


def test_tag_that_no_prompt_has(folder: Path) -> None:
    with pytest.raises(InputError, match=r'prompts\[0\]\.file: .*: no prompt has the tag "law"; tags: qa$'):
        load_experiment(write(folder, prompts('file = "prompts", tag = "law"')))


def test_registered_prompt_that_is_not_there_is_said_and_no_store_is_made(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"experiment\.toml: prompts\[0\]\.registered: prompts:/gone@champion: no such"
    ):
        load_experiment(write(folder, prompts('registered = "prompts:/gone@champion"')))
    assert not (folder.parent / "mlruns").exists()


def ready_fault(folder: Path, text: str) -> str:
    """What check_ready says, after plan_experiment said the same where it needs no key."""
    with ScriptedServer(from_schema) as server:
        experiment = load_experiment(write(folder, text.replace("http://127.0.0.1:9/v1", server.url)))
        with pytest.raises(InputError) as raised:
            check_ready(experiment)
        with pytest.raises(InputError):
            run_experiment(folder)
        assert server.count == 0
    said = str(raised.value).replace(server.url, "URL")
    assert said.startswith(f"{folder / 'experiment.toml'}: ") and "\n" not in said
    return said.partition("experiment.toml: ")[2]


def test_place_that_no_record_fills(folder: Path) -> None:
    text = BASE + JUDGE + MODEL + 'prompts = [{ name = "a", user = "x" }, { name = "b", user = "{qestion}" }]'
    said = ready_fault(folder, text)
    assert said.startswith(
        "prompts[1]: prompt 'b': no record has 'qestion' for the place {qestion}; known: question, id, topic;"
    )
    with pytest.raises(InputError, match=r"prompts\[1\]: prompt 'b': no record has 'qestion'"):
        plan_experiment(load_experiment(folder))


def test_reference_that_will_be_written_fills_a_place(folder: Path) -> None:
    text = BASE + JUDGE + MODEL + 'prompts = [{ name = "a", user = "{question} {reference}" }]\n'
    assert "no record has 'reference'" in ready_fault(folder, text)
    check_ready(
        load_experiment(write(folder, text + 'references = { model = "n", base_url = "http://127.0.0.1:9/v1" }'))
    )


def test_questions_that_come_twice(folder: Path) -> None:
    rows = [{"id": "1", "question": "a", "variant": name} for name in ("x", "y")]
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert ready_fault(folder, STUDY) == (
        'data.records: "1" comes twice (variants "x" and "y"); [[prompts]] need each question once'
    )


def test_keys_that_are_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    model = 'model = "m", base_url = "http://127.0.0.1:9/v1"'
    second = (
        BASE + JUDGE + PROMPTS + f'models = [{{ {model} }}, {{ {model}, name = "n", api_key_env = "NO_SUCH_KEY" }}]\n'
    )
    said = ready_fault(folder, second)
    assert said.startswith("models[1]: ") and "NO_SUCH_KEY" in said
    references = STUDY + f'references = {{ {model}, api_key_env = "NO_SUCH_KEY" }}'
    said = ready_fault(folder, references)
    assert said.startswith("references: ") and "NO_SUCH_KEY" in said
    # To plan a key is not needed.
    assert plan_experiment(load_experiment(folder))["references"].totals.calls == 3


def test_budget_that_cannot_be_kept_is_said_before_the_cheap_half_is_paid(folder: Path) -> None:
    free = BASE + "run.budget_usd = 1.0\n" + JUDGE + PROMPTS
    unpriced = 'models = [{ model = "m", base_url = "http://127.0.0.1:9/v1" }]\n'
    assert ready_fault(folder, free + unpriced).startswith(
        "run.budget_usd: 1 USD cannot be kept, no price is known for 'm' (model 'm'); "
    )
    priced = 'models = [{ model = "m", base_url = "http://127.0.0.1:9/v1", price = 0 }]\n'
    judge = 'judges = [{ kind = "chat", model = "j", base_url = "http://127.0.0.1:9/v1" }]\nmetrics.use = ["fluency"]\n'
    said = ready_fault(folder, BASE + "run.budget_usd = 1.0\n" + judge + PROMPTS + priced)
    assert said.startswith("run.budget_usd: 1 USD cannot be kept, no price is known for 'j'")


def test_labels_of_other_variants(folder: Path) -> None:
    (folder / "labels.csv").write_text("id,metric,label\n1,fluency,3\n", encoding="utf-8")
    said = ready_fault(folder, STUDY + 'data.labels = "labels.csv"\n')
    assert said == 'data.labels: expected a variant that is written here for each label; the label of "1" has none'
    (folder / "labels.csv").write_text(
        "id,variant,metric,label\n1,short/m,fluency,3\n2,old,fluency,3\n", encoding="utf-8"
    )
    said = ready_fault(folder, STUDY + 'data.labels = "labels.csv"\n')
    assert said.endswith('the label of "2" is of the variant "old", which [[prompts]] and [[models]] do not make')


@pytest.mark.parametrize(
    ("rows", "compare", "message"),
    [
        (["a", "a"], "[compare]", 'compare: two variants are needed, records.jsonl has one: "a"'),
        (["a", "b"], 'compare.baseline = "c"', 'compare.baseline: no variant "c"; known: a, b'),
        (
            ["a", "b", "group"],
            "[compare]",
            'data.records: "0" has two groups, "g" and "0"; [compare] needs one for all its answers',
        ),
    ],
)
def test_what_cannot_be_compared_in_a_file_of_answers(
    folder: Path, rows: list[str], compare: str, message: str
) -> None:
    answers = [{"id": str(at // 2), "variant": rows[at % 2], "answer": "Monks."} for at in range(4)]
    if rows == ["a", "a"]:
        answers = [{**one, "id": str(at)} for at, one in enumerate(answers)]
    if rows[-1] == "group":
        answers[0]["group"] = "g"
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")
    url = 'judges = [{ kind = "chat", model = "j", base_url = "http://127.0.0.1:9/v1" }]\nmetrics.use = ["fluency"]\n'
    assert ready_fault(folder, BASE + url + compare) == message
