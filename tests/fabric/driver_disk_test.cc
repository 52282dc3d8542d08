// SPDX-License-Identifier: Apache-2.0
// GOAL    with durability disk no committed entry is lost when all processes and all memory are
//         gone.  A new server gets all entries again, in order (LOG-K1).  A replica with a damaged
//         store does not vote.  Replicas with a full disk, one or all, wait and do not end.
// METHOD  three node processes over shared memory with stores of Berkeley DB; SIGKILL, removed
//         memory, damaged files, full file systems of 256 MB.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "tests/fabric/node_process.h"

namespace crane::test {
namespace {

using consensus::FabricKind;

constexpr int kSoon = 30'000;  // generous: the machine may be busy

class Disk {
 public:
  Disk() {
    char name[] = "/tmp/crane-stores-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Disk() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string of(std::uint8_t id) const { return path_ + "/r" + std::to_string(id); }

 private:
  std::string path_;
};

using History = std::vector<std::uint64_t>;

History history_of(NodeGroup& g, std::uint8_t id) {
  History h(g.report(id).committed + 1);
  for (std::size_t i = 1; i < h.size(); ++i) h[i] = g.report(id).history[i];
  return h;
}

// The next process is a new server, which has seen no entry.
void forget(NodeGroup& g, std::uint8_t id) {
  NodeReport& r = g.report(id);
  for (std::size_t i = 0; i <= r.committed; ++i) r.history[i] = 0;
  r.committed = 0;
  r.role = 0;
}

void kill_all(NodeGroup& g) {
  for (std::uint8_t i = 0; i < g.replicas(); ++i) g.process(i).stop();  // at one moment
  for (std::uint8_t i = 0; i < g.replicas(); ++i) g.process(i).kill();
}

}  // namespace

TEST_CASE("driver disk: no committed entry is lost when all processes and memory are gone",
          "[driver][disk][processes]") {
  const FabricKind fabric = GENERATE(FabricKind::kShm, FabricKind::kTcp);
  const bool memory_is_lost = GENERATE(true, false);
  INFO("fabric " << static_cast<int>(fabric) << ", memory goes " << memory_is_lost);
  Disk disk;
  NodeGroup g(3, fabric, disk.path());
  g.set_traffic(true);
  for (int round = 0; round < 4; ++round) {
    const std::uint8_t id = g.leader();
    REQUIRE(g.wait_committed(id, g.report(id).committed + 150, kSoon));
    kill_all(g);
    std::vector<History> before;
    std::uint64_t longest = 0;
    for (std::uint8_t i = 0; i < 3; ++i) {
      before.push_back(history_of(g, i));
      longest = std::max<std::uint64_t>(longest, before.back().size() - 1);
      if (memory_is_lost) g.lose_memory(i);
      forget(g, i);
    }
    for (std::uint8_t i = 0; i < 3; ++i) g.start(i);
    for (std::uint8_t i = 0; i < 3; ++i) {
      INFO("round " << round << " replica " << int{i} << " has " << g.report(i).committed << " of "
                    << longest);
      REQUIRE(g.wait_committed(i, longest, kSoon));
      for (const History& h : before) {
        for (std::size_t n = 1; n < h.size(); ++n) REQUIRE(g.report(i).history[n] == h[n]);
      }
      CHECK(g.report(i).fatal == 0);
    }
  }
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver disk: a replica that lost only its memory votes again",
          "[driver][disk][processes]") {
  Disk disk;
  NodeGroup g(3, FabricKind::kShm, disk.path());
  g.set_traffic(true);
  for (std::uint8_t id = 0; id < 3; ++id) {
    REQUIRE(g.wait_committed(g.leader(), 200U * (id + 1), kSoon));
    for (std::uint8_t i = 0; i < 3; ++i) REQUIRE(g.wait_committed(i, 100, kSoon));
    g.process(id).kill();
    g.lose_memory(id);
    forget(g, id);
    g.start(id);
    REQUIRE(g.wait_committed(id, 200U * (id + 1), kSoon));
    // The group needs this replica's vote now.
    const auto other = static_cast<std::uint8_t>((id + 1) % 3);
    g.process(other).kill();
    g.report(other).role = 0;
    REQUIRE(g.wait_committed(id, g.report(id).committed + 200, kSoon));
    g.start(other);
  }
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver disk: a replica with a damaged store does not vote, and does no harm",
          "[driver][disk][U8][processes]") {
  Disk disk;
  NodeGroup g(3, FabricKind::kShm, disk.path());
  g.set_traffic(true);
  const std::uint8_t leader = g.leader();
  const auto victim = static_cast<std::uint8_t>((leader + 1) % 3);
  REQUIRE(g.wait_committed(victim, 300, kSoon));
  g.stop_traffic();  // so that the store's entries were reported
  const std::uint64_t last = g.report(g.settled_leader()).last;
  REQUIRE(until([&] { return let_pass_us(200), g.report(victim).durable >= last; }, kSoon));
  g.process(victim).kill();
  g.set_traffic(true);
  g.lose_memory(victim);
  g.report(victim).role = 0;
  // Damage the end of the write-ahead log: to Berkeley DB the log is then shorter.  Not the very
  // end, where the kill may have left a transaction that was never reported and is not missed.
  const std::string wal = disk.of(victim) + "/env/log.0000000001";
  const int fd = ::open(wal.c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  std::vector<char> bytes(std::filesystem::file_size(wal));
  REQUIRE(::pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  std::size_t end = bytes.size();
  while (end > 0 && bytes[end - 1] == 0) --end;
  REQUIRE(end > 3000);
  const char other = static_cast<char>(bytes[end - 2000] ^ 1);
  REQUIRE(::pwrite(fd, &other, 1, static_cast<off_t>(end - 2000)) == 1);
  ::close(fd);
  g.start(victim);
  REQUIRE(until([&] { return let_pass_us(200), g.report(victim).learned > 0; }, kSoon));
  REQUIRE(g.wait_committed(leader, g.report(leader).committed + 300, kSoon));
  CHECK(g.report(victim).fatal == 0);
  CHECK(std::filesystem::exists(disk.of(victim) + "/damaged-1"));
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver disk: a follower that was away for many laps of the ring catches up",
          "[driver][disk][processes]") {
  const FabricKind fabric = GENERATE(FabricKind::kShm, FabricKind::kTcp);
  INFO("fabric " << static_cast<int>(fabric));
  Disk disk;
  NodeGroup g(3, fabric, disk.path(), 0, 64U << 10);
  g.set_traffic(true);
  enum { kPause, kMemoryLost, kAllLost };
  for (const int gone : {kPause, kMemoryLost, kAllLost}) {
    const std::uint8_t leader = g.leader();
    const auto victim = static_cast<std::uint8_t>((leader + 1) % 3);
    REQUIRE(g.wait_committed(victim, g.report(victim).committed + 100, kSoon));
    const std::uint64_t before = g.report(victim).committed;
    g.process(victim).kill();
    if (gone != kPause) g.lose_memory(victim);
    if (gone == kAllLost) std::filesystem::remove_all(disk.of(victim));
    forget(g, victim);
    // 500 bytes per entry on average: a dozen laps.
    REQUIRE(g.wait_committed(leader, before + 2000, kSoon));
    g.start(victim);
    INFO("lost " << gone << ", " << before << " before, now " << g.report(victim).committed);
    REQUIRE(g.wait_committed(victim, before + 2500, kSoon));
    // The group needs this replica's vote now.
    const auto other = static_cast<std::uint8_t>(3 - leader - victim);
    g.process(other).kill();
    g.report(other).role = 0;
    REQUIRE(g.wait_committed(victim, g.report(victim).committed + 200, kSoon));
    g.start(other);
    for (std::uint8_t i = 0; i < 3; ++i) {
      CHECK(g.report(i).fatal == 0);
      REQUIRE(g.wait_committed(i, before + 2700, kSoon));
    }
  }
  g.set_traffic(false);
  g.check_histories();
}

namespace {

// A separate file system of 256 MB in memory, which a file fills.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = ::mount("crane-test", path_.c_str(), "tmpfs", 0, "size=256m") == 0;
    if (!mounted_) std::printf("SKIPPED: driver disk: a full disk: tmpfs cannot be mounted here\n");
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  void fill() {
    struct statvfs disk {};
    REQUIRE(::statvfs(path_.c_str(), &disk) == 0);
    const std::uint64_t free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
    const int fd = ::open((path_ + "/another").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    CHECK(::fallocate(fd, 0, 0, static_cast<off_t>(free - kLeft)) == 0);
    ::close(fd);
  }
  void make_room() { std::filesystem::remove(path_ + "/another"); }

 private:
  static constexpr std::uint64_t kLeft = 64U << 20;  // less than the stores leave free
  const std::string path_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("driver disk: a replica whose disk is full waits for room, the group continues",
          "[driver][disk][processes]") {
  Disk disk;
  const std::uint8_t victim = 1;
  SmallDisk small(disk.of(victim));
  if (!small.mounted()) return;
  NodeGroup g(3, FabricKind::kShm, disk.path());
  g.set_traffic(true);
  REQUIRE(g.wait_for_leader(-1, kSoon) >= 0);
  REQUIRE(g.wait_committed(victim, 100, kSoon));
  small.fill();
  REQUIRE(until([&] { return let_pass_us(200), g.report(victim).no_room > 0; }, kSoon));
  const std::uint8_t leader = g.leader();
  const std::uint64_t durable = g.report(victim).durable;
  CHECK(g.wait_committed(leader, g.report(leader).committed + 300, kSoon));
  CHECK(g.report(victim).durable == durable);
  small.make_room();
  CHECK(until([&] { return let_pass_us(200), g.report(victim).durable > durable + 300; }, kSoon));
  CHECK(until([&] { return let_pass_us(200), g.report(victim).no_room == 0; }, kSoon));
  for (std::uint8_t i = 0; i < 3; ++i) CHECK(g.report(i).fatal == 0);
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver disk: if all disks are full, inputs wait and no committed entry is lost",
          "[driver][disk][processes]") {
  Disk disk;
  SmallDisk small(disk.path());
  if (!small.mounted()) return;
  NodeGroup g(3, FabricKind::kShm, disk.path());
  g.set_traffic(true);
  for (int round = 0; round < 3; ++round) {
    const std::uint8_t id = g.leader();
    REQUIRE(g.wait_committed(id, g.report(id).committed + 100, kSoon));
    small.fill();
    REQUIRE(until(
        [&] {
          let_pass_us(200);
          return g.report(0).no_room > 0 && g.report(1).no_room > 0 && g.report(2).no_room > 0;
        },
        kSoon));
    const std::uint64_t stopped = g.report(id).committed;
    if (round == 2) {  // committed entries survive even if all die while they wait
      kill_all(g);
      for (std::uint8_t i = 0; i < 3; ++i) {
        g.lose_memory(i);
        forget(g, i);
      }
      small.make_room();
      for (std::uint8_t i = 0; i < 3; ++i) g.start(i);
    } else {
      small.make_room();
    }
    const std::uint8_t next = g.leader();
    CHECK(g.wait_committed(next, stopped + 100, kSoon));
    for (std::uint8_t i = 0; i < 3; ++i) CHECK(g.report(i).fatal == 0);
  }
  g.set_traffic(false);
  g.check_histories();
}

}  // namespace crane::test
