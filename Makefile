# heed: one command each. Everything lands in .venv; nothing outside this folder is touched.
#
#   make demo         install, then train a small translator on the built-in corpus (minutes)
#   make test         install, then run the tests, a short training among them
#   make check        format, lint, strict types, spelling, imports between packages, names in docs
#   make lint         the same without its tests, which are part of make test
#   make docs         the documentation as a site, in site/; a broken link is an error
#   make claims       write into docs/claims.md which tests prove which claim
#   make package      the release: source archive and wheel, installed into an empty venv and used
#   make reliability  slower tests: faults, kills, full disks, several processes
#   make soak         the engine compiled with sanitizers: its tests, then make fuzz; and a server
#                     under many requests, whose memory is measured
#   make fuzz         random input for that engine, for FUZZ_SECONDS=300
#   make learn        all slow tests, also tasks that must be learned to a stated score
#   make format       let ruff fix what it can
#
# Another Python: make demo PYTHON=python3.13        Another place: make test VENV=/tmp/heed
# Packages come from the index that pip is set to. For the small CPU build of torch on Linux:
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make demo

VENV ?= .venv
BIN = $(VENV)/bin
# The first interpreter that is new enough; 3.11 leads because constraints.txt was made with it.
CANDIDATES = python3.11 python3 python3.12 python3.13 python
NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in $(CANDIDATES); do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$python && break; done)
PYTEST = $(BIN)/python -m pytest -n 2
SOURCES = src tests benchmarks docs/reference.py hatch_build.py
ENGINE = hatch_build.py $(wildcard engine/*)

.PHONY: help demo test check lint docs claims package reliability soak fuzz learn format

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.train
	$(BIN)/heed demo

test: $(VENV)/.dev
	$(PYTEST)

reliability: $(VENV)/.dev
	$(PYTEST) -m reliability

SANITIZE = -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -DHEED_SANITIZED
soak: $(VENV)/.dev
	$(BIN)/python hatch_build.py $(VENV)/libheed-sanitized.so $(SANITIZE)
	HEED_LIBRARY=$(VENV)/libheed-sanitized.so ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libstdc++.so.6)" \
	  $(BIN)/python -m pytest -p no:xdist tests/engine tests/model/fast tests/vectors/test_word2vec.py
	$(BIN)/python -m pytest -p no:xdist -m slow tests/serve/test_soak.py
	$(MAKE) fuzz

# With clang, libFuzzer looks for inputs that reach new code; without it, inputs are random bytes.
FUZZ_SECONDS ?= 300
FUZZED = $(VENV)/libheed-fuzzed.so
FUZZ_FLAGS = $(SANITIZE) -std=c++17 -pthread tests/engine/fuzz.cpp $(FUZZED) \
  -Wl,-rpath,$(abspath $(VENV)) -o $(VENV)/fuzz
fuzz: $(BIN)/pip
	@mkdir -p $(VENV)/fuzzed
	@if echo 'extern "C" int LLVMFuzzerTestOneInput(void *, long) { return 0; }' | \
	  clang++ -fsanitize=fuzzer -x c++ - -o $(VENV)/fuzz 2>/dev/null; then set -ex; \
	  CXX=clang++ $(BIN)/python hatch_build.py $(FUZZED) $(SANITIZE) -fsanitize=fuzzer-no-link; \
	  clang++ $(FUZZ_FLAGS) -fsanitize=fuzzer; \
	  $(VENV)/fuzz -max_len=400 -len_control=0 -timeout=60 -max_total_time=$(FUZZ_SECONDS) \
	    -verbosity=0 -print_final_stats=1 -artifact_prefix=$(VENV)/fuzzed- $(VENV)/fuzzed; \
	else echo "There is no clang++ with libFuzzer here, so the inputs are random bytes."; set -ex; \
	  $(BIN)/python hatch_build.py $(FUZZED) $(SANITIZE); \
	  c++ $(FUZZ_FLAGS) -DHEED_RANDOM; \
	  $(VENV)/fuzz $(FUZZ_SECONDS); \
	fi

learn: $(VENV)/.dev
	$(PYTEST) -m slow

check: lint
	$(PYTEST) tests/test_architecture.py tests/docs/test_names.py

lint: $(VENV)/.dev
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

claims:
	$(PYTHON) tests/docs/claims.py

package: $(VENV)/.dev
	$(BIN)/python tests/package.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

# The stamp .train or .dev says which extra is installed; make renews it when the pins change.
$(VENV)/.train $(VENV)/.dev: $(VENV)/.%: pyproject.toml constraints.txt $(ENGINE) | $(BIN)/pip
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

$(BIN)/pip:
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || { echo "heed needs Python 3.11 or newer," \
	  "but found '$(PYTHON)'. Name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
