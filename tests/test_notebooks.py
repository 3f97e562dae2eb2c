"""The notebooks: executed offline in a copy of the project, and their committed outputs are what comes out.

`python tests/test_notebooks.py` renews the committed outputs, where what they show has changed for a reason; with names
behind it (`05_compare_models`), those of these notebooks alone.

A cell with the tag "varies" shows what a machine decides, such as a model's words or how long it took. Of it only the
kinds of its outputs are compared.
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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# What runs a language model on this machine, from the extra [local].
LOCAL_MODEL = ("05_compare_models",)
VARIES = "varies"
MOST_BYTES = 300_000
# What a machine says of itself: notices of libraries, where answers are stored.
NOTICES = "stderr"
ABSOLUTE = re.compile(r"(?:^|[\s\"'(=])/[\w.-]+/[\w.-]|[A-Za-z]:\\|file:///|sqlite:////")
_RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, kernel_name="python3", timeout=400, record_timing=False, coalesce_streams=True).execute()
nbformat.write(notebook, sys.argv[1])
"""


EACH = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.local_model] if path.stem in LOCAL_MODEL else [])
    for path in NOTEBOOKS
]


class Executed:
    """Notebooks as they come out when executed in `project`, a copy of this one that reaches no network; each once."""

    def __init__(self, project: Path) -> None:
        self.project = copy_project(project)
        self._found: dict[str, Any] = {}

    def notebook(self, path: Path) -> Any:
        if path.name not in self._found:
            self._found[path.name] = execute(self.project, path.name)
        return self._found[path.name]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    return Executed(tmp_path_factory.mktemp("project"))


def copy_project(project: Path) -> Path:
    """What notebooks need, in the folder `project`."""
    project.mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "pyproject.toml", project / "pyproject.toml")
    for name in ("notebooks", "experiments"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "results"))
    return project


def execute(project: Path, name: str, **surroundings: str) -> Any:
    """Execute the notebook `name` of a copied project there, and give it."""
    with _refusing_proxy() as proxy:
        _execute(project / "notebooks" / name, proxy, surroundings)
    return nbformat.read(project / "notebooks" / name, as_version=4)


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


def _execute(path: Path, proxy: str, surroundings: Mapping[str, str]) -> None:
    unset = ("MLFLOW_TRACKING_URI", "OPENAI_API_KEY", "PYTEST_CURRENT_TEST")
    around = {name: value for name, value in os.environ.items() if name not in unset}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
    own = {"IPYTHONDIR": str(path.parent / ".ipython"), "JUPYTER_RUNTIME_DIR": str(path.parent / ".runtime")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(path)],
        cwd=path.parent,
        env=around | proxies | own | {"no_proxy": "127.0.0.1,localhost"} | dict(surroundings),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, f"{path.name}: {done.stderr[-3000:]}"


def _code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _outputs(notebook: Any) -> list[list[Any]]:
    return [[output for output in cell.outputs if output.get("name") != NOTICES] for cell in _code(notebook)]


def _varies(cell: Any) -> bool:
    return VARIES in cell.metadata.get("tags", [])


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


@pytest.mark.parametrize("path", EACH)
def test_committed_outputs_are_what_comes_out(path: Path, executed: Executed) -> None:
    committed, fresh = nbformat.read(path, as_version=4), executed.notebook(path)
    cells = _code(committed)
    assert len(cells) == len(_code(fresh))
    for at, (cell, kept, made) in enumerate(zip(cells, _outputs(committed), _outputs(fresh), strict=True)):
        before, now = [_shown(output) for output in kept], [_shown(output) for output in made]
        if _varies(cell):
            assert [sorted(one) for one in before] == [sorted(one) for one in now], (
                f"code cell {at}: other kinds of output"
            )
        else:
            assert before == now, (
                f"code cell {at}: {_difference(before, now)}; if meant: python tests/test_notebooks.py"
            )


@pytest.mark.parametrize("path", EACH)
def test_nothing_looks_like_a_fault(path: Path, executed: Executed) -> None:
    """Whatever is written on standard error stands in a red box: only where answers are kept, a path of one machine."""
    said = [
        output.text
        for cell in _code(executed.notebook(path))
        for output in cell.outputs
        if output.get("name") == NOTICES
    ]
    assert [line for text in said for line in text.splitlines() if line and not line.startswith("store: ")] == []


def test_runs_are_logged_to_the_store_of_the_project(executed: Executed) -> None:
    executed.notebook(NOTEBOOKS[0])
    assert (executed.project / "mlruns" / "mlflow.db").is_file()


_WITHOUT_THE_EXTRA = """
import importlib.util
_found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "xllamacpp" else _found(name, package)
"""


@pytest.mark.parametrize("name", LOCAL_MODEL)
def test_without_the_extra_a_notebook_stops_and_says_what_is_missing(name: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_WITHOUT_THE_EXTRA, encoding="utf-8")
    project = copy_project(tmp_path / "project")
    with pytest.raises(AssertionError) as stopped:
        execute(project, f"{name}.ipynb", PYTHONPATH=str(tmp_path))
    said = re.sub(r"\x1b\[\d+m", "", stopped.value.args[0])
    assert "SystemExit: local_server: the extra is missing: pip install 'jurimetrics[local]'" in said


def test_only_what_a_model_says_may_vary() -> None:
    varying = {
        path.stem for path in NOTEBOOKS for cell in _code(nbformat.read(path, as_version=4)) if _varies(cell)
    }
    assert varying == set(LOCAL_MODEL)


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
    code = _code(notebook)
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


def renew(names: Sequence[str] = ()) -> None:
    """Execute the notebooks, or those of these names, and write them back with their new outputs."""
    if strange := set(names) - {path.stem for path in NOTEBOOKS}:
        raise SystemExit(f"no notebook is called {', '.join(sorted(strange))}")
    with tempfile.TemporaryDirectory() as folder:
        project = copy_project(Path(folder))
        for path in NOTEBOOKS:
            if names and path.stem not in names:
                continue
            notebook = execute(project, path.name)
            for cell, outputs in zip(_code(notebook), _outputs(notebook), strict=True):
                cell.outputs = outputs
            nbformat.write(notebook, path)


if __name__ == "__main__":
    renew(sys.argv[1:])
