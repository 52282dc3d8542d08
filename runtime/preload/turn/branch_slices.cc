// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/branch_slices.h"

#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dmt/admission.h"
#include "dmt/base/branch_event.h"
#include "dmt/base/raw.h"
#include "runtime/preload/ground/code.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/signal_bits.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/turn/branch_counter.h"
#include "runtime/preload/turn/tick_points.h"

namespace crane::branches {
namespace {

constexpr greg_t kStepFlag = 0x100;  // EFLAGS.TF

constinit Lengths lengths;
constinit bool counts_steps = false;  // kSteppedEvent
struct sigaction other_traps;         // previous handler of SIGTRAP

bool counts() noexcept { return self.branches.fd >= 0; }

// --- the count -----------------------------------------------------------------------------------

// Returns the count without the branches of our handlers. If a handler interrupts this function,
// the loop detects it and subtracts the branch of the repetition (BRANCH-2).
std::uint64_t visible() noexcept {
  ThreadState& t = self.branches;
  for (std::uint64_t repeated = 0;; ++repeated) {
    const std::uint64_t hidden = __atomic_load_n(&t.hidden, __ATOMIC_RELAXED);
    const std::uint64_t count = read();
    if (__atomic_load_n(&t.hidden, __ATOMIC_RELAXED) == hidden) return count - hidden - repeated;
  }
}

void entered() noexcept {
  if (!counts()) return;
  self.branches.frozen = visible() - self.branches.base + 1;
  spend();
}

// Sets the flag, which traps after the next instruction. Uses the stack below the red zone, which
// the caller may use.
void set_step_flag() noexcept {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n"
      "pushfq\n"
      "orq $0x100, (%%rsp)\n"
      "popfq\n"
      "lea 128(%%rsp), %%rsp\n" ::
          : "memory", "cc");
}

void left(bool& application) noexcept {
  ThreadState& t = self.branches;
  if (!counts()) {
    application = true;
    return;
  }
  t.base = visible() - (t.frozen - 1);
  __atomic_store_n(&t.frozen, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&application, true, __ATOMIC_RELEASE);
  if (__atomic_load_n(&t.slice.near, __ATOMIC_RELAXED)) set_step_flag();
}

// --- single steps --------------------------------------------------------------------------------

// The next instruction, without the prefixes that pushf may have.
struct Instruction {
  explicit Instruction(const greg_t* registers) noexcept {
    const unsigned char* code = code_at(static_cast<std::uintptr_t>(registers[REG_RIP]));
    while (size < 2 && (code[size] == 0x66 || code[size] == 0x48)) ++size;
    opcode = code[size++];
    is_system_call = opcode == 0x0f && code[size] == 0x05;
  }
  std::size_t size = 0;
  unsigned char opcode = 0;
  bool is_system_call = false;
};

// libc blocks all signals for a moment when it creates a thread; a step would then end the process.
// So this function performs the call itself and leaves SIGTRAP unblocked.
void block_others(ucontext_t& context) noexcept {
  auto* registers = context.uc_mcontext.gregs;
  const auto pointer = [&](int which) {
    return reinterpret_cast<std::uint64_t*>(static_cast<std::uintptr_t>(registers[which]));
  };
  std::uint64_t mask = 0;
  std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
  const std::uint64_t set = *pointer(REG_RSI);
  const std::uint64_t wanted = registers[REG_RDI] == SIG_BLOCK ? mask | set : set;
  if (registers[REG_RDX] != 0) *pointer(REG_RDX) = mask;
  const std::uint64_t now = wanted & ~bit_of(SIGTRAP);
  std::memcpy(&context.uc_sigmask, &now, sizeof now);
  registers[REG_RAX] = 0;
  registers[REG_RIP] += 2;
}

void step_over(ucontext_t& context) noexcept {
  constexpr unsigned char kPushFlags = 0x9c;
  auto* registers = context.uc_mcontext.gregs;
  registers[REG_EFL] |= kStepFlag;
  const Instruction next(registers);
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
  self.branches.pushed = next.opcode == kPushFlags ? at + next.size : 0;
  if (!next.is_system_call) return;
  if (registers[REG_RAX] == SYS_rt_sigreturn) {  // restores earlier flags
    auto* frame = reinterpret_cast<ucontext_t*>(static_cast<std::uintptr_t>(registers[REG_RSP]));
    frame->uc_mcontext.gregs[REG_EFL] |= kStepFlag;
  }
  const bool blocks = registers[REG_RDI] == SIG_BLOCK || registers[REG_RDI] == SIG_SETMASK;
  if (registers[REG_RAX] == SYS_rt_sigprocmask && registers[REG_RSI] != 0 && blocks &&
      is_libc_or_trusted(code_at(at)))
    block_others(context);
}

// Clears the flag in the value that pushf pushed, which may have only 16 bits.
void repair_pushed(const greg_t* registers) noexcept {
  if (self.branches.pushed != static_cast<std::uint64_t>(registers[REG_RIP])) return;
  auto* pushed = reinterpret_cast<std::uint16_t*>(static_cast<std::uintptr_t>(registers[REG_RSP]));
  *pushed = static_cast<std::uint16_t>(*pushed & ~kStepFlag);
}

// Whether this is a child of fork that still has its parent's descriptor.
bool is_copy() noexcept {
  return static_cast<std::uint32_t>(raw_syscall(SYS_gettid)) != self.thread_id;
}

// Handles an interrupt or a step that came when the counter was `began`. Returns true when the
// slice ends at this instruction.
bool act(What what, bool was_inside, std::uint64_t began, void* context) noexcept {
  ThreadState& t = self.branches;
  auto& interrupted = *static_cast<ucontext_t*>(context);
  auto* registers = interrupted.uc_mcontext.gregs;
  if (what == What::kStep) {
    repair_pushed(registers);
    registers[REG_EFL] &= ~kStepFlag;
  }
  if (!counts() || is_copy()) return false;
  spend();
  if (counts_steps && what == What::kStep && !was_inside) --t.base;
  if (began == 0) dmt::fence(without_turn(), "the branch counter is lost");
  Event event{what, t.frozen != 0 ? t.frozen - 1 : began - t.hidden - t.base, was_inside};
  if (what == What::kStep && !was_inside && event.count >= t.slice.target)
    event.may_end = ticks::may_end_at(code_at(static_cast<std::uintptr_t>(registers[REG_RIP])));
  const Action action = step(t.slice, lengths, event);
  if (action.interrupt_in != 0) interrupt_in(action.interrupt_in);
  if (action.next == Next::kStop)
    dmt::fence(without_turn(), "the interrupt of the branch counter came too late");
  if (action.next == Next::kStep) step_over(interrupted);
  if (action.next != Next::kEnd) return false;
  t.frozen = 1;  // step now, before another interrupt comes
  t.slice = new_slice(lengths);
  return true;
}

// The scope of a handler of ours. No conditional branch is executed before the first reading or
// after the last one, so the handler leaves no trace in the count (BRANCH-2).
class Hidden {
 public:
  Hidden() noexcept : was_inside(InsideCrane::hide()), began(read()) {}
  bool was_inside;
  std::uint64_t began;

  void end() const noexcept {
    ThreadState& t = self.branches;
    const std::uint64_t now = read();
    __atomic_store_n(&t.hidden, t.hidden + (now - began), __ATOMIC_RELAXED);
    InsideCrane::unhide(was_inside);
  }
};

void on_interrupt(int, siginfo_t*, void* context) noexcept {
  const Hidden handler;
  const int saved = errno;
  act(What::kInterrupt, handler.was_inside, handler.began, context);
  errno = saved;
  handler.end();
}

void on_trap(int signo, siginfo_t* info, void* context) noexcept {
  const Hidden handler;
  const bool is_step = info->si_code == TRAP_TRACE;
  if (is_step && !act(What::kStep, handler.was_inside, handler.began, context))
    return handler.end();
  // A breakpoint, or the end of a slice: each replica executes the same instructions for it.
  if (!is_step) {
    handler.end();
  } else {
    const std::uint64_t bit = bit_of(kInterruptSignal);
    raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, sizeof bit);
  }
  other_traps.sa_sigaction(signo, info, context);
}

void install_handlers() noexcept {
  real::sigaction(SIGTRAP, nullptr, &other_traps);
  struct sigaction action = other_traps;
  action.sa_sigaction = on_trap;
  action.sa_mask = set_of(bit_of(kInterruptSignal));
  real::sigaction(SIGTRAP, &action, nullptr);
  action.sa_sigaction = on_interrupt;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  action.sa_mask = {};
  real::sigaction(kInterruptSignal, &action, nullptr);
  const std::uint64_t bit = bit_of(kInterruptSignal);
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, sizeof bit);
}

}  // namespace

void prepare() noexcept {
  const dmt::Configuration& c = without_turn().header.configuration;
  if (c.branch_event == 0) return;
  lengths.margin = margin_of(c.branch_event);
  lengths.slice = std::max(c.slice_ps / 1'000'000 * kBranchesPerUs, kMarginsMin * lengths.margin);
  counts_steps = c.branch_event == kSteppedEvent;
  if (counts_steps) lengths.margin = lengths.slice;
  choose_counter(c, lengths.margin);
  install_handlers();
  begin();
  open_for_thread();
  InsideCrane::watch(entered, left);
}

void open_for_thread() noexcept {
  if (lengths.slice == 0) return;
  const Slice& s = self.branches.slice;
  const std::uint64_t used = self.branches.frozen - 1 + lengths.margin;
  open(s.target > used ? s.target - used : 1);
}

void close_for_thread() noexcept { close(); }

void forget_counters() noexcept {
  if (!counts()) return;
  self.branches.fd = -1;
  const int first = own_descriptor_base() + kOwnDescriptors;
  if (own_descriptor_end() > first)
    raw_syscall(SYS_close_range, first, own_descriptor_end() - 1, 0);
}

void begin() noexcept {
  self.branches.slice = new_slice(lengths);
  if (self.branches.frozen != 0) {
    self.branches.frozen = 1;
  } else {
    self.branches.base = visible();
  }
}

bool handle_end(const siginfo_t* info, void* context) noexcept {
  if (info->si_code != TRAP_TRACE || !counts() || !InsideCrane::inside()) return false;
  const int saved = errno;
  ticks::take_turn_of_slice(
      code_at(static_cast<std::uintptr_t>(
          static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP])),
      ticks::kNoPoint);
  errno = saved;
  InsideCrane::set_outside();
  return true;
}

bool hide_stepping(void* context) noexcept {
  auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
  const bool hidden = counts() && (flags & kStepFlag) != 0;
  if (hidden) flags &= ~kStepFlag;
  return hidden;
}

void show_stepping(void* context, bool hidden) noexcept {
  if (hidden) static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kStepFlag;
}

}  // namespace crane::branches
