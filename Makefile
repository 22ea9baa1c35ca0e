# heed: one command each. Everything lands in .venv; nothing outside this folder is touched.
#
#   make demo    install, then train a small translator on the built-in corpus (minutes)
#   make test    install, then run the tests, one real training among them
#   make check   format, lint, strict types, walls, and every code block of the docs
#   make learn   the slow tests: tasks that must be learnt to a stated score
#   make format  let ruff mend what it can
#
# Another Python: make demo PYTHON=python3.13        Another place: make test VENV=/tmp/heed
# Any index that your pip knows is used. For the small CPU build of torch on Linux, put
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu before the command.

VENV ?= .venv
BIN = $(VENV)/bin
# The first interpreter that is new enough; 3.11 leads because constraints.txt was made with it.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
# Small tensors on many threads wait for one another: one thread for each of two workers is faster.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2
SOURCES = src tests

.PHONY: help demo test check learn format

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.train
	$(BIN)/heed demo

test: $(VENV)/.dev
	$(PYTEST)

learn: $(VENV)/.dev
	$(PYTEST) -m slow

check: $(VENV)/.dev
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) tests/test_architecture.py tests/docs

format: $(VENV)/.dev
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

# A stamp says which extras are installed; it is older than pyproject.toml when they may have changed.
$(VENV)/.train $(VENV)/.dev: $(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[$*]'
	@touch $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
	  echo "heed needs Python 3.11 or newer, and none of python3.11, python3, python3.12, python3.13," \
	    "python is. Install one, or name it: make demo PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "heed needs Python 3.11 or newer, but $(PYTHON) is Python " + sys.version.split()[0] + ". Name another one: make demo PYTHON=/path/to/python3.11")'
	"$(PYTHON)" -m venv $(VENV)
