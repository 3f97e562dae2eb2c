"""Judges with known leanings, and the records that show them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jurimetrics as jm
from jurimetrics.probes import words
from scripted_judge import ScriptedJudge

QUICKSTART = Path(__file__).parents[1] / "experiments" / "quickstart" / "records.jsonl"
QUIET: dict[str, Any] = {"store": None, "progress": False}
ANSWERS = {
    "en": "The lock was built in {year}. It lifts boats by four metres.",
    "de": "Die Schleuse wurde {year} gebaut. Sie hebt die Boote um vier Meter.",
    "fr": "L'écluse a été construite en {year}. Elle lève les bateaux de quatre mètres.",
    "es": "La esclusa fue construida en {year}. Levanta los barcos cuatro metros.",
}
NOTE = jm.rubric("Note: how useful the answer is.", name="note", scale=(1, 5), threshold=3)


def records(number: int = 40, **more: Any) -> list[dict[str, Any]]:
    languages = list(ANSWERS)
    return [
        {"id": str(at), "answer": ANSWERS[languages[at % 4]].format(year=1800 + at), **more} for at in range(number)
    ]


def rates(points: Callable[[str], int]) -> Any:
    """A script that gives a base by the year in the answer (2 or 3) and `points` of the answer's text."""

    def script(task: Any, repeat: int) -> Any:
        year = int(next(word for word in task.answer.replace(".", " ").split() if word.isdigit()))
        return {"findings": "as scripted", "score": min(5, 2 + year % 2 + points(task.answer))}

    return script


def fair(answer: str) -> int:
    return 0


LIKES_LENGTH = ScriptedJudge("long", rates(lambda answer: int(len(answer) > 100)))
LIKES_LISTS = ScriptedJudge("lists", rates(lambda answer: int(answer.startswith("- "))))
LIKES_PLEAS = ScriptedJudge("soft", rates(lambda answer: 2 * any(plea in answer for plea in words.PLEA.values())))
OBEYS = ScriptedJudge("obeys", rates(lambda answer: 2 * any(order in answer for order in words.ORDER.values())))
FAIR = ScriptedJudge("fair", rates(fair))
