"""Several evaluations as one: what is kept, what is renamed, and every difference that forbids it, by its words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from compared import A, B, rows
from evaluations import COST, evaluation
from jurimetrics import InputError, Results
from jurimetrics.results.differences import differences
from jurimetrics.results.joined import joined
from jurimetrics.results.reading import read_parts


def scores_of(results: Results, variant: str) -> pd.DataFrame:
    scores = results.scores
    return scores[scores["variant"] == variant].drop(columns="variant").reset_index(drop=True)


# --- what is kept ---


def test_rows_costs_and_totals_stay_what_they_were(tmp_path: Path) -> None:
    old, new = evaluation(tmp_path, ["old", "older"]), evaluation(tmp_path, ["new"], gain=0.2)
    both = joined([old, new])
    for variant, source in (("old", old), ("older", old), ("new", new)):
        pd.testing.assert_frame_equal(scores_of(both, variant), scores_of(source, variant), rtol=0, atol=1e-12)
    # A call of the first is split over two variants; both evaluations used the same asks, and neither pays for the other.
    members = both.scores[both.scores["judge"].isin(["ann", "bob"])].groupby("variant")["judge_cost_usd"].unique()
    assert {name: costs.tolist() for name, costs in members.items()} == {
        "old": [COST / 2], "older": [COST / 2], "new": [COST],
    }  # fmt: skip
    assert both.totals().cost_usd == pytest.approx(2 * 12 * 2 * COST, abs=1e-9)
    assert both.totals().calls == len(both.calls) == len(old.calls) + len(new.calls)
    assert both.scores["judge_cost_usd"].sum() == pytest.approx(both.totals().cost_usd, abs=1e-9)
    assert len(both.records) == 36
    assert both.settings["variants"] == ["old", "older", "new"]
    assert Results.load(both.save(tmp_path / "kept")).scores.equals(both.scores)
    assert old.settings["variants"] == ["old", "older"], "what is joined stays as it is"


def test_parts_of_one_evaluation_pay_a_shared_call_once(tmp_path: Path) -> None:
    whole = evaluation(tmp_path, ["a", "b", "c"])
    parts = [part_of(whole, variant, tmp_path) for variant in ("a", "b")]
    back = joined(parts)
    assert back.notes() == whole.notes()
    for variant in ("a", "b"):
        pd.testing.assert_frame_equal(scores_of(back, variant), scores_of(whole, variant), rtol=0, atol=1e-12)
    assert len(back.calls) == len(whole.calls)
    assert back.totals().cost_usd == pytest.approx(whole.totals().cost_usd, abs=1e-9)
    # A variant of the same name from elsewhere is not billed for what the absent one used.
    other = evaluation(tmp_path, ["c"])
    three = joined([*parts, other])
    pd.testing.assert_frame_equal(scores_of(three, "c"), scores_of(other, "c"), rtol=0, atol=1e-12)
    pd.testing.assert_frame_equal(scores_of(three, "a"), scores_of(whole, "a"), rtol=0, atol=1e-12)


def part_of(results: Results, variant: str, folder: Path) -> Results:
    """One variant as a run of MLflow holds it."""
    from jurimetrics.frames import write_part, write_settings
    from jurimetrics.results.parts import calls_and_uses, row_parts, rows_of

    target, chosen = folder / f"part-{variant}", rows_of([variant])
    counts = {}
    for name in ("records", "scores"):
        for at, part in enumerate(row_parts(results.folder, name, chosen)):
            write_part(part, target / name / f"part-{at:05d}.parquet")
            counts[name] = counts.get(name, 0) + part.num_rows
    for name, part in zip(("calls", "uses"), calls_and_uses(results.folder, chosen), strict=True):
        write_part(part, target / name / "part-00000.parquet")
        counts[name] = part.num_rows
    write_settings(target, {**results.settings, "variants": [variant], "rows": counts})
    return Results.load(target)


def test_variants_are_renamed_only_where_they_collide(tmp_path: Path) -> None:
    one, two, three = (evaluation(tmp_path, names) for names in (["short", "own"], ["short"], [""]))
    found = joined([one, two, three], ["may", "june", "july"])
    assert found.settings["variants"] == ["short (may)", "own", "short (june)", ""]
    assert set(found.scores["variant"]) == set(found.records["variant"]) == set(found.settings["variants"])
    assert (
        "Variant 'short' of may is called 'short (may)', since several results have one of that name." in found.notes()
    )
    assert [each["variants"] for each in found.settings["joined"]] == [
        {"short": "short (may)", "own": "own"}, {"short": "short (june)"}, {"": ""},
    ]  # fmt: skip
    nameless = joined([three, evaluation(tmp_path)])
    assert nameless.settings["variants"] == ["#1", "#2"]
    with pytest.raises(InputError, match=r"two variants would be called 'short \(may\)'; give other names"):
        joined([one, two, evaluation(tmp_path, ["short (may)"])], ["may", "june", "july"])


def test_settings_are_those_of_all(tmp_path: Path) -> None:
    def first(settings: dict[str, Any]) -> None:
        settings["written_by"] = {"": {"model": "w-1"}, "not there": {"model": "w-0"}}
        settings["metrics"]["clear"]["threshold"] = 0.4
        settings["notes"] = ["ann: 3 calls failed", "for all"]

    def second(settings: dict[str, Any]) -> None:
        settings["written_by"] = {"": {"model": "w-2"}}
        settings["notes"] = ["for all"]
        settings["prompts"]["check@def"] = {}
        settings["metrics"]["more"] = settings["metrics"]["f1"]
        settings["interrupted"] = True

    found = joined([evaluation(tmp_path, change=first), evaluation(tmp_path, change=second)], ["x", "y"])
    settings = found.settings
    assert settings["written_by"] == {"x": {"model": "w-1"}, "y": {"model": "w-2"}}
    assert settings["metrics"]["clear"]["threshold"] == 0.4
    assert list(settings["metrics"]) == ["clear", "f1", "more"]
    assert set(settings["prompts"]) == {"rate@abc", "check@def"}
    assert (settings["repeats"], settings["interrupted"], settings["records"], settings["seconds"]) == (
        1,
        True,
        24,
        4.0,
    )
    notes = settings["notes"]
    assert "x: ann: 3 calls failed" in notes and "for all" in notes
    assert (
        "The threshold of clear is 0.4 in x and 0.5 in y; thresholds are applied afterwards: 0.4 holds for all here."
        in notes
    )
    assert "Metrics of y alone, not compared: more." in notes


def test_references_that_models_wrote_are_counted_anew(tmp_path: Path) -> None:
    by_model = {at: {"metadata": {"reference_model": "w"}} for at in (1, 2)}

    def counted(settings: dict[str, Any]) -> None:
        settings["reference_models"] = {"w": 2}

    one, other = (evaluation(tmp_path, record=by_model, change=counted) for _ in range(2))
    assert joined([one, other]).settings["reference_models"] == {"w": 4}


def test_recorded_scores_join_over_the_range_of_both(tmp_path: Path) -> None:
    low, high = (pd.DataFrame(rows(A=scores)) for scores in (A, [score + 1 for score in B]))
    found = joined([Results.from_frame(low), Results.from_frame(high)])
    assert found.settings["metrics"]["grade"]["range"] == [0.2, 1.9]
    declared = Results.from_frame(low, {"grade": {"range": (0, 1)}})
    inside = joined([Results.from_frame(low.assign(variant="C")), declared]).settings["metrics"]["grade"]
    assert inside["range"] == [0, 1] and "range_from_data" not in inside
    with pytest.raises(InputError, match=r"grade has the range 0 to 1 in #1 and 1.1 to 1.9 \(from its data\) in #2"):
        joined([declared, Results.from_frame(high)])


# --- every difference that forbids it ---


def setting(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one setting."""

    def change(settings: dict[str, Any]) -> None:
        place = settings
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value

    return change


def without_panel(settings: dict[str, Any]) -> None:
    settings["panel"] = None


def only(judge: str) -> Callable[[dict[str, Any]], None]:
    def change(settings: dict[str, Any]) -> None:
        settings["panel"] = None
        settings["judges"] = {judge: settings["judges"]["ann"]}

    return change


def under_options(settings: dict[str, Any]) -> None:
    settings["metrics"] = {"clear(refusals=worst)": settings["metrics"]["clear"], "f1": settings["metrics"]["f1"]}


def mapped(settings: dict[str, Any]) -> None:
    settings["judges"]["ann mapped"] = {"kind": "calibrated", "of": "ann"}
    settings["calibrations"] = [{"labels_digest": settings["data_digest"]}]


REASONS = [
    (setting("metrics", "clear", "version", value="2"), "metric clear is version 1 in A and 2 in B"),
    (setting("metrics", "clear", "range", value=[1, 5]), "metric clear has the range 0 to 1 in A and 1 to 5 in B"),
    (
        setting("metrics", "clear", "higher_is_better", value=False),
        "metric clear is better where it is higher in A and where it is lower in B",
    ),
    (setting("metrics", "clear", "levels", value=[0, 1]), "metric clear has the levels None in A and 0, 1 in B"),
    (under_options, "metric clear has other options: clear in A and clear(refusals=worst) in B"),
    (setting("metrics", value={"other": {"range": [0, 1]}}), "no metric is in both (A: clear, f1; B: other)"),
    (
        setting("judges", "ann", value={"kind": "chat", "model": "x", "reply_key": "other"}),
        "judge ann is set up otherwise in A and in B (model ann and x",
    ),
    (
        setting("judges", "bob", "reply_key", value="other"),
        "judge bob is set up otherwise in A and in B (sampling)",
    ),
    (only("carl"), "no judge is in both (A: ann, bob; B: carl)"),
    (without_panel, "A has the panel panel (median of ann, bob) and B has none"),
    (
        setting("panel", "members", value=["ann", "carl"]),
        "the panel differs in members: ann, bob in A and ann, carl in B",
    ),
    (setting("panel", "rule", value="weighted"), "the panel differs in rule: median in A and weighted in B"),
    (setting("panel", "vote_on", value="scores"), "the panel differs in vote on: verdicts in A and scores in B"),
    (setting("panel", "quorum", value=1), "the panel differs in quorum: 2 in A and 1 in B"),
    (setting("panel", "weights", value={"ann": 2}), "the panel differs in weights: None in A and {'ann': 2} in B"),
    (setting("panel", "extractor", value="ann"), "the panel differs in extractor: None in A and ann in B"),
    (setting("embedder", value={"model": "e-2", "reply_key": "e-2"}), "the embedder is set up otherwise in A and in B"),
    (setting("prompts", value={"rate@def#2": {}}), "the wording of the task rate is version abc in A and def in B"),
    (setting("repeats", value=3), "judges were asked once in A and 3 times in B"),
    (
        setting("reason_language", value="German"),
        "the language of the reasons is that of the answer in A and German in B",
    ),
]


@pytest.mark.parametrize(("change", "words"), REASONS, ids=[words[:40] for _, words in REASONS])
def test_a_difference_of_settings_forbids_it_by_name(change: Callable[[Any], None], words: str, tmp_path: Path) -> None:
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"], change=change)
    with pytest.raises(InputError, match=rf"^A and B must not be compared: .*{re.escape(words)}") as caught:
        joined([one, other], ["A", "B"])
    assert "\n" not in str(caught.value)
    assert differences(other, one).reasons, "either way round"


def test_maps_of_other_labels_forbid_it(tmp_path: Path) -> None:
    one, other = (evaluation(tmp_path, [name], change=mapped) for name in ("a", "b"))
    with pytest.raises(InputError, match="the scores of ann mapped are mapped otherwise"):
        joined([one, other])


def test_who_answered_forbids_it_by_name(tmp_path: Path) -> None:
    one = evaluation(tmp_path, ["a"], fingerprint="f-1")
    other = evaluation(tmp_path, ["b"], served=lambda judge, at: "m-2" if judge == "ann" and at > 8 else "m-1")
    with pytest.raises(InputError, match=r"judge ann was served by the model m-1 in A and by m-1, m-2 in B$"):
        joined([one, other], ["A", "B"])
    marked = evaluation(tmp_path, ["b"], fingerprint="f-2")
    with pytest.raises(
        InputError, match=r"judge ann was served by the fingerprint f-1 in A and by f-2 in B; judge bob was"
    ):
        joined([one, marked], ["A", "B"])
    mixed = [evaluation(tmp_path, [name], served=lambda judge, at: f"m-{at % 2}") for name in ("a", "b")]
    assert differences(*mixed).reasons == ()


def test_an_endpoint_that_names_no_model_is_a_note(tmp_path: Path) -> None:
    silent = evaluation(tmp_path, ["b"], served=lambda judge, at: None)  # type: ignore[arg-type,return-value]
    found = differences(evaluation(tmp_path, ["a"]), silent, ("A", "B"))
    assert found.reasons == ()
    assert "It cannot be told whether ann was the same model in A and B." in found.notes


def test_who_split_the_claims_forbids_it_without_a_panel(tmp_path: Path) -> None:
    one = evaluation(tmp_path, ["a"], kind="claims", change=without_panel)
    other = evaluation(tmp_path, ["b"], kind="claims", change=only("bob"))
    assert "claims were split by ann, bob in A" not in str(differences(one, other, ("A", "B")).reasons)
    path = other.folder / "calls" / "part-00000.parquet"
    calls = pd.read_parquet(path)
    calls[calls["judge"] == "bob"].to_parquet(path, index=False)
    found = differences(one, Results(other.folder, other.settings), ("A", "B")).reasons
    assert "claims were split by ann, bob in A and by bob in B" in found


def test_scores_given_together_are_not_comparable_across_evaluations(tmp_path: Path) -> None:
    one, other = (evaluation(tmp_path, [name, f"{name}2"], kind="together") for name in ("a", "b"))
    with pytest.raises(InputError, match="metric clear scores the answers to a question together, and these were not"):
        joined([one, other])
    assert set(joined([one, other], metrics=["f1"]).scores["metric"]) == {"f1"}


def test_computed_metrics_do_not_mind_other_judges(tmp_path: Path) -> None:
    one = evaluation(tmp_path, ["a"])
    other = evaluation(tmp_path, ["b"], change=only("carl"), served="m-9")
    found = joined([one, other], metrics=["f1"])
    assert list(found.settings["metrics"]) == ["f1"]
    assert found.settings["panel"] is None
    assert len(found.scores) == 24 and len(found.calls) == 0
    with pytest.raises(InputError, match=r"none of nothing is in both \(#1: clear, f1; #2: clear, f1\)"):
        joined([one, other], metrics=["nothing"])
    with pytest.raises(InputError, match="metrics: expected a list of metrics, found 'f1'"):
        joined([one, other], metrics="f1")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("question", "Another?", "1 record has another question ('r03')"),
        ("contexts", [], "1 record has other contexts ('r03')"),
        ("contexts", None, "1 record has other contexts ('r03')"),
        ("reference", "It is not.", "1 record has another reference ('r03')"),
        ("group", "g", "1 record has another group ('r03')"),
    ],
)
def test_another_input_of_one_record_forbids_it(field: str, value: Any, words: str, tmp_path: Path) -> None:
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"], record={3: {field: value}})
    with pytest.raises(
        InputError, match=re.escape(f"{words}; shared_only=True compares the 11 records that are alike")
    ):
        joined([one, other])
    shared = joined([one, other], shared_only=True)
    assert set(shared.scores["id"]) == set(shared.records["id"]) == {f"r{at:02}" for at in range(12) if at != 3}
    assert len(shared.records) == 22
    assert shared.settings["records"] == 22
    assert f"Only the 11 records with the same inputs in #1 and #2 count: {words}." in shared.notes()
    # What the dropped record took is not in this bill.
    assert shared.totals().cost_usd == pytest.approx(2 * 11 * 2 * COST, abs=1e-9)


def test_contexts_may_be_what_each_system_gave(tmp_path: Path) -> None:
    found_otherwise = {at: {"contexts": [f"Article {at}.", "Article 99."]} for at in (3, 4, 5, 6)}
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"], record=found_otherwise)
    with pytest.raises(InputError) as caught:
        joined([one, other], ["A", "B"])
    assert str(caught.value) == (
        "A and B must not be compared: 4 records have other contexts ('r03', 'r04', 'r05', ...); shared_only=True compares "
        "the 8 records that are alike; same_contexts=False (--other-contexts) takes contexts as part of what a system gave"
    )
    both = joined([one, other], ["A", "B"], same_contexts=False)
    assert both.settings["notes"] == [
        "Contexts count as what each system gave, as its answers do: they differ between A and B in 4 of 12 records ('r03', "
        "'r04', 'r05', ...)."
    ]
    assert len(both.records) == 24
    given = both.records.set_index(["id", "variant"])["contexts"]
    assert list(given["r03", "a"]) == ["Article 3."] and list(given["r03", "b"]) == ["Article 3.", "Article 99."]
    alike = joined([one, evaluation(tmp_path, ["c"])], same_contexts=False)
    assert not any("Contexts count" in note for note in alike.settings["notes"])


@pytest.mark.parametrize("field", ["question", "reference", "group"])
def test_other_contexts_excuse_no_other_input(field: str, tmp_path: Path) -> None:
    change = {2: {"contexts": ["?"]}, 3: {"contexts": ["?"], field: "x"}}
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"], record=change)
    with pytest.raises(InputError) as caught:
        joined([one, other], ["A", "B"], same_contexts=False)
    assert str(caught.value) == (
        f"A and B must not be compared: 1 record has another {field} ('r03'); shared_only=True compares the 11 records that "
        "are alike"
    )
    shared = joined([one, other], ["A", "B"], shared_only=True, same_contexts=False)
    assert set(shared.scores["id"]) == {f"r{at:02}" for at in range(12) if at != 3}
    assert shared.settings["notes"] == [
        f"Only the 11 records with the same inputs in A and B count: 1 record has another {field} ('r03').",
        "Contexts count as what each system gave, as its answers do: they differ between A and B in 1 of 11 records ('r02').",
    ]


def test_the_way_out_is_named_only_where_it_leads_somewhere(tmp_path: Path) -> None:
    one = evaluation(tmp_path, ["a"])
    everywhere = evaluation(tmp_path, ["b"], record={at: {"contexts": ["?"]} for at in range(12)})
    reasons = differences(one, everywhere).reasons
    assert reasons[0].startswith("no record with the same inputs is in both: 12 records have other contexts ('r00',")
    assert reasons[0].endswith("; same_contexts=False (--other-contexts) takes contexts as part of what a system gave")
    assert differences(one, everywhere, same_contexts=False).reasons == ()
    more = evaluation(tmp_path, ["b"], record={3: {"contexts": ["?"], "question": "?"}})
    assert "same_contexts" not in differences(one, more).reasons[0]


def test_other_answers_do_not_forbid_it(tmp_path: Path) -> None:
    one = evaluation(tmp_path, ["a"])
    other = evaluation(tmp_path, ["b"], record={3: {"answer": None, "answer_error": "timeout: 9 s"}})
    assert differences(one, other).reasons == ()


def test_a_subset_forbids_it_with_examples(tmp_path: Path) -> None:
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"], records=7, record={0: {"question": "?"}})
    with pytest.raises(InputError) as caught:
        joined([one, other], ["A", "B"])
    assert str(caught.value) == (
        "A and B must not be compared: 5 records are in A alone ('r07', 'r08', 'r09', ...); 1 record has another question "
        "('r00'); shared_only=True compares the 6 records that are alike"
    )
    assert len(joined([one, other], shared_only=True).records) == 12


def test_nothing_in_common_is_refused_even_of_shared_records(tmp_path: Path) -> None:
    elsewhere = {at: {"question": "Another?"} for at in range(12)}
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"], record=elsewhere)
    for shared_only in (False, True):
        with pytest.raises(
            InputError, match="no record with the same inputs is in both: 12 records have another question"
        ):
            joined([one, other], shared_only=shared_only)
    # Any two of these share four records, all three share none.
    thirds = [
        evaluation(tmp_path, [name], record={at: {"question": name} for at in range(first, first + 4)})
        for name, first in (("c", 0), ("d", 4), ("e", 8))
    ]
    with pytest.raises(InputError, match=r"^no record has the same inputs in all of #1, #2, #3$"):
        joined(thirds, shared_only=True)


def test_all_reasons_are_given_at_once(tmp_path: Path) -> None:
    def change(settings: dict[str, Any]) -> None:
        settings["repeats"], settings["reason_language"] = 2, "German"

    found = differences(evaluation(tmp_path), evaluation(tmp_path, records=11, served="m-2", change=change))
    assert len(found.reasons) == 5, found.reasons


# --- what cannot be joined ---


def test_what_is_given_is_checked(tmp_path: Path) -> None:
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"])
    for given, words in (
        (one, "expected a list of Results"),
        ([one, "folder"], "expected a list of Results"),
        ([one], "two results or more are needed, found 1"),
        ([one, one], "#1 and #2 are the same evaluation of variant 'a'"),
        ([one, Results.load(one.folder).with_thresholds({"clear": 0.9})], "the same evaluation of variant 'a'"),
    ):
        with pytest.raises(InputError, match=words):
            joined(given)  # type: ignore[arg-type]
    for names in (["x"], ["x", "x"], ["x", " "]):
        with pytest.raises(InputError, match="names must be one for each of the 2 results and different"):
            joined([one, other], names)


def test_a_failed_join_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    one, other = evaluation(tmp_path, ["a"]), evaluation(tmp_path, ["b"])
    (other.folder / "scores" / "part-00000.parquet").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"scores.part-00000.parquet: cannot be read"):
        joined([one, other])
    assert list((tmp_path / "temporary").iterdir()) == []
    found = joined([one, evaluation(tmp_path, ["b"])])
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    assert read_parts(found.folder, "uses").num_rows == 48
    del found
    assert list((tmp_path / "temporary").iterdir()) == []
