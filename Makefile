# Every target sets up what it needs in .venv, from python3, pip and make alone.
#
#   make setup    fill .venv, as every other target does first
#   make demo     train a classifier and see the dispatcher explain itself
#   make test     the fast selection of the tests, in a few minutes
#   make test-all all tests that need neither torch nor a GPU
#   make sweeps   random programs in large numbers          make seconds  record the CPU time of each test
#   make lint     ruff, mypy                                make format   apply ruff's formatting
#   make core-alone  the dispatcher's own tests, with nothing else installed
#   make wheels   build every sdist and wheel, test each in an environment of its own
#   make release  files as for PyPI: wheels for every Linux, checked   (docs/release.md)
#   make oracle   compare with PyTorch (installs it)        make bench    ratios of the call costs
#   make docs     the documentation site, docs/_build/html/index.html
#   make codegen  write the generated code anew             make freeze   list what is installed, as constraints.txt has it
#   make clean    remove all that these made

PYTHON ?= python3
PY     := .venv/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check
# The build of core lists the public names of all plugins, which the build of plugins/aten makes: that goes first.
LOCAL  := plugins/aten core $(filter-out plugins/aten,$(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml tools/*/pyproject.toml)))
PROJECTS := pyproject.toml $(addsuffix /pyproject.toml,$(LOCAL))
# What is compiled, and what says how; not the header that they make, for that would ask for another set-up.
SOURCES := setup.cfg $(filter-out %/native/expressions.h,$(wildcard setup.py */setup.py */*/setup.py */*/src/*/plugin.toml plugins/*/src/*/*.c plugins/*/src/*/native/* plugins/arrays/src/turnout_arrays/expressions.*))
EXTRAS_plugins/aten := [yaml]
EXTRAS_plugins/autograd := [svg,yaml]
EXTRAS_plugins/dask := [distributed,zarr]
EXTRAS_plugins/nn := [safetensors]
EXTRAS_plugins/opencl := [pocl]
EXTRAS_tools/cli := [demo,plot]
# What the tests of wheels install with them: the README's programs ask for it.
INDEX_plugins/aten := [yaml]
INDEX_plugins/autograd := [svg]
INDEX_plugins/nn := [safetensors]
INDEX_tools/cli := [demo]
# It takes as long to compile as all others to install, and none of them asks for it: installed beside them.
SLOW := plugins/kernels
EDITABLE := $(foreach d,$(filter-out $(SLOW),$(LOCAL)),-e "./$(d)$(EXTRAS_$(d))")
# Tests on all cores; ARGS="-n 0" runs them in one process. `make test ARGS="--selection rest"` is what `make test-all` adds.
SHARED := -q -n auto --dist worksteal -o console_output_style=classic
TOOLS  := array-api-strict hypothesis ipython mypy "pyright[nodejs]" pytest pytest-timeout pytest-xdist ruff types-PyYAML

.PHONY: help setup demo test test-all sweeps seconds core-alone bench oracle lint format wheels release docs codegen freeze clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

setup: .venv/.stamp-generated

# Debian's python3 comes without ensurepip, which venv needs; its pip can fill the environment instead.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "turnout needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1). Use: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv .venv 2>/dev/null \
	  || { $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python $(PY) install -q pip; } \
	  || { rm -rf .venv; echo "$(PYTHON) can make no virtual environment: install python3-venv, or pip 22.3 or later" >&2; exit 1; }

# The root has no code to edit: installed as it is, for an editable install of nothing would be an import hook that every start
# of the interpreter pays for. Alone, because it requires the folders, which would then not be editable.
.venv/.stamp-install: $(PROJECTS) $(SOURCES) constraints.txt | $(PY)
	@echo "set-up 1 of 3: pip, setuptools, PyYAML and NumPy"
	$(PIP) install -q -c constraints.txt pip setuptools PyYAML numpy
	@echo "set-up 2 of 3: $(words $(LOCAL)) distributions from this tree, compiled modules among them, and tools: a minute or more"
	@$(PIP) install -q --no-build-isolation --no-deps -e ./$(SLOW) & slow=$$!; \
	$(PIP) install -q --no-build-isolation -c constraints.txt $(EDITABLE) $(TOOLS); others=$$?; \
	wait $$slow && exit $$others
	@echo "set-up 3 of 3: turnout itself"
	$(PIP) install -q --no-build-isolation --no-deps .
	@rm -rf build turnout.egg-info
	@.venv/bin/pyright --version > /dev/null  # its first run downloads it, which no test should do
	@touch $@

# Installing builds what is generated. This does it again, which is quick, after any change of code that it may be made of or by.
CODE := $(shell find core/src plugins/*/src tools/*/src -name generated -prune -o \( -name '*.py' -o -name '*.yaml' \) -print)
.venv/.stamp-generated: .venv/.stamp-install $(filter-out %/known_packages.py,$(CODE))
	$(MAKE) codegen
	@touch $@

.venv/.stamp-oracle: .venv/.stamp-generated
	$(PIP) install -q -c constraints.txt torch expecttest
	@touch $@

demo: .venv/.stamp-generated
	.venv/bin/turnout demo $(ARGS)

test: .venv/.stamp-generated
	@$(PY) -m pytest $(SHARED) --selection fast $(ARGS)

test-all: .venv/.stamp-generated
	@$(PY) -m pytest $(SHARED) $(ARGS)

sweeps: .venv/.stamp-generated
	@$(PY) -m pytest $(SHARED) -o timeout=7200 -o faulthandler_timeout=7300 --selection sweeps --many $(ARGS)

# The record from which the fast selection is chosen: on an idle machine, after tests were added or changed.
seconds: .venv/.stamp-generated
	@$(PY) -m pytest $(SHARED) --record-seconds $(ARGS)

# The dispatcher in an environment with no plugin, no NumPy and nothing to spread tests with.
core-alone: .venv-core/.stamp-install
	.venv-core/bin/python -m pytest tests/core $(ARGS)

.venv-core/.stamp-install: setup.cfg core/pyproject.toml core/setup.py constraints.txt .venv/.stamp-install
	$(PY) -m venv --clear --without-pip .venv-core
	$(PIP) --python .venv-core/bin/python install -q -c constraints.txt setuptools
	$(PIP) --python .venv-core/bin/python install -q --no-build-isolation -c constraints.txt -e ./core hypothesis pytest pytest-timeout
	@touch $@

oracle: .venv/.stamp-oracle
	$(PY) -m pytest $(SHARED) tests/oracle $(ARGS)

bench: .venv/.stamp-generated
	$(PY) benchmarks/run.py $(ARGS)

# Anew each time: pages that are not read again would not repeat their warnings, and pages that are gone would stay.
docs: .venv/.stamp-docs
	rm -rf docs/_build
	$(PY) -m sphinx -q -W --keep-going -b html -c docs/site -d docs/_build/doctrees docs docs/_build/html

.venv/.stamp-docs: .venv/.stamp-generated
	$(PIP) install -q -c constraints.txt furo myst-parser Sphinx
	@touch $@

lint: .venv/.stamp-generated
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/mypy docs/site/generated_pages

format: .venv/.stamp-install
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

codegen: .venv/.stamp-install
	$(PY) -m turnout_aten.generation
	$(PY) -m turnout_autograd.generation
	$(PY) -c 'import runpy; runpy.run_path("tools/stubs/setup.py")["write_stubs"]()'
	$(PY) -c 'import runpy; runpy.run_path("core/setup.py")["write"]()'

# Built from a copy: setuptools would leave build/ and *.egg-info behind, and reuse what is stale in them.
wheels: .venv/.stamp-wheelhouse
	rm -rf dist
	$(PY) .ci/packages.py dist
	$(PY) -m pytest $(SHARED) -m wheels tests/integration/test_wheels_in_clean_environments.py $(ARGS)

# What PyPI is to get for Linux, but with ziglang's kernels (docs/release.md): REPOSITORY is the address that the metadata shows, PYTHONS are what
# turnout-speed is built for, the oldest first.
REPOSITORY ?=
PYTHONS ?= $(abspath $(PY))
release: .venv/.stamp-wheelhouse .venv-release/.stamp-install
	rm -rf dist
	$(PY) .ci/packages.py dist --native zig --zig $(abspath .venv-release/bin/python) $(addprefix --python ,$(PYTHONS)) --repository "$(REPOSITORY)"
	$(PY) .ci/packages.py dist --check
	.venv-release/bin/twine check --strict dist/*
	.venv-release/bin/abi3audit --strict dist/turnout_kernels-*.whl
	for wheel in dist/*-manylinux_*.whl; do tag=$${wheel##*-}; \
	  .venv-release/bin/auditwheel show $$wheel | tr '\n' ' ' | grep -q "tag: \"$${tag%.whl}\"" || exit 1; done
	for system in linux macos windows; do .venv-release/bin/cibuildwheel --config-file .ci/cibuildwheel.toml --platform $$system \
	  --print-build-identifiers plugins/speed || exit 1; done
	$(PY) -m pytest $(SHARED) -m wheels tests/integration/test_wheels_in_clean_environments.py $(ARGS)

.venv-release/.stamp-install: constraints.txt .venv/.stamp-install
	$(PY) -m venv --clear --without-pip .venv-release
	$(PIP) --python .venv-release/bin/python install -q -c constraints.txt abi3audit auditwheel cibuildwheel twine ziglang
	@touch $@

# The clean environments install with no index, from dist/ and from this folder: downloaded once.
.venv/.stamp-wheelhouse: .venv/.stamp-install
	rm -rf .venv/wheelhouse
	$(PIP) download -q --no-build-isolation -c constraints.txt -d .venv/wheelhouse setuptools $(foreach d,$(LOCAL),./$(d)$(INDEX_$(d)))
	rm -f .venv/wheelhouse/turnout*
	@touch $@

freeze: .venv/.stamp-install
	$(PIP) freeze --all --exclude-editable --exclude turnout

clean:
	rm -rf .venv .venv-core .venv-release dist docs/_build docs/generated .hypothesis .mypy_cache .pytest_cache .ruff_cache examples/*/.ruff_cache
	find core plugins tools examples tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
