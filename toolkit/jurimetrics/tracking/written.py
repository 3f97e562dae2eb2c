"""What wrote the answers of a variant, in its run: the prompt as files and in the registry, model and settings as params."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jurimetrics.errors import InputError
from jurimetrics.prompts import Prompt
from jurimetrics.tracking.names import encode
from jurimetrics.tracking.registry import Place, link_prompts, registered
from jurimetrics.tracking.sink import Sink
from jurimetrics.tracking.store import Store, patiently

FOLDER = "answer_prompt"
_OWN = ("variant", "prompt", "prompt_version", "model", "address", "family", "answer_model", "judges", "panel", "repeats",
        "reason_language", "data_digest", "jurimetrics")  # fmt: skip
_LONGEST_REASON = 500


def writer_of(settings: Mapping[str, Any], variant: str) -> Mapping[str, Any]:
    """What wrote the answers of `variant`, as `Answers.written_by` says it; {} where nothing is said.

    >>> writer_of({"written_by": {"a": {"model": "m"}}}, "a"), writer_of({}, "a")
    ({'model': 'm'}, {})
    """
    said = settings.get("written_by")
    found = said.get(variant) if isinstance(said, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def writer_params(settings: Mapping[str, Any], variant: str) -> dict[str, str]:
    """The params that say what wrote the answers: prompt, its version, model, then every setting that was declared.

    Address and family are named where they differ between the variants. A setting that has the name of another param is
    called `setting.<name>`.

    >>> by = {"prompt": "short", "prompt_version": "0a", "model": "m", "settings": {"temperature": 0.7, "seed": None}}
    >>> writer_params({"written_by": {"a": by}}, "a")
    {'prompt': 'short', 'prompt_version': '0a', 'model': 'm', 'temperature': '0.7'}
    """
    by = writer_of(settings, variant)
    others = settings.get("written_by")
    variants = list(others) if isinstance(others, Mapping) else []
    found = {name: by.get(name) for name in ("prompt", "prompt_version", "model")}
    for name in ("address", "family"):
        if len({json.dumps(writer_of(settings, each).get(name), default=str) for each in variants}) > 1:
            found[name] = by.get(name)
    declared = by.get("settings")
    for name, value in declared.items() if isinstance(declared, Mapping) else ():
        found[f"setting.{encode(str(name))}" if name in _OWN else encode(str(name))] = value
    return {name: _shown(value) for name, value in found.items() if value not in (None, "", {}, [])}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def write_prompt_files(settings: Mapping[str, Any], variant: str, folder: Path) -> None:
    """Write the messages of the prompt of `variant` whole and byte for byte into `folder/answer_prompt`."""
    by = writer_of(settings, variant)
    for role in ("system", "user"):
        text = by.get(role)
        if isinstance(text, str) and text:
            (folder / FOLDER).mkdir(parents=True, exist_ok=True)
            (folder / FOLDER / f"{role}.txt").write_bytes(text.encode("utf-8", "surrogatepass"))


def register_writers(store: Store, settings: Mapping[str, Any], variants: Iterable[str]) -> dict[str, Place]:
    """variant -> where its prompt is registered, or why it is not; a variant without a prompt is not in it.

    Whatever the registry does, this raises nothing: a run is not lost for it.
    """
    prompts: dict[str, Prompt] = {}
    places: dict[str, Place] = {}
    for variant in variants:
        by = writer_of(settings, variant)
        if not by.get("user"):
            continue
        try:
            prompts[variant] = _prompt(by, variant)
        except (InputError, TypeError) as error:
            places[variant] = Place("", f"the settings hold no whole prompt: {error}")
    made = registered(store, {(prompt.name, prompt.version): prompt for prompt in prompts.values()})
    return places | {variant: made[prompt.name, prompt.version] for variant, prompt in prompts.items()}


def _prompt(by: Mapping[str, Any], variant: str) -> Prompt:
    prompt = Prompt(
        by.get("prompt") or variant,
        by["user"],
        by.get("system") or "",
        tags=tuple(by.get("tags") or ()),
        description=by.get("description") or "",
        variables=by.get("variables"),
    )
    if by.get("prompt_version", prompt.version) != prompt.version:
        raise InputError(f"their text has the version {prompt.version}, they say {by['prompt_version']}")
    return prompt


def link_writer(sink: Sink, run_id: str, place: Place) -> None:
    """Link the prompt to the run; where it has no place in the registry, a tag of the run says why."""
    tags = {"jurimetrics.prompt_not_registered": place.reason}
    if place.uri:
        lacking = link_prompts(sink.store, run_id, [place.uri])
        tags = {"jurimetrics.prompt": place.uri, "jurimetrics.prompt_not_linked": lacking}
    for name, text in tags.items():
        if text:
            patiently(sink.client.set_tag, run_id, name, text[:_LONGEST_REASON])
