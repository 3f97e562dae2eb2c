"""Records without an answer are told wherever the means are read."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.display import results_html, summary_text
from jurimetrics.report.page import report
from jurimetrics.results.unanswered import unanswered_notes

NOTE = (
    "A: 3 of 10 records have no answer (2 truncated); no metric that needs one scores them, and its means are over the "
    "others."
)


def evaluated(metrics: list[str], lost: dict[int, str | None]) -> jm.Results:
    """Ten records under A, of which `lost` have no answer, and ten whole ones under B."""
    records: list[dict[str, Any]] = []
    for at in range(10):
        whole = {"id": str(at), "question": "Where?", "contexts": [f"Madrid has {at + 2} parks."]}
        answer = f"Madrid has {at + 2} parks."
        mine = {"answer_error": lost[at]} if at in lost else {"answer": answer}
        records += [{**whole, "variant": "A", **mine}, {**whole, "variant": "B", "answer": answer}]
    return jm.evaluate(records, metrics, jm.BaselineJudge(), store=None)


LOST = {1: "truncated: after 10 tokens", 4: "truncated: after 10 tokens", 7: None}


def test_it_stands_beside_the_means_wherever_they_are_read(tmp_path: Path) -> None:
    found = evaluated(["faithfulness"], LOST)
    mine = found.summary().set_index("variant").loc["A"]
    assert (mine["mean"], mine["n"], mine["not_applicable"]) == (1.0, 7, 3)  # what is scored is as it was
    assert [note for note in found.notes() if "no answer" in note] == [NOTE]
    assert NOTE in found.summary().attrs["notes"]
    assert NOTE in summary_text(found, 200) and escape(NOTE) in results_html(found)
    page = report(found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert NOTE in page.partition('id="mind"')[2].partition("</section>")[0]
    saved = jm.Results.load(found.save(tmp_path / "saved"))
    assert NOTE in saved.notes()


def test_nothing_is_said_where_every_record_has_one_or_no_metric_needs_it() -> None:
    assert not [note for note in evaluated(["faithfulness"], {}).notes() if "no answer" in note]
    records = [{"id": "1", "question": "Where is Madrid?", "contexts": ["Madrid is in Spain."]}]
    found = jm.evaluate(records, ["context_precision"], jm.BaselineJudge(), store=None)
    assert not [note for note in found.notes() if "no answer" in note]


def test_one_record_without_a_name_of_its_variant() -> None:
    records = [
        {"id": "1", "answer_error": "timeout: 60 s", "contexts": ["a"]},
        {"id": "2", "answer": "a", "contexts": ["a"]},
    ]
    found = jm.evaluate(records, ["faithfulness"], jm.BaselineJudge(), store=None)
    said = "1 of 2 records has no answer (1 timeout); no metric that needs one scores it, and the means are over the others."
    assert said in found.notes()


def test_many_variants_are_cut_and_said_so() -> None:
    import pandas as pd

    names = [f"v{at}" for at in range(12)]
    rows = pd.DataFrame({"id": "1", "variant": names, "metric": "m", "status": "not_applicable"})
    lacking = pd.DataFrame({"id": "1", "variant": names, "answer_error": None})
    found = unanswered_notes(rows, lacking, {"metrics": {"m": {"needs": ["answer"]}}})
    assert len(found) == 11 and found[-1] == "2 more variants with records without an answer."


@pytest.mark.parametrize("status", ["ok", "not_applicable"])
def test_a_score_given_elsewhere_needs_no_text(status: str) -> None:
    import pandas as pd

    rows = pd.DataFrame({"id": ["1"], "variant": "a", "metric": "m", "status": status})
    lacking = pd.DataFrame({"id": ["1"], "variant": "a", "answer_error": None})
    assert bool(unanswered_notes(rows, lacking, {"metrics": {"m": {"needs": ["answer"]}}})) is (status != "ok")
