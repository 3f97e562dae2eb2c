"""Labels in: long and wide, every spelling of "not rated", and nothing read into a label that was not written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.records import load_labels


def rated(*labels: Any) -> list[float]:
    rows = [{"id": f"r{n}", "metric": "fluency", "label": label} for n, label in enumerate([*labels, "1"])]
    return load_labels(rows)["label"].tolist()[:-1]


def test_long_with_everything() -> None:
    rows = [
        {"Item": 7, "system": "v", "metric": " fluency ", "rater": "ann", "label": "3", "probability": ".5"},
        {"Item": 8, "system": None, "metric": "fluency", "rater": None, "label": 3.0, "rationale": "reads well"},
    ]
    frame = load_labels(rows)
    assert list(frame.columns) == ["id", "variant", "metric", "rater", "label", "probability", "rationale"]
    assert frame.drop(columns=["probability", "rationale"]).to_dict("records") == [
        {"id": "7", "variant": "v", "metric": "fluency", "rater": "ann", "label": 3.0},
        {"id": "8", "variant": "", "metric": "fluency", "rater": "human", "label": 3.0},
    ]
    assert frame["probability"].tolist()[0] == 0.5 and np.isnan(frame["probability"][1])
    assert frame["rationale"].isna().tolist() == [True, False]
    assert frame["label"].dtype == "float64" and frame.attrs == {"selection": None}


def test_wide_beside_records_without_ids_takes_the_records_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("answer,label:f1,Label: fluency\na,1,pass\nb,,fail\nc,0.5,N/A\n", encoding="utf-8-sig")
    assert load_labels(path)[["id", "metric", "label"]].to_numpy().tolist() == [
        ["1", "f1", 1.0],
        ["1", "fluency", 1.0],
        ["2", "fluency", 0.0],
        ["3", "f1", 0.5],
    ]


@pytest.mark.parametrize(
    "unrated",
    [
        *(None, float("nan"), pd.NA, pd.NaT, "", "  ", "-", "–"),
        *("NA", "n/a", "N/A", "nan", "None", "null", "Not Rated", "UNRATED"),
    ],
    ids=repr,
)
def test_not_rated_is_no_row(unrated: Any) -> None:
    # A blank taken for a category changes every agreement figure.
    assert rated(3, unrated, 4) == [3.0, 4.0]


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ([3, 3.0, "3", "3.0", " 3 ", np.int64(3)], [3.0] * 6),
        (["pass", "FAIL", "Yes", "no", "true", "False", True, np.bool_(False)], [1, 0, 1, 0, 1, 0, 1, 0]),
        (["yes", 0, "1"], [1, 0, 1]),
        (["-1", "1e1", ".5"], [-1, 10, 0.5]),
    ],
)
def test_labels_are_numbers(labels: list[Any], numbers: list[float]) -> None:
    assert rated(*labels) == numbers


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_a_number_comes_back_as_it_was(labels: list[float]) -> None:
    assert rated(*labels) == labels == rated(*map(repr, labels))


LONG = {"id": "a", "metric": "f1", "label": 1}


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([LONG | {"label": "good"}], {}, ['row 1, column "label"', "'good'"]),
        ([LONG | {"label": "4/5"}], {}, ["'4/5'"]),  # no first or last number is picked out
        ([LONG | {"label": "1,5"}], {}, ["'1,5'"]),
        ([LONG | {"label": float("inf")}], {}, ["inf"]),
        ([LONG | {"label": [1]}], {}, ["[1]"]),
        (
            [LONG, LONG | {"id": "b", "label": "pass"}, LONG | {"id": "c", "label": 4}],
            {},
            ["row 2", "row 3", "number 4"],
        ),
        ([LONG | {"id": 7}, LONG | {"id": "7", "label": 0}], {}, ["row 1 and row 2", "'7'", "'f1'", "'human'"]),
        ([{"id": 1, "label:f1": 1, "Label: f1": 0}], {}, ["row 1 and row 1"]),
        ([LONG | {"label:f1": 1}], {}, ["found both"]),
        ([LONG | {"metric": " "}], {}, ['column "metric"', "found none"]),
        ([{"id": "a", "label": 1}], {}, ['column "metric"', "found none"]),
        ([{"metric": "f1", "label": 1}], {}, ['column "id"', "found none"]),
        ([{"rater": "ann", "label:f1": 1}], {}, ['column "id"', "found none"]),
        ([{"id": 1, "label:": 1}], {}, ["name of a metric"]),
        ([{"id": 1, "score": 1}], {}, ["column for label", '"id", "score"']),
        ([LONG | {"label": "-"}], {}, ["no labels"]),
        ([], {}, ["no labels"]),
        (["text"], {}, ["row 1", "expected an object"]),
        ([LONG], {"selection": "all"}, ["selection", "'all'"]),
        ([LONG], {"selection": "probabilities"}, ['column "probability"', "found none"]),
        ([LONG | {"probability": 0}], {}, ['column "probability"', "above 0"]),
        ([LONG | {"probability": 1.5}], {}, ["at most 1"]),
        ([LONG], {"columns": {"rater": "annotator"}}, ['no column "annotator"']),
        ([LONG], {"columns": {"score": "label"}}, ['"score" means nothing']),
        ([LONG | {"item": "b"}], {}, ['"id", "item" mean the same']),
    ],
    ids=str,
)
def test_bad_labels_are_refused(rows: list[Any], options: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        load_labels(rows, **options)
    for part in said:
        assert part in str(caught.value)


def test_raters_variants_and_metrics_keep_labels_apart() -> None:
    rows = [LONG, LONG | {"rater": "b"}, LONG | {"variant": "v"}, LONG | {"metric": "fluency"}]
    assert len(load_labels(rows)) == 4


@pytest.mark.parametrize("selection", [None, "random", "probabilities", "by_label"])
def test_how_records_were_chosen_stays_with_the_labels(selection: Any) -> None:
    frame = load_labels([LONG | {"probability": 1}], selection=selection)
    assert frame.attrs["selection"] == selection
    assert load_labels(frame, selection=selection).equals(frame)


def test_chosen_columns_and_the_frame_stays_as_it_was() -> None:
    frame = pd.DataFrame({"doc": ["007", "8"], "score": [3, None], "who": ["x", "y"]}, index=[4, 4])
    before = frame.copy(deep=True)
    labels = load_labels(frame.assign(metric="f1"), columns={"id": "doc", "label": "score", "rater": "who"})
    assert labels[["id", "rater", "label"]].to_numpy().tolist() == [["007", "x", 3.0]]
    pd.testing.assert_frame_equal(frame, before)


SUMMEVAL = Path(__file__).parents[1] / ".." / "shared" / "data" / "summeval_experts_judges.csv"


@pytest.mark.skipif(not SUMMEVAL.is_file(), reason="the human labels of ../shared/data are not here")
def test_published_expert_labels() -> None:
    chosen = {"id": "doc_id", "variant": "system_id", "metric": "dimension", "label": "expert_0"}
    labels = load_labels(SUMMEVAL, columns=chosen)
    # 100 documents x 16 systems x 4 dimensions, all rated 1 to 5
    assert len(labels) == 6400 and labels["label"].isin([1, 2, 3, 4, 5]).all()
    assert labels.groupby("metric")["id"].nunique().tolist() == [100] * 4
