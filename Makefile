# The words of this repository. A fresh clone needs Python 3.11, make and a package index, nothing else.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo check docs test test-real test-long bench bench-gpu clean

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PIP = -m pip -qq --disable-pip-version-check --no-input
BIN = .venv/bin
REAL = .venv-real/bin
SOURCES = $(shell find src -type f -not -path '*/__pycache__/*')
PAGES = $(wildcard README.md CONTRIBUTING.md docs/*.md docs/*/*.md)

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## */\1\t/p' Makefile | expand -t 12

demo: .venv/.package  ## one layout of a 70 B model on 64 accelerators
	$(BIN)/outlay count tests/configs/llama-3.1-70b.json --on 64xh100-sxm --tp 8 --pp 4 --seq 8192 --batch 512

check: .venv/.dev docs  ## lint, format, types, arrows between rooms, the site, examples in the documents
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q $(PAGES) src

docs: .venv/.dev  ## the pages as a site in build/site, without a warning, and nothing in it from elsewhere
	$(BIN)/python docs/reference/remake.py
	$(BIN)/zensical build --strict
	$(BIN)/python -m pytest -q tests/site

test: .venv/.dev  ## everything that needs no torch
	$(BIN)/python -m pytest -q tests

test-real: .venv-real/.package  ## the same counts in torch and transformers, on the built wheel
	$(REAL)/python -m pytest -q --confcutdir=tests tests/real

test-long: .venv/.dev .venv-real/.package  ## by hand: minutes to hours
	$(BIN)/python -m pytest -q -o faulthandler_timeout=0 tests/long --ignore tests/long/real
	$(REAL)/python -m pytest -q -o faulthandler_timeout=0 --confcutdir=tests tests/long/real

bench: .venv/.dev  ## seconds, rates and memory beside those recorded; ARGS=--record records
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-gpu: .venv-real/.package  ## one GPU: its profile and real steps beside their bills, ten minutes; ARGS=--dry-run on a CPU
	OUTLAY="$(CURDIR)/$(REAL)/python -m outlay" sh benchmarks/on_one_gpu.sh $(ARGS)

clean:  ## remove what the other words made
	rm -rf .venv .venv-real .venv-frameworks build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Each environment is made once, and again when pyproject.toml changes. pip 25.1 is the first to know groups.
.venv/.package: pyproject.toml
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python $(PIP) install --upgrade 'pip>=25.1'
	$(BIN)/python $(PIP) install --editable .
	touch $@

.venv/.dev: .venv/.package
	$(BIN)/python $(PIP) install --group dev
	touch $@

# torch has an environment of its own, so that no other word can lean on it by accident.
.venv-real/.tools: pyproject.toml
	$(PYTHON) -m venv --clear .venv-real
	$(REAL)/python $(PIP) install --upgrade 'pip>=25.1'
	$(REAL)/python $(PIP) install --group real '.[web]'
	touch $@

# Not editable: the tests here run on the wheel, so a table that does not travel is found.
.venv-real/.package: .venv-real/.tools $(SOURCES)
	$(REAL)/python $(PIP) install --force-reinstall --no-deps .
	touch $@
