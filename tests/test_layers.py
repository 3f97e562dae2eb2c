"""Imports go one way: cli > experiment > ... > text, stats > errors. The two halves never import each other."""

from __future__ import annotations

import ast
from pathlib import Path

import jurimetrics
import pytest

PACKAGE = Path(jurimetrics.__file__).parent
# From the top to the bottom; what stands in one line is of one rank.
LAYERS = (
    ("__init__",),
    ("cli",),
    ("experiment",),
    ("report",),
    ("scorers", "calibrate", "probes", "variants"),
    ("tracking", "engine"),
    ("plots", "metrics", "judges"),
    ("answers",),
    ("results",),
    ("display", "frames"),
    ("prompts",),
    ("tasks", "records"),
    ("labels",),
    ("tables",),
    ("columns",),
    ("cells",),
    ("text", "stats", "project", "version"),
    ("errors",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ASKING = {"tasks", "judges", "metrics", "engine"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))


def part(module: str) -> str:
    """The part of the package a module belongs to: `engine` of `jurimetrics.engine.store`."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def name_of(path: Path) -> str:
    pieces = list(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return ".".join(pieces[:-1] if pieces[-1] == "__init__" else pieces)


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
            if node.module == "jurimetrics":
                found |= {f"jurimetrics.{alias.name}" for alias in node.names}
    return found


def test_every_module_has_a_layer() -> None:
    assert {part(name_of(path)) for path in MODULES} <= set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    here = part(name_of(path))
    if here == "__init__":
        return  # the lazy public surface names everything
    for module in imports(path):
        if not module.startswith("jurimetrics"):
            continue
        there = part(module)
        if there in ("__init__", here):
            continue
        assert RANK[there] > RANK[here], f"{name_of(path)} imports {module}: {here} must not know {there}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_two_halves_never_meet(path: Path) -> None:
    here = part(name_of(path))
    reached = {part(module) for module in imports(path) if module.startswith("jurimetrics.")}
    assert not (here in ASKING and "stats" in reached)
    assert not (here == "stats" and reached - {"stats", "errors"})


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_mlflow_is_imported_in_tracking_and_scorers_only(path: Path) -> None:
    if part(name_of(path)) in ("tracking", "scorers"):
        return
    assert not any(module.split(".")[0] == "mlflow" for module in imports(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_stay_small(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 450, f"{name_of(path)} has {lines} lines"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_stay_small(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert lines <= 45, f"{name_of(path)}.{node.name} has {lines} lines of body"
