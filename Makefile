# Crane. `make help` lists the targets; every target works from a clean checkout.
#
#   make                      release build of everything into out/release
#   make VARIANT=asan test    variants: debug release asan ubsan tsan, each in its own tree
#   make OUT=/tmp/x           another build tree
#   make test-dmt             build (only what it needs) and run the tests of one area
#   make V=1                  show the full command lines

VARIANT ?= release
OUT     ?= out/$(VARIANT)
JOBS    ?= $(shell nproc 2>/dev/null || echo 1)
Q       := $(if $(V),,@)
say      = @printf '  %-7s %s\n' $(1) '$(2)'

# --- flags ------------------------------------------------------------------------------------
ifeq ($(origin CXX),default)
CXX := g++
endif
ifeq ($(origin CC),default)
CC := gcc
endif
WARN := -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wundef -Werror
BASE  = -std=c++20 $(WARN) $(DEBUG_INFO) -fno-omit-frame-pointer -pthread -I. -MMD -MP
# Lines and functions, for backtraces and perf, take a third less time than all; gdb wants
# VARIANT=debug.
DEBUG_INFO = $(if $(filter release,$(VARIANT)),-g1,-g)
opt_debug   := -O1
opt_release := -O2
# The check of vptr reads memory through a pipe: a test without descriptors would fail.
opt_asan    := -Og -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all
opt_ubsan   := -O1 -fsanitize=undefined -fno-sanitize=vptr -fno-sanitize-recover=all
opt_tsan    := -O1 -fsanitize=thread
opt_fuzz    := -O1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all
ifeq ($(VARIANT),fuzz)
CXX  := clang++-14
WARN := -w
endif
OPT         := $(opt_$(VARIANT))
$(if $(OPT),,$(error VARIANT=$(VARIANT) is unknown; use debug release asan ubsan tsan fuzz))

# The preloaded library lives inside other people's processes: no exceptions, no RTTI, no guard
# variables, no libstdc++, and never a sanitizer runtime; on a thread's smallest stack (scratch.h).
PRELOAD := -O2 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-threadsafe-statics \
           -ftls-model=initial-exec -ffunction-sections -fdata-sections -Wframe-larger-than=1536
# Test programs are strangers to Crane: plain C, nothing of ours on the command line.
STRANGER := -std=gnu11 -O1 -g -Wall -Wextra -Wno-deprecated-declarations -pthread

# --- libraries from the distribution ------------------------------------------------------------
# pkg-config module = Debian package that holds it; what is absent is named by `make packages`.
MODULES := libevent_core=libevent-dev libevent_extra=libevent-dev \
           prometheus-cpp-core=prometheus-cpp-dev spdlog=libspdlog-dev fmt=libfmt-dev CLI11=libcli11-dev \
           tomlplusplus=libtomlplusplus-dev nlohmann_json=nlohmann-json3-dev libisal=libisal-dev \
           openssl=libssl-dev libibverbs=libibverbs-dev lxc=lxc-dev libzstd=libzstd-dev \
           libnetfilter_queue=libnetfilter-queue-dev libbpf=libbpf-dev benchmark=libbenchmark-dev \
           catch2=catch2
HEADERS := boost/version.hpp=libboost-dev rapidcheck.h=librapidcheck-dev db.h=libdb5.3-dev
pc = $(shell pkg-config $(1) $(2) 2>/dev/null)
SYS_CFLAGS := $(filter-out -I/usr/include,$(call pc,--cflags,spdlog fmt))
LIBS_core  := $(call pc,--libs,libevent_extra libevent_core prometheus-cpp-core spdlog fmt openssl \
              libibverbs libzstd libnetfilter_queue libbpf) -lisal -ldb-5.3

# --- what is built ------------------------------------------------------------------------------
# One static library per folder, so that a broken file in one does not stop the tests of another.
FOLDERS := libraries base sequence dmt setup control supervise preload core sim consensus ticks record replica clients clients_sim recovery http host node replay \
           analysis checkpoint launcher eval \
           linear engine latency
# The files with main(): a program's, of no library.
main_crane-node := proxy/node/main.cc
main_crane-run  := runtime/launcher/run/crane_run.cc
main_crane-ctl  := runtime/launcher/ctl/crane_ctl.cc
main_crane-diff := proxy/record/crane_diff.cc
main_crane-replay := proxy/replay/crane_replay.cc
main_crane-sim  := tests/sim/crane_sim.cc tests/sim/replica_worlds.cc tests/sim/soak.cc
main_crane-solo := tests/interpose/crane_solo.cc
main_linear-client := tests/linear/linear_client.cc
main_linear-check := tests/linear/linear_check.cc
main_engine     := eval/engine/engine_main.cc
main_engine-load := eval/engine/load_main.cc
main_latency-load := eval/latency/latency_main.cc

src_base       := $(wildcard dmt/base/*.cc)
src_libraries  := dmt/base/libraries/instances.cc
src_sequence   := $(wildcard dmt/sequence/*.cc)
src_dmt        := $(wildcard dmt/*.cc)
# The exported stubs would interpose in the tests themselves: they belong to libcrane.so alone.
src_preload    := $(filter-out runtime/preload/attach/interpose.cc,$(wildcard runtime/preload/*/*.cc))
src_core       := $(wildcard consensus/core/*.cc)
src_sim        := $(wildcard consensus/sim/*.cc)
src_consensus  := $(wildcard consensus/*.cc consensus/fabric/*.cc consensus/driver/*.cc \
                             consensus/store/*.cc)
src_ticks      := $(wildcard proxy/ticks/*.cc)
src_record     := $(filter-out $(main_crane-diff),$(wildcard proxy/record/*.cc))
src_replica    := $(wildcard proxy/replica/*.cc proxy/replica/*/*.cc)
src_clients    := $(wildcard proxy/clients/*.cc)
src_clients_sim := $(wildcard proxy/sim/*.cc proxy/sim/*/*.cc)
src_recovery   := $(wildcard proxy/host/recovery/*.cc)
src_http       := $(wildcard proxy/host/http/*.cc)
src_host       := $(wildcard proxy/host/*.cc)
src_node       := $(filter-out $(main_crane-node),$(wildcard proxy/node/*.cc))
src_replay     := $(filter-out $(main_crane-replay),$(wildcard proxy/replay/*.cc))
src_analysis   := $(wildcard proxy/analysis/*.cc)
src_checkpoint := $(filter-out checkpoint/crane_%.cc,$(wildcard checkpoint/*.cc))
src_engine     := $(filter-out %_main.cc,$(wildcard eval/engine/*.cc))
src_latency    := $(filter-out %_main.cc,$(wildcard eval/latency/*.cc))
src_eval       := $(filter-out %_bench.cc eval/engine/% eval/latency/%,$(wildcard eval/*/*.cc))
src_setup      := $(wildcard runtime/setup/*.cc)
src_control    := $(wildcard runtime/control/*.cc)
src_supervise  := $(wildcard runtime/supervise/*.cc)
src_launcher   := $(filter-out $(main_crane-run) $(main_crane-ctl),\
                    $(wildcard runtime/launcher/*.cc runtime/launcher/*/*.cc))
src_linear     := $(filter-out tests/linear/linear_%.cc,$(wildcard tests/linear/*.cc))

# Which of them a program links; the order does not matter (they are linked as one group).
use_base       := base
use_sequence   := sequence base
use_dmt        := dmt sequence base
use_preload    := preload dmt sequence base
use_core       := core base
use_sim        := clients_sim clients replica control record sim consensus core supervise setup sequence base
use_fabric     := eval sim consensus core base
use_verbs      := eval sim consensus core base
use_consensus  := sim consensus core base
use_store      := consensus core base
use_record     := record consensus core sequence setup base
use_ticks      := ticks sequence base
use_replica    := replica control record consensus core sequence setup base
use_clients    := clients replica control record consensus core sequence base
use_checkpoint := checkpoint sequence base
use_setup      := setup base
use_control    := control base
use_supervise  := supervise setup base
use_launcher   := launcher supervise control checkpoint setup consensus core sequence base
use_linear     := linear setup base
use_engine     := engine
use_latency    := latency
use_node       := $(filter-out eval sim clients_sim launcher supervise linear engine latency preload,$(FOLDERS))
use_recovery   := $(use_node)
use_http       := $(use_node)
use_analysis   := $(use_node)
use_replay     := $(use_node)
use_fuzz       := $(use_node)
use_all        := $(filter-out linear engine latency preload,$(FOLDERS))

obj  = $(patsubst %.cc,$(OUT)/obj/%.o,$(1))
pic  = $(patsubst %.cc,$(OUT)/pic/%.o,$(1))
arch = $(patsubst %,$(OUT)/lib/lib%.a,$(1))
uses = $(call arch,libraries $(or $(use_$(1)),$(use_all)))

# An Error holds a std::string: it is no part of the preloaded library.
PRELOAD_OBJ := $(call pic,$(filter-out dmt/base/result.cc,$(src_base)) $(src_sequence) $(src_dmt) \
                    $(src_preload) $(wildcard runtime/preload/attach/interpose.cc))

# Test areas: tests/unit/<area>/*.cc is test-<area>; tests/{sim,fabric,regress} one program each.
AREAS := $(notdir $(patsubst %/,%,$(sort $(dir $(wildcard tests/unit/*/*.cc)))))
src_test_sim     := $(filter-out tests/sim/crane_sim.cc,$(wildcard tests/sim/*.cc))
src_test_fabric  := $(wildcard tests/fabric/*.cc)
src_test_regress := $(wildcard tests/regress/*.cc)
# Runs in a virtual machine (tests/vm): the conformance suite again, over RDMA.
src_test_verbs   := $(wildcard tests/verbs/*.cc) \
                    $(patsubst %,tests/fabric/%.cc,harness tcp_group node_process relay)
$(foreach a,$(AREAS),$(eval src_test_$(a) += $(wildcard tests/unit/$(a)/*.cc)))
AREAS := $(sort $(AREAS) $(foreach a,sim fabric regress verbs,$(if $(src_test_$(a)),$(a))))
TESTS := $(patsubst %,$(OUT)/test-%,$(AREAS))

BENCH_SRC := $(wildcard eval/*/*_bench.cc)
bench_name = $(OUT)/bench-$(subst _,-,$(patsubst %_bench,%,$(basename $(notdir $(1)))))
BENCHES   := $(foreach s,$(BENCH_SRC),$(call bench_name,$(s)))
# Fuzz targets: as plain programs with their own engine (tests/fuzz/driver.cc); `make fuzz` builds
# the same with clang's.
FUZZ_SRC := $(wildcard tests/fuzz/*_fuzz.cc)
fuzz_name = $(OUT)/fuzz-$(subst _,-,$(patsubst %_fuzz.cc,%,$(notdir $(1))))
FUZZERS  := $(foreach s,$(FUZZ_SRC),$(call fuzz_name,$(s)))
fuzz_engine = $(if $(filter fuzz,$(VARIANT)),,tests/fuzz/driver.cc)
STRANGERS := $(patsubst tests/%.c,$(OUT)/%,$(wildcard tests/interpose/*.c tests/e2e/*.c \
               tests/unit/*/*.c \
               $(patsubst %,tests/interpose/%/*.c,traps posix racy))) \
             $(patsubst tests/%.cc,$(OUT)/%,\
               $(filter-out tests/interpose/crane_%.cc,$(wildcard tests/interpose/*.cc \
                 tests/interpose/traps/*.cc)))

PROGRAMS := $(foreach p,crane-node crane-run crane-ctl crane-diff crane-replay crane-sim \
              crane-solo linear-client linear-check engine engine-load latency-load,\
              $(if $(wildcard $(main_$(p))),$(OUT)/$(p)))
LIBCRANE := $(if $(wildcard runtime/preload/ground/interposed.def),$(OUT)/libcrane.so)

ALL_SRC  := $(foreach f,$(FOLDERS),$(src_$(f))) $(foreach a,$(AREAS),$(src_test_$(a))) \
            $(foreach p,node run ctl diff replay sim solo,$(wildcard $(main_crane-$(p)))) \
            $(wildcard tests/linear/linear_*.cc eval/*/*_main.cc) $(BENCH_SRC) tests/main.cc \
            $(wildcard tests/fuzz/*.cc)

.PHONY: all check test accept accept-perturbed demo bench eval-failover eval-virtual-address eval-slices eval-shared-connections eval-outbound eval-lossy eval-strategies eval-verbs eval-scale eval-etcd eval-servers eval-costs eval-checkpoints eval-suites eval-sensitivity eval-latency eval-growth eval-hints eval-soak eval-data eval-storm fuzz sim sim-soak lint format tidy clean help deps packages programs FORCE
.SECONDARY:
all: programs $(TESTS) $(BENCHES) $(STRANGERS) $(FUZZERS) next-schedule ## build everything (programs, tests, benches)
programs: $(LIBCRANE) $(PROGRAMS) parts           ## build libcrane.so and the crane-* programs

# --- compile --------------------------------------------------------------------------------------
# A change of flags rebuilds, a repeat of the same flags does not; the same for lists of objects.
keep = mkdir -p $(@D); printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' > $@
$(OUT)/flags: FORCE
	@$(call keep,$(CXX) $(BASE) $(OPT) $(PRELOAD) $(STRANGER) $(SYS_CFLAGS))
FORCE:

$(OUT)/pic/%.o: %.cc $(OUT)/flags
	$(call say,CXX,$< (preload))
	@mkdir -p $(@D)
	$(Q)$(CXX) $(BASE) $(PRELOAD) -DCRANE_PRELOAD=1 -c $< -o $@
$(OUT)/obj/%.o: %.cc $(OUT)/flags
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(BASE) $(OPT) $(SYS_CFLAGS) $(own_flags) -c $< -o $@
# The page that it holds is no header.
$(OUT)/obj/proxy/host/http/page.o: proxy/host/http/page.html
# The commit that --version shows stands in this object alone: a new commit only links.
COMMIT := $(or $(shell test -z "$$(git rev-parse --show-cdup 2>&1)" && \
            git rev-parse --short=12 HEAD 2>/dev/null),unknown)
$(OUT)/commit: FORCE
	@$(call keep,$(COMMIT))
$(OUT)/obj/runtime/setup/version.o: runtime/setup/version.cc $(OUT)/flags $(OUT)/commit
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(BASE) $(OPT) $(SYS_CFLAGS) -DCRANE_COMMIT='"$(COMMIT)"' -c $< -o $@
# Catch2's own main trips gcc's -Wmaybe-uninitialized under asan; it is not our code.
$(OUT)/obj/tests/main.o: private WARN := -w
$(OUT)/obj/tests/main.o: private own_flags := -O1

# Precompiled headers: one per set of libraries that a file includes. A file compiles without, too
# (`make PCH=`, and clang does). ccache wants CCACHE_SLOPPINESS=pch_defines,time_macros for them.
# gcc 12 reports its own std::string (PR 105329) where that comes from one.
PCH := $(if $(filter fuzz,$(VARIANT)),,1)
PCH_SRC   := $(sort $(filter-out tests/main.cc $(src_libraries),$(ALL_SRC)))
PCH_JSON  := $(shell grep -lF '<nlohmann/json.hpp>' $(PCH_SRC))
PCH_CATCH := $(shell grep -lE '<catch2/catch.hpp>|^TEST_CASE' $(PCH_SRC))
# What is no part of a server's way need not be fast: -O1 takes a quarter less time than -O2.
SLOW := $(src_setup) $(src_control) $(src_launcher) $(main_crane-run) $(main_crane-ctl)
pch_programs   := $(filter-out $(PCH_JSON) $(PCH_CATCH) $(SLOW),$(PCH_SRC))
pch_json       := $(filter-out $(PCH_CATCH) $(SLOW),$(PCH_JSON))
pch_tools      := $(filter-out $(PCH_JSON),$(SLOW))
pch_tools_json := $(filter $(PCH_JSON),$(SLOW))
pch_test       := $(filter-out $(PCH_JSON),$(PCH_CATCH))
pch_test_json  := $(filter $(PCH_JSON),$(PCH_CATCH))
pch_opt = $(if $(filter release,$(VARIANT)),$(if $(filter programs json,$(1)),,-O1))
# Name, and the header that it is made of.
define precompiled
$(OUT)/pch/$(1).h.gch: $(2) $(OUT)/flags
	$$(call say,PCH,$$<)
	@mkdir -p $$(@D)
	$$(Q)echo '#include "$$<"' > $$(@:.gch=)
	$$(Q)$$(CXX) $$(BASE) $$(OPT) $$(call pch_opt,$(1)) $$(SYS_CFLAGS) -MF $$(@:.gch=.d) \
	  -x c++-header $$(@:.gch=) -o $$@
$$(call obj,$$(pch_$(1))): $(OUT)/pch/$(1).h.gch
$$(call obj,$$(pch_$(1))): private own_flags = $$(call pch_opt,$(1)) -Winvalid-pch -fpch-preprocess \
  -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict \
  -include $(OUT)/pch/$(1).h
-include $(OUT)/pch/$(1).d
endef
ifneq ($(PCH),)
$(foreach p,programs json,$(eval $(call precompiled,$(p),dmt/base/libraries/$(p).h)))
$(eval $(call precompiled,tools,dmt/base/libraries/programs.h))
$(eval $(call precompiled,tools_json,dmt/base/libraries/json.h))
$(foreach p,test test_json,$(eval $(call precompiled,$(p),tests/libraries/$(p).h)))
endif

define library
$(OUT)/lib/$(1).list: FORCE
	@$$(call keep,$$(src_$(1)))
$(OUT)/lib/lib$(1).a: $$(call obj,$$(src_$(1))) $(OUT)/lib/$(1).list
	@rm -f $$@; ar crsD $$@ $$(filter %.o,$$^)
endef
$(foreach f,$(FOLDERS),$(eval $(call library,$(f))))

# --- link -----------------------------------------------------------------------------------------
link = $(Q)$(CXX) $(OPT) -pthread $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) \
       -Wl,--end-group $(1) -o $@

# The export list comes from the same table as the wrappers, so they cannot drift apart. The
# public hints (crane_*) are C functions; C++ names never start that way.
$(OUT)/libcrane.map: runtime/preload/ground/interposed.def \
    runtime/preload/ground/interposed_hosts.def runtime/preload/ground/interposed_terminals.def \
    runtime/preload/ground/interposed_machine.def
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q){ echo '{ global: crane_*;'; \
	  sed -nE 's/^INTERPOSE[A-Z_]*\( *[a-z_]+ *, *([A-Za-z0-9_]+).*/\1;/p' $^; \
	  echo 'local: *; };'; } > $@
$(OUT)/preload.list: FORCE
	@$(call keep,$(PRELOAD_OBJ))
$(OUT)/libcrane.so: $(PRELOAD_OBJ) $(OUT)/libcrane.map $(OUT)/preload.list
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,--version-script=$(OUT)/libcrane.map -Wl,-soname,libcrane.so \
	  -Wl,-z,now,-z,relro,-z,initfirst,--no-undefined,--gc-sections $(PRELOAD_OBJ) -o $@.new && mv -f $@.new $@

# Loaded into CRIU alone; it links nothing.
$(OUT)/criu_shim.so: checkpoint/criu_shim.c $(OUT)/flags
	$(call say,LINK,$@)
	$(Q)$(CC) -O2 -shared -fPIC -Wall -Wextra -Werror -nostdlib $< -o $@

define program
$(OUT)/$(1): $$(call obj,$$(main_$(1))) $$(call uses,$(2))
	$$(call say,LINK,$$@)
	$$(call link,$(3))
endef
$(eval $(call program,crane-node,node,$(LIBS_core)))
$(eval $(call program,crane-run,launcher,$(LIBS_core)))
$(eval $(call program,crane-ctl,launcher,$(LIBS_core)))
$(eval $(call program,crane-diff,record,$(LIBS_core)))
$(eval $(call program,crane-replay,node,$(LIBS_core)))
$(eval $(call program,crane-sim,sim,$(LIBS_core)))
$(eval $(call program,crane-solo,dmt))
$(eval $(call program,linear-client,linear,$(LIBS_core)))
$(eval $(call program,linear-check,linear,$(LIBS_core)))
$(eval $(call program,engine,engine))
$(eval $(call program,engine-load,engine))
$(eval $(call program,latency-load,latency))

# The same programs with the next version of the schedule (tests/e2e/hand_over.py): what looks into
# the table is compiled again, and comes before the libraries.
NEXT     := $(OUT)/next-schedule
NEXT_SRC := $(shell grep -lw kAgreedVersions $(src_node) $(src_host) $(src_setup) $(src_launcher))
$(NEXT)/dmt/base/versions.h: dmt/base/versions.h
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)sed -E '/kSchedule =/s/([0-9]+);/(\1 + 1);/' $< > $@
$(NEXT)/obj/%.o: %.cc $(NEXT)/dmt/base/versions.h $(OUT)/flags $(OUT)/commit
	$(call say,CXX,$< (next schedule))
	@mkdir -p $(@D)
	$(Q)$(CXX) -I$(NEXT) $(BASE) $(OPT) -O1 $(SYS_CFLAGS) -DCRANE_COMMIT='"next-schedule"' -c $< -o $@
define next_program
$(NEXT)/$(1): $$(call obj,$$(main_$(1))) $(patsubst %.cc,$(NEXT)/obj/%.o,$(filter $(2),$(NEXT_SRC))) \
    $$(call uses,$(3))
	$$(call say,LINK,$$@)
	$$(call link,$(LIBS_core))
endef
$(eval $(call next_program,crane-node,$(src_node) $(src_host) $(src_setup),node))
$(eval $(call next_program,crane-run,$(src_launcher) $(src_setup),launcher))
$(eval $(call next_program,crane-ctl,$(src_launcher) $(src_setup),launcher))
.PHONY: next-schedule
next-schedule: $(addprefix $(NEXT)/,crane-node crane-run crane-ctl)

define test_program
$(OUT)/test-$(1): $$(call obj,tests/main.cc $$(src_test_$(1))) $$(call uses,$(1))
	$$(call say,LINK,$$@)
	$$(call link,$(LIBS_core) -lrapidcheck)
.PHONY: test-$(1)
test-$(1): $(OUT)/test-$(1)
	$(Q)timeout 600 $(RUN_WITH) $(OUT)/test-$(1) $(ARGS)
endef
# Its test cases run a server of their own.
$(OUT)/test-checkpoint: | $(OUT)/unit/checkpoint/patient $(OUT)/unit/checkpoint/orphan
# gcc's tsan cannot map its shadow under this kernel's address randomisation.
RUN_WITH := $(if $(filter tsan,$(VARIANT)),setarch -R)
$(foreach a,$(AREAS),$(eval $(call test_program,$(a))))

define bench_program
$(call bench_name,$(1)): $$(call obj,$(1)) $$(call uses,all)
	$$(call say,LINK,$$@)
	$$(call link,$(LIBS_core) -lbenchmark)
endef
$(foreach s,$(BENCH_SRC),$(eval $(call bench_program,$(s))))

define fuzz_program
$(call fuzz_name,$(1)): $$(call obj,$(1) $$(fuzz_engine)) $$(call uses,fuzz)
	$$(call say,LINK,$$@)
	$$(call link,$(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer) $(LIBS_core))
endef
$(foreach s,$(FUZZ_SRC),$(eval $(call fuzz_program,$(s))))
.PHONY: fuzzers
fuzzers: $(FUZZERS)

# Libraries of these are in the folder, too: built with -shared, found beside them.
$(OUT)/interpose/soft_barrier_points $(OUT)/interpose/soft_barrier_points_off: \
  $(OUT)/interpose/crane_soft_barrier_library $(OUT)/interpose/crane_soft_barrier_plugin
$(OUT)/interpose/found_by_name: $(OUT)/interpose/crane_found_by_name_library
$(OUT)/interpose/tsc_of_library: $(OUT)/interpose/crane_tsc_library
$(OUT)/interpose/slices_of_library: $(OUT)/interpose/crane_slices_library
# Extra flags of one program stand in its own text: a line `// build: -static`.
$(OUT)/interpose/% $(OUT)/e2e/%: build_line = $$(sed -n 's|^// build: ||p' $<)
$(OUT)/%: tests/%.c $(OUT)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STRANGER) -MMD -MP -MF $@.d $< -L$(@D) $(build_line) -o $@
$(OUT)/interpose/%: tests/interpose/%.cc $(OUT)/flags
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++20 $(filter-out -std=%,$(STRANGER)) -MMD -MP -MF $@.d $< $(build_line) \
	  -o $@

# Porcupine, the second judge of histories, is a library of Go's.  Without Go, or its module, it is
# left out, and the scenario that wants it says so.
PORCUPINE := tests/linear/porcupine
$(OUT)/linear-porcupine: $(wildcard $(PORCUPINE)/*)
	$(call say,GO,$(PORCUPINE))
	@mkdir -p $(@D)
	@command -v go >/dev/null || { echo '$(@F) is left out: no go (golang-go)'; exit 0; }; \
	  cd $(PORCUPINE) && GOPATH=$(abspath $(OUT))/go GOCACHE=$(abspath $(OUT))/go/cache \
	  GOFLAGS=-modcacherw CGO_ENABLED=0 timeout 300 go build -o $(abspath $@) . || \
	  echo '$(@F) is left out: see above'

# --- install ------------------------------------------------------------------------------------
PREFIX ?= /usr/local
INSTALLED := $(patsubst %,crane-%,run ctl node diff replay)
PARTS  := $(LIBCRANE) $(OUT)/criu_shim.so $(INSTALLED:%=$(OUT)/%)
INSTALL = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' runtime/packaging/install.sh
# Manual pages and completion, which the programs make of their own options.
PAGES  := $(foreach p,$(INSTALLED),$(foreach k,man bash zsh,$(OUT)/pages/$(p).$(k)))
define page
$(OUT)/pages/%.$(1): $(OUT)/%
	$$(call say,PAGE,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$< --print-page $(1) > $$@.new && mv -f $$@.new $$@
endef
$(foreach k,man bash zsh,$(eval $(call page,$(k))))
.PHONY: parts install uninstall deb
parts: $(PARTS) $(PAGES)                          # what is installed
install: parts                                    ## below PREFIX (/usr/local), or DESTDIR/PREFIX
	$(Q)$(INSTALL) install $(OUT)
uninstall:                                        ## take that away
	$(Q)$(INSTALL) uninstall $(OUT)
deb: parts                                        ## Debian packages, into OUT/deb
	$(Q)runtime/packaging/make_deb.sh $(OUT)

# Short names: `make crane-run` is `make out/<variant>/crane-run`.
SHORT := libcrane.so crane-node crane-run crane-ctl crane-diff crane-replay crane-sim crane-solo \
         linear-porcupine $(notdir $(BENCHES))
.PHONY: $(SHORT)
$(SHORT): %: $(OUT)/%

# --- checks ---------------------------------------------------------------------------------------
RUN_TESTS = python3 tests/run.py --out $(OUT) --variant $(VARIANT)
deps:                                             ## install the missing Debian packages, and CRIU
	@tests/install_deps.sh
	@checkpoint/get_criu.sh $(OUT)/criu || true
# One sanitizer variant of the parts that have no business with other processes.
SANITIZED_AREAS := base dmt consensus record clients linear
BUILD_SANITIZED  = $(MAKE) --no-print-directory -k -j$(JOBS) VARIANT=asan OUT=$(OUT)-asan \
                   $(patsubst %,$(OUT)-asan/test-%,$(SANITIZED_AREAS)) fuzzers
test: deps                                        ## everything; last line: N passed, N failed
	@$(MAKE) --no-print-directory -k -j$(JOBS) all $(OUT)/linear-porcupine || true
	@$(RUN_TESTS) --full --sanitized $(OUT)-asan --areas '$(SANITIZED_AREAS)' \
	  --build-sanitized '$(BUILD_SANITIZED)' $(ARGS)
check:                                            ## the quick loop: unit tests, lints, few seeds
	@$(MAKE) --no-print-directory all
	@$(RUN_TESTS) --quick $(ARGS)
sim: $(OUT)/crane-sim                             ## simulator, 10,000 seeds (CRANE_SEED=n: its trace)
	$(Q)$(OUT)/crane-sim $(if $(CRANE_SEED),--seed $(CRANE_SEED) --trace,--count 10000) $(ARGS)
SEEDS ?= 100000
FIRST ?= 1
sim-soak: $(OUT)/crane-sim                        ## simulator, long: SEEDS=n FIRST=n JOBS=n SMALL=1; coverage
	$(Q)$(OUT)/crane-sim --soak --first $(FIRST) --count $(SEEDS) --jobs $(JOBS) \
	  $(if $(SMALL),--small) $(ARGS)
FUZZ_SECONDS ?= 60
fuzz:                                             ## libFuzzer on every byte format; FUZZ_SECONDS=n
	@command -v clang++-14 >/dev/null || { echo 'fuzz: install clang-14 and libclang-rt-14-dev'; \
	  exit 1; }
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=fuzz OUT=$(OUT)-fuzz fuzzers
	@python3 tests/fuzz/run_fuzz.py --out $(OUT)-fuzz --plain $(OUT) --seconds $(FUZZ_SECONDS) $(ARGS)
lint: $(LIBCRANE)                                 ## layering, symbols, tidy, format
	@$(RUN_TESTS) --only lint
accept:                                           ## end-to-end scenarios in full size, an hour
	@tests/install_deps.sh accept
	@$(MAKE) --no-print-directory programs
	@python3 tests/e2e/_accept.py --out $(OUT) $(ARGS)
accept-perturbed:                                 ## every server again and again beside hostile loads
	@$(MAKE) --no-print-directory programs
	@python3 tests/e2e/_perturbed.py --out $(OUT) $(ARGS)
# The plot wants matplotlib, which Debian installs for its own python.
PYTHON_PLOT = $(or $(shell for p in python3 /usr/bin/python3; do \
                $$p -c 'import matplotlib' 2>/dev/null && echo $$p && break; done),python3)
bench: programs $(BENCHES)                        ## native vs one and three replicas; turn cost
	@$(PYTHON_PLOT) eval/run.py bench --out $(OUT) $(ARGS)
eval-failover: programs $(OUT)/e2e/probe          ## fail-over times, false elections, idle CPU
	@$(PYTHON_PLOT) eval/run.py failover --out $(OUT) $(ARGS)
eval-slices: all                                  ## light clients beside a long computation
	@python3 eval/run.py slices --out $(OUT) $(ARGS)
eval-virtual-address: programs                    ## what an address that moves costs
	@$(PYTHON_PLOT) eval/run.py virtual_address --out $(OUT) $(ARGS)
eval-shared-connections: programs                 ## what connections that outlive a leader cost
	@$(PYTHON_PLOT) eval/run.py shared_connections --out $(OUT) $(ARGS)
eval-outbound: programs                           ## a server that asks another one, against native
	@$(PYTHON_PLOT) eval/run.py outbound --out $(OUT) $(ARGS)
eval-lossy: programs                              ## tcp between hosts that lose packets
	@$(PYTHON_PLOT) eval/run.py lossy --out $(OUT) $(ARGS)
eval-strategies: $(OUT)/bench-strategies           ## mu, dare, apus and raw operations, measured
	@$(PYTHON_PLOT) eval/run.py strategies --out $(OUT) $(ARGS)
eval-verbs: $(OUT)/bench-strategies                ## the same over RDMA, in a virtual machine
	@$(PYTHON_PLOT) eval/run.py strategies --verbs --out $(OUT) $(ARGS) || [ $$? = 77 ]
eval-scale: $(OUT)/bench-scale $(OUT)/bench-shm-group ## 3..105 replicas: computed, then really run
	@$(PYTHON_PLOT) eval/run.py scale --out $(OUT) $(ARGS)
eval-servers: programs                            ## the server matrix: equal bytes, overhead, bubbles
	@$(PYTHON_PLOT) eval/run.py servers --out $(OUT) $(ARGS)
eval-costs: programs                              ## wake-ups, system calls, copies of a request
	@$(PYTHON_PLOT) eval/run.py costs --out $(OUT) $(ARGS)
eval-checkpoints: programs                        ## checkpoints and returns of every server (CRANE table 2)
	@$(PYTHON_PLOT) eval/run.py checkpoints --out $(OUT) $(ARGS)
eval-suites: programs                             ## Debian's packaged suite of MariaDB, natively and here
	@python3 eval/run.py suites --out $(OUT) $(ARGS)
eval-sensitivity: programs                        ## other W_timeout and N_clock (CRANE fig. 16, 17)
	@$(PYTHON_PLOT) eval/run.py sensitivity --out $(OUT) $(ARGS)
eval-latency: programs                            ## latency at a fixed rate: native, one and three replicas
	@$(PYTHON_PLOT) eval/run.py latency --out $(OUT) $(ARGS)
eval-growth: programs $(OUT)/bench-turn           ## cost of a request by threads and clients; more cores, computed
	@$(PYTHON_PLOT) eval/run.py growth --out $(OUT) $(ARGS)
eval-hints: programs                              ## PHP with and without soft barriers (CRANE fig. 15)
	@$(PYTHON_PLOT) eval/run.py hints --out $(OUT) $(ARGS)
eval-etcd: programs                               ## three replicas of redis beside three of etcd
	@$(PYTHON_PLOT) eval/run.py etcd --out $(OUT) $(ARGS)
eval-soak: programs                               ## redis and apache2 under load, checkpoints and faults, hours
	@$(PYTHON_PLOT) eval/run.py soak --out $(OUT) $(ARGS)
eval-data: programs                               ## data that last: stops, kills and losses, nothing acknowledged is lost
	@python3 eval/run.py data --out $(OUT) $(ARGS)
eval-storm: programs                              ## faults at random, two hours; ARGS='--seed n --minutes n --servers redis'
	@python3 tests/e2e/storm.py --out $(OUT) --full $(ARGS)
demo:                                             ## three replicas of a server, one killed
	@tests/install_deps.sh demo
	@checkpoint/get_criu.sh $(OUT)/criu || true
	@$(MAKE) --no-print-directory -j$(JOBS) $(LIBCRANE) $(DEMO_PROGRAMS)
	@python3 eval/demo.py --out $(OUT) $(ARGS)
DEMO_PROGRAMS := $(patsubst %,$(OUT)/crane-%,node run ctl diff)
OUR_CODE := $(shell find checkpoint consensus dmt eval hints proxy runtime tests \
              \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) 2>/dev/null)
format:                                           ## rewrite our code with clang-format 14
	$(Q)$$(command -v clang-format-14 || echo clang-format) -i $(OUR_CODE)
tidy: compile_commands.json                       ## clang-tidy (needs clang-tidy)
	$(Q)clang-tidy -p . --quiet $(filter %.cc,$(ALL_SRC))
compile_commands.json: FORCE                      # for editors and clang-tidy
	@{ echo '['; sep=; for f in $(ALL_SRC); do printf '%s{"directory":"%s","file":"%s",' \
	  "$$sep" "$(CURDIR)" "$$f"; printf '"command":"%s -c %s"}\n' \
	  '$(CXX) $(BASE) $(OPT) $(SYS_CFLAGS)' "$$f"; sep=,; done; echo ']'; } > $@
packages:                                         ## name libraries that are absent
	@for m in $(MODULES); do pkg-config --exists $${m%%=*} 2>/dev/null || \
	  echo "absent: $${m%%=*}: install $${m##*=} (make deps)"; done
	@for h in $(HEADERS); do test -e /usr/include/$${h%%=*} || \
	  echo "absent: $${h%%=*}: install $${h##*=} (make deps)"; done
clean:                                            ## remove out/
	rm -rf out
help:                                             ## this list
	@sed -nE 's/^([a-z_-]+):[^#]*## (.*)/  \1\t\2/p' Makefile | expand -t 14
	@echo '  test-AREA   one area: $(AREAS)'

-include $(patsubst %.cc,$(OUT)/obj/%.d,$(ALL_SRC)) $(PRELOAD_OBJ:.o=.d) $(STRANGERS:=.d) \
  $(patsubst %.cc,$(NEXT)/obj/%.d,$(NEXT_SRC))
