// SPDX-License-Identifier: Apache-2.0
#include "eval/bench/strategies_group.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "consensus/fabric/shm.h"
#include "consensus/fabric/tcp.h"
#include "consensus/fabric/verbs.h"
#include "consensus/fabric/verbs_links.h"
#include "dmt/base/clock.h"

namespace crane::eval {
namespace {

using consensus::Role;

constexpr std::uint64_t kRing = 1U << 20;
std::string g_directory;  // to be removed at the end of this process

constexpr std::uint64_t kGroup = 77;

std::array<std::byte, 32> secret() {
  std::array<std::byte, 32> out;
  out.fill(std::byte{7});
  return out;
}

// The strategies' fabric and the core's have ports of their own.
std::vector<consensus::Endpoint> endpoints(const Settings& s, unsigned group) {
  std::vector<consensus::Endpoint> all;
  for (unsigned i = 0; i < s.replicas; ++i) {
    all.push_back({s.fabric == "verbs" ? s.addresses[i] : "127.0.0.1",
                   static_cast<std::uint16_t>(s.port + group * s.replicas + i)});
  }
  return all;
}

template <typename T>
std::unique_ptr<T> must(Result<std::unique_ptr<T>> opened) {
  if (!opened) fail(opened.error().what);
  return std::move(opened).value();
}

// What the options of all fabrics have in common.
consensus::FabricOptions options_of(const Settings& s, const std::string& directory,
                                    ReplicaId self) {
  return {directory, self, s.replicas, kGroup, area_of(kAreas).offset};
}

std::unique_ptr<Fabric> open_tcp(const Settings& s, consensus::TcpOptions o) {
  o.endpoints = endpoints(s, 0);
  o.secret = secret();
  o.silence_ns = kGiveUpNs;  // followers that poll may starve others
  return must(consensus::TcpFabric::open(o));
}

std::unique_ptr<Fabric> open_verbs(const Settings& s, consensus::VerbsOptions o) {
  o.address = s.addresses[value(o.self)];
  consensus::verbs::LinksOptions links;
  links.self = o.self;
  links.endpoints = endpoints(s, 0);
  links.secret = secret();
  return must(consensus::VerbsFabric::open(o, must(consensus::verbs::Links::open(links))));
}

}  // namespace

void remove_at_end(const std::string& directory) { g_directory = directory; }

std::uint64_t now_ns() { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

void fail(const char* what) {
  std::fprintf(stderr, "bench-strategies: %s\n", what);
  std::error_code ignored;
  if (!g_directory.empty()) std::filesystem::remove_all(g_directory, ignored);
  std::exit(1);
}

Area area_of(unsigned n) {
  Area a{0, kRing, 100 + n};
  a.offset = n * ((a.bytes() + 4095) / 4096 * 4096);
  return a;
}

// The one place that knows kinds of fabrics.
std::unique_ptr<Fabric> open_fabric(const Settings& s, const std::string& directory,
                                    ReplicaId self) {
  if (s.fabric == "tcp") {
    return open_tcp(s, {options_of(s, directory, self)});
  }
  if (s.fabric == "verbs") {
    return open_verbs(s, {options_of(s, directory, self)});
  }
  return must(consensus::ShmFabric::open({options_of(s, directory, self)}));
}

Board& board() {
  static Board* const at = static_cast<Board*>(
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *at;
}

std::unique_ptr<Consensus> open_core(const Settings& s, const std::string& directory,
                                     ReplicaId self, bool& leads,
                                     std::function<void(Index)> on_committed) {
  consensus::Options o;
  o.directory = directory + "/core";
  o.self = self;
  o.replicas = s.replicas;
  if (s.fabric != "shm") {
    o.fabric = s.fabric == "tcp" ? consensus::FabricKind::kTcp : consensus::FabricKind::kVerbs;
    o.endpoints = endpoints(s, 1);
    o.secret = secret();
  }
  o.ring_bytes = 16U << 20;
  o.log_id = 99;
  o.callbacks.on_committed = [report = std::move(on_committed)](const auto& e) {
    report(e.at.index);
  };
  o.callbacks.on_role = [&leads](Role role, auto, auto) { leads = role == Role::kLeader; };
  auto opened = Consensus::open(std::move(o));
  if (!opened) fail(opened.error().what);
  return std::move(opened).value();
}

void exchange(Fabric& fabric, KeyExchange& keys, std::uint8_t replicas, ReplicaId self) {
  const std::uint64_t give_up = now_ns() + kGiveUpNs;
  for (;;) {
    take(fabric, [&](const FabricEvent& e) { keys.on_event(e); });
    const bool done = keys.done();
    for (std::uint8_t i = 0; i < replicas; ++i) {
      if (ReplicaId{i} != self) fabric.ring_doorbell(ReplicaId{i});
    }
    fabric.tidy();
    if (done) return;
    if (now_ns() > give_up) fail("no keys from a replica within 10 s");
    pollfd fd{fabric.event_fd(), POLLIN, 0};
    if (fabric.prepare_to_sleep()) ::poll(&fd, 1, 10);
  }
}

void follow(const Settings& s, const std::string& directory, ReplicaId self) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto fabric = open_fabric(s, directory, self);
  KeyExchange keys(*fabric, self, kLeader, s.replicas);
  exchange(*fabric, keys, s.replicas, self);
  Board::Follower& mine = board().followers[value(self)];
  Scanner mu(*fabric, area_of(kMuArea),
             [&mine](Index index, auto) { mine.validated = value(index); });
  ApusFollower apus(*fabric, self, kLeader, keys.keys()[0], area_of(kApusArea),
                    [&mine](Index index, auto) { mine.applied = value(index); });
  bool leads = false;
  const auto core = open_core(s, directory, self, leads, [](Index) {});
  core->abdicate("replica 0 is measured");  // it never leads
  unsigned spins = 0;
  for (;;) {
    take(*fabric, [](const FabricEvent&) {});
    mu.look();
    apus.look();
    fabric->ring_doorbell(kLeader);
    mine.spinning = board().spin.load();
    // Over tcp the core's follower must be heard of even while it is not what is measured.
    if (mine.spinning && ++spins % 256 != 0) continue;
    const std::uint64_t deadline = core->poll(now_ns());
    core->flush_doorbells();
    fabric->tidy();
    if (mine.spinning || !fabric->prepare_to_sleep()) continue;
    const std::uint64_t now = now_ns();
    const std::uint64_t wait = deadline > now ? std::min(deadline - now, 100'000'000UL) : 0;
    const timespec t{0, static_cast<long>(wait)};
    pollfd fds[2] = {{fabric->event_fd(), POLLIN, 0}, {core->event_fd(), POLLIN, 0}};
    ::ppoll(fds, 2, &t, nullptr);
  }
}

}  // namespace crane::eval
