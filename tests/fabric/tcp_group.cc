// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/tcp_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

namespace crane::test {

using consensus::CellValue;

namespace {

constexpr Token kHalf{~std::uint64_t{0}};

}  // namespace

class PumpedFabric final : public KeepingFabric<consensus::TcpFabric> {
 public:
  PumpedFabric(std::shared_ptr<Members> members, std::unique_ptr<consensus::TcpFabric> inner,
               ReplicaId self, std::uint8_t replicas)
      : KeepingFabric(std::move(members), std::move(inner), self), met_(replicas) {}

  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override {
    inner_->set_cell(cell, v);
    absorb();  // answers the readers of this memory
  }
  void write(ReplicaId peer, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
             Token token) noexcept override {
    meet(peer);
    inner_->write(peer, key, offset, bytes, token);
  }

  consensus::TcpFabric& inner() noexcept { return *inner_; }

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
  void settle() override {
    require([&] {
      serve();
      if (settled()) return true;
      // The only fabric in this process: leave the processor to the others.
      pollfd fd{inner_->event_fd(), POLLIN, 0};
      if (alone() && inner_->prepare_to_sleep()) ::poll(&fd, 1, 5);
      return false;
    });
  }
  // Over a network the first connection takes a while.
  void meet(ReplicaId peer) {
    if (met_[value(peer)]) return;
    met_[value(peer)] = true;
    until([&] { return serve(), inner_->connected(peer); });
  }

  std::vector<bool> met_;
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
