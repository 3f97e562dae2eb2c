"""The baseline's checker on the constructed study: rates per kind of claim, and its speed beside a bare loop of str.split.

Run: python benchmarks/baseline_checker.py. The passages and claims are written for this purpose, not labelled by people.
The rules were made while looking at them, but for two passages ("en, late") written after the last change of a rule.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

from jurimetrics.judges.evidence import Evidence
from jurimetrics.judges.reading import read
from jurimetrics.text import sentences

CASES = Path(__file__).resolve().parents[1] / "tests" / "data" / "evidence_cases.jsonl"
TRUE = ("verbatim", "abridged", "paraphrased")
KINDS = (*TRUE, "number", "swapped_number", "name", "swapped_name", "negation", "addition")


def claims_of(case: dict) -> list[tuple[str, str]]:
    verbatim = [("verbatim", s.text) for document in case["documents"] for s in sentences(document)]
    return verbatim + [(claim["kind"], claim["text"]) for claim in case["claims"]]


def seconds(work, repeats: int = 5) -> float:
    """The best of several runs of `work`."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def rates(cases: list[dict]) -> Counter[tuple[str, str, str]]:
    counted: Counter[tuple[str, str, str]] = Counter()
    for case in cases:
        evidence = Evidence(case["documents"])
        language = "en, late" if case["held_back"] else "en" if case["language"] == "en" else "other"
        counted.update((language, kind, evidence.check(claim).label) for kind, claim in claims_of(case))
    return counted


def main() -> None:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    counted = rates(cases)
    print(f"{'claims':<16}{'language':<10}{'n':>5}{'supported':>11}{'contradicted':>14}{'unknown':>9}")
    for kind in KINDS:
        for language in ("en", "en, late", "other"):
            row = [counted[language, kind, label] for label in ("supported", "contradicted", "unknown")]
            print(f"{kind:<16}{language:<10}{sum(row):>5}{row[0]:>11}{row[1]:>14}{row[2]:>9}")
    english = [case for case in cases if case["language"] == "en"]
    asked = [(case["documents"], [claim for _, claim in claims_of(case)]) for case in english]
    n = sum(len(claims) for _, claims in asked)
    ours = seconds(lambda: [[evidence.check(c) for c in claims] for evidence, claims in _built(asked)])
    bare = seconds(lambda: [[(d.split(), c.split()) for d in documents for c in claims] for documents, claims in asked])
    print(f"\n{n} checks, documents prepared anew: {n / ours:.0f} checks/s, {1000 * ours / n:.2f} s per 1,000 checks;")
    print(f"{ours / bare:.0f} times a bare str.split of claim and document")


def _built(asked: list[tuple[list[str], list[str]]]) -> list[tuple[Evidence, list[str]]]:
    read.cache_clear()
    return [(Evidence(documents), claims) for documents, claims in asked]


if __name__ == "__main__":
    main()
