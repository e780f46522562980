# Two commands do everything: `make demo` shows what Downclock does, `make test` checks it.
PYTHON ?= python3
BIN := .venv/bin
WORKERS := $(shell expr $$(nproc) + 1) # a core more than there is: some tests wait

.PHONY: demo test golden cluster-test compiled lint fuzz lock bench docs clean

demo: .venv/ready
	$(BIN)/downclock demo out

# The checks of lint take a core while the longest loops of all keep the other.
test: .venv/ready
	$(MAKE) --jobs 2 --output-sync lint compiled
	$(BIN)/python -m pytest -n $(WORKERS)

# Policies that between them use all compiled loops: the slowest to compile first, and thrifty last,
# as most of its loops are late's.
EVERY := late least-cost known graph edl bin replan thrifty
compiled: .venv/ready
	$(BIN)/downclock compile $(EVERY)

# What every policy does, bit for bit; `make test` asks a fifth of it.
golden: compiled
	DOWNCLOCK_GOLDEN=all $(BIN)/python -m pytest -n $(WORKERS) tests/golden

# Against a real Slurm on loopback (packages slurmctld slurmd slurm-client munge, as root). It keeps
# real time; the two longest come first, each beside the others.
cluster-test: export DOWNCLOCK_CLUSTER = 1
cluster-test: .venv/ready
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder tests/cluster

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Odd inputs of every format, read, planned and judged: make fuzz COUNT=1000 SEED=7
COUNT ?= 50000
SEED ?= $(shell date +%s)
fuzz: .venv/ready
	$(BIN)/python -m tests.fuzz --count $(COUNT) --seed $(SEED)

# One environment, from pinned and hashed versions.
.venv/ready: requirements/lock.txt requirements/uv.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements/lock.txt requirements/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

# Pins and hashes only: no address of any index.
lock:
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --all-extras --group dev --group docs pyproject.toml --output-file requirements/lock.txt

bench: .venv/ready
	$(BIN)/python -m benchmarks

docs: .venv/ready
	$(BIN)/python -m benchmarks.readme_picture
	$(BIN)/python -m benchmarks.page_pictures
	$(BIN)/python -m benchmarks.known_ablation --picture
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv out site
	find src -name 'kernels-*' -path '*/__pycache__/*' -exec rm -rf {} +
