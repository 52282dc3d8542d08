// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/tsc_site.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <linux/membarrier.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "runtime/preload/ground/code.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/trap/tsc_stub.h"

namespace crane::tsc {
namespace {

enum class State : std::uint8_t { kCounting, kChanging, kChanged, kRefused };

struct Site {
  std::atomic<std::uintptr_t> address{0};
  std::atomic<std::uintptr_t> place{0};  // of the stub; 0: none yet
  std::atomic<std::size_t> after{0};     // offset in the stub
  std::atomic<State> state{State::kCounting};
  std::uint32_t traps = 0;
};
constinit Site sites[kSitesMax];
std::atomic<std::size_t> sites_used{0};  // only grows

// Held by the thread that adds places and changes code. Other threads do not wait: there will be
// another trap.
std::atomic<bool> is_changing{false};

// Stubs of libraries, which are near our own data, and those of the program.
constexpr std::size_t kAreaBytes = 256 * 1024;
alignas(kCodePage) unsigned char beside_libraries[kAreaBytes];
std::uintptr_t beside_program = 0;  // 0: none

Site* find(std::uintptr_t address) noexcept {
  const std::size_t used = sites_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    if (sites[i].address.load(std::memory_order_relaxed) == address) return &sites[i];
  }
  return nullptr;
}

Site* find_or_add(std::uintptr_t address) noexcept {
  Site* site = find(address);
  const std::size_t used = sites_used.load(std::memory_order_relaxed);
  if (site != nullptr || used == kSitesMax) return site;
  site = &sites[used];
  site->address.store(address, std::memory_order_relaxed);
  sites_used.store(used + 1, std::memory_order_release);
  return site;
}

// --- places of stubs -----------------------------------------------------------------------------

bool is_free(std::uintptr_t place) noexcept {
  const std::size_t used = sites_used.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < used; ++i) {
    const std::uintptr_t taken = sites[i].place.load(std::memory_order_relaxed);
    if (taken != 0 && place < taken + kStubMax && taken < place + kStubMax) return false;
  }
  return true;
}

constexpr std::size_t kStep = 16;

// Writes a stub for the site into `area`. False: it is out of reach, or there is no room.
bool put_stub(Site& site, std::uintptr_t area, const ThreadWords& words) noexcept {
  const std::uintptr_t address = site.address.load(std::memory_order_relaxed);
  const std::uintptr_t end = area + kAreaBytes - kStubMax;
  std::uintptr_t place = next_place(address, area);
  while (place <= end && !is_free(place)) place = next_place(address, place + kStep);
  Stub stub;
  if (place > end || !build(address, code_at(address), place, words, stub)) return false;
  // Other threads may run in the area meanwhile.
  if (protect_code(area, kAreaBytes, kWritableCode) != 0) return false;
  std::memcpy(code_at(place), stub.code, stub.size);
  protect_code(area, kAreaBytes, PROT_READ | PROT_EXEC);
  site.after.store(stub.after, std::memory_order_relaxed);
  site.place.store(place, std::memory_order_release);
  return true;
}

bool put_stub(Site& site) noexcept {
  const ThreadWords words{thread_word(InsideCrane::selector()), thread_word(&self.clock_reads),
                          thread_word(&self.clock_ns)};
  site.place.store(0, std::memory_order_relaxed);
  if (put_stub(site, reinterpret_cast<std::uintptr_t>(beside_libraries), words)) return true;
  return beside_program != 0 && put_stub(site, beside_program, words);
}

// --- changing the program's code -----------------------------------------------------------------

// Whether the code belongs to an object's file, so that only Crane changes it.
bool is_of_object(std::uintptr_t address) noexcept {
  dl_find_object found;
  if (_dl_find_object(code_at(address), &found) != 0) return false;
  const auto* elf = static_cast<const ElfW(Ehdr)*>(found.dlfo_map_start);
  if (std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(
      reinterpret_cast<std::uintptr_t>(found.dlfo_map_start) + elf->e_phoff);
  const std::uintptr_t offset = address - found.dlfo_link_map->l_addr;
  for (unsigned i = 0; i < elf->e_phnum; ++i) {
    const ElfW(Phdr)& p = parts[i];
    const bool is_code = p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0 && (p.p_flags & PF_W) == 0;
    if (is_code && offset - p.p_vaddr < p.p_filesz) return true;
  }
  return false;
}

// Makes every processor that runs a thread of this process see the current code.
bool serialise() noexcept {
  return raw_syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

long register_for_serialise() noexcept {
  return raw_syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

bool can_change(std::uintptr_t address) noexcept {
  if (address % kCodePage > kCodePage - kJump || !is_of_object(address)) return false;
  return serialise() || (register_for_serialise() == 0 && serialise());
}

// TSC-2. REQUIRES that the page is writable.
void write_code(std::uintptr_t address, const unsigned char (&jump)[kJump]) noexcept {
  auto* code = reinterpret_cast<volatile unsigned char*>(address);
  constexpr std::size_t kMoved = sizeof kRead;
  code[0] = kBreak;
  serialise();
  code[kMoved] = kBreak;
  serialise();
  for (std::size_t i = 1; i < kJump; ++i) code[i] = jump[i];
  serialise();
  code[0] = jump[0];
  serialise();
}

bool change(Site& site) noexcept {
  const std::uintptr_t address = site.address.load(std::memory_order_relaxed);
  if (!can_change(address) || !put_stub(site)) return false;
  if (protect_code(address, kJump, kWritableCode) != 0) return false;
  unsigned char jump[kJump];
  build_jump(address, site.place.load(std::memory_order_relaxed), jump);
  site.state.store(State::kChanging, std::memory_order_release);  // TSC-1
  write_code(address, jump);
  protect_code(address, kJump, PROT_READ | PROT_EXEC);
  return true;
}

// Whether the code there is ours, also during a change, and not another library's at the same
// address.
bool is_changed(const Site& site, std::uintptr_t address) noexcept {
  const State state = site.state.load(std::memory_order_acquire);
  if (state == State::kChanging) return true;
  if (state != State::kChanged) return false;
  unsigned char jump[kJump];
  build_jump(address, site.place.load(std::memory_order_relaxed), jump);
  return std::memcmp(code_at(address), jump, kJump) == 0;
}

void count(std::uintptr_t address) noexcept {
  Site* site = find_or_add(address);
  if (site == nullptr || std::memcmp(code_at(address), kRead, sizeof kRead) != 0) return;
  const State state = site->state.load(std::memory_order_relaxed);
  if (state == State::kRefused) return;
  if (state != State::kCounting) {  // its library was unloaded
    site->state.store(State::kCounting, std::memory_order_relaxed);
    site->traps = 0;
  }
  if (++site->traps < kTrapsBeforeChange) return;
  const bool done = change(*site);
  site->state.store(done ? State::kChanged : State::kRefused, std::memory_order_release);
}

}  // namespace

void prepare_sites() noexcept {
  if (in_valgrind) return;
  register_for_serialise();  // immediate in a process with one thread
  const std::uintptr_t program = getauxval(AT_PHDR) & ~(kCodePage - 1);
  const long area =
      raw_syscall(SYS_mmap, program - kAreaBytes, kAreaBytes, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (area > 0) beside_program = static_cast<std::uintptr_t>(area);
}

void note_trap(std::uintptr_t site) noexcept {
  const void* code = code_at(site);
  if (is_filtered() || is_libc_or_trusted(code) || is_changing.exchange(true)) return;
  count(site);
  is_changing.store(false, std::memory_order_release);
}

std::uintptr_t site_of(std::uintptr_t address) noexcept {
  const std::size_t used = sites_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    const std::uintptr_t place = sites[i].place.load(std::memory_order_acquire);
    if (place != 0 && address - place < kStubMax) return sites[i].address;
  }
  return address;
}

void show_program(void* context) noexcept {
  auto& address = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const auto at = static_cast<std::uintptr_t>(address);
  const std::uintptr_t site = site_of(at);
  if (site != at) address = static_cast<greg_t>(site + sizeof kRead);
}

bool resume(std::uintptr_t address, ucontext_t& context) noexcept {
  for (const std::size_t behind : {std::size_t{0}, sizeof kRead}) {
    const Site* site = find(address - behind);
    if (site == nullptr || !is_changed(*site, address - behind)) continue;
    const std::uintptr_t place = site->place.load(std::memory_order_relaxed);
    const std::size_t after = behind == 0 ? 0 : site->after.load(std::memory_order_relaxed);
    context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(place + after);
    return true;
  }
  return false;
}

bool handle_break(const siginfo_t* info, void* context) noexcept {
  if (info->si_code != SI_KERNEL) return false;
  auto& interrupted = *static_cast<ucontext_t*>(context);
  const auto behind = static_cast<std::uintptr_t>(interrupted.uc_mcontext.gregs[REG_RIP]);
  return resume(behind - 1, interrupted);
}

}  // namespace crane::tsc
