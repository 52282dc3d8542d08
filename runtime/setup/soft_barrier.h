// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of a server before which its threads line up
// (runtime/preload/trap/soft_barrier_point.h), as users and profiles name them:
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
  std::string function;  // as its object exports it
  std::uint32_t count = 0;
  std::uint32_t timeout_us = 0;  // of virtual time
  std::string origin = {};       // "--soft-barrier", or "the profile P"
};

// False when it is none.
bool parse_soft_barrier(const std::string& text, SoftBarrier& soft_barrier);
std::string text_of(const SoftBarrier& soft_barrier);

// What is wrong with the user's words, of which there may be dmt::kSoftBarrierPointsMax.
Outcome check_soft_barriers(const std::vector<std::string>& words);

// The user's, and in parallel mode, where they pay, the profile's that the user did not name, as
// far as there is room.  REQUIRES that check_soft_barriers() found nothing wrong.
std::vector<SoftBarrier> chosen_soft_barriers(const std::vector<std::string>& words,
                                              const Profile& profile, bool parallel);

}  // namespace crane::setup
