// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fabric for tests in which several replicas are objects of one thread, although their fabrics
// need the owner's process.  A fabric that waits also polls the others of this process, and keeps
// their events for their owners.  Other processes of the group must poll their own fabrics.
//
// Threads: none.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tests/fabric/harness.h"

namespace crane::test {

template <typename Inner>
class KeepingFabric : public Fabric {
 public:
  using Members = std::vector<KeepingFabric*>;

  KeepingFabric(std::shared_ptr<Members> members, std::unique_ptr<Inner> inner, ReplicaId self)
      : inner_(std::move(inner)), members_(std::move(members)), self_(self) {
    members_->push_back(this);
  }
  ~KeepingFabric() override { std::erase(*members_, this); }

  std::span<std::byte> log_memory() noexcept override { return inner_->log_memory(); }
  bool survived() const noexcept override { return inner_->survived(); }
  void set_cell(std::uint8_t cell, const consensus::CellValue& v) noexcept override {
    inner_->set_cell(cell, v);
  }
  consensus::CellValue own_cell(std::uint8_t cell) const noexcept override {
    return inner_->own_cell(cell);
  }
  Result<Key> permit_writes(ReplicaId peer) noexcept override {
    return inner_->permit_writes(peer);
  }
  void revoke_writes(ReplicaId peer) noexcept override { inner_->revoke_writes(peer); }
  Key permitted(ReplicaId peer) const noexcept override { return inner_->permitted(peer); }
  void open_log(ReplicaId peer, Key key, Token token) noexcept override {
    inner_->open_log(peer, key, token);
  }
  void close_log(ReplicaId peer) noexcept override { inner_->close_log(peer); }
  void write(ReplicaId peer, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
             Token token) noexcept override {
    inner_->write(peer, key, offset, bytes, token);
  }
  void read(ReplicaId peer, std::uint64_t offset, std::uint64_t n, Token token) noexcept override {
    inner_->read(peer, offset, n, token);
  }
  void read_cell(ReplicaId peer, std::uint8_t cell, Token token) noexcept override {
    inner_->read_cell(peer, cell, token);
  }
  bool send_request(ReplicaId peer, std::span<const std::byte> body) noexcept override {
    if (!inner_->send_request(peer, body)) return false;
    for (KeepingFabric* const m : *members_) {
      if (m->self_ == peer && m->process_ == ::getpid()) ++m->expected_;
    }
    return true;
  }
  std::size_t poll(std::span<FabricEvent> out) noexcept override {
    asleep_ = false;
    handed_.clear();
    if (kept_.empty()) settle();
    std::size_t n = 0;
    while (n < out.size() && !kept_.empty()) {
      handed_.push_back(std::move(kept_.front()));
      kept_.pop_front();
      const Seen& s = handed_.back();
      out[n++] = {s.kind, s.peer, s.ok, s.token, s.data};
    }
    return n;
  }
  int event_fd() const noexcept override { return inner_->event_fd(); }
  bool prepare_to_sleep() noexcept override { return kept_.empty() && inner_->prepare_to_sleep(); }
  void wake_self() noexcept override { inner_->wake_self(); }
  void ring_doorbell(ReplicaId peer) noexcept override { inner_->ring_doorbell(peer); }
  bool connected(ReplicaId peer) const noexcept override { return inner_->connected(peer); }
  void tidy() noexcept override { inner_->tidy(); }

  // Only its owner polls it.
  void hold(bool held) noexcept { held_ = held; }
  // Waits until this fabric is connected with all fabrics of this process that are not held.
  void meet_all() {
    REQUIRE(until([&] {
      serve();
      return std::all_of(members_->begin(), members_->end(), [&](const KeepingFabric* m) {
        return m == this || !m->takes_part() ||
               (inner_->connected(m->self_) && m->connected(self_));
      });
    }));
  }

 protected:
  // Waits until its own operations are complete, and the requests sent to it have arrived.
  virtual void settle() = 0;
  bool settled() const noexcept { return inner_->test_only_outstanding() == 0 && expected_ == 0; }
  void require(const std::function<bool()>& done) {
    constexpr int kSettleMs = 30'000;
    if (until(done, kSettleMs)) return;
    ::dprintf(2, "fabric test: operations did not complete\n");
    std::abort();
  }
  void absorb() {
    FabricEvent events[16];
    while (const std::size_t n = inner_->poll(events)) {
      for (std::size_t i = 0; i < n; ++i) {
        const FabricEvent& e = events[i];
        if (e.kind == Kind::kRequest && expected_ > 0) --expected_;
        if (e.kind == Kind::kPeerDown) expected_ = 0;
        kept_.push_back({e.kind, e.peer, e.ok, e.token, {e.data.begin(), e.data.end()}});
      }
    }
  }
  void serve_others() {
    for (KeepingFabric* const m : *members_) {
      if (m != this && m->takes_part() && !m->asleep_) m->absorb();
    }
  }
  void serve() {
    serve_others();
    absorb();
  }
  bool alone() const noexcept { return members_->size() == 1; }

  std::unique_ptr<Inner> inner_;
  bool asleep_ = false;  // the others do not poll it
  std::deque<Seen> kept_;

 private:
  bool takes_part() const noexcept { return !held_ && process_ == ::getpid(); }

  std::shared_ptr<Members> members_;
  ReplicaId self_;
  pid_t process_ = ::getpid();
  bool held_ = false;
  std::size_t expected_ = 0;  // requests on their way from fabrics of this process
  std::deque<Seen> handed_;
};

}  // namespace crane::test
