"""Grounding: every formula and every edge, by judges whose verdicts, labels and ratings are written here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jurimetrics as jm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.judges.judge import JudgeError
from jurimetrics.metrics import GROUPS
from jurimetrics.metrics.grounding import faithfulness, hallucination, noise_sensitivity, noise_share
from jurimetrics.text import sentences
from scripted_judge import ScriptedJudge, one_claim_each, ratings, sentence_labels, verdicts

CLAIMS = ("faithfulness", "noise_sensitivity", "noise_share")
DOCUMENTS = ("context_precision", "context_average_precision")
RECORD = {
    "id": "1",
    "question": "What is Madrid?",
    "answer": "Madrid is in Spain. Madrid has a river. Madrid lies by the sea.",
    "contexts": ["Madrid is in Spain. The Manzanares flows there.", "Bread is baked."],
    "reference": "Madrid is the capital of Spain.",
}


def labelled(
    by_contexts: Mapping[str, str] | None = None,
    by_reference: Mapping[str, str] | None = None,
    by_sentence: Mapping[str, str] | None = None,
    tenths: Sequence[int] = (),
) -> Any:
    """A script that labels claims and sentences by a word in them; sentences with "sorry" claim nothing."""

    def label(labels: Mapping[str, str] | None, text: str, default: str) -> str:
        return next((said for word, said in (labels or {}).items() if word in text), default)

    def script(task: Any, repeat: int) -> Any:
        if task.kind == "claims":
            said = one_claim_each(task)
            for sentence, entry in zip(sentences(task.text), said["sentences"], strict=False):
                if "sorry" in sentence.text.casefold():
                    entry.update(check="non_factual", claims=[])
            return said
        if task.kind == "check":
            against_reference = task.documents == (RECORD["reference"],)
            labels, default = (by_reference, "unknown") if against_reference else (by_contexts, "supported")
            return verdicts(task, lambda claim: label(labels, claim, default))
        if task.kind == "sentences":
            return sentence_labels(
                task, lambda text: "no_check" if "sorry" in text.casefold() else label(by_sentence, text, "supported")
            )
        return ratings(task, *tenths)

    return script


def run(judges: Any, metrics: Any, **record: Any) -> jm.Results:
    return jm.evaluate([{**RECORD, **record}], metrics, judges, store=None, progress=False)


def rows(results: jm.Results, judge: str = "ada") -> dict[str, dict[str, Any]]:
    frame = results.scores[results.scores["judge"] == judge]
    return {
        row["metric"]: {str(key): value for key, value in row.items()} | {"details": json.loads(row["details"])}
        for row in frame.to_dict("records")
    }


def row(script: Any, metric: Any, **record: Any) -> dict[str, Any]:
    (found,) = rows(run(ScriptedJudge("ada", script), [metric], **record)).values()
    return found


# -- declared


@pytest.mark.parametrize(
    ("name", "higher", "threshold", "needs"),
    [
        ("faithfulness", True, 0.8, ["answer", "contexts"]),
        ("hallucination", False, 0.2, ["answer", "contexts"]),
        ("noise_sensitivity", False, 0.2, ["answer", "contexts", "reference"]),
        ("noise_share", False, None, ["answer", "contexts", "reference"]),
        ("context_precision", True, 0.5, ["question", "contexts", "reference"]),
        ("context_average_precision", True, 0.5, ["question", "contexts", "reference"]),
    ],
)
def test_ranges_directions_thresholds_and_needs(name: str, higher: bool, threshold: float | None, needs: Any) -> None:
    metric = next(each for each in GROUPS["rag"] if each.name == name)
    assert metric.range == (0, 1)
    assert (metric.higher_is_better, metric.threshold, list(metric.needs)) == (higher, threshold, needs)


# -- faithfulness


@pytest.mark.parametrize(
    ("labels", "value", "passed"),
    [
        ({}, 1.0, True),
        ({"sea": "contradicted"}, 2 / 3, False),
        ({"sea": "unknown"}, 2 / 3, False),
        ({"river": "unknown", "sea": "contradicted"}, 1 / 3, False),
        ({"Madrid": "unknown"}, 0.0, False),
    ],
)
def test_faithfulness_is_the_share_of_claims_supported(labels: Any, value: float, passed: bool) -> None:
    found = row(labelled(labels), "faithfulness")
    assert found["score"] == pytest.approx(value) and found["passed"] is passed
    assert [verdict["sentence"] for verdict in found["details"]["verdicts"]] == [0, 1, 2]


def test_faithfulness_passes_at_exactly_four_of_five() -> None:
    answer = "One is so. Two is so. Three is so. Four is so. Five is not."
    found = row(labelled({"Five": "unknown"}), "faithfulness", answer=answer)
    assert found["score"] == 0.8 and found["passed"]


def test_faithfulness_divides_by_the_claims_asked_never_by_those_returned() -> None:
    def short(task: Any, repeat: int) -> Any:
        said = labelled()(task, repeat)
        if task.kind == "check":
            return JudgeError("incomplete", f"{len(said['verdicts']) - 1} claims are missing")
        return said

    found = row(short, "faithfulness")
    assert found["status"] == "failed" and found["error"].startswith("incomplete")


def test_faithfulness_of_a_non_answer() -> None:
    for answer in ("Sorry, I do not know.", "", " \n"):
        found = row(labelled(), "faithfulness", answer=answer)
        assert (found["status"], found["reason"]) == ("undefined", "the answer makes no claims")
        assert "no_claims" in found["flags"]
        worst = row(labelled(), faithfulness.using(refusals="worst"), answer=answer)
        assert (worst["status"], worst["score"]) == ("ok", 0) and "no_claims" in worst["flags"]


# -- hallucination


@pytest.mark.parametrize(
    ("labels", "value", "passed"),
    [
        ({}, 0.0, True),
        ({"sea": "unsupported"}, 1 / 3, False),
        ({"Madrid": "unsupported"}, 1.0, False),
        ({"river": "no_check", "sea": "unsupported"}, 1 / 2, False),
        ({"river": "no_check"}, 0.0, True),
    ],
)
def test_hallucination_is_the_share_of_sentences_with_something_unsupported(
    labels: Any, value: float, passed: bool
) -> None:
    found = row(labelled(by_sentence=labels), "hallucination")
    assert found["score"] == pytest.approx(value) and found["passed"] is passed and found["flags"] == []


def test_hallucination_passes_at_exactly_one_of_five() -> None:
    answer = "One is so. Two is so. Three is so. Four is so. Five is not."
    found = row(labelled(by_sentence={"Five": "unsupported"}), "hallucination", answer=answer)
    assert found["score"] == 0.2 and found["passed"]


def test_hallucination_keeps_types_apart_and_gates_nothing_on_them() -> None:
    spans = (
        [{"quote": "in Spain", "type": "intrinsic"}],
        [{"quote": "a river", "type": "extrinsic"}],
        [{"quote": "Madrid", "type": "intrinsic"}, {"quote": "by the sea", "type": "extrinsic"}],
    )

    def script(task: Any, repeat: int) -> Any:
        said = labelled(by_sentence={"Madrid": "unsupported"})(task, repeat)
        for entry, own in zip(said["sentences"], spans, strict=True):
            entry["spans"] = own
        return said

    found = row(script, "hallucination")
    assert found["score"] == 1
    assert found["details"]["intrinsic_share"] == found["details"]["extrinsic_share"] == pytest.approx(2 / 3)


def test_hallucination_spans_carry_their_place_in_the_answer() -> None:
    found = row(labelled(by_sentence={"sea": "unsupported"}), "hallucination")
    (span,) = found["details"]["sentences"][2]["spans"]
    assert RECORD["answer"][span["start"] : span["end"]] == span["quote"] == "Madrid lies by the sea."
    assert span["found"]


def test_hallucination_of_a_non_answer_is_zero_and_says_so() -> None:
    for answer in ("Sorry, I do not know.", ""):
        found = row(labelled(), "hallucination", answer=answer)
        assert (found["status"], found["score"], found["passed"]) == ("ok", 0, True) and "no_claims" in found["flags"]
        worst = row(labelled(), hallucination.using(refusals="worst"), answer=answer)
        assert worst["score"] == 1 and "no_claims" in worst["flags"]


def test_hallucination_is_not_one_minus_faithfulness() -> None:
    script = labelled({"sea": "contradicted"}, by_sentence={"Madrid": "unsupported"})
    found = rows(run(ScriptedJudge("ada", script), ["faithfulness", "hallucination"]))
    assert found["faithfulness"]["score"] == pytest.approx(2 / 3) and found["hallucination"]["score"] == 1


# -- noise


KINDS = {
    # contexts, reference: what the claim is, noise_sensitivity, strict, noise_share
    ("supported", "supported"): ("supported by both", 0, 0, 0),
    ("supported", "unknown"): ("off-reference", 0, 1, 1),
    ("supported", "contradicted"): ("contradicted by the reference", 1, 1, 0),
    ("unknown", "supported"): ("unsupported", 1, 1, 0),
    ("unknown", "unknown"): ("unsupported", 1, 1, 0),
    ("unknown", "contradicted"): ("unsupported", 1, 1, 0),
    ("contradicted", "supported"): ("unsupported", 1, 1, 0),
    ("contradicted", "unknown"): ("unsupported", 1, 1, 0),
    ("contradicted", "contradicted"): ("unsupported", 1, 1, 0),
}


@pytest.mark.parametrize(("labels", "expected"), KINDS.items())
def test_noise_of_one_claim_by_both_verdicts(labels: tuple[str, str], expected: tuple[str, int, int, int]) -> None:
    strict = noise_sensitivity.using(consistency="supported")
    script = labelled({"river": labels[0]}, {"river": labels[1]})
    judge = ScriptedJudge("ada", script)
    found = rows(run(judge, [noise_sensitivity, strict, noise_share], answer="Madrid has a river."))
    assert found["noise_sensitivity"]["details"]["claims"][0]["kind"] == expected[0]
    assert [round(one["score"]) for one in found.values()] == list(expected[1:])
    # One extraction and two checks, however many of the three metrics are wanted.
    assert len(judge.asked) == 3


def test_noise_sensitivity_is_invalid_over_all_claims() -> None:
    # Spain valid, river not in the contexts, sea in them and contradicted by the reference.
    script = labelled({"river": "unknown"}, {"Spain": "supported", "sea": "contradicted"})
    found = rows(run(ScriptedJudge("ada", script), ["noise_sensitivity", "noise_share"]))
    assert found["noise_sensitivity"]["score"] == pytest.approx(2 / 3)
    assert found["noise_share"]["score"] == 0
    kinds = [claim["kind"] for claim in found["noise_sensitivity"]["details"]["claims"]]
    assert kinds == ["supported by both", "unsupported", "contradicted by the reference"]


def test_noise_share_shows_what_was_copied_from_beside_the_point() -> None:
    script = labelled({}, {"Spain": "supported"})
    strict = noise_sensitivity.using(consistency="supported")
    found = rows(run(ScriptedJudge("ada", script), [noise_sensitivity, strict, noise_share]))
    assert [one["score"] for one in found.values()] == pytest.approx([0, 2 / 3, 2 / 3])
    assert found["noise_share"]["passed"] is not True


def test_noise_of_a_non_answer() -> None:
    for metric in (noise_sensitivity, noise_share):
        found = row(labelled(), metric, answer="Sorry, I do not know.")
        assert found["status"] == "undefined" and "no_claims" in found["flags"]
        worst = row(labelled(), metric.using(refusals="worst"), answer="Sorry, I do not know.")
        assert worst["score"] == 1 and "no_claims" in worst["flags"]


# -- documents


@pytest.mark.parametrize(
    ("tenths", "mean", "average"),
    [
        # Precision at the rank of each relevant document (at least 5 tenths), over the relevant ones.
        ((10, 10), 1.0, 1.0),
        ((10, 0), 0.5, 1.0),
        ((0, 10), 0.5, 0.5),
        ((5, 4), 0.45, 1.0),
        ((4, 5), 0.45, 0.5),
        ((4, 4), 0.4, 0.0),
        ((0, 0), 0.0, 0.0),
        ((8, 0, 6), 14 / 30, (1 + 2 / 3) / 2),
        ((0, 8, 0, 6), 14 / 40, (1 / 2 + 2 / 4) / 2),
        ((5,), 0.5, 1.0),
    ],
)
def test_context_precision_is_the_mean_and_average_precision_minds_the_ranks(
    tenths: tuple[int, ...], mean: float, average: float
) -> None:
    judge = ScriptedJudge("ada", labelled(tenths=tenths))
    found = rows(run(judge, list(DOCUMENTS), contexts=[f"Document {at}." for at in range(len(tenths))]))
    assert found["context_precision"]["score"] == pytest.approx(mean)
    assert found["context_average_precision"]["score"] == pytest.approx(average)
    assert found["context_precision"]["passed"] is (mean >= 0.5)
    relevances = [document["relevance"] for document in found["context_precision"]["details"]["documents"]]
    assert relevances == [tenth / 10 for tenth in tenths]
    assert len(judge.asked) == 1


@pytest.mark.parametrize("answer", [None, "", "Sorry, I do not know."])
def test_context_precision_never_needs_or_shows_the_answer(answer: str | None) -> None:
    judge = ScriptedJudge("ada", labelled(tenths=(10, 0)))
    found = rows(run(judge, list(DOCUMENTS), answer=answer))
    assert [one["status"] for one in found.values()] == ["ok", "ok"]
    run(judge, list(DOCUMENTS))
    assert all("Madrid lies by the sea" not in str(request.task.messages()) for request in judge.asked)


# -- edges that all share


@pytest.mark.parametrize("metric", [*CLAIMS, "hallucination", *DOCUMENTS])
@pytest.mark.parametrize("contexts", [None, [], ["", " \n"]])
def test_without_documents_nothing_is_asked(metric: str, contexts: Any) -> None:
    judge = ScriptedJudge("ada", labelled())
    (found,) = rows(run(judge, [metric], contexts=contexts)).values()
    assert (found["status"], found["reason"]) == ("not_applicable", "the record has no contexts") and not judge.asked


@pytest.mark.parametrize("metric", ["noise_sensitivity", "noise_share", *DOCUMENTS])
def test_without_a_reference_nothing_is_asked(metric: str) -> None:
    judge = ScriptedJudge("ada", labelled())
    (found,) = rows(run(judge, [metric], reference=" ")).values()
    assert (found["status"], found["reason"]) == ("not_applicable", "the record has no reference") and not judge.asked


@pytest.mark.parametrize("metric", [*CLAIMS, "hallucination"])
def test_without_an_answer_nothing_is_asked(metric: str) -> None:
    judge = ScriptedJudge("ada", labelled())
    (found,) = rows(run(judge, [metric], answer=None, answer_error="timeout")).values()
    assert found["status"] == "not_applicable" and not judge.asked
    assert found["reason"] == "the record has no answer (the answer was not made: timeout)"


def test_blank_documents_are_removed_before_anything_is_counted() -> None:
    judge = ScriptedJudge("ada", labelled(tenths=(10,)))
    found = rows(run(judge, list(DOCUMENTS), contexts=["", "Madrid is in Spain.", "  "]))
    assert [one["score"] for one in found.values()] == [1, 1]


# -- properties

LABELS = st.lists(st.sampled_from(["supported", "contradicted", "unknown"]), min_size=1, max_size=8)
TENTHS = st.lists(st.integers(0, 10), min_size=1, max_size=8)
few = settings(max_examples=15, deadline=None)


def text(numbers: Sequence[int]) -> str:
    return " ".join(f"Statement w{at}x is made." for at in numbers)


def of_claims(numbers: Sequence[int], labels: Sequence[str], reference: Sequence[str]) -> list[float]:
    contexts = {f"w{at}x": label for at, label in enumerate(labels)}
    against = {f"w{at}x": label for at, label in enumerate(reference)}
    by_sentence = {word: "supported" if label == "supported" else "unsupported" for word, label in contexts.items()}
    script = labelled(contexts, against, by_sentence)
    found = rows(run(ScriptedJudge("ada", script), [*CLAIMS, "hallucination"], answer=text(numbers)))
    return [one["score"] for one in found.values()]


def of_documents(tenths: Sequence[int]) -> dict[str, float]:
    script = labelled(tenths=tenths)
    contexts = [f"Document {at}." for at in range(len(tenths))]
    return {
        name: one["score"]
        for name, one in rows(run(ScriptedJudge("ada", script), list(DOCUMENTS), contexts=contexts)).items()
    }


@few
@given(labels=LABELS, data=st.data())
def test_order_of_claims_and_sentences_never_changes_a_score(labels: list[str], data: Any) -> None:
    reference = data.draw(st.lists(st.sampled_from(["supported", "contradicted", "unknown"]), min_size=8, max_size=8))
    numbers = list(range(len(labels)))
    scores = of_claims(numbers, labels, reference)
    assert of_claims(data.draw(st.permutations(numbers)), labels, reference) == pytest.approx(scores)
    assert scores[0] == pytest.approx(labels.count("supported") / len(labels))


@few
@given(labels=LABELS)
def test_an_unsupported_sentence_more_never_helps(labels: list[str]) -> None:
    numbers = list(range(len(labels) + 1))
    before = of_claims(numbers[:-1], [*labels, "unknown"], ["supported"] * 9)
    after = of_claims(numbers, [*labels, "unknown"], ["supported"] * 9)
    assert after[0] <= before[0]  # faithfulness
    assert after[1] >= before[1]  # noise_sensitivity
    assert after[3] >= before[3]  # hallucination


@few
@given(tenths=TENTHS, data=st.data())
def test_order_of_documents_never_changes_context_precision(tenths: list[int], data: Any) -> None:
    shuffled = data.draw(st.permutations(tenths))
    assert of_documents(shuffled)["context_precision"] == pytest.approx(of_documents(tenths)["context_precision"])


@few
@given(tenths=TENTHS, at=st.integers(0, 8))
def test_a_worthless_document_more_never_raises_context_precision(tenths: list[int], at: int) -> None:
    before, after = of_documents(tenths), of_documents([*tenths[:at], 0, *tenths[at:]])
    assert after["context_precision"] <= before["context_precision"]
    assert after["context_average_precision"] <= before["context_average_precision"] + 1e-12
