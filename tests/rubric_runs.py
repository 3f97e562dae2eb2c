"""One record under rubrics, by judges whose replies are written here."""

from __future__ import annotations

import json
from typing import Any

import jurimetrics as jm
from jurimetrics.metrics import resolve
from jurimetrics.metrics.metric import Metric
from jurimetrics.metrics.rubrics import Rubric, checklist
from jurimetrics.tasks.criteria import RateCriteria
from jurimetrics.tasks.rate import RateRubric

RECORD = {
    "id": "1",
    "question": "When did the lock open?",
    "answer": "It opened in 1931.",
    "contexts": ["The lock opened in 1931."],
    "reference": "In 1931.",
}
LIKERT = (
    "coherence",
    "fluency",
    "relevance",
    "groundedness",
    "similarity",
    "correctness",
    "comprehensiveness",
    "readability",
)
BUILT_IN = (*LIKERT, "accuracy_clarity")
NEEDS = {
    "coherence": (("answer",), ("question",)),
    "fluency": (("answer",), ()),
    "relevance": (("answer", "question"), ()),
    "groundedness": (("answer", "contexts"), ("question",)),
    "similarity": (("answer", "question", "reference"), ()),
    "correctness": (("answer",), ("question", "reference")),
    "comprehensiveness": (("answer",), ("question", "reference")),
    "readability": (("answer",), ()),
    "accuracy_clarity": (("answer", "reference"), ("question",)),
}


def one(name: str) -> Metric:
    return resolve(name)[0]


def program(name: str) -> Rubric:
    found = one(name).function
    assert isinstance(found, Rubric)
    return found


def rate_all(score: int = 4, **scores: int) -> Any:
    """A script that gives each criterion its score, asked alone or in one call."""

    def script(task: Any, repeat: int) -> Any:
        if task.kind == "criteria":
            return criteria(task, score, **scores)
        return {"findings": f"as scripted: {task.criterion}", "score": scores.get(task.criterion, score)}

    return script


def criteria(task: RateCriteria, score: int = 4, **scores: int) -> dict[str, Any]:
    return {
        "ratings": [
            {"criterion": at, "findings": f"as scripted: {each.criterion}", "score": scores.get(each.criterion, score)}
            for at, each in enumerate(task.rubrics, start=1)
        ]
    }


def run(judges: Any, metrics: Any, record: dict[str, Any] = RECORD, **options: Any) -> jm.Results:
    return jm.evaluate([record], list(metrics), judges, store=None, progress=False, **options)


def row(results: jm.Results, metric: str, judge: str = "ada") -> dict[str, Any]:
    frame = results.scores
    found = frame[(frame["metric"] == metric) & (frame["judge"] == judge)]
    assert len(found) == 1
    only: dict[str, Any] = found.iloc[0].to_dict()
    return only | {"details": json.loads(only["details"])}


WANTED = ["names the year", "names the town", "has no apology"]
LETTER = checklist(WANTED, name="letter", uses=["question"])
PAIR = ("coherence", "fluency")
CLEAR, KIND, TRUE = (RateRubric(name, f"Is it {name}?", "It is old.") for name in ("clear", "kind", "true"))
THREE = RateCriteria((CLEAR, KIND, TRUE))
