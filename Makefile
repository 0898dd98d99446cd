# Each target works by hand too: `make -n TARGET` prints its commands.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests wait now and then, so two workers more than there are cores keep all of them busy.
WORKERS := $(shell expr $$(nproc 2>/dev/null || echo 2) + 2)
# Tests start many processes; with this set, each would compile all of the sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test long faults lint format bench fuzz hostile torture docs clean

help: ## Show what can be done here
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## Create .venv with everything the other targets use

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "OmniGraph needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install ## Run the main job end to end on the example graph
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: install ## Run the tests: something of everything, in a few minutes
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --quiet -m 'not long'

long: export PYTEST_DEBUG_TEMPROOT := $(or $(TMPDIR),/tmp)
long: install ## Run the other tests: on Spark, with clusters that are killed, with more faults, stores and examples
	$(BIN)/python -m pytest --quiet -m long tests/bulk tests/spark tests/docs
	OMNIGRAPH_ALL_EXAMPLES=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --quiet -m 'long or hypothesis' --ignore tests/bulk --ignore tests/spark --ignore tests/docs tests

faults: install ## Try every fault of every operation, on disk and on the S3 server: hours
	OMNIGRAPH_ALL_FAULTS=1 $(BIN)/python -m pytest --quiet -m long tests/faults

lint: install ## Check style, types and import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: install ## Print the benchmarks
	$(BIN)/python -m benchmarks.lang
	$(BIN)/python -m benchmarks.manifest
	$(BIN)/python -m benchmarks.writes
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.expressions
	$(BIN)/python -m benchmarks.server
	$(BIN)/python -m benchmarks.social
	$(BIN)/python -m benchmarks.fresh
	$(BIN)/python -m benchmarks.subgraph
	$(BIN)/python -m benchmarks.joins
	$(BIN)/python -m benchmarks.search
	$(BIN)/python -m benchmarks.merge
	$(BIN)/python -m benchmarks.evolution
	$(BIN)/python -m benchmarks.aging --commits 1000
	$(BIN)/python -m benchmarks.interactive
	$(BIN)/python -m benchmarks.topology
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.load.local
	$(BIN)/python -m benchmarks.load.vectors
	$(BIN)/python -m benchmarks.load.merging
	$(BIN)/python -m benchmarks.load.cluster

fuzz: install ## Fuzz both languages for a minute (FUZZ_SECONDS=60)
	$(BIN)/python -m tests.fuzz.run --seconds $(or $(FUZZ_SECONDS),60)

hostile: install ## Send hostile requests to a server for two minutes (HOSTILE_SECONDS=120): no answer may be a 5xx
	$(BIN)/python -m tests.server.hostile --seconds $(or $(HOSTILE_SECONDS),120)

torture: install ## Torment writers on disk and S3 for ten minutes (TORTURE_SECONDS=600) and check that nothing is lost
	$(BIN)/python -m tests.torture.run --seconds $(or $(TORTURE_SECONDS),600)
	$(BIN)/python -m tests.torture.run --profile maintenance --seconds $(or $(TORTURE_SECONDS),600)
	OMNIGRAPH_RACE_CHANGES=200 OMNIGRAPH_TEST_PATIENCE=1200 $(BIN)/python -m pytest --quiet tests/manifest/test_races.py

docs: install ## Write the generated reference pages and check all links
	$(BIN)/python docs/generate.py

clean: ## Remove everything that can be made again
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
