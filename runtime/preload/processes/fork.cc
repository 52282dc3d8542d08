// SPDX-License-Identifier: Apache-2.0
// Creation and end of processes.
//
// What must hold here:
//  * Between prepare() and parent()/child() the parent holds the turn: nobody else sees a child
//  that
//    is runnable but does not exist.  These three are the innermost atfork handlers; those of the
//    application and its libraries (allocators lock all their mutexes there) run as usual
//    operations.
//  * The child never acts under its parent's slot.
//  * After end_process() the thread takes no further turn, and all its calls are real.
#include "runtime/preload/processes/fork.h"

#include <cerrno>
#include <climits>

#include "dmt/admission.h"
#include "dmt/base/bound.h"
#include "dmt/base/raw.h"
#include "dmt/hand_off.h"
#include "dmt/processes.h"
#include "runtime/preload/core/init.h"
#include "runtime/preload/core/inside.h"
#include "runtime/preload/core/real.h"
#include "runtime/preload/core/refusal.h"
#include "runtime/preload/core/turn.h"
#include "runtime/preload/core/wrappers.h"
#include "runtime/preload/files/file_lock.h"
#include "runtime/preload/files/flushing.h"
#include "runtime/preload/files/notify.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/fairness.h"
#include "runtime/preload/threads/scheduling.h"
#include "runtime/preload/threads/semaphore_undo.h"
#include "runtime/preload/threads/soft_barrier.h"

namespace crane {
namespace {

bool registered = false;

thread_local constinit dmt::Child new_child{dmt::kNoProcess, dmt::kNoSlot};
thread_local constinit std::uint32_t new_generation = 0;
thread_local constinit bool spawns_child = false;

// Our handlers may be called from the application's fork() or from inside libc.
void prepare() noexcept {
  if (self.slot == dmt::kNone) return;
  WithinCrane within;
  dmt::Layout& w = *world;
  take_turn();
  new_child = dmt::create_process(w, self.process);
  if (new_child.process != dmt::kNoProcess) {
    dmt::SlotRecord& slot = w.slots[value(new_child.slot)];
    slot.blocked_signals = w.slots[self.slot].blocked_signals;
    inherit_scheduling(w, self.slot, value(new_child.slot), true);
    if (spawns_child) w.processes[new_child.process].spawn = dmt::SpawnState::kUnderWay;
    new_generation = slot.generation;
  }
  errno = 0;  // the kernel's answer, for in_parent()
}

// The kernel refused.  Holding the turn: nobody has seen the child.
void undo_child(dmt::Layout& w, int error) noexcept {
  fence_unless_own_limit(error, "the kernel refused to fork on this replica");
  dmt::abandon_process(w, new_child.process);
  new_child = {dmt::kNoProcess, dmt::kNoSlot};
}

void in_parent() noexcept {
  if (self.slot == dmt::kNone) return;
  WithinCrane within;
  dmt::Layout& w = *world;
  if (errno != 0 && new_child.process != dmt::kNoProcess) undo_child(w, errno);
  self.clock_ns = w.scheduler.now_ns;
  dmt::put_turn(w, own_slot(), static_cast<dmt::Operation>(Op::fork), new_child.process, false);
}

void in_child() noexcept {
  if (self.slot == dmt::kNone) return;
  WithinCrane within;
  // The parent's call fails with EAGAIN: this process was never there.
  if (new_child.process == dmt::kNoProcess) raw_syscall(SYS_exit_group, 0);
  adopt_slot(value(new_child.slot), new_child.process);
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
    self.entry = add_thread(real::pthread_self(), self.slot, false);
  }
  self.entry->slot = self.slot;
  self.entry->thread_id = self.thread_id;
  self.entry->exit_object = turn.w.slots[self.slot].exit_object;
  self.entry->joining = false;
}

// The parent learns the pid; an error number when there is no child after all.
int finish_fork(pid_t pid) noexcept {
  if (new_child.process == dmt::kNoProcess) {
    if (pid > 0) raw_syscall(SYS_wait4, pid, nullptr, 0, nullptr);
    return EAGAIN;
  }
  Turn turn(Op::kForkDone);
  dmt::ProcessRecord& p = turn.w.processes[new_child.process];
  const bool still_it = p.state != dmt::ProcessState::kFree &&
                        turn.w.slots[value(new_child.slot)].generation == new_generation;
  if (still_it && p.pid == 0) p.pid = static_cast<std::uint32_t>(pid);
  turn.result(static_cast<std::uint64_t>(new_child.process));
  turn.yield();
  return 0;
}

pid_t fork_by(int (*real_fork)(), bool runs_handlers) noexcept {
  pid_t pid;
  if (!runs_handlers) prepare();
  if (runs_handlers) {
    OutsideCrane outside;
    pid = real_fork();
  } else {
    pid = real_fork();
  }
  const int saved = errno;
  if (!runs_handlers && pid == 0) in_child();
  if (!runs_handlers && pid != 0) in_parent();
  if (pid == 0) return 0;
  const int error = finish_fork(pid);
  errno = error != 0 ? error : saved;
  return error != 0 ? -1 : pid;
}

// Holding the turn or not, this thread ends the process for the schedule.
bool is_ending = false;  // this process, for the schedule

void end_for_schedule(int wait_status) noexcept {
  InsideCrane::set_inside();
  is_ending = true;
  dmt::Layout& w = *world;
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

// The last of all exit handlers: registered before those of the program and its libraries' dynamic
// destructors, hence run after them.
void at_exit(int code, void*) noexcept {
  if (self.slot == dmt::kNone) return;
  // What stdio still holds belongs before the end: readers of our pipes must not see it later.
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

void die_by_signal(int signo) noexcept {
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    unsigned long mask;
  } action{};
  raw_syscall(SYS_rt_sigaction, signo, &action, nullptr, 8);
  raw_syscall(SYS_rt_sigaction, SIGSYS, &action, nullptr, 8);  // a filter may refuse what follows
  const std::uint64_t bit = bit_of(signo);
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, 8);
  raw_syscall(SYS_tgkill, raw_syscall(SYS_getpid), raw_syscall(SYS_gettid), signo);
  // The first process of a container survives signals that it sends itself.
  raw_syscall(SYS_exit_group, 128 + signo);
  __builtin_unreachable();
}

void end_now(int wait_status) noexcept {
  // A filter of the program's may kill what its end does.
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
// The child of vfork may do what the child of fork may.
int vfork() { return fork_by(real::fork, true); }
int _Fork() { return fork_by(real::_Fork, false); }

int clone(int (*)(void*), void*, int, void*) {
  static constinit Bound none{0, "calls of clone() are supported",
                              "they fail (ENOSYS): use fork() or pthread_create()"};
  none.say();
  errno = ENOSYS;
  return -1;
}

void _exit(int status) { end_now(status_of_exit(status)); }
void _Exit(int status) { end_now(status_of_exit(status)); }

void exit(int status) {
  InsideCrane::set_outside();  // the handlers are the application's; at_exit() comes last
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
