# Everything runs from a fresh checkout: the first target that needs the virtual environment
# makes it, and makes it again only when pyproject.toml (or the checkout's path) changes. `make demo`
# installs what it runs; the other targets add the developers' tools.

VENV  := .venv
RUN   := $(VENV)/bin/python
STAMP := $(VENV)/.stamp
PLAIN := $(VENV)/.plain-stamp
CODE  := $(wildcard src tests tools benchmarks examples)
ARGS  ?=
SERVERS ?= quick
# On two cores as well: many tests wait for a process that they have started.
PARALLEL := --numprocesses 4 --dist worksteal
ELSEWHERE := conformance frameworks interop site windows

# The tests start hundreds of interpreters, which would each compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# An editable install points at this folder by its full path: a moved checkout installs again.
ifneq ($(shell cat $(PLAIN) 2>/dev/null),$(CURDIR))
STALE := stale
endif

.DEFAULT_GOAL := help
.PHONY: help venv demo demo-browser demo-service test thorough interop conformance relay-conformance frameworks lint docs screenshots
.PHONY: bench count bench-view trace-soak bench-peers relay-peers daemon requirements ledger walk coverage fuzz hostile release-check audit clean stale

.PHONY: bulk

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

venv: $(STAMP) ## make the virtual environment in .venv

demo: $(PLAIN) ## see a client at work, against a server that comes with it
	@$(RUN) -m holdfast.demo $(ARGS)

demo-browser: $(STAMP) ## drive a real browser by a generated handle (needs chromium and npm)
	@$(RUN) -m examples.browser.demo $(ARGS)

demo-service: $(STAMP) ## a web service under load while its servers are killed
	@$(RUN) -m examples.service.load $(ARGS)

test: $(STAMP) ## run the test suite (ARGS="-k name" for a part of it)
	@$(RUN) -m pytest $(addprefix --ignore=tests/,$(ELSEWHERE)) $(PARALLEL) $(ARGS)

thorough: $(STAMP) ## run whole what `make test` runs in short: all rows of large tables, more examples
	@HOLDFAST_THOROUGH=1 $(RUN) -m pytest -m thorough $(addprefix --ignore=tests/,$(ELSEWHERE)) $(PARALLEL) $(ARGS)

conformance: $(STAMP) ## run the official conformance suite (needs npm)
	@$(RUN) -m pytest tests/conformance $(ARGS)

relay-conformance: $(STAMP) ## the official server scenarios, directly and through the relay (needs npm)
	@$(RUN) -m pytest tests/conformance/test_relay.py $(ARGS)

frameworks: $(STAMP) ## agents of real frameworks while their server dies (installs them in .cache)
	@$(RUN) -m pytest tests/frameworks $(ARGS)
	@$(RUN) -m tests.frameworks.page

interop: $(STAMP) ## try servers that others wrote (installs them in .cache; SERVERS=all: heavy ones too)
	@HOLDFAST_INTEROP=$(SERVERS) $(RUN) -m pytest tests/interop $(PARALLEL) $(ARGS)

lint: $(STAMP) ## check style, formatting and types, for three systems
	@$(RUN) -m ruff check $(CODE)
	@$(RUN) -m ruff format --check $(CODE)
	@$(RUN) -m mypy --strict $(CODE)
	@$(RUN) -m mypy --strict --platform darwin --cache-dir .mypy_cache/darwin src
	@$(RUN) -m mypy --strict --platform win32 --cache-dir .mypy_cache/win32 src

docs: $(STAMP) ## build the documentation site into build/site, and look at its pages in Chromium
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet
	@$(RUN) -m pytest tests/site $(ARGS)

screenshots: $(STAMP) ## every page of the site in Chromium, at two widths, into build/screenshots
	@$(RUN) -m tools.screenshots $(ARGS)

bench: $(STAMP) ## measure speed
	@$(RUN) benchmarks/run.py $(ARGS)

count: $(STAMP) ## instructions of a start, a connection, a call (needs valgrind; ARGS="--against TREE")
	@$(RUN) -m benchmarks.instructions $(ARGS)

bench-view: $(STAMP) ## measure the page of a trace in Chromium: 100,000 messages
	@$(RUN) -m benchmarks.view $(ARGS)

trace-soak: $(STAMP) ## trace 1,000 messages a second: none dropped, no growth (SECONDS=600)
	@$(RUN) -m benchmarks.view --steady $(or $(SECONDS),600)

bench-peers: $(STAMP) ## measure other clients beside it, and how each takes a fault (installs them in .cache)
	@$(RUN) benchmarks/peers/run.py $(ARGS)

relay-peers: $(STAMP) ## what passes through this relay, and through those of others (installs them in .cache)
	@$(RUN) -m benchmarks.relay_peers.main $(ARGS)

daemon: $(STAMP) ## many hosts on one daemon while everything is killed (ARGS="--hosts 50 --seconds 300")
	@$(RUN) -m tools.daemon_soak $(ARGS)

walk: $(STAMP) ## the functions that one call runs, in order (ARGS="stdio", ARGS=--summary)
	@$(RUN) -m tools.walk $(ARGS)

coverage: $(STAMP) ## the pure core at 100 % of branches (ARGS=--all: the whole suite, every module)
	@$(RUN) -m tools.coverage $(ARGS)

fuzz: $(STAMP) ## try the framing and the decoder with inputs of any kind (ARGS="--seconds 60 events")
	@$(RUN) -m tools.fuzz $(ARGS)

bulk: $(STAMP) ## a map over many rows, killed and resumed; its speed and memory (ARGS="--rows 100000")
	@$(RUN) -m tools.bulk $(ARGS)

hostile: $(STAMP) ## measure schemas that were made to take long (ARGS="--seed 7 --count 5000")
	@$(RUN) -m tools.hostile $(ARGS)

release-check: $(STAMP) ## build the wheel and the sdist, and try them with the sources out of the way
	@$(RUN) -m tools.release $(ARGS)

audit: $(STAMP) ## ask for known vulnerabilities in what Holdfast brings along
	@$(RUN) -m tools.audit $(ARGS)

ledger: $(STAMP) ## kill processes at every step of the ledger, and count what ran (needs redis-server)
	@$(RUN) -m tools.ledger $(ARGS)

# What other systems do, as far as Linux can show it. SHORT=1 leaves the heavy suites out.
PORTABLE := tests/transports/test_child.py tests/transports/test_contract.py tests/transports/test_stdio.py tests/faults tests/soak
THREADED := tests/interop/test_everything.py tests/conformance/test_relay.py
ifeq ($(SHORT),)
PORTABLE += tests/cli tests/test_client.py tests/sync tests/servers
THREADED := tests/interop tests/conformance
endif

.PHONY: platforms
platforms: $(STAMP) ## the suites over threads and without what only Linux has; jobs under Wine (needs npm)
	@$(RUN) -m pytest tests/windows $(ARGS)
	@HOLDFAST_STDIO_THREADS=1 $(RUN) -m pytest $(PORTABLE) $(PARALLEL) $(ARGS)
	@HOLDFAST_STDIO_THREADS=1 HOLDFAST_INTEROP=$(SERVERS) $(RUN) -m pytest $(THREADED) $(PARALLEL) $(ARGS)
	@HOLDFAST_PLAIN_POSIX=1 $(RUN) -m pytest $(PORTABLE) $(PARALLEL) $(ARGS)

requirements: $(STAMP) ## each requirement with the tests that prove it
	@$(RUN) tools/requirements.py $(ARGS)

clean: ## remove everything that was made here
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Prints the first Python that will do; PYTHON=/path/to/python chooses one.
define FIND_PYTHON
found=; lacking=; \
if [ -n "$$PYTHON" ]; then set -- "$$PYTHON"; \
else set -- python3.14 python3.13 python3.12 python3.11 python3 python; fi; \
for candidate do \
  "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
  if "$$candidate" -c 'import ensurepip, venv' 2>/dev/null; then found=$$candidate; break; fi; \
  lacking=$$candidate; \
done; \
if [ -z "$$found" ] && [ -n "$$lacking" ]; then \
  version=$$("$$lacking" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
  echo "make: $$lacking is new enough but cannot make virtual environments (no ensurepip)." >&2; \
  echo "make: on Debian or Ubuntu: sudo apt install python$$version-venv" >&2; \
  exit 1; \
fi; \
if [ -z "$$found" ]; then \
  echo "make: no Python 3.11 or newer found (tried: $$*)." >&2; \
  echo "make: install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; \
  exit 1; \
fi
endef

export PYTHON
export HERE := $(CURDIR)

$(PLAIN): pyproject.toml $(STALE)
	@if ! $(RUN) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  $(FIND_PYTHON); \
	  echo "make: setting up $(VENV) with $$("$$found" --version)"; \
	  "$$found" -m venv --clear $(VENV); \
	fi
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable .
	@printf '%s\n' "$$HERE" > $@

$(STAMP): $(PLAIN)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@printf '%s\n' "$$HERE" > $@
