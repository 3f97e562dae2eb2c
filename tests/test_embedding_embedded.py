"""Who may ask for vectors, the embedded ones, and the heat map of sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pytest
from embedded_texts import (
    BOTH,
    NOBODY,
    RECORDS,
    only,
    record,
    scripted,
)
from jurimetrics import plots
from jurimetrics.judges.judge import JudgeError, Request
from jurimetrics.judges.session import Session
from jurimetrics.metrics.metric import Score, metric
from jurimetrics.plots import drawing
from jurimetrics.tasks.embed import EmbedTexts
from jurimetrics.tasks.rate import RateRubric
from scripted_judge import ScriptedJudge, answer_all

# ---------------------------------------------------------------------------------------------- who may ask


@metric(needs=("answer",), range=(0, 1), judged=False)
async def asks_a_judge(record: Any, ask: Any) -> Score:
    await ask(RateRubric("clarity", "Is it clear?", record.answer))
    return Score(1.0)


@metric(needs=("answer", "reference"), range=(-1, 1))
async def mixed(record: Any, ask: Any) -> Score:
    vectors = await ask(EmbedTexts((record.answer, record.reference)))
    rating = await ask(RateRubric("clarity", "Is it clear?", record.answer))
    return Score(float(vectors[0] @ vectors[1]), f"rated {rating.value:g}")


def test_computed_metric_still_cannot_ask_a_judge() -> None:
    row = only(record("East.", "Far."), asks_a_judge, scripted())
    assert row["error"].startswith("crash:") and "cannot ask a judge" in row["error"]


def test_judged_metric_may_embed_and_the_embedder_answers_once_for_all_judges() -> None:
    judges = [ScriptedJudge(name, lambda task, _: answer_all(task)) for name in ("ada", "bob")]
    embedder = scripted()
    results = jm.evaluate(
        [record("Far.", "Near.")], [mixed], jm.Panel(judges), embedder=embedder, repeats=2, store=None
    )
    assert len(embedder.asked) == 1
    assert {request.task.kind for judge in judges for request in judge.asked} == {"rate"}
    assert results.scores["score"].tolist() == pytest.approx([0.96] * 6)
    assert results.scores["judge_cost_usd"].sum() == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-12)


async def test_embedders_answer_nothing_but_embed_tasks() -> None:
    for embedder in (jm.EmbeddedEmbedder(), jm.EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1")):
        with pytest.raises(JudgeError) as raised:
            await embedder.attempt(Request(RateRubric("clarity", "Is it clear?", "x")), Session())
        assert raised.value.kind == "unsupported"


# ---------------------------------------------------------------------------------------------- the embedded vectors


async def test_embedded_vectors_are_those_of_wordllama_alone_or_beside_others() -> None:
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = ("A red car.", "word " * 3000, "東京は日本の首都です。", "x")
    reply = await jm.EmbeddedEmbedder().attempt(Request(EmbedTexts(texts)), Session())
    assert reply.answer == pytest.approx(model.embed(list(texts), norm=True), abs=1e-5)
    for at, text in enumerate(texts):
        alone = await jm.EmbeddedEmbedder().attempt(Request(EmbedTexts((text,))), Session())
        assert (alone.answer[0] == reply.answer[at]).all()
    assert reply.trace.cost_usd == 0.0


async def test_embedded_text_without_a_piece_is_out_of_range() -> None:
    with pytest.raises(JudgeError) as raised:
        await jm.EmbeddedEmbedder().attempt(Request(EmbedTexts(("word", ""))), Session())
    assert (raised.value.kind, raised.value.retry) == ("out_of_range", "no")


def test_embedded_vectors_send_nothing_and_leave_no_call_rows() -> None:
    results = jm.evaluate(RECORDS, BOTH, NOBODY, store=None)
    assert results.calls.empty and (results.scores["judge_cost_usd"] == 0).all()
    assert (results.scores["status"] == "ok").all()


_MANNERS = """
import json, logging, os, sys, warnings
asked = []
sys.addaudithook(lambda name, args: asked.append(name) if name in ("socket.connect", "socket.getaddrinfo") else None)
import jurimetrics as jm
judge = jm.ChatJudge("nobody", base_url="http://127.0.0.1:9/v1")
record = {"answer": "East.", "reference": "West."}
jm.evaluate([record], "f1", judge, store=None)
early = "wordllama" in sys.modules
before = (logging.root.level, list(logging.root.handlers), list(warnings.filters))
results = jm.evaluate([record] , ["similarity_score", "cross_similarity"], judge, store=None)
after = (logging.root.level, list(logging.root.handlers), list(warnings.filters))
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps([early, before == after, asked, results.scores["status"].tolist()]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_embedded_vectors_have_manners(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning:__main__", "-c", _MANNERS]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    early, same, asked, statuses = json.loads(done.stdout)
    assert not early and same and asked == [] and statuses == ["ok", "ok"]
    assert done.stderr == ""
    assert not (tmp_path / ".cache" / "wordllama").exists()


# ---------------------------------------------------------------------------------------------- the heat map


def test_similarity_matrix_draws_every_cell_and_marks_the_maxima() -> None:
    given_records = [record("East. North.", "Far. Near.", variant=name) for name in ("x", "y")]
    results = jm.evaluate(given_records, "cross_similarity", NOBODY, embedder=scripted(), store=None)
    axes = plots.similarity_matrix(results, "1", variant="x")
    assert axes.images[0].get_array().tolist() == [[0.6, 0.8], [0.8, 0.6]]
    assert (axes.images[0].get_cmap().name, axes.images[0].get_clim()) == ("Greys", (0, 1))
    texts = {text.get_position(): text for text in axes.texts}
    assert {at: text.get_text() for at, text in texts.items()} == {
        (0, 0): "0.60", (1, 0): "0.80", (0, 1): "0.80", (1, 1): "0.60",
    }  # fmt: skip
    assert {at for at, text in texts.items() if text.get_fontweight() == "bold"} == {(1, 0), (0, 1)}
    assert {at for at, text in texts.items() if text.get_bbox_patch() is not None} == {(1, 0), (0, 1)}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1  East.", "2  North."]
    assert axes.get_title(loc="left") == "precision side 0.80, recall side 0.80"
    for missing in (("1", ""), ("2", "x")):
        with pytest.raises(jm.InputError, match="no scored row of cross_similarity"):
            plots.similarity_matrix(results, *missing)


def test_similarity_matrix_bears_any_text_and_any_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "FAMILIES", ())  # as on a machine without fonts for other scripts
    long = " ".join(f"It costs ${at} and ${at + 1}." for at in range(30))
    given_records = [
        record("東京は日本の首都です。 It costs $5 and $6.", "x_1^2 $ {", id="a"),
        record(long, long, id="b"),
    ]
    results = jm.evaluate(given_records, jm.metrics.cross_similarity.using(aggregate="recall"), NOBODY, store=None)
    axes = plots.similarity_matrix(results, "a")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", r"2  It costs \$5 and \$6."]
    axes.figure.savefig(tmp_path / "a.png")
    many = plots.similarity_matrix(results, "b")
    assert len(many.texts) == 0 and np.shape(many.images[0].get_array()) == (30, 30)
    many.figure.savefig(tmp_path / "b.png")
