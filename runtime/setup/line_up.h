// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of a server before which its threads line up (runtime/preload/threads/line_up_point.h),
// as users and profiles name them: "FUNCTION:COUNT:TIMEOUT_US".
//
// Threads: plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

struct Profile;

struct LineUp {
  std::string function;  // as its object exports it
  std::uint32_t count = 0;
  std::uint32_t timeout_us = 0;  // of virtual time
  std::string origin = {};       // "--line-up", or "the profile P"
};

// False when it is none.
bool parse_line_up(const std::string& text, LineUp& line_up);
std::string text_of(const LineUp& line_up);

// What is wrong with the user's words, of which there may be dmt::kLineUpPointsMax.
Outcome check_line_ups(const std::vector<std::string>& words);

// The user's, and in parallel mode, where they pay, the profile's that the user did not name, as
// far as there is room.  REQUIRES that check_line_ups() found nothing wrong.
std::vector<LineUp> chosen_line_ups(const std::vector<std::string>& words, const Profile& profile,
                                    bool parallel);

}  // namespace crane::setup
