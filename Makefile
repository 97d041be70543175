# Two commands do everything on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/written_form
EXPORTS ?= $(RUN)_exports
JAVASCRIPT := export/runtimes/javascript

export TF_CPP_MIN_LOG_LEVEL ?= 3

# So that a client that fails in a pipe fails the target.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: demo test lint parity clean

# Installs, trains the written-form model (once), exports it and translates
# with the export.
demo: $(VENV)/demo
	test -e $(RUN) || \
	  $(VENV)/bin/python recipes/written_form.py --output $(RUN)
	for format in saved_model onnx; do \
	  test -e $(EXPORTS)/$$format || \
	    $(VENV)/bin/keras-transformer export $(RUN) $(EXPORTS) --to $$format; \
	done
	$(VENV)/bin/python export/runtimes/python_onnxruntime.py \
	  $(EXPORTS)/onnx < recipes/written_form.txt | \
	  paste recipes/written_form.txt -

# Installs and runs the linter and all tests; those of Node, if npm is here.
test: lint $(JAVASCRIPT)/node_modules/ready
	$(VENV)/bin/python -m pytest --numprocesses auto --dist loadfile \
	  --no-loadscope-reorder

lint: $(VENV)/all
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

# Decodes with exports of RUN in every runtime that is here, each without this
# package, and compares with the Translator.
parity: $(VENV)/all $(JAVASCRIPT)/node_modules/ready
	$(VENV)/bin/python -m export.parity $(RUN)

clean:
	rm -rf $(VENV) .venvs $(JAVASCRIPT)/node_modules build dist *.egg-info .pytest_cache .ruff_cache

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo: $(VENV)/bin/pip setup.cfg pyproject.toml
	$(VENV)/bin/pip install -q -e '.[export]'
	touch $@

$(VENV)/all: $(VENV)/bin/pip setup.cfg pyproject.toml
	$(VENV)/bin/pip install -q -e '.[all]'
	touch $@

$(JAVASCRIPT)/node_modules/ready: $(JAVASCRIPT)/package.json
	if command -v npm > /dev/null; then \
	  npm install --prefix $(JAVASCRIPT) --ignore-scripts --no-package-lock \
	    --no-audit --no-fund && touch $@; \
	fi
