// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/processes/family.h"

#include <sys/prctl.h>

#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace family {
namespace {

int of_kernel = 0;  // this process' signal in the kernel; ProcessRecord has the server's

}  // namespace

bool is_option(int option) noexcept {
  return option == PR_SET_PDEATHSIG || option == PR_GET_PDEATHSIG ||
         option == PR_SET_CHILD_SUBREAPER || option == PR_GET_CHILD_SUBREAPER;
}

long control(int option, long argument) noexcept {
  Turn turn(Op::prctl);
  dmt::ProcessRecord& p = turn.w.processes[self.process];
  switch (option) {
    case PR_SET_PDEATHSIG:
      if (argument < 0 || argument > 64) return -EINVAL;
      p.parent_death_signal = static_cast<std::uint8_t>(argument);
      return 0;
    case PR_GET_PDEATHSIG:
      if (argument == 0) return -EFAULT;
      *reinterpret_cast<int*>(argument) = p.parent_death_signal;
      return 0;
    case PR_SET_CHILD_SUBREAPER:
      // In the kernel, too, the process adopts these orphans, because it must wait for them there.
      p.collects_orphans = argument != 0;
      return raw_syscall(SYS_prctl, option, argument, 0, 0, 0);
    default:
      if (argument == 0) return -EFAULT;
      *reinterpret_cast<int*>(argument) = p.collects_orphans ? 1 : 0;
      return 0;
  }
}

void note_parent_death_signal() noexcept {
  raw_syscall(SYS_prctl, PR_GET_PDEATHSIG, &of_kernel, 0, 0, 0);
}

void renew_parent_death_signal() noexcept {
  if (of_kernel == 0 || self.process != dmt::kMainProcess) return;  // its children end with it
  raw_syscall(SYS_prctl, PR_SET_PDEATHSIG, of_kernel, 0, 0, 0);
}

void forget_children_in_kernel() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  action.sa_flags = SA_NOCLDWAIT;
  real::sigaction(SIGCHLD, &action, nullptr);
}

}  // namespace family

namespace wrap {

// Returns the parent in the schedule; the kernel's parent may be another process that is still
// ending.
pid_t getppid() {
  Turn turn(Op::getppid);
  const std::uint16_t parent = turn.w.processes[self.process].parent;
  constexpr pid_t kInit = 1;
  if (self.process == dmt::kMainProcess) return static_cast<pid_t>(raw_syscall(SYS_getppid));
  if (parent == dmt::kNoProcess) return kInit;
  return static_cast<pid_t>(turn.w.processes[parent].pid);
}

}  // namespace wrap
}  // namespace crane
