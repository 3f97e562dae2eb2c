"""The documentation is what the code does: tables from the code, examples executed, links and columns complete.

`python tests/test_docs.py` writes the generated tables and lines anew.
"""

from __future__ import annotations

import doctest
import inspect
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics import metrics
from jurimetrics.experiment.tables import KINDS, SEVERAL, TABLES
from jurimetrics.frames import CALL_SCHEMA, RECORD_SCHEMA
from jurimetrics.metrics.metric import Metric
from jurimetrics.results.reading import SCORE_COLUMNS
from scripted_judge import ScriptedJudge, answer_all
from scripted_server import Answer, Call, ScriptedServer, reply

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "experiments").glob("*/README.md")])
ALL = (*metrics.resolve("all"), metrics.consensus, metrics.preference("a", "b"))
RECORD = {
    "id": "1",
    "question": "When did it open?",
    "answer": "It opened in 1889. It is old.",
    "contexts": ["It opened in 1889.", "It is old.", "Peat was cut."],
    "reference": "It opened in 1889.",
}
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(?<=<!-- table: )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
_DECLARED = re.compile(r"^(### `(\S+)`\n)(?:<!-- declared: \S+ -->|\*[^\n]*\*)\n", re.MULTILINE)


# --- what is counted and written from the code ---


def script(task: Any, repeat: int) -> Any:
    """A plain reply to any task."""
    if task.kind == "together":
        numbers = range(1, len(task.answers) + 1)
        notes = [{"answer": number, "note": "as scripted"} for number in numbers]
        return {"findings": notes, "scores": [{"answer": number, "score": 3} for number in numbers]}
    if task.kind == "prefer":
        return {"a_findings": "as scripted", "b_findings": "as scripted", "winner": "A"}
    if task.kind == "criteria":
        entries = [{"criterion": at, "findings": "as scripted", "score": 3} for at in range(1, len(task.rubrics) + 1)]
        return {"ratings": entries}
    return answer_all(task, repeat)


@cache
def calls(chosen: str | Metric | tuple[Metric, ...], judges: int = 1) -> int:
    """The requests that one record really takes; a metric that compares variants is given two."""
    together = isinstance(chosen, Metric) and chosen.together
    records = (
        [RECORD | {"variant": name, "answer": f"In 188{at}."} for at, name in enumerate("ab")] if together else [RECORD]
    )
    asked = [ScriptedJudge(f"judge {number}", script) for number in range(judges)]
    results = jm.evaluate(records, chosen if isinstance(chosen, str) else list(_many(chosen)), asked, store=None)
    assert set(results.scores["status"]) == {"ok"}, results.failures().to_string()
    return sum(len(judge.asked) for judge in asked)


def _many(chosen: Metric | tuple[Metric, ...]) -> tuple[Metric, ...]:
    return (chosen,) if isinstance(chosen, Metric) else chosen


def declared(metric: Metric) -> str:
    """What is declared of a metric, in one line."""
    low, high = metric.range
    better = "higher" if metric.higher_is_better else "lower"
    passing = "no threshold" if metric.threshold is None else f"passes at {_passing(metric)}"
    asked = calls(metric)
    cost = f"{asked or 'no'} call{'' if asked == 1 else 's'}"
    return f"{low:g} to {high:g}, {better} is better, {passing}; needs {', '.join(metric.needs)}; {cost}"


def _passing(metric: Metric) -> str:
    return "" if metric.threshold is None else f"{'>=' if metric.higher_is_better else '<='} {metric.threshold:g}"


def _rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _anchor(metric: Metric) -> str:
    return f"[`{metric.name}`](#{re.sub(r'[^a-z0-9_]', '', metric.name)})"


def table_of_metrics() -> str:
    """Every metric with what is declared of it and its calls."""
    rows = [
        (
            _anchor(metric),
            f"{metric.range[0]:g} to {metric.range[1]:g}",
            "higher" if metric.higher_is_better else "lower",
            _passing(metric) or "-",
            ", ".join(metric.needs),
            calls(metric),
        )
        for metric in ALL
    ]
    return _rows(("metric", "range", "better", "passes at", "needs", "calls"), rows)


def table_of_groups() -> str:
    """Every group with its metrics and its calls."""
    return _rows(
        ("group", "metrics", "calls, one judge", "calls, three judges"),
        [
            (
                f"`{name}`",
                "all of these" if name == "all" else ", ".join(metric.name for metric in group),
                calls(name),
                calls(name, 3),
            )
            for name, group in metrics.GROUPS.items()
        ],
    )


def table_of_costs() -> str:
    """What parts of the toolkit cost in calls, for the README."""
    five = metrics.batched(
        [metrics.coherence, metrics.fluency, metrics.relevance, metrics.groundedness, metrics.similarity]
    )
    lean = metrics.resolve(["faithfulness", "noise_sensitivity", "context_precision", "alignment"])
    described: list[tuple[str, Any]] = [
        ("`faithfulness`", metrics.faithfulness),
        ("`hallucination`", metrics.hallucination),
        ("faithfulness, noise sensitivity, context precision, alignment", lean),
        ("group `rag`: seven metrics", "rag"),
        ("group `alignment`: three metrics", "alignment"),
        ("one rubric, built in or your own", metrics.coherence),
        ("five rubrics with `batched`", five),
        ("`preference` of two variants", metrics.preference("a", "b")),
        ("`f1`, `exact_match`, embeddings by the embedded vectors", "overlap"),
        (f"group `all`: {len(metrics.GROUPS['all'])} metrics", "all"),
    ]
    return _rows(
        ("what", "one judge", "three judges"), [(words, calls(one), calls(one, 3)) for words, one in described]
    )


NAMES = {
    "data": "Record load_records iter_records Results Score Estimate InputError JudgeError",
    "judging": "evaluate aevaluate plan BaselineJudge ChatJudge Panel Cascade local_server EmbeddedEmbedder "
    "EndpointEmbedder metrics metric rubric checklist halo",
    "variants": "Prompt load_prompts register_prompts Variant generate plan_answers Answers write_references compare "
    "Comparison leaderboard slices tradeoff compare_runs gate Gate",
    "people": "load_labels load_claim_labels load_span_labels sample_for_labelling label_budget open_review "
    "labels_from_review agreement claim_agreement span_agreement disagreements_with_people rater_report alt_test calibrate "
    "Calibration corrected_means panel_report selective probes",
    "records": "log_run log_comparison log_calibration load_run as_scorer from_scorer report plots run_experiment",
}
"""The public names by what they are for, in the order of work; the keys name the tables of docs/api.md."""


def table_of_names(group: str) -> str:
    """Public names with the first sentence of what is said of them."""
    names = NAMES[group].split()
    return _rows(("name", "what it is"), [(f"`jm.{name}`", _first_sentence(getattr(jm, name))) for name in names])


def _first_sentence(value: Any) -> str:
    paragraph = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    plain = re.sub(r":\w+:(`[^`]+`)", r"\1", paragraph)
    return re.split(r"[.:](?= |$)", plain)[0].replace("|", "\\|")


def table_of_commands() -> str:
    """The commands with their short help."""
    from jurimetrics.cli import app

    named = [
        (command.name or getattr(command.callback, "__name__", ""), command) for command in app.registered_commands
    ]
    return _rows(("command", "what it does"), [(f"`{name}`", command.short_help) for name, command in named])


def table_of_baseline() -> str:
    """What the baseline answers and what it has no rules for."""
    found: dict[str, list[str]] = {"ok": [], "failed": []}
    for metric in ALL:
        names = "ab" if metric.together else "a"
        records = [RECORD | {"variant": name, "answer": f"It opened in 188{at}."} for at, name in enumerate(names)]
        row = jm.evaluate(records, [metric], jm.BaselineJudge(), store=None).scores.iloc[0]
        assert row["status"] == "ok" or row["error"].startswith("unsupported"), row["error"]
        if metric.judged:
            found[row["status"]].append(f"`{metric.name}`")
    return _rows(
        ("the baseline", "metrics"),
        [("answers", ", ".join(found["ok"])), ("has no rules for", ", ".join(found["failed"]))],
    )


MADE: dict[str, Callable[[], str]] = {
    "baseline": table_of_baseline,
    "metrics": table_of_metrics,
    "groups": table_of_groups,
    "costs": table_of_costs,
    **{f"names_{group}": partial(table_of_names, group) for group in NAMES},
    "commands": table_of_commands,
}


def renewed(text: str) -> str:
    """A page with its generated parts as the code has them now."""
    text = _TABLE.sub(lambda found: f"{found[1]}{found[2]}{MADE[found[1]]()}", text)
    lines = {metric.name: declared(metric) for metric in ALL}
    return _DECLARED.sub(lambda found: f"{found[1]}*{lines[found[2]]}*\n", text)


# --- tests ---


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == renewed(text), "python tests/test_docs.py writes them anew"


def test_every_metric_has_its_section_as_declared() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### `(\S+)`\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    assert sorted(sections) == sorted(metric.name for metric in ALL)
    for metric in ALL:
        assert sections[metric.name].startswith(f"*{declared(metric)}*\n"), metric.name
        for part in ("Value", "Asks", "Edges", "Source", "Does not see", "Example"):
            assert f"**{part}.**" in sections[metric.name], f"{metric.name}: {part}"


def test_every_metric_of_the_package_is_documented() -> None:
    found = {name for name in metrics.__all__ if isinstance(getattr(metrics, name), Metric)}
    assert found == {metric.name for metric in ALL if "(" not in metric.name}


def test_every_public_name_stands_in_one_table() -> None:
    named = [name for names in NAMES.values() for name in names.split()]
    assert sorted(named) == jm.__all__


def test_every_source_is_mapped_to_every_metric() -> None:
    text = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    assert [metric.name for metric in ALL if f"`{metric.name.partition('(')[0]}" not in text] == []


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project as the working directory, so that no example writes into the repository."""
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments", ignore=shutil.ignore_patterns("results"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return tmp_path


def _blocks(page: Path, language: str, mark: str = "") -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for name, rest, body in _BLOCK.findall(text) if name == language and rest.strip() == mark]


def write_files(page: Path) -> None:
    """The files that a page shows whole, under the path beside their block's language."""
    for _, mark, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if "." in mark:
            path = Path(mark.strip())
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")


def test_tables_that_are_shown_can_be_loaded(copied: Path) -> None:
    shown = [
        (page, mark) for page in PAGES for name, mark, _ in _BLOCK.findall(page.read_text("utf-8")) if name == "csv"
    ]
    assert shown
    for page, mark in shown:
        write_files(page)
        records = jm.load_records(mark.strip())
        assert len(records) > 1 and not any(record.metadata for record in records), (
            f"{page.name}: a column is not known"
        )


def test_commands_that_are_shown_exist_with_their_options() -> None:
    from jurimetrics.cli import app
    from typer.main import get_group

    known = get_group(app).commands
    shown = [
        (page.name, *found)
        for page in PAGES
        for found in re.findall(r"jurimetrics ([a-z]+)((?: [^`\n|#]+)?)", _commands(page.read_text("utf-8")))
    ]
    assert len(shown) > 10
    for page, name, rest in shown:
        assert name in known, f"{page}: jurimetrics {name}"
        options = {option for each in known[name].params for option in each.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest)) <= options, f"{page}: jurimetrics {name}{rest}"


def _commands(text: str) -> str:
    """What a page shows as commands: whole blocks of the shell, and code within a line."""
    blocks = [body for name, _, body in _BLOCK.findall(text) if name in ("sh", "console")]
    return "\n".join([*blocks, *re.findall(r"`(jurimetrics [^`\n]+)`", _BLOCK.sub("", text))])


def stand_in(call: Call) -> Answer:
    """What a page's scripted model answers: the sentences of its prompt that share most words with the question.

    One where one is asked for, else three. The model "small" makes up one more in every second answer.
    """
    *texts, question = call.prompt.rsplit("\n", 1)
    asked = _words(question)
    sentences = re.split(r"(?<=\.)\s+", " ".join(texts))[1:]
    nearest = sorted(sentences, key=lambda sentence: -len(_words(sentence) & asked))
    said = nearest[: 1 if "one sentence" in call.prompt else 3]
    if call.model == "small" and len(question) % 2 == 0:
        said.append("Entry is free on Sundays.")
    return reply(" ".join(said) or "I do not know.", usage=(len(call.prompt) // 4, len(" ".join(said)) // 4))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")  # MLflow 3.17 on SQLAlchemy 2.1
@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page, "pycon")], ids=lambda page: page.name)
def test_examples_give_what_they_show(page: Path, copied: Path) -> None:
    text = "\n".join(_blocks(page, "pycon"))
    write_files(page)
    with ScriptedServer(stand_in) as server:
        test = doctest.DocTestParser().get_doctest(text, {"address": server.url}, page.name, str(page), 0)
        failed, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test)
    assert (failed, tried > 0) == (0, True)


@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")  # MLflow 3.17 on SQLAlchemy 2.1
@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page, "python", "run")], ids=lambda page: page.name)
def test_blocks_marked_run_do_run(page: Path, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for block in _blocks(page, "python", "run"):
        exec(compile(block, str(page), "exec"), names)
    assert capsys.readouterr().out == "".join(_blocks(page, "text", "printed"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_that_is_only_shown_can_be_compiled(page: Path) -> None:
    for block in _blocks(page, "python"):
        compile(block, str(page), "exec")


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", _BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            lost.append(link)
    assert lost == []


def _first_cells(text: str, heading: str) -> set[str]:
    """The names in backticks in the first cells of the table under a heading."""
    section = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    assert section, heading
    return {
        name for cell in re.findall(r"^\| ([^|]+)\|", section, re.MULTILINE) for name in re.findall(r"`([^`]+)`", cell)
    }


def test_every_column_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    results = jm.evaluate([RECORD], ["f1", "faithfulness"], jm.BaselineJudge(), store=None)
    assert _first_cells(text, "The score frame") == set(SCORE_COLUMNS) == set(results.scores.columns)
    assert _first_cells(text, "The call frame") == set(CALL_SCHEMA.names)
    assert _first_cells(text, "The records") == set(RECORD_SCHEMA.names)
    assert _first_cells(text, "The summary") == set(results.summary().columns)
    assert _first_cells(text, "The failures") == set(results.failures().columns)
    assert _first_cells(text, "The claims") == set(results.claims().columns)
    assert _first_cells(text, "The indicators") == set(results.indicators().columns)


def test_every_member_of_results_is_mentioned() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    members = [name for name in vars(jm.Results) if not name.startswith("_")]
    assert [name for name in members if f"results.{name}" not in text and f"Results.{name}" not in text] == []


def test_every_failure_kind_is_documented() -> None:
    from jurimetrics.errors import FAILURE_KINDS

    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert _first_cells(text, "Failure kinds") == set(FAILURE_KINDS)


def test_every_key_of_an_experiment_is_documented() -> None:
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    for names, models in TABLES.items():
        name = ".".join(names)
        bracketed = f"[[{name}]]" if names and names[-1] in SEVERAL else f"[{name}]"
        for kind, model in zip(KINDS, models, strict=False):
            heading = "The file" if not names else f'{bracketed}, kind = "{kind}"' if len(models) > 1 else bracketed
            assert _first_cells(text, heading) == set(model.model_fields), heading


def test_every_option_of_a_chat_judge_is_documented() -> None:
    text = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")
    options = [name for name in inspect.signature(jm.ChatJudge).parameters if name != "_"]
    assert [name for name in options if f"`{name}`" not in text] == []
    assert [rule for rule in _rules() if f"`{rule}`" not in text] == []


def _rules() -> tuple[str, ...]:
    from jurimetrics.judges.panel import RULES

    return RULES


def test_the_readme_counts_ten_lines_of_notebook_use() -> None:
    (block,) = _blocks(ROOT / "README.md", "python", "run")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10


def test_no_page_holds_an_absolute_path() -> None:
    machine = re.compile(r"(?:^|[\s\"'(=`])/(?:[\w.-]+/)+[\w.-]+", re.MULTILINE)
    for page in PAGES:
        found = [match[0].strip() for match in machine.finditer(page.read_text(encoding="utf-8"))]
        assert found == [], f"{page.name}: {found}"


def renew() -> None:
    """Write the generated parts of every page anew."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    renew()
