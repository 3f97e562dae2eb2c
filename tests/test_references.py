"""References that a model writes: only where there is none, marked, flagged in rows, and said beside every mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.answers import Answers
from jurimetrics.engine.calls import EndpointError
from jurimetrics.variants.generate import generate
from jurimetrics.variants.references import plan_references, write_references
from jurimetrics.variants.variant import Variant
from scripted_server import ScriptedServer, error, reply


def records() -> list[dict[str, Any]]:
    return [
        {
            "id": "1",
            "question": "Who built the mill?",
            "contexts": ["Monks built it.", "It is old."],
            "answer": "Monks.",
        },
        {"id": "2", "question": "When?", "reference": "In 1780.", "answer": "In 1780.", "metadata": {"topic": "mills"}},
        {"id": "3", "question": "Why?", "answer": "For bread."},
    ]


def write(server: ScriptedServer, given: Any = None, **options: Any) -> Answers:
    options = {"store": None, "price": (1, 2)} | options
    return write_references(records() if given is None else given, "strong", base_url=server.url, **options)


def test_only_missing_references_are_written_and_marked() -> None:
    with ScriptedServer(lambda call: reply("Monks built it.", usage=(100, 10))) as server:
        done = write(server)
        assert server.count == 2
    assert [one.reference for one in done] == ["Monks built it.", "In 1780.", "Monks built it."]
    assert [dict(one.metadata) for one in done] == [
        {"reference_model": "strong"}, {"topic": "mills"}, {"reference_model": "strong"},
    ]  # fmt: skip
    assert [one.answer for one in done] == ["Monks.", "In 1780.", "For bread."]
    assert done.totals().cost_usd == pytest.approx(2 * 120e-6) and done.totals().calls == 2


def test_default_prompt_fences_documents_and_asks_without_them_where_there_are_none() -> None:
    with ScriptedServer(lambda call: reply("x")) as server:
        write(server)
        asked = sorted((call.prompt for call in server.requests), key=len, reverse=True)
    assert "<document n=1 " in asked[0] and "Monks built it." in asked[0] and "from the documents alone" in asked[0]
    assert "<document" not in asked[1] and "leave it out" in asked[1]
    assert all("<question " in prompt and "Monks.\n" not in prompt for prompt in asked), "the answer is not shown"


def test_own_prompt_and_settings_are_what_is_sent() -> None:
    with ScriptedServer(lambda call: reply("x")) as server:
        write(server, prompt="{id}: {question}", temperature=0.3, max_tokens=50)
        bodies = sorted((call.body for call in server.requests), key=str)
    assert [body["messages"] for body in bodies] == [
        [{"role": "user", "content": "1: Who built the mill?"}], [{"role": "user", "content": "3: Why?"}],
    ]  # fmt: skip
    assert {(body["temperature"], body["max_tokens"]) for body in bodies} == {(0.3, 50)}


def test_variants_of_a_record_get_one_reference_from_all_their_documents() -> None:
    given = [
        {"id": "1", "question": "Who?", "variant": name, "answer": name, "contexts": ["Shared.", f"Of {name}."]}
        for name in "ab"
    ]
    with ScriptedServer(lambda call: reply(f"answer {call.n}")) as server:
        done = write(server, given)
        assert server.count == 1
        prompt = server.requests[0].prompt
    assert {one.reference for one in done} == {"answer 0"} and [one.contexts[1] for one in done] == ["Of a.", "Of b."]
    assert prompt.count("Shared.") == 1 and "Of a." in prompt and "Of b." in prompt


def test_variant_without_a_reference_gets_that_of_another_of_its_id() -> None:
    given = [
        {"id": "1", "variant": "a", "question": "Who?", "reference": "The monks."},
        {"id": "1", "variant": "b", "question": "Who?", "reference_error": "timeout: 60 s"},
        {"id": "2", "variant": "a", "question": "When?", "reference": "In 1780.", "reference_model": "big"},
        {"id": "2", "variant": "b", "question": "When?"},
        {"id": "3", "variant": "a", "question": "Why?", "reference": "Floods."},
        {"id": "3", "variant": "b", "question": "Why?", "reference": "High water."},
        {"id": "3", "variant": "c", "question": "Why?"},
    ]
    with ScriptedServer(lambda call: reply(f"{call.model}.", usage=(1, 1))) as server:
        asked = write(server, given)
        assert server.count == 1, "of 3 nobody can tell which"
    told = [(one.id, one.variant, one.reference, one.metadata.get("reference_model")) for one in asked]
    assert told[1] == ("1", "b", "The monks.", None) and told[3] == ("2", "b", "In 1780.", "big")
    assert told[6] == ("3", "c", "strong.", "strong") and "reference_error" not in asked[1].metadata
    assert plan_references(given, "m", base_url="http://127.0.0.1:9/v1", store=None).totals.calls == 1


def test_failure_is_marked_and_mended_by_a_second_run(tmp_path: Path) -> None:
    with ScriptedServer(lambda call: error(500) if "Why" in call.prompt else reply("Monks.")) as server:
        first = write(server, store=tmp_path / "s.db", retries=0)
        assert first[2].reference is None and str(first[2].metadata["reference_error"]).startswith("transport: ")
        server.handler = lambda call: reply("For bread.")
        second = write(server, first, store=tmp_path / "s.db")
        assert server.count == 3
    assert second[2].reference == "For bread." and dict(second[2].metadata) == {"reference_model": "strong"}


def test_record_without_a_question_is_not_asked() -> None:
    given = [{"id": "1", "answer": "x", "contexts": ["Monks built it."]}]
    with ScriptedServer(lambda call: reply("x")) as server:
        done = write(server, given)
        assert server.count == 0
    assert done[0].metadata["reference_error"] == "rejected: the record has no question"


def test_nothing_to_write_asks_nobody() -> None:
    gone = "http://127.0.0.1:9/v1"
    done = write_references(records()[1:2], "strong", base_url=gone, price=0, prompt="{question}", store=None)
    assert [one.reference for one in done] == ["In 1780."] and done.totals().calls == 0
    with pytest.raises(EndpointError):
        write_references(records(), "strong", base_url=gone, price=0, store=None)


def test_what_wrote_the_answers_is_kept() -> None:
    given = [{"id": "1", "question": "Who?"}]
    with ScriptedServer(lambda call: reply(f"{call.model}.")) as server:
        answers = generate(given, Variant("a", "{question}", "weak", base_url=server.url, price=0), store=None)
        answers.notes = ("The store was full.",)
        done = write(server, answers)
    assert done.written_by == answers.written_by and done.notes == answers.notes
    assert done[0].reference == "strong." and done[0].answer == "weak."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": " "}, "model must be the name"),
        ({"model": 5}, "the name of a model or a function"),
        ({"temperatur": 1}, "'temperatur' is no setting"),
        ({"prompt": "{nmae}"}, "no record has 'nmae'"),
        ({"concurrency": 0}, "concurrency must be"),
    ],
)
def test_bad_input_is_one_line(options: dict[str, Any], message: str) -> None:
    given = {"model": "m", "store": None} | options
    with pytest.raises(jm.InputError, match=message):
        write_references(records(), given.pop("model"), **given)


# ---------------------------------------------------------------------------------------------- told wherever it matters


def test_rows_that_used_such_a_reference_are_flagged_and_no_others() -> None:
    results = jm.evaluate(
        [*write_references(records(), lambda record: "Monks.", store=None), jm.Record("4", question="No answer?")],
        ["f1", "fluency"],
        jm.BaselineJudge(),
        store=None,
    )
    flagged = results.scores[results.scores["flags"].map(lambda flags: "reference_by_model" in flags)]
    assert set(zip(flagged["id"], flagged["metric"], strict=True)) == {("1", "f1"), ("3", "f1")}
    assert results.settings["reference_models"] == {"function": 2}


def test_mark_survives_a_file(tmp_path: Path) -> None:
    from jurimetrics.records import records_frame

    path = tmp_path / "records.csv"
    records_frame(write_references(records(), lambda record: "Monks.", store=None)).to_csv(path, index=False)
    results = jm.evaluate(path, ["f1"], jm.BaselineJudge(), store=None)
    assert results.settings["reference_models"] == {"function": 2}


def test_answers_of_two_variants_to_one_question_are_one_question(tmp_path: Path) -> None:
    from jurimetrics.report.page import report

    mark = {"reference": "Monks.", "metadata": {"reference_model": "gpt-5"}, "answer": "Monks."}
    both = [{"id": "1", "variant": "a", **mark}, {"id": "1", "variant": "b", **mark}]
    found = jm.evaluate(both, ["f1"], jm.BaselineJudge(), store=None)
    assert "gpt-5 wrote that of 1 question (2 answers)" in " ".join(found.notes())
    page = report(found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "not by people: gpt-5, for 1 question (2 answers)." in page


def test_summary_says_so_and_is_silent_where_people_wrote_them() -> None:
    results = jm.evaluate(
        write_references(records(), lambda record: "Monks.", store=None), ["f1"], jm.BaselineJudge(), store=None
    )
    said = [note for note in results.summary().attrs["notes"] if "References written by a model" in note]
    assert len(said) == 1 and "function wrote that of 2 questions. Metrics" in said[0]
    plain = jm.evaluate(records()[1:2], ["f1"], jm.BaselineJudge(), store=None)
    assert plain.settings["reference_models"] == {}
    assert not any("written by a model" in note for note in plain.summary().attrs["notes"])


def test_mlflow_shows_it_as_a_param_and_in_the_note(project: Path) -> None:
    from mlflow import MlflowClient

    done = write_references(records(), lambda record: "Monks.", store=None)
    results = jm.evaluate(done, ["f1"], jm.BaselineJudge(), store=None)
    (run_id,) = jm.log_run(results, experiment="references", traces=0)
    run = MlflowClient(f"sqlite:///{project / 'mlruns' / 'mlflow.db'}").get_run(run_id)
    assert run.data.params["reference_model"] == "function"
    assert "References written by a model" in run.data.tags["mlflow.note.content"]
