"""Faults from the field, as in `test_cases`: those of notebooks, data and what is logged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics.errors import InputError
from jurimetrics.metrics.metric import Metric, Score, metric
from jurimetrics.metrics.rubrics import rubric
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.store import Store
from scripted_judge import ScriptedJudge, answer_all
from scripted_server import ScriptedServer, reply
from test_cases import answers, scored

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

# --- notebooks ---

CELL = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ipywidgets":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Gone())
import jurimetrics as jm
records = [{"id": str(at), "answer": "A cat.", "contexts": ["A cat."]} for at in range(5)]
results = jm.evaluate(records, ["faithfulness"], jm.BaselineJudge(), store=None)
assert "ipywidgets" not in sys.modules
"""


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the kernel's own, about its ports
def test_n01_progress_without_widgets_is_text() -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert set(output["data"]) == {"text/plain"}
    assert output["data"]["text/plain"].startswith("5 of 5 rows")


# --- data ---

MISSING = [None, float("nan"), pd.NA, pd.NaT, np.float32("nan")]
NO_CONTEXTS = [[], None, float("nan"), [""], ["  "], ["\u200b", None], "", pd.NA]


@pytest.mark.parametrize("answer", ["", " \n", None, float("nan"), "It is here."])
def test_d01_rows_without_contexts_or_answer_have_a_status(answer: Any) -> None:
    rows = [
        {"id": at, "answer": answer, "question": "Where?", "contexts": found} for at, found in enumerate(NO_CONTEXTS)
    ]
    rows.append({"id": "no column", "answer": answer, "question": "Where?"})
    results, _ = scored(rows, ["rag"])
    assert set(results.scores["status"]) == {"not_applicable"}
    assert results.scores["reason"].str.startswith("the record has no ").all()
    assert results.scores["score"].isna().all()


def test_d02_blank_contexts_are_removed_and_no_judge_is_asked() -> None:
    rows = [
        {"id": at, "answer": "It is here.", "question": "Where?", "reference": "Here.", "contexts": found}
        for at, found in enumerate(NO_CONTEXTS)
    ]
    needs_contexts = ["faithfulness", "hallucination", "groundedness", "context_precision", "context_average_precision"]
    results, tasks = scored(rows, needs_contexts)
    assert tasks == []
    assert set(results.scores["status"]) == {"not_applicable"}
    _, tasks = scored([{"answer": "It is here.", "contexts": ["", "It is here.", "  "]}], ["groundedness"])
    assert [task.contexts for task in tasks] == [("It is here.",)]


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_d03_every_way_to_be_missing_is_the_same(missing: Any) -> None:
    real = {
        "question": "Where?", "contexts": ["Here."], "reference": "Here.", "group": "g", "answer_model": "m",
        "answer_latency_s": 1.5, "answer_prompt_tokens": 3, "answer_cost_usd": 0.1, "metadata": {"topic": "law"},
    }  # fmt: skip
    columns = {name: pd.Series([value, missing], dtype=object) for name, value in real.items()}
    full, empty = jm.load_records(pd.DataFrame({"id": ["1", "2"], "answer": ["x", "y"], **columns}))
    assert full == jm.Record(id="1", answer="x", **real)  # type: ignore[arg-type]
    assert empty == jm.Record(id="2", answer="y")


@pytest.mark.parametrize("ids", [("a", "a"), (1, "1"), (7, 7.0), (np.int64(7), 7.0), (None, "1")])
def test_d05_an_id_given_twice_is_refused_before_anything_is_asked(ids: tuple[Any, Any]) -> None:
    judge = ScriptedJudge("ada", answer_all)
    rows = [{"id": at, "answer": answer} for at, answer in zip(ids, ("right", "wrong"), strict=True)]
    with pytest.raises(InputError, match=r"row 1 and row 2 have the same id '[a17]'"):
        jm.evaluate(rows, ["coherence"], judge, store=None, progress=False)
    assert judge.asked == []


def test_d06_a_byte_order_mark_is_no_part_of_a_column(tmp_path: Path) -> None:
    csv, lines, wide = (tmp_path / name for name in ("a.csv", "a.jsonl", "wide.csv"))
    csv.write_bytes('\ufeffid, answer ,"note"\n007,é,n\n'.encode())
    lines.write_bytes('\ufeff{"id": "007", "answer": "é", "note": "n"}\n'.encode())
    wanted = jm.Record("007", answer="é", metadata={"note": "n"})
    assert jm.load_records(csv) == jm.load_records(lines) == [wanted]
    wide.write_bytes("id,answer\n1,x\n".encode("utf-16"))
    with pytest.raises(InputError, match="found UTF-16 or UTF-32; save the file as UTF-8"):
        jm.load_records(wide)
    csv.write_text("name,text\n1,x\n", encoding="utf-8")
    with pytest.raises(InputError, match='found "name", "text"'):
        jm.load_records(csv)


SCRIPT = r"""
import json, sys, warnings
from pathlib import Path
import pandas  # which asks for the locale itself as it is imported
warnings.simplefilter("error", EncodingWarning)
import jurimetrics as jm
folder = Path(sys.argv[1])
answer = "\u0627\u0644\u0642\u0627\u0647\u0631\u0629 \U0001f600 half \ud83d"
row = {"id": "\u00e9", "answer": answer, "contexts": ["\u5317\u4eac"], "reference": answer}
(folder / "r.jsonl").write_text(json.dumps(row), encoding="utf-8")
metrics = ["faithfulness", "exact_match"]
results = jm.evaluate(folder / "r.jsonl", metrics, jm.BaselineJudge(), store=folder / "s.db", out=folder / "out")
again = jm.Results.load(results.save(folder / "saved"))
assert again.records["answer"].tolist() == [answer.replace("\ud83d", "\ufffd")]
(folder / "r.html").write_text(again._repr_html_() + again.highlights_html(), encoding="utf-8")
print(ascii(again.scores.query("metric == 'exact_match'")["score"].tolist()))
"""


def test_d07_the_locale_plays_no_part(tmp_path: Path) -> None:
    around = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONWARNDEFAULTENCODING": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, **around}, capture_output=True, text=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1.0]\n"


def test_d08_words_for_missing_are_answers_and_labels_are_read_as_text(tmp_path: Path) -> None:
    said = ["NA", "None", "null", "nan", "N/A"]
    labelled = zip(said, ["3", "", "3.0", "4", ""], strict=True)
    rows = "".join(f"00{at},{answer},{label}\n" for at, (answer, label) in enumerate(labelled))
    path = tmp_path / "labelled.csv"
    path.write_text(f"id,answer,label:fluency\n{rows}", encoding="utf-8")
    assert [(record.id, record.answer) for record in jm.load_records(path)] == [
        (f"00{at}", answer) for at, answer in enumerate(said)
    ]
    labels = jm.load_labels(path)
    assert labels[["id", "label"]].to_numpy().tolist() == [["000", 3.0], ["002", 3.0], ["003", 4.0]]


SIGNS = '{"score": 1} {x in A} {question} {{context}} %s %(a)s $x ${x} <<answer>> \\1 {0}'


def test_d11_signs_of_templates_stay_text() -> None:
    with ScriptedServer(lambda call: reply('{"findings": "x", "score": 4}')) as server:
        judge = jm.ChatJudge("scripted", base_url=server.url, price=0)
        braces = rubric(f"Is it like {SIGNS}?", name="braces", needs=("answer", "contexts"), uses=("question",))
        row = {"answer": f"answer: {SIGNS}", "contexts": [f"context: {SIGNS}"], "question": f"question: {SIGNS}"}
        results = jm.evaluate([row], [braces], judge, store=None, progress=False)
        assert results.scores["score"].tolist() == [4]
        (call,) = server.requests
    for part in ("Is it like", "answer:", "context:", "question:"):
        assert call.prompt.count(f"{part} {SIGNS}") == 1


# --- MLflow ---


def logged(results: jm.Results, store: Store) -> Any:
    from mlflow import MlflowClient

    (run_id,) = log_run(results, experiment="cases", traces=0)
    return MlflowClient(tracking_uri=store.uri).get_run(run_id)


def measured(name: str, value: Any) -> Metric:
    """A metric that claims to have measured `value`."""

    @metric(needs=["answer"], range=(0, 1), judged=False, name=name)
    async def own(record: jm.Record, ask: Any) -> Score:
        return Score(value)

    return own


def test_m01_a_long_rubric_is_kept_to_the_byte(mlflow_store: Store, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    text = ("Is it clear?\n« 明 »\t{x}" + " word" * 1200)[:6001].strip().ljust(6001, ".")
    results, tasks = scored(answers(), [rubric(text, name="long")])
    run = logged(results, mlflow_store)
    client = MlflowClient(tracking_uri=mlflow_store.uri)
    folder = Path(client.download_artifacts(run.info.run_id, "prompts", str(tmp_path)))
    assert len(tasks[0].text) == 6001
    assert any(text.encode() in path.read_bytes() for path in folder.glob("*.txt"))


def test_m02_no_two_names_collapse(mlflow_store: Store) -> None:
    names = ["a@k", "a[k]", "a,k", "a_k", "p(95)", "50%", "/a", "a//b", "../x", "x" * 251, "x" * 252, "忠实度", "m:1"]
    run = logged(scored(answers(), [measured(name, at / 16) for at, name in enumerate(names)])[0], mlflow_store)
    headline = [value for name, value in run.data.metrics.items() if "/" not in name]
    assert sorted(headline) == [round(at / 16, 4) for at in range(len(names))]
    shown = {value for key, value in run.data.tags.items() if key.startswith("name.")}
    assert shown | {"a_k", "忠实度"} == set(names)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "0.5", [0.5]], ids=repr)
def test_m04_what_is_no_number_is_a_failed_row_and_no_metric(value: Any, mlflow_store: Store) -> None:
    results, _ = scored(answers(2), [measured("odd", value), measured("even", 0.5)])
    run = logged(results, mlflow_store)
    assert run.data.metrics["even"] == 0.5 and "odd" not in run.data.metrics
    assert (run.data.metrics["odd/n"], run.data.metrics["odd/missing"]) == (0, 1)
    assert run.data.tags["missing.odd"].startswith("2 of 2 rows without a score: failed 2")


def test_m07_a_metric_that_raises_costs_its_rows_and_ends_nothing(mlflow_store: Store) -> None:
    @metric(needs=["answer"], range=(0, 1), judged=False)
    async def broken(record: jm.Record, ask: Any) -> Score:
        raise ZeroDivisionError

    run = logged(scored(answers(2), [broken, measured("even", 0.5)])[0], mlflow_store)
    assert (run.info.status, run.data.metrics["even"], run.data.metrics["broken/missing"]) == ("FINISHED", 0.5, 1)
