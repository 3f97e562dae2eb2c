"""Scores of anybody's judges as results: what was said beside a score is kept, and the answers may come along."""

from __future__ import annotations

import json
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics.errors import InputError


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": ["1", "2"], "metric": "m", "judge": "j", "score": [0.2, 0.8]} | columns)


def test_flags_details_and_disagreement_are_kept() -> None:
    given = frame(flags=[["split", "undecided"], None], details=['{"claims": 3}', None], disagreement=[0.5, None])
    found = jm.Results.from_frame(given).scores
    assert found["flags"].tolist() == [["split", "undecided"], []]
    assert json.loads(found.loc[0, "details"]) == {"claims": 3}
    assert found["disagreement"].fillna(-1).tolist() == [0.5, -1]


def test_a_score_frame_comes_back_as_it_was() -> None:
    records = [{"id": i, "answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]} for i in range(3)]
    made = jm.evaluate(records, ["faithfulness", "f1"], jm.BaselineJudge(), store=None, progress=False)
    again = jm.Results.from_frame(made.scores, records=jm.load_records(records))
    kept = ["id", "metric", "judge", "score", "status", "reason", "error", "flags", "details"]
    pd.testing.assert_frame_equal(again.scores[kept], made.scores[kept])
    assert again.records["answer"].tolist() == ["Madrid is in Spain."] * 3


def test_a_csv_of_scores_comes_back(tmp_path: Any) -> None:
    made = frame(flags=["split,undecided", ""], details=["", '{"a": 1}'])
    made.to_csv(tmp_path / "scores.csv", index=False)
    found = jm.Results.from_frame(pd.read_csv(tmp_path / "scores.csv")).scores
    assert found["flags"].tolist() == [["split", "undecided"], []]
    assert json.loads(found.loc[1, "details"]) == {"a": 1}


def test_the_group_of_a_record_is_that_of_its_scores() -> None:
    records = [jm.Record("1", group="doc"), jm.Record("2", group="doc"), jm.Record("3")]
    found = jm.Results.from_frame(frame(), records=records)
    assert found.scores["group"].tolist() == ["doc", "doc"]
    assert found.records["id"].tolist() == ["1", "2"], "what has no score is not in the results"


def test_a_column_that_comes_twice_is_refused() -> None:
    twice = pd.concat([frame(variant=["a", "b"]), pd.DataFrame({"variant": ["c", "d"]})], axis=1)
    with pytest.raises(InputError, match=r"scores need one column 'variant'; found: .*variant"):
        jm.Results.from_frame(twice)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        *((given, "grade: expected a mapping with range, higher_is_better, threshold, or a metric, found")
          for given in (5, (0, 1), "0 to 1")),
        *(({"range": given}, "grade: a range is two numbers, the lower first, not")
          for given in (5, "01", {0, 1}, (1, 0), (0, 1, 2), (0, float("inf")), (0, None), ("low", "high"))),
        *(({"range": (0, 1), "higher_is_better": given}, "grade: higher_is_better must be True or False, not")
          for given in ("false", "no", 0, None)),
    ],
)  # fmt: skip
def test_what_is_declared_of_a_metric_is_taken_as_it_is_meant_or_refused(declared: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        jm.Results.from_frame(frame(metric="grade", score=[0.5, 1]), {"grade": declared})


def test_computed_is_no_name_of_a_judge_beside_others() -> None:
    alone = jm.Results.from_frame(frame(judge="computed"))
    assert alone.summary()["judge"].tolist() == ["computed"]
    with pytest.raises(InputError, match="m: 'computed' stands for scores that no judge gave, and 'ann' gave some too"):
        jm.Results.from_frame(frame(judge=["computed", "ann"]))


def test_a_direction_may_be_one_of_numpy() -> None:
    declared = {"grade": {"range": np.array([0, 1]), "higher_is_better": np.bool_(False)}}
    found = jm.Results.from_frame(frame(metric="grade", score=[0.5, 1]), declared).settings["metrics"]["grade"]
    assert found["range"] == [0, 1] and found["higher_is_better"] is False


@pytest.mark.parametrize(
    ("columns", "records", "says"),
    [
        ({"flags": [[1], None]}, None, "row 1, column 'flags': expected flags, words, found 1"),
        ({"details": ["no json", None]}, None, "row 1, column 'details': expected an object as JSON text"),
        ({"details": ["[1]", None]}, None, "row 1, column 'details': expected an object as JSON text"),
        ({"disagreement": [-1, None]}, None, "row 1, column 'disagreement': expected a number of at least 0"),
        ({}, [jm.Record("1")], "records: none has the id '2' and variant '' of a score"),
        ({"group": ["x", "2"]}, [jm.Record("1"), jm.Record("2")], "'1' has two groups: '1' in its record and 'x'"),
    ],
)
def test_what_cannot_be_used_is_refused(columns: Any, records: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        jm.Results.from_frame(frame(**columns), records=records)
