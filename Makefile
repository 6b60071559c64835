# Two commands matter to a newcomer: `make run` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RUNS   := $(VENV)/.ready-to-run
PEERS  := .venv-peers
# One thread a process: two busy torch processes with spinning OpenMP threads are 85 times slower.
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# pip's words are shown if it fails, and only then.
quietly = $(1) > $(VENV)/pip.log 2>&1 || { cat $(VENV)/pip.log >&2; exit 1; }

.PHONY: run test test-peers check setup fmt lint types arch golden docs perf perf-peers clean

run: $(RUNS)
	@$(BIN)/recollect run

# What works with tensors runs again with every shape that it states checked.
SHAPED := tests/architecture/test_shapes.py tests/conformance tests/unit/learner/test_updates.py \
	$(addprefix tests/unit/,augment memory metrics objectives retrieval rules storage streams)
test: $(READY) lint types arch
	$(BIN)/python -m pytest -n 2 --dist worksteal -q
	RECOLLECT_TEST_SHAPES=all $(BIN)/python -m pytest -n 2 --dist worksteal -q $(SHAPED)

# Our step in Avalanche and on river's frames: they need the peers' 1.2 GB.
test-peers: $(READY) perf-peers
	$(BIN)/python -m pytest -q tests/peers

check: lint types arch
	$(BIN)/python -m pytest -n 2 -q -m "not slow" tests/unit

setup: $(READY)

# What running needs. torch first and alone: a later resolver step then finds it satisfied and
# looks no further.
$(RUNS): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing recollect and what it needs into $(VENV) (once)"
	@$(call quietly,$(BIN)/python -m pip install -c constraints.txt torch numpy)
	@$(call quietly,$(BIN)/python -m pip install -c constraints.txt -e .)
	@touch $(RUNS)

# What developing needs as well. A name, because a comma inside $(call) would end the argument.
EXTRAS := .[dev,models,oracles,search,cluster,tensorboard,sklearn,river]
$(READY): $(RUNS)
	@echo "Installing the tools of development into $(VENV) (once)"
	@$(call quietly,$(BIN)/python -m pip install -c constraints.txt -e '$(EXTRAS)')
	@touch $(READY)

fmt: $(READY)
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: $(READY)
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

arch: $(READY)
	$(BIN)/lint-imports

golden: $(READY)
	$(BIN)/python -m tests.golden.rewrite

# What pages say of records and of the code; tests fail where it is not so.
docs: $(READY)
	$(BIN)/python -m studies.document
	$(BIN)/python -m scripts.api_page

# docs/performance/speed.md. A run that was stopped continues; `python -m perf --help`.
perf: $(READY) perf-peers
	$(BIN)/python -m perf

# Other libraries, to be timed beside ours: an environment of their own, because what they import
# (torchvision) does not load beside this torch without help.
perf-peers: $(PEERS)/.ready

$(PEERS)/.ready: constraints.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -q -c constraints.txt torch numpy
	$(PEERS)/bin/python -m pip install -q -c constraints.txt avalanche-lib==0.6.0 capymoa==0.15.1
	$(PEERS)/bin/python -m pip install -q -c constraints.txt safetensors jaxtyping river
	touch $(PEERS)/.ready

clean:
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .import_linter_cache build dist
