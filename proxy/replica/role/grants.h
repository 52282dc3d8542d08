// SPDX-License-Identifier: Apache-2.0
#pragma once
// When the leader proposes entries of its own: BUBBLE when the server wants turns, TIME when a
// deadline of the server has passed.  Also how many turns each entry grants (DESIGN D3-D6, D12,
// D17; CRANE 4.2 for the classic rule).
//
// Pure: each step receives what the loop sees, and returns what to propose and when to look again.
//
// Threads: one object, one thread.
// INVARIANT GRANT-1  A bubble is proposed only when this replica's server has admitted all earlier
//                    proposals: at most one BUBBLE or TIME is outstanding.  Exception: bubbles that
//                    sliced threads wait for (dmt/slices.h) also follow inputs, one such bubble at
//                    a time.
// INVARIANT GRANT-2  Bubbles double from bubble_min to bubble_max while no input arrives.
// INVARIANT GRANT-3  Two TIME entries are at least granularity_ns of virtual time apart, except
//                    those that release a soft barrier at which no other thread can arrive (rule
//                    13).

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"
#include "proxy/replica/deadline.h"

namespace crane::replica {

struct GrantOptions {
  bool classic = false;  // CRANE's own rule: inputs grant nothing, stall -> wait -> bubble
  GrantTurns input = 256;
  GrantTurns bubble_min = 256;
  GrantTurns bubble_max = 64 * 1024;
  GrantTurns classic_bubble = 1000;
  std::int64_t classic_wait_ns = 100'000;
  std::int64_t granularity_ns = 1'000'000;
};

// The loop's observations at the end of an iteration.
struct Observation {
  std::int64_t virtual_now_ns = 0;
  bool stalled = false;          // the server wants turns and has none
  bool grant_low = false;        // it will want some soon, and nothing is queued
  bool slice_wanted = false;     // sliced threads wait for a bubble
  bool at_soft_barrier = false;  // it waits, and some of its threads wait at a soft barrier
  std::int64_t next_deadline_ns = kNever;  // the server's earliest, virtual time
  Index applied{};                         // the last entry that this replica's server admitted
  Index proposed{};                        // the last entry that this leader proposed
};

enum class Propose : std::uint8_t { kNothing, kBubble, kTime };
struct Decision {
  Propose what = Propose::kNothing;
  GrantTurns grant = 0;
  std::int64_t look_again_ns = kNever;  // virtual time at which to decide again without an event
};

class GrantPolicy {
 public:
  explicit GrantPolicy(const GrantOptions& options) noexcept
      : options_(options), bubble_(options.bubble_min) {}

  Decision step(const Observation& seen) noexcept;

  // The grant of the last input of a batch; those before it grant 0.
  GrantTurns input_grant() const noexcept { return options_.classic ? 0 : options_.input; }
  // Another reign begins: none of its bubbles is outstanding.
  void lead() noexcept { slice_behind_ = Index{}; }
  // An input was proposed: bubbles start small again.
  void input_proposed() noexcept { bubble_ = options_.bubble_min; }

 private:
  Decision bubble(const Observation& seen) noexcept;

  const GrantOptions options_;
  GrantTurns bubble_;
  Index slice_behind_{};                    // the entry that the last bubble for a slice follows
  std::int64_t stalled_since_ns_ = kNever;  // classic
  std::int64_t last_time_ns_ = std::numeric_limits<std::int64_t>::min() / 2;
};

}  // namespace crane::replica
