// SPDX-License-Identifier: Apache-2.0
// The three papers' commit rules beside the raw operations of the fabric and the real core, 64 B,
// interleaved in one run.
//
//   bench-strategies [--fabric shm|tcp|verbs] [--port N] [--replicas N] [--blocks N] [--ops N]
//                    [--runs N] [--addresses A,B,C] [--json FILE]
//
// This process leads; followers are processes of their own.  A run is `blocks` rounds over all
// rows, `ops` operations of each row per round, so that a slow moment of the machine hits all.
//
//   device-one    verbs only: one WRITE of an entry's on-wire size by the device itself, inline and
//                 signalled as the fabric's are, until its completion
//   device-two    the same to two replicas, until a majority of three has it; device-sge the same
//                 with the bytes outside the work request
//   one-write     one WRITE of that size through the fabric, until its completion
//   two-writes    the same WRITE to every follower, until a majority is complete
//   mu dare apus  propose to committed (eval/strategies); apus with followers that poll all the
//                 time (spin) and with followers that sleep and are woken (woken)
//   core          propose to on_committed of the real consensus, over the same fabric; the clock is
//                 read once before, as a node does once per round
//   validated     mu's WRITE, until a majority has checked the entry's CRC, followers polling
//
// Then the machine's cache-line ping-pong between two processes, and the core's throughput by
// batch and entries outstanding (Mu figure 7).  Output: JSON; eval/experiments/strategies.py makes
// the tables.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "eval/bench/device_writes.h"
#include "eval/bench/strategies_group.h"
#include "eval/strategies/follower.h"
#include "eval/strategies/strategy.h"

namespace {

using namespace crane::eval;
using crane::Index;
using crane::ReplicaId;
using crane::consensus::Token;

// --- measurements ---------------------------------------------------------------------------

class Bench {
 public:
  Bench(const Settings& s, const std::string& directory)
      : s_(s),
        fabric_(open_fabric(s, directory, kLeader)),
        keys_(*fabric_, kLeader, kLeader, s.replicas),
        core_(open_core(s, directory, kLeader, leads_,
                        [this](Index index) { note_committed(index); })) {
    exchange(*fabric_, keys_, s.replicas, kLeader);
    const Group group{kLeader, s.replicas, keys_.keys()};
    for (const Rule rule : {Rule::kMu, Rule::kDare, Rule::kApus}) {
      const auto n = static_cast<unsigned>(rule);
      strategies_[n] =
          Strategy::make(rule, *fabric_, group, area_of(n), static_cast<std::uint8_t>(n + 1));
      strategies_[n]->when_committed([this](Index) { committed_ns_ = now_ns(); });
    }
    if (s.fabric == "verbs") device_ = std::make_unique<DeviceWrites>(s.addresses, kWire);
    const std::uint64_t give_up = now_ns() + kGiveUpNs;
    while (!leads_) {
      keep_core(1'000'000);
      if (now_ns() > give_up) fail("replica 0 does not lead");
    }
  }

  std::uint64_t device(std::size_t n, bool inlined) { return device_->write(n, inlined); }

  std::uint64_t raw(bool all) {
    const std::uint64_t from = now_ns();
    const std::uint64_t token = (std::uint64_t{kRawTag} << 56) | ++raw_;
    const auto bytes =
        std::span<const std::byte>(fabric_->log_memory()).subspan(area_of(kRawArea).offset, kWire);
    const std::uint8_t last = all ? s_.replicas : 2;
    for (std::uint8_t i = 1; i < last; ++i) {
      fabric_->write(ReplicaId{i}, keys_.keys()[i], area_of(kRawArea).offset, bytes, Token{token});
    }
    raw_done_ = 0;
    const int wanted = all ? s_.replicas / 2 : 1;
    until([&] { return raw_done_ >= wanted; });
    return now_ns() - from;
  }

  std::uint64_t propose(Rule rule, bool wake) {
    Strategy& strategy = *strategies_[static_cast<unsigned>(rule)];
    const std::uint64_t from = now_ns();
    const Index index = strategy.propose(payload_);
    if (wake) ring();
    until([&] { return strategy.committed() >= index; });
    return committed_ns_ - from;
  }

  std::uint64_t validated() {
    const std::uint64_t from = now_ns();
    const Index index = strategies_[0]->propose(payload_);
    until([&] {
      int holders = 1;
      for (std::uint8_t i = 1; i < s_.replicas; ++i) {
        if (board().followers[i].validated >= value(index)) ++holders;
      }
      return holders > s_.replicas / 2;
    });
    return now_ns() - from;
  }

  std::uint64_t core() {
    const std::uint64_t from = now_ns();
    const auto index = core_->propose(1, from, 0, payload_);
    if (!index.ok()) fail("the core refuses a proposal");
    timed_ = value(index.value());
    core_->poll(from);
    while (committed_ < timed_) {
      if (s_.fabric == "tcp") core_->flush_doorbells();
      const std::uint64_t now = now_ns();
      if (now > from + kGiveUpNs) fail("the core does not commit");
      core_->poll(now);
    }
    return committed_ns_ - from;
  }

  // Entries of `batch` payloads, `outstanding` at a time; {operations/s, median ns of one}.
  std::pair<double, double> throughput(int batch, int outstanding, int entries) {
    const std::vector<std::byte> many(kPayload * static_cast<std::size_t>(batch));
    std::vector<std::uint64_t> latency;
    std::map<std::uint64_t, std::uint64_t> begun;  // index, time
    const std::uint64_t from = now_ns();
    int proposed = 0;
    while (latency.size() < static_cast<std::size_t>(entries)) {
      while (proposed < entries && begun.size() < static_cast<std::size_t>(outstanding)) {
        const std::uint64_t at = now_ns();
        const auto index = core_->propose(1, at, 0, many);
        if (!index.ok()) break;
        begun[value(index.value())] = at;
        ++proposed;
      }
      core_->poll(now_ns());
      const std::uint64_t done = now_ns();
      while (!begun.empty() && begun.begin()->first <= committed_) {
        latency.push_back(done - begun.begin()->second);
        begun.erase(begun.begin());
      }
      if (latency.size() % 64 == 0) core_->flush_doorbells();
    }
    const double seconds = static_cast<double>(now_ns() - from) / 1e9;
    std::nth_element(latency.begin(), latency.begin() + entries / 2, latency.end());
    return {entries * batch / seconds,
            static_cast<double>(latency[static_cast<std::size_t>(entries / 2)])};
  }

  // Followers poll all the time from now on, or sleep between events.
  void set_spin(bool spin) {
    board().spin = spin;
    until([&] {
      ring();
      for (std::uint8_t i = 1; i < s_.replicas; ++i) {
        if (board().followers[i].spinning != spin) return false;
      }
      return true;
    });
  }
  // Long enough for followers to have gone to sleep.
  static void rest() {
    const timespec t{0, 200'000};
    ::ppoll(nullptr, 0, &t, nullptr);
  }
  // Between blocks: nothing is outstanding, followers have taken everything in.
  void settle() {
    until([&] {
      ring();
      for (std::uint8_t i = 1; i < s_.replicas; ++i) {
        const Board::Follower& f = board().followers[i];
        if (f.validated < value(strategies_[0]->committed())) return false;
        if (f.applied < value(strategies_[2]->committed())) return false;
      }
      return true;
    });
    keep_core(0);
  }

 private:
  void note_committed(Index index) {
    committed_ = value(index);
    if (committed_ == timed_) committed_ns_ = now_ns();
  }
  void ring() {
    for (std::uint8_t i = 1; i < s_.replicas; ++i) fabric_->ring_doorbell(ReplicaId{i});
  }
  void keep_core(std::uint64_t wait_ns) {
    core_->poll(now_ns());
    core_->flush_doorbells();
    const timespec t{0, static_cast<long>(wait_ns)};
    pollfd fd{core_->event_fd(), POLLIN, 0};
    if (wait_ns > 0) ::ppoll(&fd, 1, &t, nullptr);
  }
  void on_event(const FabricEvent& e) {
    if (e.kind == FabricEvent::Kind::kPeerDown) fail("a follower died");
    if (e.kind != FabricEvent::Kind::kCompletion) return;
    if (!e.ok) fail("a write failed: a follower is too far behind, or gone");
    if (value(e.token) >> 56 == kRawTag) {
      raw_done_ += (value(e.token) & 0xffffffff) == raw_ ? 1 : 0;
      return;
    }
    for (const auto& strategy : strategies_) strategy->on_event(e);
  }
  template <typename F>
  void until(F&& done) {
    std::uint64_t give_up = 0;
    for (unsigned i = 1; !done(); ++i) {
      take(*fabric_, [this](const FabricEvent& e) { on_event(e); });
      strategies_[2]->look();
      if (i % 1024 == 0) {
        fabric_->tidy();  // connections for followers that begin to write
        if (give_up == 0) give_up = now_ns() + kGiveUpNs;
        if (now_ns() > give_up) fail("no progress in 10 s");
      }
      if (i % 64 == 0) ::sched_yield();  // more processes than processors
    }
  }

  const Settings& s_;
  std::unique_ptr<Fabric> fabric_;
  KeyExchange keys_;
  bool leads_ = false;
  std::uint64_t committed_ = 0;  // by the core
  std::uint64_t timed_ = 0;      // index whose commit is to be timed
  std::unique_ptr<Consensus> core_;
  std::unique_ptr<DeviceWrites> device_;  // verbs only
  std::array<std::unique_ptr<Strategy>, 3> strategies_;
  const std::vector<std::byte> payload_ = std::vector<std::byte>(kPayload, std::byte{42});
  std::uint64_t committed_ns_ = 0;  // when the last commit was told
  std::uint64_t raw_ = 0;
  int raw_done_ = 0;
};

// Half a round trip of one cache line between two processes, ns.
std::uint64_t ping_pong(int rounds) {
  std::atomic<std::uint64_t>& ball = board().ball;
  ball = 0;
  const pid_t other = ::fork();
  const auto turns = static_cast<std::uint64_t>(rounds) * 2;
  const auto play = [&](std::uint64_t first) {
    for (std::uint64_t i = first; i < turns; i += 2) {
      while (ball.load(std::memory_order_acquire) != i) {
      }
      ball.store(i + 1, std::memory_order_release);
    }
  };
  if (other == 0) {
    play(1);
    ::_exit(0);
  }
  const std::uint64_t from = now_ns();
  play(0);
  while (ball.load() != turns) {
  }
  const std::uint64_t took = now_ns() - from;
  ::waitpid(other, nullptr, 0);
  return took / turns;
}

// --- the run ------------------------------------------------------------------------------------

struct Row {
  const char* name;
  bool spin;
  std::function<std::uint64_t(Bench&)> once;
};

std::vector<Row> rows_of(const Settings& s) {
  std::vector<Row> all = {
      {"one-write", false, [](Bench& b) { return b.raw(false); }},
      {"two-writes", false, [](Bench& b) { return b.raw(true); }},
      {"mu", false, [](Bench& b) { return b.propose(Rule::kMu, false); }},
      {"core", false, [](Bench& b) { return b.core(); }},
      {"dare", false, [](Bench& b) { return b.propose(Rule::kDare, false); }},
      {"apus woken", false,
       [](Bench& b) {
         Bench::rest();
         return b.propose(Rule::kApus, true);
       }},
      {"apus spin", true, [](Bench& b) { return b.propose(Rule::kApus, false); }},
      {"validated", true, [](Bench& b) { return b.validated(); }},
  };
  if (s.fabric != "verbs") return all;
  const std::vector<Row> device = {
      {"device-one", false, [](Bench& b) { return b.device(1, true); }},
      {"device-two", false, [](Bench& b) { return b.device(2, true); }},
      {"device-sge", false, [](Bench& b) { return b.device(2, false); }},
  };
  all.insert(all.begin(), device.begin(), device.end());
  return all;
}

using Samples = std::map<std::string, std::vector<std::vector<std::uint64_t>>>;  // row, run

Samples measure(Bench& bench, const Settings& s, const std::vector<Row>& rows) {
  Samples samples;
  for (int run = 0; run < s.runs; ++run) {
    for (int block = -1; block < s.blocks; ++block) {  // the first warms up
      for (const Row& row : rows) {
        bench.set_spin(row.spin);
        auto& mine = samples[row.name];
        mine.resize(static_cast<std::size_t>(run) + 1);
        for (int i = 0; i < s.ops; ++i) {
          const std::uint64_t ns = row.once(bench);
          if (block >= 0) mine.back().push_back(ns);
        }
        bench.set_spin(false);
        bench.settle();
      }
    }
  }
  return samples;
}

nlohmann::json throughput(Bench& bench, int entries) {
  nlohmann::json all = nlohmann::json::array();
  for (const int batch : std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128}) {
    for (const int outstanding : std::vector<int>{1, 2, 4, 8}) {
      const auto [rate, ns] = bench.throughput(batch, outstanding, entries);
      all.push_back({{"batch", batch},
                     {"outstanding", outstanding},
                     {"per_second", rate},
                     {"median_ns", ns}});
      bench.settle();
    }
  }
  return all;
}

Settings parse(int argc, char** argv) {
  Settings s;
  CLI::App app("Commit rules beside the raw operations of a fabric, interleaved");
  // make's own options come first, those of ARGS after them.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--fabric", s.fabric)->check(CLI::IsMember({"shm", "tcp", "verbs"}));
  app.add_option("--port", s.port, "the first of two per replica")->check(CLI::Range(1024, 65000));
  app.add_option("--replicas", s.replicas)->check(CLI::Range(2, 9));
  app.add_option("--blocks", s.blocks, "of every row, per run")->check(CLI::Range(1, 1'000'000));
  app.add_option("--ops", s.ops, "of a row, per block")->check(CLI::Range(1, 1000));
  app.add_option("--runs", s.runs)->check(CLI::Range(1, 1000));
  app.add_option("--addresses", s.addresses, "verbs: of three RDMA devices of this machine")
      ->delimiter(',')
      ->expected(3);
  app.add_option("--json", s.json, "where to put every sample; else standard output");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  if (s.fabric == "verbs" && s.replicas != s.addresses.size()) fail("verbs: three replicas");
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings s = parse(argc, argv);
  std::string directory = "/dev/shm/crane-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) fail("no directory in /dev/shm");
  std::filesystem::create_directory(directory + "/core");
  board();
  std::vector<pid_t> followers;
  for (std::uint8_t i = 1; i < s.replicas; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) follow(s, directory, ReplicaId{i});
    followers.push_back(pid);
  }
  remove_at_end(directory);
  {
    Bench bench(s, directory);
    const std::vector<Row> rows = rows_of(s);
    std::vector<std::string> names;
    for (const Row& row : rows) names.push_back(row.name);
    const Samples samples = measure(bench, s, rows);
    std::vector<std::uint64_t> ball(static_cast<std::size_t>(s.runs));
    for (std::uint64_t& ns : ball) ns = ping_pong(20'000);
    const nlohmann::json all = {{"fabric", s.fabric},
                                {"replicas", s.replicas},
                                {"payload_bytes", kPayload},
                                {"wire_bytes", kWire},
                                {"rows", names},
                                {"samples_ns", samples},
                                {"ping_pong_ns", ball},
                                {"throughput", throughput(bench, 10 * s.ops)}};
    if (s.json.empty()) {
      std::puts(all.dump().c_str());
    } else if (!(std::ofstream(s.json) << all.dump() << '\n')) {
      fail("cannot write the file of --json");
    }
  }
  for (const pid_t pid : followers) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return 0;
}
