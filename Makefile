# One command each, from a bare checkout with Python 3.11 or newer. All of it lies in .venv.
#   make demo    installs what is needed and runs the demo       make test       installs the test tools and runs the tests
#   make install installs alone
#   make checks  lint, format and types                          make test-fast  units alone: no training, no processes
#   make site    builds the documentation into build/site        make test-slow  the long proofs, as every night
#   make HASHES=1 TARGET   installs every file by its hash (requirements.lock: Linux on x86-64, Python 3.11, CUDA)
# Another build of torch (CUDA): install it into .venv first, then touch .venv/installed.

PYTHON ?= python3
# pip compiles on one core; `compile` does so on all. Where Python may not write bytecode, as in many containers, every
# command would otherwise compile all its libraries again.
PIP = .venv/bin/pip install --no-compile --constraint constraints.txt
# pip's hundred lines become one for each package that is fetched; its exit status stays.
fetched = awk '/^ *(Downloading|Using cached) .*[.](whl|gz) / { sub(/^ */, "  "); print; fflush() } \
	/^Installing collected packages/ { print "  unpacking " NF - 3 " packages, a minute or two"; fflush() }'
installed = echo "Installing into .venv (some minutes the first time)"; \
	{ $(1); echo $$? > .venv/status; } | $(fetched); exit $$(cat .venv/status)
compile = .venv/bin/python -m compileall -q -j 0 -x torch/testing .venv/lib biobench trainer leaderboard

ifdef HASHES
install = .venv/bin/pip install --no-compile --require-hashes -r requirements.lock && $(PIP) --no-deps --editable .
install_tools = echo "  requirements.lock holds the test tools" >&2
else
install = $(PIP) --editable .
install_tools = $(PIP) --editable ".[test]"
endif

FAST = comparison core encode export kinds reporting schema score stats store

.PHONY: install demo test test-fast test-slow checks site
demo: .venv/installed
	.venv/bin/biobench demo

install: .venv/installed

test: .venv/test-tools
	OMP_NUM_THREADS=1 .venv/bin/pytest -n auto --dist loadfile -m "not slow"

test-fast: .venv/test-tools
	OMP_NUM_THREADS=1 .venv/bin/pytest -q -n auto -m "not slow and not real" $(addprefix tests/,$(FAST))

test-slow: .venv/test-tools
	OMP_NUM_THREADS=1 .venv/bin/pytest -n auto --dist loadfile -m slow

checks: .venv/test-tools
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

site: .venv/site-tools
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	@$(call installed,$(install))
	@$(compile)
	touch $@

.venv/test-tools: .venv/installed
	@$(call installed,$(install_tools))
	@$(compile)
	touch $@

.venv/site-tools: .venv/installed
	@$(call installed,$(PIP) --editable ".[docs]")
	touch $@

# Needs npm; the accessibility tests say that they skip where it is missing. npm checks what it fetches.
AXE = 4.14.1
.venv/axe-core: .venv/installed
	rm -rf $@ && mkdir $@
	cd $@ && npm pack --silent axe-core@$(AXE) && tar -xzf axe-core-$(AXE).tgz --strip-components=1 package/axe.min.js \
		package/LICENSE && rm axe-core-$(AXE).tgz
