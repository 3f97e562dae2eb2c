"""Prompts in MLflow: registered once per content, read back equal, linked to the runs that used them; and never at the
price of a run."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from jurimetrics.errors import InputError
from jurimetrics.frames import read_settings, write_settings
from jurimetrics.prompts import Prompt
from jurimetrics.results import Results
from jurimetrics.tracking.log import log_run
from jurimetrics.tracking.registry import load_registered, register_prompts
from jurimetrics.tracking.store import Store
from jurimetrics.variants.library import load_prompts
from mlflow import MlflowClient
from mlflow.entities import Run
from tracked import VARIANTS, make_results

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SHORT = Prompt("short", "Q: {question}\r\n", system='Reply as {"answer": "..."}', tags=("qa",))
LONG = Prompt("long answer/v2", "é {{ question }} {contexts}" + " x" * 10_000, variables=("question",))


def client_of(store: Store) -> MlflowClient:
    return MlflowClient(tracking_uri=store.uri, registry_uri=store.uri)


def written(prompt: Prompt, **others: Any) -> dict[str, Any]:
    """What generation says of a variant."""
    return {
        "kind": "chat", "prompt": prompt.name, "prompt_version": prompt.version, "system": prompt.system,
        "user": prompt.user, "variables": list(prompt.places), "tags": list(prompt.tags), "model": "gpt-4.1-mini",
        "address": "https://models.example/v1", "family": None, "settings": {"temperature": 0.2, "seed": None}, **others,
    }  # fmt: skip


def results_by(folder: Path, by: Mapping[str, Any]) -> Results:
    make_results(folder, records=3, metrics=("faithfulness",))
    write_settings(folder, {**read_settings(folder), "written_by": by})
    return Results(folder)


def logged(store: Store, results: Results, experiment: str = "tenancy") -> list[Run]:
    return [client_of(store).get_run(run_id) for run_id in log_run(results, experiment=experiment, traces=0)]


def links(run: Run) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(run.data.tags.get("mlflow.linkedPrompts", "[]"))
    return found


def test_a_run_has_its_prompt_whole_linked_and_as_params(mlflow_store: Store, tmp_path: Path) -> None:
    by = {
        "concise": written(SHORT, settings={"temperature": 0.2, "seed": None, "model": "x", "extra_body": {"b": 1, "a": 2}}),
        "thorough": written(LONG, model="o4", address="http://127.0.0.1/v1"),
    }  # fmt: skip
    first, second = logged(mlflow_store, results_by(tmp_path / "results", by))
    assert {run.info.status for run in (first, second)} == {"FINISHED"}
    wanted = {
        "variant": "concise", "prompt": "short", "prompt_version": SHORT.version, "model": "gpt-4.1-mini",
        "address": "https://models.example/v1", "temperature": "0.2", "setting.model": "x",
        "extra_body": '{"a": 2, "b": 1}',
    }  # fmt: skip
    assert {name: first.data.params.get(name) for name in wanted} == wanted
    assert (second.data.params["prompt"], second.data.params["model"]) == (LONG.name, "o4")
    assert "seed" not in first.data.params
    assert first.data.params["judges"] == "gpt-4.1-mini, claude-haiku, baseline", "judges are told apart from writers"
    client = client_of(mlflow_store)
    for run, prompt in ((first, SHORT), (second, LONG)):
        folder = Path(client.download_artifacts(run.info.run_id, "answer_prompt", str(tmp_path / run.info.run_id)))
        texts = {"user.txt": prompt.user.encode()} | ({"system.txt": prompt.system.encode()} if prompt.system else {})
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == texts
        (entry,) = links(run)
        assert run.data.tags["jurimetrics.prompt"] == f"prompts:/{entry['name']}/{entry['version']}"
        version = client.get_prompt_version(entry["name"], entry["version"])
        texts_there = version.template if isinstance(version.template, str) else version.template[-1]["content"]
        assert texts_there == prompt.user
        assert [found.uri for found in client.list_logged_prompts(run.info.run_id)] == [version.uri]
        assert load_registered(run.data.tags["jurimetrics.prompt"]) == prompt
    found = client.search_prompts(filter_string=f'experiment_id = "{first.info.experiment_id}"')
    assert sorted(prompt.name for prompt in found) == ["long_u20_answer_u2f_v2", "short"]
    assert not [name for name in first.data.tags if name.startswith("jurimetrics.prompt_not")]


def test_the_link_is_what_mlflow_itself_would_write(mlflow_store: Store, tmp_path: Path) -> None:
    import mlflow

    run, _ = logged(mlflow_store, results_by(tmp_path / "results", {"concise": written(SHORT)}))
    client = client_of(mlflow_store)
    other = client.create_run(run.info.experiment_id)
    mlflow.set_tracking_uri(mlflow_store.uri)  # else MLflow's own function looks for the run elsewhere
    try:
        version = client.get_prompt_version("short", "1")
        client.link_prompt_version_to_run(other.info.run_id, version)
        client.link_prompt_version_to_run(run.info.run_id, version)
    finally:
        mlflow.set_tracking_uri(None)
        os.environ.pop("MLFLOW_TRACKING_URI", None)
    assert links(client.get_run(other.info.run_id)) == links(run) == [{"name": "short", "version": "1"}]
    assert links(client.get_run(run.info.run_id)) == links(run), "linked already"


def test_settings_without_prompts_change_nothing(mlflow_store: Store, tmp_path: Path) -> None:
    by: dict[str, Any] = {
        "concise": {"kind": "callable", "prompt": None, "user": "", "model": "mine", "settings": {}},
        "thorough": None,
    }
    first, second = logged(mlflow_store, results_by(tmp_path / "results", by))
    assert first.data.params["model"] == "mine"
    assert "model" not in second.data.params
    for run in (first, second):
        assert "prompt" not in run.data.params
        assert links(run) == []
        there = {found.path for found in client_of(mlflow_store).list_artifacts(run.info.run_id)}
        assert "answer_prompt" not in there
    assert not list(client_of(mlflow_store).search_prompts())


def test_one_version_per_content_whoever_logs_it_and_how_often(mlflow_store: Store, tmp_path: Path) -> None:
    changed = Prompt("short", SHORT.user + " ", system=SHORT.system)
    both = results_by(tmp_path / "both", {"concise": written(SHORT), "thorough": written(changed)})
    back = results_by(tmp_path / "back", {"concise": written(changed), "thorough": written(SHORT)})
    versions = [links(run)[0]["version"] for results in (both, both, back) for run in logged(mlflow_store, results)]
    assert versions == ["1", "2", "1", "2", "2", "1"]
    assert register_prompts([SHORT, Prompt("other", "{answer}")]) == {
        "short": "prompts:/short/1",
        "other": "prompts:/other/1",
    }
    assert len(client_of(mlflow_store).search_prompt_versions("short")) == 2
    found = client_of(mlflow_store).get_prompt_version("short", "1").tags["mlflow.prompt.associatedRunIds"]
    assert len(found.split(",")) == 3


def test_an_older_content_is_found_behind_a_hundred_newer_ones(mlflow_store: Store) -> None:
    client = client_of(mlflow_store)
    register_prompts([SHORT])
    for at in range(120):
        client.create_prompt_version("short", f"somebody's {at}", tags={"jurimetrics.version": SHORT.version})
    assert register_prompts([SHORT]) == {"short": "prompts:/short/1"}, "a tag alone is not the content"


def test_tags_and_description_belong_to_a_content_and_may_change(mlflow_store: Store) -> None:
    register_prompts([SHORT])
    other = Prompt("short", SHORT.user, system=SHORT.system, tags=("law", "qa"), description="Für alle. " * 1000)
    assert register_prompts([other]) == {"short": "prompts:/short/1"}
    assert load_registered("prompts:/short") == other


ROUND = [
    Prompt("plain", "No place at all."),
    Prompt("both", "{question} {{question}} {{ contexts }}", system="{topic} {{metadata.my topic}}"),
    Prompt("braces", '{"a": {"b": [{answer}]}} {} {{}} {% if x %}{{ x }}{% endif %} ${y}', variables=("answer",)),
    Prompt("none", "{question}", variables=()),
    Prompt("ends", "\r\n a\rb\n\u2028é e\u0301 忠 🙂 \u200b{question}\t\r\n", system="\r\n{id}\n"),
    Prompt("long", "{question}" + "y" * 20_000 + "忠" * 10_000, description="D", tags=("a, b", "c")),
    Prompt("a b", "{question}"),
    Prompt("a/b:c@d'e\"f%g", "{question}"),
    Prompt("été 忠実", "{question}", tags=("Ü",)),
    Prompt("a_u20_b", "{question}!"),
    Prompt("..", "{question}"),
    Prompt("n" * 400, "{question}"),
    Prompt("<b>p</b>; DROP TABLE x", "{question}"),
]


def test_what_was_registered_comes_back_equal(mlflow_store: Store) -> None:
    uris = register_prompts(ROUND)
    assert list(uris) == [prompt.name for prompt in ROUND]
    assert len(set(uris.values())) == len(ROUND)
    for prompt in ROUND:
        assert load_registered(uris[prompt.name]) == prompt
        assert load_prompts(uris[prompt.name]) == [prompt]
    for prompt in ROUND[:9] + ROUND[10:]:
        assert load_registered(f"prompts:/{prompt.name}/1") == prompt
    assert register_prompts(reversed(ROUND)) == uris
    assert load_prompts("prompts:/long", tag="c")[0].name == "long"


def test_by_version_by_alias_and_the_newest(mlflow_store: Store) -> None:
    newer = Prompt("short", "newer {question}")
    register_prompts([SHORT])
    register_prompts([newer])
    client_of(mlflow_store).set_prompt_alias("short", "production", 1)
    assert load_registered("prompts:/short/2") == load_registered("prompts:/short") == newer
    assert load_registered("prompts:/short@latest") == newer
    assert load_registered("prompts:/short/1") == load_registered("prompts:/short@production") == SHORT
    for lacking in (
        "prompts:/short/3",
        "prompts:/short@staging",
        "prompts:/shorter",
        "prompts:/a/b",
        "prompts:/short/x",
    ):
        with pytest.raises(InputError) as found:
            load_registered(lacking)
        assert str(found.value) == f"{lacking}: no such prompt in MLflow at {mlflow_store}"
    with pytest.raises(InputError, match="expected prompts:/<name>"):
        load_registered("short")


def test_prompts_of_others_are_read_by_the_rule_of_files(mlflow_store: Store) -> None:
    client = client_of(mlflow_store)
    chat = [{"role": "system", "content": "About {{topic}}."}, {"role": "user", "content": "{{ question }} {id}"}]
    templates: dict[str, Any] = {
        "text": "Q: {{question}}", "chat": chat, "jinja": "{% if question %}{{ question }}{% endif %}",
        "turns": [*chat, {"role": "assistant", "content": "?"}, chat[1]], "blank": "",
    }  # fmt: skip
    for name, template in templates.items():
        client.create_prompt(name)
        client.create_prompt_version(name, template, description="theirs")
    assert load_registered("prompts:/text") == Prompt("text", "Q: {{question}}", description="theirs")
    found = load_registered("prompts:/chat/1")
    assert (found.system, found.user, found.places) == (
        chat[0]["content"],
        chat[1]["content"],
        ("topic", "question", "id"),
    )
    for name, words in {
        "jinja": "a Jinja2 template, whose {% %} blocks are not filled here",
        "turns": "expected a text, or a system and a user message; found another chat",
        "blank": "user: the text of a prompt is needed, found a blank one",
    }.items():
        with pytest.raises(InputError) as refused:
            load_registered(f"prompts:/{name}")
        assert str(refused.value) == f"prompts:/{name}: {words}"


@pytest.mark.parametrize("said", ["5", "null", '"ab"', "{", '{"a": 1}', "[" * 5000, "[1]"])
@pytest.mark.parametrize("tag", ["jurimetrics.tags", "jurimetrics.variables"])
def test_tags_that_somebody_changed_are_refused_in_one_line(tag: str, said: str, mlflow_store: Store) -> None:
    uri = register_prompts(SHORT)["short"]
    client_of(mlflow_store).set_prompt_version_tag("short", "1", tag, said)
    with pytest.raises(InputError, match=f"^{uri}: .*expected a list of names") as refused:
        load_registered(uri)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("given", [None, "short", ["short"], 5])
def test_what_is_no_prompt_is_not_registered(given: Any, project: Path) -> None:
    with pytest.raises(InputError, match="prompts: expected a list of Prompt"):
        register_prompts(given)
    assert not (project / "mlruns").exists()


def test_two_contents_of_one_name_at_once_are_refused(mlflow_store: Store) -> None:
    with pytest.raises(InputError, match="two of the name 'short' with different texts"):
        register_prompts([SHORT, Prompt("short", "other")])
    assert register_prompts([SHORT, SHORT]) == {"short": "prompts:/short/1"}


def test_to_look_for_a_prompt_makes_no_store(project: Path) -> None:
    with pytest.raises(InputError, match="prompts:/short: no such prompt, as there is no MLflow store sqlite:"):
        load_prompts("prompts:/short")
    assert not (project / "mlruns").exists()


def test_a_registry_that_refuses_one_prompt_keeps_the_others(mlflow_store: Store, tmp_path: Path) -> None:
    client_of(mlflow_store).create_registered_model("short")
    by = {"concise": written(SHORT), "thorough": written(LONG)}
    first, second = logged(mlflow_store, results_by(tmp_path / "results", by))
    assert {run.info.status for run in (first, second)} == {"FINISHED"}
    assert "MLflow has a registered model called 'short'" in first.data.tags["jurimetrics.prompt_not_registered"]
    assert "jurimetrics.prompt" not in first.data.tags
    assert links(first) == []
    assert first.data.params["prompt"] == "short"
    there = {found.path for found in client_of(mlflow_store).list_artifacts(first.info.run_id, "answer_prompt")}
    assert there == {"answer_prompt/system.txt", "answer_prompt/user.txt"}
    assert links(second) == [{"name": "long_u20_answer_u2f_v2", "version": "1"}]
    with pytest.raises(InputError, match="MLflow has a registered model called 'short', so no prompt can be called so"):
        register_prompts([SHORT])


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        (written(Prompt("big", "x" * 100_001)), "exceeds max length of 100000 characters"),
        (written(SHORT, prompt_version="0" * 12), f"their text has the version {SHORT.version}, they say 000000000000"),
        (written(SHORT, user=7), "the settings hold no whole prompt: user: expected text, found 7"),
        (written(SHORT, tags=7), "the settings hold no whole prompt: 'int' object is not iterable"),
        (written(SHORT, user="cut \ud83d"), "user: half of a surrogate pair stands in the text"),
    ],
)
def test_a_prompt_that_cannot_be_registered_costs_no_run(
    by: dict[str, Any], reason: str, mlflow_store: Store, tmp_path: Path
) -> None:
    run, _ = logged(mlflow_store, results_by(tmp_path / "results", {"concise": by}))
    assert run.info.status == "FINISHED"
    assert reason in run.data.tags["jurimetrics.prompt_not_registered"]
    assert run.data.params["prompt"] == by["prompt"]


def test_a_store_without_a_registry_costs_no_run(mlflow_store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(mlflow_store.uri.removeprefix("sqlite:///"))) as database:
        for table in ("registered_model_tags", "registered_models"):
            database.execute(f"ALTER TABLE {table} RENAME TO gone_{table}")
        database.commit()
    by = {"concise": written(SHORT), "thorough": written(LONG)}
    for run in logged(mlflow_store, results_by(tmp_path / "results", by)):
        assert run.info.status == "FINISHED"
        assert "Database migration in unexpected state" in run.data.tags["jurimetrics.prompt_not_registered"]
        assert "answer_prompt" in {found.path for found in client_of(mlflow_store).list_artifacts(run.info.run_id)}


def test_a_link_that_fails_is_said_and_costs_no_run(
    mlflow_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("the registry went away\nmeanwhile")

    monkeypatch.setattr(MlflowClient, "set_prompt_version_tag", refuse)
    run, _ = logged(mlflow_store, results_by(tmp_path / "results", {"concise": written(SHORT)}))
    assert run.info.status == "FINISHED"
    assert run.data.tags["jurimetrics.prompt"] == "prompts:/short/1"
    assert run.data.tags["jurimetrics.prompt_not_linked"] == "the registry went away"


def test_long_values_are_cut_in_params_only(mlflow_store: Store, tmp_path: Path) -> None:
    by = written(Prompt("p" * 7000, "{question}"), settings={"extra_body": {"stop": "s" * 7000}, "mode/é": 1})
    results = results_by(tmp_path / "results", {"concise": by})
    run, _ = logged(mlflow_store, results)
    assert run.info.status == "FINISHED"
    assert run.data.params["prompt"].endswith("(cut at 500)")
    assert len(run.data.params["extra_body"]) == 500
    assert run.data.params["mode_u2f_é"] == "1"
    path = client_of(mlflow_store).download_artifacts(run.info.run_id, "settings.json", str(tmp_path))
    assert json.loads(Path(path).read_text(encoding="utf-8")) == results.settings
    assert load_registered(run.data.tags["jurimetrics.prompt"]).name == "p" * 7000


def test_the_users_mlflow_is_left_as_found(
    mlflow_store: Store, project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    def state() -> tuple[Any, ...]:
        active = mlflow.active_run()
        return dict(os.environ), mlflow.get_tracking_uri(), mlflow.get_registry_uri(), active and active.info.run_id

    results = results_by(project / "results", {"concise": written(SHORT), "thorough": written(LONG)})
    mlflow.set_tracking_uri("sqlite:///elsewhere.db")
    mlflow.set_registry_uri("sqlite:///registry.db")
    try:
        for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"):
            monkeypatch.delenv(name)  # which the two calls have set
        monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")  # MLflow's own functions would make it and tag prompts
        before, files, threads = state(), set(project.iterdir()), threading.active_count()
        capfd.readouterr()
        runs = log_run(results, experiment="tenancy", traces=0)
        assert register_prompts([SHORT]) == {"short": "prompts:/short/1"}
        assert load_registered("prompts:/short") == SHORT
        assert capfd.readouterr() == ("", "")
        assert state() == before
        assert set(project.iterdir()) == files | {project / "mlruns"}
        assert threading.active_count() <= threads
    finally:
        mlflow.set_registry_uri("")
        mlflow.set_tracking_uri(None)
    client = client_of(mlflow_store)
    assert [links(client.get_run(run_id))[0]["version"] for run_id in runs] == ["1", "1"]
    assert client.get_experiment_by_name("mine") is None


def test_threads_register_a_content_once(mlflow_store: Store) -> None:
    found: list[dict[str, str]] = []
    jobs = [threading.Thread(target=lambda: found.append(register_prompts([SHORT, LONG]))) for _ in range(6)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert found == [{"short": "prompts:/short/1", LONG.name: "prompts:/long_u20_answer_u2f_v2/1"}] * 6


@contextmanager
def without_registry(address: str) -> Iterator[str]:
    """What an older server looks like: all of a real one but its registry, whose paths it does not know."""

    class Forward(BaseHTTPRequestHandler):
        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "/registered-models/" in self.path or "/model-versions/" in self.path:
                return self._answer(404, b"Not Found")
            request = urllib.request.Request(address + self.path, body or None, method=self.command)
            request.add_header("Content-Type", self.headers.get("Content-Type") or "application/json")
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:
                    self._answer(reply.status, reply.read())
            except urllib.error.HTTPError as error:
                self._answer(error.code, error.read())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815 - names that the base class asks for

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Forward) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_prompts_at_a_real_server_and_at_one_that_has_no_registry(
    project: Path, empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_tracking_server import running_server

    (project / "server").mkdir()
    database = project / "server" / "mlflow.db"
    database.write_bytes(empty_store.read_bytes())
    results = results_by(tmp_path / "results", {"concise": written(SHORT), "thorough": written(LONG)})
    with running_server(project / "server", database) as (address, _):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        client = MlflowClient(tracking_uri=address, registry_uri=address)
        for run_id, prompt in zip(log_run(results, experiment="e", traces=0), (SHORT, LONG), strict=True):
            tags = client.get_run(run_id).data.tags
            assert load_registered(tags["jurimetrics.prompt"]) == load_registered(f"prompts:/{prompt.name}") == prompt
            assert len(client.list_logged_prompts(run_id)) == 1
        with pytest.raises(InputError, match="no such prompt in MLflow"):
            load_registered("prompts:/short@staging")
        with without_registry(address) as older:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", older)
            for run_id, variant in zip(log_run(results, experiment="e", traces=0), VARIANTS, strict=True):
                run = client.get_run(run_id)
                assert (run.info.status, run.data.params["variant"]) == ("FINISHED", variant)
                assert "404" in run.data.tags["jurimetrics.prompt_not_registered"]
                assert "mlflow.linkedPrompts" not in run.data.tags
                assert "answer_prompt" in {found.path for found in client.list_artifacts(run_id)}
            with pytest.raises(InputError, match="404"):
                register_prompts([SHORT])
