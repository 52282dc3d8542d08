// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/system_call_trap.h"

#include <sys/prctl.h>
#include <ucontext.h>

#include <cstring>

#include "dmt/admission.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "dmt/unhooked.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/trap/seccomp_check.h"
#include "runtime/preload/turn/process_end.h"

namespace crane {
namespace {

constexpr long kDispatchOn = 1;  // PR_SYS_DISPATCH_ON
constexpr int kTrapCode = 2;     // SYS_USER_DISPATCH

SystemCallTable system_call = nullptr;

bool is_blind = false;  // this kernel has no dispatch

// --- the caller ----------------------------------------------------------------------------------

template <std::size_t size>
void copy_end(const char* text, char (&out)[size]) noexcept {
  const std::size_t n = std::strlen(text);
  const std::size_t skip = n < size ? 0 : n - size + 1;
  std::memcpy(out, text + skip, n - skip + 1);
}

void name_object(std::uintptr_t address, dmt::UnhookedCall& call) noexcept {
  const LoadedObject found = find_object(address);
  call.offset = address - found.base;
  if (found.name == nullptr) {
    copy_end("memory of no file", call.object);
  } else if (found.name[0] != '\0') {
    copy_end(found.name, call.object);
  } else {
    char path[512];
    const long n = raw_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    copy_end(n < 0 ? "the program" : path, call.object);
  }
}

void name_call(long number, dmt::UnhookedCall& call) noexcept {
  const char* name = system_call(number).name;
  copy_end(name == nullptr ? "unknown" : name, call.name);
}

// Calls that were already reported: a place in the program, the call number, and the record.
struct Known {
  std::atomic<std::uintptr_t> address;
  std::atomic<std::uint64_t> number_and_record;
};
constexpr std::size_t kKnown = 1024;
Known known[kKnown];

// A runtime makes all its calls at one place (Go does), so place and number form the key.
Known& known_at(std::uintptr_t address, long number) noexcept {
  const std::uint64_t mixed =
      (address ^ static_cast<std::uint64_t>(number) << 40) * 0x9E3779B97F4A7C15;
  return known[mixed >> 54];
}

const char* what_became(dmt::Outcome outcome) noexcept {
  switch (outcome) {
    case dmt::Outcome::kOperation:
      return "made an operation of the schedule";
    case dmt::Outcome::kRefused:
      return "refused (ENOSYS)";
    case dmt::Outcome::kPassed:
      return "not in the schedule";
  }
  return "";
}

// Stops the replica; its node reads the record and reports the reason.
[[noreturn]] void stop_strictly(const dmt::UnhookedCall& call, std::uint32_t record) noexcept {
  {
    Message() << "strict: system call " << call.name << " (" << call.number << ") of "
              << call.object << " did not come through libcrane.so";
  }
  if (record != dmt::kNoRecord) dmt::note_stopped(without_turn(), record);
  dmt::fence(without_turn(), "strict mode, and a system call bypassed libcrane.so");
}

void count(long number, dmt::Outcome outcome, std::uintptr_t address) noexcept {
  Known& k = known_at(address, number);
  const auto low = static_cast<std::uint32_t>(number);
  if (k.address.load(std::memory_order_acquire) == address) {
    const std::uint64_t both = k.number_and_record.load(std::memory_order_relaxed);
    if (static_cast<std::uint32_t>(both >> 32) == low) {
      dmt::count_unhooked_again(without_turn(), static_cast<std::uint32_t>(both));
      return;
    }
  }
  dmt::UnhookedCall call{};
  call.number = static_cast<std::int32_t>(number);
  call.outcome = outcome;
  name_call(number, call);
  name_object(address, call);
  const auto [record, first] = dmt::count_unhooked(without_turn(), call);
  if (without_turn().unhooked.strict != 0) stop_strictly(call, record);
  if (first) {
    Message m;
    m << "unhooked: system call " << call.name << " (" << call.number << ") of " << call.object
      << " +";
    m.hex(call.offset) << ": " << what_became(outcome);
  }
  k.number_and_record.store(std::uint64_t{low} << 32 | record, std::memory_order_relaxed);
  k.address.store(address, std::memory_order_release);
}

long answer(long number, const long* a, std::uintptr_t address) noexcept {
  const auto raw = [&] { return raw_syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); };
  if (is_trusted(address)) return raw();
  long refusal = 0;
  if (sandbox::is_answered(number, a, refusal)) return refusal;
  const SystemCall& call = system_call(number);
  switch (call.kind) {
    case CallKind::kBounded:
      return call.operation != nullptr ? call.operation(a) : raw();
    case CallKind::kOperation:
      count(number, dmt::Outcome::kOperation, address);
      return call.operation(a);
    case CallKind::kRefused:
      count(number, dmt::Outcome::kRefused, address);
      return -ENOSYS;
    case CallKind::kPassed:
    case CallKind::kUnknown:
      break;
  }
  count(number, dmt::Outcome::kPassed, address);
  // For sigreturn, the kernel would expect its frame on top of ours.
  return number == SYS_rt_sigreturn ? -ENOSYS : raw();
}

}  // namespace

void install_trap(SystemCallTable table) noexcept {
  system_call = table;
  find_loaded_texts();
}

void arm_trap() noexcept {
  if (in_valgrind) return;  // its calls come from other addresses
  const long error = raw_syscall(SYS_prctl, kSetDispatch, kDispatchOn, libc_text().begin,
                                 libc_text().size, InsideCrane::selector());
  if (error == 0 || is_blind) return;
  is_blind = true;
  without_turn().unhooked.blind.fetch_add(1, std::memory_order_relaxed);
  {
    Message() << "this kernel has no Syscall User Dispatch: calls that bypass libc are not "
                 "seen (error "
              << -error << ")";
  }
  if (without_turn().unhooked.strict != 0)
    dmt::fence(without_turn(), "strict mode needs Syscall User Dispatch");
}

bool handle_trap(const siginfo_t* info, void* context) noexcept {
  if (sandbox::is_kill(*info)) {
    const char* name = system_call(info->si_syscall).name;
    Message() << "a seccomp filter ends process " << raw_syscall(SYS_getpid) << " at system call "
              << (name == nullptr ? "unknown" : name) << " (" << info->si_syscall << ")";
    end_now(status_of_signal(SIGSYS));
  }
  if (info->si_code != kTrapCode || self.slot == dmt::kNone) return false;
  InsideCrane::set_inside();
  const int saved = errno;
  auto& interrupted = *static_cast<ucontext_t*>(context);
  auto* registers = interrupted.uc_mcontext.gregs;
  const long arguments[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                             registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_call_addr);
  registers[REG_RAX] = answer(info->si_syscall, arguments, address);
  errno = saved;
  InsideCrane::set_outside();
  return true;
}

void count_by_number(long number, dmt::Outcome outcome, const void* caller) noexcept {
  count(number, outcome, reinterpret_cast<std::uintptr_t>(caller));
}

}  // namespace crane
