// SPDX-License-Identifier: Apache-2.0
#pragma once
// What of the own log is durable: the store's cursor (commit rule `disk`, DESIGN C4).
//
// The idea (APUS 5.1): entries that landed, or that the leader appended, are given to the store in
// order, one transaction at a time; all that came while one was under way is the next one, so the
// disk itself sets the size of the batch and no timer does (CORE-S6).  A follower tells its leader
// one cumulative index; the leader commits what a majority has told, itself included.
//
// INVARIANT CORE-D1  nothing is granted, and no replica asked for a grant, before the promise is
//               durable.
// INVARIANT CORE-D2  a durable index counts only in the view it was told in, and only if the last
//               stored entry is of that view (then all before it equal the leader's log).
// INVARIANT CORE-D3  everything up to stored() is durable and equal to the ring; at every grant the
//               cursor goes back to the commit index, because what is behind may be replaced (U4).
// INVARIANT CORE-D4  at most one transaction of entries is under way; bytes that are not durable
//               yet are not given up to be overwritten.
//
// Threads: one.

#include <algorithm>
#include <cstdint>

#include "consensus/core/log.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

class StoreCursor {
 public:
  // After a start: the store holds the log up to here.
  void begin_at(const Cursor& at) noexcept { stored_ = at; }
  const Cursor& stored() const noexcept { return stored_; }
  bool outstanding() const noexcept { return outstanding_; }

  // Entries up to `to` are given to the store; the number of this transaction.
  std::uint64_t begin(const Cursor& to) noexcept {
    CRANE_ASSERT(!outstanding_ && to.pos > stored_.pos);  // CORE-D4
    outstanding_ = counts_ = true;
    to_ = to;
    return ++sequence_;
  }
  // What is behind `at` may be replaced: neither it nor a transaction under way that reaches there
  // counts (CORE-D3).
  void back_to(const Cursor& at) noexcept {
    if (to_.pos > at.pos) counts_ = false;
    if (stored_.pos > at.pos) stored_ = at;
  }
  // Transaction `sequence` is durable up to `last`.  False when all is not as it was given.
  bool finish(std::uint64_t sequence, const Cursor& last) noexcept {
    if (!outstanding_ || sequence != sequence_) return true;
    outstanding_ = false;
    if (!counts_) return true;
    stored_ = last;
    return last == to_;
  }
  // Only for a mutant.
  void finish_early() noexcept { stored_ = to_; }

 private:
  Cursor stored_;
  Cursor to_;
  std::uint64_t sequence_ = 0;
  bool outstanding_ = false;
  bool counts_ = false;  // nothing was replaced since it began
};

}  // namespace crane::consensus::core
