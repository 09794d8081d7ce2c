# Thin: everything is done by scripts/. `make help` lists the commands.
.PHONY: help demo test check bench clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' Makefile

demo:  ## install what is missing, build, race the MNIST CNN in every framework, write the report
	@scripts/demo

test:  ## install what is missing, build, run every test (C++ and Python)
	@scripts/test

check:  ## format, floors, lints, types, headers that compile alone, clang-tidy
	@scripts/check

bench:  ## the benchmarks (on a quiet machine)
	@scripts/bench

clean:  ## remove what was built; environments and data stay (see `bakeoff env list`)
	rm -rf build
