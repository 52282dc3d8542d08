// SPDX-License-Identifier: Apache-2.0
#pragma once
// One-sided memory access between the replicas of a group: the contract that `shm`, `sim`, `tcp`
// and `verbs` all keep, and that one conformance suite (tests/fabric) checks on each of them.
//
// The idea (DESIGN 6, Mu 2 and 4): every replica owns a LOG MEMORY (the ring and whatever cells the
// core places behind it) which one peer at a time may write without the owner's processor doing
// anything; plus a BACKGROUND plane of small things that never wait behind log bytes: cells that
// only their owner writes and all read (promise, heartbeat counter, status), and short
// requests between peers (ask for permission, acknowledge a grant).
//
// GUARANTEES.  Each is a test case of that name in tests/fabric/conformance*_test.cc.
//
// CONTRACT FABRIC-F1  Order.  Writes to one peer under one key land in the order of the calls, each
//               whole.
// CONTRACT FABRIC-F2  Fence.  After revoke_writes(p) has returned, no byte of any write made under
//      p's old key becomes visible in the log memory, whatever the writer does: stopped in the
//      middle of a copy and continued later, retried, or killed. revoke_writes never waits for the
//      writer.
// CONTRACT FABRIC-F3  No loss.  A write whose completion said `ok` is visible to the owner after
//      its next poll() or revoke_writes(), whichever is first; also when the owner was stopped, or
//      was killed and started again on memory that survived (C5), or the writer died right after.
// CONTRACT FABRIC-F4  One completion.  Every write, read, read_cell and open_log gives exactly one
//      completion, also to a dead peer; completions to one peer come in the order of the calls.
// CONTRACT FABRIC-F5  Stickiness.  After a failed write every later write under the same key to
//      that peer fails, until open_log() made a new connection: there are no gaps among completed
//      writes (U5).
// CONTRACT FABRIC-F6  Fresh keys. permit_writes gives a key that was never given before, by this or
//      any earlier incarnation; a key works only for the peer it was given for, and never again
//      once revoked (U6).  Nothing that takes long (registration, allocation) is on the path of a
//      grant.
// CONTRACT FABRIC-F7  Failure.  The death of a peer's process gives kPeerDown at once, without a
//      time-out; its (re)start gives kPeerUp.  While it is dead its memory may or may not be
//      reachable: operations complete either way (FABRIC-F4).
// CONTRACT FABRIC-F8  Isolation.  No peer that is dead, stopped, slow, or full makes an operation
//      on another peer fail, wait, or lose its place.
// CONTRACT FABRIC-F9  Two planes.  Cells and requests are delivered however many log bytes are
//      under way, and need no permission.
// CONTRACT FABRIC-F10  Whole cells. read_cell gives a value that was set, never a mix of two;
//      values of one cell are seen in the order they were set.
// CONTRACT FABRIC-F11  Requests arrive once, whole, in order per peer, and are not forged: `peer`
//      is the sender. They may be lost only with kPeerDown, or refused at once (send_request is
//      false).
// CONTRACT FABRIC-F12  Reads. read() shows at least all that the owner had taken in when it last
//      sent a request or set a cell, and every completed write of the reader's own under a live
//      key.  Bytes that are being written meanwhile may come mixed: callers check CRCs.  Reading
//      needs no permission.
// CONTRACT FABRIC-F13  Doorbells.  After prepare_to_sleep() returned true, a write, request or peer
//      event followed by the peer's ring_doorbell() makes event_fd() readable.  A bell for a
//      replica that is awake costs no system call.  Bells may be batched, repeated and spurious.
// CONTRACT FABRIC-F14  Survival.  Log memory, cells and live grants outlive the process where
//      memory outlives it (survived() tells); else everything is fresh and zero, and no old key
//      works.
//
// Threads: an object is used by one thread.  Processes: the owner and its peers.
// Errors of one peer are completions and events about that peer; they are never returned as the
// fabric's own error, and nothing here throws.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "consensus/core/access.h"
#include "consensus/core/peer_process.h"
#include "consensus/fabric/choices.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"

namespace crane::consensus {

// A small value read and written as a whole (FABRIC-F10).  What the words mean is the core's
// business.
inline constexpr std::uint8_t kCellsMax = 8;
struct CellValue {
  std::uint64_t words[kCellWords] = {};
  friend bool operator==(const CellValue&, const CellValue&) = default;
};

inline constexpr std::size_t kRequestBytesMax = 240;
inline constexpr std::size_t kReadBytesMax = 4U << 20;
// A write to a log memory needs room for so much behind it, too, up to the memory's end: what the
// owner itself appends there when there is no room for more (ROOM-2, driver/driver.h).
inline constexpr std::uint64_t kBackedBehind = 128U << 10;
inline constexpr std::uint64_t ahead(std::uint64_t offset, std::uint64_t bytes,
                                     std::uint64_t log_bytes) noexcept {
  return std::min(bytes + kBackedBehind, log_bytes - offset);
}

struct FabricEvent {
  enum class Kind : std::uint8_t {
    kCompletion,  // of `token`; `ok`; for reads, `data`
    kRequest,     // from `peer`: `data`
    kLanded,      // `peer` wrote into the log memory since the last kLanded: scan it
    kPeerUp,      // `peer`'s process is there (again): connect, read where it stands
    kPeerDown,    // `peer`'s process is gone
  };
  Kind kind{};
  ReplicaId peer{};
  bool ok = false;
  Token token{};
  std::span<const std::byte> data;  // valid until the next poll()
};

class Fabric {
 public:
  Fabric() = default;
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // --- own memory -------------------------------------------------------------------------------
  // The log memory: address and size never change.  The owner writes where it likes; peers' writes
  // appear in it only inside poll() and revoke_writes() (shm), or at any time (verbs).
  virtual std::span<std::byte> log_memory() noexcept = 0;
  // True when log memory, cells and grants are those of an earlier incarnation (FABRIC-F14).
  virtual bool survived() const noexcept = 0;
  // Publishes an own cell.  REQUIRES: cell < kCellsMax.
  virtual void set_cell(std::uint8_t cell, const CellValue& v) noexcept = 0;
  virtual CellValue own_cell(std::uint8_t cell) const noexcept = 0;

  // --- permissions on the own memory ------------------------------------------------------------
  // Lets `peer` write; its earlier key, if any, is revoked first.  Give the key to the peer in a
  // request (it is no secret, but useless to others).
  virtual Result<Key> permit_writes(ReplicaId peer) noexcept = 0;
  // FABRIC-F2.  Total: without a grant it does nothing.
  virtual void revoke_writes(ReplicaId peer) noexcept = 0;
  // The live key of `peer`, or kNoKey (also of an earlier incarnation, FABRIC-F14).
  virtual Key permitted(ReplicaId peer) const noexcept = 0;

  // --- a peer's memory: one-sided ---------------------------------------------------------------
  // Connects to `peer`'s log memory under `key`, after dropping an earlier connection.  The first
  // write under a new key connects by itself; open_log is for after a failure (FABRIC-F5).
  virtual void open_log(ReplicaId peer, Key key, Token token) noexcept = 0;
  // Drops the connection; what was not completed fails (C1: before asking for a newer view).
  virtual void close_log(ReplicaId peer) noexcept = 0;
  // Copies `bytes` to `offset` of `peer`'s log memory.  `bytes` may be reused once it completed
  // (with shm: on return).  Fails when the key is not live, or the peer lags by more than the
  // fabric holds for it.
  virtual void write(ReplicaId peer, Key key, std::uint64_t offset,
                     std::span<const std::byte> bytes, Token token) noexcept = 0;
  // REQUIRES: n <= kReadBytesMax; a range outside the log memory fails.
  virtual void read(ReplicaId peer, std::uint64_t offset, std::uint64_t n,
                    Token token) noexcept = 0;
  // `data` of the completion is one CellValue.
  virtual void read_cell(ReplicaId peer, std::uint8_t cell, Token token) noexcept = 0;

  // --- background plane -------------------------------------------------------------------------
  // False when `peer` is not connected, or has too many requests waiting.
  // REQUIRES: body.size() <= kRequestBytesMax.
  virtual bool send_request(ReplicaId peer, std::span<const std::byte> body) noexcept = 0;

  // --- events and sleep -------------------------------------------------------------------------
  // Takes in what arrived; returns the number of events put in `out` (0: nothing is left now).
  virtual std::size_t poll(std::span<FabricEvent> out) noexcept = 0;
  // Readable (level-triggered) when poll() has something to do after prepare_to_sleep().
  virtual int event_fd() const noexcept = 0;
  // Announces that the owner is about to wait on event_fd().  False when there is already something
  // to poll(): do that instead.
  virtual bool prepare_to_sleep() noexcept = 0;
  // Makes the own event_fd() readable until the next poll().
  virtual void wake_self() noexcept = 0;
  // Wakes `peer` if it sleeps and something was written or sent to it since its last bell.
  virtual void ring_doorbell(ReplicaId peer) noexcept = 0;
  // The live connection state of the background plane.
  virtual bool connected(ReplicaId peer) const noexcept = 0;
  // The network to a connected peer does not carry anything now, as far as can be seen, long before
  // FABRIC-F7 gives it up.  A hint for who has clients to send away; elections do not look at it.
  virtual bool quiet(ReplicaId peer) const noexcept {
    static_cast<void>(peer);
    return false;
  }
  // What can be seen of the peer's process (one host).  A hint for failure detection only; safety
  // never rests on it.
  virtual PeerProcess process_of(ReplicaId peer) const noexcept {
    static_cast<void>(peer);
    return PeerProcess::kUnknown;
  }
  virtual FabricStatus status() const { return {}; }
  // Work that may take long and is best done when idle: spare memory for the next grants.
  virtual void tidy() noexcept {}
  // The owner is about to write this range of its log memory: make the pages present.  A hint.
  virtual void populate(std::uint64_t offset, std::uint64_t bytes) noexcept {
    static_cast<void>(offset);
    static_cast<void>(bytes);
  }
  // Takes the memory of this range of the log memory from the machine, where it was not taken at
  // the start.  False: there is no room now; the owner must not touch the range (ROOM-1).
  virtual bool back(std::uint64_t offset, std::uint64_t bytes) noexcept {
    static_cast<void>(offset);
    static_cast<void>(bytes);
    return true;
  }
  // The same where this replica would write an entry of that range: at its connected peers, and on
  // the way there, as far as that is this machine's memory.  A write for which that was not asked
  // may fail for want of room.
  virtual bool back_peers(std::uint64_t offset, std::uint64_t bytes) noexcept {
    static_cast<void>(offset);
    static_cast<void>(bytes);
    return true;
  }
  // The whole log memory is zero from now on.
  virtual void clear_log() noexcept {
    const auto log = log_memory();
    std::fill(log.begin(), log.end(), std::byte{0});
  }
};

}  // namespace crane::consensus
