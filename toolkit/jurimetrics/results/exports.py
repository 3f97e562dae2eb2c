"""Results in the shapes of two services, record by record: Azure's flat evaluator output, Pinecone's alignment reply."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.results.reading import COMPUTED

AZURE = ("relevance", "groundedness", "fluency", "coherence", "similarity")
ALIGNMENT = ("alignment", "alignment_completeness", "alignment_correctness")
_BATCHED = "(batched)"
_STATUS = {"ok": "completed", "undefined": "skipped", "not_applicable": "skipped", "failed": "error"}
_RESULT = {"undefined": "not_applicable", "not_applicable": "not_applicable", "failed": "error"}


class Chosen(NamedTuple):
    """The rows of one judge (or panel) and one repeat: `rows[id, variant][metric]`, a row as a mapping."""

    judge: str
    rows: Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]]


def azure(
    scores: pd.DataFrame,
    records: pd.DataFrame,
    settings: Mapping[str, Any],
    judge: str | None = None,
    repeat: int = 0,
) -> list[dict[str, Any]]:
    """The flat dictionaries of Azure's evaluators; see `Results.azure`.

    >>> scores = pd.DataFrame({"id": ["1"], "variant": "", "metric": "fluency", "judge": "ann", "repeat": 0, "score": 4.0,
    ...                        "status": "ok", "passed": True, "reason": "clear", "error": ""})
    >>> found = azure(scores, scores[["id", "variant"]], {"metrics": {"fluency": {"threshold": 3.0}}, "panel": None})
    >>> [found[0][key] for key in ("fluency", "gpt_fluency", "fluency_result", "fluency_threshold", "fluency_status")]
    [4.0, 4.0, 'pass', 3, 'completed']
    """
    declared = settings["metrics"]
    there = {name: own for name in (*AZURE, "f1") if (own := _under_name(name, declared)) is not None}
    if not there:
        raise InputError(f"azure: none of {', '.join(AZURE)} and f1 was evaluated; there are: {', '.join(declared)}")
    chosen = _choose(scores[scores["metric"].isin(there.values())], settings, judge, repeat)
    found = []
    for key in _keys(records):
        of_record: dict[str, Any] = {}
        for name, own in there.items():
            row = chosen.rows.get(key, {}).get(own, _ABSENT)
            of_record |= _azure(name, row, declared[own].get("threshold"))
        found.append(of_record)
    return found


def pinecone(
    scores: pd.DataFrame,
    records: pd.DataFrame,
    settings: Mapping[str, Any],
    judge: str | None = None,
    repeat: int = 0,
) -> list[dict[str, Any]]:
    """The replies of Pinecone's alignment endpoint; see `Results.pinecone`.

    `scores` needs the columns `details` (JSON text), `judge_prompt_tokens` and `judge_completion_tokens` besides.

    >>> row = {"id": "1", "variant": "", "metric": "alignment", "judge": "ann", "repeat": 0, "score": 0.4, "status": "ok",
    ...        "passed": False, "reason": "", "error": "", "details": '{"correctness": 0.5, "completeness": 0.3333}',
    ...        "judge_prompt_tokens": 120.0, "judge_completion_tokens": 30.0}
    >>> frame = pd.DataFrame([row])
    >>> found = pinecone(frame, frame[["id", "variant"]], {"metrics": {"alignment": {}}, "panel": None})[0]
    >>> found["metrics"]
    {'correctness': 0.5, 'completeness': 0.3333, 'alignment': 0.4}
    >>> found["usage"]
    {'prompt_tokens': 120, 'completion_tokens': 30, 'total_tokens': 150}
    """
    mine = scores[scores["metric"].isin(ALIGNMENT)]
    if mine.empty:
        raise InputError(
            f"pinecone: none of {', '.join(ALIGNMENT)} was evaluated; there are: {', '.join(settings['metrics'])}"
        )
    chosen = _choose(mine, settings, judge, repeat)
    taken = _usage(mine, settings, chosen.judge, repeat)
    return [_pinecone(chosen.rows.get(key, {}), taken.get(key, (math.nan, math.nan))) for key in _keys(records)]


_ABSENT: Mapping[str, Any] = {
    "score": math.nan,
    "status": "not_applicable",
    "passed": pd.NA,
    "reason": "not evaluated",
    "error": "",
}


def _under_name(name: str, declared: Mapping[str, Any]) -> str | None:
    """The metric as it was evaluated: by itself, else in one call with others."""
    return next((each for each in (name, f"{name}{_BATCHED}") if each in declared), None)


def _choose(scores: pd.DataFrame, settings: Mapping[str, Any], judge: str | None, repeat: int) -> Chosen:
    names = sorted(set(scores["judge"]) - {COMPUTED})
    panel = settings.get("panel")
    if judge is not None and judge not in names:
        raise InputError(f"no judge {judge!r} gave these scores; judges: {', '.join(names) or 'none'}")
    if judge is None and panel is not None and panel["name"] in names:
        judge = panel["name"]
    if judge is None and len(names) > 1:
        raise InputError(f"several judges and no panel: choose one with judge=, of {', '.join(names)}")
    chosen = judge if judge is not None else (names[0] if names else COMPUTED)
    mine = scores[(scores["judge"] == chosen) & (scores["repeat"] == repeat)]
    if chosen != COMPUTED and mine.empty:
        raise InputError(f"{chosen} has no repeat {repeat}")
    # What is computed exists once, whatever repeat is asked for.
    mine = pd.concat([scores[scores["judge"] == COMPUTED], mine]) if chosen != COMPUTED else mine
    rows: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for row in mine.to_dict("records"):
        rows.setdefault((row["id"], row["variant"]), {})[row["metric"]] = {str(name): row[name] for name in row}
    return Chosen(chosen, rows)


def _keys(records: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(records["id"], records["variant"], strict=True))


def _azure(name: str, row: Mapping[str, Any], threshold: float | None) -> dict[str, Any]:
    ok = row["status"] == "ok"
    value = float(row["score"]) if ok else None
    passed = None if not ok or pd.isna(row["passed"]) else bool(row["passed"])
    verdict = None if passed is None else ("pass" if passed else "fail")
    whole = threshold is not None and float(threshold).is_integer()
    # Azure's f1 evaluator calls its value f1_score, without the prefixed copy that the judged ones have.
    values = {"f1_score": value} if name == "f1" else {name: value, f"gpt_{name}": value, f"{name}_score": value}
    return {
        **values,
        f"{name}_reason": row["error"] if row["status"] == "failed" else row["reason"],
        f"{name}_result": verdict if ok else _RESULT[row["status"]],
        f"{name}_threshold": int(threshold) if whole and threshold is not None else threshold,
        f"{name}_passed": passed,
        f"{name}_status": _STATUS[row["status"]],
    }


def _pinecone(rows: Mapping[str, Mapping[str, Any]], taken: tuple[float, float]) -> dict[str, Any]:
    details = {name: json.loads(row["details"] or "{}") for name, row in rows.items()}
    of_both = details.get("alignment", {})

    def value(metric: str, within: str) -> float | None:
        if metric in rows:
            score = float(rows[metric]["score"])
            return None if math.isnan(score) else score
        found = of_both.get(within)
        return None if found is None else float(found)

    facts = details.get("alignment_completeness", {}).get("evaluated_facts") or of_both.get("evaluated_facts") or []
    prompt, completion = (None if math.isnan(tokens) else round(tokens) for tokens in taken)
    return {
        "metrics": {
            "correctness": value("alignment_correctness", "correctness"),
            "completeness": value("alignment_completeness", "completeness"),
            "alignment": value("alignment", ""),
        },
        "reasoning": {"evaluated_facts": [{"fact": fact["fact"], "entailment": fact["entailment"]} for fact in facts]},
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": None if prompt is None or completion is None else prompt + completion,
        },
    }


def _usage(
    scores: pd.DataFrame, settings: Mapping[str, Any], judge: str, repeat: int
) -> dict[tuple[str, str], tuple[float, float]]:
    """Tokens that the rows of a judge took, of a panel those of its members: a panel's own rows take nothing."""
    panel = settings.get("panel")
    of: Sequence[str] = panel["members"] if panel is not None and judge == panel["name"] else [judge]
    # A member that computes exists once and took nothing.
    mine = scores[scores["judge"].isin(of) & (scores["repeat"] == repeat)]
    taken: dict[tuple[str, str], tuple[float, float]] = {}
    columns = ("id", "variant", "judge_prompt_tokens", "judge_completion_tokens")
    for name, variant, prompt, completion in zip(*(mine[column] for column in columns), strict=True):
        # An unknown part (NaN) makes the sum unknown.
        before = taken.get((name, variant), (0.0, 0.0))
        taken[name, variant] = (before[0] + float(prompt), before[1] + float(completion))
    return taken
