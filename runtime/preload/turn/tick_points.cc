// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/tick_points.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "dmt/base/build_id.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "dmt/slices.h"
#include "runtime/preload/ground/code.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/turn/tick_stub.h"
#include "runtime/preload/turn/turn.h"

// Provided by the linker: begin and end of libcrane.so in memory.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

namespace crane::ticks {

std::uint32_t changes_seen = 0;

namespace {

// The state of a point in this process.
struct Site {
  std::uintptr_t address = 0;  // 0: its object is not loaded
  std::uintptr_t place = 0;    // address of its stub
  std::uint32_t weight_ps = 0;
  std::uint32_t weight = 0, stop = 0;  // as in Stub
  std::uintptr_t shown = 0;
  unsigned char begins[kReplacedMax] = {};
  bool refused = false;
};
constinit Site sites[dmt::kTickPointsMax];

// The stub of point i is at i * kStubMax in one of two areas: near the libraries, or near the
// program.
constexpr std::size_t kAreaBytes = dmt::kTickPointsMax * kStubMax;
alignas(kCodePage) unsigned char beside_libraries[kAreaBytes];
std::uintptr_t beside_program = 0;                 // 0: none
constexpr std::size_t kBelowProgram = 512 * 1024;  // the space between is used by tsc_site.cc

// --- objects -------------------------------------------------------------------------------------

struct Object {
  std::uintptr_t base = 0;  // base of its relative addresses
  const ElfW(Phdr) * parts = nullptr;
  unsigned part_count = 0;
  std::uint64_t build = 0;  // 0: no build id
};

Object object_of(const dl_phdr_info& info) noexcept {
  Object object{info.dlpi_addr, info.dlpi_phdr, info.dlpi_phnum, 0};
  for (unsigned i = 0; i < object.part_count && object.build == 0; ++i) {
    const ElfW(Phdr)& p = object.parts[i];
    if (p.p_type == PT_NOTE) object.build = build_id(code_at(object.base + p.p_vaddr), p.p_memsz);
  }
  return object;
}

bool has_code_at(const Object& object, std::uintptr_t offset, std::size_t bytes) noexcept {
  for (unsigned i = 0; i < object.part_count; ++i) {
    const ElfW(Phdr)& p = object.parts[i];
    const bool is_code = p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0 && (p.p_flags & PF_W) == 0;
    if (is_code && offset >= p.p_vaddr && offset - p.p_vaddr + bytes <= p.p_filesz) return true;
  }
  return false;
}

// --- stubs ---------------------------------------------------------------------------------------

// Whether other threads of this process may be anywhere in its code, because they compute without
// the turn or were preempted in a loop.
bool some_run_beside_turn(const dmt::Layout& w) noexcept {
  const dmt::Configuration& c = w.header.configuration;
  return c.stall_rule == dmt::StallRule::kSpins ||
         (c.detached_calls & dmt::kDetachAnyComputation) != 0;
}

const char* put_stub(const TickPoint& point, std::size_t number, Site& site) noexcept {
  const ThreadWords words{thread_word(&self.slice_left_ps), thread_word(&self.tick_saved)};
  const unsigned char* code = code_at(site.address);
  const char* wrong = nullptr;
  for (const std::uintptr_t area :
       {reinterpret_cast<std::uintptr_t>(beside_libraries), beside_program}) {
    if (area == 0) continue;
    Stub stub;
    const std::uintptr_t place = area + number * kStubMax;
    wrong = build(point, site.address, code, place, words, stub);
    if (wrong != nullptr) continue;
    const auto write = [&stub](unsigned char* out) { std::memcpy(out, stub.code, stub.size); };
    if (!change_code(place, kStubMax, write)) return "memory cannot be made executable";
    site.place = place;
    site.weight = static_cast<std::uint32_t>(stub.weight);
    site.stop = static_cast<std::uint32_t>(stub.stop);
    site.shown = stub.shown;
    std::memcpy(site.begins, stub.begins, sizeof site.begins);
    return nullptr;
  }
  return wrong;
}

const char* put_entry(const TickPoint& point, Site& site) noexcept {
  const unsigned char* code = code_at(site.address);
  unsigned char entry[kReplacedMax];
  build_entry(site.address, code, point.bytes, site.place, entry);
  if (code[0] != entry[0] && some_run_beside_turn(without_turn())) {
    return "threads compute without the turn, and it is not a direct call";
  }
  const bool changed = change_code(site.address, point.bytes, [&](unsigned char* out) {
    if (out[0] == entry[0]) {  // atomic, for threads that run here meanwhile
      std::uint32_t distance = 0;
      std::memcpy(&distance, entry + 1, sizeof distance);
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(out + 1), distance, __ATOMIC_RELEASE);
    } else {
      std::memcpy(out, entry, point.bytes);
    }
  });
  site.weight_ps = point.weight_ps;
  return changed ? nullptr : "its code cannot be changed";
}

void refuse(std::uint32_t number, const char* why) noexcept {
  auto& refused = without_turn().slice_report.refused[number];
  sites[number].refused = true;
  if (refused.fetch_add(1, std::memory_order_relaxed) != 0) return;
  Message log_line;
  log_line << "no tick point at +";
  log_line.hex(without_turn().tick_points.points[number].offset) << " of the object with build id ";
  log_line.hex(__builtin_bswap64(without_turn().tick_points.points[number].build)) << ": " << why;
}

void add_site(std::uint32_t number, const TickPoint& point, const Object& object) noexcept {
  Site& site = sites[number];
  site = Site{};
  site.address = object.base + point.offset;
  if (is_libc_or_trusted(code_at(site.address)))  // libc may hold a lock there
    return refuse(number, "it belongs to libc, ld.so or Crane");
  if (!has_code_at(object, point.offset, point.bytes))
    return refuse(number, "there is no code of that object");
  const char* wrong = put_stub(point, number, site);
  if (wrong == nullptr) wrong = put_entry(point, site);
  if (wrong != nullptr) refuse(number, wrong);
}

void change_weight(Site& site, std::uint32_t weight_ps) noexcept {
  const auto write = [weight_ps](unsigned char* out) {
    std::memcpy(out, &weight_ps, sizeof weight_ps);
  };
  change_code(site.place + site.weight, sizeof weight_ps, write);
  site.weight_ps = weight_ps;
}

// Whether the object was unloaded and loaded again, so that the stub is missing.
bool is_bare(const Site& site) noexcept {
  std::int32_t distance = 0;
  std::memcpy(&distance, code_at(site.address) + 1, sizeof distance);
  return site.address + kEntryBytes + static_cast<std::uintptr_t>(distance) != site.place;
}

int look_at(dl_phdr_info* info, std::size_t, void*) noexcept {
  const Object object = object_of(*info);
  if (object.build == 0) return 0;
  const dmt::TickPoints& all = without_turn().tick_points;
  for (std::uint32_t i = 0; i < all.used; ++i) {
    const TickPoint& point = all.points[i];
    if (point.build != object.build) continue;
    Site& site = sites[i];
    if (site.address != object.base + point.offset || (!site.refused && is_bare(site))) {
      add_site(i, point, object);
    } else if (!site.refused && site.weight_ps != point.weight_ps) {
      change_weight(site, point.weight_ps);
    }
  }
  return 0;
}

// --- the end of a slice --------------------------------------------------------------------------

std::int64_t cpu_ns() noexcept {
  timespec t{};
  raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// Reports the duration of this thread's last slice if the thread computed all the time.
void report(std::uint32_t number) noexcept {
  dmt::Layout& w = without_turn();
  const bool whole = self.slice_operations == w.slots[self.slot].operations;
  const std::uint32_t weight = number == kNoPoint ? 0 : sites[number].weight_ps;
  dmt::report_slice(w, number, weight, whole ? cpu_ns() - self.slice_began_ns : 0);
}

// --- ld.so's locks -------------------------------------------------------------------------------

// The data of ld.so, which contains its recursive locks.
const unsigned char* loader_data = nullptr;
std::size_t loader_bytes = 0;

void find_loader_data() noexcept {
  void* const data = dlvsym(RTLD_DEFAULT, "_rtld_global", "GLIBC_PRIVATE");
  Dl_info info;
  void* symbol = nullptr;
  if (data == nullptr || dladdr1(data, &info, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr)
    return;
  loader_data = static_cast<const unsigned char*>(data);
  loader_bytes = static_cast<const ElfW(Sym)*>(symbol)->st_size;
}

// Whether this thread holds one of these locks: in a constructor within dlopen, or in a callback of
// dl_iterate_phdr.
bool holds_loader_lock() noexcept {
  struct Recursive {  // the beginning of pthread_mutex_t
    std::int32_t lock;
    std::uint32_t count;
    std::int32_t owner;
    std::uint32_t users;
    std::int32_t kind;
  };
  for (std::size_t at = 0; at + sizeof(Recursive) <= loader_bytes; at += sizeof(std::uint64_t)) {
    Recursive m;
    std::memcpy(&m, loader_data + at, sizeof m);
    if (m.owner == static_cast<std::int32_t>(self.thread_id) && m.lock != 0 && m.count != 0 &&
        m.users == 1 && m.kind == PTHREAD_MUTEX_RECURSIVE)
      return true;
  }
  return false;
}

// TICK-2, for a thread outside Crane.
bool holds_nothing() noexcept {
  return !self.forking && !self.holding_for_fork && self.locked_streams == 0 &&
         without_turn().slots[self.slot].detached.load(std::memory_order_relaxed) == 0 &&
         !holds_loader_lock();
}

// Begins the last part of the slice; false: it is over, too.
bool begin_last_part() noexcept {
  if (self.slice_rest_ps == 0) return false;
  self.slice_left_ps += self.slice_rest_ps;
  self.slice_rest_ps = 0;
  if (self.slice_left_ps < 0) return false;
  if (!is_outside() || !holds_nothing()) return true;
  InsideCrane inside;
  const int saved = errno;
  dmt::ask_for_bubble(without_turn());
  errno = saved;
  return true;
}

// Stubs of points and of RDTSC are in our data or below the program.
bool is_in_stub(std::uintptr_t at) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(__ehdr_start);
  const auto end = reinterpret_cast<std::uintptr_t>(_end);
  return (at >= begin && at < end) || (at >= beside_program && at < beside_program + kBelowProgram);
}

}  // namespace

void take_turn_of_slice(const void* place, std::uint32_t point) noexcept {
  if (!dmt::get_turn_or_leave(without_turn(), own_slot())) {  // TICK-3
    without_turn().slots[self.slot].in_operation.store(0, std::memory_order_relaxed);
    return begin_slice(without_turn());
  }
  self.caller = place;
  report(point);
  {
    Turn turn(Op::kSlice);
    turn.result(static_cast<int>(point));
    turn.end_slice();
  }
  begin_slice(without_turn());
  self.slice_operations = without_turn().slots[self.slot].operations;
  self.slice_began_ns = cpu_ns();
}

bool may_end_at(const void* place) noexcept {
  return !is_libc_or_trusted(place) && !is_in_stub(reinterpret_cast<std::uintptr_t>(place)) &&
         holds_nothing();
}

void prepare() noexcept {
  if (without_turn().header.configuration.slice_ps == 0) return;
  find_loader_data();
  const std::uintptr_t program = getauxval(AT_PHDR) & ~(kCodePage - 1);
  const long area =
      raw_syscall(SYS_mmap, program - kBelowProgram, kAreaBytes, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (area > 0) beside_program = static_cast<std::uintptr_t>(area);
}

void look_for_points() noexcept {
  changes_seen = without_turn().tick_points.changes;
  // A filter of the program may end the process when a page of code becomes writable.
  if (without_turn().tick_points.used == 0 || is_filtered()) return;
  dl_iterate_phdr(look_at, nullptr);
}

bool handle_break(const siginfo_t* info, void* context) noexcept {
  if (info->si_code != SI_KERNEL) return false;
  auto& address = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const auto behind = static_cast<std::uintptr_t>(address);
  for (std::uint32_t i = 0; i < dmt::kTickPointsMax; ++i) {
    const Site& site = sites[i];
    if (site.place == 0 || behind != site.place + site.stop + 1) continue;
    if (begin_last_part()) return true;
    if (!is_outside() || !holds_nothing()) {
      begin_slice(without_turn());
      return true;
    }
    const int saved = errno;
    address = static_cast<greg_t>(site.shown);
    {
      InsideCrane inside;
      take_turn_of_slice(code_at(site.address), i);
    }
    address = static_cast<greg_t>(behind);
    errno = saved;
    return true;
  }
  return false;
}

void show_program(void* context) noexcept {
  auto& address = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const auto at = static_cast<std::uintptr_t>(address);
  for (const Site& site : sites) {
    if (site.place == 0 || at - site.place >= kStubMax) continue;
    for (std::size_t i = 0; i < kReplacedMax; ++i) {
      if (site.begins[i] != 0 && at == site.place + site.begins[i])
        address = static_cast<greg_t>(site.address + i);
    }
  }
}

void resume_program(void* context, std::uintptr_t place, std::uintptr_t shown) noexcept {
  auto& address = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const auto chosen = static_cast<std::uintptr_t>(address);
  for (const Site& site : sites) {
    if (site.place == 0) continue;
    if (chosen == shown && place - site.place < kStubMax) {
      address = static_cast<greg_t>(place);
      return;
    }
    const std::uintptr_t within = chosen - site.address;
    if (within > 0 && within < kReplacedMax && site.begins[within] != 0)
      address = static_cast<greg_t>(site.place + site.begins[within]);
  }
}

}  // namespace crane::ticks
