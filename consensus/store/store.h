// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's durable log, promise and identity (APUS 5.1, DESIGN C4, C5, C9).
//
// The idea: one transaction per call, durable when the call returns.  Entries are kept by index, in
// the byte format of the log (core/log.h), so that each carries its own CRC, view, position and
// predecessor, and a store can be checked from end to end, rebuilt into a ring, or read by a peer.
//
// GUARANTEES (tests/unit/store)
// CONTRACT STORE-T1  What append() and promise() said is done survives a loss of power, all of a
//     transaction or nothing of it.
// CONTRACT STORE-T2  The entries held are contiguous in index and position and each names its
//               predecessor's view.
// CONTRACT STORE-T3  Appending an entry whose stamp differs from the one held at its index deletes
//     that one and all above it in the same transaction (U4); the same stamp again changes nothing.
// CONTRACT STORE-T4  open() checks every record.  A store that holds less than it once said was
//     done, or holds it damaged, says so: it is never shorter without saying so (U8).
// CONTRACT STORE-T5  After an error nothing more is done: the caller's node ends (C5).
// CONTRACT STORE-T6  A disk that is full is no error.  room() is asked before each transaction, and
//     without room none begins: its caller waits.  What room() leaves free is more than a
//     transaction needs.  An ENOSPC inside one (another process took all of that meanwhile) is an
//     error like any other.
//
// A store that was killed in the middle of a transaction is not damaged, it is without it.
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

// Whose log this is.
struct Identity {
  std::uint64_t log_id = 0;
  std::uint32_t incarnation = 0;  // 0: the store is new
  friend bool operator==(const Identity&, const Identity&) = default;
};

struct State {
  Identity identity;
  View promise{};
  core::Cursor first;   // before the oldest entry held
  core::Cursor last;    // behind the newest
  core::Cursor commit;  // known to be committed when it was last told; first <= commit <= last
  std::string damage;   // what is wrong, in words; empty: nothing
};

// The use for which room is asked: new entries leave the most free, cutting the store the least.
enum class Work : std::uint8_t { kEntries, kPromise, kDrop };

// Of the disk, when it was looked at.
struct Room {
  bool enough = true;         // for what was asked
  bool low = false;           // new entries will not have room for long: the log is to be cut
  std::uint64_t free = 0;     // bytes
  std::uint64_t missing = 0;  // bytes, until there is enough
  friend bool operator==(const Room&, const Room&) = default;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual const State& state() const noexcept = 0;

  // Throws everything away, belongs to `identity` from now on and begins at `begin`, behind what is
  // committed.  Also of a damaged store, whose files are set aside where there are files.
  virtual Outcome reset_at(const Identity& identity, const core::Cursor& begin, View promise) = 0;
  Outcome reset(const Identity& identity) { return reset_at(identity, {}, {}); }
  virtual Outcome promise(View view) = 0;
  // `bytes`: whole entries, padded as in the ring, the first of which follows `from`; `commit`:
  // what is committed.  Stops before the first entry that is not valid; the cursor behind the last
  // one that is durable now.  REQUIRES: first.index <= from.index <= last.index, from.last held
  // there.
  virtual Result<core::Cursor> append(const core::Cursor& from, std::span<const std::byte> bytes,
                                      const core::Cursor& commit) = 0;
  // Appends to `out` the entries from index `from` on, padded as in the ring, as long as they are
  // held, at least one and then up to about bytes_max; the index behind the last one.  kNotFound:
  // `from` is not held; kDamaged: it is not what was stored.
  virtual Result<Index> read(Index from, std::size_t bytes_max, std::vector<std::byte>& out) = 0;
  // The header of the entry at `index`.
  virtual Result<core::EntryHeader> header(Index index) = 0;
  // Entries below `index` are not needed any more (C9: a checkpoint covers them): drops those in
  // whole segments.
  virtual Outcome drop_below(Index index) = 0;
  // STORE-T6, of a transaction of so many bytes of entries.
  virtual Room room(Work work, std::size_t bytes) {
    static_cast<void>(work);
    static_cast<void>(bytes);
    return {};
  }
  // Called after each answer was given: work that is large now and then.
  virtual Outcome tidy() { return Done{}; }
  // Called when nothing waits: writes what need not be in the way of a transaction.
  virtual Outcome idle() { return Done{}; }
};

}  // namespace crane::consensus::store
