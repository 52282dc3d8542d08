// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bootstrap connections of the verbs fabric over secure links (TLS 1.3 with the group's
// secret).  Of two replicas the one with the higher number dials until it is connected.  A replica
// that starts knocks at the replicas with higher numbers, so that they dial at once.  A knock is a
// link of a separate plane, closed as soon as it is open.
//
// Threads: one.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/fabric/secure_link.h"
#include "consensus/fabric/verbs_bootstrap.h"
#include "dmt/base/result.h"

namespace crane::consensus::verbs {

struct LinksOptions {
  ReplicaId self{};
  std::vector<Endpoint> endpoints;  // one per replica; this replica's: where to listen
  GroupSecret secret{};             // not all zeros
  unsigned user_timeout_ms = 3000;  // how long the network may keep bytes unacknowledged
  TakeVisitor take_visitor;
};

class Links final : public Bootstrap {
 public:
  static Result<std::unique_ptr<Links>> open(const LinksOptions& options);
  ~Links() override;

  bool next(Event& out) override;
  bool send(ReplicaId peer, std::span<const std::byte> frame) override;
  void reset(ReplicaId peer) override;
  int event_fd() const noexcept override { return epoll_fd_; }

 private:
  struct Arrived {
    Event::Kind kind{};
    ReplicaId peer{};
    std::vector<std::byte> data;
  };
  explicit Links(const LinksOptions& options) : options_(options) {}
  Outcome start();
  void watch(SecureLink& link, bool fresh);
  void dial(ReplicaId peer, std::uint8_t plane);
  void dial_missing();
  void accept_all();
  void continue_handshake(std::unique_ptr<SecureLink>& link);
  void on_open(std::unique_ptr<SecureLink>& link);
  void read_from(ReplicaId peer);
  void drop(ReplicaId peer);
  void listen(bool on);
  void set_timer();
  bool dials(ReplicaId peer) const noexcept { return value(peer) < value(options_.self); }

  LinksOptions options_;
  std::vector<SocketAddress> addresses_;
  std::unique_ptr<LinkContext> context_;
  int listen_fd_ = -1, epoll_fd_ = -1, timer_fd_ = -1;
  bool timer_on_ = false;
  bool listens_ = true;
  std::vector<std::unique_ptr<SecureLink>> open_;  // by peer
  std::vector<std::uint64_t> opened_ns_;
  std::vector<std::unique_ptr<SecureLink>> dialing_;  // by peer: dialled, not open yet
  std::vector<std::unique_ptr<SecureLink>> knocking_;
  std::vector<std::unique_ptr<SecureLink>> accepted_;  // not open yet
  std::deque<Arrived> arrived_;
  Arrived handed_;
};

}  // namespace crane::consensus::verbs
