# One virtual environment, .venv, for everything. `make demo` installs what chartgen needs at run time; the
# development tools are added the first time that a target needs them. Stamp files in .venv remember what was
# installed, so nothing is installed twice. Every download is checked against the hashes in requirements/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
# Nothing is built in isolation: an isolated build fetches its backend without checking a hash.
HASHED := $(PIP) --require-hashes --no-build-isolation --use-pep517
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	--custom-compile-command "make requirements" $(UPGRADE)

RUNTIME := $(VENV)/runtime.stamp
CHARTGEN := $(VENV)/chartgen.stamp
DEV := $(VENV)/dev.stamp

GPT3 := -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f values/site.gke-a3mega.example.yaml
# Shell that stands for itself; scripts with template actions in them are checked as rendered, by the tests.
SCRIPTS = .ci/run $(shell grep -rL --include='*.sh' -e '{{' -e '<%' chartgen)

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(CHARTGEN) ## rehearse GPT3-175B on 32 simulated A3 Mega machines (first run: about 15 minutes)
	$(BIN)/chartgen build gke-a3mega
	$(BIN)/chartgen rehearse gke-a3mega $(GPT3)

.PHONY: test
test: lint engines ## lint, then every test; what CI runs
	$(BIN)/pytest -n 2 --dist loadfile  # two control planes fit on small machines

.PHONY: lint
lint: $(CHARTGEN) $(DEV) ## format, lint, types, import contracts, shell, and that charts/ is up to date
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/shellcheck --shell=bash $(SCRIPTS)
	$(BIN)/chartgen build --all --schemas schemas --reference docs/reference --check

.PHONY: format
format: $(DEV) ## format the Python files and apply the safe fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: charts
charts: $(CHARTGEN) ## build every chart into charts/, and schemas/
	$(BIN)/chartgen build --all --prune --schemas schemas --reference docs/reference

.PHONY: engines
engines: $(CHARTGEN) ## build the engines of the rehearsal into your cache (Helm, control plane, controllers)
	$(BIN)/chartgen engines build

.PHONY: bench
bench: $(CHARTGEN) ## measure speed and memory against the budgets (BENCH=--install adds the size)
	$(BIN)/python benchmarks/bench.py $(BENCH)
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/install.py
	$(BIN)/python benchmarks/status.py
	$(BIN)/python benchmarks/lint.py

.PHONY: chaos
chaos: $(CHARTGEN) $(DEV) ## 500 random operations on ten releases, most of them disturbed; then all must be whole
	$(BIN)/python tests/chaos.py

.PHONY: fuzz
fuzz: engines $(DEV) ## try 2,000 random sets of values for each target on a real API server (FUZZ="gke-a3mega --count 100")
	$(BIN)/python tests/fuzz.py $(FUZZ)

.PHONY: lint-report
lint-report: $(CHARTGEN) ## lint every chart below COPY, a folder of OWNER+NAME@COMMIT folders, and print the table
	$(BIN)/python tests/lint_report.py $(COPY)

.PHONY: fuzz-hostile
fuzz-hostile: $(CHARTGEN) $(DEV) ## 20,000 mutations of charts and logs: no hang, no crash, no file outside (FUZZ="--charts FOLDER --count 500")
	$(BIN)/chartgen engines build helm
	$(BIN)/python tests/fuzz_hostile.py $(FUZZ)

.PHONY: schemas
schemas: $(CHARTGEN) ## pack the Kubernetes and CRD schemas of chartgen/data/schemas.yaml anew, for lint
	$(BIN)/python tests/pack_schemas.py

.PHONY: options
options: ## read the options of each image's programs anew (MEGATRON and NEMO: git directories of the two repositories)
	$(BIN)/python tests/make_options.py $(MEGATRON) $(NEMO) > chartgen/data/options.yaml

.PHONY: convert-report
convert-report: $(CHARTGEN) $(DEV) ## convert every recipe of a copy of gpu-recipes (COPY: its folder; NEMO: a git directory) and compare
	$(BIN)/python tests/convert_report.py $(COPY) $(NEMO)

.PHONY: sums
sums: $(CHARTGEN) ## write the checksums of the engines' Go modules anew, after a change to chartgen/data/engines.yaml
	$(BIN)/python tests/pack_sums.py

.PHONY: requirements
requirements: $(DEV) ## pin requirements/*.txt anew (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) requirements/build.in -o requirements/build.txt
	$(COMPILE) pyproject.toml --extra cluster -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra cluster --extra plots requirements/dev.in \
		-c requirements/build.txt -c requirements/runtime.txt -o requirements/dev.txt

.PHONY: clean
clean: ## remove the virtual environment, build results and caches (not the engines)
	rm -rf $(VENV) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Cleared when the pins change, so that a package which nobody asks for any more is not imported by accident.
$(RUNTIME): requirements/build.txt requirements/runtime.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("$(PYTHON) is Python %d.%d, chartgen needs 3.10 or newer; try make PYTHON=python3.12" % sys.version_info[:2])'
	@echo "Creating $(VENV) and installing what chartgen needs"
	$(PYTHON) -m venv --clear $(VENV)
	$(HASHED) -r requirements/build.txt
	$(HASHED) -r requirements/runtime.txt
	@touch $@

# Editable: a change to the code or its data counts at once, for the demo as for the tests.
$(CHARTGEN): $(RUNTIME) pyproject.toml
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements/dev.txt
	@echo "Installing the development tools"
	$(HASHED) -r requirements/dev.txt
	@touch $@
