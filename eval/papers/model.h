// SPDX-License-Identifier: Apache-2.0
#pragma once
// Propose-to-commit latency of one rule on one described machine: the strategies, and the protocol
// core itself, run on the LogGP fabric.
//
// Threads: one.  Everything is deterministic: the same arguments give the same number.

#include <cstddef>
#include <cstdint>

#include "eval/papers/loggp.h"
#include "eval/strategies/strategy.h"

namespace crane::eval {

// From the call of propose() by an idle leader to committed() having risen, for a payload of
// `bytes`; the same for every entry.
Pico strategy_latency(Rule rule, const LogGp& costs, std::uint8_t replicas, std::size_t bytes);

// The latency of the real core: consensus/core runs on every replica, elected its leader, and
// beats, reads heartbeats and tells commit indexes meanwhile.  The median of `entries` proposals.
Pico core_latency(const LogGp& costs, std::uint8_t replicas, std::size_t bytes, unsigned entries);

// DARE 3.3: a read asks a majority for its term; one round of RDMA reads of 8 bytes.
Pico dare_read_latency(const LogGp& costs, std::uint8_t replicas);

// DARE's bounds of the same (section 3.3.3), for `bytes` per WRITE; to compare the model with.
Pico dare_write_bound(const LogGp& costs, std::uint8_t replicas, std::size_t bytes);
Pico dare_read_bound(const LogGp& costs, std::uint8_t replicas);

}  // namespace crane::eval
