"""The public surface is a sorted list; importing it has no effects and loads nothing heavy."""

from __future__ import annotations

import doctest
import inspect
import json
import subprocess
import sys

import jurimetrics as jm
import pytest

HEAVY = ("mlflow", "matplotlib", "scipy", "sklearn", "statsmodels", "openai", "pandas", "pyarrow", "wordllama")


def test_names_are_sorted_and_each_has_a_home() -> None:
    assert jm.__all__ == sorted(jm.__all__)
    assert set(jm.__all__) == set(jm._HOMES)


@pytest.mark.parametrize("name", jm.__all__)
def test_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(jm, name)
    assert len(inspect.getdoc(value) or "") > 30, f"{name} has no docstring worth the name"


CALLABLES = [name for name in jm.__all__ if not inspect.ismodule(getattr(jm, name))]


@pytest.mark.parametrize("name", CALLABLES)
def test_public_callable_has_an_executed_example(name: str) -> None:
    examples = [each for test in doctest.DocTestFinder(recurse=False).find(getattr(jm, name)) for each in test.examples]
    assert examples, f"the docstring of {name} holds no example"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = jm.no_such_name


def test_import_loads_nothing_heavy_and_touches_no_global_state() -> None:
    script = (
        "import sys, json, logging, warnings, os, locale, asyncio;"
        "before = (dict(os.environ), list(warnings.filters), logging.root.level, list(logging.root.handlers),"
        " locale.setlocale(locale.LC_ALL), asyncio.get_event_loop_policy.__module__);"
        "import jurimetrics;"
        "after = (dict(os.environ), list(warnings.filters), logging.root.level, list(logging.root.handlers),"
        " locale.setlocale(locale.LC_ALL), asyncio.get_event_loop_policy.__module__);"
        "print(json.dumps([sorted(sys.modules), before == after]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", check=True)
    modules, same = json.loads(done.stdout)
    assert same
    assert [name for name in HEAVY if name in modules] == []


def test_heavy_packages_wait_until_they_are_needed() -> None:
    script = (
        "import sys, json; import jurimetrics as jm;"
        "[getattr(jm, name) for name in ('evaluate', 'ChatJudge', 'Panel', 'load_records', 'metrics', 'Results')];"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", check=True)
    modules = json.loads(done.stdout)
    assert [
        name for name in ("mlflow", "matplotlib", "scipy", "sklearn", "statsmodels", "openai") if name in modules
    ] == []
