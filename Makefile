# make run, make test, make test-long, make fuzz, make coverage, make lint, make weights, make bench: each creates the environment first
# and echoes the real command.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NP     ?= 2

# Tests start the program some hundred times; without its bytecode each start takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-long fuzz coverage lint weights bench clean

# Again where the package or its kernels have changed: old kernels are not used.
$(VENV)/ready: pyproject.toml setup.py $(wildcard app/native/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[mpi,report,test]'
	touch $@

run: $(VENV)/ready
	$(BIN)/mpirun -np $(NP) $(BIN)/python run.py inputs/quickstart.toml --overwrite

# On one rank each with all cores busy, then shares of it on 2, 3 and 4 ranks.
test: $(VENV)/ready
	$(BIN)/python -m pytest -q -n auto --dist worksteal --ignore tests/test_ranks.py
	$(BIN)/python -m pytest -q tests/test_ranks.py

# What takes longer: the tests marked `long` (kills and resumes, damaged files, studies, long commands of the documents,
# more of the suite on 2, 3 and 4 ranks).
test-long: $(VENV)/ready
	LOCKSTEP_LONG=1 $(BIN)/python -m pytest -q -m long --ignore tests/test_ranks.py
	LOCKSTEP_LONG=1 $(BIN)/python -m pytest -q tests/test_resume.py -k again_and_again
	LOCKSTEP_LONG=1 $(BIN)/python -m pytest -q -m long tests/test_ranks.py

# Answers of small instances beside all solutions of them, for a minute; then whole commands drawn from FIRST on for SECONDS, and what
# is wrong with how they end.
FIRST   ?= 100000
SECONDS ?= 600
fuzz: $(VENV)/ready
	$(BIN)/python tests/fuzz_optima.py --seconds 60 --first $(FIRST)
	$(BIN)/python tests/fuzz_commands.py --commands 1000000 --first $(FIRST) --seconds $(SECONDS) --keep fuzzed

# The lines of app/ that the tests run, in whatever process or rank they start; fails below 90 %. Tracing slows what has a limit of
# seconds, so that a test may fail here: whether they pass is for `make test` to say.
coverage: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -e '.[mpi,report,test,coverage]'
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest -q -n auto --dist worksteal --ignore tests/test_ranks.py
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under 90

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

weights: $(VENV)/ready
	for p in mvc mis mds set_cover fvs dismantle clique maxcut maxcut_once tsp; do \
	  $(BIN)/python run.py inputs/weights_$$p.toml --out runs/weights_$$p --overwrite && \
	  cp runs/weights_$$p/weights.npz app/weights/$$p.npz || exit 1; \
	done

clean:
	rm -rf $(VENV) build *.egg-info

bench: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -e '.[mpi,bench]'
	$(BIN)/python bench/speed.py
	$(BIN)/mpirun -np 2 $(BIN)/python bench/speed.py ranks gnn_ranks exact_ranks
