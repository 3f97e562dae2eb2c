"""The notebooks: executed offline in a copy of the project, and their committed outputs are what comes out.

`python tests/test_notebooks.py` renews the committed outputs, where what they show has changed for a reason.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 300_000
# What a machine says of itself: notices of libraries, where answers are stored.
NOTICES = "stderr"
ABSOLUTE = re.compile(r"(?:^|[\s\"'(=])/[\w.-]+/[\w.-]|[A-Za-z]:\\|file:///|sqlite:////")
_RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, kernel_name="python3", timeout=240, record_timing=False, coalesce_streams=True).execute()
nbformat.write(notebook, sys.argv[1])
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The notebooks by name as they come out when executed in a copy of the project that reaches no network."""
    project = tmp_path_factory.mktemp("project")
    found = execute_all(project)
    assert (project / "mlruns" / "mlflow.db").is_file(), "the first notebook logs to the project's own store"
    return found


def execute_all(project: Path) -> dict[str, Any]:
    """Copy what notebooks need into `project`, execute them there, and give them by name without library notices."""
    shutil.copyfile(ROOT / "pyproject.toml", project / "pyproject.toml")
    for name in ("notebooks", "experiments"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "results"))
    with _refusing_proxy() as proxy:
        for path in NOTEBOOKS:
            _execute(project / "notebooks" / path.name, proxy)
    return {path.name: nbformat.read(project / "notebooks" / path.name, as_version=4) for path in NOTEBOOKS}


class _refusing_proxy:  # noqa: N801 - a context manager
    """A proxy that hangs up on whoever calls, and counts them."""

    def __enter__(self) -> str:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.callers = 0
        threading.Thread(target=self._serve, daemon=True).start()
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def _serve(self) -> None:
        for connection in self._accepted():
            self.callers += 1
            connection.close()

    def _accepted(self) -> Iterator[socket.socket]:
        while True:
            try:
                yield self.socket.accept()[0]
            except OSError:
                return

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        assert self.callers == 0, f"{self.callers} connections were tried through the proxy"


def _execute(path: Path, proxy: str) -> None:
    unset = ("MLFLOW_TRACKING_URI", "OPENAI_API_KEY", "PYTEST_CURRENT_TEST")
    around = {name: value for name, value in os.environ.items() if name not in unset}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
    own = {"IPYTHONDIR": str(path.parent / ".ipython"), "JUPYTER_RUNTIME_DIR": str(path.parent / ".runtime")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(path)],
        cwd=path.parent,
        env=around | proxies | own | {"no_proxy": "127.0.0.1,localhost"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, f"{path.name}: {done.stderr[-3000:]}"


def _outputs(notebook: Any) -> list[list[Any]]:
    return [
        [output for output in cell.outputs if output.get("name") != NOTICES]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _shown(output: Any) -> dict[str, str]:
    """What an output shows by kind; of a picture only that there is one, since fonts differ between machines."""
    if output.output_type == "stream":
        return {"stream": output.text}
    # Where there is HTML, the plain text beside it is never seen.
    kinds = [kind for kind in output.data if not (kind == "text/plain" and "text/html" in output.data)]
    return {kind: "" if kind.startswith("image/") else _plain(kind, output.data[kind]) for kind in kinds}


def _plain(kind: str, text: Any) -> str:
    """What a reader sees of a text; of HTML the words, whatever their looks."""
    if kind == "text/html":
        return " ".join(re.sub(r"<style.*?</style>|<[^>]+>", " ", "".join(text), flags=re.DOTALL).split())
    return re.sub(r"<Figure size .*>", "<Figure>", "".join(text))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_outputs_are_what_comes_out(path: Path, executed: dict[str, Any]) -> None:
    committed = _outputs(nbformat.read(path, as_version=4))
    fresh = _outputs(executed[path.name])
    assert len(committed) == len(fresh)
    for at, (kept, made) in enumerate(zip(committed, fresh, strict=True)):
        before, now = [_shown(output) for output in kept], [_shown(output) for output in made]
        assert before == now, f"code cell {at}: {_difference(before, now)}; if meant: python tests/test_notebooks.py"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_looks_like_a_fault(path: Path, executed: dict[str, Any]) -> None:
    """Whatever is written on standard error stands in a red box: only where answers are kept, a path of one machine."""
    cells = [cell for cell in executed[path.name].cells if cell.cell_type == "code"]
    said = [output.text for cell in cells for output in cell.outputs if output.get("name") == NOTICES]
    assert [line for text in said for line in text.splitlines() if line and not line.startswith("store: ")] == []


def _difference(before: list[dict[str, str]], now: list[dict[str, str]]) -> str:
    """The words around the first place where two outputs part."""
    one, other = str(before), str(now)
    pairs = zip(one, other, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    return f"was {one[max(0, at - 60) : at + 60]!r}, is {other[max(0, at - 60) : at + 60]!r}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebook_is_fit_to_be_read(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run from top to bottom, once"
    assert sum(bool(cell.outputs) for cell in code) >= len(code) - 1
    for cell in code:
        assert all(output.output_type != "error" for output in cell.outputs)
        assert all(output.get("name") != NOTICES for output in cell.outputs), "notices of one machine are not committed"
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_holds_an_absolute_path(path: Path) -> None:
    shown = [
        text for cell in _outputs(nbformat.read(path, as_version=4)) for one in cell for text in _shown(one).values()
    ]
    found = [match[0] for text in shown for match in ABSOLUTE.finditer(text)]
    assert not found and str(ROOT) not in "\n".join(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    texts = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    links = [link for text in texts for link in re.findall(r"\]\(([^)#]+)", text)]
    assert links
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_what_would_be_found_is_found() -> None:
    for text in ("store: /home/ann/x.db", "sqlite:////srv/x", r"at C:\runs", "(/var/x/y)"):
        assert ABSOLUTE.search(text), text
    for text in ("1/2 of them", "docs/results.md", "and/or", "http://localhost:8000/v1"):
        assert not ABSOLUTE.search(text), text


def test_the_notebooks_are_there() -> None:
    assert [path.name for path in NOTEBOOKS][:2] == ["01_first_evaluation.ipynb", "02_write_a_metric.ipynb"]


def renew() -> None:
    """Execute the notebooks and write them back with their new outputs."""
    with tempfile.TemporaryDirectory() as folder:
        for name, notebook in execute_all(Path(folder)).items():
            cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
            for cell, outputs in zip(cells, _outputs(notebook), strict=True):
                cell.outputs = outputs
            nbformat.write(notebook, ROOT / "notebooks" / name)


if __name__ == "__main__":
    renew()
