"""What two sets of metrics ask: calls, prompt tokens and identical requests, and what the prompts of a record share.

    python benchmarks/calls.py [--records 10]

Against a scripted server on this machine, which answers every request at once and in full; so calls for answers that
cannot be read, or are refused, are not among these. Prompt tokens are the UTF-8 bytes of the messages over 4, the reply
schema excluded. Prints two tables; nothing in them depends on the machine.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import jurimetrics as jm
from scripted_replies import valid
from scripted_server import Call, ScriptedServer

LIKERT = ["coherence", "fluency", "relevance", "groundedness", "similarity"]
WIDE = [
    "faithfulness",
    "hallucination",
    "noise_sensitivity",
    "context_precision",
    "alignment",
    "accuracy_clarity",
    *LIKERT,
]
LEAN = ["faithfulness", "noise_sensitivity", "context_precision", "alignment"]
SENTENCE = "In the year {year} the mill on the upper river was rebuilt in grey stone by the miller's {heir}. "


@dataclass(frozen=True)
class Counted:
    """The requests of one evaluation of some records."""

    what: str
    judges: int
    records: int
    calls: int
    repeats: int
    prompt_tokens: float

    def row(self) -> str:
        each = self.records * self.judges
        return (
            f"{self.what:<16} {self.judges:>6} {self.calls:>8} {self.calls / each:>23.2f} "
            f"{self.prompt_tokens / each:>31,.0f} {self.repeats:>9}"
        )


def record(at: int, characters: int) -> dict[str, Any]:
    """A record with three documents of `characters` together, and four sentences in answer and reference each."""
    documents = [f"This page is about mill {at}. "] * 3
    year = 1400
    while sum(map(len, documents)) < characters:
        documents[year % 3] += SENTENCE.format(year=year, heir=("eldest son", "widow", "apprentice")[year % 3])
        year += 1
    claims = [f"The mill was rebuilt in {1400 + at + step}." for step in range(4)]
    facts = [f"The miller's heirs rebuilt the mill in {1400 + at + 2 * step}." for step in range(4)]
    return {
        "id": str(at),
        "question": f"Who rebuilt mill {at}, and when?",
        "answer": " ".join(claims),
        "contexts": documents,
        "reference": " ".join(facts),
    }


def tokens(call: Call) -> float:
    return sum(len(message["content"].encode()) for message in call.messages) / 4


def judges(server: ScriptedServer, count: int) -> list[jm.ChatJudge]:
    return [jm.ChatJudge(f"judge-{at}", base_url=server.url) for at in range(count)]


def counted(what: str, metrics: list[str], count: int, records: int, characters: int) -> Counted:
    """The requests of an evaluation with `count` judges, who share an extractor where they are several."""
    with ScriptedServer(valid) as server:
        data = [record(at, characters) for at in range(records)]
        results = jm.evaluate(data, metrics, judges(server, count), store=None, progress=False)
        if (results.scores["status"] == "failed").any():
            raise RuntimeError(f"{what}: rows failed: {set(results.scores['error'])}")
        prompts = sum(map(tokens, server.requests))
        return Counted(what, count, records, server.count, server.repeats, prompts)


def common_beginning(texts: list[str]) -> str:
    """What all texts begin with."""
    first, last = min(texts), max(texts)
    same = (at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1])
    return first[: next(same, min(len(first), len(last)))]


def shared_prefix(records: int, characters: int) -> tuple[int, float, float]:
    """Tasks of a record that carry its documents, and which share of their characters is their common beginning: the mean
    over the tasks and the smallest of one task."""
    with ScriptedServer(valid) as server:
        data = [record(at, characters) for at in range(records)]
        jm.evaluate(data, WIDE, judges(server, 1), store=None, progress=False)
        prompts: dict[str, list[str]] = defaultdict(list)
        for call in server.requests:
            for one in data:
                if all(document in call.prompt for document in one["contexts"]):
                    prompts[one["id"]].append(call.prompt)
    common = total = 0
    least = 1.0
    for of_record in prompts.values():
        prefix = len(common_beginning(of_record))
        common += prefix * len(of_record)
        total += sum(map(len, of_record))
        least = min(least, *(prefix / len(prompt) for prompt in of_record))
    return sum(map(len, prompts.values())) // len(prompts), common / total, least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10)
    options = parser.parse_args()
    print(f"{'metrics':<16} {'judges':>6} {'requests':>8} {'per record and judge':>23} {'prompt tokens of these':>31} "
          f"{'identical':>9}")  # fmt: skip
    for what, metrics, characters in (("wide", WIDE, 1_900), ("lean", LEAN, 1_900)):
        for count in (1, 2, 3):
            print(counted(what, metrics, count, options.records, characters).row(), flush=True)
    tasks, mean, least = shared_prefix(options.records, 6_000)
    print(f"\nwide, 6,000 characters of documents: {tasks} tasks of a record carry them; the same beginning holds")
    print(f"{mean:.1%} of their characters ({least:.1%} of the longest)")
    print(f"\nwide: {', '.join(WIDE)}\nlean: {', '.join(LEAN)}")


if __name__ == "__main__":
    main()
