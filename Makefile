# Meson and ninja do the work; this file gives it short names. `make` alone prints them.

BUILD = build
MESON_OPTIONS =
LIST =
PREFIX =
FUZZ_SECONDS = 60
NIGHTLY_FUZZ_SECONDS = 900
KILLS = 1000
SAN_KILLS = 50
NIGHTLY_RING_SECONDS = 3600
RUN_TESTS = FAIRLEAD_BUILD=$(BUILD) tools/run_tests

# A sanitizer's finding ends the process with a status of its own, which no test mistakes for fairlead's 1 to 3.
SANITIZER_ENV = \
	ASAN_OPTIONS=abort_on_error=0:exitcode=99:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1 \
	UBSAN_OPTIONS=halt_on_error=1:exitcode=99:print_stacktrace=1

.PHONY: help deps deps-test deps-nightly build run with-tests test unit script tools system lint format san build-san \
	model kill fuzz bench nightly nightly-ring nightly-san docs install clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf 'make %-12s %s\n' "$$name" "$$text"; done

deps: ## install what building and running need (Debian 12, 13; root through sudo)
	@tools/install_packages run

deps-test: ## install the tools and peers of the tests, their services kept from starting
	@tools/install_packages test

deps-nightly: deps-test ## install the browser of make nightly as well
	@tools/install_packages nightly

build: $(BUILD)/build.ninja ## build build/fairlead
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@command -v meson >/dev/null && command -v ninja >/dev/null || \
		{ echo "make: meson and ninja are needed: run 'make deps'" >&2; exit 1; }
	@meson setup $(BUILD) $(MESON_OPTIONS) || \
		{ echo "make: if something was not found: run 'make deps'" >&2; rm -rf $(BUILD); exit 1; }

run: build ## run a node with three demonstration upstreams; LIST=proxies.txt takes yours
	@exec $(BUILD)/fairlead up $(if $(LIST),--list '$(LIST)',--demo)

test: with-tests ## run all rings of tests
	@$(RUN_TESTS) unit script tools system

unit: with-tests ## run the unit tests alone
	@$(RUN_TESTS) unit

script: ## run the tests of lua/ alone
	@$(RUN_TESTS) script

tools: ## run the tests of tools/ alone
	@$(RUN_TESTS) tools

system: build ## run the tests of the whole program alone
	@$(RUN_TESTS) system

# `make build` does without cmocka; a build directory from that time learns of it here.
with-tests: build
	@grep -q tests/unit/test_ $(BUILD)/build.ninja || { \
		meson setup --reconfigure $(BUILD) -Dtests=enabled && ninja -C $(BUILD) --quiet; } || \
		{ echo "make: if cmocka was not found: run 'make deps-test'" >&2; exit 1; }

lint: ## check format, layers, sizes, and what compilers and linters find
	@tools/lint

format: ## let clang-format rewrite the sources
	@tools/lint format

san: build-san ## build with ASan and UBSan, run unit, script, the core of system, few kills
	@$(SANITIZER_ENV) FAIRLEAD_BUILD=build-san KILLS=$(SAN_KILLS) tools/run_tests --core unit script system kill

build-san:
	@$(MAKE) --no-print-directory build BUILD=build-san MESON_OPTIONS='-Dwerror=true -Dtests=enabled \
		-Db_sanitize=address,undefined -Dbuildtype=debug -Doptimization=1 -Dkill_points=true'

model: ## check the model of the leases' life with spin, minutes; writes docs/model.md
	@tools/model

kill: ## end processes by SIGKILL at named points, KILLS=1000 for each part, and look for losses
	@$(MAKE) --no-print-directory build BUILD=build-kill MESON_OPTIONS='-Dkill_points=true -Dtests=disabled'
	@FAIRLEAD_BUILD=build-kill KILLS=$(KILLS) tools/run_tests --limit $(NIGHTLY_RING_SECONDS) kill

fuzz: ## fuzz parsers and the gateway, each for FUZZ_SECONDS=60 with libFuzzer
	@CC=clang $(MAKE) --no-print-directory build BUILD=build-fuzz MESON_OPTIONS='-Dfuzz=true -Dtests=disabled'
	@tools/fuzz build-fuzz $(FUZZ_SECONDS)

bench: build ## measure, beside other programs, in one run
	@FAIRLEAD_BINARY=$(BUILD)/fairlead bench/run

# One part that fails keeps no other from running.
nightly: with-tests ## run what takes hours: browser, all under the sanitizers, kills, long fuzzing, bench
	@$(MAKE) --keep-going --no-print-directory nightly-ring nightly-san kill fuzz bench \
		FUZZ_SECONDS=$(NIGHTLY_FUZZ_SECONDS)

nightly-ring: build
	@$(RUN_TESTS) --limit $(NIGHTLY_RING_SECONDS) nightly

nightly-san: build-san
	@$(SANITIZER_ENV) FAIRLEAD_BUILD=build-san tools/run_tests --limit $(NIGHTLY_RING_SECONDS) unit script system

docs: build ## build the manual page, build/fairlead.1
	@command -v scdoc >/dev/null || { echo "make: scdoc is needed: run 'make deps'" >&2; exit 1; }
	@grep -q fairlead.1.scd $(BUILD)/build.ninja || meson setup --reconfigure $(BUILD) -Dmanual=enabled
	@ninja -C $(BUILD) --quiet fairlead.1 && echo "read it by: man -l $(BUILD)/fairlead.1"

install: build ## install program and manual; PREFIX=/usr and DESTDIR= are heeded
	@$(if $(PREFIX),meson configure $(BUILD) -Dprefix='$(PREFIX)')
	@meson install -C $(BUILD) --quiet

clean: ## remove all build directories
	@rm -rf build build-san build-lint build-fuzz build-kill
