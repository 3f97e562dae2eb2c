"""Write an answer: what a variant's model is asked, in the words of its prompt and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jurimetrics.errors import ReplyError
from jurimetrics.tasks.task import DoesNotFit, Message, Rule, Split, Vote
from jurimetrics.text import estimate_tokens, is_blank

_THOUGHT = re.compile(r"\s*<(think|thinking)>(?:.*?</\1>|.*\Z)", re.IGNORECASE | re.DOTALL)
# Its opening stood in the prompt. One behind a space, a quotation mark or a bracket is spoken of, and ends nothing.
_LEFT_OPEN = re.compile(
    r"(?:(?!<think(?:ing)?>).)*?(?:\n[ \t]*|(?<![ \t`'\"(\[\u2018\u201c]))</think(?:ing)?>", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True, init=False)
class WriteAnswer:
    r"""Ask a model for an answer, with chat messages (role and content) that are sent as they are.

    The reply is any text that is not blank; there is no schema, and nothing is added when it is asked for again: what
    comes back answers these messages alone. A block of thinking before the answer (`<think>...</think>`, as servers
    without a parser for it send it) is no part of the answer.

    >>> task = WriteAnswer([{"role": "user", "content": "Who built the mill?"}])
    >>> task.read("<think>Easy.</think>\n\nThe monks.")
    'The monks.'
    """

    turns: tuple[tuple[str, str], ...]

    kind: ClassVar[str] = "write"
    version: ClassVar[str] = "1"
    shared: ClassVar[bool] = False

    def __init__(self, messages: Iterable[Message]) -> None:
        object.__setattr__(self, "turns", tuple((message["role"], message["content"]) for message in messages))

    @property
    def data(self) -> Mapping[str, Any]:
        """The messages, JSON-able."""
        return {"messages": [list(turn) for turn in self.turns]}

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """The messages as given; there is no reason whose language could be asked for.

        >>> WriteAnswer([{"role": "user", "content": "Who?"}]).messages()
        [{'role': 'user', 'content': 'Who?'}]
        """
        return [{"role": role, "content": content} for role, content in self.turns]

    @property
    def schema(self) -> dict[str, Any]:
        """None: the reply is a text."""
        return {}

    def read(self, reply: Any) -> str:
        """The answer, without a block of thinking before it. Raises `ReplyError` (`unparsed`) where none is left."""
        if not isinstance(reply, str) or is_blank(reply):
            raise ReplyError("unparsed", "the reply is blank")
        thought = _THOUGHT.match(reply) or _LEFT_OPEN.match(reply)
        if thought is None:
            return reply
        answer = reply[thought.end() :].strip()
        if is_blank(answer):
            raise ReplyError("unparsed", "the reply holds nothing but thinking")
        return answer

    def doubts(self, answer: str) -> tuple[int, ...]:
        """Nothing: a text is taken as it is."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """The new reply: a text is asked for whole."""
        return reply

    def vote(self, answers: Mapping[str, str | None], rule: Rule) -> Vote[str]:
        """Never: of several texts none is the majority's. Raises `TypeError`."""
        raise TypeError("written answers cannot be voted on")

    def split(self, max_tokens: int | None = None) -> Split:
        """The task itself, whole. Raises `DoesNotFit` where the messages take more than `max_tokens` by bytes / 4.

        >>> WriteAnswer([{"role": "user", "content": "x" * 400}]).split(50)
        Traceback (most recent call last):
        jurimetrics.tasks.task.DoesNotFit: the prompt takes about 100 tokens, 50 are allowed (max_input_tokens)
        """
        taken = sum(estimate_tokens(content) for _, content in self.turns)
        if max_tokens is not None and taken > max_tokens:
            raise DoesNotFit(f"the prompt takes about {taken:,} tokens, {max_tokens:,} are allowed (max_input_tokens)")
        return Split((self,), lambda answers: answers[0])
