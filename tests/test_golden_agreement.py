"""The golden values of agreement, correlation and reliability: every entry of the file of these methods."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jurimetrics.stats.agreement import fleiss_kappa, gwet_ac, krippendorff_alpha
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.icc import anova, icc
from jurimetrics.stats.kappa import cohen_kappa, kappa_errors
from jurimetrics.stats.ranks import correlation, correlation_between, correlation_within

SHARED = Path(__file__).parents[2] / "shared"
GOLDEN = SHARED / "golden.json"
DISTANCES = ("nominal", "ordinal", "interval", "ratio")

pytestmark = pytest.mark.skipif(not GOLDEN.is_file(), reason="the golden values ../shared/golden.json are not here")


def data_file(name: str) -> Path:
    path = SHARED / "data" / Path(name.split(" ")[0]).name
    if not path.is_file():
        pytest.skip(f"{path.name} is not in ../shared/data")
    return path


def whole_steps(*columns: Any) -> list[int]:
    given = [int(value) for column in columns for value in np.ravel(column) if value is not None]
    return list(range(min(given), max(given) + 1))


def expand(table: Any) -> tuple[list[int], list[int], list[int]]:
    """The pairs of ratings that a table of counts stands for, and its scale."""
    pairs = [
        (row + 1, column + 1)
        for row, counts in enumerate(table)
        for column, count in enumerate(counts)
        for _ in range(count)
    ]
    return [one for one, _ in pairs], [two for _, two in pairs], list(range(1, len(table) + 1))


def kappa_of_a_table(given: dict[str, Any]) -> dict[str, Any]:
    weights = given.get("weights") or "plain"
    first, second, scale = expand(given["table"])
    found = cohen_kappa(first, second, scale, weights)
    errors = kappa_errors(np.array(given["table"]), scale, weights)
    return {
        "kappa": found.value,
        "ci95": [found.low, found.high],
        "std_kappa": errors.around,
        "std_kappa0": errors.at_zero,
    }


def kappa_raw(given: dict[str, Any]) -> dict[str, Any]:
    kinds = {"none": "plain", "linear": "linear", "quadratic": "quadratic"}
    return {
        name: cohen_kappa(given["a"], given["b"], given["labels"], kind).value  # type: ignore[arg-type]
        for name, kind in kinds.items()
    }


def kappa_missing_category(given: dict[str, Any]) -> dict[str, Any]:
    seen = sorted({*given["a"], *given["b"]})
    place = {value: at for at, value in enumerate(seen)}
    # What a package that goes by the index of the labels seen would say: the trap, reproduced on purpose.
    by_index = [[place[value] for value in given[side]] for side in ("a", "b")]
    return {
        "labels_inferred": cohen_kappa(*by_index, range(len(seen)), "quadratic").value,
        "labels_1_to_5": cohen_kappa(given["a"], given["b"], range(1, 6), "quadratic").value,
    }


def kappa_constant(given: dict[str, Any]) -> dict[str, Any]:
    found = cohen_kappa(given["a"], given["b"], (0, 1))
    assert found.method.startswith("undefined: kappa (plain): one class only")
    return {"value": found.value}


def alpha(given: dict[str, Any]) -> dict[str, Any]:
    return {kind: krippendorff_alpha(given["raters_by_units"], kind).value for kind in DISTANCES}  # type: ignore[arg-type]


def alpha_of_units(given: dict[str, Any]) -> dict[str, Any]:
    path = data_file(given["data"])
    votes = [json.loads(line)["human"] for line in path.read_text(encoding="utf-8").splitlines()]
    found = krippendorff_alpha(np.array(votes).T, "nominal")
    assert "bootstrap of 999 rows" in found.method
    return {"alpha": found.value, "ci95_percentile": [found.low, found.high]}


def alpha_only(given: dict[str, Any]) -> dict[str, Any]:
    # The interval of the source resamples pairs as if they were independent, which is what must not be done.
    return {"alpha": alpha_of_units(given)["alpha"]}


def fleiss(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "kappa": fleiss_kappa(given["counts"]).value,
        "randolph": fleiss_kappa(given["counts"], "uniform").value,
    }


def gwet(closeness: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def check(given: dict[str, Any]) -> dict[str, Any]:
        ratings = given["raters_by_units"]
        scale = given.get("categories") or whole_steps(*ratings)
        found = gwet_ac(ratings, scale, closeness)  # type: ignore[arg-type]
        return {
            "AC1": found.value,
            "AC2": found.value,
            "irrCAC": found.value,
            "se": standard_error(found),
            "ci95": [found.low, found.high],
        }

    return check


def standard_error(found: Estimate) -> float:
    from scipy.stats import t

    assert found.value is not None and found.low is not None
    return (found.value - found.low) / float(t.ppf(0.975, found.n - 1))


def correlate(kind: str, name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda given: {name: correlation(given["x"], given["y"], kind).value}  # type: ignore[arg-type]


FORMS = {
    "ICC(1,1)": "1,1",
    "ICC(A,1)": "2,1",
    "ICC(C,1)": "3,1",
    "ICC(1,k)": "1,k",
    "ICC(A,k)": "2,k",
    "ICC(C,k)": "3,k",
}


def all_iccs(given: dict[str, Any]) -> dict[str, Any]:
    found = {name: icc(given["targets_by_raters"], form) for name, form in FORMS.items()}  # type: ignore[arg-type]
    return {name: {"icc": one.value, "ci95": [one.low, one.high]} for name, one in found.items()}


def icc_anova(given: dict[str, Any]) -> dict[str, Any]:
    squares = anova(given["targets_by_raters"])
    return {
        "MSR": squares.targets,
        "MSC": squares.raters,
        "MSE": squares.rest,
        "ICC2k": icc(given["targets_by_raters"], "2,k").value,
        "ICC21": icc(given["targets_by_raters"], "2,1").value,
    }


def judge_against_experts(given: dict[str, Any]) -> dict[str, Any]:
    rows = pd.read_csv(data_file(given["data"]))
    rows = rows[rows["dimension"] == given["dimension"]]
    experts = rows.filter(like="expert_").mean(axis=1)
    judge, documents, systems = rows[given["judge"]], rows["doc_id"].tolist(), rows["system_id"].tolist()
    found: dict[str, Any] = {}
    for kind in ("spearman", "kendall"):
        within = correlation_within(judge, experts, documents, kind)  # type: ignore[arg-type]
        found[f"{kind}_per_doc_mean"] = within.estimate.value
        found["n_docs_used"] = within.used
        found[f"{kind}_pooled"] = correlation(judge, experts, kind, documents).value  # type: ignore[arg-type]
        found[f"{kind}_system_level"] = correlation_between(judge, experts, systems, kind, documents).value  # type: ignore[arg-type]
    return found


def metric_on_qags(given: dict[str, Any]) -> dict[str, Any]:
    rows = pd.read_csv(data_file(given["data"]))
    rows = rows[rows["part"] == given["part"]]
    kinds = ("pearson", "spearman", "kendall")
    pair = rows["unieval_consistency"], rows["human_consistency"]
    found = {kind: correlation(*pair, kind).value for kind in kinds}  # type: ignore[arg-type]
    return found | {"published": [round(found[kind] or 0, 3) for kind in kinds]}


def metrics_on_xsum(given: dict[str, Any]) -> dict[str, Any]:
    rows = pd.read_csv(data_file(given["data"]))
    return {
        name: [correlation(rows[name], rows[side]).value for side in ("Faithful", "Factual")]
        for name in ("R1", "R2", "RL", "BERTScore", "Entailment")
    }


CHECKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "cohen_kappa": kappa_of_a_table,
    "cohen_kappa_linear": kappa_of_a_table,
    "cohen_kappa_quadratic": kappa_of_a_table,
    "cohen_kappa_raw": kappa_raw,
    "cohen_kappa_quadratic_missing_category": kappa_missing_category,
    "cohen_kappa_constant": kappa_constant,
    "krippendorff_alpha": alpha,
    "krippendorff_alpha_binary": alpha,
    "krippendorff_alpha_nominal_2coder": alpha,
    "krippendorff_alpha_evalica": alpha,
    "krippendorff_alpha_bootstrap_units": alpha_of_units,
    "krippendorff_alpha_bootstrap_kalpha": alpha_only,
    "fleiss_kappa": fleiss,
    "gwet_ac1": gwet("plain"),
    "gwet_ac2_linear": gwet("linear"),
    "gwet_ac2_quadratic": gwet("quadratic"),
    "gwet_ac2_ordinal": gwet("ordinal"),
    "kendall_tau_b": correlate("kendall", "tau"),
    "spearman": correlate("spearman", "rho"),
    "icc": all_iccs,
    "icc_2k_anova": icc_anova,
    "judge_human_correlation_summeval": judge_against_experts,
    "metric_human_correlation_qags_unieval": metric_on_qags,
    "metric_human_correlation_xsum": metrics_on_xsum,
}
# Printed with two decimals by their source, whatever the entry's tolerance.
ROUNDED = {("icc", "ci95"): 0.0051}
# What these entries hold besides the values that are ours to reproduce: p-values, other coefficients, other intervals.
ELSEWHERE = {
    "kendall_tau_b": {"p", "tau_c"},
    "spearman": {"p"},
    "krippendorff_alpha_bootstrap_kalpha": {"ci95", "simulated_coverage"},
}


def entries() -> list[Any]:
    if not GOLDEN.is_file():
        return []
    tests = json.loads(GOLDEN.read_text(encoding="utf-8"))["tests"]
    return [pytest.param(one, id=f"{one['id']}-{one['method']}") for one in tests if one["method"] in CHECKS]


def compare(found: Any, expected: Any, entry: dict[str, Any], name: str) -> int:
    """How many values were held against the golden ones, after each was."""
    if isinstance(expected, dict):
        left_out = ELSEWHERE.get(entry["method"], ())
        return sum(compare(found[key], value, entry, key) for key, value in expected.items() if key not in left_out)
    if expected is None:
        assert found is None, name
    else:
        tolerance = ROUNDED.get((entry["method"], name), entry["tolerance"])
        assert found == pytest.approx(expected, abs=max(tolerance, 1e-12), rel=0), name
    return 1


@pytest.mark.parametrize("entry", entries())
def test_golden(entry: dict[str, Any]) -> None:
    assert compare(CHECKS[entry["method"]](entry["input"]), entry["expected"], entry, entry["method"]) > 0


def test_every_kind_of_this_half_is_there() -> None:
    """A method that this file checks and the golden values lack would never be noticed otherwise."""
    assert {entry.values[0]["method"] for entry in entries()} == set(CHECKS)
