# Thin: everything is done by scripts/. `make help` lists the commands.
.PHONY: help demo test full wheel check bench prove verdicts networks clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

demo:  ## install what is missing, build, race the MNIST CNN in every framework, write the report
	@scripts/demo

test:  ## install what is missing, build, run every test (C++ and Python)
	@scripts/test

full:  ## every test, and those that take long, on more random ops and networks (about an hour)
	@BAKEOFF_FULL_TESTS=1 BAKEOFF_OP_CASES=3 scripts/test

check:  ## format, floors, lints, types, headers that compile alone, clang-tidy
	@scripts/check

bench:  ## the benchmarks (on a quiet machine)
	@scripts/bench

prove:  ## the whole statistical proof: error rates, power and cost of verdicts (about 20 minutes)
	@scripts/prove --full

verdicts:  ## the same, and rewrite tables and plots of docs/measured/verdicts.md, verdicts.md
	@scripts/prove --full --document docs/measured/verdicts.md $(if $(TRACES),--traces $(TRACES))
	@python3 scripts/verdict_figure.py

networks:  ## train the networks in full for 3 steps in every framework (a quarter of an hour; docs/networks.md)
	@scripts/build dev bakeoff && python3 scripts/full_networks.py

wheel:  ## what `pip install` takes, into build/wheel (docs/install.md)
	@scripts/wheel

clean:  ## remove what was built; environments and data stay (see `bakeoff env list`)
	rm -rf build
