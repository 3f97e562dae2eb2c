"""Derive bands.csv from what records.jsonl says about how each answer was made.

Run it after changing a record: ``python experiments/quickstart/make_bands.py``.
The README gives the same rules in words.
"""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

Band = tuple[float, float]

FOLDER = Path(__file__).parent
NO_SPACES = {"zh", "ja"}
FACTUAL = {"invented_fact", "changed_number", "swapped_name", "contradiction"}
ROLES: dict[str, Band] = {
    "answers": (0.7, 1.0),
    "partial": (0.4, 0.8),
    "distractor": (0.0, 0.4),
    "irrelevant": (0.0, 0.2),
}
ACCURACY: dict[str, Band] = {
    "none": (0.7, 1.0),
    "changed_number": (0.0, 0.9),
    "swapped_name": (0.0, 0.9),
    "contradiction": (0.0, 0.9),
    "omission": (0.1, 0.7),
    "noise": (0.1, 0.7),
    "off_topic": (0.0, 0.2),
    "refusal": (0.0, 0.2),
}
COHERENCE: dict[str, Band] = {
    "none": (4.0, 5.0),
    "omission": (3.0, 5.0),
    "off_topic": (1.0, 3.0),
    **dict.fromkeys(FACTUAL, (3.0, 5.0)),
}


def share_band(part: int, whole: int) -> Band:
    """Band of a share of sentences: half of it (a finer split may set true halves apart) to the share plus 0.2."""
    if part == 0:
        return 0.0, 0.2
    if part == whole:
        return 0.8, 1.0
    return part / (2 * whole), min(1.0, part / whole + 0.2)


def grounding_bands(record: dict[str, Any]) -> dict[str, Band]:
    """Bands of the metrics that count claims or sentences."""
    if record["defect"] == "refusal":
        return {"hallucination": (0.0, 0.0)}
    sentences, off_reference = record["n_sentences"], record["n_off_reference"]
    low, high = share_band(record["n_unsupported"], sentences)
    bands = {"faithfulness": (1.0 - high, 1.0 - low), "hallucination": (low, high)}
    if record["defect"] == "noise":
        bands["noise_share"] = share_band(off_reference, sentences)
    else:
        bands["noise_sensitivity"] = (low, high)
        if off_reference == 0:
            bands["noise_share"] = (0.0, 0.25)
    return bands


def f1_band(record: dict[str, Any]) -> dict[str, Band]:
    """1 for an answer that is the reference, 0 for one that shares no word with it, else nothing."""
    answer, reference = record["answer"], record["reference"]
    if answer == reference:
        return {"f1": (1.0, 1.0)}
    words = [set(re.findall(r"\w+", text.casefold())) for text in (answer, reference)]
    if record["language"] not in NO_SPACES and not words[0] & words[1]:
        return {"f1": (0.0, 0.0)}
    return {}


def bands_of(record: dict[str, Any]) -> dict[str, Band]:
    """Every band that the construction of one record decides, by metric."""
    defect, roles = record["defect"], [ROLES[role] for role in record["context_roles"].split()]
    precision = (sum(low for low, _ in roles) / len(roles), sum(high for _, high in roles) / len(roles))
    bands = {**grounding_bands(record), "context_precision": precision}
    if defect in ACCURACY:
        bands["accuracy_clarity"] = ACCURACY[defect]
    if defect in COHERENCE:
        bands["coherence"] = COHERENCE[defect]
    bands["fluency"] = (1.0, 2.0) if defect == "disfluent" else (4.0, 5.0)
    return {**bands, **f1_band(record)}


def outward(band: Band) -> tuple[str, str]:
    """Two decimals, rounded away from the middle: a score of exactly 1/6 must stay inside a band that begins there."""
    low, high = (round(100 * bound, 6) for bound in band)
    return f"{math.floor(low) / 100:g}", f"{math.ceil(high) / 100:g}"


def band_rows() -> list[tuple[str, str, str, str, str]]:
    """The lines of bands.csv: id, variant, metric, low, high."""
    lines = (FOLDER / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        (record["id"], record["variant"], metric, *outward(band))
        for record in map(json.loads, lines)
        for metric, band in bands_of(record).items()
    ]


if __name__ == "__main__":
    with (FOLDER / "bands.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "variant", "metric", "low", "high"))
        writer.writerows(band_rows())
