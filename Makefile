# SPDX-License-Identifier: Apache-2.0
# Crane. `make help` lists the targets; each works from a clean checkout, by CMake and Ninja.
#   make                      release build of everything into out/release
#   make VARIANT=asan check   variants (CMakePresets.json): debug release asan ubsan tsan
#   make OUT=/tmp/x           another build tree
#   make crane-run            one program, or its file: make out/release/crane-run (V=1: commands)
VARIANT ?= release
OUT     ?= out/$(VARIANT)
JOBS    ?= $(shell nproc)
PREFIX  ?= /usr/local
# Figures want matplotlib, which Debian installs for its own python.
PYTHON   = $(shell /usr/bin/python3 -c 'import matplotlib' 2>/dev/null && echo /usr/bin/)python3
Q       := $(if $(V),,@)
AREAS   := $(sort $(notdir $(patsubst %/,%,$(wildcard tests/unit/*/)))) fabric sim verbs
PARTS   := programs parts benches fuzzers strangers next-schedule libcrane.so linear-porcupine \
           tested $(patsubst %,crane-%,node run ctl diff replay sim solo) \
           $(subst _,-,$(patsubst %_bench.cc,bench-%,$(notdir $(wildcard eval/*/*_bench.cc))))
.PHONY: all build check test test-long accept accept-perturbed demo bench fuzz sim sim-soak lint \
  format tidy install uninstall deb image deps clean help FORCE $(PARTS) $(AREAS:%=test-%)
.NOTPARALLEL:  # two Ninjas must not build in one tree
CONFIGURED := $(OUT)/configured-$(VARIANT)
FRESH = $(if $(filter-out $(CONFIGURED),$(wildcard $(OUT)/configured-*)),--fresh)
KEEP_GOING = $(if $(findstring k,$(firstword -$(MAKEFLAGS))),-k 0)
NINJA = $(Q)ninja -C $(OUT) -j$(JOBS) $(if $(V),-v) $(KEEP_GOING)
BUILD = $(MAKE) --no-print-directory
PACK = runtime/packaging/make_deb.sh
FLEET = runtime/packaging/fleet/make_image.sh
RUN_TESTS = @python3 tests/run.py --out $(OUT) --variant $(VARIANT)
all: build                                        ## everything (programs, tests, benches)
build $(PARTS): $(CONFIGURED)
	$(NINJA) $(or $(TARGETS),$(@:build=all))
$(OUT)/%: $(CONFIGURED) FORCE
	$(NINJA) $*
$(CONFIGURED): CMakePresets.json  # a tree of another variant starts again
	@command -v ninja > /dev/null && cmake --version > /dev/null || \
	  { echo 'absent: cmake or ninja: install cmake and ninja-build (make deps)'; exit 1; }
	$(Q)cmake --log-level=NOTICE --preset $(VARIANT) -B $(OUT) $(FRESH)
	@rm -f $(OUT)/configured-* && touch $@
deps:                                             ## install the missing Debian packages, and CRIU
	@tests/install_deps.sh $(DEPS)
	@checkpoint/get_criu.sh $(OUT)/criu || true
# A sanitizer build of the parts that do not concern other processes.
SANITIZED := base dmt consensus record clients linear
BUILD_SANITIZED = $(BUILD) -k JOBS=$(JOBS) VARIANT=asan OUT=$(OUT)-asan build \
                  TARGETS="$(SANITIZED:%=test-%) fuzzers"
test: deps                                        ## every rule; last line: N passed, N failed
	@touch -cd @0 $(CONFIGURED); $(BUILD) -k tested || true  # what was absent may be there now
	$(RUN_TESTS) --full $(ARGS)
test-long: deps                                   ## the rest: sanitizers, long scenarios, a VM
	@$(BUILD) -k build TARGETS="all porcupine" || true
	$(RUN_TESTS) --long --sanitized $(OUT)-asan --areas '$(SANITIZED)' \
	  --build-sanitized '$(BUILD_SANITIZED)' $(ARGS)
check: all                                        ## the quick loop: unit tests, lints, few seeds
	$(RUN_TESTS) --quick $(ARGS)
$(AREAS:%=test-%): $(CONFIGURED)
	$(NINJA) $@
	$(Q)timeout 600 $(if $(filter tsan,$(VARIANT)),setarch -R) $(OUT)/$@ $(ARGS)
sim: crane-sim                                    ## simulator, 10,000 seeds (CRANE_SEED=n: its trace)
	$(Q)$(OUT)/crane-sim $(if $(CRANE_SEED),--seed $(CRANE_SEED) --trace,--count 10000) $(ARGS)
sim-soak: crane-sim                               ## simulator, long: SEEDS=n FIRST=n JOBS=n SMALL=1; coverage
	$(Q)$(OUT)/crane-sim --soak --first $(or $(FIRST),1) --count $(or $(SEEDS),100000) \
	  --jobs $(JOBS) $(if $(SMALL),--small) $(ARGS)
fuzz:                                             ## libFuzzer on every byte format; FUZZ_SECONDS=n
	@command -v clang++-14 > /dev/null || { echo 'fuzz: install clang-14, libclang-rt-14-dev'; exit 1; }
	@$(BUILD) VARIANT=fuzz OUT=$(OUT)-fuzz fuzzers
	@python3 tests/fuzz/run_fuzz.py --out $(OUT)-fuzz --plain $(OUT) \
	  --seconds $(or $(FUZZ_SECONDS),60) $(ARGS)
lint: libcrane.so                                 ## layering, symbols, sizes, prose, format
	$(RUN_TESTS) --only lint
accept: DEPS = accept
accept: deps programs                             ## end-to-end scenarios in full size, an hour
	@python3 tests/e2e/_accept.py --out $(OUT) $(ARGS)
accept-perturbed: programs                        ## every server again and again beside hostile loads
	@python3 tests/e2e/_perturbed.py --out $(OUT) $(ARGS)
demo: DEPS = demo
demo: deps                                        ## three replicas of a server, one killed
	@$(BUILD) build TARGETS="libcrane.so crane-node crane-run crane-ctl crane-diff"
	@python3 eval/demo.py --out $(OUT) $(ARGS)
bench: eval-bench                                 ## native vs one and three replicas; turn cost
eval-storm: programs ; @python3 tests/e2e/storm.py --out $(OUT) --full $(ARGS)
eval-verbs: bench-strategies ; @eval/run.py strategies --verbs --out $(OUT) $(ARGS) || [ $$? = 77 ]
eval-%: $(CONFIGURED)
	$(NINJA) measured
	@$(PYTHON) eval/run.py $* --out $(OUT) $(ARGS)
install uninstall: parts                          ## below PREFIX (/usr/local), or DESTDIR/PREFIX
	$(Q)DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' runtime/packaging/install.sh $@ $(OUT)
deb: ; $(Q)$(PACK) --check && $(BUILD) parts && $(PACK) $(OUT)  ## Debian packages, into OUT/deb
image: ; $(Q)$(FLEET) --check && $(BUILD) deb && $(FLEET) $(OUT)  ## container image; IMAGE=name CRIU=1
format:                                           ## rewrite our code with clang-format 14
	$(Q)git ls-files '*.h' '*.cc' '*.c' | xargs clang-format-14 -i
compile_commands.json: FORCE                      # for clangd and clang-tidy
	$(Q)cmake --log-level=NOTICE --preset tidy && ln -sfn out/tidy/$@ $@
tidy: compile_commands.json                       ## clang-tidy 14; FILES=dmt/ chooses
	$(Q)run-clang-tidy-14 -quiet -p . -j $(JOBS) '$(or $(FILES),.*)'
clean: ; rm -rf out                               ## remove out/
help:                                             ## this list
	@sed -nE 's/^([a-z -]+):[^#]*## (.*)/  \1\t\2/p' Makefile | expand -t 20
	@echo '  test-AREA         one area: $(AREAS)'
	@echo '  eval-NAME         one measurement (eval/README.md):'
	@eval/run.py --out $(OUT) | sed 's/^/                    /'
