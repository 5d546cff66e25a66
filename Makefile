# Two commands: `make` runs the main job on the default design, `make test` passes the tests.
# Design options go through DESIGN, for example: make DESIGN="--mantissa 4 --rows 16"
# Tests run in a process for each core, two to four, a file at a time each; more: make test PROCESSES=8

PYTHON ?= python3
EXTRAS ?= test,train,networks,tune,docs
DESIGN ?=
PROCESSES ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 2 ? 2 : cores > 4 ? 4 : cores)))

VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable

.PHONY: all test train regression matrix area machines docs clean simulator
all: $(VENV)/.main
	$(BIN)/python -m flow $(DESIGN)

test: simulator $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --durations=30

# A network learns on the Verilog of a small accelerator: an epoch of digits, of which every number is compared.
train: $(VENV)/.main
	mkdir -p build/training
	$(BIN)/python -m cosim train docs/examples/training.py --rows 8 --block 1,8 --steps 56 --check layers \
		--curve build/training/losses.png --timeline build/training/timeline.png --json build/training/training.json

# Hours, not minutes: every case of the long sweeps; what touches files changed since SINCE comes first. One of twelve
# parts that take equally long: make regression PART=3/12; their times, measured anew: OPTIONS=--store-durations
PART ?= 1/1
OPTIONS ?=
SINCE ?= $(shell git rev-parse --quiet --verify main 2>/dev/null)
WORDS := $(subst /, / ,$(PART))
regression: simulator $(VENV)/.test
	$(if $(and $(filter 3,$(words $(WORDS))),$(filter /,$(word 2,$(WORDS)))),,$(error PART=$(PART): it must be a part of a number of parts, such as 3/12))
	$(BIN)/python -m pytest -m slow -n $(PROCESSES) --dist worksteal --timeout=7200 -o faulthandler_timeout=7260 --durations=30 \
		--splits $(word 3,$(WORDS)) --group $(firstword $(WORDS)) --durations-path tests/durations.json $(if $(SINCE),--since=$(SINCE)) $(OPTIONS)

# Bit-exactness over widths, blocks, arrays, accumulations and roundings; goes on where it stopped.
matrix: $(VENV)/.main
	$(BIN)/python -m cosim matrix

# The README's table of areas, with the OSU018 cells and every other library in build/lib, side by side.
area: $(VENV)/.main
	$(BIN)/python -m synth fetch
	$(BIN)/python -m synth sweep --plan table --liberty all
	for width in 4 6 8; do $(BIN)/python -m synth --unit dot_product --block 1,128 --mantissa $$width || exit; done

# Whole accelerators of several numbers, with small memories: a table and a picture, in six minutes the first time.
machines: $(VENV)/.main
	$(BIN)/python -m synth fetch
	$(BIN)/python -m synth accelerator --preset small --recipe adders --weight-clock gated --against hbfp6,hbfp4,int8,fp32 --out build/machines

# The pages as a site, with the API from the docstrings: build/docs/index.html. A warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html docs build/docs

clean:
	rm -rf build

# Needs no environment, so that a missing tool is named before anything is downloaded.
simulator:
	@sh .ci/test-tools

$(VENV)/.main: pyproject.toml requirements.lock
	@sh .ci/check-tools $(PYTHON)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[hardware,train]"
	touch $@

$(VENV)/.test: $(VENV)/.main
	$(INSTALL) ".[$(EXTRAS)]"
	touch $@

$(VENV)/.docs: $(VENV)/.main
	$(INSTALL) ".[docs,tune]"
	touch $@
