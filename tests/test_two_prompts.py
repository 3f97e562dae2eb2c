"""The study of two prompts: its answers are those of its prompts and questions, and its README says what comes out."""

from __future__ import annotations

import json
from pathlib import Path

import jurimetrics as jm
import pytest
from jurimetrics.errors import FAILURE_KINDS
from jurimetrics.experiment import compare_experiment, load_experiment

STUDY = Path(__file__).parents[1] / "experiments" / "two-prompts"
PROMPTS = {prompt.name: prompt for prompt in jm.load_prompts(STUDY / "prompts")}
QUESTIONS = {record.id: record for record in jm.load_records(STUDY / "questions.jsonl")}
ANSWERS = jm.load_records(STUDY / "answers.jsonl")


def test_every_prompt_answered_every_question() -> None:
    assert {answer.key for answer in ANSWERS} == {(name, prompt) for name in QUESTIONS for prompt in PROMPTS}
    for answer in ANSWERS:
        asked = QUESTIONS[answer.id]
        for field in ("question", "contexts", "reference", "metadata"):
            assert getattr(answer, field) == getattr(asked, field), (answer.id, field)


def test_an_answer_is_measured_or_a_typed_failure() -> None:
    for answer in ANSWERS:
        took = (answer.answer_latency_s, answer.answer_prompt_tokens, answer.answer_completion_tokens)
        if answer.answer_error is None:
            assert (answer.answer or "").strip() and all(each and each > 0 for each in took)
        else:
            assert answer.answer is None and answer.answer_error.partition(":")[0] in FAILURE_KINDS and set(took) == {None}
    assert 0 < sum(answer.answer_error is not None for answer in ANSWERS) < len(PROMPTS)


def test_prompts_are_those_that_the_answers_were_written_with() -> None:
    written_by = json.loads((STUDY / "written_by.json").read_text(encoding="utf-8"))
    assert {name: by["prompt_version"] for name, by in written_by.items()} == {
        name: prompt.version for name, prompt in PROMPTS.items()
    }
    assert {answer.answer_model for answer in ANSWERS} == {by["model"] for by in written_by.values()}
    assert "contexts" not in PROMPTS["closed_book"].places and "contexts" in PROMPTS["short"].places


@pytest.fixture(scope="module")
def comparison() -> jm.Comparison:
    experiment = load_experiment(STUDY)
    results = jm.evaluate(ANSWERS, experiment.metrics, jm.BaselineJudge(), store=None, progress=False)
    found = compare_experiment(experiment, results)
    assert found is not None
    return found


def test_readme_says_what_comes_out(comparison: jm.Comparison) -> None:
    text = (STUDY / "README.md").read_text(encoding="utf-8")
    decides = comparison.frame.query("family == 'primary' and b == 'wording'")
    for line in decides.itertuples():
        assert f"* {line.metric}: {line.verdict}\n" in text
    needed = decides.set_index("metric").loc["faithfulness", "needed"]
    assert f"about {round(needed, -1):.0f} questions" in text
    for name in ("short", "wording"):
        mine = [answer for answer in ANSWERS if answer.variant == name and answer.answer is not None]
        seconds = sum(answer.answer_latency_s or 0 for answer in mine) / len(mine)
        tokens = sum(answer.answer_completion_tokens or 0 for answer in mine) / len(mine)
        unit = " written tokens" if name == "wording" else ""
        assert f"{seconds:.2f} s and {tokens:.0f}{unit}" in text


def test_control_and_the_lost_answer_are_as_the_readme_says(comparison: jm.Comparison) -> None:
    lines = comparison.frame.set_index(["metric", "b"])
    # The mean of the pair is the mean of the control where all its answers are 0.
    assert lines.loc[("faithfulness", "closed_book"), "mean_b"] == 0
    assert lines.loc[("accuracy_clarity", "wording"), "only_a"] == 1
    assert lines.loc[("accuracy_clarity", "wording"), "worst_low"] > 0
