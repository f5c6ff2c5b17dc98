# Everything starts from a checkout with Python >= 3.11 and make: each target sets up .venv itself.

PYTHON := $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/ready

.PHONY: venv demo format lint quick check docs test

venv: $(READY)

# Installed again only when the dependencies change.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed, as python3.11 or python3." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,demo,docs,fast,mysql,postgres,server,spark]'
	@touch $@

# A real database from start to checked bundle, in under a minute.
demo: $(READY)
	$(BIN)/privbench demo --force

# Write the code in the one format.
format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Style and types.
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# While you work, under half a minute: style, types, and the tests next to what changed.
quick: lint
	@tests=$$($(BIN)/python .ci/changed_tests.py) || exit 1; \
	if [ -z "$$tests" ]; then echo "Nothing changed that has tests next to it."; \
	else echo "pytest $$tests"; $(BIN)/pytest -m 'not slow' --hypothesis-profile few $$tests; fi

# Before every commit, about a minute on two idle cores: style, types, layers and the fast tests.
check: lint
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -n 2 -m 'not slow' --hypothesis-profile few --durations 10 --durations-min 2

# The docs site, in build/site; a broken link or an asset from elsewhere is an error. Needs no network.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	$(BIN)/python .ci/check_site.py build/site

# Everything: all of check, the docs, the slow tests (statistical audits, end-to-end runs, browser, random shapes), and
# properties once more with all their examples.
test: check docs
	$(BIN)/pytest -n 2 -m 'slow or hypothesis'

# make bench-spn-sample runs bench/spn_sample.py.
bench-%: $(READY)
	$(BIN)/python bench/$(subst -,_,$*).py
