// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of a server before which its threads wait for each other
// (runtime/preload/trap/soft_barrier_point.h).  Users and profiles write
// "FUNCTION:COUNT:TIMEOUT_US".
//
// Threads: plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

struct Profile;

struct SoftBarrier {
  std::string function;  // its exported name
  std::uint32_t count = 0;
  std::uint32_t timeout_us = 0;  // virtual time
  std::string origin = {};       // "--soft-barrier", or "the profile P"
};

// Returns false if `text` is not of this form.
bool parse_soft_barrier(const std::string& text, SoftBarrier& soft_barrier);
std::string text_of(const SoftBarrier& soft_barrier);

// Checks the user's words; there may be dmt::kSoftBarrierPointsMax.  Errors: kUsage.
Outcome check_soft_barriers(const std::vector<std::string>& words);

// The user's soft barriers.  In parallel mode, where they help, also the profile's for functions
// that the user did not name, up to the limit.  REQUIRES: check_soft_barriers() succeeded.
std::vector<SoftBarrier> chosen_soft_barriers(const std::vector<std::string>& words,
                                              const Profile& profile, bool parallel);

}  // namespace crane::setup
