from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import jurimetrics.text
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.text import (
    Sentence,
    estimate_tokens,
    f1_tokens,
    find_quote,
    fold,
    is_blank,
    language_of,
    sentences,
    words,
)

ALPHABETS = (
    "abcXYZ äöüß éèñ .,!?;:'\"()[]\n\t-*0123",
    "你好世界。！？，、\u3000“”「」 a1\n",
    "こんにちは世界ﾊﾞカ。！？\n ",
    "안녕하세요 . ! ?\n",
    "مرحبا ؟ ، ۔ .\n",
    "यह पहला है । ॥ ?\n",
    "สวัสดีครับ ๆ ฯ 1.\n",
    "Привет як ё ї . ! ?\n",
    "שלום ? . ״\n",
    "\u200b\u00a0\u2028\ufeff\x1c\x85😀👩\u200d👧e\u0301\ud800 .\r\n",
)
ANY_SCRIPT = st.one_of([st.text(alphabet, max_size=120) for alphabet in ALPHABETS] + [st.text(max_size=60)])


def token_f1(a: list[str], b: list[str]) -> float:
    shared = sum((Counter(a) & Counter(b)).values())
    return 2 * shared / (len(a) + len(b))


@settings(max_examples=150, deadline=None)
@given(ANY_SCRIPT, st.sampled_from([None, "en", "zh", "th", "xx"]), st.sampled_from([1, 7, 1000]))
def test_the_pieces_of_a_text_are_the_whole_text(text: str, language: str | None, limit: int) -> None:
    pieces = sentences(text, language, limit=limit)
    assert "".join("".join(p.text for p in pieces).split()) == "".join(text.split())
    assert all(p.text == text[p.start : p.end] == p.text.strip() != "" for p in pieces)
    assert all(len(p.text) <= limit for p in pieces)
    assert all(a.end <= b.start for a, b in pairwise(pieces))


@pytest.mark.parametrize("language", ["guessed", "en"])
@pytest.mark.parametrize(
    "text",
    [
        "The sun rose. Did it rain? No!",
        "太阳升起了。下雨了吗？没有！",
        "日が昇りました。雨でしたか？いいえ！",
        "해가 떴습니다. 비가 왔습니까? 아니요!",
        "أشرقت الشمس. هل أمطرت؟ لا!",
        "सूरज निकला। क्या बारिश हुई? नहीं!",
        "Солнце встало. Шёл дождь? Нет!",
        "השמש זרחה. ירד גשם? לא!",
    ],
)
def test_three_sentences_in_eight_scripts_are_three_pieces(text: str, language: str) -> None:
    assert len(sentences(text, None if language == "guessed" else language)) == 3


def test_thai_is_split_at_lines_only() -> None:
    assert len(sentences("สวัสดีครับ ผมชื่อสมชาย\nผมอยู่กรุงเทพ")) == 2


@pytest.mark.parametrize(
    "text", ["apples\npears\nplums", "- apples\n- pears\n- plums", "1. A cat. 2. A dog. 3. A cow."]
)
def test_lists_are_split_at_their_items(text: str) -> None:
    assert len(sentences(text)) == 3


def test_a_last_piece_without_a_mark_is_kept() -> None:
    assert [s.text for s in sentences("It rained. No mark here")] == ["It rained.", "No mark here"]
    assert sentences("没有标点的一句话") == [Sentence("没有标点的一句话", 0, 8)]
    assert sentences(" \n ") == []


def test_abbreviations_and_decimals_do_not_end_a_sentence() -> None:
    assert len(sentences("Dr. Smith paid $3.50, e.g. for tea. He left.")) == 2


def test_words_that_look_like_abbreviations_end_a_sentence_before_a_capital() -> None:
    assert len(sentences("The answer was no. Adults came later. See no. 5 there.")) == 3
    assert len(sentences("Está a 74 metros sobre el mar. Da tres destellos cada veinte segundos.")) == 2


def test_long_pieces_are_cut_at_a_space_within_the_limit() -> None:
    assert [len(s.text) for s in sentences("word " * 500)] == [999, 999, 499]
    assert [len(s.text) for s in sentences("x" * 2500)] == [1000, 1000, 500]
    with pytest.raises(ValueError, match="limit"):
        sentences("x", limit=0)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The committee met on Monday and agreed to the plan."),
        ("en", "I don't know."),
        ("de", "Die Regierung hat am Montag einen neuen Plan vorgestellt."),
        ("fr", "Le gouvernement a présenté lundi un nouveau plan pour l'énergie."),
        ("es", "El gobierno presentó el lunes un nuevo plan para la energía."),
        ("it", "Il governo ha presentato lunedì un nuovo piano per l'energia."),
        ("pt", "O governo apresentou na segunda-feira um novo plano para a energia."),
        ("nl", "De regering heeft maandag een nieuw plan voor de energie gepresenteerd."),
        ("sv", "Stockholm är huvudstaden i Sverige och det är den största staden."),
        ("pl", "Warszawa jest stolicą Polski i nie jest to małe miasto."),
        ("zh", "Python是一种编程语言"),
        ("ja", "東京は日本の首都です"),
        ("ko", "서울은 한국의 수도입니다"),
        ("ar", "القاهرة عاصمة مصر"),
        ("fa", "تهران پایتخت ایران است گ"),
        ("hi", "दिल्ली भारत की राजधानी है"),
        ("th", "กรุงเทพเป็นเมืองหลวง"),
        ("ru", "Москва столица России"),
        ("uk", "Київ є столицею України"),
        ("el", "Η Αθήνα είναι πρωτεύουσα"),
        ("he", "ירושלים היא עיר"),
        ("und", "Madrid"),
        ("und", "42 %"),
        ("und", ""),
    ],
)
def test_the_language_is_recognised_or_left_open(language: str, text: str) -> None:
    assert language_of(text) == language


def test_the_language_does_not_hang_on_the_hash_seed() -> None:
    program = (
        "from jurimetrics.text import language_of as of; print(of('de is in la que no'), of('un de la a'), of('er is'))"
    )
    root = str(Path(jurimetrics.text.__file__).parents[1])
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(seen) == 1


def test_azures_f1_example_is_exact() -> None:
    # "according to wikipedia marie curie was not born in paris but in warsaw" (13) against
    # "marie curie was born in warsaw" (6): 6 shared, 2*6/19.
    answer = f1_tokens("According to wikipedia, Marie Curie was not born in Paris but in Warsaw.")
    reference = f1_tokens("Marie Curie was born in Warsaw.")
    assert token_f1(answer, reference) == 0.631578947368421 == 12 / 19


def test_punctuation_is_deleted_not_replaced() -> None:
    assert f1_tokens("the cat's") == f1_tokens("cats") == ["cats"]
    assert f1_tokens("state-of-the-art!") == ["stateoftheart"]


def test_articles_are_dropped_in_english_only() -> None:
    assert f1_tokens("Il a un chat et il a faim", None).count("a") == 2
    assert f1_tokens("A house on a hill", "en") == ["house", "on", "hill"]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("东京是首都", "东京是首都。", 1.0),
        ("东京是首都", "大阪是城市", 0.2),
        ("东京", "大阪", 0.0),
        ("ＡＢＣ", "abc", 1.0),
        ("กรุงเทพ", "กรุงเทพ", 1.0),
    ],
)
def test_f1_by_character_where_words_are_not_spaced(a: str, b: str, expected: float) -> None:
    assert token_f1(f1_tokens(a), f1_tokens(b)) == pytest.approx(expected)


def test_words_part_at_punctuation_and_keep_numbers_whole() -> None:
    assert words("O’Neil's 3,000.5 well-known—naps") == ["oneils", "30005", "well", "known", "naps"]
    assert words("東京タワー、2024年") == ["東", "京", "タ", "ワ", "ー", "2024", "年"]


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("born in", "He was born in 1900.", "born in"),
        ("BORN  in\n1900", "He was born in 1900.", "born in 1900"),
        ("cafe\u0301", "Le CAFÉ noir", "CAFÉ"),
        ("ガラス", "この ｶﾞﾗｽ は", "ｶﾞﾗｽ"),
        ("strasse", "Die Straße hier", "Straße"),
        ("fish", "ﬁsh", "ﬁsh"),
    ],
)
def test_a_quote_is_found_in_the_original_text(quote: str, text: str, found: str) -> None:
    span = find_quote(quote, text)
    assert span is not None
    assert text[slice(*span)] == found


def test_what_is_not_there_is_not_found() -> None:
    assert find_quote("absent", "present") is None
    assert find_quote("  ", "a  b") is None


@settings(max_examples=100, deadline=None)
@given(ANY_SCRIPT, st.data())
def test_every_slice_is_found_and_folds_to_itself(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]
    span = find_quote(quote, text)
    if is_blank(quote):
        assert span is None
    else:
        assert span is not None
        assert text[slice(*span)] == quote.strip()
    assert fold(fold(text)) == fold(text)


def test_blank_and_token_estimate() -> None:
    assert is_blank("")
    assert is_blank("\ufeff \u200b\t")
    assert not is_blank(".")
    assert [estimate_tokens(t) for t in ("", "a", "abcd", "abcde", "你好", "\ud800")] == [0, 1, 1, 2, 2, 1]
    assert estimate_tokens("é" * 1001) == math.ceil(2002 / 4)
