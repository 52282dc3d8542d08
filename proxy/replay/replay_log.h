// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recorded history in place of the group: the node follows it as it would follow a leader, and
// gets entries as fast as its server takes them.
//
// Threads: one.
// INVARIANT REPLAY-1  The history's entries after `behind` up to `to` are delivered in order, each
//               once (LOG-K1 of consensus.h).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "consensus/consensus.h"
#include "proxy/record/history_follow.h"
#include "proxy/record/history_record.h"

namespace crane::node {

class ReplayLog final : public consensus::Consensus {
 public:
  class Gate {
   public:
    // Whether the next entry may be delivered.  If false, called again after a millisecond.
    virtual bool opens() const = 0;

   protected:
    ~Gate() = default;
  };
  struct Options {
    // Exactly one is set; it must outlive the log.
    const proxy::History* history = nullptr;
    proxy::HistoryFollower* follower = nullptr;
    Index behind{};  // begins after this entry
    Index to{};      // the last entry to deliver
    std::uint8_t replicas = 1;
    const Gate* gate = nullptr;
    consensus::Callbacks callbacks;
  };
  explicit ReplayLog(Options options);
  ~ReplayLog() override;
  ReplayLog(const ReplayLog&) = delete;
  ReplayLog& operator=(const ReplayLog&) = delete;

  bool at_end() const noexcept {
    return options_.follower != nullptr ? options_.follower->ended() : next_ > value(options_.to);
  }
  // The last delivered entry for the server; entries of consensus do not count.
  Index last_for_server() const noexcept { return last_for_server_; }
  Index handed_out() const noexcept { return Index{next_ - 1}; }

  Result<Index> propose(std::uint8_t type, std::uint64_t stamp_ns, std::uint32_t grant,
                        std::span<const std::byte> payload) override;
  std::uint64_t poll(std::uint64_t now_ns) override;
  int event_fd() const noexcept override { return event_; }
  void flush_doorbells() override {}
  void abdicate(const char*, std::optional<ReplicaId>) override {}
  void fit() override {}
  void lags(std::uint64_t, Index) override {}
  void keep_log(const consensus::LogPlace*) override {}
  void checkpointed(Index) override {}
  Result<Index> change_members(const consensus::MemberChange& change) override;
  Outcome transfer(ReplicaId to) override;
  bool keeps_leading() const noexcept override { return true; }
  std::vector<consensus::MemberStatus> members() const override;
  bool send_message(ReplicaId, std::span<const std::byte>) override { return false; }
  Index peer_applied(ReplicaId) const override { return Index{0}; }
  consensus::GroupStatus status() const override;
  consensus::QuorumStatus quorum() const override { return {1, 1, true}; }
  std::vector<std::byte> group_facts() const override { return {}; }
  std::uint64_t backlog() const override { return 0; }
  std::size_t payload_bytes_max() const noexcept override { return 0; }

 private:
  std::optional<consensus::EntryView> next_entry();

  const Options options_;
  std::uint64_t next_;
  View view_{};
  Index last_for_server_{};
  std::uint64_t last_entry_ns_ = 0;  // time of the last entry
  int event_ = -1;                   // never readable: there is no other replica
};

}  // namespace crane::node
