// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-replay --follow: runs a history while it is being recorded, with its server in a tool of
// valgrind, and says what is found as it is found.  The engine of an analysis replica.
//
// What it says, one JSON object a line (-o json):
//   {"t":"finding","number":N,"text":S}
//   {"t":"progress","entry":I,"position":B,"findings":N,"reports":N,"digests":N,"equal_to":I}
//   {"t":"differs","index":I,"text":S}       once: its server goes another way from there on
//   {"t":"end","status":N,"text":S}          status as of ReplayStatus; text: why, or empty
//
// Threads: one.

#include <string>

#include "proxy/replay/replay_setup.h"

namespace crane::node {

struct FollowRequest {
  std::string directory;  // of the history
  int replica = 0;
  std::string valgrind;               // its tool
  std::string log;                    // gets what the tool says; empty: nothing does
  std::string place_dir, place_name;  // as ReplayRequest has them
  bool json = false, verbose = false;
};

// The report stops growing there.
inline constexpr std::uint64_t kFollowReportMax = 64ULL << 20;

ReplayStatus follow_history(const FollowRequest& request);

}  // namespace crane::node
