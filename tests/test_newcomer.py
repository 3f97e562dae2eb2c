"""What somebody meets who comes new to the toolkit: silent surprises that must not be silent, or not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from jurimetrics.metrics.metric import Score
from jurimetrics.project import project_folder

CSV = (
    "user_input,response,retrieved_contexts,ground_truth,system\n"
    'Where?,Oslo is in Norway.,"[""Oslo is in Norway."", ""Bread is baked.""]",In Norway.,A\n'
    'Where?,Oslo is in Chile.,"[""Oslo is in Norway."", ""Bread is baked.""]",In Norway.,B\n'
)


def test_csv_gives_the_same_records_by_path_and_by_frame(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(CSV, encoding="utf-8")
    by_path, by_frame = jm.load_records(path), jm.load_records(pd.read_csv(path))
    assert by_path == by_frame
    assert by_frame[0].contexts == ("Oslo is in Norway.", "Bread is baked.")


def test_lone_string_in_a_frame_is_one_document() -> None:
    frame = pd.DataFrame({"answer": ["a", "b"], "contexts": ["One document.", "[sic] another, in brackets"]})
    assert [record.contexts for record in jm.load_records(frame)] == [
        ("One document.",),
        ("[sic] another, in brackets",),
    ]


def test_variants_that_share_no_id_are_told(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(CSV, encoding="utf-8")
    results = jm.evaluate(path, ["f1"], jm.BaselineJudge(), store=None)
    assert any("No id has answers of two variants" in note for note in results.notes())
    paired = jm.evaluate(pd.read_csv(path).assign(id="1"), ["f1"], jm.BaselineJudge(), store=None)
    assert not any("No id has answers" in note for note in paired.notes())


def test_metric_that_is_not_async_is_refused_where_it_is_written() -> None:
    with pytest.raises(jm.InputError, match="a metric is an async function"):

        @jm.metric(needs=["answer"], range=(0, 1))
        def short(record: Any, ask: Any) -> Score:  # type: ignore[arg-type]
            return Score(1.0)


def test_misspelt_metric_gets_a_suggestion() -> None:
    with pytest.raises(jm.InputError, match="did you mean 'faithfulness'"):
        jm.evaluate([{"answer": "a"}], ["faithfullness"], jm.BaselineJudge(), store=None)


def test_plan_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    record = {"answer": "Oslo is in Norway.", "contexts": ["Oslo is in Norway."]}
    planned = jm.plan([record], ["faithfulness"], jm.ChatJudge("gpt-4.1-mini"), store=None)
    assert planned.totals.calls == 2
    with pytest.raises(jm.InputError, match="OPENAI_API_KEY"):
        jm.evaluate([record], ["faithfulness"], jm.ChatJudge("gpt-4.1-mini"), store=None)


def test_root_of_the_disk_is_no_project(tmp_path: Path) -> None:
    assert project_folder(Path(tmp_path.anchor) / "nowhere" / "here") == Path(tmp_path.anchor) / "nowhere" / "here"
    (tmp_path / "mlruns").mkdir()
    assert project_folder(tmp_path / "notebooks") == tmp_path
