// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/attach/restore.h"

#include "dmt/hand_off.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/trap/system_call_trap.h"
#include "runtime/preload/trap/vdso.h"
#include "runtime/preload/turn/branch_slices.h"

namespace crane {
namespace {

std::uint32_t vdso_restores = 0;  // the vDSO is ours since this restore; REQUIRES the turn

// RESTORE-1.  The thread has the turn.
void after_restore(std::uint32_t restores) noexcept {
  if (vdso_restores != restores) {
    take_over_vdso();  // the restoring kernel's vDSO, where the old one was
    vdso_restores = restores;
  }
  forbid_tsc();
  arm_trap();
  branches::open_for_thread();
}

}  // namespace

void prepare_for_restores() noexcept {
  dmt::look_for_restore(without_turn());  // before there is a handler to call
  vdso_restores = without_turn().scheduler.restores.load(std::memory_order_relaxed);
  dmt::set_restore_handler(after_restore);
}

}  // namespace crane
