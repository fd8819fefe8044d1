# Each target sets up what it needs in .venv; a second run finds it there and downloads nothing.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

demo: .venv/.core
	$(BIN)/course demo

test: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/pytest tests -n 2 -q
	$(BIN)/pytest modules --submission solutions --parts solutions -q

.venv/.made:
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'Python 3.11 or newer is needed, this is ' + sys.version"
	$(PYTHON) -m venv .venv
	touch $@

.venv/.core: .venv/.made pyproject.toml
	$(BIN)/pip install --quiet --editable .
	$(BIN)/python -c "import matplotlib.font_manager"  # builds its font cache now, not in a notebook's first cell
	touch $@

.venv/.dev: .venv/.core
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv build *.egg-info .course
