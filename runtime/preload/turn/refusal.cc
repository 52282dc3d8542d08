// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/refusal.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>

#include "dmt/admission.h"
#include "dmt/base/raw.h"
#include "dmt/layout.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

rlim_t limit_of(int resource) noexcept {
  struct rlimit limit {};
  raw_syscall(SYS_prlimit64, 0, resource, nullptr, &limit);
  return limit.rlim_cur;
}

}  // namespace

void fence_unless_own_limit(int error, const char* what) noexcept {
  // A limit that is larger than our own tables cannot have been the reason.
  const bool own = limit_of(RLIMIT_NPROC) <= dmt::kProcessesMax + dmt::kSlotsMax ||
                   limit_of(RLIMIT_AS) != RLIM_INFINITY;
  if (error != EAGAIN || !own) dmt::fence_refused(without_turn(), what);
}

}  // namespace crane
