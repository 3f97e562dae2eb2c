"""The quickstart data are what their README says: structure, notes and bands. Nothing is judged here."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "experiments" / "quickstart"
DEFECTS = {
    "invented_fact",
    "changed_number",
    "swapped_name",
    "contradiction",
    "omission",
    "noise",
    "off_topic",
    "disfluent",
    "refusal",
}
FACTUAL = {"invented_fact", "changed_number", "swapped_name", "contradiction"}
SHARES = {
    "faithfulness",
    "hallucination",
    "noise_sensitivity",
    "noise_share",
    "context_precision",
    "accuracy_clarity",
    "f1",
}
LIKERT = {"fluency", "coherence"}
WITHOUT_SPACES = {"zh", "ja"}

Record = dict[str, Any]


def read_records() -> list[Record]:
    return [json.loads(line) for line in (FOLDER / "records.jsonl").read_text(encoding="utf-8").splitlines()]


def read_bands() -> list[dict[str, str]]:
    with (FOLDER / "bands.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def load_rules() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quickstart_make_bands", FOLDER / "make_bands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RECORDS = read_records()
BANDS = read_bands()


def name_of(record: Record) -> str:
    return f"{record['id']}/{record['variant']}"


def with_defect(*defects: str) -> list[Any]:
    return [pytest.param(record, id=name_of(record)) for record in RECORDS if record["defect"] in defects]


def quoted(record: Record) -> list[str]:
    found = re.findall(r'"([^"]+)"', record["defect_note"])
    assert found, f"{name_of(record)}: the note quotes nothing"
    return found


def documents(record: Record) -> str:
    return "\n".join(record["contexts"])


def stands_in(part: str, text: str) -> bool:
    """Whether part stands in text as a whole number, name or phrase, whatever the case."""
    return re.search(rf"(?<![\d.,:]){re.escape(part.casefold())}(?!\d)", text.casefold()) is not None


# --- the records -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["records.jsonl", "bands.csv", "README.md", "make_bands.py"])
def test_files_are_clean_utf8(file: str) -> None:
    text = (FOLDER / file).read_bytes().decode("utf-8")
    assert not text.startswith("\ufeff")
    assert "\ufffd" not in text
    assert "\r" not in text
    assert unicodedata.normalize("NFC", text) == text


def test_fields_are_complete_and_filled() -> None:
    texts = ("id", "variant", "question", "answer", "reference", "language", "topic", "defect", "answer_model")
    for record in RECORDS:
        for field in texts:
            assert isinstance(record[field], str), f"{name_of(record)}: {field}"
            assert record[field] == record[field].strip() != "", f"{name_of(record)}: {field}"
        assert set(record) == set(RECORDS[0]), name_of(record)


def test_there_are_two_variants_of_each_id_and_each_once() -> None:
    assert len(RECORDS) >= 64
    assert max(Counter((record["id"], record["variant"]) for record in RECORDS).values()) == 1
    variants = defaultdict(set)
    for record in RECORDS:
        variants[record["variant"]].add(record["id"])
    assert set(variants) == {"concise", "detailed"}
    assert variants["concise"] == variants["detailed"]


def test_variants_of_an_id_differ_only_in_what_concerns_the_answer() -> None:
    shared = ("question", "contexts", "reference", "language", "topic", "context_roles")
    by_id = defaultdict(list)
    for record in RECORDS:
        by_id[record["id"]].append([record[field] for field in shared])
    assert [id_ for id_, (one, other) in by_id.items() if one != other] == []


def test_languages_and_defects_are_as_many_as_the_readme_says() -> None:
    questions = Counter(language for _, language in {(record["id"], record["language"]) for record in RECORDS})
    assert questions == {"en": 30, "de": 3, "fr": 3, "es": 3, "zh": 2, "ja": 2}
    defects = Counter(record["defect"] for record in RECORDS)
    assert set(defects) == DEFECTS | {"none"}
    assert 0.4 <= defects["none"] / len(RECORDS) <= 0.5
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    table = {name: int(count) for name, count in re.findall(r"^\| `(\w+)` \| .* \| (\d+) \|$", readme, re.MULTILINE)}
    assert table == defects


@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_each_defect_comes_four_times_in_english_and_in_both_variants(defect: str) -> None:
    english = [record for record in RECORDS if record["defect"] == defect and record["language"] == "en"]
    assert len(english) >= 4
    assert {record["variant"] for record in english} == {"concise", "detailed"}


def test_documents_are_texts_of_their_own_and_of_the_stated_length() -> None:
    owners = defaultdict(set)
    for record in RECORDS:
        assert 2 <= len(record["contexts"]) <= 4, name_of(record)
        for document in record["contexts"]:
            assert isinstance(document, str)
            owners[document].add(record["id"])
            if record["language"] in WITHOUT_SPACES:
                assert 80 <= len(document) <= 300, name_of(record)
            else:
                assert 40 <= len(document.split()) <= 120, name_of(record)
    assert [ids for ids in owners.values() if len(ids) > 1] == []


def test_each_document_has_a_role_and_one_answers() -> None:
    for record in RECORDS:
        roles = record["context_roles"].split()
        assert len(roles) == len(record["contexts"]), name_of(record)
        assert set(roles) <= {"answers", "partial", "distractor", "irrelevant"}, name_of(record)
        assert roles.count("answers") == 1, name_of(record)


def test_the_answering_document_holds_every_number_and_name_of_the_reference() -> None:
    for record in RECORDS:
        document = record["contexts"][record["context_roles"].split().index("answers")]
        marks = re.findall(r"\d[\d.,:]*\d|\d|(?<=[a-z,] )[A-Z]\w+", record["reference"])
        missing = [mark for mark in marks if not stands_in(mark, document)]
        assert missing == [], name_of(record)


def test_sentences_are_counted_right() -> None:
    for record in RECORDS:
        ends = re.findall(r"[.!?](?=\s|$)|[。！？]", record["answer"])
        assert record["n_sentences"] == len(ends), name_of(record)
        assert 1 <= len(ends) <= 4, name_of(record)
        assert 0 <= record["n_unsupported"] <= len(ends), name_of(record)
        assert 0 <= record["n_off_reference"] <= len(ends), name_of(record)
        assert 2 <= len(re.findall(r"[.!?](?=\s|$)|[。！？]", record["reference"])) <= 3, name_of(record)


def test_usage_is_plausible() -> None:
    for record in RECORDS:
        assert 0.1 < record["answer_latency_s"] < 10, name_of(record)
        assert 50 < record["answer_prompt_tokens"] < 2000, name_of(record)
        assert 0 < record["answer_completion_tokens"] < record["answer_prompt_tokens"], name_of(record)


# --- the notes: each states its defect, and the texts bear it out ----------------------------------------------------


def test_only_answers_with_a_defect_carry_a_note() -> None:
    assert [name_of(r) for r in RECORDS if (r["defect_note"] == "") != (r["defect"] == "none")] == []


def test_unsupported_sentences_belong_to_the_defects_that_make_them() -> None:
    for record in RECORDS:
        expected = {"off_topic": record["n_sentences"], **dict.fromkeys(FACTUAL, 1)}.get(record["defect"], 0)
        assert record["n_unsupported"] == expected, name_of(record)


@pytest.mark.parametrize("record", with_defect("changed_number", "swapped_name"))
def test_changed_numbers_and_names(record: Record) -> None:
    old, new = quoted(record)
    assert stands_in(old, documents(record))
    assert stands_in(old, record["reference"])
    assert not stands_in(old, record["answer"])
    assert stands_in(new, record["answer"])
    assert not stands_in(new, record["reference"])
    ending = record["defect_note"].rpartition(" the new ")[2].partition(" ")[2]
    assert ending == ("stands elsewhere in the documents" if stands_in(new, documents(record)) else "is in no document")


def test_changed_numbers_and_names_come_from_inside_and_outside_the_documents() -> None:
    for defect in ("changed_number", "swapped_name"):
        inside = {stands_in(quoted(r)[1], documents(r)) for r in RECORDS if r["defect"] == defect}
        assert inside == {True, False}, defect


@pytest.mark.parametrize("record", with_defect("invented_fact"))
def test_inventions_are_whole_sentences_that_no_document_knows(record: Record) -> None:
    (sentence,) = quoted(record)
    assert sentence in record["answer"]
    assert sentence not in documents(record)
    kept = record["answer"].replace(sentence, "")
    assert len(kept.strip()) > 0


@pytest.mark.parametrize("record", with_defect("contradiction"))
def test_contradictions_reverse_what_a_document_says(record: Record) -> None:
    said, answered = quoted(record)
    assert said in documents(record)
    assert said not in record["answer"]
    assert answered in record["answer"]
    assert answered not in documents(record)


@pytest.mark.parametrize("record", with_defect("omission"))
def test_omissions_are_in_the_reference_and_not_in_the_answer(record: Record) -> None:
    for part in quoted(record):
        assert part in record["reference"]
        assert part not in record["answer"]


@pytest.mark.parametrize("record", with_defect("noise"))
def test_noise_is_taken_from_the_stated_distractor(record: Record) -> None:
    stated = re.search(r"document (\d)", record["defect_note"])
    assert stated is not None
    place = int(stated[1]) - 1
    assert record["context_roles"].split()[place] in {"distractor", "irrelevant"}
    for part in quoted(record):
        assert part in record["contexts"][place]
        assert part in record["answer"]
        assert part not in record["reference"]
    assert record["n_off_reference"] >= 1


@pytest.mark.parametrize("record", with_defect("off_topic"))
def test_off_topic_answers_share_no_long_word_with_their_record(record: Record) -> None:
    words = set(re.findall(r"\w{6,}", record["answer"].casefold()))
    assert words
    assert words & set(re.findall(r"\w{6,}", f"{record['question']} {documents(record)}".casefold())) == set()


def test_only_disfluent_answers_double_a_word() -> None:
    doubled = {name_of(r) for r in RECORDS if re.search(r"\b(\w+) \1\b", r["answer"].casefold())}
    assert doubled == {name_of(r) for r in RECORDS if r["defect"] == "disfluent"}


@pytest.mark.parametrize("record", with_defect("refusal"))
def test_refusals_state_no_fact(record: Record) -> None:
    assert re.search(r"\d", record["answer"]) is None
    names = set(re.findall(r"(?<=[a-z,] )[A-Z]\w+", record["reference"]))
    assert [name for name in names if name in record["answer"]] == []


# --- the bands -------------------------------------------------------------------------------------------------------


def test_bands_are_those_that_the_rules_give() -> None:
    assert [tuple(row.values()) for row in BANDS] == load_rules().band_rows()


def test_bands_lie_in_the_range_of_their_metric_and_each_is_given_once() -> None:
    known = {(record["id"], record["variant"]) for record in RECORDS}
    assert list(BANDS[0]) == ["id", "variant", "metric", "low", "high"]
    for row in BANDS:
        bottom, top = (1.0, 5.0) if row["metric"] in LIKERT else (0.0, 1.0)
        assert row["metric"] in SHARES | LIKERT
        assert bottom <= float(row["low"]) <= float(row["high"]) <= top, row
        assert (row["id"], row["variant"]) in known, row
    assert max(Counter((row["id"], row["variant"], row["metric"]) for row in BANDS).values()) == 1


def bands_by_record() -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    found: dict[tuple[str, str], dict[str, tuple[float, float]]] = defaultdict(dict)
    for row in BANDS:
        found[row["id"], row["variant"]][row["metric"]] = float(row["low"]), float(row["high"])
    return found


def test_every_record_has_bands_and_every_metric_too() -> None:
    assert set(bands_by_record()) == {(record["id"], record["variant"]) for record in RECORDS}
    assert {row["metric"] for row in BANDS} == SHARES | LIKERT


@pytest.mark.parametrize("record", with_defect("none"))
def test_right_answers_may_reach_the_best_values(record: Record) -> None:
    bands = bands_by_record()[record["id"], record["variant"]]
    best = {"faithfulness": 1.0, "accuracy_clarity": 1.0, "fluency": 5.0, "coherence": 5.0}
    assert {metric: bands[metric][1] for metric in best} == best
    assert (bands["hallucination"][0], bands["noise_sensitivity"][0]) == (0.0, 0.0)


@pytest.mark.parametrize("record", with_defect(*DEFECTS))
def test_a_defect_keeps_the_metric_that_sees_it_from_its_best_value(record: Record) -> None:
    bands = bands_by_record()[record["id"], record["variant"]]
    defect = record["defect"]
    if defect in FACTUAL | {"off_topic"}:
        assert bands["faithfulness"][1] < 0.9
        assert bands["hallucination"][0] > 0.1
        assert bands["noise_sensitivity"][0] > 0.1
    elif defect == "disfluent":
        assert bands["fluency"][1] < 3
    elif defect == "noise":
        assert bands["noise_share"][0] >= 0.25
        assert bands["accuracy_clarity"][1] <= 0.7
        assert "noise_sensitivity" not in bands
    else:
        assert bands["accuracy_clarity"][1] <= 0.7


@pytest.mark.parametrize("record", with_defect("refusal"))
def test_refusals_leave_out_what_is_undefined(record: Record) -> None:
    bands = bands_by_record()[record["id"], record["variant"]]
    assert bands["hallucination"] == (0.0, 0.0)
    assert not {"faithfulness", "noise_sensitivity", "noise_share"} & set(bands)


def test_context_precision_never_depends_on_the_answer() -> None:
    by_id = defaultdict(set)
    for row in BANDS:
        if row["metric"] == "context_precision":
            by_id[row["id"]].add((row["low"], row["high"]))
    assert {len(found) for found in by_id.values()} == {1}
