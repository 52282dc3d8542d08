// SPDX-License-Identifier: Apache-2.0
#pragma once
// One-sided memory access between the replicas of a group: the contract that `shm`, `sim`, `tcp`
// and `verbs` all keep.  One conformance suite (tests/fabric) checks each of them.
//
// The idea (DESIGN 6, Mu 2 and 4): every replica owns a LOG MEMORY (the ring, followed by the cells
// that the core places there).  One peer at a time may write it, without work for the owner's
// processor.  A BACKGROUND plane carries small things that never wait for log bytes: cells, which
// only their owner writes and all replicas read (promise, heartbeat counter, status), and short
// requests between peers (request a permission, acknowledge a grant).
//
// GUARANTEES.  Each is a test case of that name in tests/fabric/conformance*_test.cc.
//
// CONTRACT FABRIC-F1  Order.  Writes to one peer under one key land whole, in the order of the
//      calls.
// CONTRACT FABRIC-F2  Fence.  After revoke_writes(p) has returned, no byte of any write made under
//      p's old key becomes visible in the log memory, whatever the writer does: stopped in the
//      middle of a copy and continued later, retried, or killed. revoke_writes never waits for the
//      writer.
// CONTRACT FABRIC-F3  No loss.  A write that completed with `ok` is visible to the owner after the
//      owner's next poll() or revoke_writes(), whichever is first.  This also holds if the owner
//      was stopped, or was killed and started again on memory that survived (C5), or if the writer
//      died right after.
// CONTRACT FABRIC-F4  One completion.  Every write, read, read_cell and open_log gives exactly one
//      completion, also to a dead peer.  Completions to one peer come in the order of the calls.
// CONTRACT FABRIC-F5  Stickiness.  After a failed write, every later write under the same key to
//      that peer fails, until open_log() makes a new connection: there are no gaps among completed
//      writes (U5).
// CONTRACT FABRIC-F6  Fresh keys.  permit_writes returns a key that neither this nor any earlier
//      incarnation has returned.  A key works only for the peer it was made for, and never again
//      once revoked (U6).  Nothing slow (registration, allocation) is on the path of a grant.
// CONTRACT FABRIC-F7  Failure.  The death of a peer's process gives kPeerDown at once, without a
//      time-out; its (re)start gives kPeerUp.  While it is dead, its memory may or may not be
//      reachable: operations complete either way (FABRIC-F4).
// CONTRACT FABRIC-F8  Isolation.  A peer that is dead, stopped, slow or full never makes an
//      operation on another peer fail, wait or lose its place.
// CONTRACT FABRIC-F9  Two planes.  Cells and requests are delivered however many log bytes are
//      under way, and need no permission.
// CONTRACT FABRIC-F10  Whole cells.  read_cell returns a value that was set, never a mix of two.  A
//      reader sees the values of one cell in the order they were set.
// CONTRACT FABRIC-F11  Requests arrive once, whole, in order per peer, and cannot be forged: `peer`
//      is the sender.  A request is lost only with a kPeerDown, or refused at once (send_request
//      returns false).
// CONTRACT FABRIC-F12  Reads.  read() returns at least all that the owner had taken in when it last
//      sent a request or set a cell, and every completed write of the reader under a live key.
//      Bytes that are being written meanwhile may be mixed: callers check CRCs.  Reading needs no
//      permission.
// CONTRACT FABRIC-F13  Doorbells.  After prepare_to_sleep() returned true, a write, request or peer
//      event followed by the peer's ring_doorbell() makes event_fd() readable.  A bell for a
//      replica that is awake costs no system call.  Bells may be batched, repeated and spurious.
// CONTRACT FABRIC-F14  Survival.  Log memory, cells and live grants outlive the process where
//      memory outlives it (survived() returns true); else everything is fresh and zero, and no old
//      key works.
//
// Threads: an object is used by one thread.  Processes: the owner and its peers.
// Errors of one peer are completions and events about that peer.  They are never returned as the
// fabric's own error.  Nothing in this interface throws.

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

// A small value, read and written as a whole (FABRIC-F10). Only the core knows what the words mean.
inline constexpr std::uint8_t kCellsMax = 8;
struct CellValue {
  std::uint64_t words[kCellWords] = {};
  friend bool operator==(const CellValue&, const CellValue&) = default;
};

inline constexpr std::size_t kRequestBytesMax = 240;
inline constexpr std::size_t kReadBytesMax = 4U << 20;
// A write to a log memory also needs room for this many bytes after it, up to the memory's end. The
// owner appends there itself when there is no room for more (ROOM-2, consensus/driver/driver.h).
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
    kPeerUp,      // `peer`'s process runs (again): connect, and read its position
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
  // The log memory: address and size never change.  The owner writes anywhere; peers' writes appear
  // in it only inside poll() and revoke_writes() (shm), or at any time (verbs).
  virtual std::span<std::byte> log_memory() noexcept = 0;
  // True when log memory, cells and grants come from an earlier incarnation (FABRIC-F14).
  virtual bool survived() const noexcept = 0;
  // Publishes a cell of this replica.  REQUIRES: cell < kCellsMax.
  virtual void set_cell(std::uint8_t cell, const CellValue& v) noexcept = 0;
  virtual CellValue own_cell(std::uint8_t cell) const noexcept = 0;

  // --- permissions on the own memory ------------------------------------------------------------
  // Lets `peer` write; its earlier key, if any, is revoked first.  Send the key to the peer in a
  // request (it is not secret: other peers cannot use it).
  virtual Result<Key> permit_writes(ReplicaId peer) noexcept = 0;
  // FABRIC-F2.  Without a grant it does nothing.
  virtual void revoke_writes(ReplicaId peer) noexcept = 0;
  // The live key of `peer`, also from an earlier incarnation (FABRIC-F14), or kNoKey.
  virtual Key permitted(ReplicaId peer) const noexcept = 0;

  // --- a peer's memory: one-sided ---------------------------------------------------------------
  // Connects to `peer`'s log memory under `key`, after dropping an earlier connection.  The first
  // write under a new key connects, too; open_log is needed after a failure (FABRIC-F5).
  virtual void open_log(ReplicaId peer, Key key, Token token) noexcept = 0;
  // Drops the connection; operations that have not completed fail (C1: before requesting a newer
  // view).
  virtual void close_log(ReplicaId peer) noexcept = 0;
  // Copies `bytes` to `offset` of `peer`'s log memory.  `bytes` may be reused once the write has
  // completed (with shm: on return).  Fails when the key is not live, or the peer lags by more than
  // the fabric holds for it.
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
  // Processes what arrived; returns the number of events put in `out` (0: nothing is left now).
  virtual std::size_t poll(std::span<FabricEvent> out) noexcept = 0;
  // Readable (level-triggered) when poll() has something to do after prepare_to_sleep().
  virtual int event_fd() const noexcept = 0;
  // Announces that the owner is about to wait on event_fd().  False: call poll() instead, there is
  // already something to process.
  virtual bool prepare_to_sleep() noexcept = 0;
  // Makes this replica's event_fd() readable until the next poll().
  virtual void wake_self() noexcept = 0;
  // Wakes `peer` if it sleeps and this replica wrote or sent something to it since its last bell.
  virtual void ring_doorbell(ReplicaId peer) noexcept = 0;
  // Whether the background plane to `peer` is connected now.
  virtual bool connected(ReplicaId peer) const noexcept = 0;
  // True when the network to a connected peer seems to carry nothing now, long before FABRIC-F7
  // gives the peer up.  A hint for a node that has clients to send away; elections do not use it.
  virtual bool quiet(ReplicaId peer) const noexcept {
    static_cast<void>(peer);
    return false;
  }
  // The visible state of the peer's process (one host).  A hint for failure detection; safety never
  // depends on it.
  virtual PeerProcess process_of(ReplicaId peer) const noexcept {
    static_cast<void>(peer);
    return PeerProcess::kUnknown;
  }
  virtual FabricStatus status() const { return {}; }
  // Slow work that is best done when idle: spare memory for the next grants.
  virtual void tidy() noexcept {}
  // The owner is about to write this range of its log memory: make the pages present.  A hint.
  virtual void populate(std::uint64_t offset, std::uint64_t bytes) noexcept {
    static_cast<void>(offset);
    static_cast<void>(bytes);
  }
  // Allocates the memory of this range of the log memory, where that was not done at the start.
  // False: there is no room now, and the owner must not touch the range (ROOM-1).
  virtual bool back(std::uint64_t offset, std::uint64_t bytes) noexcept {
    static_cast<void>(offset);
    static_cast<void>(bytes);
    return true;
  }
  // Allocates the memory that a write to that range needs elsewhere: at the connected peers and in
  // the queues to them, where that is this machine's memory. Without this call a write may fail for
  // lack of room.
  virtual bool back_peers(std::uint64_t offset, std::uint64_t bytes) noexcept {
    static_cast<void>(offset);
    static_cast<void>(bytes);
    return true;
  }
  // Makes the whole log memory zero.
  virtual void clear_log() noexcept {
    const auto log = log_memory();
    std::fill(log.begin(), log.end(), std::byte{0});
  }
};

}  // namespace crane::consensus
