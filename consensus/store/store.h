// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's durable log, promise and identity (APUS 5.1, DESIGN C4, C5, C9).
//
// The idea: one transaction per call, durable when the call returns.  Entries are kept by index, in
// the byte format of the log (consensus/core/log.h).  Each carries its own CRC, view, position and
// predecessor, so a store can be checked from end to end, rebuilt into a ring, or read by a peer.
//
// GUARANTEES (tests/unit/store)
// CONTRACT STORE-T1  A transaction that append() and promise() reported as done survives a loss of
//     power; an unreported one survives whole or not at all.
// CONTRACT STORE-T2  The entries held are contiguous in index and position and each names its
//               predecessor's view.
// CONTRACT STORE-T3  Appending an entry whose stamp differs from the one held at its index deletes
//     that one and all above it in the same transaction (U4); the same stamp again changes nothing.
// CONTRACT STORE-T4  open() checks every record.  A store that holds less than it once reported as
//     done, or holds it damaged, reports the damage: it is never silently shorter (U8).
// CONTRACT STORE-T5  After an error the store does nothing more: the caller's node ends (C5).
// CONTRACT STORE-T6  A full disk is not an error.  The caller checks room() before each
//     transaction, and begins none without room: it waits.  room() keeps more free than a
//     transaction needs.  An ENOSPC inside one (another process took all of that meanwhile) is an
//     error like any other.
//
// A store that was killed in the middle of a transaction is not damaged; it lacks that transaction.
//
// Threads: one at a time.  Processes: one, the second is refused at open.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "consensus/core/log.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"

namespace crane::consensus::store {

// The owner of the log.
struct Identity {
  std::uint64_t log_id = 0;
  std::uint32_t incarnation = 0;  // 0: the store is new
  friend bool operator==(const Identity&, const Identity&) = default;
};

struct State {
  Identity identity;
  View promise{};
  core::Cursor first;   // before the oldest entry held
  core::Cursor last;    // after the newest entry
  core::Cursor commit;  // the last known commit index; first <= commit <= last
  std::string damage;   // the damage as text; empty: none
};

// The purpose of the room: new entries leave the most free, cutting the store the least.
enum class Work : std::uint8_t { kEntries, kPromise, kDrop };

// State of the disk at the last check.
struct Room {
  bool enough = true;         // for the requested work
  bool low = false;           // room for new entries will run out soon: the log should be cut
  std::uint64_t free = 0;     // bytes
  std::uint64_t missing = 0;  // bytes that are missing
  friend bool operator==(const Room&, const Room&) = default;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual const State& state() const noexcept = 0;

  // Discards everything, takes `identity`, and begins at `begin`, after committed entries.  Also
  // works on a damaged store, whose files are set aside if there are any.
  virtual Outcome reset_at(const Identity& identity, const core::Cursor& begin, View promise) = 0;
  Outcome reset(const Identity& identity) { return reset_at(identity, {}, {}); }
  virtual Outcome promise(View view) = 0;
  // `bytes` has complete entries, padded as in the ring, the first of which follows `from`.
  // `commit` is the committed position.  Stops before the first invalid entry; returns the cursor
  // after the last durable one.  REQUIRES: first.index <= from.index <= last.index, from.last held
  // there.
  virtual Result<core::Cursor> append(const core::Cursor& from, std::span<const std::byte> bytes,
                                      const core::Cursor& commit) = 0;
  // Appends to `out` the entries held from index `from` on, padded as in the ring, at least one, up
  // to about bytes_max; returns the index after the last one.  kNotFound: `from` is not held;
  // kDamaged: it is not what was stored.
  virtual Result<Index> read(Index from, std::size_t bytes_max, std::vector<std::byte>& out) = 0;
  // The header of the entry at `index`.
  virtual Result<core::EntryHeader> header(Index index) = 0;
  // Entries below `index` are no longer needed (C9: a checkpoint covers them): drops those in whole
  // segments.
  virtual Outcome drop_below(Index index) = 0;
  // STORE-T6, for a transaction with `bytes` bytes of entries.
  virtual Room room(Work work, std::size_t bytes) {
    static_cast<void>(work);
    static_cast<void>(bytes);
    return {};
  }
  // Called after each answer: occasional large work.
  virtual Outcome tidy() { return Done{}; }
  // Called when nothing waits: writes that should not delay a transaction.
  virtual Outcome idle() { return Done{}; }
};

}  // namespace crane::consensus::store
