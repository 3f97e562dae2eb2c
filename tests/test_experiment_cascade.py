"""The table [cascade] of an experiment file: every fault is one line; a good one asks the strong judge only where needed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from jurimetrics.cli import app
from jurimetrics.errors import InputError
from jurimetrics.experiment import load_experiment, run_experiment
from jurimetrics.judges.panel import Panel
from scripted_server import Answer, Call, ScriptedServer, from_schema, reply
from typer.testing import CliRunner

RECORDS = [{"id": name, "question": "What?", "answer": f"It is {name}."} for name in ("clear", "murky")]


@pytest.fixture
def folder(project: Path) -> Path:
    study = project / "study"
    study.mkdir()
    (study / "records.jsonl").write_text("\n".join(map(json.dumps, RECORDS)), encoding="utf-8")
    return study


def study(
    folder: Path, more: str, *, judges: tuple[str, ...] = ("mini", "big"), url: str = "http://127.0.0.1:9/v1"
) -> Path:
    """A study of chat judges that measures fluency under the tables of `more`."""
    tables = [f'{{ kind = "chat", model = "{name}", base_url = "{url}", price = 0 }}' for name in judges]
    head = f'data.records = "records.jsonl"\njudges = [{", ".join(tables)}]\nmlflow.log = false\n'
    use = "" if "metrics" in more else 'metrics.use = ["fluency"]\n'
    (folder / "experiment.toml").write_text(head + use + more, encoding="utf-8")
    return folder


STAGES = 'cascade.stages = ["mini", "big"]\n'
GOOD = STAGES + "cascade.thresholds = [0.9]\nrun.repeats = 3\n"
EXPECTED = (
    'a list of numbers from 0 to 1 or "never", one for each stage (the last may go without), or a table of metric and '
    "such a list"
)
A_LIST = 'a list of judges, or of judges and the panel, from cheap to strong: ["mini", "big"]'
FAULTS: dict[str, tuple[str, str]] = {
    "no stages": ("cascade.thresholds = [0.9]", f"cascade.stages: missing; expected {A_LIST}"),
    "empty stages": ("cascade = { stages = [], thresholds = [] }", f"cascade.stages: expected {A_LIST}, found []"),
    "no thresholds": (STAGES, f"cascade.thresholds: missing; expected {EXPECTED}"),
    "thresholds a number": (STAGES + "cascade.thresholds = 0.9", f"cascade.thresholds: expected {EXPECTED}, found 0.9"),
    "a word": (
        STAGES + 'cascade.thresholds = ["always"]',
        'cascade.thresholds[0]: expected a number from 0 to 1 or "never", found "always"',
    ),
    "above 1": (
        STAGES + "cascade.thresholds = [90]",
        'cascade.thresholds[0]: expected a number from 0 to 1 or "never", found 90',
    ),
    "no number": (
        STAGES + "cascade.thresholds = [nan]",
        'cascade.thresholds[0]: expected a number from 0 to 1 or "never", found nan',
    ),
    "true": (
        STAGES + "cascade.thresholds = [true]",
        'cascade.thresholds[0]: expected a number from 0 to 1 or "never", found true',
    ),
    "too many": (
        STAGES + "cascade.thresholds = [0.9, 0.8, 0.7]",
        "cascade.thresholds: expected 1 or 2 of them, one for each stage (the last may go without), found 3",
    ),
    "never any": (
        STAGES + 'cascade.thresholds = ["never", "never"]',
        "cascade.thresholds: no stage is ever trusted; expected a number for one of them",
    ),
    "unknown stage": (
        'cascade = { stages = ["mimi", "big"], thresholds = [0.9] }',
        'cascade.stages[0]: no judge "mimi"; did you mean "mini"?',
    ),
    "stage twice": (
        'cascade = { stages = ["mini", "mini"], thresholds = [0.9] }',
        'cascade.stages[1]: "mini" is a stage already',
    ),
    "idle judge": (
        'cascade = { stages = ["mini"], thresholds = [0.9] }\nrun.repeats = 3',
        'judges[1]: "big" is never asked: it is no stage of the cascade',
    ),
    "one voice": (
        STAGES + "cascade.thresholds = [0.9]",
        'run.repeats: expected 3 or more: the stage "mini" is as sure as its repeats agree',
    ),
    "thresholds of another metric": (
        STAGES + "cascade.thresholds = { fluncy = [0.9] }",
        'cascade.thresholds.fluncy: this metric is not used; did you mean "fluency"?',
    ),
    "thresholds of one metric": (
        'metrics.use = ["fluency", "coherence"]\n' + STAGES + "cascade.thresholds = { fluency = [0.9] }",
        "cascade.thresholds: missing for coherence; expected a list of it too",
    ),
    "a number of a metric": (
        STAGES + "cascade.thresholds = { fluency = 0.9 }",
        "cascade.thresholds.fluency: expected a list, found 0.9",
    ),
    "unknown key": (GOOD + "cascade.rule = 1", "cascade.rule: unknown key; it belongs into [panel]"),
    "misspelt key": (GOOD + "cascade.treshold = 1", 'cascade.treshold: unknown key; did you mean "thresholds"?'),
    "stages elsewhere": (GOOD + "run.stages = 1", "run.stages: unknown key; it belongs into [cascade]"),
    "extractor": (
        GOOD + 'cascade.extractor = "bigg"',
        'cascade.extractor: no judge "bigg"; did you mean "big"?',
    ),
    "name of a judge": (
        GOOD + 'cascade.name = "big"',
        'cascade.name: a judge is called "big" too; expected another name',
    ),
    "panel beside it": (
        GOOD + 'panel.rule = "median"',
        'cascade.stages: beside a cascade the panel is one of its stages; expected "panel" among them, or no table [panel]',
    ),
    "panel of verdicts": (
        'cascade = { stages = ["panel", "big"], thresholds = [0.9] }\npanel.rule = "median"',
        'panel.vote_on: a stage of a cascade votes on scores; expected "scores"',
    ),
    "panel of nobody": (
        'cascade = { stages = ["panel", "mini", "big"], thresholds = [0.9, 0.9] }\npanel.vote_on = "scores"',
        "panel: no judge is left for it: each is a stage of the cascade by itself",
    ),
    "panel of one": (
        'cascade = { stages = ["panel", "big"], thresholds = [0.9] }\npanel.vote_on = "scores"',
        'cascade.stages[0]: "panel" is a panel of one, so how sure it is cannot be told; expected a judge that is asked '
        "several times, or a panel of several",
    ),
    "extractor of the panel": (
        'cascade = { stages = ["panel", "big"], thresholds = [0.9] }\n'
        'panel = { vote_on = "scores", extractor = "mini" }',
        "panel.extractor: in a cascade all stages have one; give it to [cascade]",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_one_line(folder: Path, name: str) -> None:
    more, message = FAULTS[name]
    with pytest.raises(InputError) as raised:
        load_experiment(study(folder, more))
    assert str(raised.value) == f"{folder / 'experiment.toml'}: {message}"


def test_a_stage_that_is_computed_here_cannot_be_sure(folder: Path) -> None:
    (folder / "experiment.toml").write_text(
        'data.records = "records.jsonl"\nmetrics.use = ["fluency"]\nrun.repeats = 5\n'
        'judges = [{ kind = "baseline" }, { kind = "chat", model = "big" }]\n'
        'cascade = { stages = ["baseline", "big"], thresholds = [0.5] }\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r'cascade\.stages\[0\]: "baseline" is computed here and always says the same'):
        load_experiment(folder)


def test_what_the_file_says_arrives(folder: Path) -> None:
    found = load_experiment(
        study(
            folder,
            'metrics = { use = ["faithfulness", "f1"], options = { faithfulness = { refusals = "worst" } }, '
            "thresholds = { faithfulness = 0.9 } }\n"
            'cascade = { name = "ladder", extractor = "each", stages = ["mini", "big"], '
            'thresholds = { faithfulness = ["never", 0.8] } }\nrun.repeats = 3\n',
        )
    )
    assert found.cascade is not None and found.asked is found.cascade
    assert [stage.name for stage in found.cascade.judges] == ["mini", "big"]
    assert (found.cascade.name, found.cascade.extractor) == ("ladder", "each")
    name = "faithfulness(refusals=worst)"
    assert [found.cascade.threshold(name, at) for at in (0, 1)] == [None, 0.8]
    # Pass and fail, on which the voices agree, are those of the file.
    assert {metric.name: metric.threshold for metric in found.metrics}[name] == 0.9


def test_without_the_table_nothing_changes(folder: Path) -> None:
    found = load_experiment(study(folder, "metrics = { use = ['fluency'], thresholds = { fluency = 5 } }"))
    assert found.cascade is None and found.asked == found.judges
    assert found.metrics[0].threshold == 3


def test_a_panel_is_a_stage_of_the_judges_that_are_none(folder: Path) -> None:
    more = 'cascade = { stages = ["panel", "big"], thresholds = [0.9] }\npanel.vote_on = "scores"\n'
    found = load_experiment(study(folder, more, judges=("a", "big", "b", "c")))
    assert found.cascade is not None
    first = found.cascade.judges[0]
    assert isinstance(first, Panel) and first is found.panel
    assert [judge.name for judge in first.judges] == ["a", "b", "c"]


def wavering(asked: Counter[str]) -> object:
    """mini rates the murky answer 5, 1, 5, 1 in turn and the clear one 5; big rates everything 2."""

    def answer(call: Call) -> Answer:
        asked[call.model] += 1
        murky = "murky" in call.prompt
        score = 2 if call.model == "big" else 1 if murky and asked[call.model] % 2 else 5
        content = from_schema(call)
        assert isinstance(content.payload, dict)
        said = json.loads(content.payload["choices"][0]["message"]["content"])
        return reply(json.dumps({**said, "score": score}), usage=(10, 5))

    return answer


def test_run_asks_the_strong_judge_only_where_the_cheap_one_is_not_sure(folder: Path) -> None:
    asked: Counter[str] = Counter()
    with ScriptedServer(wavering(asked)) as server:  # type: ignore[arg-type]
        more = 'cascade = { stages = ["mini", "big"], thresholds = [0.9] }\nrun = { repeats = 4, concurrency = 1 }\n'
        results = run_experiment(study(folder, more, url=server.url))
        planned = CliRunner().invoke(app, ["plan", str(folder)])
    assert asked == {"mini": 8, "big": 1}
    scores = results.scores
    decided = scores[scores["judge"] == "cascade"].set_index("id")["score"].to_dict()
    assert decided == {"clear": 5.0, "murky": 2.0}
    assert results.settings["panel"]["stages"] == ["mini", "big"]
    assert planned.exit_code == 0
    assert "as if every record went through all judges of the cascade" in " ".join(planned.stdout.split())
