// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fake group: the test sets its members, and requests to it are recorded.

#include <string>
#include <vector>

#include "consensus/consensus.h"

namespace crane::node::test {

class FakeConsensus : public consensus::Consensus {
 public:
  std::vector<consensus::MemberStatus> present;
  std::vector<std::string> asked;
  Error next_error{};  // of the next change or transfer; kOk: it succeeds

  // Replicas 0 .. count - 1 vote and are connected.
  explicit FakeConsensus(std::uint8_t count = 3) {
    for (std::uint8_t i = 0; i < count; ++i) {
      consensus::MemberStatus m{};
      m.id = ReplicaId{i};
      m.role = consensus::MemberRole::kVoter;
      m.connected = m.streaming = true;
      present.push_back(m);
    }
  }

  Result<Index> propose(std::uint8_t, std::uint64_t, std::uint32_t,
                        std::span<const std::byte>) override {
    return Index{++last_};
  }
  std::uint64_t poll(std::uint64_t) override { return ~std::uint64_t{0}; }
  int event_fd() const noexcept override { return -1; }
  void flush_doorbells() override {}
  void abdicate(const char* reason, std::optional<ReplicaId>) override {
    asked.push_back("abdicate: " + std::string(reason));
  }
  void fit() override { asked.emplace_back("fit"); }
  void lags(std::uint64_t, Index) override {}
  void keep_log(const consensus::LogPlace*) override {}
  void checkpointed(Index at) override {
    asked.push_back("checkpointed " + std::to_string(value(at)));
  }
  Result<consensus::LogCopy> copy_log(const consensus::LogCopyRequest& request) override {
    if (next_error.code != Code::kOk) return std::exchange(next_error, {});
    asked.push_back("copy " + std::to_string(value(request.behind.at.view)) + " " +
                    std::to_string(value(request.behind.at.index)) + " " +
                    std::to_string(request.behind.pos) + " " +
                    std::to_string(value(request.through)) + " " + request.path);
    return consensus::LogCopy{asked.size() > 1, Index{12}};
  }
  Result<Index> change_members(const consensus::MemberChange& change) override {
    if (next_error.code != Code::kOk) return std::exchange(next_error, {});
    asked.push_back("change " + std::to_string(static_cast<int>(change.kind)) + " " +
                    std::to_string(value(change.id)));
    return Index{++last_};
  }
  bool keeps_leading() const noexcept override { return true; }
  Outcome transfer(ReplicaId to) override {
    if (next_error.code != Code::kOk) return std::exchange(next_error, {});
    asked.push_back("transfer " + std::to_string(value(to)));
    return Done{};
  }
  std::vector<consensus::MemberStatus> members() const override { return present; }
  bool send_message(ReplicaId, std::span<const std::byte>) override { return true; }
  Index peer_applied(ReplicaId) const override { return Index{0}; }
  consensus::GroupStatus status() const override {
    consensus::GroupStatus s;
    s.last = s.committed = Index{last_};
    s.members = present;
    return s;
  }
  consensus::QuorumStatus quorum() const override { return {3, 3, true}; }
  std::vector<std::byte> group_facts() const override { return {}; }
  std::uint64_t backlog() const override { return 0; }
  std::size_t payload_bytes_max() const noexcept override { return 0; }

 private:
  std::uint64_t last_ = 0;
};

}  // namespace crane::node::test
