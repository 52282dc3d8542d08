// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forwards the bytes of all connections to `listen` to `forward`, and back.  Never returns.  Run it
// in a child process; a test stops that to cut the network without a sign to either side.
//
// A Weather makes the path long and lossy on any machine, as a TCP sender and receiver see it.
// Lost bytes come 200 ms later (the minimal retransmission time-out), or a round trip after the
// next bytes that arrive, which show the sender what is missing.

#include <atomic>
#include <cstdint>

#include "consensus/consensus.h"

namespace crane::test {

// In memory shared with the test; may change at any time.
struct Weather {
  enum Link : std::uint32_t { kBackground = 1, kLog = 2, kBoth = 3 };
  std::atomic<std::uint32_t> loss_per_mille[2];  // for bytes from the dialler; for bytes to it
  std::atomic<std::uint32_t> links;              // the affected links of a pair, a Link
  std::atomic<std::uint32_t> delay_us;           // each way
  std::atomic<std::uint32_t> jitter_us;          // deviation from delay_us
  std::atomic<std::uint64_t> lost;               // lost pieces so far
  std::atomic<std::uint64_t> timed_out;          // lost pieces that no later piece revealed
};

[[noreturn]] void run_relay(const consensus::Endpoint& listen, const consensus::Endpoint& forward,
                            Weather& weather);

}  // namespace crane::test
