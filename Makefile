# The targets that people use; each sets up what it needs first (tools/setup.sh is idempotent).
SHELL := /bin/bash
OPEN ?= 1
SABOTAGE ?= weight
PY := .venv/bin/python
# Tests and tools find the product here.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help setup setup-test setup-deep setup-all demo test test-ci test-all test-deep test-versions wheels unit asan tsan pytest golden e2e web-test bench lint docs fuzz-quick format clean

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 14

setup:  ## what building needs; the product in .venv
	@tools/setup.sh

setup-test:
	@tools/setup.sh test

setup-deep:
	@tools/setup.sh deep

setup-all:
	@tools/setup.sh all

demo: setup  ## two runs of a real model captured, compared, and shown in the browser (OPEN=0: only built)
	@$(PY) examples/quickstart/demo.py --out out/demo --sabotage $(SABOTAGE) $(if $(filter 0,$(OPEN)),--no-serve)

test: setup-test  ## what proves that the product works here; a quarter of an hour on two cores
	@tools/run_tests.sh

test-ci: setup-deep  ## of the rest, what CI runs on every change (tests/tiers.py)
	@tools/run_tests.sh chosen

test-all: setup-all  ## the rest: mindstudio-probe, all models and pages, sanitizers, fuzzing; three quarters of an hour
	@tools/run_tests.sh deep

test-deep: test-all

test-versions: setup  ## pairs of Python and PyTorch, releases of MindSpore: installs gigabytes, one at a time; PAIRS="3.9:2.0.1 ..."
	@$(PY) tests/versions/matrix.py $(PAIRS)

wheels:  ## wheels for x86-64 and AArch64 that load on real hosts: out/wheels (tools/release.md); an hour on two cores
	@tools/setup.sh wheels && nice .venv-wheels/bin/python tools/wheels/build.py

unit: setup-test  ## C++ unit tests of a release build
	@cmake --preset release >build/release.log || (cat build/release.log; exit 1)
	@cmake --build --preset release 2>&1 | tail -n 3
	@ctest --preset release -j 2 --output-on-failure 2>&1 | tail -n 4

asan: setup-test  ## unit tests under AddressSanitizer and UBSan
	@cmake --preset asan >build/asan.log && cmake --build --preset asan 2>&1 | tail -n 3 && ctest --preset asan -j 2 2>&1 | tail -n 4

tsan: setup-test  ## threaded unit tests under ThreadSanitizer
	@cmake --preset tsan >build/tsan.log && cmake --build --preset tsan 2>&1 | tail -n 3 && ctest --preset tsan -j 2 2>&1 | tail -n 4

pytest: setup-deep
	@$(PY) -m pytest tests/python tests/golden tests/conformance -q

e2e: setup-deep demo-data  ## the page in a real browser
	@node --test tests/e2e/*.test.mjs

demo-data: setup
	@$(PY) examples/quickstart/demo.py --out out/demo --no-serve

bench: setup-deep  ## both tools in one run on the same data; prints the ratios
	@$(PY) bench/run.py

lint: setup-test  ## format, static checks, layering
	@tools/lint.sh

docs:  ## the documents as a site with search, in both languages: out/site/index.html
	@tools/setup.sh docs && tools/docs/build.sh

fuzz-quick: setup-test  ## every fuzz target for some seconds
	@tools/fuzz.sh 20

format:  ## apply clang-format and ruff
	@git ls-files 'src/*.h' 'src/*.cc' 'include/*.h' 'tests/fuzz/*.cc' 'tests/consumer/*.cc' | xargs clang-format -i
	@$(PY) -m ruff format python tests tools bench examples && $(PY) -m ruff check --fix -q python tests tools bench examples

clean:  ## build results (the environments stay)
	rm -rf build out web/dist
