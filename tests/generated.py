"""Records, variants and answers that the tests of generation share."""

from __future__ import annotations

from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.answers import Answers
from jurimetrics.prompts import Prompt
from jurimetrics.variants.variant import Variant
from scripted_server import ScriptedServer, reply

SHORT = Prompt("short", "In short: {question}", system="Be kind.", tags=("qa",))


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.limits.FIRST_WAIT_S", 0.01)


def records(count: int = 3, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": str(at),
            "question": f"Who built mill {at}?",
            "contexts": [f"Monks built mill {at}."],
            "reference": "Monks.",
        }
        | more
        for at in range(count)
    ]


def echo(call: Any) -> Any:
    return reply(f"{call.model}: {call.prompt}", usage=(len(call.prompt) // 4, 7))


def variant(server: ScriptedServer, name: str = "a", prompt: Any = SHORT, model: str = "m", **settings: Any) -> Variant:
    return Variant(name, prompt, model, **{"base_url": server.url, "price": (1, 2), "timeout": 5.0, **settings})


def only(answers: Answers) -> jm.Record:
    assert len(answers) == 1
    return answers[0]
