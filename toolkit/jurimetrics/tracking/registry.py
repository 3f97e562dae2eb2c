"""Prompts in MLflow's prompt registry: written once per content, read back as they were, linked to the runs that used them.

Always through a client whose registry is that of the store: MLflow's own functions for this also ask for the caller's
active experiment, tag prompts in a thread of their own, and look for the run in whatever store the process has set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from jurimetrics.cells import show
from jurimetrics.errors import InputError
from jurimetrics.prompts import Prompt
from jurimetrics.tracking.names import decode, prompt_name
from jurimetrics.tracking.quiet import quiet_mlflow
from jurimetrics.tracking.store import Store, find_store, open_store, patiently, troubles

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import PromptVersion

SCHEME = "prompts:/"
VERSION_TAG = "jurimetrics.version"
_NAME_TAG, _TAGS_TAG = "jurimetrics.name", "jurimetrics.tags"
_VARIABLES_TAG, _DESCRIPTION_TAG = "jurimetrics.variables", "jurimetrics.description"
_LINKED_TAG = "mlflow.linkedPrompts"  # of a run; its page shows what is listed here
_LONGEST_DESCRIPTION = 1000  # of what MLflow shows beside a version; the tag holds it whole
_MOST_RUNS = 2000  # that a version lists; its tags hold 100,000 characters
_ONE_AT_A_TIME = Lock()  # looking for a content and adding it are two steps


def register_prompts(prompts: Iterable[Prompt] | Prompt) -> dict[str, str]:
    """Put prompts into the registry of the store that `log_run` writes to: name -> `prompts:/<name>/<version>`.

    A content (texts and places) that the registry holds already under this name, as the newest version or an older one,
    gets no new version; its tags and description become those given. The text is kept character by character, in its own
    spelling of the places; with a system message it is a chat prompt. Names are made legal by a fixed rule that
    `load_registered` reads backwards. The caller's MLflow state is left as found.

    Raises `InputError` for what is no prompt, for two contents of one name, and where MLflow cannot be reached or refuses.

    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     uri = f"sqlite:///{Path(folder).as_posix()}/mlflow.db"
    ...     with patch.dict(os.environ, MLFLOW_TRACKING_URI=uri):
    ...         for text in ("Q: {question}", "Question: {question}", "Q: {question}"):
    ...             print(register_prompts([Prompt("short", text)]))
    {'short': 'prompts:/short/1'}
    {'short': 'prompts:/short/2'}
    {'short': 'prompts:/short/1'}
    """
    chosen: dict[str, Prompt] = {}
    for prompt in prompts if isinstance(prompts, Iterable) else [prompts]:
        if not isinstance(prompt, Prompt):
            raise InputError(f"prompts: expected a list of Prompt, found {type(prompt).__name__}")
        if chosen.setdefault(prompt.name, prompt).version != prompt.version:
            raise InputError(f"prompts: two of the name {prompt.name!r} with different texts")
    with _registry(find_store()) as client:
        return {name: _register(client, prompt, described=True) for name, prompt in chosen.items()}


def load_registered(uri: str) -> Prompt:
    """The prompt at `prompts:/<name>/<version>`, `prompts:/<name>@<alias>`, or the newest at `prompts:/<name>`.

    The name may be the prompt's own or as MLflow shows it. What `register_prompts` wrote comes back equal. A prompt that
    somebody else registered is read by the same rule as a file: a text is the user message, a chat may have one system
    message before one user message, and every `{identifier}` is a place.

    Raises `InputError` where there is no such prompt, for other chats and Jinja2 blocks, which are not filled here, and
    where MLflow cannot be reached or refuses.
    """
    name, version, alias = _parts(uri)
    store = find_store()
    if store.uri.startswith("sqlite:") and not Path(store.uri.removeprefix("sqlite:///")).is_file():
        raise InputError(f"{uri}: no such prompt, as there is no MLflow store {store} yet")  # to look must not make one
    with _registry(store) as client:
        for legal in dict.fromkeys([name, prompt_name(name)]):
            if set(legal) & set("/:") or not legal.strip("."):
                continue  # MLflow takes no such name
            found = _found(client, legal, version, alias)
            if found is not None:
                return _prompt(found, uri)
    raise InputError(f"{uri}: no such prompt in MLflow at {store}")


class Place(NamedTuple):
    """Where a prompt is registered, or why it is not; one of the two is ""."""

    uri: str
    reason: str


def registered(store: Store, prompts: Mapping[tuple[str, str], Prompt]) -> dict[tuple[str, str], Place]:
    """Register prompts beside a log of runs: whatever the registry does, each gets a place or a reason.

    A registry that fails, other than by refusing one prompt, is not asked again.
    """
    found: dict[tuple[str, str], Place] = {}
    broken = ""
    for key, prompt in prompts.items():
        if broken:
            found[key] = Place("", broken)
            continue
        found[key], broken = _attempt(store, prompt)
    return found


def _attempt(store: Store, prompt: Prompt) -> tuple[Place, str]:
    from mlflow.exceptions import MlflowException

    try:
        return Place(_register(_client(store), prompt, described=False), ""), ""
    except MlflowException as error:
        one = error.error_code in ("INVALID_PARAMETER_VALUE", "BAD_REQUEST")
        return Place("", _first_line(error)), "" if one else _first_line(error)
    except InputError as error:
        return Place("", str(error)), ""
    except Exception as error:  # noqa: BLE001 - whatever a registry raises, the run is not lost for it
        return Place("", _first_line(error)), _first_line(error)


def link_prompts(store: Store, run_id: str, uris: Iterable[str]) -> str:
    """Link prompts to a run, so that its page, its experiment's page of prompts and MLflow's searches name them.

    Gives "", or the reason why a link is lacking: a run is not lost for it.
    """
    try:
        client = _client(store)
        run = patiently(client.get_run, run_id)
        pairs = [(name, version) for name, version, _ in map(_parts, uris)]
        before = json.loads(run.data.tags.get(_LINKED_TAG) or "[]")
        entries = [{"name": name, "version": version} for name, version in pairs]
        linked = [*before, *(entry for entry in entries if entry not in before)]
        patiently(client.set_tag, run_id, _LINKED_TAG, json.dumps(linked))
        with _ONE_AT_A_TIME:
            for name, version in pairs:
                _name_users(client, name, version or "", run_id, run.info.experiment_id)
    except Exception as error:  # noqa: BLE001 - see above
        return _first_line(error)
    return ""


def _name_users(client: MlflowClient, name: str, version: str, run_id: str, experiment_id: str) -> None:
    """Name the run at the version of the prompt, and the experiment at the prompt, as MLflow's searches read them."""
    from mlflow.prompt.constants import PROMPT_ASSOCIATED_RUN_IDS_TAG_KEY, PROMPT_EXPERIMENT_IDS_TAG_KEY

    found = patiently(client.get_prompt_version, name, version)
    runs = _added(found.tags.get(PROMPT_ASSOCIATED_RUN_IDS_TAG_KEY) if found else None, run_id)
    key = PROMPT_ASSOCIATED_RUN_IDS_TAG_KEY
    patiently(client.set_prompt_version_tag, name, version, key, ",".join(runs[-_MOST_RUNS:]))
    prompt = patiently(client.get_prompt, name)
    before = prompt.tags.get(PROMPT_EXPERIMENT_IDS_TAG_KEY) if prompt else None
    experiments = _added(before, experiment_id)
    # Commas on both sides, so that a search for 1 does not find 10.
    patiently(client.set_prompt_tag, name, PROMPT_EXPERIMENT_IDS_TAG_KEY, f",{','.join(experiments)},")


def _added(listed: str | None, one: str) -> list[str]:
    return list(dict.fromkeys([*filter(None, (listed or "").split(",")), one]))


@contextmanager
def _registry(store: Store) -> Iterator[MlflowClient]:
    with quiet_mlflow():
        try:
            open_store(store)
            yield _client(store)
        except troubles() as error:
            raise InputError(f"MLflow at {store}: {_first_line(error)}") from error


def _client(store: Store) -> MlflowClient:
    from mlflow import MlflowClient

    # The page of a run looks for its prompts in the registry of its own store, whatever registry the process has set.
    return MlflowClient(tracking_uri=store.uri, registry_uri=store.uri)


def _register(client: MlflowClient, prompt: Prompt, *, described: bool) -> str:
    """The URI of the version that holds this content, made if there is none; `described`: with its tags and description."""
    name = prompt_name(prompt.name)
    with _ONE_AT_A_TIME:
        _make(client, name)
        for version in _versions(client, name):
            if version.tags.get(VERSION_TAG) == prompt.version and _texts(version) == (prompt.system, prompt.user):
                if described:
                    _describe(client, version, prompt)
                return f"{SCHEME}{name}/{version.version}"
        made = patiently(
            client.create_prompt_version,
            name,
            _template(prompt),
            description=prompt.description[:_LONGEST_DESCRIPTION] or None,
            tags=_tags(prompt),
        )
    return f"{SCHEME}{name}/{made.version}"


def _make(client: MlflowClient, name: str) -> None:
    from mlflow.exceptions import MlflowException

    if patiently(client.get_prompt, name) is not None:
        return
    try:
        patiently(client.create_prompt, name)
    except MlflowException as error:
        if patiently(client.get_prompt, name) is not None:
            return  # another process was first
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        raise InputError(f"MLflow has a registered model called {name!r}, so no prompt can be called so") from None


def _versions(client: MlflowClient, name: str) -> Iterator[PromptVersion]:
    """All versions of a prompt, the newest first."""
    token: str | None = None
    while True:
        search: Callable[..., Any] = client.search_prompt_versions
        page = patiently(search, name, max_results=100, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _template(prompt: Prompt) -> str | list[dict[str, Any]]:
    if not prompt.system:
        return prompt.user
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]


def _tags(prompt: Prompt) -> dict[str, str]:
    return {
        VERSION_TAG: prompt.version,
        _NAME_TAG: prompt.name,
        _VARIABLES_TAG: json.dumps(prompt.places),
        _TAGS_TAG: json.dumps(prompt.tags),
        _DESCRIPTION_TAG: prompt.description,
    }


def _describe(client: MlflowClient, version: PromptVersion, prompt: Prompt) -> None:
    for key, value in _tags(prompt).items():
        if version.tags.get(key) != value:
            patiently(client.set_prompt_version_tag, version.name, version.version, key, value)


def _texts(version: PromptVersion) -> tuple[str, str] | None:
    """System and user message of a version; None where it is another kind of chat."""
    if isinstance(version.template, str):
        return "", version.template
    texts = {message.get("role"): message.get("content") for message in version.template}
    roles = [message.get("role") for message in version.template]
    if roles not in (["user"], ["system", "user"]) or not all(isinstance(text, str) for text in texts.values()):
        return None
    return str(texts.get("system", "")), str(texts["user"])


def _prompt(version: PromptVersion, uri: str) -> Prompt:
    texts, tags = _texts(version), version.tags
    if texts is None:
        raise InputError(f"{uri}: expected a text, or a system and a user message; found another chat")
    ours = VERSION_TAG in tags
    if not ours and any(re.search(r"\{%.*?%\}", text, re.DOTALL) for text in texts):
        raise InputError(f"{uri}: a Jinja2 template, whose {{% %}} blocks are not filled here")
    try:
        return Prompt(
            tags.get(_NAME_TAG) or decode(version.name) or version.name,
            texts[1],
            texts[0],
            tags=_names(tags, _TAGS_TAG) or (),
            description=tags.get(_DESCRIPTION_TAG, "") if ours else version.commit_message or "",
            variables=_names(tags, _VARIABLES_TAG),
        )
    except InputError as error:
        raise InputError(f"{uri}: {error}") from None


def _names(tags: Mapping[str, str], key: str) -> tuple[Any, ...] | None:
    """The names that a tag lists; None where it is not there. Raises `InputError` for anything else in it."""
    text = tags.get(key)
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise InputError(f"the tag {key}: expected a list of names as JSON, found {show(text)}")
    return tuple(found)


def _found(client: MlflowClient, name: str, version: str | None, alias: str) -> PromptVersion | None:
    from mlflow.exceptions import MlflowException

    ask: Callable[..., Any] = client.get_prompt_version_by_alias if version is None else client.get_prompt_version
    try:
        found: PromptVersion | None = patiently(ask, name, alias if version is None else version)
        return found
    except MlflowException as error:
        # A missing alias is an invalid value to a database, a missing resource to a server.
        missing = "RESOURCE_DOES_NOT_EXIST", "NOT_FOUND", "INVALID_PARAMETER_VALUE"
        if error.error_code in missing and re.search("not found", str(error), re.IGNORECASE):
            return None
        raise


def _parts(uri: str) -> tuple[str, str | None, str]:
    """Name, version (None: by alias) and alias of a URI."""
    rest = uri.removeprefix(SCHEME).removeprefix("/") if isinstance(uri, str) and uri.startswith(SCHEME) else ""
    name, at, alias = rest.rpartition("@")
    if at and name and alias and "/" not in alias:
        return name, None, alias
    name, slash, version = rest.rpartition("/")
    if slash and name and re.fullmatch(r"[0-9]+", version):
        return name, version, ""
    if not rest:
        raise InputError(
            f"expected prompts:/<name>, prompts:/<name>/<version> or prompts:/<name>@<alias>, found {uri!r}"
        )
    return rest, None, "latest"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
