"""similarity_score and cross_similarity by hand-computed vectors, what they cannot see, and the task behind them."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

import jurimetrics as jm
import numpy as np
import pytest
from embedded_texts import (
    CROSS,
    NOBODY,
    only,
    record,
    scripted,
)
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import ReplyError
from jurimetrics.tasks.embed import BYTES_PER_CALL, TEXTS_PER_CALL, EmbedTexts, packed

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
