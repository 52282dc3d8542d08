// SPDX-License-Identifier: Apache-2.0
// GOAL    Checkpoints travel through the port of the tcp fabric, over separate links: only a peer
//         with the group's secret is admitted, the log is not affected, and no wait is endless.
// METHOD  A real fabric, polled by this process; visitors are other processes; the link of a
//         visitor is served in a worker, as in a node.
// CHECKS  What arrives, from which peer; strangers get nothing; the fabric's links stay; how far
//         the replica that gives a checkpoint is.
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <vector>

#include "checkpoint/worker.h"
#include "consensus/fabric/tcp.h"
#include "proxy/host/recovery/ship_link.h"
#include "proxy/host/recovery/shipping.h"
#include "tests/unit/checkpoint/image_harness.h"

using namespace crane;
using namespace crane::test;
using checkpoint::Wire;
using checkpoint::Worker;
using consensus::FabricEvent;
using consensus::SecureLink;
using consensus::TcpFabric;
using consensus::TcpOptions;
using node::ShipLink;
using node::ShipParty;

namespace {

constexpr int kSilenceMs = 10'000;
constexpr int kPatience = 2000;  // polls of 5 ms

consensus::GroupSecret secret_of(std::uint8_t fill) {
  consensus::GroupSecret secret;
  secret.fill(std::byte{fill});
  return secret;
}

// A port of the loopback device that was free a moment ago.
std::uint16_t free_port() {
  const auto at = consensus::resolve("127.0.0.1", 0);
  REQUIRE(at.ok());
  const auto fd = consensus::listen_on(at.value());
  REQUIRE(fd.ok());
  sockaddr_in address{};
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(fd.value(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd.value());
  return ntohs(address.sin_port);
}

// Receives the first bytes of what was asked, and no more before the other process permits it.
class Patient final : public checkpoint::Wire {
 public:
  Patient(std::unique_ptr<Wire> wire, int permit) : wire_(std::move(wire)), permit_(permit) {}
  Outcome put(std::span<const std::byte> bytes) override { return wire_->put(bytes); }
  Result<std::size_t> get(std::span<std::byte> to) override {
    pollfd permit{permit_, POLLIN, 0};
    if (received_ > kFirst && ::poll(&permit, 1, kSilenceMs) != 1) {
      return Error{Code::kPeerFailed, 0, "no permit"};
    }
    const auto got = wire_->get(to);
    received_ += got.ok() ? got.value() : 0;
    return got;
  }

 private:
  static constexpr std::size_t kFirst = 100'000;
  std::unique_ptr<Wire> wire_;
  const int permit_;
  std::size_t received_ = 0;
};

struct NoOwner final : node::Shipping::Owner {
  void woke() override {}
  bool knows(ReplicaId) const override { return false; }
  void lacked(ReplicaId, Index) override {}
};

// Two replicas of a group of three; the third one only connects for a checkpoint.
struct Group {
  Scratch scratch;
  std::mt19937_64 random{Catch::rngSeed()};
  ShipParty party{ReplicaId{2}, {}, secret_of(7)};
  std::vector<std::unique_ptr<TcpFabric>> fabrics;
  std::vector<std::pair<ReplicaId, std::unique_ptr<SecureLink>>> visitors;
  std::string from = scratch.path() + "/from", there = scratch.path() + "/to";
  std::string name;
  Expected ours = kOurs;
  int downs = 0;

  Group() {
    Checkpoints here({from, 1, {}});
    name = publish_one(here, 1, 5, random);
    REQUIRE(here.verify(name).ok());
    for (int i = 0; i < 3; ++i) party.endpoints.push_back({"127.0.0.1", free_port()});
    for (std::uint8_t i = 0; i < 2; ++i) {
      TcpOptions o;
      o.directory = scratch.path() + "/" + std::to_string(i);
      fs::create_directory(o.directory);
      o.self = ReplicaId{i};
      o.group = 99;
      o.log_bytes = 1 << 20;
      o.endpoints = party.endpoints;
      o.secret = party.secret;
      o.take_visitor = [this](ReplicaId who, std::unique_ptr<SecureLink> link) {
        visitors.emplace_back(who, std::move(link));
      };
      auto opened = TcpFabric::open(o);
      REQUIRE(opened.ok());
      fabrics.push_back(std::move(opened).value());
    }
    REQUIRE(pump([this] { return fabrics[0]->connected(ReplicaId{1}); }));
  }
  bool pump(const std::function<bool()>& done) {
    for (int i = 0; i < kPatience; ++i) {
      for (const auto& fabric : fabrics) {
        FabricEvent events[8];
        const std::size_t n = fabric->poll(events);
        for (std::size_t k = 0; k < n; ++k) {
          downs += events[k].kind == FabricEvent::Kind::kPeerDown;
        }
        fabric->prepare_to_sleep();
      }
      if (done()) return true;
      ::poll(nullptr, 0, 5);
    }
    return false;
  }
  // The third one fetches from the first, in another process; returns its exit status, 0: success.
  // `permit`: a descriptor that Patient waits for; -1: none.
  pid_t visit(const ShipParty& who, int permit = -1) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child != 0) return child;
    auto others = others_of(who);
    others.replicas = {0};
    if (permit >= 0) {
      others.dial = [dial = others.dial, permit](int i) -> Result<std::unique_ptr<Wire>> {
        auto wire = dial(i);
        if (!wire) return wire;
        return std::unique_ptr<Wire>(std::make_unique<Patient>(std::move(wire).value(), permit));
      };
    }
    Checkpoints here({there, 1, {}});
    const auto got =
        checkpoint::fetch_newest(others, ours, Index{0}, here, [](const std::string&) {});
    spill(scratch.path() + "/why", got.ok() ? "" : got.error().text);
    ::_exit(got.ok() ? 0 : static_cast<int>(got.error().code));
  }
  int ended(pid_t child) {
    int status = -1;
    REQUIRE(pump([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // As in a node: the link continues in the worker's process.
  void serve_first(Worker& worker) {
    auto link = std::move(visitors.front().second);
    visitors.erase(visitors.begin());
    REQUIRE(worker
                .start(
                    [&](const Worker::Report&) -> Result<std::string> {
                      ShipLink wire(std::move(link), kSilenceMs);
                      Checkpoints here({from, 1, {}});
                      const auto served = checkpoint::serve(wire, here, false);
                      if (!served) return served.error();
                      return served.value().name;
                    },
                    {}, link->fd())
                .ok());
    link->hand_over();
  }
};

}  // namespace

TEST_CASE("ship link: a checkpoint arrives through the fabric's port",
          "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  Group g;
  const pid_t child = g.visit(g.party);
  std::vector<std::string> given;
  std::vector<std::unique_ptr<Worker>> workers;
  int status = -1;
  REQUIRE(g.pump([&] {
    while (!g.visitors.empty()) {
      CHECK(g.visitors.front().first == ReplicaId{2});
      workers.push_back(std::make_unique<Worker>());
      g.serve_first(*workers.back());
    }
    for (const auto& worker : workers) {
      if (!worker->idle() && worker->advance()) {
        REQUIRE(worker->result().ok());
        given.push_back(worker->result().value());
      }
    }
    return ::waitpid(child, &status, WNOHANG) == child || status != -1;
  }));
  INFO(slurp(g.scratch.path() + "/why"));
  CHECK(status == 0);
  REQUIRE(g.pump([&] {
    for (const auto& worker : workers) {
      if (!worker->idle() && worker->advance()) given.push_back(worker->result().value());
    }
    return given.size() == workers.size();
  }));
  CHECK(given == std::vector<std::string>{"", g.name});  // asked, then given
  CHECK(Checkpoints({g.there, 1, {}}).find(g.name).value().verified);
  // The log's links were not affected.
  CHECK(g.downs == 0);
  CHECK(g.fabrics[0]->connected(ReplicaId{1}));
}

TEST_CASE("the replica that gives a checkpoint reports how much of it it has sent",
          "[root][processes][progress]") {
  INFO("seed " << Catch::rngSeed());
  Group g;
  node::Config config;
  config.dir = g.scratch.path() + "/giver";
  Checkpoints here({config.checkpoints_dir(), 1, {}});
  auto staging = here.begin(Index{7});
  REQUIRE(staging.ok());
  fill(staging.value(), g.random);
  spill(staging.value().images() + "/pages.img", random_bytes(g.random, 1'500'000));
  const auto name = here.publish(staging.value(), manifest_at(1, 7));
  REQUIRE(name.ok());
  REQUIRE(here.verify(name.value()).ok());
  const std::uint64_t bytes = here.find(name.value()).value().manifest.bytes();

  event_base* const base = event_base_new();
  NoOwner owner;
  {
    node::Shipping shipping(base, config, owner);
    int permit[2];
    REQUIRE(::pipe2(permit, O_CLOEXEC) == 0);
    const pid_t child = g.visit(g.party, permit[0]);
    control::Operation seen;
    const auto step = [&] {
      for (auto& [from, link] : std::exchange(g.visitors, {})) {
        shipping.take_visitor(from, std::move(link));
      }
      shipping.step();
      event_base_loop(base, EVLOOP_NONBLOCK);
      for (const control::Operation& one : shipping.operations()) {
        if (one.progress.done > 0) seen = one;
      }
    };
    CHECK(g.pump([&] { return step(), seen.progress.done > 0; }));
    CHECK(seen.name == "give");
    CHECK(seen.step == "to replica 2");
    CHECK(seen.progress.of == bytes);
    CHECK(seen.progress.done < bytes);
    REQUIRE(::write(permit[1], "go", 2) == 2);
    int status = -1;
    CHECK(g.pump([&] { return step(), ::waitpid(child, &status, WNOHANG) == child; }));
    CHECK(status == 0);
    CHECK(g.pump([&] { return step(), shipping.operations().empty(); }));
    ::close(permit[0]);
    ::close(permit[1]);
  }
  event_base_free(base);
}

TEST_CASE("ship link: a peer without the secret gets nothing",
          "[root][processes][IMAGE-6][LINK-S1]") {
  Group g;
  ShipParty stranger = g.party;
  stranger.secret = secret_of(8);
  CHECK(g.ended(g.visit(stranger)) == static_cast<int>(Code::kPeerFailed));
  CHECK(slurp(g.scratch.path() + "/why").find("does not hold this group's secret") !=
        std::string::npos);
  CHECK(g.visitors.empty());
  // Another replica's number, which is that of the listener.
  ShipParty same = g.party;
  same.self = ReplicaId{0};
  CHECK(g.ended(g.visit(same)) == static_cast<int>(Code::kPeerFailed));
  CHECK(g.visitors.empty());
  CHECK(!fs::exists(g.there + "/" + g.name));
  CHECK(g.downs == 0);
}

TEST_CASE("ship link: a missing peer, or one that ends, is reported",
          "[root][processes][IMAGE-6]") {
  Group g;
  ShipParty lonely = g.party;
  lonely.endpoints[0].port = free_port();
  CHECK(g.ended(g.visit(lonely)) == static_cast<int>(Code::kPeerFailed));
  CHECK(slurp(g.scratch.path() + "/why").find("it cannot be reached (127.0.0.1:") !=
        std::string::npos);
  // It is admitted, and then left alone.
  const pid_t child = g.visit(g.party);
  REQUIRE(g.pump([&] { return !g.visitors.empty(); }));
  g.visitors.clear();
  CHECK(g.ended(child) == static_cast<int>(Code::kPeerFailed));
  CHECK(slurp(g.scratch.path() + "/why").find("it ended the connection") != std::string::npos);
  CHECK(g.downs == 0);
}
