"""The quickstart's constructed labels: per defect, which metric must fall and which must not, by the baseline judge.

What the baseline cannot see is named in `BLIND`, with the reason; it is asserted too, so that the list stays true.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jurimetrics as jm
import pandas as pd
import pytest

STUDY = Path(__file__).parents[1] / "experiments" / "quickstart"
METRICS = ["rag", "coherence", "fluency", "f1", "relevance", "groundedness", "similarity", "criteria"]

# Worse than the answers without a defect, as a mean over the defect's answers, by at least this much of the range.
_WRONG = {
    "faithfulness": 0.2, "hallucination": 0.2, "noise_sensitivity": 0.2, "groundedness": 0.3, "similarity": 0.2,
    "correctness": 0.2,
}  # fmt: skip
MUST_MOVE = {
    "changed_number": _WRONG,
    "swapped_name": _WRONG,
    "contradiction": _WRONG,
    "invented_fact": {"faithfulness": 0.2, "hallucination": 0.2, "noise_sensitivity": 0.2, "groundedness": 0.3},
    "omission": {"accuracy_clarity": 0.3, "comprehensiveness": 0.5, "similarity": 0.4},
    "noise": {"noise_share": 0.3, "accuracy_clarity": 0.2, "comprehensiveness": 0.4, "similarity": 0.4},
    "off_topic": {
        "faithfulness": 0.5, "hallucination": 0.5, "accuracy_clarity": 0.5, "coherence": 0.3, "relevance": 0.8,
        "groundedness": 0.8, "similarity": 0.8, "comprehensiveness": 0.8,
    },
    "disfluent": {"fluency": 0.5, "readability": 0.2},
    "refusal": {"accuracy_clarity": 0.5, "relevance": 0.8, "similarity": 0.8, "comprehensiveness": 0.8},
}  # fmt: skip
# Within this much of the answers without a defect.
_FORM = ["fluency", "coherence", "noise_share", "relevance", "readability"]
MUST_STAY = {
    "changed_number": _FORM,
    "swapped_name": _FORM,
    "contradiction": _FORM,
    "invented_fact": [*_FORM, "comprehensiveness"],
    "omission": [
        "faithfulness",
        "hallucination",
        "fluency",
        "noise_share",
        "groundedness",
        "correctness",
        "readability",
    ],
    "noise": ["faithfulness", "hallucination", "fluency", "groundedness", "readability"],
    "off_topic": ["fluency", "readability"],
    "disfluent": ["relevance", "similarity", "comprehensiveness"],
    "refusal": ["hallucination", "fluency", "groundedness", "correctness", "readability"],
}
# Defects that a metric is there for and the baseline's rule for it does not see, and why.
UNSEEN = {
    ("invented_fact", "correctness"): "what is invented stands in conflict with nothing that the reference says",
    ("omission", "relevance"): "what is left out of the answer leaves no trace in the words that it has",
    ("noise", "relevance"): "sentences from beside the point are on the same matter and share its words",
}
STAY = 0.15
# Single answers that fall outside the band a correct judge would keep, and why.
BLIND = {
    ("pollen-station-01", "detailed"): "a disfluent sentence hides the words that the documents share with it",
    ("plum-vinegar-01", "concise"): "a document that answers in other words than the reference is rated lower",
    ("plum-vinegar-01", "detailed"): "a document that answers in other words than the reference is rated lower",
}
BY_FEATURES = ["relevance", "groundedness", "similarity", "correctness", "comprehensiveness", "readability"]
CHECKED = ["faithfulness", "hallucination", "coherence", "fluency", "context_precision"]


@cache
def judged() -> pd.DataFrame:
    """Scores of the quickstart by the baseline, as shares of the range, higher is better, with the defect beside."""
    results = jm.evaluate(STUDY / "records.jsonl", METRICS, jm.BaselineJudge(), store=None)
    frame = results.scores.merge(_defects(results.records), on=["id", "variant"])
    for name, made in results.settings["metrics"].items():
        low, high = made["range"]
        rows = frame["metric"] == name
        share = (frame.loc[rows, "score"] - low) / (high - low)
        frame.loc[rows, "quality"] = share if made["higher_is_better"] else 1 - share
    return frame


def _defects(records: pd.DataFrame) -> pd.DataFrame:
    metadata = records["metadata"].map(json.loads)
    return records[["id", "variant"]].assign(
        defect=metadata.map(lambda one: one["defect"]), language=metadata.map(lambda one: one["language"])
    )


def mean_quality(defect: str, metric: str) -> float:
    frame = judged()
    rows = frame[(frame["defect"] == defect) & (frame["metric"] == metric) & (frame["status"] == "ok")]
    assert len(rows) >= 3, f"too few scored answers with {defect} under {metric}"
    return float(rows["quality"].mean())


@pytest.mark.parametrize(("defect", "metric"), [(d, m) for d, metrics in MUST_MOVE.items() for m in metrics])
def test_defect_moves_its_metric(defect: str, metric: str) -> None:
    fall = mean_quality("none", metric) - mean_quality(defect, metric)
    assert fall >= MUST_MOVE[defect][metric], f"{metric} falls by {fall:.2f} under {defect}"


@pytest.mark.parametrize(("defect", "metric"), [(d, m) for d, metrics in MUST_STAY.items() for m in metrics])
def test_defect_leaves_other_metrics_alone(defect: str, metric: str) -> None:
    fall = mean_quality("none", metric) - mean_quality(defect, metric)
    assert abs(fall) <= STAY, f"{metric} moves by {fall:.2f} under {defect}"


@pytest.mark.parametrize(("defect", "metric"), UNSEEN)
def test_defect_that_a_rule_cannot_see_is_not_seen(defect: str, metric: str) -> None:
    fall = mean_quality("none", metric) - mean_quality(defect, metric)
    assert abs(fall) <= STAY, f"{metric} moves by {fall:.2f} under {defect}: it sees it after all"


def test_rubrics_are_rated_by_features_that_their_reasons_name() -> None:
    frame = judged()
    rated = frame[frame["metric"].isin(BY_FEATURES) & (frame["status"] == "ok")]
    assert set(rated["metric"]) == set(BY_FEATURES) and (rated["score"] == rated["score"].round()).all()
    assert rated["reason"].str.startswith("surface features only: ").all()


def test_answers_without_a_defect_are_rated_well() -> None:
    frame = judged()
    clean = frame[(frame["defect"] == "none") & frame["metric"].isin(BY_FEATURES) & (frame["status"] == "ok")]
    assert len(clean) >= 6 * 30 and (clean["score"] >= 4).all()


@pytest.mark.parametrize("metric", CHECKED)
def test_every_answer_lands_in_its_band_or_is_named_as_not_seen(metric: str) -> None:
    bands = pd.read_csv(STUDY / "bands.csv", keep_default_na=False)
    frame = judged().merge(bands, on=["id", "variant", "metric"])
    frame = frame[(frame["metric"] == metric) & (frame["status"] == "ok")]
    outside = frame[(frame["score"] < frame["low"] - 1e-9) | (frame["score"] > frame["high"] + 1e-9)]
    unnamed = {(row.id, row.variant): row.score for row in outside.itertuples()} if len(outside) else {}
    assert {key: score for key, score in unnamed.items() if key not in BLIND} == {}
    assert len(frame) >= 60


def test_what_is_named_as_not_seen_is_not_seen() -> None:
    bands = pd.read_csv(STUDY / "bands.csv", keep_default_na=False)
    frame = judged().merge(bands, on=["id", "variant", "metric"])
    frame = frame[frame["metric"].isin(CHECKED) & (frame["status"] == "ok")]
    outside = frame[(frame["score"] < frame["low"] - 1e-9) | (frame["score"] > frame["high"] + 1e-9)]
    assert set(zip(outside["id"], outside["variant"], strict=True)) == set(BLIND)


def test_languages_without_rules_are_typed_failures() -> None:
    frame = judged()
    foreign = frame[frame["language"].isin(["zh", "ja"]) & (frame["metric"] != "f1")]
    assert (foreign["status"] == "failed").all() and foreign["error"].str.startswith("unsupported: language").all()
    assert (frame.loc[~frame["language"].isin(["zh", "ja"]), "status"] != "failed").all()


def test_refusals_have_no_claims_and_are_undefined_not_zero() -> None:
    frame = judged()
    refusals = frame[(frame["defect"] == "refusal") & frame["metric"].isin(["faithfulness", "noise_sensitivity"])]
    assert (refusals["status"] == "undefined").all() and len(refusals) >= 8
    hallucination = frame[(frame["defect"] == "refusal") & (frame["metric"] == "hallucination")]
    assert (hallucination["score"] == 0).all() and hallucination["flags"].map(lambda flags: "no_claims" in flags).all()
