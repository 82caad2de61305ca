# `make demo` and `make test` set up what they need, in .venv, and need nothing else but Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

BENCHMARKS := budgets chain grouped_steps no_effect predict ranking_time reproduce scaling start steps

.PHONY: demo test lint docs bench inventory wheel clean

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "augury needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

demo: $(VENV)/.demo  ## rank augmentations on 1,000 real MNIST digits
	$(BIN)/augury rank mnist1k --epochs 30 --effort 5 --json ranking.json --report report.html

test: $(VENV)/.dev  ## run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.dev  ## lint, formatting, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

docs: $(VENV)/.docs  ## build the documentation into docs/_build
	$(BIN)/sphinx-build -W -q -b html docs docs/_build

bench: $(VENV)/.dev  ## run the benchmarks in their quick form, into build/benchmarks
	for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py --quick || exit 1; done

inventory: $(VENV)/.dev  ## list the public names, for the test that compares them
	$(BIN)/python tests/api_inventory.py

wheel: $(VENV)/.dev  ## build the wheel and the sdist, check them and try the wheel on its own
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/python .ci/try_wheel.py dist/*.whl

clean:
	rm -rf $(VENV) dist docs/_build report.html ranking.json
