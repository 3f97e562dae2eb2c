"""similarity_score and cross_similarity by hand-computed vectors, embedders behind a real server, the embedded vectors."""

from __future__ import annotations

import base64
import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics import plots
from jurimetrics.engine.store import Store
from jurimetrics.errors import ReplyError
from jurimetrics.judges.judge import JudgeError, Request, Usage
from jurimetrics.judges.session import Session
from jurimetrics.metrics.metric import Score, metric
from jurimetrics.plots import drawing
from jurimetrics.tasks.embed import BYTES_PER_CALL, TEXTS_PER_CALL, EmbedTexts, packed
from jurimetrics.tasks.rate import RateRubric
from scripted_judge import ScriptedJudge, answer_all
from scripted_server import Answer, Call, ScriptedServer, body, drop, error, hang

NOBODY = jm.ChatJudge("nobody", base_url="http://127.0.0.1:9/v1")
"""A judge that is given because one must be, and is never asked."""
PLACES: Mapping[str, Sequence[float]] = {
    "East.": (2, 0), "North.": (0, 5), "West.": (-1, 0), "Far.": (3, 4), "Near.": (4, 3), "East. North.": (1, 1),
}  # fmt: skip


def scripted(table: Mapping[str, Sequence[float]] = PLACES, **options: Any) -> ScriptedJudge:
    return ScriptedJudge("vectors", lambda task, _: packed([table[text] for text in task.texts]), **options)


def record(answer: str | None, reference: str | None, **more: Any) -> dict[str, Any]:
    return {"id": "1", "answer": answer, "reference": reference} | more


def only(records: Any, chosen: Any, embedder: Any = None, **options: Any) -> pd.Series[Any]:
    """The one row of one record under one metric."""
    given_store = {"store": None} | options
    scores = jm.evaluate([records], [chosen], NOBODY, embedder=embedder, **given_store).scores
    assert len(scores) == 1
    row: pd.Series[Any] = scores.iloc[0]
    return row


# ---------------------------------------------------------------------------------------------- similarity_score


def test_similarity_score_is_the_cosine_whatever_the_lengths() -> None:
    row = only(record("Far.", "Near."), "similarity_score", scripted())
    assert row["score"] == pytest.approx(24 / 25, abs=1e-9)
    assert (row["judge"], row["status"], row["repeat"]) == ("computed", "ok", 0)
    assert only(record("East.", "West."), "similarity_score", scripted())["score"] == -1.0
    assert only(record("East.", "North."), "similarity_score", scripted())["score"] == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_similarity_score_of_a_text_with_itself_is_one_and_not_a_little_more(seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=1536)
    row = only(record("x", "x"), "similarity_score", scripted({"x": list(vector)}))
    assert (row["status"], row["score"]) == ("ok", 1.0)


def test_similarity_score_passes_by_no_threshold_of_ours() -> None:
    results = jm.evaluate([record("Far.", "Near.")], ["similarity_score"], NOBODY, embedder=scripted(), store=None)
    assert results.scores["passed"].isna().all()
    assert results.settings["metrics"]["similarity_score"]["range"] == [-1, 1]
    assert results.with_thresholds({"similarity_score": 0.96}).scores["passed"].tolist() == [True]


@pytest.mark.parametrize("name", ["similarity_score", "cross_similarity"])
def test_blank_answer_is_undefined_and_missing_texts_not_applicable_without_a_request(name: str) -> None:
    embedder = scripted()
    assert only(record(" \u200b", "East."), name, embedder)["status"] == "undefined"
    assert only(record(None, "East."), name, embedder)["status"] == "not_applicable"
    row = only(record("East.", " "), name, embedder)
    assert (row["status"], "reference" in row["reason"]) == ("not_applicable", True)
    assert embedder.asked == []


# ---------------------------------------------------------------------------------------------- cross_similarity

# East is at .6 and North at .8 from Far: row maxima .6 and .8, column maximum .8.
CROSS = {"precision": 0.7, "recall": 0.8, "f": 2 * 0.7 * 0.8 / 1.5}


@pytest.mark.parametrize(("option", "value"), CROSS.items())
def test_cross_similarity_is_the_mean_of_the_maxima_of_the_side_asked_for(option: str, value: float) -> None:
    row = only(record("East. North.", "Far."), jm.metrics.cross_similarity.using(aggregate=option), scripted())
    assert row["metric"] == f"cross_similarity(aggregate={option})"
    assert row["score"] == pytest.approx(value, abs=1e-9)


def test_cross_similarity_gives_f_and_keeps_both_sides_the_sentences_and_the_matrix() -> None:
    row = only(record("East. North.", "Far."), "cross_similarity", scripted())
    details = json.loads(row["details"])
    assert row["score"] == pytest.approx(CROSS["f"], abs=1e-9)
    assert {side: details[side] for side in CROSS} == pytest.approx(CROSS, abs=1e-9)
    assert details["answer_sentences"] == ["East.", "North."] and details["reference_sentences"] == ["Far."]
    assert details["matrix"] == [[0.6], [0.8]]
    assert "precision side 0.700 over 2" in row["reason"] and "recall side 0.800 over 1" in row["reason"]


def test_cross_similarity_clips_at_zero_and_is_zero_where_nothing_is_near() -> None:
    row = only(record("East.", "West."), "cross_similarity", scripted())
    assert (row["score"], json.loads(row["details"])["matrix"]) == (0.0, [[0.0]])
    mixed = only(record("East. North.", "West."), "cross_similarity", scripted())
    assert (mixed["score"], mixed["status"]) == (0.0, "ok")


def test_cross_similarity_does_not_depend_on_the_order_of_sentences() -> None:
    scores = {only(record(a, b), "cross_similarity", scripted())["score"] for a, b in (
        ("East. North. Far.", "Near. West."), ("Far. North. East.", "West. Near."),
    )}  # fmt: skip
    assert len(scores) == 1


def test_cross_similarity_refuses_an_aggregate_it_does_not_have() -> None:
    with pytest.raises(jm.InputError, match="aggregate is one of 'f', 'recall', 'precision', not 'mean'"):
        jm.metrics.cross_similarity.using(aggregate="mean")


# ---------------------------------------------------------------------------------------------- what they cannot see

REFERENCE = "To reset your password, open the settings page."
LONGER = (
    f"{REFERENCE} Our offices in Lyon and Porto are closed on public holidays. Invoices are sent by post at the end of "
    "each quarter. The cafeteria serves soup, bread and fruit until three in the afternoon. Parking is free for visitors "
    "who register their licence plate. Deliveries arrive at the back door near the river."
)


def test_partial_match_measured_similarity_33_percent_recall_side_100_percent_precision_side_19_percent() -> None:
    # Measured with the embedded vectors: similarity_score .333; recall 1.000, precision .188, f .316.
    scores = jm.evaluate(
        [record(LONGER, REFERENCE)], ["similarity_score", "cross_similarity"], NOBODY, store=None
    ).scores
    whole, cross = scores["score"]
    sides = json.loads(scores["details"].iloc[1])
    assert whole == pytest.approx(0.333, abs=0.001)
    assert sides["recall"] == pytest.approx(1.0, abs=1e-6)
    assert sides["precision"] == pytest.approx(0.188, abs=0.001)
    assert cross == sides["f"] == pytest.approx(0.316, abs=0.001)


CONTRADICTIONS = [
    ("The Eiffel Tower is 330 metres tall.", "The Eiffel Tower is not 330 metres tall.",
     "Paris's iron landmark rises to a height of 330 m.", 0.988, 0.396),
    ("The drug lowers blood pressure.", "The drug does not lower blood pressure.",
     "Patients on the medicine had less hypertension.", 0.851, 0.477),
    ("The bank approved the loan.", "The bank refused the loan.", "Her credit application was granted.", 0.659, 0.290),
    ("The meeting was moved to Friday.", "The meeting was not moved to Friday.",
     "They will now get together at the end of the week.", 0.955, 0.250),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "contradiction", "paraphrase", "against", "alike"), CONTRADICTIONS)
def test_contradiction_scores_higher_than_a_paraphrase(
    reference: str, contradiction: str, paraphrase: str, against: float, alike: float
) -> None:
    both = [record(contradiction, reference, id="no"), record(paraphrase, reference, id="yes")]
    no, yes = jm.evaluate(both, ["similarity_score"], NOBODY, store=None).scores["score"]
    assert no > yes
    assert (no, yes) == (pytest.approx(against, abs=0.001), pytest.approx(alike, abs=0.001))


# ---------------------------------------------------------------------------------------------- the task


def test_vectors_are_kept_as_float32_and_read_as_unit_rows() -> None:
    task = EmbedTexts(("a", "b"))
    data = packed([[3.0, 4.0], [0.0, 0.5]])
    assert json.loads(json.dumps(data)) == data
    assert struct.unpack("<4f", base64.b64decode(data["vectors"])) == (3.0, 4.0, 0.0, 0.5)
    assert task.read(data).tolist() == [[0.6, 0.8], [0.0, 1.0]]
    with pytest.raises(ValueError, match="read-only"):
        task.read(data)[0, 0] = 2.0
    many = packed(np.random.default_rng(0).normal(size=(100, 1536)))
    assert len(json.dumps(many)) < 1.35 * 100 * 1536 * 4


@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4), min_size=1, max_size=5))
def test_read_gives_unit_rows_in_the_same_direction_or_refuses(vectors: list[list[float]]) -> None:
    task = EmbedTexts(tuple("x" for _ in vectors))
    if not all(any(vector) for vector in vectors):
        with pytest.raises(ReplyError, match="all zeros"):
            task.read(packed(vectors))
        return
    for row, vector in zip(task.read(packed(vectors)), vectors, strict=True):
        assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-12)
        assert row == pytest.approx(np.array(vector) / np.linalg.norm(vector), abs=1e-6)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (packed([[1.0, 0.0]]), "incomplete"),
        (packed([[1.0]] * 3), "incomplete"),
        (packed([[1.0, 0.0], [0.0, 0.0]]), "out_of_range"),
        (packed([[1.0, 0.0], [math.nan, 0.0]]), "out_of_range"),
        (packed([[1.0, 0.0], [math.inf, 0.0]]), "out_of_range"),
        (packed([[1.0, 0.0], [1e39, 0.0]]), "out_of_range"),
        ({"dimension": 3, "vectors": packed([[1.0, 0.0], [1.0, 0.0]])["vectors"]}, "unparsed"),
        ({"dimension": 0, "vectors": ""}, "out_of_range"),
        ({"dimension": 2, "vectors": "not base64!"}, "unparsed"),
        ({"dimension": 2, "vectors": "AAAA"}, "unparsed"),
        ({"dimension": 2}, "unparsed"),
        ([[1.0, 0.0]], "unparsed"),
        (None, "unparsed"),
    ],
)
def test_read_refuses_whatever_has_no_direction_or_another_shape(data: Any, kind: str) -> None:
    with pytest.raises(ReplyError) as raised:
        EmbedTexts(("a", "b")).read(data)
    assert raised.value.kind == kind


@pytest.mark.parametrize(
    "vectors", [[], [[]], [[1.0], [1.0, 2.0]], [["1.0"]], [[None]], [[True]], [1.0], "x", None, [{}]]
)
def test_packed_takes_rows_of_numbers_only(vectors: Any) -> None:
    with pytest.raises(ReplyError):
        packed(vectors)


def test_split_keeps_order_within_texts_and_bytes_of_a_request() -> None:
    texts = [f"t{at}" for at in range(70)] + ["x" * BYTES_PER_CALL, "y", "z" * (BYTES_PER_CALL + 1)]
    parts = EmbedTexts(tuple(texts)).split().parts
    assert [text for part in parts for text in part.texts] == texts
    assert [len(part.texts) for part in parts] == [TEXTS_PER_CALL, TEXTS_PER_CALL, 6, 1, 1, 1]
    assert EmbedTexts(()).split().parts == ()
    assert EmbedTexts(()).split().join([]).shape == (0, 0)


def test_nobody_votes_on_vectors() -> None:
    with pytest.raises(TypeError, match="voted"):
        EmbedTexts(("a",)).vote({}, None)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- a real endpoint


def vectors_of(call: Call, table: Mapping[str, Sequence[float]] = PLACES) -> list[dict[str, Any]]:
    return [
        {"object": "embedding", "index": at, "embedding": list(table[text])}
        for at, text in enumerate(call.body["input"])
    ]


def embedded(data: Any, usage: Any = None) -> Answer:
    payload = {"object": "list", "data": data} | ({} if usage is None else {"usage": usage})
    return Answer("send", payload)


def placed(call: Call) -> Answer:
    tokens = 10 * len(call.body["input"])
    return embedded(vectors_of(call), {"prompt_tokens": tokens, "total_tokens": tokens})


def never(call: Call) -> Answer:
    raise AssertionError(f"no judge is asked here, but {call.path} was")


def endpoint(server: ScriptedServer, **options: Any) -> jm.EndpointEmbedder:
    return jm.EndpointEmbedder("places", **{"base_url": server.url, "price": 2.0} | options)


RECORDS = [
    record("East. North.", "Far.", id="a"), record("Far.", "Near.", id="b"), record("East. North.", "Near.", id="c"),
]  # fmt: skip
BOTH = ["similarity_score", "cross_similarity"]


def test_endpoint_gets_all_texts_of_a_row_in_one_request_and_nothing_twice() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), store=None)
    # b is one sentence on each side, so both metrics ask the same of it.
    assert sorted((call.body["input"] for call in server.requests), key=lambda texts: (len(texts), texts)) == [
        ["East. North.", "Far."], ["East. North.", "Near."], ["Far.", "Near."],
        ["East.", "North.", "Far."], ["East.", "North.", "Near."],
    ]  # fmt: skip
    assert {tuple(sorted(call.body)) for call in server.requests} == {("input", "model")}
    assert all(call.path == "/v1/embeddings" for call in server.requests)
    values = results.scores["score"].tolist()
    assert values[0] == pytest.approx(7 / (5 * math.sqrt(2)), abs=1e-7)  # (1, 1) and (3, 4)
    assert values[1:4] == pytest.approx([CROSS["f"], 0.96, 0.96], abs=1e-9)
    assert results.calls["judge"].unique().tolist() == ["places"]


def test_usage_and_cost_are_counted_and_sum_to_the_bill() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), store=None)
    scores, calls = results.scores, results.calls
    assert calls["prompt_tokens"].sum() == 120 and calls["completion_tokens"].sum() == 0
    assert calls["cost_usd"].sum() == pytest.approx(120 * 2e-6, abs=1e-15)
    assert scores["judge_cost_usd"].sum() == pytest.approx(calls["cost_usd"].sum(), abs=1e-12)
    assert scores["judge_prompt_tokens"].sum() == 120
    of_b = scores[scores["id"] == "b"]
    assert of_b["judge_cost_usd"].tolist() == pytest.approx([20e-6, 20e-6])  # 20 tokens, one request, two rows
    assert set(scores["judge"]) == {"computed"} and (scores["judge_calls"] == 1).all()
    assert results.summary()["cost_usd"].sum() == pytest.approx(120 * 2e-6, abs=1e-12)


def test_cost_is_counted_beside_a_panel_and_sums_to_the_bill() -> None:
    panel = jm.Panel([ScriptedJudge(name, lambda task, _: answer_all(task)) for name in ("ada", "bob")])
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, [*BOTH, "coherence"], panel, embedder=endpoint(server), repeats=2, store=None)
    assert results.scores["judge_cost_usd"].sum() == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-9)
    computed = results.scores[results.scores["judge"] == "computed"]
    assert len(computed) == 6 and computed["judge_cost_usd"].sum() == pytest.approx(120 * 2e-6, abs=1e-12)
    assert (results.calls["judge"] == "places").sum() == 5


def test_replay_from_the_store_asks_nothing_and_gives_the_same_rows(tmp_path: Path) -> None:
    with ScriptedServer(never, embed=placed) as server:
        first = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), store=tmp_path / "s.db")
        asked = server.count
        again = jm.evaluate(
            RECORDS, BOTH, NOBODY, embedder=endpoint(server, name="other", price=9.0), store=tmp_path / "s.db"
        )
        assert server.count == asked == 5
    kept = ["id", "metric", "score", "status", "reason", "details"]
    pd.testing.assert_frame_equal(first.scores[kept], again.scores[kept])
    assert again.calls["cost_usd"].sum() == 0 and again.calls["saved_usd"].sum() == pytest.approx(120 * 2e-6)
    assert len(Store(tmp_path / "s.db")) == 5


def test_another_model_or_length_has_its_own_answers(tmp_path: Path) -> None:
    def cut(call: Call) -> Answer:
        size = call.body.get("dimensions", 2)
        return embedded([one | {"embedding": one["embedding"][:size]} for one in vectors_of(call)])

    with ScriptedServer(never, embed=cut) as server:
        for options in ({}, {"dimensions": 1}, {"extra_body": {"user": "x"}}, {}):
            one = [record("Far.", "Near.")]
            jm.evaluate(one, BOTH, NOBODY, embedder=endpoint(server, **options), store=tmp_path / "s.db")
        assert server.count == 3
        assert [call.body.get("dimensions") for call in server.requests] == [None, 1, None]


def test_many_sentences_go_out_in_parts_and_are_joined_in_order() -> None:
    texts = [f"Sentence number {at} is here." for at in range(70)]
    directions = {text: (math.cos(at), math.sin(at)) for at, text in enumerate(texts)}
    with ScriptedServer(never, embed=lambda call: embedded(vectors_of(call, directions))) as server:
        row = only(record(" ".join(texts[:-1]), texts[-1]), "cross_similarity", endpoint(server))
        assert sorted(len(call.body["input"]) for call in server.requests) == [6, 32, 32]
    column = [value for (value,) in json.loads(row["details"])["matrix"]]
    assert column == pytest.approx([max(0.0, math.cos(69 - at)) for at in range(69)], abs=1e-4)
    assert row["judge_calls"] == 3


def test_replies_in_base64_and_in_any_order_are_the_same() -> None:
    def shuffled(call: Call) -> Answer:
        found = vectors_of(call)
        for one in found:
            one["embedding"] = base64.b64encode(struct.pack("<2f", *one["embedding"])).decode()
        return embedded(found[::-1])

    with ScriptedServer(never, embed=shuffled) as server:
        assert only(record("East. North.", "Far."), "cross_similarity", endpoint(server))["score"] == pytest.approx(
            CROSS["f"], abs=1e-7
        )


def test_repeats_ask_once() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), repeats=4, store=None)
        assert server.count == 5
    assert len(results.scores) == 6 and (results.scores["repeat"] == 0).all()


def test_limits_of_the_endpoint_hold() -> None:
    many = [record(f"Answer {at}.", f"Reference {at}.", id=str(at)) for at in range(30)]
    with ScriptedServer(never, latency=0.01) as server:
        jm.evaluate(many, "similarity_score", NOBODY, embedder=endpoint(server, max_concurrency=3), store=None)
        assert server.count == 30 and server.in_flight_max <= 3


def test_total_tokens_alone_are_prompt_tokens_and_no_usage_is_unknown() -> None:
    for usage, tokens in (({"total_tokens": 7}, 7), (None, None)):
        with ScriptedServer(never, embed=lambda call, said=usage: embedded(vectors_of(call), said)) as server:
            calls = jm.evaluate([record("Far.", "Near.")], BOTH, NOBODY, embedder=endpoint(server), store=None).calls
        assert calls["cost_usd"].tolist() == (
            [pytest.approx(14e-6)] if tokens else [pytest.approx(math.nan, nan_ok=True)]
        )
        assert calls["prompt_tokens"].fillna(-1).tolist() == [tokens or -1]


def test_half_a_surrogate_pair_is_sent_as_a_replacement_character() -> None:
    with ScriptedServer(never) as server:
        assert only(record("half \ud83d.", "whole"), "similarity_score", endpoint(server))["status"] == "ok"
        assert server.requests[0].body["input"] == ["half \ufffd.", "whole"]


def test_text_over_the_declared_input_is_not_applicable_and_not_sent() -> None:
    with ScriptedServer(never, embed=placed) as server:
        row = only(record("Far. " * 100, "Near."), "similarity_score", endpoint(server, max_input_tokens=50))
        assert (row["status"], server.count) == ("not_applicable", 0)
        assert "does not fit" in row["reason"]


def test_azure_paths_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "canary-azure-1")
    with ScriptedServer(never, embed=placed) as server:
        at_azure = jm.EndpointEmbedder("places", azure_endpoint=server.origin, price=1.0)
        assert only(record("Far.", "Near."), "similarity_score", at_azure)["score"] == pytest.approx(0.96)
        call = server.requests[0]
        assert call.path == "/openai/deployments/places/embeddings" and call.query["api-version"]
        assert call.headers["api-key"] == "canary-azure-1"


def test_budget_ends_it_typed() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), budget={"calls": 1}, store=None)
        assert server.count == 1
    failed = results.scores[results.scores["status"] == "failed"]
    assert len(failed) >= 4 and failed["error"].str.startswith("budget:").all()


# ---------------------------------------------------------------------------------------------- faults


def with_vectors(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Call], Answer]:
    return lambda call: embedded(change(vectors_of(call)))


def first_is(vector: Any) -> Callable[[Call], Answer]:
    return with_vectors(lambda found: [found[0] | {"embedding": vector}, *found[1:]])


FAULTS: dict[str, tuple[Callable[[Call], Answer], str, int]] = {
    # name: (what the server does, how the row fails, how many requests that takes with retries=1)
    "500": (lambda call: error(500), "transport: ", 2),
    "502 page": (lambda call: body("<html>bad gateway</html>", 502), "transport: ", 2),
    "200 page": (lambda call: body("<html>sign in</html>"), "transport: ", 2),
    "dropped": (lambda call: drop(), "transport: ", 2),
    "cut in mid-reply": (lambda call: drop('{"data": [{"ind'), "transport: ", 2),
    "hanging": (lambda call: hang(), "timeout: ", 2),
    "no data": (lambda call: Answer("send", {"object": "list"}), "transport: ", 2),
    "400": (lambda call: error(400, message="bad input"), "rejected: ", 1),
    "400 of a parameter": (lambda call: error(400, param="input"), "rejected: ", 1),
    "too long": (lambda call: error(400, "context_length_exceeded"), "rejected: ", 1),
    "filtered": (lambda call: error(400, "content_filter"), "filtered: ", 1),
    "one too few": (with_vectors(lambda found: found[:-1]), "incomplete: 1 vectors for 2 texts", 2),
    "one too many": (with_vectors(lambda found: [*found, found[0] | {"index": 2}]), "incomplete: 3 vectors for 2", 2),
    "twice the same": (with_vectors(lambda found: [found[0], found[0]]), "incomplete: 2 vectors for 2 texts", 2),
    "no index": (with_vectors(lambda found: [{"embedding": one["embedding"]} for one in found]), "incomplete: ", 2),
    "no object": (with_vectors(lambda found: [found[0], 7]), "incomplete: ", 2),
    "zeros": (first_is([0.0, 0.0]), "out_of_range: vector 1 of 2 is all zeros", 2),
    "NaN": (first_is([math.nan, 1.0]), "out_of_range: vector 1 of 2 holds what is no finite", 2),
    "infinity": (first_is([math.inf, 1.0]), "out_of_range: vector 1 of 2 holds what is no finite", 2),
    "text": (first_is(["1", "2"]), "unparsed: ", 2),
    "not base64": (first_is("?"), "unparsed: ", 2),
    "null": (first_is(None), "unparsed: ", 2),
    "shorter": (first_is([1.0]), "unparsed: ", 2),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_a_typed_failure_of_its_row_alone(name: str, tmp_path: Path) -> None:
    broken, said, requests = FAULTS[name]

    def embed(call: Call) -> Answer:
        return broken(call) if call.body["input"][0] == "East." else placed(call)

    given_records = [record("Far.", "Near.", id="good"), record("East.", "North.", id="bad")]
    with ScriptedServer(never, embed=embed) as server:
        slow = endpoint(server, timeout=0.4 if name == "hanging" else 30.0)
        results = jm.evaluate(
            given_records, "similarity_score", NOBODY, embedder=slow, retries=1, store=tmp_path / "s.db"
        )
        assert server.count == 1 + requests
    good, bad = results.scores.to_dict("records")
    assert (good["status"], good["score"]) == ("ok", pytest.approx(0.96))
    assert (bad["status"], math.isnan(bad["score"])) == ("failed", True)
    assert bad["error"].startswith(said), bad["error"]
    assert len(results.calls) == 1 + requests
    assert results.calls["status"].tolist().count(said.partition(":")[0]) == requests
    assert len(Store(tmp_path / "s.db")) == 1
    shares = results.scores["judge_cost_usd"].sum(skipna=False)
    assert math.isnan(shares) or shares == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-12)


@pytest.mark.parametrize(
    "broken",
    [lambda call: error(429, headers={"Retry-After": "0"}), lambda call: error(503), lambda call: drop(),
     with_vectors(lambda found: found[:-1])],
    ids=["429", "503", "dropped", "incomplete"],
)  # fmt: skip
def test_passing_fault_costs_no_score(broken: Callable[[Call], Answer]) -> None:
    with ScriptedServer(never, embed=lambda call: placed(call) if call.tries else broken(call)) as server:
        results = jm.evaluate(
            [record("Far.", "Near.")], "similarity_score", NOBODY, embedder=endpoint(server), store=None
        )
        assert server.count == 2
    assert results.scores["score"].tolist() == pytest.approx([0.96])
    assert results.calls["attempt"].tolist() == [1, 2]


def test_wrong_key_ends_the_run_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACES_KEY", "canary-places-123456")

    def refused(call: Call) -> Answer:
        return error(401, "invalid_api_key", f"Incorrect key provided: {call.headers['authorization'].split()[1]}")

    with ScriptedServer(never, embed=refused) as server:
        given_embedder = endpoint(server, api_key_env="PLACES_KEY")
        with pytest.raises(jm.InputError, match="PLACES_KEY") as raised:
            jm.evaluate(RECORDS, BOTH, NOBODY, embedder=given_embedder, store=None)
        assert server.requests[0].headers["authorization"] == "Bearer canary-places-123456"
    assert "canary" not in str(raised.value) + repr(given_embedder) + json.dumps(given_embedder.settings())


def test_reply_of_another_length_than_asked_for_fails() -> None:
    with ScriptedServer(never, embed=placed) as server:
        row = only(record("Far.", "Near."), "similarity_score", endpoint(server, dimensions=1))
    assert row["error"] == "unparsed: vectors of 2 numbers, asked for 1"


# ---------------------------------------------------------------------------------------------- what is given


def test_missing_key_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLACES_KEY", raising=False)
    with (
        ScriptedServer(never, embed=placed) as server,
        pytest.raises(jm.InputError, match=r"embedder 'places': .*PLACES_KEY"),
    ):
        jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server, api_key_env="PLACES_KEY"), store=None)
    assert server.count == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dimensions": 0}, "dimensions"), ({"dimensions": True}, "dimensions"), ({"price": -1}, "price"),
        ({"price": math.nan}, "price"), ({"price": True}, "price"),
        ({"extra_body": {"input": "x"}}, "extra_body"), ({"base_url": "nowhere"}, "base_url"), ({"timeout": 0}, "timeout"),
        ({"api_key_env": "sk-no-key-but-a-secret-1234"}, "api_key_env"), ({"max_concurrency": 0}, "max_concurrency"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(jm.InputError, match=said) as raised:
        jm.EndpointEmbedder("m", **{"base_url": "http://127.0.0.1:9/v1"} | options)
    assert "secret" not in str(raised.value) and "judge" not in str(raised.value)


@pytest.mark.parametrize("embedder", [NOBODY, jm.Panel([NOBODY]), "wordllama", 7])
def test_only_an_embedder_embeds(embedder: Any) -> None:
    with pytest.raises(jm.InputError, match="embedder: expected an EndpointEmbedder or an EmbeddedEmbedder"):
        jm.evaluate(RECORDS, BOTH, NOBODY, embedder=embedder, store=None)


def test_judge_and_embedder_of_one_name_are_refused() -> None:
    with pytest.raises(jm.InputError, match="nobody"):
        jm.evaluate(RECORDS, BOTH, NOBODY, embedder=scripted_as("nobody"), store=None)


def scripted_as(name: str) -> ScriptedJudge:
    return ScriptedJudge(name, lambda task, _: packed([PLACES[text] for text in task.texts]))


def test_settings_say_who_embedded() -> None:
    with ScriptedServer(never, embed=placed) as server:
        given_embedder = endpoint(server, dimensions=2)
        kept = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=given_embedder, store=None).settings
    assert kept["embedder"] == given_embedder.settings()
    assert {"kind": "embeddings", "model": "places", "address": server.url, "dimensions": 2}.items() <= kept[
        "embedder"
    ].items()
    assert list(kept["judges"]) == ["nobody"]
    assert jm.evaluate(RECORDS, BOTH, NOBODY, store=None).settings["embedder"]["kind"] == "embedded"
    assert jm.evaluate(RECORDS, "f1", NOBODY, store=None).settings["embedder"] is None


def test_prices_come_from_the_list_where_none_is_declared() -> None:
    at_openai = jm.EndpointEmbedder("text-embedding-3-small")
    when = datetime(2026, 1, 1, tzinfo=UTC)
    assert at_openai.cost(Usage(1_000_000, 0), None, when) == pytest.approx(0.02)
    assert jm.EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1").cost(Usage(1, 0), None, when) is None
    assert jm.EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1", price=0).cost(Usage(), None, when) == 0.0
    with pytest.raises(jm.InputError, match=r"embedder 'm': price and price_as exclude each other"):
        jm.EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1", price=1.0, price_as="gpt-4o").check()
    mapped = jm.EndpointEmbedder("house-name", base_url="http://127.0.0.1:9/v1", price_as="text-embedding-3-large")
    mapped.check()
    assert mapped.cost(Usage(1_000_000, 0), "house-name", when) == pytest.approx(0.13)
    # A chat reply with output tokens is never priced by an entry that has no price for output.
    assert at_openai.cost(Usage(1_000_000, 5), None, when) is None


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
