// SPDX-License-Identifier: Apache-2.0
// The cost of a turn (DESIGN D9, D10): one runnable thread; two threads that hand the turn to each
// other after every turn, on two processors and on one; eight threads.
//
//   bench-turn [--turns N] [--repeats R] [--json]
//
// A line per case: nanoseconds per turn, median of the repeats, lowest and highest.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "dmt/base/clock.h"
#include "dmt/base/crc.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "dmt/segment.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/ring.h"

namespace {

using namespace crane;  // a program of its own

constexpr dmt::Operation kOperation = 1;

struct Case {
  const char* name;
  int threads;
  int processors;
  dmt::Mode mode;
  std::uint32_t quantum;
  std::uint32_t spin;
  std::uint64_t share;  // of --turns
};

constexpr Case kCases[] = {
    {"1 thread", 1, 1, dmt::Mode::kParallel, dmt::kQuantumParallel, 0, 1},
    {"1 thread, serial", 1, 1, dmt::Mode::kSerial, dmt::kQuantumSerial, 0, 1},
    {"2 threads on 2 cores, parallel", 2, 2, dmt::Mode::kParallel, dmt::kQuantumParallel, 0, 4},
    {"2 threads on 2 cores, every turn", 2, 2, dmt::Mode::kParallel, 1, 0, 50},
    {"2 threads on 2 cores, every turn, spin", 2, 2, dmt::Mode::kParallel, 1, 2000, 50},
    {"2 threads on 1 core, every turn", 2, 1, dmt::Mode::kParallel, 1, 0, 50},
    {"2 threads on 1 core, every turn, spin", 2, 1, dmt::Mode::kParallel, 1, 2000, 50},
    {"8 threads, parallel", 8, 2, dmt::Mode::kParallel, dmt::kQuantumParallel, 0, 8},
    {"8 threads, serial", 8, 1, dmt::Mode::kSerial, dmt::kQuantumSerial, 0, 2},
    {"8 threads, every turn", 8, 2, dmt::Mode::kParallel, 1, 0, 50},
    {"8 threads, every turn, spin", 8, 2, dmt::Mode::kParallel, 1, 2000, 50},
};

double now_ns() { return static_cast<double>(crane::monotonic_ns()); }

class World {
 public:
  explicit World(const Case& c) {
    memory_ = mmap(nullptr, sizeof(dmt::Layout), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) {
      std::perror("bench-turn: mmap");
      std::exit(1);
    }
    dmt::Configuration configuration{};
    configuration.mode = c.mode;
    configuration.admission = dmt::Admission::kGrant;
    configuration.quantum = c.quantum;
    configuration.send_buffer = dmt::kSendBufferDefault;
    configuration.spin = c.spin;
    w_ = &dmt::initialise_segment(memory_, configuration);
    slots_.push_back(dmt::create_main_process(*w_));
    for (int i = 1; i < c.threads; ++i) slots_.push_back(dmt::create_slot(*w_, dmt::kMainProcess));
    start();
  }
  ~World() { munmap(memory_, sizeof(dmt::Layout)); }

  dmt::Layout& layout() { return *w_; }
  Slot slot(int thread) const { return slots_[static_cast<std::size_t>(thread)]; }

 private:
  // One entry with a grant that no case uses up.
  void start() {
    const StartBody body{};
    SequenceHeader header{};
    header.body_bytes = sizeof body;
    header.type = EntryType::kStart;
    header.grant = UINT32_MAX;
    header.stamp_ns = 1;
    header.viewstamp = {make_view(1, ReplicaId{0}), Index{1}};
    header.crc = crc32c(&body, sizeof body, crc32c(&header, sizeof header));
    Ring sequence(w_->header.sequence, static_cast<std::byte*>(memory_));
    const auto room = sequence.reserve(sizeof header + sizeof body);
    std::memcpy(room.data(), &header, sizeof header);
    std::memcpy(room.data() + sizeof header, &body, sizeof body);
    sequence.commit(sizeof header + sizeof body);
    dmt::admit_from_node(*w_);
  }

  void* memory_;
  dmt::Layout* w_;
  std::vector<Slot> slots_;
};

void pin(int processor) {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  int seen = 0;
  const int wanted = processor % CPU_COUNT(&all);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &all) && seen++ == wanted) {
      CPU_SET(static_cast<unsigned>(cpu), &one);
    }
  }
  sched_setaffinity(0, sizeof one, &one);
}

double run(const Case& c, std::uint64_t turns) {
  World world(c);
  dmt::Layout& w = world.layout();
  const std::uint64_t each = turns / static_cast<std::uint64_t>(c.threads);
  std::atomic<int> ready{0};
  std::atomic<double> begin{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < c.threads; ++i) {
    threads.emplace_back([&, i] {
      pin(i % c.processors);
      const Slot me = world.slot(i);
      if (ready.fetch_add(1) + 1 == c.threads) begin = now_ns();
      while (ready.load() < c.threads) std::this_thread::yield();
      for (std::uint64_t turn = 0; turn < each; ++turn) {
        dmt::get_turn(w, me);
        dmt::put_turn(w, me, kOperation, turn, false);
      }
      dmt::get_turn(w, me);
      dmt::release_slot(w, me);
      dmt::leave(w, me);
    });
  }
  for (auto& thread : threads) thread.join();
  return (now_ns() - begin) / static_cast<double>(each * static_cast<std::uint64_t>(c.threads));
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t turns = 20'000'000, repeats = 5;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      json = true;
    } else if (word == "--turns" && i + 1 < argc) {
      turns = number(argv[++i]);
    } else if (word == "--repeats" && i + 1 < argc) {
      repeats = number(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: bench-turn [--turns N] [--repeats R] [--json]\n");
      return 2;
    }
  }
  const char* separator = "[";
  for (const Case& c : kCases) {
    std::vector<double> costs;
    for (std::uint64_t r = 0; r < repeats; ++r) costs.push_back(run(c, turns / c.share));
    std::sort(costs.begin(), costs.end());
    const double median = costs[costs.size() / 2];
    if (json) {
      std::printf("%s{\"case\":\"%s\",\"ns\":%.1f,\"low\":%.1f,\"high\":%.1f}", separator, c.name,
                  median, costs.front(), costs.back());
      separator = ",\n ";
    } else {
      std::printf("%-40s %9.1f ns/turn  (%.1f .. %.1f)\n", c.name, median, costs.front(),
                  costs.back());
    }
    std::fflush(stdout);
  }
  if (json) std::printf("]\n");
  return 0;
}
