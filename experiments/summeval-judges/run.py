"""How far recorded judges go with experts, and what they would have been worth: python run.py TABLE.csv

The table has a row for each summary and dimension: `doc_id`, `system_id`, `dimension`, `expert_0`, `expert_1`, ... and
`judge_<name>`, scores from 1 to 5, blank where there is none. Nobody is asked; everything is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import jurimetrics as jm
import numpy as np
import pandas as pd
from jurimetrics.calibrate.agreement import Agreement
from jurimetrics.calibrate.panels import panel_report

KEYS = ["doc_id", "system_id", "dimension"]
SCALE = {"range": (1, 5), "threshold": 4}
LABELLED = 25
"""Documents whose labels the second half pretends to have, of all in the table."""


def main(path: str) -> None:
    """Read the table at `path` and print each part of the analysis."""
    results, labels = read(path)
    for heading, frame in parts(results, labels):
        shown = frame.to_string(index=False, na_rep="-", float_format=lambda value: f"{value:.3f}")
        print(f"\n## {heading}\n\n{shown}", flush=True)  # noqa: T201 - what a run says is its result


def read(path: str) -> tuple[jm.Results, pd.DataFrame]:
    """The judges' scores as results, and the experts' as labels of every record."""
    table = pd.read_csv(path)
    judges, experts = ([name for name in table.columns if name.startswith(start)] for start in ("judge_", "expert_"))
    if lacking := [name for name in KEYS if name not in table.columns]:
        raise jm.InputError(f"{path}: no column {lacking[0]!r}")
    if not judges or not experts:
        raise jm.InputError(f"{path}: expected columns judge_<name> and expert_<number>")
    names = {"doc_id": "group", "system_id": "variant", "dimension": "metric"}
    rows = table.rename(columns=names).assign(id=table["doc_id"])
    about = ["id", "variant", "metric"]
    scores = rows.melt([*about, "group"], judges, "judge", "score").dropna(subset="score")
    scores["judge"] = scores["judge"].str.removeprefix("judge_")
    given = rows.melt(about, experts, "rater", "label").dropna(subset="label")
    # Every record is labelled, so none was chosen.
    labels = jm.load_labels(given, selection="random")
    return jm.Results.from_frame(scores, dict.fromkeys(table["dimension"].unique(), SCALE)), labels


def parts(results: jm.Results, labels: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each table with its heading, as soon as it is there."""
    found = jm.agreement(results, labels)
    yield "Order within a document: judge against the experts' mean", order(found)
    yield "Against the other experts: judge and expert on the same footing", footing(found)
    yield "Steps, level and passes", steps(found)
    yield "Panels of the judges (mean score; loss: mean distance from the experts' mean)", panels(results, labels)
    some = labels[labels["id"].isin(drawn(labels))]
    some.attrs["selection"] = "random"
    judges, held = best(found), f"the labels of {some['id'].nunique()} documents"
    yield f"Fitted to {held}, on documents held out", calibrated(results, some, judges)
    yield f"Experts' mean of all summaries, from {held}", corrected(results, labels, some, judges)


def order(found: Agreement) -> pd.DataFrame:
    """Spearman within documents, and how many documents had to be left out because a side is constant."""
    frame = found.frame.sort_values(["metric", "spearman"], ascending=[True, False])
    return frame[["metric", "judge", "n", *interval("spearman"), "used_groups", "skipped_groups"]]


def footing(found: Agreement) -> pd.DataFrame:
    """Judge and expert both against the mean of the other experts."""
    frame = found.frame.sort_values(["metric", "spearman_others"], ascending=[True, False])
    return frame[["metric", "judge", "spearman_others", "human_spearman", *interval("spearman_gap")]]


def steps(found: Agreement) -> pd.DataFrame:
    """Chance-corrected agreement in steps and passes, and the shift of the level."""
    columns = ["kappa_quadratic", "human_kappa_quadratic", "ac2_quadratic", "pass_kappa", *interval("bias"), "tied"]
    return found.frame[["metric", "judge", *columns]]


def panels(results: jm.Results, labels: pd.DataFrame) -> pd.DataFrame:
    """For each dimension the best panel, what it is worth on other documents, and how many judges they amount to."""
    rows = []
    for metric in results.settings["metrics"]:
        report = panel_report(results, labels, metric=metric, of="scores")
        figures = report.estimates
        closest = report.correlations.sort_values("correlation").iloc[-1]
        one = report.sizes.iloc[0]
        rows.append(
            {
                "metric": metric,
                "winner": ", ".join(report.winner),
                "held_out": str(figures["winner_held_out"]),
                "best_alone": one["members"],
                "alone": one["held_out"],
                "amount_to": str(figures["effective_judges"]),
                "closest": f"{closest['judge']}, {closest['other']} ({closest['correlation']:.2f})",
            }
        )
    return pd.DataFrame(rows)


def best(found: Agreement) -> dict[str, str]:
    """The judge of each dimension that orders summaries most like the experts."""
    first = found.frame.sort_values("spearman", ascending=False).drop_duplicates("metric").set_index("metric")["judge"]
    return {metric: str(first[metric]) for metric in found.frame["metric"].unique()}


def drawn(labels: pd.DataFrame) -> set[str]:
    """Documents drawn at random (seed 0), whole."""
    documents = np.array(sorted(labels["id"].unique()))
    return set(np.random.default_rng(0).choice(documents, min(LABELLED, len(documents)), replace=False))


def calibrated(results: jm.Results, some: pd.DataFrame, judges: dict[str, str]) -> pd.DataFrame:
    """What a straight line and a chosen threshold make of each dimension's best judge, on documents held out."""
    rows = []
    for metric, judge in judges.items():
        made = jm.calibrate(results, some, metric=metric, judge=judge, method="linear")
        worth = made.held_out
        rows.append(
            {
                "metric": metric,
                "judge": judge,
                "error_raw": str(worth["raw_absolute_error"]),
                "error_mapped": str(worth["absolute_error"]),
                "threshold": made.threshold.value if made.threshold else np.nan,
                "youden_held_out": str(worth.get("youden", "-")),
            }
        )
    return pd.DataFrame(rows)


def corrected(results: jm.Results, labels: pd.DataFrame, some: pd.DataFrame, judges: dict[str, str]) -> pd.DataFrame:
    """Over all systems together: raw, corrected, by the labels alone, and what all experts said."""
    pooled, few = one_variant(results), some.assign(id=some["id"] + " " + some["variant"], variant="")
    few.attrs["selection"] = "random"
    frame = jm.corrected_means(pooled, few, target="these records")
    chosen = frame[[judges[metric] == judge for metric, judge in zip(frame["metric"], frame["judge"], strict=True)]]
    truth = labels.groupby(["metric", "id", "variant"])["label"].mean().groupby("metric").mean()
    return pd.DataFrame(
        {
            "metric": chosen["metric"],
            "judge": chosen["judge"],
            "raw": chosen["raw"],
            "corrected": chosen["corrected"].map(str),
            "labels_alone": chosen["labels_only"].map(str),
            "all_experts": chosen["metric"].map(truth),
        }
    )


def one_variant(results: jm.Results) -> jm.Results:
    """The same scores with the system in the id, so that means are over all systems."""
    scores = results.scores[["id", "variant", "group", "metric", "judge", "score"]]
    scores = scores.assign(id=scores["id"] + " " + scores["variant"], variant="")
    return jm.Results.from_frame(scores, dict.fromkeys(results.settings["metrics"], SCALE))


def interval(name: str) -> list[str]:
    """The columns of an estimate and of its ends."""
    return [name, f"{name}_low", f"{name}_high"]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except (jm.InputError, OSError) as fault:
        sys.exit(f"{fault}")
