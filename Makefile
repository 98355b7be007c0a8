# Two commands do everything: `make demo` and `make test`. Each does all of its own set-up.
#
#   make demo TORCH_ARGS=              take PyPI's default torch (on Linux: the CUDA build, gigabytes)
#   make test PYTHON=python3.12        choose the interpreter
#   make demo EXTRA=gpu TORCH_ARGS=    ONNX Runtime for CUDA instead of the CPU build

PYTHON ?= python3
VENV   ?= .venv
EXTRA  ?= cpu
PY     := $(VENV)/bin/python
UV     := $(shell command -v uv 2>/dev/null)

# One exact torch for everybody who takes the CPU build: a range would fetch gigabytes of CUDA.
TORCH  ?= torch==2.13.0
# A pip that was told where wheels lie (find-links) is left alone; else the CPU index is asked.
TORCH_ARGS ?= $(shell $(PYTHON) -m pip config list 2>/dev/null | grep -q find-links || echo --index-url https://download.pytorch.org/whl/cpu)

ifeq ($(UV),)
  NEW_VENV := $(PYTHON) -m venv $(VENV)
  INSTALL  := $(PY) -m pip install --quiet --disable-pip-version-check
else
  # uv does not read pip's configuration: hand it the local wheels
  export UV_FIND_LINKS ?= $(or $(PIP_FIND_LINKS),$(shell $(PYTHON) -m pip config get global.find-links 2>/dev/null))
  NEW_VENV := $(UV) venv --quiet --python $(PYTHON) $(VENV)
  INSTALL  := $(UV) pip install --quiet --python $(PY)
endif

# what `make gate` compares with, and how
BASELINE  ?= results/baselines/nano-cpu
GATE      ?= sweeps/gate.yaml
GATE_ARGS ?=

.PHONY: help demo test test-all lint gate gate-full setup setup-dev bench parity clean

help:                ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## *' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: setup          ## set up, run four recipes on the nano voice, write the HTML report (minutes)
	$(PY) -m labkit sweep sweeps/demo.yaml

test: setup-dev      ## set up, lint, run the default tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(PY) -m pytest

test-all: setup-dev  ## every test this machine can run, slow ones too
	$(PY) -m pytest -m "slow or not slow"

gate: setup          ## did the voice get worse? tiers 0 to 2 against the committed baseline (minutes)
	$(PY) -m labkit gate --baseline $(BASELINE) --sweep $(GATE) --tiers 0-2 --no-speed $(GATE_ARGS)

gate-full: setup     ## all tiers of the gate, and speed (tens of minutes)
	$(PY) -m labkit gate --baseline $(BASELINE) --sweep $(GATE) $(GATE_ARGS)

bench: setup         ## measure the lab against upstream on this machine
	$(PY) -m labkit bench self

parity: setup        ## compare every network with upstream, in upstream's own environment
	scripts/make_upstream_env
	$(PY) scripts/parity

setup: $(VENV)/.setup-$(EXTRA)
setup-dev: $(VENV)/.setup-dev-$(EXTRA)

$(VENV)/.torch:
	@echo "making $(VENV) and installing $(TORCH)"
	test -x $(PY) || $(NEW_VENV)
	$(INSTALL) $(TORCH) $(TORCH_ARGS)
	@touch $@

$(VENV)/.setup-$(EXTRA): pyproject.toml requirements-no-deps.txt | $(VENV)/.torch
	@echo "installing labkit[$(EXTRA),quality]"
	$(INSTALL) -e ".[$(EXTRA),quality]"
	$(INSTALL) --no-deps -r requirements-no-deps.txt
	@touch $@

$(VENV)/.setup-dev-$(EXTRA): $(VENV)/.setup-$(EXTRA)
	@echo "installing labkit[dev]"
	$(INSTALL) -e ".[$(EXTRA),quality,dev]"
	@touch $@

clean:               ## forget runs, notebooks and caches (baselines stay)
	rm -rf results/runs results/probes results/notebooks results/reports results/index.parquet .pytest_cache .mypy_cache .ruff_cache
