# Everything a contributor types. `make` alone prints this list.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
RUN_STAMP := $(VENV)/.installed-run
SERVICES := $(PY) -m scripts.services
# More than half of the time a test waits for a process, so four of them keep two cores busy.
# The order of the files is that of tests/order.py.
PYTEST := $(PY) -m pytest -n 4 --dist loadfile --no-loadscope-reorder

# Runs the tests after it, and explains every statement that the product sent; folders that reach nearly all.
# Part of every whole `make test`; with ARGS, which run some tests, nothing is recorded.
STATEMENTS := $(PY) -m tests.statements
REACHING := tests/conformance tests/fundamentals tests/api tests/jobs tests/money tests/actions tests/webhooks tests/moving tests/indexing

# A process that may keep no bytecode compiles all of Holdfast at every start, and tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install run demo test integrations deploy-check matrix lint docs simulate fuzz mutants bench chaos services-up services-down services-status lock clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F '\t' '{printf "  make %-16s %s\n", $$1, $$2}'

install: $(STAMP) ## make .venv from the lock (again when pyproject.toml or the lock change)

$(STAMP): pyproject.toml requirements.lock scripts/install.sh
	@PYTHON='$(PYTHON)' VENV='$(VENV)' bash scripts/install.sh
	@touch $(STAMP) $(RUN_STAMP)

# What is needed to run it, and no tools; `make install` adds those to the same environment.
$(RUN_STAMP): pyproject.toml requirements-run.lock scripts/install.sh
	@PYTHON='$(PYTHON)' VENV='$(VENV)' bash scripts/install.sh requirements-run.lock
	@touch $(RUN_STAMP)

run: $(RUN_STAMP) ## serve the API and the web UI with a worker and a sample collection, on the embedded default
	@$(VENV)/bin/holdfast up --sample

demo: $(RUN_STAMP) ## kill, freeze and double-click real workers, then print both bills
	@$(VENV)/bin/holdfast demo

test: lint ## lint, then every test against private PostgreSQL, Redis and RabbitMQ, then the plan of every statement they met
	@$(SERVICES) run -- $(if $(ARGS),,$(STATEMENTS) --whole --) $(PYTEST) -m 'not long' $(ARGS)

integrations: install ## the retrievers against LangChain's own suite and LlamaIndex, in an environment of its own (.venv/integrations)
	@$(VENV)/bin/uv venv -q --allow-existing --python $(PY) $(VENV)/integrations
	@$(VENV)/bin/uv pip install -q --python $(VENV)/integrations/bin/python -c requirements.lock -e '.[all]' --group dev --group integrations
	@$(VENV)/integrations/bin/python -m pytest -p no:cacheprovider -o filterwarnings= -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function tests/integrations

deploy-check: install ## the files below deploy/ by the tools that will read them, in an environment of its own (.venv/deploy)
	@$(VENV)/bin/uv venv -q --allow-existing --python $(PY) $(VENV)/deploy
	@$(VENV)/bin/uv pip install -q --python $(VENV)/deploy/bin/python -r deploy/requirements-check.txt
	@$(PY) -m scripts.deploy_check

matrix: install ## the tests of the library with other releases of Python, Celery, SQLAlchemy and LLM clients (ARGS="--only celery5.4")
	@$(PY) -m scripts.matrix $(ARGS)

statements: install ## explain every statement of the product, as the quicker tests send them, on databases with 100,000 rows
	@$(SERVICES) run -- $(STATEMENTS) --verbose -- $(PYTEST) -m 'not long and not slow and not chaos' $(or $(ARGS),$(REACHING))

lint: install ## ruff, mypy, import contracts, ratchet
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports --no-cache
	@$(PY) -m scripts.ratchet

docs: install ## write the generated pages of docs/reference again
	@$(PY) -m scripts.reference

simulate: install ## explore interleavings; SEED=123 replays one
	@$(PY) -m tests.simulation $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz: install ## feed hostile texts to every parser and cutter; time and memory must grow no faster than the text (ARGS='--seed 7')
	@$(PY) -m tests.fuzz $(ARGS)

mutants: install ## break the protocol on purpose; every mutant must be caught
	@$(SERVICES) run -- $(PY) -m tests.mutants $(ARGS)

bench: install ## measure on this machine, beside the peers (ARGS=--quick for a short look; PART=workers, indexing, search or api)
	@$(SERVICES) run -- $(PY) -m bench.$(or $(PART),core) $(ARGS)

soak: install ## let an installation of 100,000 chunks live for 10 minutes on each database; all must stay flat (ARGS="--minutes 3")
	@$(SERVICES) run -- $(PY) -m bench.soak $(ARGS)

chaos: install ## break real workers on every broker and print what it cost (ARGS="--only 2 --stack redis")
	@$(SERVICES) run -- $(PY) -m tests.acceptance $(ARGS)
	@$(if $(ARGS),:,$(SERVICES) run -- $(PYTEST) -m long)

services-up: install ## start private PostgreSQL, Redis and RabbitMQ, and leave them up
	@$(SERVICES) up

services-down: install ## stop what services-up started
	@$(SERVICES) down

services-status: install ## say what is up and where
	@$(SERVICES) status

# The lock pins by hash and names no host, so that any index can serve it. uv.lock does name hosts: never kept.
lock: install ## resolve pyproject.toml into both locks again (ARGS=--upgrade for newer releases)
	@bash scripts/lock.sh $(ARGS)

clean: ## stop the services, remove the environment and every cache
	@if [ -x $(PY) ]; then $(SERVICES) down; fi
	rm -rf $(VENV) .venv-peers .venv-peers-indexing .services .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
