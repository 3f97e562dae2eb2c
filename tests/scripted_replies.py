"""A server's handler that gives a complete, valid reply to every task, drawn from a hash of the request."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from scripted_server import Answer, Call, reply

_WANTED = re.compile(r"exactly (\d+|one) entr")
_RANGE = re.compile(r"(?:sentences?|claims?|documents?|requirements?|answers?) (\d+)")


def valid(call: Call) -> Answer:
    """Each item labelled once, quotes taken from the prompt's first document where one is needed."""
    draw = int(hashlib.sha256(call.prompt.encode()).hexdigest()[:8], 16)
    return reply(json.dumps(_data(call, draw)), usage=(len(call.prompt) // 4, 60))


def _data(call: Call, draw: int) -> Any:
    last = call.prompt.rstrip().splitlines()[-1]
    wanted = _WANTED.search(last)
    count = 1 if wanted is None or wanted[1] == "one" else int(wanted[1])
    # A later chunk of a long list counts on from where the one before ended.
    first = (
        int(found[1]) if (found := _RANGE.search(last[last.rindex("each of") :] if "each of" in last else "")) else 1
    )
    numbers = range(first, first + count)
    kind = call.schema_name
    if kind == "claims":
        return {
            "sentences": [{"at": at, "check": "factual", "claims": [f"Claim {draw % 97} of {at}."]} for at in numbers]
        }
    if kind == "check":
        labels = ("unknown", "contradicted")
        return {
            "verdicts": [
                {
                    "claim": at,
                    "evidence": [],
                    "reason": "drawn",
                    "sources_conflict": False,
                    "verdict": labels[(draw + at) % 2],
                }
                for at in numbers
            ]
        }
    if kind == "sentences":
        labels = ("supported", "no_check")
        return {
            "sentences": [
                {"at": at, "evidence": [], "reason": "drawn", "spans": [], "verdict": labels[(draw + at) % 2]}
                for at in numbers
            ]
        }
    if kind == "documents":
        return {"ratings": [{"doc": at, "found": "drawn", "score": (draw + at) % 11} for at in numbers]}
    return {"findings": "drawn", "score": 1 + draw % 5}
