from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.judges.evidence import SUPPORTED_FROM, Evidence, UnsupportedLanguage, evidence_for
from jurimetrics.judges.reading import number_keys, read
from jurimetrics.text import sentences

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "evidence_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
TRUE = ("verbatim", "abridged", "paraphrased")


def claims_of(case: dict[str, object]) -> list[tuple[str, str]]:
    documents: list[str] = case["documents"]  # type: ignore[assignment]
    claims: list[dict[str, str]] = case["claims"]  # type: ignore[assignment]
    return [("verbatim", s.text) for d in documents for s in sentences(d)] + [(c["kind"], c["text"]) for c in claims]


def label(document: str, claim: str, question: str = "") -> str:
    return Evidence((document,)).check(claim, question).label


def wrong_in(cases: list[dict[str, object]]) -> tuple[list[tuple[str, str]], set[str]]:
    """The claims of a study that got a wrong label, and the kinds that were asked."""
    wrong, kinds = [], set()
    for case in cases:
        evidence = Evidence(tuple(case["documents"]))  # type: ignore[arg-type]
        for kind, claim in claims_of(case):
            kinds.add(kind)
            if (evidence.check(claim).label == "supported") != (kind in TRUE):
                wrong.append((kind, claim))
    return wrong, kinds


def test_the_constructed_study_keeps_its_rates() -> None:
    wrong, kinds = wrong_in([case for case in CASES if not case["held_back"]])
    assert kinds == {*TRUE, "number", "name", "negation", "addition", "swapped_number", "swapped_name"}
    # Measured: every one of the 726 claims. The rules were made while looking at them, so this is a floor, no estimate.
    assert wrong == []


def test_passages_written_after_the_last_rule_keep_their_rates() -> None:
    wrong, _ = wrong_in([case for case in CASES if case["held_back"]])
    # 58 of 59. The weather centre is in the passage and "sued" is one new word, which may be a paraphrase.
    assert wrong == [("addition", "Cruise operator Bluewave has diverted four ships and sued the weather centre.")]


def test_the_study_holds_with_all_english_passages_as_documents_of_one_record() -> None:
    english = [case for case in CASES if case["language"] == "en" and not case["held_back"]]
    evidence = Evidence(tuple(case["documents"][0] for case in english))
    wrong = [
        (kind, claim)
        for case in english
        for kind, claim in claims_of(case)
        if (evidence.check(claim).label == "supported") != (kind in TRUE)
    ]
    # "singing to the judge": there is a singer in one passage and a judge in another.
    assert sorted(kind for kind, _ in wrong) == ["addition"]


def test_contradicted_is_said_of_numbers_names_and_negation_only() -> None:
    for case in CASES:
        evidence = Evidence(tuple(case["documents"]))
        for kind, claim in claims_of(case):
            if kind == "addition":
                assert evidence.check(claim).label != "contradicted", claim


def test_the_evidence_is_quoted_verbatim() -> None:
    for case in CASES:
        evidence = Evidence(tuple(case["documents"]))
        for _, claim in claims_of(case):
            found = evidence.check(claim)
            assert found.evidence
            assert all(quote in case["documents"][at] for at, quote in found.evidence)


@pytest.mark.parametrize(
    ("document", "claim", "expected"),
    [
        ("The fund holds 3,000 shares.", "The fund holds 3000 shares.", "supported"),
        ("The fund holds 3000 shares.", "The fund holds 3, 000 shares.", "supported"),
        ("The fund holds 3 , 000 shares.", "The fund holds 3,000 shares.", "supported"),
        ("The fund holds 3 000 shares.", "The fund holds 3,000 shares.", "supported"),
        ("The fund holds ３０００ shares.", "The fund holds 3,000 shares.", "supported"),
        ("The fund holds 3,000 shares.", "The fund holds 300 shares.", "contradicted"),
        ("Prices rose by 5 percent in May.", "Prices rose by 5% in May.", "supported"),
        ("Prices rose by 5 percent in May.", "Prices rose by 6% in May.", "contradicted"),
        ("The team has twelve players on the field.", "The team has 12 players on the field.", "supported"),
        ("The team has twelve players on the field.", "The team has eleven players on the field.", "contradicted"),
        ("It cost 2 million dollars to build.", "It cost 2,000,000 dollars to build.", "supported"),
        ("She was born on 7 November 1867 in the city.", "She was born on November 7, 1867 in the city.", "supported"),
        ("She was born on 1867-11-07 in the city.", "She was born on 7 November 1867 in the city.", "supported"),
        ("She was born on 7 November 1867 in the city.", "She was born on 7 October 1867 in the city.", "contradicted"),
        ("About 2,987 people came to the fair.", "About 3,000 people came to the fair.", "supported"),
        ("Der Preis stieg um 1,5 Prozent im Mai.", "Der Preis stieg im Mai um 1.5 %.", "supported"),
        ("Die Stadt hat 3.000 Einwohner und einen Hafen.", "Die Stadt hat 3000 Einwohner.", "supported"),
    ],
)
def test_numbers_are_compared_by_value(document: str, claim: str, expected: str) -> None:
    assert label(document, claim) == expected


@pytest.mark.parametrize(
    ("raw", "language", "keys"),
    [
        ("1,234,567", "en", ("1234567",)),
        ("1.234.567", "de", ("1234567",)),
        ("1,234.50", "en", ("1234.5",)),
        ("1.234,50", "fr", ("1234.5",)),
        ("007", "en", ("7",)),
        ("10:30", "en", ("10:30",)),
        ("15 300", "en", ("15300", "15", "300")),
    ],
)
def test_readings_of_a_number(raw: str, language: str, keys: tuple[str, ...]) -> None:
    assert number_keys(raw, language) == keys


FLOOD = (
    "The flood killed 14 people in Arden. The mayor, Joan Price, asked the army for help. Some 600 soldiers arrived on"
    " Sunday. The governor, Mark Stone, visited Welby, where 30 houses were lost."
)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The flood killed 14 people in Arden.", "supported"),
        ("The flood killed 30 people in Arden.", "contradicted"),
        ("The flood killed 14 people in Welby.", "contradicted"),
        ("The mayor, Mark Stone, asked the army for help.", "contradicted"),
        ("Some 14 soldiers arrived on Sunday.", "contradicted"),
        ("Some 600 soldiers arrived on Monday.", "contradicted"),
        ("Joan Price visited Welby.", "contradicted"),
        ("Mark Stone visited Welby, where 30 houses were lost.", "supported"),
        ("The zoo in Arden bought 14 tigers.", "unknown"),
    ],
)
def test_a_number_or_name_must_stand_in_its_place(claim: str, expected: str) -> None:
    assert label(FLOOD, claim) == expected


@pytest.mark.parametrize(
    ("document", "claim", "expected"),
    [
        ("Smith beat Jones in the final.", "Jones beat Smith in the final.", "contradicted"),
        ("Hollins chief Ann Toole spoke first.", "Ann Toole, the chief of Hollins, spoke first.", "supported"),
        (
            "The storm has passed, Sheriff Dale Webb said. Ray Ortiz flew.",
            "Sheriff Ray Ortiz said the storm has passed.",
            "contradicted",
        ),
        ("Ann Toole leads the firm, and Yoon joins the board.", "Yoon leads the firm.", "contradicted"),
        ("Shares of A fell 4% on Monday, those of B rose 9%.", "Shares of A fell 9% on Monday.", "contradicted"),
        ("Smith beat Jones in the final.", "Jones was beaten by Smith in the final.", "supported"),
        ("The war lasted from 1914 to 1918.", "The war lasted from 1918 to 1914.", "contradicted"),
        ("The World Health Organization praised the plan.", "The WHO praised the plan.", "supported"),
        ("The talks took place in Germany in June.", "The German talks took place in June.", "supported"),
        ("President Barack Obama signed the law.", "Obama signed the law.", "supported"),
        ("Anna Berg lives in Oslo. She plays chess for the club.", "Anna Berg plays chess for the club.", "supported"),
        ("The government resigned on Friday.", "The Government resigned on Friday.", "supported"),
        ("Miller wrote the report about the river.", "miller wrote the report about the river.", "supported"),
    ],
)
def test_names_by_who_did_what(document: str, claim: str, expected: str) -> None:
    assert label(document, claim) == expected


@pytest.mark.parametrize(
    ("document", "claim", "expected"),
    [
        ("The council approved the plan.", "The council did not approve the plan.", "contradicted"),
        ("The council approved the plan.", "The council didn't approve the plan.", "contradicted"),
        ("The council approved the plan.", "The council did n't approve the plan.", "contradicted"),
        ("The council did not approve the plan.", "The council approved the plan.", "contradicted"),
        ("The council did not approve the plan.", "The council never approved the plan.", "supported"),
        ("He has no children and lives in Rome.", "He lives in Rome.", "supported"),
        ("The council refused to approve the plan.", "The council approved the plan.", "contradicted"),
        (
            "The vote was legal and the count was public.",
            "The vote was illegal and the count was public.",
            "contradicted",
        ),
        ("The pump does not work without power.", "The pump works without power.", "contradicted"),
        ("They did not, and will never, agree to the plan.", "They will never agree to the plan.", "supported"),
        ("The law is not only strict but clear.", "The law is strict and clear.", "supported"),
        ("Prices rose after the storm hit the coast.", "Prices fell after the storm hit the coast.", "unknown"),
        ("Le maire a signé la loi hier.", "Le maire n'a pas signé la loi hier.", "contradicted"),
        ("Der Rat hat den Plan nicht gebilligt.", "Der Rat hat den Plan gebilligt.", "contradicted"),
    ],
)
def test_negation_must_agree(document: str, claim: str, expected: str) -> None:
    assert label(document, claim) == expected


def test_reasons_name_the_rule_and_the_words() -> None:
    evidence = Evidence((FLOOD,))
    assert "number '30', where the evidence says '14'" in evidence.check("The flood killed 30 people in Arden.").reason
    beside = Evidence(("It rained in June.",)).check("It rained in June near Welby.")
    assert beside.reason == "name 'Welby' is not in the documents"
    assert "negation 'not'" in evidence.check("The flood did not kill 14 people in Arden.").reason
    assert "'wolf barking loudly'" in evidence.check("The flood killed 14 people, a wolf barking loudly.").reason


def test_a_fragment_is_checked_by_itself_and_beside_its_question() -> None:
    document = "Paris is the capital of France. Madrid is the capital of Spain. Lisbon has a large harbour."
    assert label(document, "Madrid.") == "supported"
    assert label(document, "Berlin.") == "unknown"
    assert label(document, "Madrid.", "What is the capital of Spain?") == "supported"
    assert label("Spain has a capital. " + document, "Lisbon.", "What is the capital of France?") == "unknown"


# Long enough to be a language, and none that is known.
UNKNOWN = (
    "Aydınlık şehir merkezinde yeni kütüphane açıldı, belediye başkanı konuştu, öğrenciler şarkılar söyledi, herkes"
    " mutluydu."
)


@pytest.mark.parametrize(
    ("documents", "claim"),
    [
        (("東京は日本の首都です。",), "東京は日本の首都です。"),
        (("Москва - столица России.",), "Москва - столица России."),
        (("Stockholm är huvudstaden i Sverige och det är den största staden.",), "Det är den största staden."),
        (("The council approved the plan for the new bridge.",), "Der Rat hat den Plan für die neue Brücke gebilligt."),
        (("The council approved the plan.",), "议会批准了这个计划。"),
        (("東京は日本の首都です。",), "Tokyo is the capital of Japan."),
        ((UNKNOWN,), "x"),
    ],
)
def test_other_and_mixed_languages_are_refused(documents: tuple[str, ...], claim: str) -> None:
    with pytest.raises(UnsupportedLanguage, match=r"rules|documents are in"):
        Evidence(documents).check(claim)


def test_blank_documents_keep_their_place_and_blank_claims_are_refused() -> None:
    found = Evidence(("", "  ", "The bridge opened in 1932.")).check("The bridge opened in 1932.")
    assert (found.label, found.score, found.evidence) == ("supported", 1.0, ((2, "The bridge opened in 1932."),))
    with pytest.raises(ValueError, match="blank"):
        Evidence(("Text.",)).check(" ")


def test_the_checker_is_built_once_for_the_same_documents() -> None:
    assert evidence_for(("It rained.", "It snowed.")) is evidence_for(("It rained.", "It snowed."))


def test_a_table_in_one_sentence_does_not_explode() -> None:
    table = "The values of the table are " + " ".join(str(n * 7 % 100) for n in range(300)) + "."
    assert label(table, table[:400]) == "supported"


def test_nothing_hangs_on_the_hash_seed() -> None:
    program = (
        "import json, sys; from jurimetrics.judges.evidence import Evidence\n"
        "for line in open(sys.argv[1], encoding='utf-8'):\n"
        "    case = json.loads(line); e = Evidence(tuple(case['documents']))\n"
        "    for c in case['claims']: print(repr(e.check(c['text'])).encode('utf-8'))\n"
    )
    cases = str(Path(__file__).parent / "data" / "evidence_cases.jsonl")
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, cases],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(sys.modules["jurimetrics"].__file__ or "").parents[1])},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1


PIECES = "the a not no never said Smith Jones Paris 3,000 3 000 12 % won lost by and , . May 5th ' n't"
WORD = st.sampled_from(PIECES.split())
TEXT = st.one_of(st.lists(WORD, min_size=1, max_size=25).map(" ".join), st.text(min_size=1, max_size=60))


@settings(max_examples=200, deadline=None)
@given(TEXT, st.lists(TEXT, min_size=1, max_size=3), st.one_of(st.just(""), TEXT))
def test_any_text_gives_a_finding_or_a_typed_refusal(claim: str, documents: list[str], question: str) -> None:
    try:
        found = Evidence(tuple(documents)).check(claim, question)
    except UnsupportedLanguage:
        return
    except ValueError as error:
        assert "blank" in str(error)
        return
    assert 0.0 <= found.score <= 1.0
    assert (found.label == "supported") == (found.score >= SUPPORTED_FROM)
    assert all(quote in documents[at] for at, quote in found.evidence)


def test_reading_keeps_acronyms_and_drops_pronouns() -> None:
    assert [t.key for t in read("The U.S. told us about it.", "en").tokens] == ["us", "tell"]
