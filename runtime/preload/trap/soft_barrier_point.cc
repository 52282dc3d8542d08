// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/soft_barrier_point.h"

#include <link.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "dmt/base/instruction.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "runtime/preload/ground/code.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/turn/soft_barrier.h"
#include "runtime/preload/turn/tick_points.h"

namespace crane {
namespace {

constexpr unsigned char kBreak = 0xcc;                          // int3
constexpr std::uint64_t kPointSpace = ~0ull;                    // not the space of a process
constexpr std::uint32_t kLoading = dmt::kSoftBarrierPointsMax;  // instead of a point

struct Breakpoint {
  std::atomic<std::uintptr_t> address{0};  // 0 = free
  std::uint32_t point = 0;
};
constexpr std::size_t kBreakpointsMax = 16;
constinit Breakpoint breakpoints[kBreakpointsMax];

// The replaced instruction, and a jump to the next one.
constexpr unsigned char kJump[] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
constexpr std::size_t kMovedBytes = 32;
static_assert(kInstructionMax + sizeof kJump + sizeof(std::uintptr_t) <= kMovedBytes);
alignas(kCodePage) unsigned char moved[kCodePage];
static_assert(kBreakpointsMax * kMovedBytes <= sizeof moved);

const r_debug* loader = nullptr;

// --- breakpoints ---------------------------------------------------------------------------------

Breakpoint* find_breakpoint(std::uintptr_t address) noexcept {
  for (Breakpoint& b : breakpoints) {
    if (b.address.load(std::memory_order_acquire) == address) return &b;
  }
  return nullptr;
}

unsigned char* moved_of(const Breakpoint& b) noexcept {
  return moved + static_cast<std::size_t>(&b - breakpoints) * kMovedBytes;
}

// Returns null, or why it is impossible.
const char* set_breakpoint(std::uintptr_t address, std::uint32_t point) noexcept {
  const auto* code = reinterpret_cast<const unsigned char*>(address);
  Breakpoint* b = find_breakpoint(address);
  if (b != nullptr && *code == kBreak) return nullptr;
  const std::size_t length = movable_length(code);
  if (length == 0) return "it begins with an instruction that cannot be moved";
  if (b == nullptr) b = find_breakpoint(0);
  if (b == nullptr) return "there are too many of them in one process";
  const bool wrote = change_code(address_of(moved_of(*b)), kMovedBytes, [&](unsigned char* out) {
    const std::uintptr_t behind = address + length;
    std::memcpy(out, code, length);
    std::memcpy(out + length, kJump, sizeof kJump);
    std::memcpy(out + length + sizeof kJump, &behind, sizeof behind);
  });
  if (!wrote) return "memory cannot be made executable";
  b->point = point;
  b->address.store(address, std::memory_order_release);
  if (change_code(address, 1, [](unsigned char* out) { *out = kBreak; })) return nullptr;
  return "its code cannot be changed";
}

// --- functions by name ---------------------------------------------------------------------------

struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;  // DT_GNU_HASH
};

Symbols symbols_of(const dl_phdr_info& object) noexcept {
  Symbols s;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = object.dlpi_phdr[i];
    if (p.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + p.p_vaddr);
    }
  }
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    // ld.so has relocated them to addresses, except in the vDSO.
    std::uintptr_t at = dynamic->d_un.d_ptr;
    if (at < object.dlpi_addr) at += object.dlpi_addr;
    if (dynamic->d_tag == DT_SYMTAB) s.table = reinterpret_cast<const ElfW(Sym)*>(at);
    if (dynamic->d_tag == DT_STRTAB) s.names = reinterpret_cast<const char*>(at);
    if (dynamic->d_tag == DT_GNU_HASH) s.hash = reinterpret_cast<const std::uint32_t*>(at);
    if (dynamic->d_tag == DT_DEBUG && loader == nullptr) {
      loader = reinterpret_cast<const r_debug*>(dynamic->d_un.d_ptr);
    }
  }
  return s;
}

std::uint32_t hash_of(const char* name) noexcept {
  std::uint32_t h = 5381;
  for (; *name != '\0'; ++name) h = h * 33 + static_cast<unsigned char>(*name);
  return h;
}

// Returns the offset of the exported function in the object; 0: none.
std::uintptr_t find_function(const Symbols& s, const char* name) noexcept {
  if (s.table == nullptr || s.names == nullptr || s.hash == nullptr) return 0;
  const std::uint32_t buckets = s.hash[0], first = s.hash[1], filter_words = s.hash[2];
  if (buckets == 0) return 0;
  const std::uint32_t* bucket = s.hash + 4 + 2 * std::size_t{filter_words};
  const std::uint32_t* chain = bucket + buckets;
  const std::uint32_t wanted = hash_of(name);
  for (std::uint32_t i = bucket[wanted % buckets]; i >= first; ++i) {
    const std::uint32_t hash = chain[i - first];
    const ElfW(Sym)& symbol = s.table[i];
    if ((hash | 1) == (wanted | 1) && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        symbol.st_shndx != SHN_UNDEF && std::strcmp(s.names + symbol.st_name, name) == 0) {
      return symbol.st_value;
    }
    if ((hash & 1) != 0) break;
  }
  return 0;
}

bool has_slices() noexcept { return without_turn().header.configuration.slice_ps != 0; }

void refuse(dmt::SoftBarrierPoint& point, const char* why) noexcept {
  dmt::PointState seen = dmt::PointState::kNotFound;
  if (!point.state.compare_exchange_strong(seen, dmt::PointState::kRefused)) return;
  Message() << "soft barrier point " << point.function << " is not usable: " << why;
}

int look_at(dl_phdr_info* object, std::size_t, void*) noexcept {
  const Symbols symbols = symbols_of(*object);
  for (std::uint32_t i = 0; i < dmt::kSoftBarrierPointsMax; ++i) {
    dmt::SoftBarrierPoint& point = without_turn().soft_barrier_points[i];
    if (point.function[0] == '\0') continue;
    const std::uintptr_t offset = find_function(symbols, point.function);
    if (offset == 0) continue;
    const std::uintptr_t address = object->dlpi_addr + offset;
    // A soft barrier itself needs this function, perhaps under a lock.
    const bool ours = is_libc_or_trusted(reinterpret_cast<const void*>(address));
    const char* wrong = ours ? "it belongs to libc, ld.so or Crane" : set_breakpoint(address, i);
    if (wrong != nullptr) {
      refuse(point, wrong);
    } else {
      point.state.store(dmt::PointState::kFound, std::memory_order_relaxed);
    }
  }
  return 0;
}

// Called when ld.so has added or removed libraries. ld.so holds its recursive locks; the
// constructors of the new libraries have not run.
void look_again() noexcept {
  const int saved = errno;
  if (loader->r_state != r_debug::RT_CONSISTENT) return;
  const bool outside = is_outside();
  if (outside) InsideCrane::set_inside();
  dl_iterate_phdr(look_at, nullptr);
  if (has_slices()) ticks::look_for_points();
  if (outside) InsideCrane::set_outside();
  errno = saved;
}

// Puts a jump into the function that ld.so calls for debuggers, which only returns. A breakpoint
// would conflict with a debugger's at the same place. False: there is no room for the jump, or the
// function has other code.
bool put_jump_at(std::uintptr_t debugger_hook) noexcept {
  constexpr unsigned char kLandingPad[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  constexpr std::uintptr_t kAligned = 16;  // the rest, up to the next function, is filled with nops
  const auto* code = reinterpret_cast<const unsigned char*>(debugger_hook);
  if (std::memcmp(code, kLandingPad, sizeof kLandingPad) == 0) code += sizeof kLandingPad;
  constexpr unsigned char kReturn = 0xc3, kFillers[] = {0x66, 0x90, 0x0f, 0x2e, 0xcc};
  if (debugger_hook % kAligned != 0 || code[0] != kReturn ||
      std::memchr(kFillers, code[1], sizeof kFillers) == nullptr) {
    return false;
  }
  static_assert(kJumpBytes <= kAligned);
  return change_code(debugger_hook, kJumpBytes, [](unsigned char* out) {
    write_jump(address_of(out), address_of(look_again));
  });
}

void enter_point(std::uint32_t number, void* caller) noexcept {
  InsideCrane inside;
  self.caller = caller;
  // The same name in all processes, wherever each maps the segment.
  const auto* name = reinterpret_cast<const void*>(std::uintptr_t{number} + 1);
  soft_barrier(without_turn().soft_barrier_points[number].soft_barrier,
               name_of_address(kPointSpace, name));
}

}  // namespace

void prepare_soft_barrier_points() noexcept {
  bool some = false;
  for (const dmt::SoftBarrierPoint& p : without_turn().soft_barrier_points)
    some = some || p.function[0] != '\0';
  if (!some && !has_slices()) return;
  dl_iterate_phdr(look_at, nullptr);
  const std::uintptr_t debugger_hook = loader == nullptr ? 0 : loader->r_brk;
  if (debugger_hook == 0 ||
      (!put_jump_at(debugger_hook) && set_breakpoint(debugger_hook, kLoading) != nullptr)) {
    Message() << "soft barrier and tick points are not searched for in libraries that are loaded "
                 "later";
  }
}

bool handle_breakpoint(const siginfo_t* info, void* context) noexcept {
  if (info->si_code != SI_KERNEL) return false;
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto address = static_cast<std::uintptr_t>(registers[REG_RIP]) - 1;
  const Breakpoint* b = find_breakpoint(address);
  if (b == nullptr) return false;
  registers[REG_RIP] = static_cast<greg_t>(address);  // for unwinders
  const int saved = errno;
  if (b->point == kLoading) {
    look_again();
  } else if (is_outside()) {
    enter_point(b->point, *reinterpret_cast<void**>(registers[REG_RSP]));
  }
  errno = saved;
  registers[REG_RIP] = static_cast<greg_t>(address_of(moved_of(*b)));
  return true;
}

}  // namespace crane
