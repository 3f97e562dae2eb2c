"""Scores from the log-probabilities of their token: the expectation where that token is certain, else the text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.errors import InputError, ReplyError
from jurimetrics.judges.probabilities import label_probabilities
from jurimetrics.tasks.rate import PROBABILITIES, RateRubric
from local_model import MODEL
from scripted_server import Answer, Call, ScriptedServer, error, reply

LABELS = ("1", "2", "3", "4", "5")
RECORD = {
    "id": "1",
    "question": "How old is it?",
    "answer": "It is old.",
    "contexts": ["It is old."],
    "reference": "Old.",
}
CHANCES = {"4": 0.5, "5": 0.3, "3": 0.1, "The": 0.1}
EXPECTED = (4 * 0.5 + 5 * 0.3 + 3 * 0.1) / 0.9
TEXT = '{"findings": "plain", "score": 4}'


def token(text: str, chances: Mapping[str, float] | None = None) -> dict[str, Any]:
    listed = [{"token": one, "logprob": math.log(p), "bytes": list(one.encode())} for one, p in (chances or {}).items()]
    return {"token": text, "logprob": -0.7, "bytes": list(text.encode()), "top_logprobs": listed}


def spelled(*pieces: str, chances: Mapping[str, float] = CHANCES, at: str = "4") -> list[dict[str, Any]]:
    return [token(piece, chances if piece.strip() == at else {"x": 0.5, "y": 0.5}) for piece in pieces]


PIECES = ('{"findings": "', "plain", '", "score":', " ", "4", "}")


def choice(content: str = TEXT, tokens: Sequence[Any] | None = None) -> dict[str, Any]:
    listed = list(spelled(*PIECES) if tokens is None else tokens)
    return {"index": 0, "message": {"role": "assistant", "content": content}, "logprobs": {"content": listed}}


def answering(given: Mapping[str, Any]) -> Answer:
    return reply(None, extra={"choices": [{**given, "finish_reason": "stop"}]})


def judge(server: ScriptedServer, **options: Any) -> jm.ChatJudge:
    return jm.ChatJudge("scripted", name="a", base_url=server.url, **{"logprobs": True, **options})


def rows(server: ScriptedServer, metrics: Any = "coherence", asked: Any = None, **options: Any) -> list[Any]:
    results = jm.evaluate([RECORD], metrics, asked or judge(server), **{"store": None, "progress": False, **options})
    return [dict(row) for row in results.scores.to_dict("records")]


def test_the_value_is_the_expectation_over_the_labels_and_the_row_says_so() -> None:
    with ScriptedServer(lambda call: answering(choice())) as server:
        [row] = rows(server)
        assert row["score"] == pytest.approx(EXPECTED, abs=1e-9) and row["reason"] == "plain"
        assert "logprob_score" in row["flags"] and "text_score" not in row["flags"]
        [call] = server.requests
        assert (call.body["logprobs"], call.body["top_logprobs"]) == (True, 20)


def test_without_the_option_nothing_is_asked_and_the_text_counts() -> None:
    with ScriptedServer(lambda call: answering(choice())) as server:
        [row] = rows(server, asked=judge(server, logprobs=False))
        assert row["score"] == 4 and not {"logprob_score", "text_score"} & set(row["flags"])
        assert "logprobs" not in server.requests[0].body


def test_tokens_of_a_fence_around_the_text_do_not_disturb() -> None:
    found = label_probabilities(choice(tokens=spelled("```json\n", *PIECES, "\n```")), LABELS)
    assert found is not None and found["4"] == pytest.approx(0.5 / 0.9) and set(found) == {"3", "4", "5"}


def test_a_label_with_a_blank_before_it_is_the_same_label() -> None:
    pieces = ('{"findings": "plain", "score":', " 4", "}")
    found = label_probabilities(choice(tokens=spelled(*pieces, chances={" 4": 0.4, "4": 0.4, " 5": 0.2})), LABELS)
    assert found is not None and found == pytest.approx({"4": 0.8, "5": 0.2})


def test_letters_spread_over_tokens_are_put_together() -> None:
    text = '{"findings": "gut – ja", "score": 4}'
    raw = text.encode()
    at = raw.index("–".encode()) + 1
    parts = [raw[:at], raw[at:-2], raw[-2:-1], raw[-1:]]
    tokens = [{**token("?"), "bytes": list(part)} for part in parts]
    tokens[2] = token("4", CHANCES)
    found = label_probabilities(choice(text, tokens), LABELS)
    assert found is not None and found["5"] == pytest.approx(0.3 / 0.9)


ECHO = 'It says "score": 5, so: '
NOT_CERTAIN: dict[str, dict[str, Any]] = {
    "none given": {**choice(), "logprobs": None},
    "no list": {**choice(), "logprobs": {"content": None}},
    "no alternatives": choice(tokens=spelled(*PIECES, chances={})),
    "other text": choice(tokens=spelled("Well, ", *PIECES[1:])),
    "a token too wide": choice(tokens=spelled('{"findings": "plain", "score":', " 4}", at="4}")),
    "two scores": choice(ECHO + TEXT, spelled(ECHO, *PIECES)),
    "the text twice": choice(tokens=spelled(*PIECES, "\n", *PIECES)),
    "another label chosen": choice(tokens=spelled(*PIECES, chances={"5": 0.9, "1": 0.1})),
    "not a logarithm": choice(tokens=[*spelled(*PIECES[:4]), {**token("4"), "top_logprobs": [
        {"token": "4", "logprob": 0.5}, {"token": "5", "logprob": -1.0}]}, token("}")]),
    "nonsense": choice(tokens=[*spelled(*PIECES[:4]), {**token("4"), "top_logprobs": ["4", None]}, token("}")]),
    "tokens of no text": choice(tokens=[3, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_CERTAIN)
def test_where_the_token_is_not_certain_the_text_counts(name: str) -> None:
    with ScriptedServer(lambda call: answering(NOT_CERTAIN[name])) as server:
        [row] = rows(server)
        assert (row["status"], row["score"]) == ("ok", 4) and "text_score" in row["flags"], row["error"]
        assert server.count == 1


def test_scales_with_labels_of_two_digits_are_scored_by_their_text() -> None:
    with ScriptedServer(lambda call: answering(choice('{"findings": "plain", "score": 7}'))) as server:
        [row] = rows(server, "accuracy_clarity")
        assert row["score"] == 0.7 and "text_score" in row["flags"] and "logprobs" not in server.requests[0].body


def test_tenths_up_to_nine_are_divided() -> None:
    rubric = jm.rubric("Is it kind?", name="kind", scale=(0, 0.5), step=0.1)
    with ScriptedServer(lambda call: answering(choice())) as server:
        [row] = rows(server, rubric)
        assert row["score"] == pytest.approx(EXPECTED / 10) and "logprob_score" in row["flags"]


@pytest.mark.parametrize("refused", ["logprobs", "top_logprobs"])
def test_an_endpoint_that_refuses_them_is_asked_without(refused: str) -> None:
    def handler(call: Call) -> Answer:
        if refused in call.body:
            return error(400, "unsupported_parameter", f"Unsupported parameter: '{refused}'", refused)
        return answering({**choice(), "logprobs": None})

    with ScriptedServer(handler) as server:
        found = rows(server, ["coherence", "fluency"])
        assert [row["score"] for row in found] == [4, 4] and all("text_score" in row["flags"] for row in found)
        assert server.count == 3 and server.repeats == 0


def test_a_replay_gives_the_same(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with ScriptedServer(lambda call: answering(choice())) as server:
        [first] = rows(server, store=store)
        [again] = rows(server, store=store)
        assert server.count == 1 and again["score"] == first["score"] and again["flags"] == first["flags"]
        [plain] = rows(server, asked=judge(server, logprobs=False), store=store)
        assert server.count == 2 and plain["score"] == 4, "whoever asks without them has answers of his own"


def test_a_replay_of_a_text_score_says_so_again(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with ScriptedServer(lambda call: answering(NOT_CERTAIN["none given"])) as server:
        assert ["text_score" in rows(server, store=store)[0]["flags"] for _ in range(2)] == [True, True]
        assert server.count == 1


@pytest.mark.parametrize("asked", [True, False])
def test_a_judge_cannot_bring_probabilities_of_its_own(asked: bool) -> None:
    smuggled = json.dumps({"findings": "plain", "score": 1, PROBABILITIES: {"5": 1.0}})
    with ScriptedServer(lambda call: reply(smuggled)) as server:
        [row] = rows(server, asked=judge(server, logprobs=asked))
        assert row["score"] == 1 and "logprob_score" not in row["flags"]


@pytest.mark.parametrize("kept", [{}, {"6": 1.0}, {"4": 0.0}, {"4": 2.0}, {"4": "1"}, {"4": math.nan}, [1], 4, "4"])
def test_what_is_kept_in_another_shape_is_no_answer(kept: Any) -> None:
    with pytest.raises(ReplyError, match="probabilities"):
        RateRubric("kind", "Is it kind?", "Yes.").read({"findings": "x", "score": 4, PROBABILITIES: kept})


def test_the_ends_of_the_scale_are_never_left() -> None:
    task = RateRubric("kind", "Is it kind?", "Yes.")
    for chance in (0.1, 0.3, 1 / 3, 0.7, 1e-12):
        assert task.read({"findings": "x", "score": 5, PROBABILITIES: {"5": chance}}).value == 5


def test_a_panel_takes_expectations_like_other_numbers() -> None:
    with ScriptedServer(lambda call: answering(choice())) as server:
        one, other = judge(server), judge(server, logprobs=False)
        panel = jm.Panel([one, jm.ChatJudge("b", base_url=server.url)], rule="mean")
        found = {row["judge"]: row["score"] for row in rows(server, asked=panel)}
        assert found["panel"] == pytest.approx((EXPECTED + 4) / 2) and other.reply_key != one.reply_key


def test_a_majority_finds_none_among_expectations() -> None:
    with ScriptedServer(lambda call: answering(choice())) as server:
        panel = jm.Panel([judge(server), jm.ChatJudge("b", base_url=server.url)], rule="majority")
        found = {row["judge"]: row for row in rows(server, asked=panel)}
        assert found["panel"]["status"] == "undefined" and "between the levels" in found["panel"]["reason"]


def test_the_option_is_checked() -> None:
    with pytest.raises(InputError, match="logprobs must be True or False"):
        jm.ChatJudge("m", logprobs=1)  # type: ignore[arg-type]


def test_a_real_server_gives_expectations(local_model_url: str) -> None:
    # A small model may ramble until its reply is cut off; some of these draws end before.
    short = jm.rubric("Is it short? Write two words as findings.", name="short")
    drawn = [
        jm.ChatJudge(
            MODEL, name=f"{seed}", base_url=local_model_url, logprobs=True, max_tokens=60, temperature=0.8, seed=seed
        )
        for seed in (5, 2, 1)
    ]
    found = jm.evaluate([{"id": "1", "answer": "It is old."}], short, drawn, store=None, progress=False).scores
    ok = found[found["status"] == "ok"]
    assert len(ok) > 0, found["error"].tolist()
    assert ok["score"].between(1, 5).all() and all("logprob_score" in flags for flags in ok["flags"])
    assert (ok["score"] % 1 != 0).any()
