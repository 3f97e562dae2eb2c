"""A comparison as one MLflow run of the whole study."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from compared import A, B, results, rows
from jurimetrics import Results, compare
from jurimetrics.errors import InputError
from jurimetrics.tracking import study
from jurimetrics.tracking.load import load_run
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.store import Store
from jurimetrics.tracking.study import log_comparison
from jurimetrics.variants.leaderboard import leaderboard
from jurimetrics.variants.tradeoff import tradeoff
from mlflow import MlflowClient
from mlflow.entities import Run
from tracked import VARIANTS, make_results

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
FIGURES = ("difference", "p", "n")


def client_of(store: Store) -> MlflowClient:
    return MlflowClient(tracking_uri=store.uri)


def all_runs(store: Store) -> list[Run]:
    client = client_of(store)
    return list(client.search_runs([experiment.experiment_id for experiment in client.search_experiments()]))


def downloaded(store: Store, run_id: str, folder: Path) -> Path:
    return Path(client_of(store).download_artifacts(run_id, "", str(folder)))


@pytest.fixture
def judged(tmp_path: Path) -> Results:
    return make_results(tmp_path / "results", records=16)


def test_one_run_says_what_was_found_and_leads_to_its_variants(judged: Results, mlflow_store: Store) -> None:
    runs = log_run(judged, experiment="tenancy", traces=0)
    found = compare(judged, "concise", primary=["faithfulness", "noise_sensitivity"])
    before = dict(os.environ)
    run = client_of(mlflow_store).get_run(log_comparison(found, judged, experiment="tenancy", runs=runs))
    assert dict(os.environ) == before
    tags = run.data.tags
    assert (run.info.run_name, run.info.status) == ("tenancy", "FINISHED")
    assert (tags["jurimetrics.study"], tags["jurimetrics.kind"]) == ("tenancy", "study")
    assert [tags[f"jurimetrics.run.{name}"] for name in VARIANTS] == runs
    variants = [client_of(mlflow_store).get_run(run_id) for run_id in runs]
    assert {one.data.tags["jurimetrics.study_run"] for one in variants} == {run.info.run_id}
    assert {one.info.status for one in variants} == {"FINISHED"}
    assert run.info.start_time < min(one.info.start_time for one in variants), "the page lists the newest first"
    note = tags["mlflow.note.content"]
    for verdict in found.frame["verdict"]:
        assert verdict.replace("-", "").replace("[", "\\[").replace("]", "\\]") in note.replace("-", "")
    assert all(f"(#/experiments/{run.info.experiment_id}/runs/{run_id})" in note for run_id in runs)
    params = run.data.params
    assert (params["baseline"], params["level"]) == ("concise", "0.95")
    assert (params["primary"], params["exploratory"]) == ("faithfulness, noise_sensitivity", "context_precision, f1")
    assert params["panel"] == "median of gpt-4.1-mini, claude-haiku, baseline"
    assert params["judged by"] == "panel, computed"


def test_metrics_agree_with_the_frame_primary_ones_first(judged: Results, mlflow_store: Store) -> None:
    found = compare(judged, "concise", primary=["noise_sensitivity"])
    logged = client_of(mlflow_store).get_run(log_comparison(found, judged, experiment="tenancy")).data.metrics
    order = ["noise_sensitivity", "faithfulness", "context_precision", "f1"]
    pair = "thorough - concise"
    assert list(logged) == [f"{figure}/{metric}/{pair}" for figure in FIGURES for metric in order]
    for line in found.frame.to_dict("records"):
        values = [logged[f"{figure}/{line['metric']}/{pair}"] for figure in FIGURES]
        p = line["p_adjusted"] if line["metric"] == "noise_sensitivity" else line["p"]
        assert values == [round(line["difference"], 4), round(p, 6), line["n"]]


def test_files_of_a_study(judged: Results, mlflow_store: Store, tmp_path: Path) -> None:
    found = compare(judged, primary=["faithfulness"])
    board = leaderboard(found)
    took = pd.concat([tradeoff(judged, "faithfulness"), tradeoff(judged, "faithfulness", "answer_latency_s")])
    run_id = log_comparison(found, judged, experiment="tenancy", leaderboard=board, tradeoff=took)
    folder = downloaded(mlflow_store, run_id, tmp_path / "down")
    whole = pd.read_parquet(folder / "comparison.parquet")
    assert list(whole.columns) == list(found.frame.columns)
    assert whole["verdict"].tolist() == found.frame["verdict"].tolist()
    assert pd.read_csv(folder / "comparison.csv")["difference"].tolist() == pytest.approx(whole["difference"].tolist())
    table = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert table["columns"][:6] == ["metric", "variants", "difference", "low", "high", "p"]
    line = found.frame.set_index("metric").loc["faithfulness"]
    shown = dict(zip(table["columns"], table["data"][0], strict=True))
    assert (shown["metric"], shown["low"]) == ("faithfulness", round(line["simultaneous_low"], 4))
    assert shown["verdict"] == line["verdict"] and "corrected" not in shown
    assert len(json.loads((folder / "leaderboard.json").read_text(encoding="utf-8"))["data"]) == len(board)
    assert pd.read_parquet(folder / "tradeoff.parquet")["against"].nunique() == 2
    pictures = sorted(path.name for path in (folder / "figures").iterdir())
    paretos = [f"pareto_faithfulness_answer_{kind}.png" for kind in ("cost_usd", "latency_s")]
    assert pictures == ["differences.png", *paretos, "summary.png"]
    assert all((folder / "figures" / name).read_bytes().startswith(b"\x89PNG") for name in pictures)


def test_what_is_undefined_or_unknown_is_left_out(mlflow_store: Store, tmp_path: Path) -> None:
    few = results(rows(A=[*A[:5], None], B=[*B[:5], 0.5]))
    found = compare(few)
    assert math.isnan(found.frame.loc[0, "p_adjusted"]), "fewer than 8 groups have no interval"
    run_id = log_comparison(found, few, experiment="few", tradeoff=tradeoff(few, "grade"))
    logged = client_of(mlflow_store).get_run(run_id).data.metrics
    assert list(logged) == ["difference/grade/B - A", "n/grade/B - A"]
    folder = downloaded(mlflow_store, run_id, tmp_path / "down")
    assert sorted(path.name for path in (folder / "figures").iterdir()) == ["differences.png", "summary.png"], "no cost"
    table = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert dict(zip(table["columns"], table["data"][0], strict=True))["low"] is None


def test_metrics_of_different_ranges_have_a_picture_each(mlflow_store: Store, tmp_path: Path) -> None:
    declared = {"grade": {"range": (0, 1)}, "stars": {"range": (1, 5)}}
    both = results(rows(A=A, B=B) + rows("stars", A=[1 + 4 * a for a in A], B=[1 + 4 * b for b in B]), declared)
    folder = downloaded(mlflow_store, log_comparison(compare(both), both, experiment="two"), tmp_path / "down")
    pictures = sorted(path.name for path in (folder / "figures").iterdir())
    assert pictures == ["differences_grade.png", "differences_stars.png", "summary.png"]


def test_many_pairs_stay_under_a_hundred_metrics(mlflow_store: Store) -> None:
    scores = {f"variant {at}": [*A[at:], *A[:at]] for at in range(8)}
    declared = {name: {"range": (0, 1)} for name in ("one", "two")}
    many = results([row for metric in declared for row in rows(metric, **scores)], declared)
    found = compare(many, flips=200)
    run = client_of(mlflow_store).get_run(log_comparison(found, many, experiment="many"))
    assert len(run.data.metrics) == 99
    assert sum(name.startswith("difference/") for name in run.data.metrics) == 2 * 28
    left = 2 * len(found.frame) + int(found.frame["p_adjusted"].notna().sum()) - 99
    assert run.data.tags["jurimetrics.left_out"] == f"{left} more metrics stand in comparison.csv"


def test_names_are_data_in_the_note(mlflow_store: Store) -> None:
    rude = "<img src=x>[c](javascript:d)"
    named = results([{**row, "variant": {"A": rude, "B": ""}[row["variant"]]} for row in rows(A=A, B=B)])
    run = client_of(mlflow_store).get_run(log_comparison(compare(named), named, experiment="rude"))
    note = run.data.tags["mlflow.note.content"]
    assert "<img" not in note and "](javascript" not in note and "&lt;img" in note
    assert any("(no name)" in name or "_u28_no name_u29_" in name for name in run.data.metrics)


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("disk"), "FAILED"), (KeyboardInterrupt(), "KILLED"), (SystemExit(3), "KILLED")]
)
@pytest.mark.parametrize("where", ["_log_columns", "_log_files"])
def test_a_study_run_ends_in_every_path(
    error: BaseException, status: str, where: str, mlflow_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(study, where, fail)
    graded = results(rows(A=A, B=B))
    with pytest.raises(type(error)):
        log_comparison(compare(graded), graded, experiment="broken")
    assert [run.info.status for run in all_runs(mlflow_store)] == [status]


def test_artifacts_that_cannot_be_written_are_said_and_end_the_run(mlflow_store: Store) -> None:
    graded = results(rows(A=A, B=B))
    folder = Path(str(mlflow_store.artifacts).removeprefix("file://"))
    log_comparison(compare(graded), graded, experiment="grades")
    shutil.rmtree(folder)
    folder.write_text("in the way", encoding="utf-8")
    with pytest.raises(InputError, match=r"^MLflow at sqlite:.* the results are untouched and can be logged again$"):
        log_comparison(compare(graded), graded, experiment="grades")
    assert sorted(run.info.status for run in all_runs(mlflow_store)) == ["FAILED", "FINISHED"]


def test_run_of_a_comparison_is_no_run_to_read_back_and_names_those_that_are(mlflow_store: Store) -> None:
    graded = results([row | {"variant": f"a/{row['variant']}"} for row in rows(A=A, B=B)])
    runs = log_run(graded, experiment="grades", traces=0)
    whole = log_comparison(compare(graded), graded, experiment="grades", runs=runs)
    with pytest.raises(InputError) as caught:
        load_run(whole)
    said = str(caught.value)
    assert f"run {whole} (grades) is the run of a comparison and holds no results; give the run of a variant: " in said
    assert said.endswith(f": a/A {runs[0]}, a/B {runs[1]}") and "log_run" not in said
    for at in range(8):
        client_of(mlflow_store).set_tag(whole, f"jurimetrics.run.v{at}", runs[0])
    with pytest.raises(InputError, match=r"of a variant: (\S+ [0-9a-f]{32}, ){8}2 more$"):
        load_run(whole)


def test_what_cannot_be_logged_is_said_before_there_is_a_run(mlflow_store: Store) -> None:
    graded = results(rows(A=A, B=B))
    found: Any = compare(graded)
    with pytest.raises(InputError, match="there is no run 'nobody'"):
        log_comparison(found, graded, experiment="grades", runs=["nobody"])
    with pytest.raises(InputError, match="expected a list of run ids"):
        log_comparison(found, graded, experiment="grades", runs="nobody")
    with pytest.raises(InputError, match="the name of an MLflow experiment is needed"):
        log_comparison(found, graded, experiment=" ")
    others = results([row | {"variant": f"{row['variant']}2"} for row in rows(A=A, B=B)])
    wrong: dict[str, dict[str, Any]] = {
        "comparison: expected what compare gives, found Results": {"comparison": graded},
        "comparison: it is of other results: variant 'A' is not in these": {"results": others},
        "results: expected Results, found Comparison": {"results": found},
        "runs: expected a list of run ids, found None": {"runs": None},
        r"runs: expected a list of run ids, found \[5\]": {"runs": [5]},
        "leaderboard: expected the frame that leaderboard gives, found str": {"leaderboard": "first"},
        "tradeoff: expected the frame that tradeoff gives, found DataFrame": {"tradeoff": pd.DataFrame({"x": [1]})},
    }
    for words, given in wrong.items():
        with pytest.raises(InputError, match=words):
            log_comparison(**{"comparison": found, "results": graded, "experiment": "grades"} | given)
    assert all_runs(mlflow_store) == []
