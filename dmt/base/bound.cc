// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/bound.h"

#include <bit>

#include "dmt/base/log.h"

namespace crane {

void Bound::count_refusal() noexcept {
  const std::uint64_t refusals = refusals_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!std::has_single_bit(refusals)) return;
  Message() << "limit: " << most_ << " " << what_ << ", " << consequence_ << " (" << refusals
            << (refusals == 1 ? " time)" : " times)");
}

}  // namespace crane
