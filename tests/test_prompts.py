"""A prompt is data: its places are filled in one pass, its text is kept, its version changes with any character."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.prompts import PLACES, Prompt
from jurimetrics.records import Record

RECORD = Record(
    "7",
    question="Who pays?",
    answer="The tenant.",
    contexts=("One.", "Two."),
    reference="The landlord.",
    metadata={
        "topic": "law",
        "year": 2024.0,
        "open": True,
        "laws": ["BGB", "HGB é"],
        "my topic": "rent",
        "answer": "!",
    },
)


def filled(text: str, values: Any = RECORD, **options: Any) -> str:
    messages = Prompt("p", text, **options).messages(values)
    assert [message["role"] for message in messages] == ["user"]
    return messages[0]["content"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{question}", "Who pays?"),
        ("{{question}}", "Who pays?"),
        ("{{ question }}", "Who pays?"),
        ("{question}{{question}}{question}", "Who pays?" * 3),
        ("{{{question}}}", "{Who pays?}"),
        ("{{question}", "{Who pays?"),
        ("{question}}", "Who pays?}"),
        ('{"q": {question}, "a": {{answer}}}', '{"q": Who pays?, "a": The tenant.}'),
        ("{contexts}", "One.\n\nTwo."),
        ("{id}: {reference}", "7: The landlord."),
        ("{topic} {metadata.topic}", "law law"),
        ("{year} {open} {laws}", '2024 true ["BGB", "HGB é"]'),
        ("{metadata.my topic} {{ metadata.my topic }}", "rent rent"),
        ("{answer} {metadata.answer}", "The tenant. !"),
    ],
)
def test_what_stands_for_a_place(text: str, wanted: str) -> None:
    assert filled(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["{}", "{{}}", "{ question }", "{question", "question}", "{0}", "{a b}", "{a-b}", '{"a": 1}', "{{{}}}", "{question\n}",
     "{% if question %}", "${1}", "{metadata.}", "{question!r}", "{question:>10}", "\\{ }"],
)  # fmt: skip
def test_other_braces_are_text(text: str) -> None:
    assert Prompt("p", text).places == ()
    assert filled(text) == text


def test_names_of_every_script_are_places() -> None:
    assert filled("{主题}: {été}", {"主题": "law", "été": "summer"}) == "law: summer"


def test_declared_places_are_the_only_ones() -> None:
    prompt = Prompt("p", "def f({name}): {question} {{name}} {my-key}", variables=("my-key", "question"))
    assert prompt.places == ("question", "my-key"), "in the order of the text"
    (message,) = prompt.messages({"question": "Why?", "my-key": "k", "name": "never"})
    assert message["content"] == "def f({name}): Why? {{name}} k"
    assert Prompt("p", "{question} {x}", variables=()).messages({})[0]["content"] == "{question} {x}"


def test_places_of_the_system_message_come_first() -> None:
    prompt = Prompt("p", "{question} {topic}", system="About {topic}.")
    assert prompt.variables == ("topic", "question")
    assert prompt.messages(RECORD) == [
        {"role": "system", "content": "About law."},
        {"role": "user", "content": "Who pays? law"},
    ]


LITERAL = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]))
VALUES = {name: st.text(st.characters(exclude_categories=["Cs"])) for name in ("question", "answer", "topic", "été")}
SPELLINGS = st.sampled_from(["{%s}", "{{%s}}", "{{ %s }}"])
PIECES = st.lists(st.one_of(LITERAL, st.tuples(SPELLINGS, st.sampled_from(sorted(VALUES)))))


@given(PIECES, st.fixed_dictionaries(VALUES))
@example([("{%s}", "question"), "-", ("{{%s}}", "answer")], dict.fromkeys(VALUES, r"{answer}{{question}}\1\g<0>{topic"))
def test_each_place_is_filled_once_and_nothing_else_changes(pieces: list[Any], values: dict[str, str]) -> None:
    """The text is built of pieces, so that what must come out is known without reading it."""
    text = "x" + "".join(piece if isinstance(piece, str) else piece[0] % piece[1] for piece in pieces)
    wanted = "x" + "".join(piece if isinstance(piece, str) else values[piece[1]] for piece in pieces)
    prompt = Prompt("p", text, system=text)
    assert prompt.messages(values) == [{"role": "system", "content": wanted}, {"role": "user", "content": wanted}]
    assert prompt.places == tuple(dict.fromkeys(piece[1] for piece in pieces if not isinstance(piece, str)))


def by_hand(text: str, values: dict[str, str]) -> str:
    """The rule once more, character by character: at each brace the longer spelling first, else the brace is text."""
    out, at = "", 0
    while at < len(text):
        for opened, closed, room in (("{{", "}}", " \t"), ("{", "}", "")):
            end = text.find(closed, at + len(opened))
            name = text[at + len(opened) : end].strip(room) if room else text[at + len(opened) : end]
            if text.startswith(opened, at) and end >= 0 and name in values:
                out += values[name]
                at = end + len(closed)
                break
        else:
            out += text[at]
            at += 1
    return out


@given(st.text(st.sampled_from('{} ab"\n')), st.text(st.sampled_from("{}ab")), st.text(st.sampled_from("{}ab")))
@example("{{a}}}{{{b}}", "{b}", "{a}")
@example("{a}}{{b} {{ a}} { b }", "}", "{")
def test_any_heap_of_braces_is_read_alike_by_a_second_reader(text: str, first: str, second: str) -> None:
    values = {"a": first, "b": second, "ab": "3", "ba": "4", "aa": "5", "bb": "6"}
    prompt = Prompt("p", f"x{text}")
    known = {name: value for name, value in values.items() if name in prompt.places}
    for other in prompt.places:
        known.setdefault(other, f"<{other}>")
    assert prompt.messages(known)[0]["content"] == by_hand(f"x{text}", known)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_text_without_places_is_sent_as_it_is(text: str) -> None:
    if not text.strip():
        text += "x"
    prompt = Prompt("p", f"{text}x", variables=())
    assert prompt.messages({})[0]["content"] == f"{text}x"


def test_the_version_changes_with_any_character_and_with_nothing_else() -> None:
    texts = ["é {question}", unicodedata.normalize("NFD", "é {question}"), "é {{question}}", "é {question}\n",
             "é {question}\r\n", " é {question}", "É {question}"]  # fmt: skip
    versions = {Prompt("p", text).version for text in texts}
    versions |= {Prompt("p", texts[0], system="é").version, Prompt("p", texts[0], variables=()).version}
    assert len(versions) == len(texts) + 2
    assert all(re.fullmatch("[0-9a-f]{12}", version) for version in versions)
    same = Prompt("other", texts[0], tags=("a",), description="d", variables=("question",))
    assert same.version == Prompt("p", texts[0]).version
    assert Prompt("p", "a", system="b").version != Prompt("p", "b", system="a").version


def test_the_version_is_the_same_everywhere() -> None:
    """By hand: the first 12 digits of the SHA-256 of this JSON, which is what other programs would compute."""
    import hashlib

    content = '{"system":"","user":"Q: {question}","variables":["question"]}'
    assert Prompt("p", "Q: {question}").version == hashlib.sha256(content.encode()).hexdigest()[:12]


def test_text_is_kept_character_by_character() -> None:
    text = "\ufeff \r\n\tÅ\u0000 e\u0301 \u200b{question}\r\n\r"
    prompt = Prompt("p", text, system=text)
    assert (prompt.user, prompt.system) == (text, text)
    assert filled(text, {"question": "é\r\n"}) == text.replace("{question}", "é\r\n")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "name: expected one line of text without spaces around it, found ''"),
        ({"name": " p"}, "name: expected one line of text without spaces around it, found ' p'"),
        ({"name": "a\nb"}, "name: expected one line"),
        ({"name": 7}, "name: expected text, found 7"),
        ({"user": ""}, "user: the text of a prompt is needed, found a blank one"),
        ({"user": "\u200b\n"}, "user: the text of a prompt is needed"),
        ({"user": None}, "user: expected text, found None"),
        ({"user": "cut \ud83d"}, "user: half of a surrogate pair"),
        ({"system": "\n"}, "system: expected a text, or none at all, found a blank one"),
        ({"system": None}, "system: expected text, found None"),
        ({"description": 1}, "description: expected text, found 1"),
        ({"tags": "qa"}, "tags: expected a list of names, found 'qa'"),
        ({"tags": ["qa", 1]}, "tags: expected a list of names, found ['qa', 1]"),
        ({"tags": [" "]}, "tags: expected a list of names"),
        ({"variables": "question"}, "variables: expected a list of names, found 'question'"),
        ({"variables": ["question", "x"]}, "variables: 'x' is listed, but the text has no place {x}"),
        ({"variables": ["{question}"]}, "variables: expected names without braces and on one line, found '{question}'"),
    ],
)
def test_what_is_no_prompt_is_refused_in_one_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as found:
        Prompt(**{"name": "p", "user": "{question}", **given})
    assert "\n" not in str(found.value)


def test_what_is_lacking_is_named_before_anything_is_filled() -> None:
    prompt = Prompt("p", "{question} {contexts} {reference} {answer} {topic} {metadata.question} {variant}")
    bare = Record("1", question=" ", answer="", contexts=("",), variant="b", metadata={"topic": ""})
    assert prompt.lacking(bare) == ("question", "contexts", "reference", "metadata.question", "variant")
    assert Prompt("p", "{answer}|{topic}|{id}").lacking(bare) == (), "blank text is there"
    with pytest.raises(InputError, match=re.escape("prompt 'p': nothing is given for {question}, {reference}")):
        Prompt("p", "{question} {reference}").messages(bare)
    nothing = {"question": float("nan"), "contexts": []}
    assert Prompt("p", "{question} {contexts}").lacking(nothing) == ("question", "contexts")


def test_values_by_name_may_be_those_of_a_record() -> None:
    text = "{question} {contexts} {topic} {metadata.topic} {year}"
    assert filled(text, RECORD.as_dict()) == filled(text, RECORD)


def test_a_place_that_no_record_can_fill_is_said_with_what_there_is() -> None:
    records = [Record("1", question="Why?", metadata={"topic": "law"}), Record("2", contexts=("One.",))]
    Prompt("p", "{question} {contexts} {topic} {id}").check(records)
    Prompt("p", "no place").check(records)
    Prompt("p", "no place").check([])
    with pytest.raises(InputError) as found:
        Prompt("p", '{question} {"a"} {topc} {contexts}').check(iter(records))
    assert str(found.value) == (
        "prompt 'p': no record has 'topc' for the place {topc}; known: question, id, topic, contexts; "
        'if it is no place but text, list the places as variables = ["question", "contexts"]'
    )
    with pytest.raises(InputError, match="no record has 'reference'"):
        Prompt("p", "{reference}").check(records)
    with pytest.raises(InputError, match="no record has 'group'"):
        Prompt("p", "{group}").check(records)
    with pytest.raises(InputError, match="known: nothing;"):
        Prompt("p", "{question}").check([])
    wide = [Record("1", metadata={f"key_{at:02}": at for at in range(50)})]
    with pytest.raises(InputError, match="key_18 and 31 more;"):
        Prompt("p", "{question}").check(wide)


def test_every_named_place_is_a_field_of_a_record() -> None:
    assert {each.name for each in dataclasses.fields(Record)} >= set(PLACES)


def test_a_prompt_is_a_value() -> None:
    prompt = Prompt("p", "{question}", system="s", tags=["a", "b", "a"])  # type: ignore[arg-type]
    assert prompt.tags == ("a", "b")
    assert prompt == Prompt("p", "{question}", system="s", tags=("a", "b"), variables=("question",))
    assert len({prompt, pickle.loads(pickle.dumps(prompt))}) == 1
    assert dataclasses.replace(prompt, name="q").version == prompt.version
    assert dataclasses.replace(prompt, user="{answer}", variables=None).places == ("answer",)
    with pytest.raises(InputError, match=re.escape("no place {question}")):
        dataclasses.replace(prompt, user="{answer}")
    with pytest.raises(dataclasses.FrozenInstanceError):
        prompt.user = "x"  # type: ignore[misc]


def test_it_is_shown_short_and_escaped() -> None:
    evil = "<img src=x onerror=alert(1)> \x1b[31m \u202e {question} & {name}"
    prompt = Prompt("<b>p</b>", evil, system=evil, description=evil, tags=("<i>",), variables=("question",))
    page = prompt._repr_html_()
    assert not re.search(r"<(img|i>|script)", page)
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("<b>{question}</b>") == 2
    assert "<b>{name}" not in page
    assert "&lt;b&gt;p&lt;/b&gt;" in page
    assert prompt.version in page
    long = Prompt("p", "word " * 4000)
    assert len(repr(long)) < 150
    assert len(long._repr_html_()) < 6000
    assert "(16,000 more characters)" in long._repr_html_()
    assert repr(Prompt("p", "a\n\n {topic}")).endswith("places: topic, 'a {topic}')")


def test_a_value_that_is_no_text_is_put_in_as_json_reads_it_back() -> None:
    nested = {"a": [1, None, {"b": "{question}"}]}
    assert json.loads(filled("{table}", {"table": nested})) == nested
