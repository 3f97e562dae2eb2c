"""The task of writing an answer: messages as they are, any text as the answer, nothing asked in other words."""

from __future__ import annotations

import pytest
from jurimetrics.errors import ReplyError
from jurimetrics.judges.bodies import request_body
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.judge import ReAsk, Request
from jurimetrics.judges.session import Learned
from jurimetrics.tasks.task import DoesNotFit, Rule, task_key
from jurimetrics.tasks.write import WriteAnswer

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who built it? {x}"}]


def test_messages_go_through_unchanged() -> None:
    task = WriteAnswer(ASKED)
    assert task.messages() == task.messages("German") == ASKED
    assert task.schema == {} and task.kind == "write" and not task.shared


def test_key_goes_by_the_words_alone() -> None:
    other = [*ASKED[:1], {"role": "user", "content": "Who built it? {y}"}]
    swapped = [{"role": "user", "content": "Be brief."}, ASKED[1]]
    keys = {task_key(WriteAnswer(messages)) for messages in (ASKED, list(ASKED), other, swapped)}
    assert len(keys) == 3 and WriteAnswer(ASKED) == WriteAnswer(list(ASKED))


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The monks.", "The monks."),
        ("  two\n lines ", "  two\n lines "),
        ('{"answer": "x"}', '{"answer": "x"}'),
        ("<think>It may be 5.</think>\n\nThe monks.\n", "The monks."),
        ("\n<THINKING>a</THINKING>b", "b"),
        ("I was told to think.</think>The monks.", "The monks."),
        ("Too little\nsaid.\n\n  </think>\n\nThe monks.", "The monks."),
        ("A line ends it: </think>, so be it.", "A line ends it: </think>, so be it."),
        (
            "Write `</think>` or '</think>' (</think>) [</think>].",
            "Write `</think>` or '</think>' (</think>) [</think>].",
        ),
        ("I may say `</think>`.\n</think>\nThe monks.", "The monks."),
        ("The tag <think> opens, </think> closes.", "The tag <think> opens, </think> closes."),
        ("0", "0"),
    ],
)
def test_any_text_is_an_answer_without_the_thinking_before_it(reply: str, answer: str) -> None:
    assert WriteAnswer(ASKED).read(reply) == answer


@pytest.mark.parametrize(
    "reply", ["", " \n\u200b", None, 5, {"answer": "x"}, "<think>so</think> ", "<think>never ends"]
)
def test_blank_and_other_things_are_unparsed(reply: object) -> None:
    with pytest.raises(ReplyError) as caught:
        WriteAnswer(ASKED).read(reply)
    assert caught.value.kind == "unparsed"


def test_asked_again_in_the_same_words() -> None:
    judge, task = ChatJudge("m", base_url="http://127.0.0.1:9/v1"), WriteAnswer(ASKED)
    first, _ = request_body(judge, Request(task), Learned())
    again, _ = request_body(judge, Request(task, reask=ReAsk("the reply is blank")), Learned())
    assert first == again and "response_format" not in first


def test_prompt_is_never_cut() -> None:
    task = WriteAnswer(ASKED)
    assert task.split().parts == (task,) and task.split(100).parts == (task,)
    with pytest.raises(DoesNotFit, match="max_input_tokens"):
        task.split(5)


def test_nobody_votes_on_texts() -> None:
    with pytest.raises(TypeError):
        WriteAnswer(ASKED).vote({"a": "x"}, Rule())
