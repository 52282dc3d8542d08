// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/tcp_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>

namespace crane::test {

using consensus::CellValue;

namespace {

constexpr int kSettleMs = 30'000;
constexpr Token kHalf{~std::uint64_t{0}};

}  // namespace

class PumpedFabric final : public Fabric {
 public:
  PumpedFabric(std::shared_ptr<Members> members, std::unique_ptr<consensus::TcpFabric> inner,
               ReplicaId self, std::uint8_t replicas)
      : members_(std::move(members)), inner_(std::move(inner)), self_(self), met_(replicas) {
    members_->push_back(this);
  }
  ~PumpedFabric() override { std::erase(*members_, this); }

  std::span<std::byte> log_memory() noexcept override { return inner_->log_memory(); }
  bool survived() const noexcept override { return inner_->survived(); }
  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override {
    inner_->set_cell(cell, v);
    absorb();  // answers the readers of this memory
  }
  CellValue own_cell(std::uint8_t cell) const noexcept override { return inner_->own_cell(cell); }
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
    meet(peer);
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
    if (PumpedFabric* const there = member(peer); there != nullptr) ++there->expected_;
    return true;
  }
  std::size_t poll(std::span<FabricEvent> out) noexcept override {
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

  consensus::TcpFabric& inner() noexcept { return *inner_; }
  void hold(bool held) noexcept { held_ = held; }

  // Waits until all fabrics of this process that are not held are connected with each other.
  void meet_all() {
    REQUIRE(until([&] {
      pump_all();
      return std::all_of(members_->begin(), members_->end(), [&](const PumpedFabric* m) {
        return m == this || !m->takes_part() ||
               (inner_->connected(m->self_) && m->connected(self_));
      });
    }));
  }

  // Removes the completion of `token` from the kept events, and returns it.
  bool take_completion(Token token) {
    settle();
    const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Seen& s) {
      return s.kind == Kind::kCompletion && s.token == token;
    });
    REQUIRE(at != kept_.end());
    const bool ok = at->ok;
    kept_.erase(at);
    return ok;
  }

 private:
  bool takes_part() const noexcept { return !held_ && process_ == ::getpid(); }
  PumpedFabric* member(ReplicaId id) const noexcept {
    const auto at = std::find_if(members_->begin(), members_->end(), [&](const PumpedFabric* m) {
      return m->self_ == id && m->process_ == ::getpid();
    });
    return at == members_->end() ? nullptr : *at;
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
  void pump_all() {
    for (PumpedFabric* const m : *members_) {
      if (m != this && m->takes_part()) m->absorb();
    }
    absorb();
  }
  void settle() {
    const bool settled = until(
        [&] {
          pump_all();
          if (inner_->test_only_outstanding() == 0 && expected_ == 0) return true;
          // The only fabric in this process: leave the processor to the others.
          pollfd fd{inner_->event_fd(), POLLIN, 0};
          if (members_->size() == 1 && inner_->prepare_to_sleep()) ::poll(&fd, 1, 5);
          return false;
        },
        kSettleMs);
    if (!settled) {
      ::dprintf(2, "fabric test: operations did not complete\n");
      std::abort();
    }
  }
  // Over a network the first connection takes a while.
  void meet(ReplicaId peer) {
    if (met_[value(peer)]) return;
    met_[value(peer)] = true;
    until([&] { return pump_all(), inner_->connected(peer); });
  }

  std::shared_ptr<Members> members_;
  std::unique_ptr<consensus::TcpFabric> inner_;
  ReplicaId self_;
  pid_t process_ = ::getpid();
  bool held_ = false;
  std::vector<bool> met_;
  std::size_t expected_ = 0;  // requests on their way from fabrics of this process
  std::deque<Seen> kept_;
  std::deque<Seen> handed_;
};

// --- ports --------------------------------------------------------------------------------------

// Bound but not listening: with SO_REUSEADDR a replica can still listen on the port.
ReservedPorts::ReservedPorts(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    const int one = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    sockets_.push_back(fd);
    endpoints_.push_back({"127.0.0.1", ntohs(at.sin_port)});
  }
}

ReservedPorts::~ReservedPorts() {
  for (const int fd : sockets_) ::close(fd);
}

consensus::GroupSecret test_secret(std::uint8_t fill) {
  consensus::GroupSecret out;
  out.fill(std::byte{fill});
  return out;
}

// --- group --------------------------------------------------------------------------------------

consensus::TcpOptions TcpGroup::options(std::uint8_t id, std::uint8_t replicas) const {
  consensus::TcpOptions o;
  o.directory = directory_.path();
  o.self = ReplicaId{id};
  o.replicas = replicas;
  o.group = 77;
  o.log_bytes = kLogBytes;
  o.endpoints = {endpoints().begin(), endpoints().begin() + replicas};
  o.secret = test_secret();
  o.silence_ns = 3'000'000'000;  // the machine may be busy
  return o;
}

std::unique_ptr<Fabric> TcpGroup::open(std::uint8_t id, std::uint8_t replicas) {
  auto opened = consensus::TcpFabric::open(options(id, replicas));
  if (!opened) return nullptr;
  auto out =
      std::make_unique<PumpedFabric>(members_, std::move(opened).value(), ReplicaId{id}, replicas);
  out->meet_all();
  return out;
}

void TcpGroup::lose_memory(std::uint8_t id) {
  std::filesystem::remove_all(directory_.path() + "/r" + std::to_string(id));
}

void TcpGroup::hold(Fabric& fabric) { static_cast<PumpedFabric&>(fabric).hold(true); }

void TcpGroup::release(Fabric& fabric) {
  auto& pumped = static_cast<PumpedFabric&>(fabric);
  pumped.hold(false);
  pumped.meet_all();
}

void TcpGroup::half_write(Fabric& fabric, ReplicaId peer, Key key, std::uint64_t offset,
                          std::span<const std::byte> bytes) {
  static_cast<PumpedFabric&>(fabric).inner().test_only_half_write(peer, key, offset, bytes, kHalf);
}

bool TcpGroup::other_half(Fabric& fabric, ReplicaId peer, Key) {
  auto& pumped = static_cast<PumpedFabric&>(fabric);
  pumped.inner().test_only_other_half(peer);
  return pumped.take_completion(kHalf);
}

}  // namespace crane::test
