// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-replay --follow: runs a history while it is being recorded, with its server in a tool of
// valgrind, and reports findings at once.  The engine of an analysis replica.
//
// Its output, one JSON object per line (-o json):
//   {"t":"finding","number":N,"text":S}
//   {"t":"progress","entry":I,"position":B,"findings":N,"reports":N,"digests":N,"equal_to":I}
//   {"t":"differs","index":I,"text":S}       once: its server differs from there on
//   {"t":"end","status":N,"text":S}          status as of ReplayStatus; text: why, or empty
//
// Threads: one.

#include <string>

#include "proxy/replay/replay_setup.h"

namespace crane::node {

struct FollowRequest {
  std::string directory;  // of the history
  int replica = 0;
  std::string valgrind;               // valgrind's tool
  std::string log;                    // file for the tool's reports; empty: none
  std::string place_dir, place_name;  // as in ReplayRequest
  bool json = false, verbose = false;
};

// Maximum size of the report.
inline constexpr std::uint64_t kFollowReportMax = 64ULL << 20;

ReplayStatus follow_history(const FollowRequest& request);

}  // namespace crane::node
