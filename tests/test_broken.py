"""Faults found by attacking the toolkit from outside, each kept as the smallest thing that broke it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jurimetrics import evaluate
from jurimetrics.errors import InputError
from jurimetrics.frames import to_json
from jurimetrics.judges.evidence import supported_language
from jurimetrics.judges.judge import JudgeError
from jurimetrics.judges.panel import Panel
from jurimetrics.judges.replies import parse_reply
from jurimetrics.metrics.metric import Metric, Score, metric
from jurimetrics.metrics.prompts import prompts_of
from jurimetrics.metrics.rubrics import checklist, rubric
from jurimetrics.records import load_records
from jurimetrics.results import Results
from jurimetrics.tasks.claims import ExtractClaims
from jurimetrics.tracking.log import log_run
from scripted_judge import ScriptedJudge, answer_all

ANSWER = "The tower is old. It stands in Paris."
RECORDS = [{"id": name, "answer": ANSWER, "contexts": [ANSWER]} for name in ("1", "2", "3")]


def program(function: Callable[..., Awaitable[Any]], *, judged: bool = True) -> Metric:
    return metric(needs=["answer"], range=(0, 1), judged=judged, name="own")(function)


def scored(*metrics: Metric | str, records: list[dict[str, Any]] | None = None) -> Results:
    judge = ScriptedJudge("ada", answer_all)
    return evaluate(RECORDS if records is None else records, list(metrics), judge, store=None, progress=False)


class Speechless:
    """What cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "made",
    [
        lambda: Score(0.5, details=None),  # type: ignore[arg-type]
        lambda: Score(0.5, details="words"),  # type: ignore[arg-type]
        lambda: Score(0.5, flags="abc"),  # type: ignore[arg-type]
        lambda: Score(0.5, flags=None),  # type: ignore[arg-type]
        lambda: Score(0.5, flags=(1, "a")),  # type: ignore[arg-type]
        lambda: Score(0.5, flags=(["a"],)),  # type: ignore[arg-type]
        lambda: Score(0.5, None),  # type: ignore[arg-type]
        lambda: Score(0.5, Speechless()),  # type: ignore[arg-type]
        lambda: Score(None, status="failed"),  # type: ignore[arg-type]
    ],
)
def test_a_score_of_odd_parts_fails_its_row_and_no_other(made: Callable[[], Score]) -> None:
    async def own(record: Any, ask: Any) -> Score:
        return made() if record.id == "2" else Score(1.0)

    scores = scored(program(own)).scores
    assert scores["status"].tolist() == ["ok", "failed", "ok"]
    assert scores["error"][1].startswith("crash: ")


def test_details_may_be_a_list_of_what_was_found() -> None:
    async def own(record: Any, ask: Any) -> Score:
        return Score(0.5, details=await ask(ExtractClaims(record.answer)))

    scores = scored(program(own)).scores
    assert scores["status"].tolist() == ["ok"] * 3
    assert [one["text"] for one in json.loads(scores["details"][0])["items"]] == [
        "The tower is old.",
        "It stands in Paris.",
    ]


def test_details_that_cannot_be_written_do_not_end_the_run() -> None:
    nested: dict[str, Any] = {}
    nested["self"] = nested
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for odd in (Speechless(), 10**5000, {10**5000: 1}, nested, b"x", {"\ud800": float("nan")}, deep):
        assert list(json.loads(to_json({"found": odd}))), "what cannot be written is said, not left out"


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Outside(BaseException):
    pass


@pytest.mark.parametrize("judged", [True, False])
@pytest.mark.parametrize("error", [MuteError(), Outside("x"), SystemExit(2), asyncio.CancelledError("own")])
def test_whatever_a_metric_raises_fails_its_own_row(error: BaseException, judged: bool) -> None:
    async def own(record: Any, ask: Any) -> Score:
        if record.id == "2":
            raise error
        return Score(1.0)

    scores = scored(program(own, judged=judged)).scores
    assert scores["status"].tolist() == ["ok", "failed", "ok"]
    assert scores["error"][1].startswith(f"crash: {type(error).__name__}")


def test_a_task_that_a_metric_cancelled_itself_loses_no_row() -> None:
    async def own(record: Any, ask: Any) -> Score:
        helper = asyncio.create_task(asyncio.sleep(60))
        helper.cancel()
        await helper
        return Score(1.0)

    scores = scored(program(own, judged=False), "f1", records=[{"answer": "a", "reference": "a"}]).scores
    assert scores.set_index("metric")["status"].to_dict() == {"own": "failed", "f1": "ok"}


def test_a_metric_may_raise_an_error_of_any_length() -> None:
    async def own(record: Any, ask: Any) -> Score:
        raise ValueError("x" * 1_000_000)

    assert all(len(error) < 3_000 for error in scored(program(own)).scores["error"])


def test_a_task_group_in_a_metric_that_bears_no_placeholder_does_not_cancel_the_evaluation() -> None:
    async def number(record: Any) -> int:
        return int(record.id)

    async def own(record: Any, ask: Any) -> Score:
        async with asyncio.TaskGroup() as group:
            claims = group.create_task(ask(ExtractClaims(record.answer)))
            group.create_task(number(record))
        return Score(len(claims.result()) / 2)

    scores = scored(program(own)).scores
    assert scores["score"].tolist() == [1.0] * 3


def test_what_is_no_task_fails_its_row() -> None:
    async def own(record: Any, ask: Any) -> Score:
        return Score(await ask("is it good?"))

    assert scored(program(own)).scores["status"].tolist() == ["failed"] * 3


def test_the_prompts_of_a_metric_that_asks_in_parallel_are_shown_and_nothing_of_it_stays() -> None:
    left = []

    async def own(record: Any, ask: Any) -> Score:
        left.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.gather(ask(ExtractClaims(record.answer)), ask(ExtractClaims(record.answer, record.question)))
        await asyncio.sleep(3600)
        raise AssertionError

    async def looked() -> list[str]:
        return list(prompts_of([program(own)]))

    names = asyncio.run(looked())
    assert [name.partition("@")[0] for name in names] == ["claims", "claims"]
    assert all(task.cancelled() for task in left)


def test_the_time_to_read_a_reply_of_many_objects_grows_with_its_length() -> None:
    text = '{"a": 1} ' * 60_000 + '{"score": 4}'
    started = time.perf_counter()
    assert parse_reply(text, lambda data: data["score"], ("score",))[1] == 4
    # Where every object cost a look at the whole text, this took a minute.
    assert time.perf_counter() - started < 15


class Circle(dict[str, Any]):
    """A dictionary that holds itself."""

    def __init__(self) -> None:
        super().__init__()
        self["self"] = self


@pytest.mark.parametrize(
    ("cells", "blamed"),
    [
        ({"contexts": np.array("one document")}, "contexts"),
        ({"contexts": [10**5000]}, "contexts"),
        ({"id": 10**5000}, "id"),
        ({"answer": 10**5000}, "answer"),
        ({"latency_s": 10**5000}, "latency_s"),
        ({"prompt_tokens": 10**30}, "prompt_tokens"),
        ({"answer": Speechless()}, "answer"),
        ({"notes": Circle()}, "metadata"),
        ({"metadata": json.loads("[" * 900 + "]" * 900)}, None),
        ({"notes": json.loads("[" * 900 + "]" * 900)}, None),
    ],
)
def test_a_cell_that_cannot_be_held_is_refused_by_name_or_kept(cells: dict[str, Any], blamed: str | None) -> None:
    try:
        load_records([{"answer": "a", **cells}])
    except InputError as error:
        # How deep is too deep is the interpreter's affair; what else can be held is kept.
        assert "row 1" in str(error) and (blamed or "metadata") in str(error)
    else:
        assert blamed is None


def test_numbered_columns_can_be_mapped_and_a_list_is_no_mapping() -> None:
    frame = pd.DataFrame({0: ["first"], 1: ["other"]})
    assert load_records(frame, columns={"answer": 0})[0].answer == "first"  # type: ignore[dict-item]
    with pytest.raises(InputError, match="expected a mapping"):
        load_records(frame, columns=["answer"])  # type: ignore[arg-type]


def test_a_path_that_no_system_takes_is_bad_input() -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_records("a" * 5000 + ".csv")


def ada(task: Any, repeat: int = 0) -> Any:
    return answer_all(task, repeat, score=5)


def three(**third: Any) -> list[Any]:
    return [
        ScriptedJudge("ada", ada),
        ScriptedJudge("bea", ada),
        ScriptedJudge("cai", third.pop("script", ada), **third),
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"extractor": "ada"},
        {"extractor": Panel(three())},
        {"extractor": ScriptedJudge("panel", ada)},
        {"extractor": ScriptedJudge("ada", ada, model="another")},
        {"quorum": True},
        {"quorum": 2.0},
        {"quorum": "2"},
        {"rule": "weighted", "weights": {"ada": 1, "bea": 1, "cai": float("inf")}},
        {"rule": "weighted", "weights": {"ada": 1, "bea": 1, "cai": "2"}},
        {"rule": "weighted", "weights": {"ada": 1, "bea": 1, "cai": True}},
    ],
)
def test_a_panel_refuses_what_it_cannot_count_or_name_apart(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Panel(three(), **settings)


@pytest.mark.parametrize("judges", [[None], ["ada"], [Panel(three(), name="inner")], None, []])
def test_a_panel_has_judges_and_nothing_else(judges: Any) -> None:
    with pytest.raises(InputError, match="panel"):
        Panel(judges)


def declining(task: Any, repeat: int) -> Any:
    return JudgeError("refused", "no")


@pytest.mark.parametrize("third", [{"script": declining}, {"max_input_tokens": 10}])
@pytest.mark.parametrize("vote_on", ["verdicts", "scores"])
def test_a_member_that_fails_or_cannot_be_shown_the_text_withholds_its_vote(vote_on: Any, third: Any) -> None:
    panel = Panel(three(**third), vote_on=vote_on)
    scores = evaluate(RECORDS[:1], ["fluency"], panel, store=None, progress=False).scores.set_index("judge")
    assert (scores.loc["panel", "status"], scores.loc["panel", "score"]) == ("ok", 5.0)
    assert "member_failed" in list(scores.loc["panel", "flags"])


def test_a_record_that_lacks_a_field_is_not_applicable_to_a_panel_too() -> None:
    panel = Panel(three(), vote_on="scores")
    scores = evaluate([{"question": "q?"}], ["fluency"], panel, store=None, progress=False).scores
    assert set(scores["status"]) == {"not_applicable"}


def given(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": ["1", "2"], "metric": "own", "judge": "ann", "score": [0.5, None], **columns})


def test_recorded_scores_keep_what_was_not_applicable() -> None:
    results = Results.from_frame(given(status=["ok", "not_applicable"]))
    assert results.scores["status"].tolist() == ["ok", "not_applicable"]
    again = Results.from_frame(results.scores)
    assert again.scores["status"].tolist() == ["ok", "not_applicable"]


@pytest.mark.parametrize(
    "status", [["failed", None], ["undefined", None], ["error", None], ["ok", "ok"], ["ok", "failed"]]
)
def test_recorded_scores_whose_status_says_otherwise_are_refused(status: list[str | None]) -> None:
    with pytest.raises(InputError, match="does not go with"):
        Results.from_frame(given(status=status))


def test_declarations_and_thresholds_are_mappings() -> None:
    with pytest.raises(InputError, match="mapping"):
        Results.from_frame(given(), ["own"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mapping"):
        Results.from_frame(given()).with_thresholds([0.5])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ['{"metrics": {"own": null}}', '{"metrics": {"own": {"threshold": "high"}}}', "[" * 100_000]
)
def test_damaged_settings_are_bad_input(tmp_path: Path, text: str) -> None:
    folder = Results.from_frame(given()).save(tmp_path / "kept")
    (folder / "settings.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"settings\.json"):
        Results.load(folder)


@pytest.mark.parametrize("nothing", ["\u200b", "\ufeff", " \u2060\n", "\u00ad"])
def test_contexts_of_zero_width_characters_are_no_contexts(nothing: str) -> None:
    judge = ScriptedJudge("ada", answer_all)
    record = {"question": "q?", "answer": ANSWER, "contexts": [nothing, " "], "reference": nothing}
    scores = evaluate([record], ["rag", "groundedness"], judge, store=None, progress=False).scores
    assert set(scores["status"]) == {"not_applicable"}
    assert judge.asked == []


@pytest.mark.parametrize(
    "declared",
    [
        {"scale": ("1", "5")},
        {"scale": (1, 2, 3)},
        {"scale": None},
        {"scale": (float("nan"), 1)},
        {"scale": (0, float("inf"))},
        {"scale": (True, 5)},
        {"levels": {"1": "poor"}},
        {"levels": {1: None}},
        {"levels": {1: " "}},
        {"levels": ["poor", "good"]},
        {"threshold": "3"},
        {"threshold": True},
        {"name": "\ud800"},
        {"name": "\u200b"},
        {"name": 7},
        {"text": None},
    ],
)
def test_a_rubric_declared_in_other_types_is_refused(declared: dict[str, Any]) -> None:
    given = {"text": "The answer is polite.", "name": "polite", **declared}
    with pytest.raises(InputError):
        rubric(given.pop("text"), **given)


@pytest.mark.parametrize("requirements", [None, [1], [None], {"names a date"}, 5])
def test_a_checklist_of_other_types_is_refused(requirements: Any) -> None:
    with pytest.raises(InputError):
        checklist(requirements, name="letter")


@pytest.mark.parametrize("limits", [("0", "1"), (1, 0), (0, float("inf")), 5, None, (0, 1, 2)])
def test_a_metric_of_no_range_is_refused(limits: Any) -> None:
    with pytest.raises(InputError):
        metric(needs=["answer"], range=limits)


@pytest.mark.parametrize("out", ["plain.txt/rows", "x" * 300])
def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path: Path, out: str) -> None:
    (tmp_path / "plain.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        evaluate(RECORDS, ["fluency"], ScriptedJudge("ada", answer_all), store=None, progress=False, out=tmp_path / out)
    assert (tmp_path / "plain.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "settings", [{"experiment": None}, {"experiment": 5}, {"traces": True}, {"traces": 1.5}, {"traces": "9"}]
)
def test_what_is_no_name_and_no_number_is_refused_before_anything_is_logged(project: Path, settings: Any) -> None:
    with pytest.raises(InputError):
        log_run(Results.from_frame(given()), **{"experiment": "study", **settings})
    assert not (project / "mlruns").exists()


def test_a_long_text_is_not_split_for_each_of_its_sentences() -> None:
    long = "U.S.A. Mr. Dr. e.g. " * 50_000
    started = time.perf_counter()
    for _ in range(500):
        supported_language("What is it?", long)
    # Where the whole text was split each time, this took half a minute.
    assert time.perf_counter() - started < 10
