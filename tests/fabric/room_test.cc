// SPDX-License-Identifier: Apache-2.0
// GOAL    a full /dev/shm kills no process: each page of a sparse file is allocated before it is
//         touched (ROOM-1, ROOM-2).  If it cannot be allocated, inputs wait.
// METHOD  a tmpfs of a few megabytes that a file fills; three replicas on it in this thread.  A
//         page that is touched too early ends the test by SIGBUS.
// REPLAY  deterministic.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/fabric/shm_region.h"
#include "dmt/base/clock.h"
#include "tests/fabric/harness.h"
#include "tests/fabric/local_replicas.h"

namespace crane::test {
namespace {

using consensus::Consensus;
using consensus::shm::Fill;
using consensus::shm::Region;

class SmallMemory {
 public:
  explicit SmallMemory(const char* size) {
    char name[] = "/tmp/crane-room-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
    mounted_ = ::mount("crane-test", path_.c_str(), "tmpfs", 0, size) == 0;
    if (!mounted_) std::printf("SKIPPED: a full shared memory: tmpfs cannot be mounted here\n");
  }
  ~SmallMemory() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
    ::rmdir(path_.c_str());
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }
  std::uint64_t free() const {
    struct statvfs room {};
    REQUIRE(::statvfs(path_.c_str(), &room) == 0);
    return static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  }
  void fill(std::uint64_t left) const {
    const int fd = ::open((path_ + "/another").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    CHECK(::fallocate(fd, 0, 0, static_cast<off_t>(free() - left)) == 0);
    ::close(fd);
  }
  void make_room() const { std::filesystem::remove(path_ + "/another"); }

 private:
  std::string path_;
  bool mounted_ = false;
};

struct Group : LocalReplicas {
  std::vector<std::uint64_t> committed;  // payloads reported by replica 0
  std::uint64_t next = 0;

  explicit Group(const std::string& directory) {
    for (std::uint8_t i = 0; i < replicas.size(); ++i) {
      consensus::Options o;
      o.directory = directory;
      o.self = ReplicaId{i};
      o.ring_bytes = 16U << 20;
      o.log_id = 99;
      if (i == 0) {
        o.callbacks.on_committed = [this](const consensus::EntryView& e) {
          std::uint64_t number = 0;
          if (e.type != 1) return;
          std::copy_n(e.payload.data(), sizeof number, reinterpret_cast<std::byte*>(&number));
          committed.push_back(number);
        };
      }
      open(i, std::move(o));
    }
    REQUIRE(until([this] { return iterate(), leads && all_stream(); }));
  }
  bool propose() {
    std::vector<std::byte> payload(30'000);
    std::copy_n(reinterpret_cast<const std::byte*>(&next), sizeof next, payload.data());
    if (!replicas[0]->propose(1, 0, 0, payload).ok()) return false;
    ++next;
    return true;
  }
  bool all_committed() const { return committed.size() == next; }
};

}  // namespace

TEST_CASE("shm: a page of a sparse file is allocated before it is touched, or not at all",
          "[room]") {
  SmallMemory memory("size=4m");
  if (!memory.mounted()) return;
  auto made = Region::create(memory.path() + "/log", 16U << 20, Fill::kSparse);
  REQUIRE(made.ok());
  Region region = std::move(made).value();
  CHECK(region.back(1U << 20, 1));
  CHECK(region.back(10U << 20, 1U << 20));
  CHECK_FALSE(region.back(0, 16U << 20));
  CHECK_FALSE(region.back(16U << 20, 1));
  const std::uint64_t free = memory.free();
  std::vector<std::byte> bytes(1U << 20, std::byte{1});
  CHECK(region.read(12U << 20, bytes));
  CHECK(bytes == std::vector<std::byte>(1U << 20));
  CHECK(memory.free() == free);  // reading allocates nothing
  region.clear();
  CHECK(memory.free() > free);
  CHECK(region.back(12U << 20, 1U << 20));
  const auto whole = Region::create(memory.path() + "/control", 8U << 20, Fill::kWhole);
  CHECK(whole.error().code == Code::kFull);
}

TEST_CASE("driver: if shared memory is full, inputs wait and continue when there is room",
          "[driver][room]") {
  SmallMemory memory("size=128m");
  if (!memory.mounted()) return;
  Group g(memory.path());
  // The leader's log may have all its memory while the followers' logs cannot grow.
  if (GENERATE(false, true)) {
    const int log = ::open((memory.path() + "/r0/log").c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(log >= 0);
    CHECK(::fallocate(log, FALLOC_FL_KEEP_SIZE, 0, 16U << 20) == 0);
    ::close(log);
  }
  for (int round = 0; round < 3; ++round) {
    memory.fill(3U << 20);
    const View view = g.replicas[0]->status().view;
    std::uint64_t refused = 0;
    // Far more than is left; the log does not grow beyond the available memory.
    for (int i = 0; i < 2000 && refused < 100; ++i) {
      refused += g.propose() ? 0 : 1;
      g.iterate();
    }
    CHECK(refused == 100);
    CHECK(g.replicas[0]->status().no_room.find(memory.path()) == 0);
    CHECK_FALSE(g.replicas[0]->status().failed);
    // Inputs accepted earlier are committed, and the followers' write grants are not lost.
    REQUIRE(until([&] { return g.iterate(), g.all_committed(); }));
    CHECK(g.all_stream());
    CHECK(g.replicas[0]->status().view == view);
    memory.make_room();
    REQUIRE(until([&] { return g.iterate(), g.all_committed(); }));
    CHECK(g.replicas[0]->status().no_room.empty());
    for (int i = 0; i < 50; ++i) {
      REQUIRE(until([&] { return g.iterate(), g.propose(); }));
    }
    REQUIRE(until([&] { return g.iterate(), g.all_committed(); }));
  }
  for (std::uint64_t i = 0; i < g.committed.size(); ++i) REQUIRE(g.committed[i] == i);
}

}  // namespace crane::test
