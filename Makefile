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
PROGRAM := PYTHONPATH=tests/support $(BIN)/python tests/programs
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
# Nothing is built in isolation: an isolated build fetches its backend without checking a hash.
HASHED := $(PIP) --require-hashes --no-build-isolation --use-pep517
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	--custom-compile-command "make requirements" $(UPGRADE)

RUNTIME := $(VENV)/runtime.stamp
CHARTGEN := $(VENV)/chartgen.stamp
DEV := $(VENV)/dev.stamp
DOCS := $(VENV)/docs.stamp

# Helm of PATH if it is new enough, else that of chartgen.
HELM ?= $$($(BIN)/chartgen engines get helm | sed "s|^helm: ||")
GPT3 := -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f values/site.gke-a3mega.example.yaml
# Plain shell scripts; the tests check scripts with template actions as rendered.
SCRIPTS = .ci/run $(shell grep -rL --include='*.sh' -e '{{' -e '<%' chartgen)
# Parts of one script are in files of their own, and share its variables and its `set -e`.
SHARED = SC2034,SC2154,SC2164
# What the site has, in the same folders as here.
PAGES = README.md CONTRIBUTING.md CHANGES.md SECURITY.md docs $(wildcard charts/*/*.md)

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(CHARTGEN) ## rehearse GPT3-175B on 32 simulated A3 Mega machines (the first run gets the engines)
	$(BIN)/chartgen build gke-a3mega
	$(BIN)/chartgen rehearse gke-a3mega $(GPT3)

# Three control planes fit on small machines, and wait.
PYTEST := $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: lint site engines ## lint, then test each behaviour once
	$(PYTEST) -m "not full"

.PHONY: test-all
test-all: engines $(DEV) ## the tests that `make test` leaves out: every target, Helm 3, the guides, more seeds
	$(PYTEST) -m full

.PHONY: test-fast
test-fast: $(CHARTGEN) $(DEV) ## the tests that need no engine, not even Helm (2 minutes)
	CHARTGEN_CACHE=$${TMPDIR:-/tmp}/chartgen-no-engines $(BIN)/pytest -n 2 --dist loadfile -m "not helm and not engines and not slow and not full" \
		tests/helm tests/compose tests/checks tests/lint tests/metrics tests/kube tests/releases tests/rehearsal \
		tests/package tests/docs

.PHONY: lint
lint: $(CHARTGEN) $(DEV) ## check format, lint, types, import contracts, shell, wording, and that generated files are up to date
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/shellcheck --shell=bash --exclude=$(SHARED) $(SCRIPTS)
	$(BIN)/python tests/programs/prose.py
	$(BIN)/chartgen build --all --check
	$(PROGRAM)/make_reference.py --check
	$(PROGRAM)/size.py

.PHONY: site
site: $(DOCS) ## build the documentation into build/site; a broken link or anchor, or a file from the network, fails
	rm -rf build/pages build/site && mkdir -p build/pages
	@tar -c $(PAGES) | tar -x -C build/pages
	$(BIN)/zensical build --strict --clean
	$(PROGRAM)/links.py build/site

.PHONY: format
format: $(DEV) ## format the Python files and apply the safe fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: charts
charts: $(CHARTGEN) ## build every chart into charts/, schemas/ and the generated pages of docs/reference
	$(BIN)/chartgen build --all --prune
	$(PROGRAM)/make_reference.py

MEASURED ?= ../shared/corpus/measured-speed.json
.PHONY: calibrate-model
calibrate-model: $(CHARTGEN) ## fit the constants of `chartgen estimate` to the measured runs MEASURED, and print their errors
	$(PROGRAM)/fit_speed.py $(MEASURED) --write
	$(PROGRAM)/judge_speed.py $(MEASURED) | tail -n 7

.PHONY: threats
threats: $(RUNTIME) ## write the tests with the mark `threat` into docs/reference/threats.md
	$(PROGRAM)/threats.py

.PHONY: pictures
pictures: $(CHARTGEN) ## draw the pictures of docs/explanation/how-it-works.md
	$(PROGRAM)/pictures.py

.PHONY: gallery
gallery: $(CHARTGEN) ## plan every preset on every target again, for docs/reference/gallery (a minute)
	$(PROGRAM)/gallery_page.py

.PHONY: packages
packages: $(CHARTGEN) ## package every chart into dist/charts, for a release or a registry; HELM=PROGRAM, SIGN="--sign --key NAME ..."
	$(HELM) package charts/*/ --destination dist/charts $(SIGN)

.PHONY: engines
engines: $(CHARTGEN) ## build the engines of the rehearsal into your cache (Helm, control plane, controllers)
	CHARTGEN_ENGINES_MIRROR=off $(BIN)/chartgen engines get

.PHONY: size
size: $(CHARTGEN) $(DEV) ## count lines, include chains, names and modules, against tests/data/size.yaml; part of `make lint`
	$(PROGRAM)/size.py

.PHONY: work
work: $(CHARTGEN) $(DEV) ## count the calls, modules and programs of the usual commands again, and write tests/data/work.yaml
	$(PROGRAM)/work.py

.PHONY: bench
bench: $(CHARTGEN) ## measure speed and memory against the budgets (BENCH=--install adds the size)
	@over=0; for each in "bench $(BENCH)" metrics install status lint; do \
	  set -- $$each; name=$$1; shift; $(BIN)/python "benchmarks/$$name.py" "$$@" || over=1; \
	done; exit $$over

.PHONY: chaos
chaos: $(CHARTGEN) $(DEV) ## run 500 random operations on ten releases, disturb most of them, check that all are consistent (CHAOS="50 --seed 7")
	$(PROGRAM)/chaos.py $(CHAOS)

.PHONY: fuzz
fuzz: engines $(DEV) ## try 2,000 random sets of values for each target on a real API server (FUZZ="gke-a3mega --count 100")
	$(PROGRAM)/fuzz.py $(FUZZ)

.PHONY: lint-report
lint-report: $(CHARTGEN) ## lint every chart below COPY, a folder of OWNER+NAME@COMMIT folders, and print the table
	$(PROGRAM)/lint_report.py $(COPY)

.PHONY: fuzz-hostile
fuzz-hostile: $(CHARTGEN) $(DEV) ## try 20,000 mutations of charts, logs and answers of clusters: no hang, no crash, no file outside (FUZZ="--charts FOLDER --count 500")
	CHARTGEN_ENGINES_MIRROR=off $(BIN)/chartgen engines get helm
	$(PROGRAM)/fuzz_hostile.py $(FUZZ)

.PHONY: schemas
schemas: $(CHARTGEN) ## repack the Kubernetes and CRD schemas of chartgen/data/schemas.yaml, for lint
	$(PROGRAM)/pack_schemas.py

.PHONY: options
options: ## reread the options of each image's programs (MEGATRON, NEMO and BRIDGE: git directories of the repositories)
	$(PROGRAM)/make_options.py $(MEGATRON) $(NEMO) $(BRIDGE) > chartgen/data/options.yaml

# Each version in a folder of its own, without what it depends on: the parsers need the names of those packages alone.
PARSED = torchtitan-0.2=torchtitan==0.2.2 torchtitan-0.3=torchtitan==0.3.0 \
	automodel-0.5=nemo-automodel==0.5.0 automodel-0.6=nemo-automodel==0.6.0 automodel-0.7=nemo-automodel==0.7.0
.PHONY: parsers
parsers: $(DEV) ## install the programs whose own parsers the tests ask, into the folder CHARTGEN_PROGRAMS
	for each in $(PARSED); do \
		$(BIN)/pip install --quiet --no-deps --target "$(CHARTGEN_PROGRAMS)/$${each%%=*}" "$${each#*=}" && \
		$(BIN)/pip install --quiet --target "$(CHARTGEN_PROGRAMS)/$${each%%=*}" tyro==1.0.17 PyYAML==6.0.3 || exit 1; \
	done
	$(BIN)/pip install --quiet --target "$(CHARTGEN_PROGRAMS)/wandb" wandb==0.31.0

# The extension's wheel asks for glibc 2.39, and what tests use of it runs with 2.36: pip takes it for another platform.
SPARES = "$(CHARTGEN_SPARES)/bin/pip" install --quiet
.PHONY: spares
spares: ## install PyTorch and NVIDIA's resiliency extension (7 GB) into the folder CHARTGEN_SPARES, for tests/charts/test_spares.py
	python3.11 -m venv "$(CHARTGEN_SPARES)"
	$(SPARES) torch==2.8.0 numpy==2.4.6 defusedxml==0.7.1 grpcio==1.85.3 httpx==0.28.1 nvidia-ml-py==13.615.71 packaging==26.3 \
		protobuf==7.36.2 psutil==7.2.2 PyYAML==6.0.4
	$(SPARES) --no-deps --only-binary=:all: --platform manylinux_2_39_x86_64 --target \
		"$(CHARTGEN_SPARES)/lib/python3.11/site-packages" nvidia-resiliency-ext==0.6.0

.PHONY: newest
newest: $(CHARTGEN) ## print which pinned versions are behind, as Go and pip list them
	$(PROGRAM)/newest.py

.PHONY: sums
sums: $(CHARTGEN) ## rewrite the checksums and CRDs of the engines' Go modules, after a change to chartgen/data/engines.yaml
	$(PROGRAM)/pack_sums.py
	$(PROGRAM)/pack_objects.py

.PHONY: requirements
requirements: $(DEV) ## update the pins in requirements/*.txt (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) requirements/build.in -o requirements/build.txt
	$(COMPILE) pyproject.toml --extra cluster -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra cluster requirements/dev.in \
		-c requirements/build.txt -c requirements/runtime.txt -o requirements/dev.txt
	$(COMPILE) requirements/docs.in -c requirements/build.txt -c requirements/runtime.txt -c requirements/dev.txt \
		-o requirements/docs.txt

.PHONY: clean
clean: ## remove the virtual environment, build results and caches (not the engines)
	rm -rf $(VENV) build dist .cache .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Cleared when the pins change, so that a removed package is not imported by accident.
$(RUNTIME): requirements/build.txt requirements/runtime.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("$(PYTHON) is Python %d.%d, chartgen needs 3.10 or newer; try make PYTHON=python3.12" % sys.version_info[:2])'
	@! test -L $(VENV) || { echo "$(VENV) is a link, and this would empty what others use; make it in its own folder" >&2; exit 1; }
	@echo "Creating $(VENV) and installing what chartgen needs"
	$(PYTHON) -m venv --clear $(VENV)
	$(HASHED) -r requirements/build.txt
	$(HASHED) -r requirements/runtime.txt
	@touch $@

# Editable: a change to the code or its data takes effect at once, for the demo and for the tests.
$(CHARTGEN): $(RUNTIME) pyproject.toml
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements/dev.txt
	@echo "Installing the development tools"
	$(HASHED) -r requirements/dev.txt
	@touch $@

$(DOCS): $(RUNTIME) requirements/docs.txt
	@echo "Installing what builds the documentation"
	$(HASHED) -r requirements/docs.txt
	@touch $@
