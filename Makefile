# Everything sets itself up from a plain python3 (3.11 or newer) and a package registry.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
UV_VERSION := >=0.13,<0.14
BIN := .venv/bin
READY := .venv/.synced
ARGS ?=
SIDE_BY_SIDE := -n 2 --dist loadfile
SERVICES_SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder    # they mostly wait

DEMO ?= demo
NIGHT ?= 1

export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
unexport PYTHONDONTWRITEBYTECODE    # or every one of the hundreds of processes in tests compiles our code anew

.PHONY: help setup demo test test-quick test-services chaos check format bench bench-quick bench-compare docs release clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with everything that uv.lock names (other targets do it by themselves).

$(READY): uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Spinney needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@test -x .tools/bin/uv || { $(PYTHON) -m venv .tools && .tools/bin/python -m pip install --quiet 'uv$(UV_VERSION)'; }
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip .venv
	.tools/bin/uv sync --frozen --compile-bytecode --python $(BIN)/python
	$(BIN)/python -c 'import spinney.forest.grower, spinney.forest.walk'    # compiles them, so that no test or demo waits for it
	@touch $@

demo: $(READY) ## A whole night of four made-up hospitals in demo/ (NIGHT=2 for the next one).
	$(BIN)/spinney demo night --night $(NIGHT) --out $(DEMO) $(ARGS)

test: $(READY) ## Run all tests that need nothing but this machine (ARGS="-k word" for some).
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations=15 --ignore=tests/services --ignore=tests/chaos -m "not service" $(ARGS)

test-quick: $(READY) ## Run what is done within a minute: no servers, no whole nights (ARGS="tests/spinney" for some).
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) --durations=5 -m "not slow and not service" $(ARGS)

test-services: $(READY) ## Run the tests that talk to real servers and browsers.
	$(BIN)/python -m pytest $(SERVICES_SIDE_BY_SIDE) --durations=10 tests/services tests/chaos -m "not chaos" $(ARGS)

chaos: $(READY) ## Kill houses wherever a night can be killed, and run five houses in every way; takes long.
	$(BIN)/python -m pytest tests/services tests/chaos -m chaos --log-cli-level=INFO $(ARGS)

check: $(READY) ## Format, lint, types and the import rule between the rooms.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(READY) ## Format the code and mend what ruff can mend.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## Measure everything into build/bench/; takes hours (ARGS="core speed --data DIR" for some).
	$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(READY) ## The same at the smallest sizes: does it run, and roughly?
	$(BIN)/python -m benchmarks --quick $(ARGS)

bench-compare: $(READY) ## Name what got slower, larger or less accurate: OLD=a.json NEW=b.json.
	@test -n "$(OLD)" -a -n "$(NEW)" || { echo "make bench-compare OLD=a.json NEW=b.json" >&2; exit 2; }
	$(BIN)/python -m benchmarks.compare $(OLD) $(NEW) $(ARGS)

docs: $(READY) ## Build the documentation into site/, strictly, and check every link.
	$(BIN)/python docs/check_links.py
	$(BIN)/python docs/make_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

release: $(READY) ## Wheel, source, bill of materials (CycloneDX) and licences in dist/; the same bytes every time.
	.tools/bin/uv build --quiet --out-dir dist
	.tools/bin/uv export --frozen --no-dev --all-extras --format cyclonedx1.5 --quiet | $(BIN)/python docs/make_bill.py dist
	cd dist && sha256sum spinney-* > SHA256SUMS && cat SHA256SUMS

clean: ## Delete environments, caches and the demo.
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist site $(DEMO)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
