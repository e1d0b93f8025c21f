# Each target sets up what it needs. `make demo` converts and verifies a model; `make test` runs the tests.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check slow docs site snapshots bench ops zoo fuzz compat versions tables clean help

help: ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $(READY)

demo: $(READY) ## teach, convert and verify a small DialoGPT-shaped model, and let it answer
	mkdir -p build
	$(BIN)/python -m torchferry.demo_dialogue build/dialogpt
	$(BIN)/torchferry export hf:build/dialogpt -o build/dialogpt-onnx/
	echo "what do you do?" | $(BIN)/torchferry chat build/dialogpt-onnx --greedy

test: $(READY) ## lint, types, and all tests but the slow sweeps
	$(BIN)/ruff check src tests benchmarks website
	$(BIN)/ruff format --check src tests benchmarks website
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow and not compat"

check: $(READY) ## lint, types, and the tests that take no model across
	$(BIN)/ruff check src tests benchmarks website
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py tests/test_public_api.py tests/report
	@wc -l $$(git ls-files 'src/*.py') | sort -n | tail -8

slow: $(READY) ## the sweeps that take minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m slow

docs: $(READY) ## rewrite the generated pages and the snapshots of the reports
	$(BIN)/python -m torchferry.report.docs docs
	$(BIN)/python -m pytest tests/report --snapshot-update -k words

SITE := build/site-venv
site: ## build the documentation as pages in build/site, readable from disk, and look for dead links
	test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --requirement website/requirements.txt
	$(SITE)/bin/python -m mkdocs build --strict --quiet
	$(SITE)/bin/python website/check.py build/site

snapshots: $(READY) ## rewrite what each diagnosis says of its bad example; ONLY=CAP001 for one of them
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/catalogue --snapshot-update -k "these_words and $(or $(ONLY),bad)"

bench: $(READY) ## time and memory beside plain torch.onnx.export, as ratios
	$(BIN)/python benchmarks/export.py

ops: $(READY) ## sweep torch's operator database and write docs/operators.md
	$(BIN)/python benchmarks/ops.py docs/operators.md

zoo: $(READY) ## convert small models of many architectures and write docs/architectures.md; timm and others where installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/architectures.py docs/architectures.md

fuzz: $(READY) ## read thousands of broken and hostile files
	$(BIN)/python benchmarks/fuzz.py

compat: $(READY) ## run our files in real old onnxruntime releases, and in optimum
	$(BIN)/python -m pytest -m compat

RELEASES ?= torch==2.12.0 torch==2.14.0 torch==2.15.0
versions: $(READY) ## run the tests with other releases (some 5 GB for each torch), and write docs/versions.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/versions.py $(RELEASES)

tables: $(READY) ## ask the wheels of every onnxruntime release what it implements, and write the table anew
	$(BIN)/python benchmarks/release_kernels.py

clean: ## remove the virtual environment and what was built
	rm -rf .venv build
