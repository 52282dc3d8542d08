// SPDX-License-Identifier: Apache-2.0
// GOAL    Everything that the store on disk reported as done exists after its process was killed.
//         One sync per transaction; errors of the disk are always reported.
// METHOD  A process that stores entries and records that in shared memory, killed at random
//         moments. This program's fdatasync counts the calls and can fail. A file system of 4 MB
//         that becomes full.
// REPLAY  --rng-seed repeats the choices, not the moments at which the kernel acts.
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <random>
#include <string>

#include "dmt/base/fault_point.h"
#include "tests/unit/store/store_harness.h"

namespace {

std::atomic<int> syncs{0};
std::atomic<bool> sync_fails{false};

}  // namespace

// Berkeley DB calls these functions.
extern "C" int fdatasync(int fd) {
  ++syncs;
  if (sync_fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
extern "C" int fsync(int fd) {
  ++syncs;
  if (sync_fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

using namespace crane;
using namespace crane::test;

namespace {

struct Promises {
  std::atomic<std::uint64_t> stored{0};
  std::atomic<std::uint64_t> promised{0};
  std::atomic<bool> damaged{false};
};

Promises* shared_promises() {
  void* const at =
      ::mmap(nullptr, sizeof(Promises), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  return new (at) Promises;
}

BdbOptions small(const std::string& directory) {
  BdbOptions o;
  o.directory = directory;
  o.segment_bytes = 30'000;
  o.checkpoint_bytes = 60'000;
  o.log_file_bytes = 100'000;
  return o;
}

// Stores batch after batch, endlessly.
[[noreturn]] void store_on(const std::string& directory, Promises& promises, std::uint64_t seed) {
  auto opened = BdbStore::open(small(directory));
  if (!opened) ::_exit(3);
  Store& s = *opened.value();
  if (!s.state().damage.empty()) promises.damaged = true;
  if (s.state().identity.incarnation == 0 && !s.reset(kOwner)) ::_exit(4);
  std::mt19937_64 random(seed);
  Log log;
  log.back_to(s.state().last);
  std::uint64_t counter = view_counter(s.state().promise);
  for (;;) {
    if (random() % 16 == 0) {
      if (!s.promise(view(++counter))) ::_exit(5);
      promises.promised = counter;
    }
    const Cursor from = log.end();
    for (std::uint64_t i = random() % 8; i != ~std::uint64_t{0}; --i) {
      log.append(std::max<std::uint64_t>(1, counter), random() % 2000,
                 value(log.end().last.index) + 1);
    }
    const auto last = s.append(from, log.between(from, log.end()), from);
    if (!last) ::_exit(6);
    promises.stored = value(last.value().last.index);
    if (!s.tidy()) ::_exit(7);
  }
}

}  // namespace

TEST_CASE("store: a killed process loses nothing that it reported as stored",
          "[STORE-T1][STORE-T4][processes]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  TemporaryDisk disk;
  Promises* const promises = shared_promises();
  for (int round = 0; round < 30; ++round) {
    const std::uint64_t goal = promises->stored + 1 + random() % 300;
    const std::uint64_t seed = random();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) store_on(disk.path(), *promises, seed);
    int status = 0;
    while (promises->stored < goal && ::waitpid(child, &status, WNOHANG) == 0) ::sched_yield();
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    REQUIRE(!promises->damaged);
    auto opened = BdbStore::open(small(disk.path()));
    REQUIRE(opened.ok());
    const State& state = opened.value()->state();
    INFO("round " << round << " " << state.damage);
    REQUIRE(state.damage == "");
    REQUIRE(value(state.last.last.index) >= promises->stored);
    REQUIRE(view_counter(state.promise) >= promises->promised);
    std::vector<std::byte> bytes;
    REQUIRE(opened.value()->read(Index{1}, ~std::size_t{0} / 2, bytes).ok());
  }
  std::printf("  store: 30 rounds, %llu entries reported and found\n",
              static_cast<unsigned long long>(promises->stored));
  ::munmap(promises, sizeof *promises);
}

TEST_CASE("store: one sync makes a whole batch durable", "[STORE-T1]") {
  TemporaryDisk disk;
  BdbOptions o;
  o.directory = disk.path();
  auto opened = BdbStore::open(o);
  REQUIRE(opened.ok());
  REQUIRE(opened.value()->reset(kOwner).ok());
  Log log;
  for (const int entries : {1, 10, 100}) {
    const Cursor from = log.end();
    for (int i = 0; i < entries; ++i) log.append(1, 200, 7);
    const int before = syncs;
    REQUIRE(opened.value()->append(from, log.between(from, log.end()), from).ok());
    CHECK(syncs - before == 1);
  }
  const int before = syncs;
  REQUIRE(opened.value()->promise(view(1)).ok());
  CHECK(syncs - before == 1);
}

TEST_CASE("store: a failed sync is an error, and so are all later operations", "[STORE-T5]") {
  TemporaryDisk disk;
  BdbOptions o;
  o.directory = disk.path();
  auto opened = BdbStore::open(o);
  REQUIRE(opened.ok());
  REQUIRE(opened.value()->reset(kOwner).ok());
  Log log;
  log.append(1, 200, 1);
  sync_fails = true;
  CHECK(!opened.value()->append({}, log.between({}, log.end()), {}).ok());
  CHECK(!opened.value()->promise(view(1)).ok());
  sync_fails = false;
  CHECK(!opened.value()->promise(view(2)).ok());
}

TEST_CASE("store: a full disk is reported as full, and loses nothing", "[STORE-T5]") {
  TemporaryDisk disk;
  if (::mount("crane-test", disk.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
    std::printf("SKIPPED: store: a full disk: tmpfs cannot be mounted\n");
    return;
  }
  BdbOptions o;
  o.directory = disk.path() + "/store";
  Code code = Code::kOk;
  Cursor stored;
  {
    auto opened = BdbStore::open(o);
    REQUIRE(opened.ok());
    REQUIRE(opened.value()->reset(kOwner).ok());
    Log log;
    for (int i = 0; i < 4000 && code == Code::kOk; ++i) {
      const Cursor from = log.end();
      log.append(1, 3000, 1);
      const auto last = opened.value()->append(from, log.between(from, log.end()), from);
      if (last) {
        stored = last.value();
      } else {
        code = last.error().code;
      }
    }
  }
  CHECK(code == Code::kFull);
  CHECK(value(stored.last.index) > 100);
  // The operator frees space.
  REQUIRE(::mount("crane-test", disk.path().c_str(), "tmpfs", MS_REMOUNT, "size=64m") == 0);
  auto again = BdbStore::open(o);
  REQUIRE(again.ok());
  INFO(again.value()->state().damage);
  CHECK(again.value()->state().damage == "");
  CHECK(again.value()->state().last.last.index >= stored.last.index);
  again.value().reset();
  CHECK(::umount2(disk.path().c_str(), MNT_DETACH) == 0);
}

namespace {

std::string dies_at;

// Writes `count` entries of about a kilobyte, one transaction each.
void fill(Store& s, std::uint64_t count) {
  Log log;
  log.back_to(s.state().last);
  for (std::uint64_t n = 0; n < count; ++n) {
    const Cursor from = log.end();
    log.append(1, 1000, value(from.last.index) + 1);
    REQUIRE(s.append(from, log.between(from, log.end()), log.end()).ok());
  }
}

}  // namespace

TEST_CASE("store: killed at every place while entries covered by checkpoints are dropped",
          "[STORE-T1][STORE-T4][C9][processes]") {
  for (const char* place : {"truncate.cut", "truncate.dropping", "truncate.dropped"}) {
    INFO(place);
    TemporaryDisk disk;
    BdbOptions options = small(disk.path());
    options.segment_bytes = 40'000;
    options.cut_bytes = 1'000;
    {
      auto opened = BdbStore::open(options);
      REQUIRE(opened.ok());
      REQUIRE(opened.value()->reset(kOwner).ok());
      fill(*opened.value(), 100);
    }
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      auto again = BdbStore::open(options);
      dies_at = place;
      fault_hook = [](const char* name) {
        if (dies_at == name) ::kill(::getpid(), SIGKILL);
      };
      ::_exit(again && again.value()->drop_below(Index{90}).ok() ? 0 : 2);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    auto opened = BdbStore::open(options);
    REQUIRE(opened.ok());
    Store& s = *opened.value();
    CHECK(s.state().damage == "");
    CHECK(s.state().last.last.index == Index{100});
    CHECK(numbers(s) == range(value(s.state().first.last.index) + 1, 100));
    fill(s, 50);
    REQUIRE(s.drop_below(Index{90}).ok());
    const std::uint64_t first = value(s.state().first.last.index);
    CHECK((first > 0 && first < 90));
    CHECK(numbers(s) == range(first + 1, 150));
    // The truncated part is a separate segment, and is dropped whole the next time.
    REQUIRE(s.drop_below(Index{150}).ok());
    CHECK(value(s.state().first.last.index) >= 100);
    CHECK(numbers(s).back() == 150);
  }
}
