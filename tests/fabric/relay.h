// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries the bytes of all connections to `listen` on to `forward` and back.  Never returns; meant
// for a child process, which a test stops to cut the network without telling either side.
//
// A Weather makes the way long and lossy on any machine, as a TCP sender and receiver see it: bytes
// that were lost come 200 ms later, the least time-out of a retransmission, or a round trip after
// the next bytes that are not lost, which tell the sender what is missing.

#include <atomic>
#include <cstdint>

#include "consensus/consensus.h"

namespace crane::test {

// In memory shared with the test; may change at any time.
struct Weather {
  enum Link : std::uint32_t { kBackground = 1, kLog = 2, kBoth = 3 };
  std::atomic<std::uint32_t> loss_per_mille[2];  // of what the dialler sends; of what it is sent
  std::atomic<std::uint32_t> links;      // which of a pair's; the background one comes first
  std::atomic<std::uint32_t> delay_us;   // each way
  std::atomic<std::uint32_t> jitter_us;  // more or less than that
  std::atomic<std::uint64_t> lost;       // pieces, so far,
  std::atomic<std::uint64_t> timed_out;  // and of these, those no later piece told of
};

[[noreturn]] void run_relay(const consensus::Endpoint& listen, const consensus::Endpoint& forward,
                            Weather& weather);

}  // namespace crane::test
