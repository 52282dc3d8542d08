// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the protocol core on a fabric in a real process: the only code between the two.
//
// The idea: the driver steps the core with the fabric's events, and carries out its actions in the
// order given, all of them before the next step (CORE-S1); completions wait in the fabric
// meanwhile. Callbacks come between steps, never inside a list of actions, so that they may
// propose.
//
// In disk mode a separate thread owns the store (store_thread.h); its answers are events like the
// fabric's, and event_fd() is readable for both.
//
// A fabric that allocates log memory only as the log grows may find no memory left (ROOM-1).  Then
// propose() returns kBusy, and its owner retries.  A candidate or follower that would read entries
// into its ring gets a failed read, as from a peer that does not answer.
//   INVARIANT ROOM-2  After the end of the log kBackedBehind bytes are allocated, unless there was
//                 no room for them at the start; entries that the core appends unasked (the first
//                 entry of a reign, a change of members) are smaller.
//
// Threads: one.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/core/replica.h"
#include "consensus/core/step.h"
#include "consensus/driver/bell_clock.h"
#include "consensus/driver/store_side.h"
#include "consensus/fabric/fabric.h"
#include "consensus/fabric/urgency.h"

namespace crane::consensus {

class Driver final : public Consensus {
 public:
  // `start` describes the state of the fabric's memory (C5).  `store`: in disk mode; then event_fd
  // is an epoll of the fabric's and the store's descriptors, owned by the driver.
  Driver(Options options, const core::Config& config, std::unique_ptr<Fabric> fabric,
         const core::Start& start, std::unique_ptr<StoreSide> store = nullptr, int event_fd = -1);
  ~Driver() override;

  // The start failed: the ring does not hold the entries after the checkpoint.
  bool checkpoint_too_old() const noexcept { return core_.checkpoint_too_old(); }
  // Watches the thread that calls poll() while this object lives.
  void be_urgent(std::shared_ptr<Urgency> urgency) noexcept;

  Result<Index> propose(std::uint8_t type, std::uint64_t stamp_ns, std::uint32_t grant,
                        std::span<const std::byte> payload) override;
  std::uint64_t poll(std::uint64_t now_ns) override;
  int event_fd() const noexcept override {
    return event_fd_ >= 0 ? event_fd_ : fabric_->event_fd();
  }
  void flush_doorbells() override;
  void abdicate(const char* reason, std::optional<ReplicaId> successor) override;
  void fit() override;
  void lags(std::uint64_t ns, Index ran) override;
  void keep_log(const LogPlace* from) override;
  void checkpointed(Index at) override;
  Result<LogCopy> copy_log(const LogCopyRequest& request) override;
  Result<Index> change_members(const MemberChange& change) override;
  Outcome transfer(ReplicaId to) override;
  bool keeps_leading() const noexcept override { return core_.keeps_leading(); }
  std::vector<MemberStatus> members() const override;
  bool send_message(ReplicaId to, std::span<const std::byte> bytes) override;
  Index peer_applied(ReplicaId peer) const override;
  GroupStatus status() const override;
  QuorumStatus quorum() const override;
  bool low_on_room() const noexcept override;
  bool out_of_room() const noexcept override;
  std::vector<std::byte> group_facts() const override;
  std::uint64_t backlog() const override;
  std::size_t payload_bytes_max() const noexcept override {
    return core_.config().payload_bytes_max;
  }

 private:
  core::Now now() noexcept;
  void advance_clock(std::uint64_t now_ns) noexcept;
  void step(const core::Event& event);
  void carry_out();
  bool take_events();
  bool take_fabric_events();
  void take_own_events();
  void pump();
  bool has_callbacks() const noexcept;
  void run_callbacks();
  void deliver();
  void populate_ahead();
  bool back(std::uint64_t pos, std::uint64_t bytes) noexcept;
  bool back_all(std::uint64_t pos, std::uint64_t bytes) noexcept;
  bool has_room(std::uint64_t bytes) noexcept;
  void look_at_disk();
  void ring_all();
  std::uint64_t deadline() noexcept;
  bool leads() const noexcept { return core_.role() == Role::kLeader; }
  bool take_stored();
  bool replaying() const noexcept { return store_ && store_->replaying(); }
  void hand_out(const EntryView& entry);
  void on_fabric_event(const FabricEvent& e);
  PeerProcess still_leader(const FabricEvent& e) noexcept;

  void carry_out(const core::WriteLog& a);
  void carry_out(const core::ReadLog& a);
  void carry_out(const core::ReadCell& a);
  void carry_out(const core::CloseLog& a);
  void carry_out(const core::SetCell& a);
  void carry_out(const core::SendMessage& a);
  void carry_out(const core::PermitWrites& a);
  void carry_out(const core::RevokeWrites& a);
  void carry_out(const core::Committed& a);
  void carry_out(const core::RoleChange& a);
  void carry_out(const core::MembersChange& a);
  void carry_out(const core::Fatal& a);
  void carry_out(const core::StorePromise& a);
  void carry_out(const core::StoreEntries& a);
  void carry_out(const core::FetchEntries& a);
  void carry_out(const core::DropStored& a);

  Options options_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<StoreSide> store_;
  std::shared_ptr<Urgency> urgency_;
  const int event_fd_;
  std::uint64_t heartbeat_seen_ = 0;  // heartbeat last read from the leader
  core::Replica core_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t random_;
  bool members_changed_ = false;     // the owner has not been called yet
  std::uint64_t populated_pos_ = 0;  // log bytes below it are present in memory
  std::uint64_t populate_end_ = 0;   // one lap after the start: from here on all pages are present
  bool short_of_memory_ = false;     // the ring could not grow at the last attempt,
  std::uint64_t refused_bytes_ = 0;  // for an entry of this size
  bool pumping_ = false;             // a callback is running: its propose() leaves the rest to us
  bool urgent_ = false;              // a message was sent since the last bell
  std::uint64_t reported_deadline_ns_ = 0;
  BellClock bells_;
  Index sent_commit_{};  // commit index that all followers got in entries or the last Flush
  const char* fatal_ = nullptr;
  bool fatal_reported_ = false;
  core::ActionList actions_;
  std::array<FabricEvent, 64> events_;   // of one poll of the fabric
  std::size_t events_taken_ = 0;         // number of valid events_
  std::size_t next_event_ = 0;           // the next one to step
  std::vector<core::RoleChange> roles_;  // not yet reported to the owner, oldest first
  std::vector<core::Event> own_events_;  // answers to permit and revoke
  struct OutOfBand {
    ReplicaId from;
    std::vector<std::byte> bytes;
  };
  std::vector<OutOfBand> out_of_band_;  // not yet passed to the owner
};

}  // namespace crane::consensus
