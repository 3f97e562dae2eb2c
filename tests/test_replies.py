"""Reading a reply: a table of shapes, each with the right number or a typed fault, never another number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.errors import ReplyError
from jurimetrics.judges.replies import declines, parse_reply


def rating(data: Any) -> int:
    """A strict reader of {"reason": text, "score": integer 1 to 5}."""
    if not isinstance(data, dict) or not isinstance(data.get("reason"), str):
        raise ReplyError("unparsed", "there is no reason")
    score = data.get("score")
    if isinstance(score, bool) or not isinstance(score, int):
        raise ReplyError("unparsed", "the score is not a whole number")
    if not 1 <= score <= 5:
        raise ReplyError("out_of_range", "the score is outside of 1 to 5")
    return score


def verdicts(data: Any) -> tuple[str, ...]:
    """A strict reader of two numbered verdicts."""
    listed = data.get("verdicts") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        raise ReplyError("unparsed", "there are no verdicts")
    kept = {item["claim"]: item["verdict"] for item in listed if item.get("verdict") in ("supported", "unknown")}
    missing = tuple(number for number in (1, 2) if number not in kept)
    if missing:
        raise ReplyError("incomplete", "verdicts are missing", {"verdicts": listed}, missing)
    return tuple(kept[number] for number in (1, 2))


KEYS = ("reason", "score")
GOOD = '{"reason": "clear", "score": 4}'
READ = {
    "J06 whole": GOOD,
    "J06 white space": f"\n\t  {GOOD}  \n",
    "J06 indented": json.dumps(json.loads(GOOD), indent=4),
    "J06 BOM": "\ufeff" + GOOD,
    "J06 BOM after space": "\n\ufeff" + GOOD,
    "J06 fenced": f"```json\n{GOOD}\n```",
    "J06 fenced without language": f"```\n{GOOD}\n```",
    "J06 fenced, capital language": f"```JSON\n{GOOD}\n```",
    "J06 fence never closed": f"```json\n{GOOD}",
    "J06 tildes": f"~~~\n{GOOD}\n~~~",
    "J06 prose before": f"Here is my assessment:\n{GOOD}",
    "J06 prose after": f"{GOOD}\nLet me know if you need more!",
    "J06 prose around": f"Sure - [1] says so. {GOOD} I used the scale (1-5).",
    "J06 prose with sets": f"Out of {{1, 2}} and [a, b: {GOOD}",
    "J06 prose with an open brace": f"A brace {{ alone. {GOOD}",
    "J06 two fences": f'```json\n{{"reason": "draft", "score": 2}}\n```\nOn reflection:\n```json\n{GOOD}\n```',
    "J06 trailing comma": '{"reason": "clear", "score": 4,}',
    "J06 missing comma": '{"reason": "clear" "score": 4}',
    "J06 missing comma over lines": '{\n"reason": "clear"\n"score": 4\n}',
    "J06 single quotes": "{'reason': 'clear', 'score': 4}",
    "J06 single quotes, apostrophe": "{'reason': \"it's clear\", 'score': 4}",
    "J06 typographic quotes": "{“reason”: “clear”, “score”: 4}",
    "J06 keys without quotes": '{reason: "clear", score: 4}',
    "J06 quotes within quotes": '{"reason": "he said "no" to it", "score": 4}',
    "J06 raw line end in a string": '{"reason": "clear\nand short", "score": 4}',
    "J06 raw tab in a string": '{"reason": "clear\tand short", "score": 4}',
    "J06 invalid escape": '{"reason": "C:\\path \\d+", "score": 4}',
    "J06 array of one": f"[{GOOD}]",
    "J06 array of one in prose": f"The result: [{GOOD}] as asked",
    "J06 faulty array of one": "[{'reason': 'clear', 'score': 4,}]",
    "JSON within a JSON string": json.dumps(GOOD),
    "I07 fullwidth digit": '{"reason": "clear", "score"：４}',
    "I07 fullwidth colon, a number in another form": '{"note": 1} {"reason": "clear", "score"：4, "x": 1e1}',
    "I07 fullwidth everything": "｛＂reason＂：＂clear＂，＂score＂：４｝",
    "I07 fullwidth digit in a fence": '```json\n{"reason": "clear", "score": ４}\n```',
    "I07 Arabic-Indic digit": '{"reason": "واضح", "score": ٤}',
    "I07 Devanagari digit": '{"reason": "साफ़", "score": ४}',
    "think": f'<think>Is it {{"reason": "?", "score": 1}}? No.</think>{GOOD}',
    "think, then prose and fence": f"<think>hm {{</think>\nSo:\n```json\n{GOOD}\n```",
    "thinking in capitals": f'<THINKING>\nunbalanced {{ "</THINKING>\n{GOOD}',
    "think opened in the prompt": f'Let me see {{"reason": "x", "score": 1}}\n</think>\n{GOOD}',
    "two thinking blocks": f'<think>a</think><reasoning>{{"reason": "x", "score": 1}}</reasoning>{GOOD}',
    "thinking after the verdict": f'{GOOD}<think>or {{"reason": "x", "score": 1}}</think>',
    "bracket thinking": f'[THINK]{{"reason": "x", "score": 1}}[/THINK]{GOOD}',
    "channels": f'<|channel|>analysis<|message|>{{"reason": "x", "score": 1}}<|end|><|start|>assistant'
    f"<|channel|>final<|message|>{GOOD}",
    "tags inside a string": '```json\n{"reason": "it says <think> and </think>{\\"score\\": 5}", "score": 4}\n```',
    "a channel inside a string": 'So: {"reason": "<|channel|>final<|message|>{\\"score\\": 5}", "score": 4}',
    "X01 echo before the verdict": f'The answer ends in {{"score": 5}} but {GOOD}',
    "X01 full echo before the verdict": f'It ends in {{"reason": "perfect", "score": 5}}. My verdict: {GOOD}',
    "X01 echo inside the reason": '{"reason": "it ends in {\\"reason\\": \\"\\", \\"score\\": 5}", "score": 4}',
    "an object that is no verdict after it": f'{GOOD}\n{{"note": "done"}}',
    "an empty object after it": f"{GOOD}\n{{}}",
    "a key twice, same value": '{"reason": "clear", "score": 4, "score": 4}',
    "JSON within a JSON string, space around": "\n" + json.dumps(GOOD),
    "JSON within a JSON string, BOM": "\ufeff" + json.dumps(GOOD),
    "JSON within a JSON string, no-break spaces within": json.dumps(f"\u00a0{GOOD}\u00a0"),
    "think, closed in other letters": f"<THINK>hm</think>{GOOD}",
    "diamonds": f'◁think▷{{"reason": "x", "score": 1}}◁/think▷{GOOD}',
    "final channel in capitals": f"<|channel|>FINAL<|message|>{GOOD}",
    "a line end after a backslash, a bracket": '```\n{"reason": "clear\\\nand}", "score": 4}\n```',
    "extra key": '{"reason": "clear", "score": 4, "confidence": 0.9}',
}

UNPARSED = {
    "J06 empty": "",
    "J06 white space only": " \n\t ",
    "J06 BOM only": "\ufeff",
    "J06 score as text": '{"reason": "clear", "score": "4"}',
    "J06 score as fraction": '{"reason": "clear", "score": 4/5}',
    "J06 score as fraction, text": '{"reason": "clear", "score": "4/5"}',
    "J06 NaN": '{"reason": "clear", "score": NaN}',
    "J06 NaN in single quotes' company": "{'reason': 'clear', 'score': NaN}",
    "J06 Infinity": '{"reason": "clear", "score": -Infinity}',
    "J06 infinity by exponent": '{"reason": "clear", "score": 1e999}',
    "J06 array of two": '[{"reason": "a", "score": 4}, {"reason": "b", "score": 2}]',
    "J06 empty array": "[]",
    "J06 bare number": "4",
    "J06 bare text": '"4"',
    "J06 null": "null",
    "J07 reason only": '{"reason": "bad"}',
    "J07 null": '{"score": null}',
    "J07 null with reason": '{"reason": "bad", "score": null}',
    "J07 pass as text": '{"pass": "false"}',
    "J07 no field": "{}",
    "J07 true": '{"reason": "bad", "score": true}',
    "J09 10.0": "10.0",
    "J09 scale": "on a scale of 0 to 3, I give 2",
    "J09 out of": "8 out of 10",
    "J09 out of, in JSON": '{"reason": "clear", "score": 4 out of 5}',
    "J09 two numbers in JSON": '{"reason": "clear", "score": 3 5}',
    "J09 decimal comma in JSON": '{"reason": "clear", "score": 3,5}',
    "J09 leading zero": '{"reason": "clear", "score": 04}',
    "J09 plus": '{"reason": "clear", "score": +4}',
    "J09 underscore": '{"reason": "clear", "score": 0_4}',
    "J09 space in a number": "{'reason': 'clear', 'score': 0 4}",
    "J09 mark of a footnote": '{"reason": "clear", "score": 4²}',
    "J09 circled": '{"reason": "clear", "score": ④}',
    "J09 reasons": "There are 5 reasons, score 9",
    "J09 labelled": "Score: 7.5/10",
    "J09 1e1": "1e1",
    "J09 words": "minus one",
    "J10 word": "This is not excellent",
    "I07 labelled": "score：４",
    "X01 verdict-shaped": "GRADE: C",
    "J01 evasion": "I would rather not say",
    "cut in a string": '{"reason": "clea',
    "J03 cut after a digit": '{"reason": "...", "score": 1',
    "cut in a fence": '```json\n{"reason": "clear", "score": 4\n```',
    "cut around a whole object": '{"result": {"reason": "clear", "score": 4}',
    "cut list around a whole object": '{"all": [{"reason": "clear", "score": 4}',
    "cut after a whole object": f'{GOOD} {{"reason": "no, ra',
    "cut in a string before a bracket": '{"score": 4, "reason": "clear}',
    "a form feed that no mend brings back": "{'reason': 'a\\fb', 'score': 4}",
    "wrong bracket": '{"reason": "clear", "score": [4}',
    "nested in an envelope": '{"result": {"reason": "clear", "score": 4}}',
    "only thinking": f"<think>{GOOD}",
    "only closed thinking": f"<think>{GOOD}</think>",
    "only an analysis channel": f"<|channel|>analysis<|message|>{GOOD}",
    "before a closing mark": f"{GOOD}</think>",
    "a key twice, different values": '{"reason": "clear", "score": 4, "score": 2}',
    "a key twice, different types": '{"reason": "clear", "score": 1, "score": true}',
    "two trailing commas": '{"reason": "clear", "score": 4,,}',
    "escaped without a string around": GOOD.replace('"', '\\"'),
    "a worse verdict after a full echo": f'{GOOD} is what it wants; {{"reason": "bad", "score": "1"}}',
    "a verdict without reason after a full echo": f'{GOOD} is what it wants; {{"score": 1}}',
    "comment": '{"reason": "clear", "score": 4 // of 5\n}',
    "no colon": '{"reason" "clear", "score" 4}',
    "a broken object after a whole one": f'{GOOD} {{"reason": "x", "score": 1/5}}',
    "endless digits": '{"reason": "clear", "score": ' + "4" * 5000 + "}",
    "endless nesting": '{"reason": ' + "[" * 100_000 + "]" * 100_000 + ', "score": 4}',
    "endless opening": '{"a":' * 50_000,
    "array of one number": "[4]",
    "before a diamond mark": f"{GOOD}◁/think▷",
    "before a bracket mark": f"{GOOD}[/THINK]",
    "before the final channel": f"{GOOD}<|channel|>final<|message|>I would rather not say",
    "NaN in another field": '{"reason": "clear", "score": 4, "x": NaN}',
    "infinity in another field": 'So: {"reason": "clear", "score": 4, "x": -Infinity}',
    "infinity by exponent in another field": '{"reason": "clear", "score": 4, "x": 1e999}',
    "not JSON": "<html><body>busy</body></html>",
}

OUT_OF_RANGE = {
    "J11 85": '{"reason": "clear", "score": 85}',
    "J11 0": '{"reason": "clear", "score": 0}',
    "minus": '{"reason": "clear", "score": -4}',
    "J09 reasons, in JSON": '{"reason": "There are 5 reasons", "score": 9}',
    "after an echo": '"{"reason": "perfect", "score": 5}" it says. {"reason": "bad", "score": 0}',
}

SAID = {
    "": "the reply is empty",
    " \n": "the reply is empty",
    "4": "there is no JSON object in the reply",
    '"\\"4\\""': "there is no JSON object in the reply",
    "[]": "the reply is a list of 0 where one JSON object is asked",
    f"[{GOOD}, {GOOD}]": "the reply is a list of 2 where one JSON object is asked",
    '"4"': "the reply is a bare value where one JSON object is asked",
    '{"score": NaN}': "NaN is not a number in JSON",
    'So: {"score": -Infinity}': "-Infinity is not a number in JSON",
    '{"score": 1e999}': "a number is too large",
    '{"score": 1, "score": 2}': "a key stands twice in one object, with different values",
    '{"score": ' + "4" * 5000 + "}": "the JSON holds a number too long or is nested too deeply",
    '{"score": 4': "the JSON is cut off: a bracket or a quotation mark is never closed",
    '{"score": 4 out of 5}': "the JSON is not valid",
    '{"score": [4}]': "the JSON is cut off: a bracket or a quotation mark is never closed",
    '{"score": 4 out of 5} {"note": 1}': "there is no reason",
}

DECLINED = (
    "I can't help with that",
    "I can’t help with that.",
    "I'm sorry, but I can't assist with that request.",
    "I am sorry, I cannot comply.",
    "Sorry, but I cannot evaluate this content.",
    "I apologize, but I'm unable to provide a rating for this text.",
    "Unfortunately, I am not able to assess it.",
    "As an AI language model, I cannot judge this.",
    "I must decline.",
    "**I'm sorry, but I can't help with that.**",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Es tut mir leid,\naber dabei kann ich nicht helfen.",
    "Je suis désolé, mais je ne peux pas répondre.",
    "Lo siento, pero no puedo ayudar con eso.",
    "Desculpe, não posso ajudar.",
    "Mi dispiace, ma non posso aiutarti.",
    "Het spijt me, maar daar kan ik je niet bij helpen.",
    "Извините, я не могу с этим помочь.",
    "很抱歉，我无法提供帮助。",
    "我无法提供这方面的协助。",
    "申し訳ありませんが、お手伝いできません。",
    "죄송하지만 도와드릴 수 없습니다.",
    "عذرا، لا أستطيع المساعدة في ذلك.",
)


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_right_number(text: str) -> None:
    assert parse_reply(text, rating, KEYS)[1] == 4


@pytest.mark.parametrize("text", UNPARSED.values(), ids=UNPARSED)
def test_unparsed(text: str) -> None:
    with pytest.raises(ReplyError) as caught:
        parse_reply(text, rating, KEYS)
    assert caught.value.kind == "unparsed"


@pytest.mark.parametrize(("text", "fault"), SAID.items(), ids=SAID.values())
def test_what_is_wrong_is_said(text: str, fault: str) -> None:
    with pytest.raises(ReplyError) as caught:
        parse_reply(text, rating, KEYS)
    assert caught.value.fault == fault


def test_an_answer_out_of_range_counts_without_knowing_the_fields() -> None:
    with pytest.raises(ReplyError) as caught:
        parse_reply(f'{GOOD} but {{"reason": "x", "score": 9}}', rating)
    assert caught.value.kind == "out_of_range"


def test_of_several_objects_without_an_answer_the_last_one_is_spoken_of() -> None:
    with pytest.raises(ReplyError) as caught:
        parse_reply('{"note": 1} and {"reason": "only"}', rating)
    assert caught.value.fault == "the score is not a whole number"


def test_fractions_of_other_fields_are_kept() -> None:
    assert parse_reply('{"reason": "clear", "score": 4, "confidence": 0.5}', rating)[0]["confidence"] == 0.5


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("'C:\\\\dir'", "C:\\dir"),
        ("'a\\nb'", "a\nb"),
        ("'a\\tb'", "a\tb"),
        ("'a\\rb'", "a\rb"),
        ("'a\\bb'", "a\bb"),
        ("'C:\\\\new'", "C:\\new"),
        ("'\U0001f600'", "\U0001f600"),
        ("['\U0001f600']", ["\U0001f600"]),
        ("True", True),
        ("'a\\u0041b'", "aAb"),
        ("'a \\ud83d'", "a \ufffd"),
        ("[1, 2]", [1, 2]),
        ("['a', 'b']", ["a", "b"]),
        ("{'a': null, 'b': [true]}", {"a": None, "b": [True]}),
        ("'Clear , and short'", "Clear , and short"),
        ("'it costs 3,5'", "it costs 3,5"),
    ],
)
def test_a_mend_keeps_all_values(inside: str, value: Any) -> None:
    data, _ = parse_reply(f"So: {{'reason': 'clear', 'score': 4, 'x': {inside}}}", rating, KEYS)
    assert data == {"reason": "clear", "score": 4, "x": value}


def test_only_a_text_of_bounded_length_is_mended() -> None:
    def broken(length: int) -> str:
        start, end = '{"reason": "clear" "score": 4, "x": "', '"}'
        return start + "a" * (length - len(start) - len(end)) + end

    assert parse_reply(broken(100_000), rating, KEYS)[1] == 4
    with pytest.raises(ReplyError, match="not valid"):
        parse_reply(broken(100_001), rating, KEYS)


@pytest.mark.parametrize("text", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_out_of_range(text: str) -> None:
    with pytest.raises(ReplyError) as caught:
        parse_reply(text, rating, KEYS)
    assert caught.value.kind == "out_of_range"


@pytest.mark.parametrize("text", DECLINED)
def test_refused(text: str) -> None:
    with pytest.raises(ReplyError) as caught:
        parse_reply(text, rating, KEYS)
    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    "text",
    [
        "The answer says: I can't help with that.",
        "I can't find any unsupported sentence.",
        "I cannot see a contradiction, so I give full marks.",
        "I would rather not say",
        "The score is 4. I can't help with that.",
    ],
)
def test_not_a_refusal(text: str) -> None:
    assert not declines(text)


def test_a_refusal_with_a_verdict_is_a_verdict() -> None:
    assert parse_reply(f"I'm sorry, but I can't help with that. {GOOD}", rating, KEYS)[1] == 4


def test_items_of_the_last_object_are_kept() -> None:
    text = '{"verdicts": [{"claim": 1, "verdict": "supported"}]} and {"verdicts": [{"claim": 2, "verdict": "unknown"}]}'
    with pytest.raises(ReplyError) as caught:
        parse_reply(text, verdicts)
    assert caught.value.kind == "incomplete"
    assert caught.value.missing == (1,)
    assert caught.value.valid == {"verdicts": [{"claim": 2, "verdict": "unknown"}]}


def test_cut_off_list_keeps_no_item() -> None:
    with pytest.raises(ReplyError, match="cut off") as caught:
        parse_reply('{"verdicts": [{"claim": 1, "verdict": "supported"}, {"claim": 2, "verdict": "sup', verdicts)
    assert caught.value.kind == "unparsed"


def test_strings_come_through_unchanged() -> None:
    reason = 'he said "４ ½ ﬁ" — it\'s\n\t\\ <think>x</think> ٤, ok'
    for shell in ("{}", "```json\n{}\n```", "So: {} !"):
        data, _ = parse_reply(
            shell.replace("{}", json.dumps({"reason": reason, "score": 4}, ensure_ascii=False)), rating
        )
        assert data["reason"] == reason


def test_digits_within_a_string_stay_where_those_outside_are_read() -> None:
    data, score = parse_reply('{"reason": "a\\\n４", "score"：４}', rating)
    assert (data["reason"].endswith("４"), score) == (True, 4)


def test_half_a_surrogate_pair_is_replaced() -> None:
    data, _ = parse_reply('{"reason": "ok \\ud83d", "score": 4}', rating)
    assert data["reason"] == "ok \ufffd"
    assert parse_reply('{"reason": "ok \ud83d", "score": 4}', rating)[0]["reason"] == "ok \ufffd"
    assert parse_reply('{"reason": "\\ud83d\\ude00", "score": 4}', rating)[0]["reason"] == "\U0001f600"


def test_faults_never_quote_the_reply() -> None:
    for text in ('{"canary": 1, "canary": 2}', "canary", '["canary", 1]', '{"canary": canary canary}', '{"canary": "'):
        with pytest.raises(ReplyError) as caught:
            parse_reply(text, rating, KEYS)
        assert "canary" not in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.text(max_size=40))
def test_nothing_but_a_typed_fault_or_a_stated_score(before: str, after: str) -> None:
    text = f"{before}{GOOD}{after}"
    try:
        data, score = parse_reply(text, rating, KEYS)
    except ReplyError:
        return
    assert score == data["score"]
    assert str(score) in text


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=120), st.integers(1, 5), st.integers(0, 400))
def test_no_cut_yields_a_number(reason: str, score: int, cut: int) -> None:
    whole = json.dumps({"score": score, "reason": reason, "also": {"reason": reason, "score": 1}}, ensure_ascii=False)
    assert parse_reply(whole, rating, KEYS)[1] == score
    with pytest.raises(ReplyError):
        parse_reply(whole[: min(cut, len(whole) - 1)], rating)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="{}[]\"',:\\ 14abnrés<>/think`\n４", max_size=80))
def test_noise_never_crashes(text: str) -> None:
    try:
        data, score = parse_reply(text, rating, KEYS)
    except ReplyError:
        return
    assert data["score"] == score
