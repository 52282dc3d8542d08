// SPDX-License-Identifier: Apache-2.0
#pragma once
// The durable part of the log: the store's cursor (commit rule `disk`, DESIGN C4).
//
// The idea (APUS 5.1): the store gets entries that landed, or that the leader appended, in order,
// one transaction at a time.  Entries that arrive during a transaction form the next one, so the
// disk sets the size of a batch, and no timer does (CORE-S6).  A follower reports one cumulative
// index to its leader; the leader commits what a majority has reported, itself included.
//
// INVARIANT CORE-D1  a replica grants nothing, and requests no grant, before its promise is
//               durable.
// INVARIANT CORE-D2  a durable index counts only in the view it was reported in, and only if the
//               last stored entry is of that view (then all entries before it equal the leader's
//               log).
// INVARIANT CORE-D3  everything up to stored() is durable and equal to the ring; at every grant the
//               cursor goes back to the commit index, because later entries may be replaced (U4).
// INVARIANT CORE-D4  at most one transaction of entries is under way; bytes that are not yet
//               durable are never released for overwriting.
//
// Threads: one.

#include <algorithm>
#include <cstdint>

#include "consensus/core/log.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

class StoreCursor {
 public:
  // After a start: the store holds the log up to `at`.
  void begin_at(const Cursor& at) noexcept { stored_ = at; }
  const Cursor& stored() const noexcept { return stored_; }
  bool outstanding() const noexcept { return outstanding_; }

  // Gives the entries up to `to` to the store; returns the number of this transaction.
  std::uint64_t begin(const Cursor& to) noexcept {
    CRANE_ASSERT(!outstanding_ && to.pos > stored_.pos);  // CORE-D4
    outstanding_ = counts_ = true;
    to_ = to;
    return ++sequence_;
  }
  // Entries after `at` may be replaced: neither they nor a transaction under way that includes them
  // count (CORE-D3).
  void back_to(const Cursor& at) noexcept {
    if (to_.pos > at.pos) counts_ = false;
    if (stored_.pos > at.pos) stored_ = at;
  }
  // Transaction `sequence` is durable up to `last`.  Returns false if the store did not store what
  // it was given.
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
  bool counts_ = false;  // true: no entry was replaced since the transaction began
};

}  // namespace crane::consensus::core
