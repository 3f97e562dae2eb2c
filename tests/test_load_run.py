"""Runs of MLflow read back: the same results as were logged, or one line that says why not."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import jurimetrics as jm
import pandas as pd
import pytest
from jurimetrics import InputError, Results
from jurimetrics.cli.sources import open_results
from jurimetrics.results.joined import joined
from jurimetrics.results.reading import read_parts
from jurimetrics.tracking.load import load_run
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.store import Store
from jurimetrics.variants.runs import compare_runs
from mlflow import MlflowClient
from scripted_replies import valid
from scripted_server import ScriptedServer
from tracked import VARIANTS, make_results

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return make_results(tmp_path / "results", records=6)


def judged(url: str, out: Path | None = None) -> Results:
    """Two variants by a panel of two; the facts of a reference are split once for both of them."""
    records = [
        {
            "id": f"q{at}", "variant": variant, "question": f"How many parks has town {at}?",
            "answer": f"Town {at} has {at + extra} parks.", "reference": f"Town {at} has {at} parks. It is old.",
            "contexts": [f"Town {at} has {at} parks."], "answer_model": f"m-{variant}", "metadata": {"at": at},
        }
        for at in range(4)
        for variant, extra in (("short", 0), ("long", 1))
    ]  # fmt: skip
    judges = [jm.ChatJudge(name, base_url=url, price=(1.0, 2.0)) for name in ("ann", "bob")]
    metrics = ["alignment", "faithfulness", "f1"]
    return jm.evaluate(records, metrics, jm.Panel(judges), store=None, progress=False, out=out)


@pytest.fixture(scope="module")
def shared_calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    with ScriptedServer(valid) as server:
        yield judged(server.url, tmp_path_factory.mktemp("judged") / "results")


def of_variant(frame: pd.DataFrame, variant: str) -> pd.DataFrame:
    return frame[frame["variant"] == variant].reset_index(drop=True)


def same_part(back: Results, whole: Results, variant: str) -> None:
    """`back` is what `whole` holds of `variant`."""
    pd.testing.assert_frame_equal(back.records, of_variant(whole.records, variant))
    pd.testing.assert_frame_equal(back.scores, of_variant(whole.scores, variant), rtol=0, atol=1e-12)
    pd.testing.assert_frame_equal(back.summary(), of_variant(whole.summary(), variant), rtol=0, atol=1e-9)
    wanted = {**whole.settings, "variants": [variant], "records": len(back.records)}
    assert {**back.settings, "rows": None} == {**wanted, "rows": None}
    assert back.failures().equals(of_variant(whole.failures(), variant).assign(of_kind=back.failures()["of_kind"]))


def test_results_come_back_as_they_were_logged(results: Results, mlflow_store: Store) -> None:
    held = results.with_thresholds({"faithfulness": 0.9, "context_precision": 0.5})
    for run_id, variant in zip(log_run(held, experiment="e", traces=0), VARIANTS, strict=True):
        back = load_run(run_id)
        same_part(back, held, variant)
        assert back.settings["metrics"]["faithfulness"]["threshold"] == 0.9
        mine = held.calls[held.calls["ask"].str.contains(f"/{variant}/")].reset_index(drop=True)
        pd.testing.assert_frame_equal(back.calls, mine)
        assert back.totals().cost_usd == pytest.approx(mine["cost_usd"].sum(), abs=1e-9)
        assert back.disagreements().equals(of_variant(held.disagreements(), variant))


def test_one_variant_has_the_same_totals_and_can_be_logged_again(results: Results, mlflow_store: Store) -> None:
    one = load_run(log_run(results, experiment="e", traces=0)[0])
    again = load_run(log_run(one, experiment="e", traces=0)[0])
    same_part(again, one, VARIANTS[0])
    assert again.settings == one.settings
    assert again.totals() == one.totals()
    assert again.notes() == one.notes()
    assert read_parts(again.folder, "uses").equals(read_parts(one.folder, "uses"))


def test_shares_of_calls_that_variants_shared_stay_exact(shared_calls: Results, mlflow_store: Store) -> None:
    uses = read_parts(shared_calls.folder, "uses").to_pandas()
    both = uses.groupby("ask")["variant"].nunique()
    assert (both == 2).any(), "no call is shared by the variants, so this test would prove nothing"
    runs = log_run(shared_calls, experiment="e", traces=0)
    parts = [load_run(run_id) for run_id in runs]
    for back, variant in zip(parts, ("short", "long"), strict=True):
        same_part(back, shared_calls, variant)
        mine = uses[uses["ask"].isin(uses.loc[uses["variant"] == variant, "ask"])]
        assert len(read_parts(back.folder, "uses")) == len(mine) > (mine["variant"] == variant).sum()
        assert set(back.calls["ask"]) == set(mine["ask"])
    costs = [part.scores["judge_cost_usd"].sum() for part in parts]
    assert sum(costs) == pytest.approx(shared_calls.totals().cost_usd, abs=1e-9)
    # A shared call is whole in the totals of both.
    assert sum(part.totals().cost_usd or 0 for part in parts) > (shared_calls.totals().cost_usd or 0)


def test_recorded_scores_come_back(mlflow_store: Store) -> None:
    frame = pd.DataFrame(
        {
            "id": ["1", "2", "3"], "metric": "grade", "judge": "ann", "score": [0.5, None, None],
            "error": ["", "", "timeout: 9 s"],
        }
    )  # fmt: skip
    logged = Results.from_frame(frame, {"grade": {"range": (0, 1), "threshold": 0.4}})
    back = load_run(log_run(logged, experiment="e", traces=0)[0])
    same_part(back, logged, "")
    assert back.settings == logged.settings
    assert back.totals() == logged.totals()
    assert back.scores["judge_cost_usd"].isna().all()


def test_who_wrote_the_answers_is_kept_for_this_variant(tmp_path: Path, mlflow_store: Store) -> None:
    made = make_results(tmp_path / "results", records=2)
    written = {name: {"prompt": name, "model": "m"} for name in VARIANTS}
    with_origin = Results(made.folder, {**made.settings, "written_by": written})
    backs = [load_run(run_id) for run_id in log_run(with_origin, experiment="e", traces=0)]
    assert [back.settings["written_by"] for back in backs] == [{name: written[name]} for name in VARIANTS]


def test_text_of_every_kind_survives(tmp_path: Path, mlflow_store: Store) -> None:
    odd = ["", " ", "\u5317\u4eac \U0001f600", "a\x00b", "half \ud800", "<b>'\"; DROP TABLE runs"]
    rows = [
        {"id": f"{at}", "question": None, "answer": text, "contexts": [] if at else None} for at, text in enumerate(odd)
    ]
    logged = jm.evaluate(rows, ["fluency"], jm.BaselineJudge(), store=None)
    back = load_run(log_run(logged, experiment="e", traces=0)[0])
    same_part(back, logged, "")
    assert [one is None for one in back.records["contexts"]] == [one is None for one in logged.records["contexts"]]


def test_the_temporary_folder_goes_with_the_results(mlflow_store: Store) -> None:
    back = load_run(log_run(graded(), experiment="e", traces=0)[0])
    folder = back.folder
    kept = back.save(mlflow_store_folder(mlflow_store) / "kept")
    assert folder.is_dir()
    del back
    assert not folder.exists()
    assert len(Results.load(kept).records) == 1


def mlflow_store_folder(store: Store) -> Path:
    return Path(store.uri.removeprefix("sqlite:///")).parent


def test_the_runs_of_one_evaluation_are_compared_as_it_was(shared_calls: Results, mlflow_store: Store) -> None:
    runs = log_run(shared_calls, experiment="e", traces=0)
    within, apart = jm.compare(shared_calls, "short"), compare_runs(runs, "short")
    pd.testing.assert_frame_equal(apart.frame, within.frame)
    assert apart.notes == within.notes
    both = joined([load_run(run_id) for run_id in runs])
    assert both.totals() == shared_calls.totals()
    pd.testing.assert_frame_equal(both.summary(), shared_calls.summary(), rtol=0, atol=1e-9)


# --- what is refused ---


def test_what_is_no_run_is_said_in_one_line(mlflow_store: Store) -> None:
    client = MlflowClient(tracking_uri=mlflow_store.uri)
    for text in ("", "nonsense", "../etc", "A" * 32, None):
        with pytest.raises(InputError, match="is not the id of an MLflow run"):
            load_run(text)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"MLflow at sqlite.*: there is no run {'0' * 32}$"):
        load_run("0" * 32)
    other = client.create_run(client.create_experiment("other"), run_name="mine").info.run_id
    with pytest.raises(InputError, match=rf"run {other} \(mine\) was not logged by log_run"):
        load_run(other)


def graded() -> Results:
    """The smallest results there are."""
    frame = pd.DataFrame({"id": ["1"], "metric": "grade", "judge": "ann", "score": [0.5]})
    return Results.from_frame(frame, {"grade": {"range": (0, 1)}})


def test_a_run_that_did_not_finish_or_is_deleted_is_refused(mlflow_store: Store) -> None:
    run_id = log_run(graded(), experiment="e", traces=0)[0]
    client = MlflowClient(tracking_uri=mlflow_store.uri)
    for status in ("FAILED", "KILLED", "RUNNING"):
        client.update_run(run_id, status)
        with pytest.raises(InputError, match=rf"run {run_id} \(e\) is {status}, not FINISHED; log its results again"):
            load_run(run_id)
    client.update_run(run_id, "FINISHED")
    assert len(load_run(run_id).scores) == 1
    client.delete_run(run_id)
    with pytest.raises(InputError, match=rf"run {run_id} \(e\) is deleted; restore it"):
        load_run(run_id)


def artifacts_of(store: Store, run_id: str) -> Path:
    (found,) = (mlflow_store_folder(store) / "artifacts").glob(f"{run_id}/artifacts")
    return found


def test_a_run_without_its_files_is_refused(results: Results, mlflow_store: Store) -> None:
    run_id, other = log_run(results, experiment="e", traces=0)
    folder = artifacts_of(mlflow_store, run_id)
    (folder / "records.parquet").unlink()
    with pytest.raises(InputError, match=r"\(concise\) has no records.parquet among its artifacts"):
        load_run(run_id)
    shutil.rmtree(folder)
    with pytest.raises(InputError, match=r"has no scores.parquet, records.parquet, settings.json among its artifacts"):
        load_run(run_id)
    damaged = artifacts_of(mlflow_store, other) / "calls.parquet"
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(InputError, match=r"calls.parquet cannot be read \(.+\)") as caught:
        load_run(other)
    assert "\n" not in str(caught.value)


def test_no_store_is_made_by_looking(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="there is none yet"):
        load_run("0" * 32)
    assert not (project / "mlruns").exists()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://ann:secret@127.0.0.1:{port}")
    with pytest.raises(InputError, match=rf"^MLflow at http://ann:\*\*\*@127.0.0.1:{port} does not answer") as caught:
        load_run("0" * 32)
    assert "\n" not in str(caught.value)


# --- runs of older versions ---


def as_before(folder: Path) -> None:
    """A run's files as they were before runs kept calls."""
    for name in ("calls.parquet", "uses.parquet"):
        (folder / name).unlink()
    scores = pd.read_parquet(folder / "scores.parquet")
    scores.drop(columns="panel").to_parquet(folder / "scores.parquet", index=False)


def test_a_run_of_an_older_version_says_that_costs_are_unknown(results: Results, mlflow_store: Store) -> None:
    run_id = log_run(results, experiment="e", traces=0)[0]
    as_before(artifacts_of(mlflow_store, run_id))
    back, wanted = load_run(run_id), of_variant(results.scores, VARIANTS[0])
    light = [name for name in wanted.columns if not name.startswith("judge_") and name != "cached_calls"]
    pd.testing.assert_frame_equal(back.scores[light], wanted[light])
    assert back.disagreements().equals(of_variant(results.disagreements(), VARIANTS[0]))
    mean = ["metric", "judge", "mean", "low", "high", "n", "pass_rate", "failed"]
    pd.testing.assert_frame_equal(back.summary()[mean], of_variant(results.summary(), VARIANTS[0])[mean])
    of_judges = back.scores[back.scores["judge"] != "computed"]
    # Those of the panel are 0, as always: they are its members'.
    assert of_judges[of_judges["judge"] != "panel"]["judge_cost_usd"].isna().all()
    assert back.totals().cost_usd is None
    assert any("kept no calls" in note for note in back.notes())
    assert {one["model"] for one in back.settings["judges"].values() if "model" in one} == {
        "gpt-4.1-mini",
        "claude-haiku-4",
    }


# --- whatever a user calls results ---


def test_open_results_takes_folders_experiments_and_runs(results: Results, mlflow_store: Store, project: Path) -> None:
    run_id = log_run(results, experiment="e", traces=0)[1]
    assert open_results(str(results.folder)).records.equals(results.records)
    for text in (run_id, f"runs:/{run_id}"):
        assert open_results(text).records.equals(of_variant(results.records, VARIANTS[1]))
    study = project / "study"
    study.mkdir()
    (study / "records.jsonl").write_text(json.dumps({"answer": "Yes.", "reference": "Yes."}), encoding="utf-8")
    (study / "experiment.toml").write_text(
        'data.records = "records.jsonl"\njudges = [{ kind = "baseline" }]\nmetrics.use = ["f1"]\nrun.store = "none"\n'
        "mlflow.log = false\n",
        encoding="utf-8",
    )
    with pytest.raises(
        InputError, match=r"study: no results of this experiment in .*results; make them with: jurimetrics run"
    ):
        open_results(str(study))
    jm.run_experiment(study)
    for place in (study, study / "experiment.toml", study / "results"):
        assert open_results(str(place)).scores["score"].tolist() == [1.0]


def test_open_results_says_what_was_tried(project: Path) -> None:
    (project / "empty").mkdir()
    (project / "notes.txt").write_text("", encoding="utf-8")
    for text, said in {
        "nowhere": "nowhere: nothing there; expected a folder of results, an experiment .* or an MLflow run id",
        "x" * 5000: "x: nothing there; expected a folder of results, an experiment",
        "empty": r"empty: neither settings.json \(results\) nor experiment.toml \(an experiment\) is in this folder",
        "notes.txt": "notes.txt: is a file; expected a folder of results, an experiment",
    }.items():
        with pytest.raises(InputError, match=said) as caught:
            open_results(text)
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_runs_come_back_from_a_real_server(
    project: Path, empty_store: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_tracking_server import running_server, stop

    (project / "server").mkdir()
    database = project / "server" / "mlflow.db"
    database.write_bytes(empty_store.read_bytes())
    with running_server(project / "server", database) as (address, server):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        runs = log_run(results, experiment="e", traces=2)
        for run_id, variant in zip(runs, VARIANTS, strict=True):
            same_part(load_run(run_id), results, variant)
        with pytest.raises(InputError, match=f"there is no run {'0' * 32}"):
            load_run("0" * 32)
        stop(server)
        with pytest.raises(InputError, match=f"MLflow at {address} does not answer"):
            load_run(runs[0])
