// SPDX-License-Identifier: Apache-2.0
// Creation and end of processes.
//
// Rules:
// * Between prepare() and parent()/child() the parent holds the turn, so no other process sees a
//   child that is runnable but does not exist. These three are the innermost atfork handlers; the
//   handlers of the application and its libraries (allocators lock all their mutexes there) run as
//   usual operations.
// * The child never acts under its parent's slot.
// * After end_process() the thread takes no further turn, and all its calls are real.
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/threads/robust_mutexes.h"
#include "runtime/preload/threads/thread_life.h"

#include <cerrno>
#include <climits>

#include "dmt/admission.h"
#include "dmt/base/bound.h"
#include "dmt/base/raw.h"
#include "dmt/hand_off.h"
#include "dmt/processes.h"
#include "runtime/preload/descriptors/file_lock.h"
#include "runtime/preload/descriptors/flushing.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/processes/vfork_memory.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/scheduling.h"
#include "runtime/preload/threads/semaphore_undo.h"
#include "runtime/preload/turn/branch_slices.h"
#include "runtime/preload/turn/fairness.h"
#include "runtime/preload/turn/refusal.h"
#include "runtime/preload/turn/soft_barrier.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace {

bool registered = false;

thread_local constinit dmt::Child new_child{dmt::kNoProcess, dmt::kNoSlot};
thread_local constinit std::uint32_t new_generation = 0;
thread_local constinit bool spawns_child = false;
thread_local constinit vfork_memory::Exchange* exchange = nullptr;  // with the child of vfork

// These handlers run in the application's fork() or inside libc. in_parent() puts the turn that
// prepare() takes; the static analysis does not see this.
CRANE_TURN_UNCHECKED void prepare() noexcept {
  if (self.slot == dmt::kNone) return;
  WithinCrane within;
  dmt::Layout& w = *segment;
  take_turn();
  new_child = dmt::create_process(w, self.process);
  if (new_child.process != dmt::kNoProcess) {
    dmt::SlotRecord& slot = w.slots[value(new_child.slot)];
    slot.blocked_signals = w.slots[self.slot].blocked_signals;
    inherit_scheduling(w, self.slot, value(new_child.slot), true);
    if (spawns_child) w.processes[new_child.process].spawn = dmt::SpawnState::kUnderWay;
    new_generation = slot.generation;
  }
  errno = 0;  // replaced by the kernel's error for in_parent()
}

// Removes the child after the kernel refused to fork. The turn was held, so no process has seen the
// child.
void undo_child(dmt::Layout& w, int error) noexcept {
  fence_unless_own_limit(error, "the kernel refused to fork on this replica");
  dmt::abandon_process(w, new_child.process);
  new_child = {dmt::kNoProcess, dmt::kNoSlot};
}

CRANE_TURN_UNCHECKED void in_parent() noexcept {
  if (self.slot == dmt::kNone) return;
  WithinCrane within;
  dmt::Layout& w = *segment;
  if (errno != 0 && new_child.process != dmt::kNoProcess) undo_child(w, errno);
  note_time(w);
  dmt::put_turn(w, own_slot(), static_cast<dmt::Operation>(Op::fork), new_child.process, false);
}

void in_child() noexcept {
  if (self.slot == dmt::kNone) return;
  WithinCrane within;
  // The parent's call fails with EAGAIN as if this process had never existed.
  if (new_child.process == dmt::kNoProcess) raw_syscall(SYS_exit_group, 0);
  branches::forget_counters();
  adopt_slot(value(new_child.slot), new_child.process);
  vfork_memory::begin_child(exchange);
  exchange = nullptr;
  dmt::forget_spinners();
  check_in(self.process);
  Turn turn(Op::kChildStart);
  dmt::ProcessRecord& p = turn.w.processes[self.process];
  p.pid = static_cast<std::uint32_t>(raw_syscall(SYS_getpid));
  p.group = static_cast<std::uint32_t>(raw_syscall(SYS_getpgid, 0));
  turn.w.slots[self.slot].thread_id = self.thread_id;
  forget_other_threads();
  forget_reservations();
  forget_flushes();
  forget_soft_barriers();
  if (self.entry == nullptr) {
    self.entry = add_thread(turn.w, real::pthread_self(), self.slot, false);
  }
  self.entry->slot = self.slot;
  self.entry->thread_id = self.thread_id;
  self.entry->exit_object = turn.w.slots[self.slot].exit_object;
  self.entry->joining = false;
}

// Reaps a child that must not exist.
int have_no_child(pid_t pid) noexcept {
  if (pid > 0) raw_syscall(SYS_wait4, pid, nullptr, 0, nullptr);
  return EAGAIN;
}

bool is_new_child(const dmt::Layout& w, const dmt::Child& child,
                  std::uint32_t generation) noexcept {
  return w.processes[child.process].state != dmt::ProcessState::kFree &&
         w.slots[value(child.slot)].generation == generation;
}

void learn_pid(Turn& turn, pid_t pid) noexcept {
  dmt::ProcessRecord& p = turn.w.processes[new_child.process];
  if (is_new_child(turn.w, new_child, new_generation) && p.pid == 0) {
    p.pid = static_cast<std::uint32_t>(pid);
  }
  turn.result(static_cast<std::uint64_t>(new_child.process));
}

// Records the pid in the parent; returns an error number when there is no child.
int finish_fork(pid_t pid) noexcept {
  if (new_child.process == dmt::kNoProcess) return have_no_child(pid);
  Turn turn(Op::kForkDone);
  learn_pid(turn, pid);
  turn.yield();
  return 0;
}

pid_t make_child(int (*real_fork)(), bool runs_handlers) noexcept {
  const int before = errno;
  pid_t pid;
  if (!runs_handlers) prepare();
  if (runs_handlers) {
    OutsideCrane outside;
    pid = real_fork();
  } else {
    pid = real_fork();
  }
  if (!runs_handlers && pid == 0) in_child();
  if (!runs_handlers && pid != 0) in_parent();
  if (pid >= 0) errno = before;
  return pid;
}

pid_t fork_by(int (*real_fork)(), bool runs_handlers) noexcept {
  const pid_t pid = make_child(real_fork, runs_handlers);
  if (pid == 0) return 0;
  const int saved = errno;
  const int error = finish_fork(pid);
  errno = error != 0 ? error : saved;
  return error != 0 ? -1 : pid;
}

std::uint64_t handled_signals(const dmt::ProcessRecord& p) noexcept {
  std::uint64_t handled = 0;
  for (int signo = 1; signo <= 64; ++signo) {
    if (p.dispositions[signo] == dmt::Disposition::kHandler) handled |= bit_of(signo);
  }
  return handled;
}

// Suspends the thread until its child has executed a program or ended. As natively, it runs no
// handler before; a signal that ends the process still does.
int finish_vfork(pid_t pid, const vfork_memory::Exchange& x, int error) noexcept {
  const dmt::Child child = new_child;
  const std::uint32_t generation = new_generation;
  Turn turn(Op::vfork);
  learn_pid(turn, pid);
  const dmt::ProcessRecord& p = turn.w.processes[child.process];
  dmt::SlotRecord& own = turn.w.slots[self.slot];
  const std::uint64_t mask = own.blocked_signals;
  own.blocked_signals |= handled_signals(turn.w.processes[self.process]);
  while (is_new_child(turn.w, child, generation) && p.state == dmt::ProcessState::kAlive &&
         p.spawn != dmt::SpawnState::kOver) {
    const dmt::WakeReason why = turn.wait(dmt::child_object(self.process));
    if (why == dmt::WakeReason::kInterrupted) (void)turn.interrupted(kRestarts);
  }
  error = vfork_memory::apply(x, error);
  own.blocked_signals = mask;
  return error;
}

// `stack`: where the frames of the calling program begin.
pid_t vfork_from(std::uintptr_t stack) noexcept {
  bool is_alone;
  {
    Turn turn(Op::vfork);
    is_alone = turn.w.processes[self.process].slots == 1;
  }
  vfork_memory::Exchange* const x = vfork_memory::create(stack, is_alone);
  if (x == nullptr) {
    fence_unless_own_limit(ENOMEM, "the kernel has no memory for vfork on this replica");
    errno = ENOMEM;
    return -1;
  }
  exchange = x;
  spawns_child = true;
  // As natively, no atfork handlers run in a process of one thread. If there are other threads, the
  // handlers run, because those of libc unlock libc in the child.
  const pid_t pid = is_alone ? make_child(real::_Fork, false) : make_child(real::fork, true);
  spawns_child = false;
  if (pid == 0) return 0;
  exchange = nullptr;
  const bool is_there = new_child.process != dmt::kNoProcess;
  const int error = is_there ? finish_vfork(pid, *x, errno) : have_no_child(pid);
  vfork_memory::destroy(*x);
  errno = error;
  return is_there ? pid : -1;
}

// This thread ends the process for the schedule, with or without the turn.
bool is_ending = false;  // set once the process ends for the schedule

void end_for_schedule(int wait_status) noexcept {
  InsideCrane::set_inside();
  vfork_memory::publish();
  is_ending = true;
  dmt::Layout& w = without_turn();
  const Slot me = own_slot();
  dmt::get_turn(w, me);
  release_robust_mutexes_of_process();
  notify::closing(w, {0, INT_MAX});
  file_lock::end_of_process(w);
  end_semaphore_undo(w);
  dmt::end_process(w, self.process, wait_status);
  dmt::leave(w, me);
  abandon_slot();
}

// The last of all exit handlers: it is registered before those of the program and of its libraries'
// destructors, so it runs after them.
void at_exit(int code, void*) noexcept {
  if (self.slot == dmt::kNone) return;
  // Flushes stdio first: readers of our pipes must not see its bytes after the end.
  real::fflush(nullptr);
  end_for_schedule(status_of_exit(code));
}

int quick_code = 0;
void at_quick(void*) noexcept {
  if (self.slot != dmt::kNone) end_for_schedule(status_of_exit(quick_code));
}

}  // namespace

void register_atfork_handlers() noexcept {
  if (registered) return;
  registered = true;
  real::__register_atfork.require();
  real::__register_atfork(prepare, in_parent, in_child, nullptr);
}

void register_exit_handlers() noexcept {
  real::on_exit(at_exit, nullptr);
  real::__cxa_at_quick_exit(at_quick, nullptr);
}

pid_t scheduled_fork(bool spawns) noexcept {
  spawns_child = spawns;
  const pid_t pid = fork_by(real::fork, true);
  spawns_child = false;
  return pid;
}

pid_t vfork_by_number() noexcept {
  constexpr std::uintptr_t kRedZone = 128;
  const std::uintptr_t interrupted = self.stacks.program;
  return interrupted == 0 ? fork_by(real::fork, true) : vfork_from(interrupted - kRedZone);
}

void die_by_signal(int signo) noexcept {
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    unsigned long mask;
  } action{};
  raw_syscall(SYS_rt_sigaction, signo, &action, nullptr, 8);
  raw_syscall(SYS_rt_sigaction, SIGSYS, &action, nullptr, 8);  // a filter may refuse the next calls
  const std::uint64_t bit = bit_of(signo);
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, 8);
  raw_syscall(SYS_tgkill, raw_syscall(SYS_getpid), raw_syscall(SYS_gettid), signo);
  // The first process of a container survives signals that it sends itself, so it exits.
  raw_syscall(SYS_exit_group, 128 + signo);
  __builtin_unreachable();
}

void end_now(int wait_status) noexcept {
  // A filter of the program may kill the process during its end.
  if (!is_ending) end_for_schedule(wait_status);
  if ((wait_status & 0x7f) != 0) die_by_signal(wait_status & 0x7f);
  raw_syscall(SYS_exit_group, (wait_status >> 8) & 0xff);
  __builtin_unreachable();
}

namespace wrap {

int __register_atfork(AtForkHandler a, AtForkHandler b, AtForkHandler c, void* d) {
  register_atfork_handlers();
  return real::__register_atfork(a, b, c, d);
}

int fork() { return fork_by(real::fork, true); }
int vfork() { return vfork_from(self.caller_stack); }
int _Fork() { return fork_by(real::_Fork, false); }

int clone(int (*)(void*), void*, int, void*) {
  static constinit Bound none{0, "supported calls of clone()",
                              "they fail (ENOSYS): use fork() or pthread_create()"};
  none.count_refusal();
  errno = ENOSYS;
  return -1;
}

void _exit(int status) { end_now(status_of_exit(status)); }
void _Exit(int status) { end_now(status_of_exit(status)); }

void exit(int status) {
  InsideCrane::set_outside();  // the handlers are the application's; at_exit() runs last
  real::exit(status);
  __builtin_unreachable();
}

void quick_exit(int status) {
  quick_code = status;
  InsideCrane::set_outside();
  real::quick_exit(status);
  __builtin_unreachable();
}

}  // namespace wrap
}  // namespace crane
