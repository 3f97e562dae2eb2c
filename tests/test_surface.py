from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.judges.evidence import UnsupportedLanguage
from jurimetrics.judges.surface import accuracy_clarity, claims, coherence_faults, document_relevance, fluency_faults

CLEAN = "The lock was opened in May 1889. It lifts boats by four metres in a single chamber."
LOCK = "When was the lock opened, and how far does it lift a boat?"


@pytest.mark.parametrize(
    "text",
    [
        CLEAN,
        "Madrid.",
        "He had had enough of it. That is all.",
        "Die Schleuse, die die Stadt baute, wurde 1889 geöffnet.",
        "Où est la gare ? Elle est près du pont !",
        "- Milk and bread.\n- Tea from the market.",
        "An hour later a unit of the army came to a halt.",
    ],
)
def test_clean_text_has_no_fault(text: str) -> None:
    assert fluency_faults(text).score == 5.0


@pytest.mark.parametrize(
    ("text", "score", "named"),
    [
        ("The lock was was opened in May 1889.", 4.0, "repeated: 'was'"),
        ("The lock was opened in May 1889", 4.0, "no end mark"),
        ("the lock was opened in May 1889.", 4.0, "small letter"),
        ("The lock was opened,, in May 1889.", 4.0, "doubled marks"),
        ("The lock was opened (in May 1889.", 4.0, "left open"),
        ("The lock was opened , in May 1889.", 4.0, "space before a mark"),
        ("They was glad to see the lock opened.", 4.0, "'They was'"),
        ("The looock was opened in May 1889.", 4.0, "odd words: 'looock'"),
        ("The lock was in May of 1889 opened the.", 4.0, "ends in 'the'"),
        (" ".join(["The lock was old and the gate was new and"] * 8) + " it rained.", 4.0, "over 60 words"),
        (
            "The lock gate timber oak was water river boat keeper chamber metre the lift canal peat moor.",
            3.0,
            "function words",
        ),
        ("lock it are open open open open in the the with with", 1.0, "no end mark"),
    ],
)
def test_each_fault_is_named_and_counted(text: str, score: float, named: str) -> None:
    found = fluency_faults(text)
    assert (found.score, named in found.reason) == (score, True), found.reason
    assert found.reason.startswith("surface faults only")


def test_coherence_looks_at_the_question_and_between_sentences() -> None:
    assert coherence_faults(LOCK, CLEAN).score == 5.0
    assert coherence_faults(None, CLEAN).score == 5.0
    away = "Tomatoes grow best in full sun and drained soil. Chess is played on a board of 64 squares."
    assert coherence_faults(LOCK, away).score == 2.0
    assert "no content word shared with the question" in coherence_faults(LOCK, away).reason
    assert coherence_faults(None, f"{CLEAN} {CLEAN}").score == 4.0
    assert coherence_faults("What is the capital of Spain?", "Madrid.").score == 5.0


def test_accuracy_follows_the_points_of_the_reference() -> None:
    reference = "The lock was opened in May 1889. It lifts boats by 4.2 metres."
    assert accuracy_clarity(reference, reference).score == 1.0
    assert accuracy_clarity(reference, "The lock was opened in May 1889.").score == pytest.approx(0.5, abs=0.11)
    assert accuracy_clarity(reference, "Honey keeps for many years.").score <= 0.1
    assert accuracy_clarity(reference, "The lock was opened in May 1898. It lifts boats by 4.2 metres.").score == 0.5
    denied = accuracy_clarity(reference, "The lock was not opened in May 1889. It lifts boats by 4.2 metres.")
    assert denied.score == 0.5
    assert "negation 'not'" in denied.reason
    broken = "lock the it was was opened may 1889 in the lifts lifts boats by by 4.2 metres"
    assert accuracy_clarity(reference, broken).score < 0.8


def test_relevance_orders_documents_by_what_they_contribute() -> None:
    reference = "The Arden lock was opened in May 1889. It lifts boats by 4.2 metres."
    question = "When was the Arden lock opened, and how far does it lift boats?"
    documents = (
        "The Arden lock stands on the Sarn. It was opened in May 1889 and lifts boats by 4.2 metres.",
        "The Arden lock was opened in May 1889, after a dry spring.",
        "The Pellworth lock has three chambers. It is worked by electric motors.",
        "Peat was cut on the moors until the 1950s.",
    )
    scores = [document_relevance(question, reference, d, documents).score for d in documents]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] >= 0.8
    assert 0.4 <= scores[1] <= 0.7
    assert scores[2] <= 0.4
    assert scores[3] == 0.0
    assert all(round(score * 10) / 10 == score for score in scores)


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "I’m sorry, I cannot answer that.",
        "The provided documents do not mention the price.",
        "Unfortunately, I have nothing on this.",
        "There is not enough information to answer.",
        "Das weiß ich leider nicht. Ich weiß es nicht.",
        "Die Dokumente enthalten dazu keine Angaben.",
        "Je ne sais pas.",
        "Lo siento, no dispongo de información suficiente para responder.",
        "Non lo so.",
        "Não sei.",
        "Ik weet het niet.",
        "Hello! How can I help you?",
        "Thank you for the question.",
        "  ",
    ],
)
def test_refusals_greetings_and_questions_are_no_claims(text: str) -> None:
    assert claims(text, "What does it cost, and where is it?") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Madrid.", ["Madrid."]),
        ("Yes, 12 of them.", ["Yes, 12 of them."]),
        (
            "Here is the list:\n- It costs 3 euros.\n2. It is open on Mondays.",
            ["It costs 3 euros.", "It is open on Mondays."],
        ),
        ("The mayor said that he does not know the price.", ["The mayor said that he does not know the price."]),
        ("Sure, it opened in 1889.", ["Sure, it opened in 1889."]),
        ("No license is needed. Is it free?", ["No license is needed."]),
    ],
)
def test_what_states_something_is_a_claim(text: str, expected: list[str]) -> None:
    assert claims(text, "What does it cost?") == expected


@pytest.mark.parametrize(
    "text",
    ["東京は日本の首都です。", "Москва - столица России.", "Det är den största staden i Sverige och den är gammal."],
)
def test_other_languages_are_refused(text: str) -> None:
    for check in (fluency_faults, claims, lambda t: coherence_faults(None, t), lambda t: accuracy_clarity(t, t)):
        with pytest.raises(UnsupportedLanguage):
            check(text)
    with pytest.raises(UnsupportedLanguage):
        document_relevance(text, text, text)


TEXT = st.one_of(
    st.lists(
        st.sampled_from(["the", "lock", "was", "opened", ".", ",", "1889", "It", "?", "not", "(", "I", "know"]),
        max_size=30,
    ).map(" ".join),
    st.text(max_size=60),
)


@settings(max_examples=150, deadline=None)
@given(TEXT, TEXT)
def test_any_text_stays_in_the_declared_ranges(text: str, other: str) -> None:
    def run(check):  # type: ignore[no-untyped-def]
        try:
            return check()
        except UnsupportedLanguage:
            return None

    for check in (lambda: fluency_faults(text), lambda: coherence_faults(other, text)):
        found = run(check)
        assert found is None or found.score in (1.0, 2.0, 3.0, 4.0, 5.0)
    for check in (lambda: accuracy_clarity(other, text), lambda: document_relevance(other, other, text)):
        found = run(check)
        assert found is None or round(found.score * 10) / 10 == found.score <= 1.0
    stated = run(lambda: claims(text, other))
    assert stated is None or all(piece in text for piece in stated)
