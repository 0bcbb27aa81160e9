# Two commands matter: `make run` and `make test`. Everything they need they install themselves.
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
ADDRESS ?= 127.0.0.1
FOLDER ?= build/screenshots
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || echo /usr/bin/chromium)
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: run test check fix bench screenshots lighthouse samples docs browser clean

run: $(VENV)/run  ## create the environment, install, start the app on the sample dumps
	$(BIN)/python -m metrics.compile & exec $(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS)

test: $(VENV)/test browser check  ## install everything needed to test, then check

check:  ## format check, lint, types and the whole suite
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m metrics.compile
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not browser"
	CHROMIUM=$(CHROMIUM) $(BIN)/python -m pytest -m browser

fix:  ## format and repair what can be repaired
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/test  ## measure speed, as ratios against a reference in the same run
	$(BIN)/python -m benchmarks

screenshots: $(VENV)/test browser  ## pictures of every page, in both themes and languages, three widths
	PX_SCREENSHOTS=$(FOLDER) $(BIN)/python -m benchmarks screenshots

lighthouse: $(VENV)/test browser  ## the accessibility score of every page; needs npm
	CHROMIUM=$(CHROMIUM) $(BIN)/python -m benchmarks lighthouse

samples:  ## record the sample dumps anew (deterministic), in an environment of its own
	$(PYTHON) -m venv build/samples
	build/samples/bin/python -m pip install --quiet --disable-pip-version-check \
		-r requirements.txt -r sample_dumps/requirements.txt ./recorder
	build/samples/bin/python -m sample_dumps.make

docs: $(VENV)/test  ## write the generated documents anew
	$(BIN)/python -m metrics.document

browser:
	@[ -x "$(CHROMIUM)" ] || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium; }

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/run: requirements.txt $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/test: requirements.txt requirements-cluster.txt requirements-dev.txt recorder/pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

clean:  ## remove the environment and the workspace
	rm -rf $(VENV) workspace
