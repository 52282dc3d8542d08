// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/load_trials.h"

#include <spdlog/spdlog.h>

#include <ctime>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

std::int64_t process_cpu_ns() noexcept {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000LL + used.tv_nsec;
}

NodePlace place_of(Way way) noexcept {
  return way == Way::kSecond ? NodePlace::kShares : NodePlace::kRoams;
}

}  // namespace

void LoadTrials::end_windows(std::uint64_t answers, std::int64_t now_ns) {
  const PairedTrial::Work work{answers, process_cpu_ns()};
  const Way placed = placement_.settled(), polled = polling_.settled();
  const bool may_place = place_.has_choice() && !polling_.trying();
  place_.move_to(place_of(placement_.step(work, now_ns, may_place)));
  polling_.step(work, now_ns, !placement_.trying());
  CRANE_ASSERT(!placement_.trying() || !polling_.trying());  // TRIAL-2
  if (placement_.settled() != placed) {
    spdlog::info("this node {} from now on", placement_.settled() == Way::kSecond
                                                 ? "shares its server's processor"
                                                 : "uses all of its processors");
  }
  if (polling_.settled() != polled) {
    spdlog::info("this node {} from now on", polling_.settled() == Way::kSecond
                                                 ? "polls before it sleeps"
                                                 : "sleeps without polling");
  }
  const bool fast = place_.processors() > 1 && polling_.answers() >= kManyAnswers;
  polling_.guess(fast ? Way::kSecond : Way::kFirst);
}

std::optional<NodePlace> LoadTrials::place() const noexcept {
  return place_.has_choice() ? std::optional(place_of(placement_.settled())) : std::nullopt;
}

}  // namespace crane::node
