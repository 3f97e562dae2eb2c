"""Secrets by canary: given in a key, a header and an address, echoed by the endpoint, then looked for everywhere."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import jurimetrics as jm
import pyarrow.parquet as pq
import pytest
from scripted_server import Answer, Call, ScriptedServer, error, reply
from test_endpoints import records

pytest_plugins = ("mlflow_store",)
# MLflow 3.17 on SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SECRETS = {
    "key": "sk-CANARYkey-0123456789",
    "header": "CANARYheader+/42=",
    "user": "CANARYuser",
    "password": "CANARYpass word",
    "query": "CANARYquery/7",
}
MARKS = ["CANARY", base64.b64encode(b"CANARYuser:CANARYpass word").decode().rstrip("="), "Q0FOQVJZ"]


def judge_at(server: ScriptedServer, *, key: bool = True, timeout: float = 5.0) -> jm.ChatJudge:
    address = server.url.replace("http://", "http://CANARYuser:CANARYpass%20word@") + "?key=CANARYquery%2F7"
    return jm.ChatJudge(
        "scripted",
        base_url=address,
        api_key_env="HOUSE_KEY" if key else None,
        extra_headers={"X-House": SECRETS["header"]},
        price=0,
        timeout=timeout,
    )


def seen(call: Call) -> str:
    """All that a request carried, as a careless endpoint repeats it."""
    return json.dumps({"headers": dict(call.headers), "query": call.query}, ensure_ascii=False)


def leaks(text: str) -> list[str]:
    return [mark for mark in MARKS if mark in text]


def careless(call: Call) -> Answer:
    """Echoes what it was sent in good replies and in errors of all kinds."""
    told = seen(call)
    assert "CANARYheader" in told and "CANARYquery" in told and ("CANARYkey" in told or "Basic" in told)
    if "has 3 rivers" in call.prompt:
        return error(500, message=f"failed for {told}")
    if "has 4 rivers" in call.prompt:
        return error(400, message=f"cannot do this for {told}")
    if "has 5 rivers" in call.prompt:
        return reply(f"No JSON for {told}")
    if "has 6 rivers" in call.prompt:
        return reply(None, refusal=f"not for {told}")
    good = {"findings": f"well said by {told}", "score": 4}
    return reply(json.dumps(good, ensure_ascii=False), model=f"m {told}", fingerprint=told)


def revoked(call: Call) -> Answer:
    """The key is good for the first twenty records."""
    at = re.search(r"It has (\d+) rivers", call.prompt)
    return careless(call) if at is None or int(at[1]) < 20 else error(401, message=f"Incorrect key: {seen(call)}")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", SECRETS["key"])
    monkeypatch.setattr("jurimetrics.engine.limits.FIRST_WAIT_S", 0.001)


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    names = (
        "",
        "openai",
        "httpx2",
        "httpx",
        "httpcore",
        "aiohttp",
        "aiohttp.client",
        "asyncio",
        "jurimetrics",
        "mlflow",
    )
    for name in names:
        caplog.set_level(logging.DEBUG, logger=name)
    yield caplog
    assert not leaks(caplog.text), "in a log"


def texts_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file below a folder as text; of Parquet what is in it too."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path), path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            yield str(path), str(pq.read_table(path).to_pylist())


@pytest.mark.parametrize("with_key", [True, False])
def test_x02_secrets_are_found_nowhere(
    with_key: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str], everything_logged: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(revoked) as server:
        judge = judge_at(server, key=with_key)
        results = jm.evaluate(
            records(40),
            ["coherence", "fluency", "faithfulness"],
            judge,
            store=tmp_path / "s.db",
            out=tmp_path / "out",
            retries=1,
            concurrency=2,
        )
    kinds = set(results.failures()["kind"])
    assert {"rejected", "transport"} <= kinds and (results.scores["status"] == "ok").any(), "the mix is as meant"
    shown = [repr(judge), str(judge.settings()), results._repr_html_(), repr(results), str(results.notes())]
    shown += [frame.to_csv() for frame in (results.scores, results.calls, results.summary(), results.failures())]
    assert "***" in "".join(shown) and not leaks("".join(shown))
    found = [(path, leaks(text)) for path, text in texts_in(tmp_path) if leaks(text)]
    assert found == []
    captured = capfd.readouterr()
    assert not leaks(captured.out + captured.err)


@pytest.mark.parametrize("status", [401, 500, 302])
def test_x02_error_that_ends_the_run_shows_nothing(
    status: int, capfd: pytest.CaptureFixture[str], everything_logged: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(lambda call: error(status, message=seen(call), headers={"Location": "/x"})) as server:
        judge = judge_at(server)
        try:
            results = jm.evaluate(records(2), ["coherence"], judge, store=None, retries=0)
        except jm.InputError as raised:
            told = traceback.TracebackException.from_exception(raised, capture_locals=True)
            plain = "".join(traceback.format_exception(raised))
            assert "HOUSE_KEY" in plain and not leaks(plain) and not leaks("".join(told.format()))
        else:
            assert not leaks(results.scores.to_csv())
    captured = capfd.readouterr()
    assert not leaks(captured.out + captured.err)


def test_x02_mlflow_gets_none(tmp_path: Path, project: Path, everything_logged: pytest.LogCaptureFixture) -> None:
    from jurimetrics.tracking.log import log_run

    with ScriptedServer(careless) as server:
        results = jm.evaluate(
            records(10), ["coherence"], judge_at(server), store=tmp_path / "s.db", out=tmp_path / "out", retries=0
        )
    log_run(results, experiment="canary")
    files = list(texts_in(project))
    assert any(path.endswith(".db") and "canary" in text for path, text in files), "MLflow's database is among them"
    assert [path for path, text in files if leaks(text)] == []


CELL = """
import logging, os
logging.basicConfig(level=logging.DEBUG)
import jurimetrics as jm
from test_endpoints import records
judge = jm.ChatJudge("scripted", base_url=os.environ["HOUSE_URL"], api_key_env="HOUSE_KEY", price=0,
                     extra_headers={"X-House": os.environ["HOUSE_HEADER"]})
results = jm.evaluate(records(80), ["coherence"], judge, store=None, retries=0, concurrency=2)
display(judge, results, results.failures(), results.scores)
"""


def test_x02_notebook_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    with ScriptedServer(revoked) as server:
        address = server.url.replace("http://", "http://CANARYuser:CANARYpass%20word@") + "?key=CANARYquery%2F7"
        monkeypatch.setenv("HOUSE_URL", address)
        monkeypatch.setenv("HOUSE_HEADER", SECRETS["header"])
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent) + os.pathsep + os.environ.get("PYTHONPATH", ""))
        # The second cell meets the revoked key at its first request, and ends in a traceback.
        cells = [
            nbformat.v4.new_code_cell(source) for source in (CELL, CELL.replace("records(80)", "records(80)[30:]"))
        ]
        notebook = nbformat.v4.new_notebook(cells=cells)
        NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    outputs = [json.dumps(cell.outputs) for cell in notebook.cells]
    assert "***" in outputs[0] and "text/html" in outputs[0] and "EndpointError" in outputs[1]
    assert not leaks("".join(outputs))
