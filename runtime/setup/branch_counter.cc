// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/branch_counter.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dmt/base/branch_event.h"

namespace crane::setup {
namespace {

Outcome refuse(const std::string& cause, const std::string& advice) {
  return failure(Status::kNoBranchCounter, "cannot count branches", "--branch-counter", cause,
                 advice);
}

// Whether a thread's position in its code at an entry of the log may depend on its processor's
// speed.
bool leaves_anywhere(const std::vector<std::string>& detach) {
  for (const std::string& name : detach) {
    if (name == "computation" || name == "any-computation") return true;
  }
  return false;
}

}  // namespace

Outcome check_branch_event() {
  constexpr std::uint64_t kLong = 1'000'000'000;
  const std::string advice = "leave it out, or use a machine with usable counters";
  const BranchEvent event = branch_event();
  if (event.code == 0) return refuse("Crane knows no branch event of this processor", advice);
  const long fd = open_branch_counter(event.code, kLong);
  if (fd >= 0) {
    close(static_cast<int>(fd));
    return Done{};
  }
  const std::string why = strerror(static_cast<int>(-fd));
  if (fd == -EACCES || fd == -EPERM)
    return refuse("perf_event_open: " + why, "set kernel.perf_event_paranoid to 2 or less");
  return refuse("perf_event_open: " + why + "; most virtual machines have no counters", advice);
}

Outcome check_branch_counter(const NodeOptions& options, bool parallel,
                             const std::vector<std::string>& detach) {
  if (!options.branch_counter) return Done{};
  if (parallel) return refuse("there are no slices in parallel mode", "leave one of them out");
  if (options.slice_us == 0)
    return refuse("there are no slices with --slice 0", "leave one of them out");
  if (options.admission != dmt::Admission::kGrant)
    return refuse("there are no slices with --admission classic", "leave one of them out");
  if (options.spins || leaves_anywhere(detach)) {
    return refuse(
        "with --spins and --detach computation (which a profile may set) threads may be "
        "anywhere",
        "leave one of them out, or use --profile default");
  }
  return check_branch_event();
}

}  // namespace crane::setup
