"""A variant: what writes answers, under a name, as a frozen configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

from jurimetrics.cells import clean_text, show
from jurimetrics.engine.functions import Function
from jurimetrics.errors import InputError
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.secret import Redactor
from jurimetrics.prompts import Prompt
from jurimetrics.records import Record
from jurimetrics.text import is_blank

_NOT_SET = {"model", "name", "logprobs", "endpoint", "reply_key"}
CHAT_SETTINGS = tuple(sorted(each.name for each in fields(ChatJudge) if each.name not in _NOT_SET))
"""What can be set of a model: the options of `ChatJudge` that have to do with writing."""
FUNCTION_SETTINGS = ("family", "max_concurrency", "timeout")
_OF_THE_MODEL = (
    "temperature",
    "seed",
    "max_tokens",
    "max_input_tokens",
    "extra_body",
    "api_version",
    "price",
    "price_as",
)
_MISTAKEN = re.compile(r"^judge '.*?': ")


@dataclass(frozen=True, init=False, repr=False)
class Variant:
    """A system that writes answers: a prompt, the model that it is sent to, and settings; or a function of yours.

    Parameters
    ----------
    name : one line of text, unique among the variants; it stands in the `variant` of each answer.
    prompt : a `Prompt`, or the text of one (which is then called as the variant is); None for a function.
    model : the name of a chat model at an OpenAI-compatible endpoint; or a function `answer(record)`, sync or async.
    settings : of a model the options of `ChatJudge`: `base_url`, `temperature` (default 0), `max_tokens`, `seed`,
        `api_key_env`, `price`, `price_as`, `family`, `timeout`, `max_input_tokens`, `extra_body`, ...; of a function
        `max_concurrency` (calls at once), `timeout` (seconds for one; what runs in a thread then goes on unseen) and
        `family` (whose model is behind it).

    A function is given the record and returns the answer as a text; or a dictionary (`answer`, and as far as known
    `contexts` that it retrieved, `prompt_tokens`, `completion_tokens`, `cost_usd`, `latency_s`, `model`, in any of the
    spellings of `load_records`; other keys become metadata); or a `Record`. A sync one runs in a thread of its own. It
    sees the context variables of whoever calls `generate`, so a trace that is open there goes on in it; tracing is left
    to it. What it raises, None and blank text are failures of that answer.

    `writer` is the configured `ChatJudge` or the function with its limits.

    Raises
    ------
    InputError : an unknown setting, a value that cannot be used, a prompt where a function is, none where a model is.

    Examples
    --------
    >>> variant = Variant("short", "In one sentence: {question}", "gpt-4.1-mini", max_tokens=200)
    >>> variant
    Variant('short', prompt 'short', model 'gpt-4.1-mini' at https://api.openai.com/v1)
    >>> Variant("bot", None, lambda record: f"You asked: {record.question}").written_by()["kind"]
    'callable'
    """

    name: str
    prompt: Prompt | None
    writer: ChatJudge | Function
    family: str | None = field(compare=False)

    def __init__(
        self, name: str, prompt: Prompt | str | None, model: str | Callable[[Record], Any], **settings: Any
    ) -> None:
        _check_name(name)
        if isinstance(model, str):
            made = _prompt(name, prompt)
            writer: ChatJudge | Function = _chat(name, model, settings)
        elif callable(model) and not isinstance(model, type):
            if prompt is not None:
                raise InputError(f"variant {name!r}: a function is given the record alone; its prompt must be None")
            made, writer = None, _function(name, model, settings)
        else:
            raise InputError(f"variant {name!r}: model must be the name of a model or a function, not {show(model)}")
        held = {"name": name, "prompt": made, "writer": writer, "family": settings.get("family")}
        for key, value in held.items():
            object.__setattr__(self, key, value)

    @classmethod
    def grid(
        cls, prompts: Sequence[Prompt] | Mapping[str, str], models: Sequence[str | Mapping[str, Any]], **settings: Any
    ) -> list[Variant]:
        """Every prompt with every model, named "prompt/model", prompt by prompt.

        `prompts` are prompts, or texts by name. A model is its name, or a dictionary with `model`, perhaps a `name` of
        its own, and settings that go before the shared ones.

        >>> models = ["gpt-4.1", {"model": "gpt-4.1-mini", "name": "mini", "temperature": 0.7}]
        >>> [variant.name for variant in Variant.grid({"short": "{question}?", "long": "{question}!"}, models)]
        ['short/gpt-4.1', 'short/mini', 'long/gpt-4.1', 'long/mini']
        """
        given = [_prompt(name, text) for name, text in prompts.items()] if isinstance(prompts, Mapping) else prompts
        several = isinstance(given, Iterable) and not isinstance(given, str)
        given = list(given) if several else []
        if not several or not all(isinstance(prompt, Prompt) for prompt in given):
            raise InputError("prompts: expected a list of Prompt, or texts by name")
        if not isinstance(models, Iterable) or isinstance(models, str | Mapping):
            models = [models]
        made = [
            cls(f"{prompt.name}/{name}", prompt, model, **{**settings, **own})
            for prompt, (name, model, own) in product(given, [_model(model) for model in models])
        ]
        check_variants(made)
        return made

    def check(self) -> None:
        """Raise `InputError` where the key is not in the environment or `price_as` not in the price list.

        >>> Variant("a", "{question}", "m", base_url="http://127.0.0.1:1/v1").check()
        """
        if isinstance(self.writer, ChatJudge):
            with_name(self.name, self.writer.check)

    def written_by(self) -> dict[str, Any]:
        """What writes this variant's answers, JSON-able and without secrets; see `Answers.written_by`.

        >>> Variant("a", "{question}", "m", base_url="http://127.0.0.1:1/v1").written_by()["settings"]["temperature"]
        0.0
        """
        prompt, writer = self.prompt, self.writer
        found: dict[str, Any] = {
            "kind": "callable",
            "prompt": None if prompt is None else prompt.name,
            "prompt_version": None if prompt is None else prompt.version,
            "system": "" if prompt is None else prompt.system,
            "user": "" if prompt is None else prompt.user,
            "variables": [] if prompt is None else list(prompt.places),
            "tags": [] if prompt is None else list(prompt.tags),
            "description": "" if prompt is None else prompt.description,
            "model": None,
            "address": None,
            "family": self.family,
        }
        if isinstance(writer, Function):
            limits = {"max_concurrency": writer.max_concurrency, "timeout": writer.timeout}
            return found | {"settings": {"function": _named(writer.function), **limits}}
        told = writer.settings()
        found |= {"kind": "chat", "model": writer.model, "address": writer.endpoint.address}
        found["settings"] = {key: told[key] for key in _OF_THE_MODEL if told[key] not in (None, {})}
        redactor = Redactor(writer.endpoint.secrets())
        plain: dict[str, Any] = json.loads(redactor.redact(json.dumps(found)))
        return plain

    def __repr__(self) -> str:
        if isinstance(self.writer, Function):
            return f"Variant({self.name!r}, function {_named(self.writer.function)})"
        prompt = "" if self.prompt is None else f"prompt {self.prompt.name!r}, "
        return f"Variant({self.name!r}, {prompt}model {self.writer.model!r} at {self.writer.endpoint.address})"


Variants = Sequence[Variant | Callable[[Record], Any]] | Variant | Callable[[Record], Any]
"""What `generate` takes as variants."""


def check_variants(variants: Any) -> list[Variant]:
    """One variant or several as a list; a plain function becomes the variant of its name. Raises `InputError` for anything
    else, none, and two of one name.

    >>> check_variants([])
    Traceback (most recent call last):
    jurimetrics.errors.InputError: variants: none given
    """
    given = [variants] if isinstance(variants, Variant) or callable(variants) else variants
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"variants: expected a list of Variant, found {type(given).__name__}")
    found = [_of_function(one) if callable(one) and not isinstance(one, Variant | type) else one for one in given]
    for one in found:
        if not isinstance(one, Variant):
            raise InputError(f"variants: expected a list of Variant, found {type(one).__name__} in it")
    if not found:
        raise InputError("variants: none given")
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"variants: two are called {twice!r}; answers could not be told apart")
    return found


def _of_function(function: Callable[[Record], Any]) -> Variant:
    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise InputError('variants: a function without a name; give it one: Variant("name", None, function)')
    return Variant(name, None, function)


def with_name(name: str, made: Callable[[], Any]) -> Any:
    """What `made` gives; its `InputError`, which speaks of a judge, names the variant instead."""
    try:
        return made()
    except InputError as error:
        raise InputError(f"variant {name!r}: {_MISTAKEN.sub('', str(error))}") from None


def _check_name(name: Any) -> None:
    plain = isinstance(name, str) and not is_blank(name) and name == name.strip() == clean_text(name)
    if not plain or len(name.splitlines()) > 1:
        raise InputError(f"a variant's name must be one line of text without spaces around it, not {show(name)}")


def _prompt(name: str, prompt: Any) -> Prompt:
    if isinstance(prompt, str):
        return with_name(name, lambda: Prompt(name=name, user=prompt))  # type: ignore[no-any-return]
    if not isinstance(prompt, Prompt):
        raise InputError(f"variant {name!r}: a model needs a Prompt or the text of one, found {show(prompt)}")
    return prompt


def _chat(name: str, model: str, settings: Mapping[str, Any]) -> ChatJudge:
    _check_known(name, settings, CHAT_SETTINGS, "a model")
    return with_name(name, lambda: ChatJudge(model, **settings))  # type: ignore[no-any-return]


def _function(name: str, function: Callable[[Record], Any], settings: Mapping[str, Any]) -> Function:
    _check_known(name, settings, FUNCTION_SETTINGS, "a function")
    most, seconds = settings.get("max_concurrency"), settings.get("timeout")
    if most is not None and (type(most) is not int or most < 1):
        raise InputError(f"variant {name!r}: max_concurrency must be an integer, 1 or more, or None")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0):
        raise InputError(f"variant {name!r}: timeout must be a number of seconds above 0, or None")
    family = settings.get("family")
    if family is not None and (not isinstance(family, str) or is_blank(family)):
        raise InputError(f"variant {name!r}: family must be a text that is not blank, or None")
    return Function(name, function, most, seconds)


def _check_known(name: str, settings: Mapping[str, Any], known: Sequence[str], of: str) -> None:
    if strange := [key for key in settings if key not in known]:
        # The value is not shown: it may be a key.
        raise InputError(f"variant {name!r}: {strange[0]!r} is no setting of {of}; settings: {', '.join(known)}")


def _model(given: Any) -> tuple[str, str, dict[str, Any]]:
    """A model's name in the grid, its own name, and its own settings."""
    if isinstance(given, str):
        return given, given, {}
    if not isinstance(given, Mapping) or not isinstance(given.get("model"), str):
        raise InputError('models: expected names, or dictionaries with "model", perhaps "name", and settings')
    own = {str(key): value for key, value in given.items() if key not in ("model", "name")}
    return str(given.get("name") or given["model"]), given["model"], own


def _named(function: Callable[..., Any]) -> str:
    inner = getattr(function, "func", function)  # of functools.partial
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"
