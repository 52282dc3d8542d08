// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica tells all others of the checkpoint that it was asked for: any of them may lead
// next and ask for the one after that, or may recover and begin at it.
//
// Threads: a plain value.

#include <cstdint>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"

namespace crane::node {

// An out-of-band message, which may be lost: one that is not heard of counts as given up in time.
struct CheckpointNote {
  static constexpr std::uint64_t kWhat = 0x45544f4e54504b43;              // "CKPTNOTE"
  static constexpr std::uint64_t kTaken = 1, kGivenUp = 2, kRefused = 3;  // kRefused: for good
  static constexpr std::uint64_t kBusy = 4;  // another one was not finished

  std::uint64_t what = kWhat;
  std::uint64_t came = 0;     // of it: one of the above
  std::uint64_t index = 0;    // its entry; of one that was given up about that
  std::uint64_t end = 0;      // where that entry ends in the log, bytes
  std::uint64_t by_criu = 0;  // kTaken: 1: the server's processes are in it
  std::uint64_t unused = 0;
};
static_assert(sizeof(CheckpointNote) == 48 &&
              sizeof(CheckpointNote) <= consensus::kOutOfBandBytesMax);

}  // namespace crane::node
