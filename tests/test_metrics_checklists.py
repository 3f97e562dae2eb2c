"""Checklists, by judges whose replies are written here."""

from __future__ import annotations

from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.errors import InputError, ReplyError
from jurimetrics.judges.judge import JudgeError
from jurimetrics.metrics.rubrics import checklist
from jurimetrics.tasks.checklist import Check, CheckList
from jurimetrics.tasks.task import Items
from rubric_runs import (
    LETTER,
    RECORD,
    WANTED,
    row,
    run,
)
from scripted_judge import ScriptedJudge


def checks(task: CheckList, *met: str) -> dict[str, Any]:
    return {
        "checks": [{"at": at, "finding": f"finding {at}", "met": label} for at, label in enumerate(met, start=1)],
    }


def test_checklist_is_the_share_of_requirements_met() -> None:
    judge = ScriptedJudge("ada", lambda task, _: checks(task, "yes", "no", "yes"))
    found = row(run(judge, [LETTER]), "letter")
    assert found["score"] == pytest.approx(2 / 3) and not found["passed"]
    assert found["reason"] == "2 of 3 requirements met; not met: names the town (finding 2)"
    assert [check["met"] for check in found["details"]["checks"]] == [True, False, True]
    assert [check["requirement"] for check in found["details"]["checks"]] == WANTED
    assert len(judge.asked) == 1 and judge.asked[0].task.question == RECORD["question"]


def test_checklist_passes_where_all_is_met_unless_told_otherwise() -> None:
    judge = ScriptedJudge(
        "ada", lambda task, _: checks(task, *["yes"] * 2, "no" if len(task.requirements) == 3 else "yes")
    )
    lenient = checklist(WANTED, name="lenient", threshold=0.6)
    assert (LETTER.threshold, LETTER.range, LETTER.levels) == (1.0, (0, 1), (0, 1 / 3, 2 / 3, 1))
    assert row(run(judge, [lenient]), "lenient")["passed"]
    met = ScriptedJudge("ada", lambda task, _: checks(task, "yes", "yes", "yes"))
    assert row(run(met, [LETTER]), "letter")["passed"]


def test_checklist_of_more_than_ten_goes_out_in_chunks_of_ten() -> None:
    many = checklist([f"requirement {at}" for at in range(23)], name="many")
    judge = ScriptedJudge("ada", lambda task, _: checks(task, *["yes"] * (len(task.requirements) - 1), "no"))
    found = row(run(judge, [many]), "many")
    assert [len(request.task.requirements) for request in judge.asked] == [10, 10, 3]
    assert found["score"] == pytest.approx(20 / 23)


@pytest.mark.parametrize(
    ("said", "kind", "missing"),
    [
        ({"checks": [{"at": 1, "finding": "", "met": "yes"}]}, "incomplete", (2,)),
        ({"checks": [{"at": 1, "finding": "", "met": "yes"}, {"at": 2, "finding": "", "met": True}]}, "unparsed", (2,)),
        ({"checks": [{"at": 1, "finding": "", "met": "yes"}, {"at": 2, "finding": "", "met": "partly"}]}, "unparsed", (2,)),
        ({"checks": [{"at": 1, "finding": "", "met": "yes"}, {"at": 2, "met": "yes"}]}, "unparsed", (2,)),
        (
            {"checks": [{"at": at, "finding": "", "met": met} for at, met in ((1, "yes"), (2, "no"), (2, "yes"))]},
            "incomplete",
            (2,),
        ),
        ({"score": 1}, "unparsed", ()),
    ],
)  # fmt: skip
def test_checklist_wants_every_requirement_once_and_takes_only_yes_or_no(said: Any, kind: str, missing: Any) -> None:
    with pytest.raises(ReplyError) as caught:
        CheckList(("a", "b"), "It is old.").read(said)
    assert (caught.value.kind, caught.value.missing) == (kind, missing)


def test_checklist_drops_what_was_not_asked_and_counts_it() -> None:
    task = CheckList(("a",), "It is old.")
    said = {"checks": [{"at": 1, "finding": "x", "met": "Yes "}, {"at": 7, "finding": "x", "met": "no"}]}
    assert task.read(said) == Items((Check("a", "yes", "x"),), ("dropped:1",))


def test_checklist_reask_keeps_what_was_valid() -> None:
    task = CheckList(("a", "b"), "It is old.")
    with pytest.raises(ReplyError) as caught:
        task.read({"checks": [{"at": 1, "finding": "x", "met": "yes"}]})
    merged = task.merge(caught.value.valid, {"checks": [{"at": 2, "finding": "y", "met": "no"}]})
    assert [check.met for check in task.read(merged)] == [True, False]


def test_checklist_panel_votes_on_each_requirement_and_undecided_is_not_met() -> None:
    said = {"ada": ("yes", "yes", "no"), "bob": ("yes", "no", "no"), "cem": None, "dan": ("yes", "yes", "no")}

    def script(name: str) -> Any:
        labels = said[name]
        return lambda task, _: JudgeError("refused", "as scripted") if labels is None else checks(task, *labels)

    panel = jm.Panel([ScriptedJudge(name, script(name)) for name in said])
    found = row(run(panel, [LETTER]), "letter", "panel")
    # 3 of 4 asked met the first; 2 of 4 are no majority for the second; 3 of 4 reject the third.
    assert [check["met"] for check in found["details"]["checks"]] == [True, False, False]
    assert [check["undecided"] for check in found["details"]["checks"]] == [False, True, False]
    assert found["score"] == pytest.approx(1 / 3)
    assert (found["details"]["undecided_low"], found["details"]["undecided_high"]) == pytest.approx((1 / 3, 2 / 3))
    assert {"undecided", "member_failed"} <= set(found["flags"])
    assert found["details"]["panel"]["votes"][0]["votes"][1] == {"ada": "yes", "bob": "no", "cem": None, "dan": "yes"}
    # Entropy of 2 against 1 of the three that answered, over three requirements of which two are unanimous.
    assert found["disagreement"] == pytest.approx(0.9182958340544896 / 3)


def test_checklist_refuses_what_cannot_be_asked() -> None:
    for wanted, fault in (([], "needs requirements"), (["a", " "], "none may be blank"), (["a", "a"], "twice")):
        with pytest.raises(InputError, match=fault):
            checklist(wanted, name="letter")
    with pytest.raises(InputError, match="found one text"):
        checklist("names the year", name="letter")
    with pytest.raises(InputError, match="must not be blank"):
        checklist(["a"], name=" ")
    with pytest.raises(InputError, match="outside the range 0 to 1"):
        checklist(["a"], name="letter", threshold=3)


def test_checklist_that_does_not_fit_is_not_applicable() -> None:
    judge = ScriptedJudge("ada", lambda task, _: checks(task, "yes", "yes", "yes"), max_input_tokens=50)
    found = row(run(judge, [LETTER]), "letter")
    assert found["status"] == "not_applicable" and found["reason"].startswith("does not fit") and not judge.asked
