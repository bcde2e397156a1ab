# Needs nothing but python3 with venv and pip. PYTHON and VENV may be given.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
REPRODUCED := results/reference/reproduction

.DEFAULT_GOAL := help
.PHONY: help quickstart test lint gate accept exactness conformance generated overhead recording reproduce calibrated tracing reading report-speed typeset false-alarms planted faults gpu-check clean

help: ## What can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[models,peers,report,test]'
	@touch $@

quickstart: $(STAMP) ## Sweep real networks on this machine: every implementation beside non-private training
	$(BIN)/dpbench run quickstart

test: $(STAMP) ## All fast tests, no GPU and no network
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile

lint: $(STAMP) ## Style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

exactness: $(STAMP) ## Every implementation on every small network against the float64 per-example loop
	$(BIN)/python -m pytest -m slow tests/exactness

conformance: $(STAMP) ## Every implementation and library on the cases of the kit, into results/reference
	mkdir -p results
	$(BIN)/dpbench verify --impl 'all,ablation:*,lib:*' --json > results/conformance.jsonl; found=$$?; \
	$(BIN)/python -m tests.benchmarks.conformance && exit $$found

generated: $(STAMP) ## Networks drawn by chance against the float64 per-example loop (DRAWS=, FIRST=)
	$(BIN)/python -m pytest -m slow tests/test_generated.py

overhead: $(STAMP) ## Step time and peak memory over non-private, one thread of this CPU
	$(BIN)/dpbench run overhead

recording: $(STAMP) ## What recording alone costs a forward of GPT-2 small
	$(BIN)/python -m tests.benchmarks.recording

reproduce: $(STAMP) ## The figures of the BK paper: published, predicted, measured here, into results/reference
	$(BIN)/dpbench calibrate --threads 1
	rm -rf $(REPRODUCED)
	$(BIN)/dpbench reproduce --output $(REPRODUCED)
	$(BIN)/dpbench report $(REPRODUCED) --formats html,md,svg

calibrated: $(STAMP) ## Predicted against measured step times on this machine, into results/reference
	$(BIN)/dpbench calibrate --threads 1
	$(BIN)/dpbench run calibrated
	$(BIN)/python -m tests.benchmarks.calibrated

tracing: $(STAMP) ## How long traces of large models take, into results/reference
	$(BIN)/python -m tests.benchmarks.tracing

faults: $(STAMP) ## Kills, stops, full disks, rubbish: each fault many times, into results/reference (N=, SEED=)
	$(BIN)/python -m tests.faults

reading: $(STAMP) ## How long results take to be read, into results/reference
	$(BIN)/python -m tests.benchmarks.reading

report-speed: $(STAMP) ## How long a report of 10 000 records takes, and how large it is, into results/reference
	$(BIN)/python -m tests.benchmarks.report

typeset: $(STAMP) ## The committed reproduction as a PDF; needs pdflatex and bibtex
	$(BIN)/dpbench report $(REPRODUCED) -o build/typeset --formats latex,pdf
	cd build/typeset/latex && pdflatex -halt-on-error -interaction=batchmode report && bibtex -terse report && \
	pdflatex -halt-on-error -interaction=batchmode report && pdflatex -halt-on-error -interaction=batchmode report && \
	! grep -E 'Overfull .hbox|undefined|multiply' report.log
	@echo build/typeset/latex/report.pdf

false-alarms: $(STAMP) ## How often comparisons cry wolf, and find what is there, on a simulated noisy machine (COUNT=)
	$(BIN)/python -m tests.benchmarks.false_alarms

planted: $(STAMP) ## The same on this machine: a base beside itself, and beside one that is a tenth slower (AA=, PLANTED=)
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/python -m tests.benchmarks.planted

gate: $(STAMP) ## Counted costs of all implementations, exactly as in results/reference/ci-trace.jsonl
	$(BIN)/dpbench gate

accept: $(STAMP) ## Take the counted costs as they are now for the reference of the gate
	$(BIN)/dpbench gate --accept

gpu-check: $(STAMP) ## On one CUDA device, in five minutes, what a CPU cannot show (ARGS=)
	$(BIN)/python -m tests.benchmarks.gpu_check $(ARGS)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
