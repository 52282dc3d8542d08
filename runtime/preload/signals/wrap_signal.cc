// SPDX-License-Identifier: Apache-2.0
// Virtual signals: dispositions, masks, delivery at turns, sending, waiting (DESIGN D11, rule 14).
//
// Rules:
// * Handlers run outside Crane and not within one of our turns, because they may longjmp or end the
//   process.
// * The kernel has no handler of the application; it delivers only synchronous faults.
#include <ucontext.h>

#include <atomic>
#include <cstring>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/signal_stack.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/trap/soft_barrier_point.h"
#include "runtime/preload/trap/system_call_trap.h"
#include "runtime/preload/trap/tsc_site.h"
#include "runtime/preload/trap/vdso.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/branch_slices.h"
#include "runtime/preload/turn/process_end.h"
#include "runtime/preload/turn/tick_points.h"

// Provided by the linker: begin of libcrane.so in memory and end of its code.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
}

namespace crane {
namespace {

constexpr std::uint64_t kNeverBlocked = (1ull << (SIGKILL - 1)) | (1ull << (SIGSTOP - 1));
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

// Belongs to the process; changed only while holding the turn, copied by fork.
struct sigaction actions[kSignals + 1];

bool is_ignored_by_default(int s) noexcept {
  return s == SIGCHLD || s == SIGURG || s == SIGWINCH || s == SIGCONT;
}

dmt::Disposition disposition_of(const struct sigaction& a) noexcept {
  if (a.sa_handler == SIG_DFL) return dmt::Disposition::kDefault;
  if (a.sa_handler == SIG_IGN) return dmt::Disposition::kIgnore;
  return dmt::Disposition::kHandler;
}

void* as_pointer(std::uint64_t value) noexcept {
  void* pointer = nullptr;
  std::memcpy(&pointer, &value, sizeof pointer);
  return pointer;
}

// Returns the mask during the program's handler, as the kernel would set it.
std::uint64_t mask_in_handler(const struct sigaction& action, int signo,
                              std::uint64_t before) noexcept {
  std::uint64_t mask = before | bits_of(action.sa_mask);
  if ((action.sa_flags & SA_NODEFER) == 0) mask |= bit_of(signo);
  return mask & ~kNeverBlocked;
}

CRANE_REQUIRES_TURN void take_default_action(int signo) noexcept {
  if (is_ignored_by_default(signo)) return;
  if (dmt::is_stop_signal(signo)) {
    dmt::stop_process(*segment, self.process, signo);
    return block_while_stopped();
  }
  end_now(status_of_signal(signo));
}

// Delivers one signal that was taken from the pending ones. Called and returns with the turn held.
CRANE_REQUIRES_TURN void deliver(dmt::Layout& w, int signo, const dmt::SignalInfo& sent,
                                 Handlers& ran) noexcept {
  const struct sigaction action = actions[signo];
  if (action.sa_handler == SIG_IGN) return;
  if (action.sa_handler == SIG_DFL) return take_default_action(signo);
  dmt::SlotRecord& slot = w.slots[self.slot];
  const std::uint64_t saved = slot.blocked_signals;
  slot.blocked_signals = mask_in_handler(action, signo, saved);
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    actions[signo].sa_handler = SIG_DFL;
    w.processes[self.process].dispositions[signo] = dmt::Disposition::kDefault;
  }
  if ((action.sa_flags & SA_RESTART) == 0) {
    ran = Handlers::kSomeForbid;
  } else if (ran == Handlers::kNoneRan) {
    ran = Handlers::kAllRestart;
  }
  // Linux makes all frames before the first handler runs, so the handler of the last signal runs
  // first.
  dmt::SignalInfo next;
  while (const int above = dmt::take_signal(w, own_slot(), next)) deliver(w, above, next, ran);
  constexpr auto kOp = static_cast<dmt::Operation>(Op::kSignalDelivery);
  note_time(w);
  dmt::put_turn(w, own_slot(), kOp, static_cast<std::uint64_t>(signo), false);
  siginfo_t info;
  fill_siginfo(info, signo, sent);
  ucontext_t context{};
  context.uc_sigmask = set_of(saved);
  context.uc_stack = self.stacks.alternate;
  signal_stack::call_handler(action, signo, &info, &context);
  take_turn();
  slot.blocked_signals = bits_of(context.uc_sigmask) & ~kNeverBlocked;  // handlers may change it
}

}  // namespace

void fill_siginfo(siginfo_t& out, int signo, const dmt::SignalInfo& sent) noexcept {
  std::memset(&out, 0, sizeof out);
  out.si_signo = signo;
  out.si_code = sent.code;
  if (sent.code == SI_TIMER) {
    out.si_timerid = static_cast<int>(sent.timer);
    out.si_overrun = sent.status;
  } else {
    out.si_pid = static_cast<pid_t>(sent.pid);
    out.si_uid = sent.uid;
    if (signo == SIGCHLD && sent.code > 0) out.si_status = sent.status;
  }
  // si_value shares its place with si_status, which a sender's value would overwrite.
  if (signo != SIGCHLD || sent.code <= 0) out.si_value.sival_ptr = as_pointer(sent.value);
}

bool may_signal(std::uint32_t pid, int signo) noexcept {
  if (raw_syscall(SYS_kill, pid, 0) != -EPERM) return true;
  return signo == SIGCONT && raw_syscall(SYS_getsid, pid) == raw_syscall(SYS_getsid, 0);
}

dmt::SignalInfo sent_by_this_process(int code, std::uint64_t value) noexcept {
  dmt::SignalInfo info{};
  info.code = code;
  info.pid = without_turn().processes[self.process].pid;
  info.uid = static_cast<std::uint32_t>(raw_syscall(SYS_getuid));
  info.value = value;
  return info;
}

Handlers deliver_signals() noexcept {
  Handlers ran = Handlers::kNoneRan;
  take_turn();
  dmt::Layout& w = *segment;
  dmt::SignalInfo info;
  while (const int signo = dmt::take_signal(w, own_slot(), info)) deliver(w, signo, info, ran);
  note_time(w);
  dmt::put_turn(w, own_slot(), static_cast<dmt::Operation>(Op::kSignalDelivery), 0, false);
  return ran;
}

void reset_handlers_for_exec() noexcept {
  dmt::ProcessRecord& p = segment->processes[self.process];
  for (int s = 1; s <= kSignals; ++s) {
    if (p.dispositions[s] == dmt::Disposition::kHandler) {
      p.dispositions[s] = dmt::Disposition::kDefault;
    }
    if (p.dispositions[s] == dmt::Disposition::kIgnore) actions[s].sa_handler = SIG_IGN;
  }
  p.no_child_stop = p.no_child_wait = false;
}

std::uint64_t exchange_mask(dmt::Layout& w, std::uint64_t mask) noexcept {
  dmt::SlotRecord& slot = w.slots[self.slot];
  const std::uint64_t old = slot.blocked_signals;
  slot.blocked_signals = mask & ~kNeverBlocked;
  return old;
}

TemporaryMask::TemporaryMask(dmt::Layout& w, const sigset_t* mask) noexcept
    : w_(w), given_(mask != nullptr), saved_(given_ ? exchange_mask(w, bits_of(*mask)) : 0) {}

void TemporaryMask::restore() noexcept {
  if (given_) exchange_mask(w_, saved_);
}

// --- faults --------------------------------------------------------------------------------------

namespace {

// Runs the program's handler of a fault, on the stack that the kernel would have used. Changes that
// it makes to its context (mask, alternate stack, registers) take effect when it returns.
void run_fault_handler(int signo, siginfo_t* info, void* given) noexcept {
  const bool was_inside = self.stacks.was_inside;
  auto& context = *static_cast<ucontext_t*>(given);
  dmt::SlotRecord& slot = without_turn().slots[self.slot];
  const struct sigaction action = actions[signo];
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) actions[signo].sa_handler = SIG_DFL;
  std::uint64_t kernel_mask = 0;
  std::memcpy(&kernel_mask, &context.uc_sigmask, sizeof kernel_mask);
  const stack_t kernel_stack = context.uc_stack;
  std::uint64_t mask = slot.blocked_signals;
  std::memcpy(&context.uc_sigmask, &mask, sizeof mask);
  context.uc_stack = self.stacks.alternate;
  slot.blocked_signals = mask_in_handler(action, signo, mask);
  const auto place = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  tsc::show_program(given);
  ticks::show_program(given);
  const bool stepping = branches::hide_stepping(given);
  const auto shown = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  {
    signal_stack::ProgramCode program_code(
        static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]));
    OutsideCrane outside;
    action.sa_sigaction(signo, info, given);
  }
  ticks::resume_program(given, place, shown);
  branches::show_stepping(given, stepping);
  std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
  slot.blocked_signals = mask & ~kNeverBlocked;
  self.stacks.alternate = context.uc_stack;
  std::memcpy(&context.uc_sigmask, &kernel_mask, sizeof kernel_mask);
  context.uc_stack = kernel_stack;
  if (!was_inside) InsideCrane::set_outside();
}

// Returns the offset in libcrane.so; 0: the address is elsewhere.
std::uint64_t place_in_library(std::uint64_t address) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(__ehdr_start);
  const auto end = reinterpret_cast<std::uintptr_t>(etext);
  return address >= begin && address < end ? address - begin : 0;
}

// Reports a fault inside a call of the program: by a pointer of the program, as it would happen in
// libc, or by an error of ours. Both count as the program's fault on all replicas; the place in the
// message shows which it was.
void name_fault_inside(int signo, const siginfo_t* info, const void* context) noexcept {
  constexpr int kFrames = 4;
  constexpr unsigned kNamed = 8;  // some programs handle their faults, and have many
  static constinit std::atomic<unsigned> named{0};
  if (named.fetch_add(1, std::memory_order_relaxed) >= kNamed) return;
  const greg_t* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  Message log_line;
  log_line << "fault inside libcrane.so: signal " << signo << " for address ";
  log_line.hex(reinterpret_cast<std::uintptr_t>(info->si_addr)) << ", at";
  std::uint64_t frame[2] = {static_cast<std::uint64_t>(registers[REG_RBP]),
                            static_cast<std::uint64_t>(registers[REG_RIP])};
  for (int i = 0; i < kFrames; ++i) {
    if (const std::uint64_t place = place_in_library(frame[1]); place != 0)
      (log_line << " +").hex(place);
    const void* next = as_pointer(frame[0]);
    if (!is_readable(next, sizeof frame)) break;
    std::memcpy(frame, next, sizeof frame);
  }
}

// A fault is an action of the program (D18): runs the application's handler, or ends the process as
// an operation of the schedule, also when the fault happened while holding the turn.
void take_fault(int signo, siginfo_t* info, void* context) noexcept {
  const bool was_inside = InsideCrane::inside();
  // An assertion of ours takes no operation: the node sees an end that is not in the schedule and
  // fences the replica.
  if (self.slot == dmt::kNone || (signo == SIGABRT && was_inside)) die_by_signal(signo);
  InsideCrane::set_inside();
  const struct sigaction action = actions[signo];
  if (was_inside && info->si_code > 0) name_fault_inside(signo, info, context);
  const bool has_handler = disposition_of(action) == dmt::Disposition::kHandler;
  const bool blocked = (without_turn().slots[self.slot].blocked_signals & bit_of(signo)) != 0;
  const bool sent = info->si_code <= 0;  // from abort() in libc, not from the processor
  if (!has_handler || (blocked && !sent)) end_now(status_of_signal(signo));
  self.stacks.was_inside = was_inside;
  if (!signal_stack::move_to_program(action, run_fault_handler, signo, info, context)) {
    end_now(status_of_signal(SIGSEGV));
  }
  run_fault_handler(signo, info, context);
}

// Handles a system call or a soft barrier that came as a signal. May block.
void answer_call(int signo, siginfo_t* info, void* context) noexcept {
  {
    signal_stack::Operation operation(context);
    if (signo == SIGSYS && handle_trap(info, context)) return;
    if (signo == SIGTRAP && branches::handle_end(info, context)) return;
    if (signo == SIGTRAP && ticks::handle_break(info, context)) return;
    if (signo == SIGTRAP && handle_breakpoint(info, context)) return;
  }
  take_fault(signo, info, context);
}

void on_fault(int signo, siginfo_t* info, void* context) noexcept {
  if (signo == SIGSEGV && handle_tsc(info, context)) return;
  if (signo == SIGTRAP && tsc::handle_break(info, context)) return;
  if ((signo == SIGSEGV || signo == SIGBUS) && handle_look(context)) return;
  if (signo != SIGSYS && signo != SIGTRAP) return take_fault(signo, info, context);
  signal_stack::move_to_operation(answer_call, signo, info, context);
  answer_call(signo, info, context);
}

}  // namespace

void install_fault_handlers() noexcept {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  for (const int signo : kFaults) real::sigaction(signo, &action, nullptr);
  // A file size limit of the program (RLIMIT_FSIZE; sshd sets 0) applies to our messages, too. The
  // write then fails, but the kernel must not end the process outside the schedule.
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  real::sigaction(SIGXFSZ, &ignored, nullptr);
  // If these signals were blocked when the server started, a fault would end the process without an
  // operation.
  std::uint64_t ours = 0;
  for (const int signo : kFaults) ours |= bit_of(signo);
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &ours, nullptr, 8);
  const dmt::ProcessRecord& p = without_turn().processes[self.process];
  for (int s = 1; s <= kSignals; ++s) {
    if (p.dispositions[s] == dmt::Disposition::kIgnore) actions[s].sa_handler = SIG_IGN;
  }
}

// --- dispositions --------------------------------------------------------------------------------

namespace {

int set_action(Op op, int s, const struct sigaction* a, struct sigaction* old) noexcept {
  if (!is_valid_signal(s) || (a != nullptr && (s == SIGKILL || s == SIGSTOP))) {
    errno = EINVAL;
    return -1;
  }
  Turn turn(op);
  const struct sigaction before = actions[s];
  if (a != nullptr) {
    actions[s] = *a;
    actions[s].sa_mask = set_of(bits_of(a->sa_mask) & ~kNeverBlocked);
    dmt::ProcessRecord& p = turn.w.processes[self.process];
    p.dispositions[s] = disposition_of(*a);
    const bool drops =
        p.dispositions[s] == dmt::Disposition::kIgnore ||
        (p.dispositions[s] == dmt::Disposition::kDefault && is_ignored_by_default(s));
    if (s == SIGCHLD) {
      p.no_child_stop = (a->sa_flags & SA_NOCLDSTOP) != 0;
      p.no_child_wait = (a->sa_flags & SA_NOCLDWAIT) != 0;
    }
    if (drops) {
      dmt::discard_signal(turn.w, self.process, s);
    }
  }
  if (old != nullptr) *old = before;
  turn.result(s);
  return 0;
}

SignalHandler set_handler(Op op, int s, SignalHandler h, int flags) noexcept {
  struct sigaction a {};
  struct sigaction old {};
  a.sa_handler = h;
  a.sa_flags = flags;
  if ((flags & SA_NODEFER) == 0 && is_valid_signal(s)) a.sa_mask = set_of(bit_of(s));
  return set_action(op, s, &a, &old) == 0 ? old.sa_handler : SIG_ERR;
}

int change_mask(Op op, int how, const sigset_t* set, sigset_t* old) noexcept {
  if (set != nullptr && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK) return EINVAL;
  Turn turn(op);
  const std::uint64_t before = turn.w.slots[self.slot].blocked_signals;
  if (set != nullptr) {
    const std::uint64_t bits = bits_of(*set);
    exchange_mask(turn.w, how == SIG_BLOCK     ? before | bits
                          : how == SIG_UNBLOCK ? before & ~bits
                                               : bits);
  }
  if (old != nullptr) *old = set_of(before);
  return 0;
}

}  // namespace

namespace wrap {

int sigaction(int s, const struct sigaction* a, struct sigaction* old) {
  return set_action(Op::sigaction, s, a, old);
}
SignalHandler signal(int s, SignalHandler h) { return set_handler(Op::signal, s, h, SA_RESTART); }
SignalHandler bsd_signal(int s, SignalHandler h) {
  return set_handler(Op::bsd_signal, s, h, SA_RESTART);
}
SignalHandler ssignal(int s, SignalHandler h) { return set_handler(Op::ssignal, s, h, SA_RESTART); }
SignalHandler sysv_signal(int s, SignalHandler h) {
  return set_handler(Op::sysv_signal, s, h, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}
SignalHandler __sysv_signal(int s, SignalHandler h) { return wrap::sysv_signal(s, h); }

SignalHandler sigset(int s, SignalHandler h) {
  if (!is_valid_signal(s)) {
    errno = EINVAL;
    return SIG_ERR;
  }
  const sigset_t one = set_of(bit_of(s));
  sigset_t before;
  change_mask(Op::sigset, h == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &one, &before);
  const bool was_held = (bits_of(before) & bit_of(s)) != 0;
  if (h == SIG_HOLD) return was_held ? SIG_HOLD : actions[s].sa_handler;
  const SignalHandler old = set_handler(Op::sigset, s, h, 0);
  return was_held ? SIG_HOLD : old;
}

int sighold(int s) {
  if (!is_valid_signal(s)) return fail(EINVAL);
  const sigset_t one = set_of(bit_of(s));
  return change_mask(Op::sighold, SIG_BLOCK, &one, nullptr);
}

int sigrelse(int s) {
  if (!is_valid_signal(s)) return fail(EINVAL);
  const sigset_t one = set_of(bit_of(s));
  return change_mask(Op::sigrelse, SIG_UNBLOCK, &one, nullptr);
}

int sigignore(int s) { return set_handler(Op::sigignore, s, SIG_IGN, 0) == SIG_ERR ? -1 : 0; }

int siginterrupt(int s, int on) {
  if (!is_valid_signal(s)) return fail(EINVAL);
  Turn turn(Op::siginterrupt);
  if (on != 0) {
    actions[s].sa_flags &= ~SA_RESTART;
  } else {
    actions[s].sa_flags |= SA_RESTART;
  }
  return 0;
}

int sigprocmask(int how, const sigset_t* set, sigset_t* old) {
  const int error = change_mask(Op::sigprocmask, how, set, old);
  return error == 0 ? 0 : fail(error);
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  return change_mask(Op::pthread_sigmask, how, set, old);
}

// BSD's masks: the first 32 signals as the bits of an int. dash calls them around each command.
static int change_first_signals(Op op, int how, int mask) noexcept {
  const sigset_t set = set_of(static_cast<std::uint32_t>(mask));
  sigset_t old;
  change_mask(op, how, &set, &old);
  return static_cast<int>(static_cast<std::uint32_t>(bits_of(old)));
}
int sigblock(int mask) { return change_first_signals(Op::sigblock, SIG_BLOCK, mask); }
int sigsetmask(int mask) { return change_first_signals(Op::sigsetmask, SIG_SETMASK, mask); }
int siggetmask() { return change_first_signals(Op::siggetmask, SIG_BLOCK, 0); }

int sigaltstack(const stack_t* wanted, stack_t* old) {
  const int error = signal_stack::exchange_alternate(wanted, old);
  return error == 0 ? 0 : fail(error);
}

int sigpending(sigset_t* set) {
  Turn turn(Op::sigpending);
  const dmt::SlotRecord& s = turn.w.slots[self.slot];
  const std::uint64_t pending = s.pending_signals | turn.w.processes[self.process].pending_signals;
  *set = set_of(pending & s.blocked_signals);
  turn.result(pending);
  return 0;
}

// --- waiting -------------------------------------------------------------------------------------

int sigsuspend(const sigset_t* set) {
  Turn turn(Op::sigsuspend, Turn::kCancellationPoint);
  TemporaryMask mask(turn.w, set);
  do {
    while (turn.wait(0) != dmt::WakeReason::kInterrupted) {
    }
  } while (turn.interrupted(kNeverRestarts));
  mask.restore();
  return fail(EINTR);
}

// POSIX' sigpause: waits without this signal in the virtual mask. The header maps BSD's sigpause to
// another name.
int __xpg_sigpause(int s) {
  if (!is_valid_signal(s)) return fail(EINVAL);
  sigset_t set;
  change_mask(Op::__xpg_sigpause, SIG_BLOCK, nullptr, &set);
  set = set_of(bits_of(set) & ~bit_of(s));
  return wrap::sigsuspend(&set);
}

// Takes a signal, or the first signals of a mask as the bits of an int.
int __sigpause(int s, int is_signal) {
  if (is_signal != 0) return wrap::__xpg_sigpause(s);
  const sigset_t set = set_of(static_cast<std::uint32_t>(s));
  return wrap::sigsuspend(&set);
}

int pause() {
  Turn turn(Op::pause, Turn::kCancellationPoint);
  do {
    while (turn.wait(0) != dmt::WakeReason::kInterrupted) {
    }
  } while (turn.interrupted(kNeverRestarts));
  return fail(EINTR);
}

}  // namespace wrap

namespace {

// Returns the signal, or -error.
int await_signal(Op op, const sigset_t* set, const struct timespec* t, bool restarts,
                 dmt::SignalInfo& info) noexcept {
  Turn turn(op, Turn::kCancellationPoint);
  const std::uint64_t wanted = bits_of(*set) & ~kNeverBlocked;
  std::int64_t deadline = dmt::kNoDeadline;
  if (t != nullptr) {
    if (!is_positive(*t)) return -EINVAL;
    deadline = deadline_after(turn.w, to_ns(*t));
  }
  for (;;) {
    if (const int signo = dmt::take_signal_of(turn.w, own_slot(), wanted, info)) {
      turn.result(signo);
      return signo;
    }
    const dmt::WakeReason why = turn.wait(dmt::signal_object(self.process), deadline);
    if (why == dmt::WakeReason::kTimeout) return -EAGAIN;
    // Any handler ends sigtimedwait and sigwaitinfo; sigwait starts again.
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kNeverRestarts) && !restarts) {
      return -EINTR;
    }
  }
}

int await_and_report(Op op, const sigset_t* set, siginfo_t* info,
                     const struct timespec* t) noexcept {
  dmt::SignalInfo sent{};
  const int result = await_signal(op, set, t, false, sent);
  if (result < 0) return fail(-result);
  if (sent.code == SI_TKILL) sent.code = SI_USER;  // as libc reports it
  if (info != nullptr) fill_siginfo(*info, result, sent);
  return result;
}

}  // namespace

namespace wrap {

int sigwait(const sigset_t* set, int* s) {
  dmt::SignalInfo info{};
  const int result = await_signal(Op::sigwait, set, nullptr, true, info);
  if (result < 0) return -result;
  *s = result;
  return 0;
}

int sigtimedwait(const sigset_t* set, siginfo_t* info, const struct timespec* t) {
  return await_and_report(Op::sigtimedwait, set, info, t);
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return await_and_report(Op::sigwaitinfo, set, info, nullptr);
}

}  // namespace wrap

// --- ending the process by a signal --------------------------------------------------------------

namespace wrap {

void abort() {
  {
    // POSIX: as raise(SIGABRT), even if it is blocked; a handler that returns changes nothing.
    Turn turn(Op::abort);
    exchange_mask(turn.w, turn.w.slots[self.slot].blocked_signals & ~bit_of(SIGABRT));
    if (actions[SIGABRT].sa_handler != SIG_IGN) {
      dmt::send_signal_to_slot(turn.w, own_slot(), SIGABRT);
    }
  }
  end_now(status_of_signal(SIGABRT));
}

}  // namespace wrap
}  // namespace crane
