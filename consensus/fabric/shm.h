// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fabric of replicas on one host: files on tmpfs, mapped; no network, no lock, no thread.
//
// How each guarantee of fabric.h is met:
//   F1-F3, F5, F6  shm_write_queue.h: a grant is a fresh segment, a queue of whole writes.  A few
//                  spare segments are kept ready (tidy()).  Keys count up from a random start and
//                  are persistent.
//   F4             every operation finishes within its call; its completion waits for poll().
//   F7             a pidfd per peer, in the epoll set of event_fd(), and shm_life.h for an earlier
//                  hint.  The peer's start time, from /proc, distinguishes it from a later process
//                  with the same number.  A peer that starts writes its incarnation into every
//                  other replica's `hello` and rings.
//   F8, F9         one mailbox per sender, one write queue per grant: peers share nothing.
//   F10            two copies and a version per cell: the owner may die at any instruction.
//   F13            a flag in the owner's control segment shows whether it sleeps; only then a peer
//                  writes to its FIFO.  Full fences on both sides order the flag and the queues.
//   F14            the files remain when a process dies.  The next incarnation maps them again,
//                  takes in what is published, and finishes an interrupted revoke.
//
// The log memory is sparse: it costs what was written, at most its size.  A write queue is larger
// than the log memory, so that the core's bound on a straggler (C4) is reached first.  Before a
// write completes, its writer has allocated the queue's pages and the log pages that the owner will
// copy them to.  If /dev/shm is full, the write fails (FABRIC-F5), and the owner never touches a
// page that cannot be allocated (ROOM-1).
//
// Threads: one.  Processes: the owner of each replica's directory is the process that holds its
// lock.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consensus/fabric/shm_layout.h"
#include "consensus/fabric/shm_life.h"
#include "consensus/fabric/shm_write_queue.h"
#include "consensus/fabric/tmpfs_fabric.h"

namespace crane::consensus {

struct ShmOptions : FabricOptions {
  std::uint64_t write_queue_bytes = 0;  // 0: from log_bytes
  std::uint8_t spares = 2;              // write queue segments kept ready
  std::shared_ptr<Urgency> urgency{};   // gets begin() at a peer's death, if not null
};

class ShmFabric final : public TmpfsFabric {
 public:
  // kBusy: another process runs as this replica. kDamaged, kSystem: the directory cannot be used.
  static Result<std::unique_ptr<ShmFabric>> open(const ShmOptions& options);
  ~ShmFabric() override;

  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override;
  CellValue own_cell(std::uint8_t cell) const noexcept override;

  Result<Key> permit_writes(ReplicaId peer) noexcept override;
  void revoke_writes(ReplicaId peer) noexcept override;
  Key permitted(ReplicaId peer) const noexcept override;

  void open_log(ReplicaId peer, Key key, Token token) noexcept override;
  void close_log(ReplicaId peer) noexcept override;
  void write(ReplicaId peer, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
             Token token) noexcept override;
  void read(ReplicaId peer, std::uint64_t offset, std::uint64_t n, Token token) noexcept override;
  void read_cell(ReplicaId peer, std::uint8_t cell, Token token) noexcept override;

  bool send_request(ReplicaId peer, std::span<const std::byte> body) noexcept override;

  std::size_t poll(std::span<FabricEvent> out) noexcept override;
  bool prepare_to_sleep() noexcept override;
  void wake_self() noexcept override;
  void ring_doorbell(ReplicaId peer) noexcept override;
  bool connected(ReplicaId id) const noexcept override { return peer(id).incarnation != 0; }
  PeerProcess process_of(ReplicaId peer) const noexcept override;
  void tidy() noexcept override;
  void populate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    log_.populate(offset, bytes);
  }
  bool back(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    return log_.back(offset, bytes);
  }
  bool back_peers(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  void clear_log() noexcept override { log_.clear(); }

  // The write queue to `peer`, for tests that stop in the middle of a copy.
  shm::WriteQueueWriter* test_only_writer(ReplicaId peer, Key key) noexcept;

 private:
  struct Peer {
    shm::Region control;
    shm::Region log;
    int bell = -1;
    int pidfd = -1;
    shm::LifeWatch life;            // readable earlier than the pidfd, in small groups
    std::uint64_t incarnation = 0;  // of the attached process; 0: none
    std::uint64_t refused = 0;      // incarnation that could not be attached; it is not tried again
    bool dirty = false;             // something was published since the last bell
    std::optional<shm::WriteQueueWriter> writer;
    Key failed_key{};                           // FABRIC-F5: writes under it fail until open_log
    std::optional<shm::WriteQueueOwner> grant;  // the peer's permission on our memory

    shm::Control* header() const noexcept { return control.as<shm::Control>(); }
  };

  explicit ShmFabric(const ShmOptions& options);
  Outcome open_own();
  Outcome resume_grants();
  Outcome announce();

  bool attach(ReplicaId id);
  bool attach_process(Peer& p, ReplicaId id, pid_t pid, std::uint64_t pid_start);
  void detach(ReplicaId id) noexcept;
  void look_for_peers();
  void take_system_events();
  void take_in_mail(std::span<FabricEvent> out, std::size_t& n) noexcept;
  void take_in_writes(std::span<FabricEvent> out, std::size_t& n) noexcept;
  void take_completions(std::span<FabricEvent> out, std::size_t& n) noexcept;
  void complete(ReplicaId peer, Token token, bool ok) noexcept;
  bool connect_writer(Peer& p, ReplicaId id, Key key) noexcept;
  bool something_waits() const noexcept;
  Outcome add_spare();

  Peer& peer(ReplicaId id) noexcept { return peer_at(peers_, id); }
  const Peer& peer(ReplicaId id) const noexcept { return peer_at(peers_, id); }
  shm::Control* own() const noexcept { return control_.as<shm::Control>(); }
  static shm::Mailbox* mailbox(const shm::Region& control, ReplicaId from) noexcept;

  ShmOptions options_;
  shm::LifeLine life_;
  int bell_fd_ = -1;
  bool slept_ = true;  // prepare_to_sleep() succeeded since the last look at the epoll set
  std::uint32_t polls_ = 0;
  std::vector<Peer> peers_;
  std::vector<shm::WriteQueueOwner> spares_;
  std::vector<shm::WriteQueueOwner> retired_;  // revoked; tidy() unmaps them
  // Completions and peer events, oldest first, from next_ on.
  std::vector<FabricEvent> waiting_;
  std::size_t next_waiting_ = 0;
  std::deque<std::vector<std::byte>> read_data_;                  // data of waiting reads, in order
  std::vector<std::vector<std::byte>> handed_;                    // data of the last poll()'s reads
  std::array<std::array<std::byte, kRequestBytesMax>, 32> mail_;  // requests of the last poll()
};

}  // namespace crane::consensus
