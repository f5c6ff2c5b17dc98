# Everything starts from a checkout with Python >= 3.11 and make: each target sets up .venv itself.

PYTHON := $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/ready

.PHONY: venv demo test check

venv: $(READY)

# Installed again only when the dependencies change.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed, as python3.11 or python3." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,demo]'
	@touch $@

# A real database from start to checked bundle, in under a minute.
demo: $(READY)
	$(BIN)/privbench demo --force

# Style, types, layers and the fast tests.
check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -n 2 -m 'not slow'

# All of check, and the statistical audits and end-to-end runs.
test: check
	$(BIN)/pytest -n 2 -m slow

# make bench-spn-sample runs bench/spn_sample.py.
bench-%: $(READY)
	$(BIN)/python bench/$(subst -,_,$*).py
