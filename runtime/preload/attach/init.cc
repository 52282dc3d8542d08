// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/attach/operation_names.h"
#include "runtime/preload/ground/attach_error.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/self/own_variables.h"
#include "runtime/preload/syscalls/raw_syscalls.h"
#include "runtime/preload/threads/thread_life.h"
#include "runtime/preload/turn/probe.h"

#include <sched.h>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "dmt/processes.h"
#include "runtime/preload/attach/fixed_addresses.h"
#include "runtime/preload/attach/libc_view.h"
#include "runtime/preload/attach/restore.h"
#include "runtime/preload/files/stdio_streams.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/processes/exec.h"
#include "runtime/preload/processes/family.h"
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/sockets/unreachable.h"
#include "runtime/preload/trap/soft_barrier_point.h"
#include "runtime/preload/trap/system_call_trap.h"
#include "runtime/preload/trap/tsc_site.h"
#include "runtime/preload/trap/vdso.h"
#include "runtime/preload/turn/branch_slices.h"
#include "runtime/preload/turn/tick_points.h"
#include "runtime/preload/turn/turn.h"

extern char** environ;

namespace crane {
namespace {

// Makes woken threads not preempt their wakers, so that threads of the server and its node do more
// between two hand-offs (proxy/host/placement.h). Threads and children inherit this.
void set_batch_policy() noexcept {
  const sched_param none{};
  if (raw_syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER) {
    raw_syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none);
  }
}

// The first operation of a program image: records its pid and clears what exec left over.
void start_image(bool after_exec) noexcept {
  Turn turn(after_exec ? Op::kExecDone : Op::kThreadStart);
  dmt::ProcessRecord& p = turn.w.processes[self.process];
  p.pid = static_cast<std::uint32_t>(raw_syscall(SYS_getpid));
  p.group = static_cast<std::uint32_t>(raw_syscall(SYS_getpgid, 0));
  p.session = static_cast<std::uint32_t>(raw_syscall(SYS_getsid, 0));
  turn.w.slots[self.slot].thread_id = self.thread_id;
  prepare_for_restores();
  publish_operation_names();
  if (after_exec) clean_up_after_exec();
  self.entry = add_thread(turn.w, real::pthread_self(), self.slot, false);
  self.entry->thread_id = self.thread_id;
}

void initialise(int count, char** arguments, char** environment) noexcept {
  real::init();
  register_atfork_handlers();
  const char* path = variable("CRANE_SEGMENT");
  if (path == nullptr) return;  // not started by a node: the library stays inactive
  fix_addresses(count, arguments, environment);
  look_for_valgrind();
  read_own_variables(path);
  open_own_descriptors();
  const int process = variable_number("CRANE_PROCESS", dmt::kMainProcess);
  if (process <= 0 || process >= static_cast<int>(dmt::kProcessesMax)) {
    give_up("not a process of this replica", "CRANE_PROCESS");
  }
  const auto index = static_cast<std::uint16_t>(process);
  const bool after_exec = variable("CRANE_SLOT") != nullptr;
  const int slot = variable_number("CRANE_SLOT", without_turn().processes[index].main_slot);
  if (slot <= 0 || slot >= static_cast<int>(dmt::kSlotsMax)) {
    give_up("not a slot of this replica", "CRANE_SLOT");
  }
  dmt::set_doorbell(ring_doorbell);
  if (!after_exec) check_in(index);  // after exec the node still watches the process by its pid
  set_batch_policy();
  install_trap(system_call);
  unreachable::prepare();
  signal_stack::arm(signal_stack::map());
  adopt_slot(static_cast<std::uint16_t>(slot), index);
  prepare_thread_end();
  arm_thread_end();
  install_fault_handlers();
  family::note_parent_death_signal();
  family::forget_children_in_kernel();
  take_over_vdso();
  take_over_libc_view();
  forbid_tsc();
  tsc::prepare_sites();
  ticks::prepare();
  install_probe_handler();
  branches::prepare();
  prepare_soft_barrier_points();
  register_exit_handlers();
  start_image(after_exec);
  hide_own_variables();
  replace_random_bytes();
  adopt_standard_streams();
  InsideCrane::set_outside();
}

}  // namespace
}  // namespace crane

// Runs before the constructors of all other libraries (-z initfirst), also libc's, because an
// allocator's constructor reads the clock and others take random seeds. The loader passes main's
// arguments to constructors.
__attribute__((constructor(101))) static void crane_initialise(int count, char** arguments,
                                                               char** environment) {
  if (environ == nullptr) environ = environment;
  crane::initialise(count, arguments, environment);
}
