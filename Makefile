# Everything happens in .venv; PYTHON names the interpreter that makes it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEVELOPED := .venv/.developed

.PHONY: install develop demo test quick lint format docs bench wheel clean

install: $(INSTALLED)  ## what the recipes need

develop: $(DEVELOPED)  ## what the tests and the documentation need, too

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Argonaut needs Python 3.11 or later, not " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

$(DEVELOPED): $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[demo,dev,docs]'
	@touch $@

SPEECH = examples/speech.flac

demo: install  ## recognise a recording, then synthesise a TIMIT-shaped corpus, train, decode, score
	$(BIN)/argonaut transcribe en $(SPEECH) --grammar examples/robot.jsgf
	$(BIN)/argonaut recipe timit --out exp/demo --size demo

test: develop  ## lint, import contract, documentation, every test
	$(MAKE) --jobs=2 lint docs
	$(BIN)/pytest -n 2 --dist worksteal

quick: lint  ## lint and the tests not marked slow
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

lint: develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: develop
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: develop  ## the documentation site in build/docs; a warning is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d build/doctrees . build/docs
	@echo "documentation: build/docs/index.html"

AN4 ?= exp/an4
bench: install  ## side by side with PyTorch, kaldi-native-fbank and kaldi-decoder
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m benchmarks $(AN4)

wheel:  ## build what is released, install it in an environment of its own, and run it there
	rm -rf dist build/release
	$(PYTHON) -m venv build/release/tools
	build/release/tools/bin/pip install --quiet --disable-pip-version-check build twine
	build/release/tools/bin/python -m build
	build/release/tools/bin/twine check --strict dist/*
	$(PYTHON) -m venv build/release/installed
	build/release/installed/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/release && installed/bin/argonaut --version && installed/bin/argonaut recipe simple2d --out simple2d

clean:
	rm -rf .venv exp build dist docs/reference/api *.egg-info
