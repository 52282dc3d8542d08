// SPDX-License-Identifier: Apache-2.0
// GOAL    Kills and full disks do not change published checkpoints, and their leftovers are
//         removed.
// METHOD  A child process that dies at each fault point in turn; a file system of some MB;
//         the order of syncs and renames, from this program's fsync.
// CHECKS  IMAGE-1 (whole when it has its name), IMAGE-3, IMAGE-4; every named fault point is
//         reached.
// REPLAY  --rng-seed repeats the contents.
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <set>
#include <thread>

#include "checkpoint/worker.h"
#include "tests/unit/checkpoint/image_harness.h"

namespace {

std::vector<std::string>* synced = nullptr;  // paths, in order; null: not recorded

}  // namespace

// Replaces libc's call for Crane's code.
extern "C" int fsync(int fd) {
  if (synced != nullptr) {
    char path[4096] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t n = ::readlink(link.c_str(), path, sizeof path - 1);
    if (n > 0) synced->push_back(path);
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

using namespace crane;
using namespace crane::test;

namespace {

// Runs `work` in a child that dies when it passes the point `name` for the `pass`-th time.  False:
// the work ended first.
bool dies(const std::string& name, int pass, const std::function<bool()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!die_at((name + ":" + std::to_string(pass)).c_str())) ::_exit(3);
    ::_exit(work() ? 0 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  INFO(name << ":" << pass << " status " << status);
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}

struct World {
  Scratch scratch;
  std::mt19937_64 random{Catch::rngSeed()};
  std::string directory = scratch.path() + "/checkpoints";
  std::string there = scratch.path() + "/other/checkpoints";
  std::string target = scratch.path() + "/restored";
  std::vector<std::string> names;
  std::map<std::string, std::map<std::string, std::string>> before;

  World() {
    Checkpoints all({directory, 1, {}});
    for (std::uint64_t i = 1; i <= 3; ++i) names.push_back(publish_one(all, 1, i, random));
    REQUIRE(all.verify(names[0]).ok());
    for (const std::string& name : names) before[name] = snapshot(directory + "/" + name);
  }
  // Remaining checkpoints are unchanged except for a mark; every one with a name is complete.
  void check(const std::set<std::string>& may_be_gone) {
    Checkpoints all({directory, 1, {}});
    for (const std::string& name : names) {
      INFO(name);
      if (may_be_gone.count(name) != 0 && !fs::exists(directory + "/" + name)) continue;
      auto now = snapshot(directory + "/" + name);
      auto was = before[name];
      for (const char* mark : {".", "verified", "verified.tmp"}) {
        now.erase(mark);
        was.erase(mark);
      }
      CHECK(now == was);
    }
    const auto listed = all.list();
    REQUIRE(listed.ok());
    REQUIRE(!listed.value().empty());
    for (const Listed& one : listed.value()) {
      INFO(one.name << one.damage);
      CHECK(one.damage.empty());
      CHECK(all.verify(one.name).ok());
    }
  }
  // After cleaning, both places contain only checkpoints.
  void check_clean() {
    for (const std::string& place : {directory, there}) {
      Checkpoints all({place, 1, {}});
      REQUIRE(all.clean(Leftovers::kAll).ok());
      for (const std::string& name : names_in(place)) {
        INFO(place << "/" << name);
        CHECK((name[0] != '.' || name == ".lock"));
        CHECK(!fs::exists(place + "/" + name + "/verified.tmp"));
      }
    }
  }
};

// Tries every passing of every fault point that begins with one of `prefixes`.
void at_every_point(const std::set<std::string>& operations,
                    const std::function<bool(World&)>& work,
                    const std::function<void(World&)>& check) {
  int deaths = 0;
  for (const std::string name : kFaultPoints) {
    if (operations.count(name.substr(0, name.find('.'))) == 0) continue;
    for (int pass = 1;; ++pass) {
      World world;
      const bool died = dies(name, pass, [&] { return work(world); });
      INFO(name << " pass " << pass);
      if (!died) {
        CHECK(pass > 1);  // each point was reached
        break;
      }
      ++deaths;
      check(world);
    }
  }
  std::printf("  image: killed %d times\n", deaths);
}

}  // namespace

TEST_CASE("image: killed at every point of publishing", "[root][processes][IMAGE-1][IMAGE-4]") {
  INFO("seed " << Catch::rngSeed());
  at_every_point(
      {"begin", "publish"},
      [](World& w) {
        Checkpoints all({w.directory, 1, {}});
        auto staging = all.begin(Index{9});
        if (!staging) return false;
        spill(staging.value().images() + "/pages.img", random_bytes(w.random, 700'000));
        spill(staging.value().segment(), "segment");
        spill(staging.value().library(), "library");
        fs::create_directory(staging.value().upper());
        return all.publish(staging.value(), manifest_at(2, 9)).ok();
      },
      [](World& w) {
        w.check({});
        w.check_clean();
        // The next checkpoint is made normally.
        Checkpoints all({w.directory, 1, {}});
        const std::string next = publish_one(all, 2, 10, w.random);
        CHECK(all.list().value()[0].name == next);
      });
}

TEST_CASE("image: killed at every point of verifying and of retention",
          "[root][processes][IMAGE-3][IMAGE-4]") {
  INFO("seed " << Catch::rngSeed());
  const auto work = [](World& w) {
    Checkpoints all({w.directory, 1, {}});
    return all.verify(w.names[1]).ok() && all.keep(1).ok();
  };
  at_every_point({"verify", "remove"}, work, [](World& w) {
    Checkpoints all({w.directory, 1, {}});
    bool verified = false;
    const auto found = all.list();
    for (const Listed& one : found.value()) verified = verified || one.verified;
    CHECK(verified);
    w.check({w.names[0]});
    w.check_clean();
    CHECK(all.keep(1).ok());
    CHECK(all.list().value().size() <= 2);
  });
}

TEST_CASE("image: killed at every point of unpacking", "[root][processes][IMAGE-2][IMAGE-4]") {
  INFO("seed " << Catch::rngSeed());
  const auto work = [](World& w) {
    return Checkpoints({w.directory, 1, {}}).unpack(w.names[1], w.target, kOurs).ok();
  };
  at_every_point({"unpack"}, work, [](World& w) {
    CHECK(!fs::exists(w.target));
    w.check({});
    Checkpoints all({w.directory, 1, {}});
    REQUIRE(all.unpack(w.names[1], w.target, kOurs).ok());
    CHECK(!fs::exists(w.target + ".tmp"));
    w.check_clean();
  });
}

TEST_CASE("image: killed at every point of shipping, it resumes where it stopped",
          "[root][processes][IMAGE-1][IMAGE-4]") {
  INFO("seed " << Catch::rngSeed());
  const auto ship = [](World& w) {
    Checkpoints all({w.directory, 1, {}});
    auto staging = all.begin(Index{9});
    if (!staging) return false;
    fill(staging.value(), w.random);
    spill(staging.value().images() + "/pages.img", random_bytes(w.random, 2'500'000));
    if (!all.publish(staging.value(), manifest_at(2, 9))) return false;
    return all.ship("00000002.000000000009", w.there).ok();
  };
  at_every_point({"ship"}, ship, [](World& w) {
    Checkpoints here({w.directory, 1, {}}), there({w.there, 1, {}});
    REQUIRE(there.clean(Leftovers::kAllButShipments).ok());
    const std::string name = here.find("newest").value().name;
    const std::string partial = w.there + "/.ship-" + name + "/images.pack";
    std::uint64_t first = 0;
    if (fs::exists(partial)) first = fs::file_size(partial);
    const std::string from = w.directory + "/" + name;
    {
      Incoming incoming(there);
      const auto begun = incoming.begin(slurp(from + "/manifest.json"));
      if (begun && incoming.wanted().file == "images.pack") {
        CHECK(incoming.wanted().offset == first);
      }
      if (first > 0 && fs::exists(partial)) {
        CHECK(slurp(partial) == slurp(from + "/images.pack").substr(0, first));
      }
    }
    const auto shipped = here.ship(name, w.there);
    INFO(reason(shipped));
    REQUIRE(shipped.ok());
    CHECK(there.find(name).value().verified);
    CHECK(there.unpack(name, w.target, kOurs).ok());
    w.check({});
    w.check_clean();
    CHECK(names_in(w.there) == std::vector<std::string>{".lock", name});
  });
}

TEST_CASE("image: a published checkpoint was synced before it got its name", "[root][IMAGE-1]") {
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  Checkpoints all = checkpoints_in(scratch.path());
  static std::size_t at_rename;
  std::vector<std::string> paths;
  synced = &paths;
  fault_hook = [](const char* name) {
    if (std::string(name) == "publish.renamed" || std::string(name) == "ship.renamed") {
      at_rename = synced->size();
    }
  };
  // Every file below the renamed directory, then that directory; afterwards the list.
  const auto check = [&](const std::string& place, const std::string& final) {
    INFO(place);
    const auto before = [&](const std::string& path) {
      const auto end = paths.begin() + static_cast<std::ptrdiff_t>(at_rename);
      return std::find(paths.begin(), end, path) != end;
    };
    for (const std::string& file : names_in(final)) {
      INFO(file);
      // write_file() syncs under a temporary name.
      CHECK((before(place + "/" + file) || before(place + "/" + file + ".tmp")));
    }
    REQUIRE(at_rename > 0);
    CHECK(paths[at_rename - 1] == place);
    REQUIRE(at_rename < paths.size());
    CHECK(paths[at_rename] == fs::path(final).parent_path().string());
  };
  const std::string name = publish_one(all, 1, 1, random);
  const std::string staging = ".new-1-" + std::to_string(::getpid()) + "/.packed";
  check(scratch.path() + "/checkpoints/" + staging, scratch.path() + "/checkpoints/" + name);
  paths.clear();
  REQUIRE(all.ship(name, scratch.path() + "/there").ok());
  check(scratch.path() + "/there/.ship-" + name, scratch.path() + "/there/" + name);
  synced = nullptr;
  fault_hook = nullptr;
}

TEST_CASE("image: a shipment that was damaged on the way is fetched again", "[root][IMAGE-1]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  Checkpoints here = checkpoints_in(scratch.path());
  const std::string there = scratch.path() + "/there";
  const std::string name = publish_one(here, 1, 1, random);
  const std::string from = scratch.path() + "/checkpoints/" + name;
  const std::string partial = there + "/.ship-" + name;
  fs::create_directories(partial);
  fs::create_directories(there + "/.ship-00000001.000000000000");
  // As after a loss of power: the right size with wrong content; too large; of another checkpoint.
  for (const std::string& file : names_in(from))
    fs::copy_file(from + "/" + file, partial + "/" + file);
  spill(partial + "/upper.pack", std::string(fs::file_size(from + "/upper.pack"), '\0'));
  spill(partial + "/segment.pack", slurp(from + "/segment.pack") + "more");
  const auto shipped = here.ship(name, there);
  INFO(reason(shipped));
  REQUIRE(shipped.ok());
  CHECK(Checkpoints({there, 1, {}}).find(name).value().verified);
  CHECK(names_in(there) == std::vector<std::string>{".lock", name});
  // A repetition returns at once; a damaged one is replaced.
  REQUIRE(here.ship(name, there).ok());
  spill(there + "/" + name + "/upper.pack", "x");
  CHECK(Checkpoints({there, 1, {}}).verify(name).error().code == Code::kDamaged);
  REQUIRE(here.ship(name, there).ok());
  CHECK(Checkpoints({there, 1, {}}).verify(name).ok());
  // Damage at the source is not copied.
  fs::remove_all(there);
  std::string bad = slurp(from + "/upper.pack");
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 4);
  spill(from + "/upper.pack", bad);
  CHECK(fails(here.ship(name, there), Code::kDamaged, "upper.pack"));
  CHECK(Checkpoints({there, 1, {}}).list().value().empty());
}

TEST_CASE("image: cleaning leaves the directories of a living process", "[root][IMAGE-4]") {
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  Checkpoints mine = checkpoints_in(scratch.path()), other = checkpoints_in(scratch.path());
  auto staging = mine.begin(Index{4});
  REQUIRE(staging.ok());
  fill(staging.value(), random);
  REQUIRE(other.clean(Leftovers::kAll).ok());
  const auto second = other.begin(Index{4});
  REQUIRE(second.ok());
  CHECK(second.value().path != staging.value().path);
  other.abandon(second.value());
  REQUIRE(fs::exists(staging.value().segment()));
  // Another process may have the pid in the name by now: only the lock counts.
  const std::string dead = scratch.path() + "/checkpoints/.new-4-" + std::to_string(::getppid());
  fs::create_directories(dead + "/images");
  REQUIRE(other.clean(Leftovers::kAll).ok());
  CHECK(!fs::exists(dead));
  CHECK(mine.publish(staging.value(), manifest_at(1, 4)).ok());
}

TEST_CASE("image: begin() waits for no process, and its process is not taken for dead",
          "[root][IMAGE-4]") {
  Scratch scratch;
  static std::string directory;
  static bool free;
  directory = scratch.path() + "/checkpoints";
  free = false;
  fault_hook = [](const char* name) {
    if (std::string(name) != "begin.made" || free) return;
    const Descriptor lock(
        ::open((directory + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    free = ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
    ::flock(lock.get(), LOCK_UN);
    // A directory that is not locked yet looks like a dead process's.
    if (free) REQUIRE(Checkpoints({directory, 1, {}}).clean(Leftovers::kAll).ok());
  };
  auto staging = checkpoints_in(scratch.path()).begin(Index{4});
  fault_hook = nullptr;
  CHECK(free);
  INFO(reason(staging));
  REQUIRE(staging.ok());
  CHECK(fs::exists(staging.value().images()));
  REQUIRE(checkpoints_in(scratch.path()).clean(Leftovers::kAll).ok());
  CHECK(fs::exists(staging.value().images()));
}

TEST_CASE("image: no process waits for the removal of an unpacking's leftovers", "[root]") {
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  Checkpoints mine = checkpoints_in(scratch.path());
  const std::string name = publish_one(mine, 1, 4, random);
  const std::string target = scratch.path() + "/restored";
  fs::create_directories(target + ".tmp/upper");
  bool reported = false, free = false;
  Checkpoints other({scratch.path() + "/checkpoints", 1, [&](const std::string& step) {
                       if (step != "removing " + target + ".tmp") return;
                       reported = true;
                       const Descriptor lock(::open((scratch.path() + "/checkpoints/.lock").c_str(),
                                                    O_RDWR | O_CLOEXEC));
                       free = ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
                     }});
  CHECK(other.unpack(name, target, kOurs).ok());
  CHECK(reported);
  CHECK(free);
  CHECK(!fs::exists(target + ".tmp"));
}

TEST_CASE("image: a full disk is reported, and leaves earlier checkpoints", "[root][IMAGE-4]") {
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  struct Seen {
    bool mounted = false, published = false, listed = false, shipped = false, unpacked = false;
    std::string why, ship_why, unpack_why;
    std::vector<std::string> left, left_there, left_targets;
  } seen;
  // The thread has its own mount namespace, which ends with it.
  std::thread([&] {
    std::mt19937_64 random(Catch::rngSeed());
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("crane-test", scratch.path().c_str(), "tmpfs", 0, "size=6m") != 0) {
      return;
    }
    seen.mounted = true;
    Checkpoints all({scratch.path() + "/checkpoints", 1, {}});
    const auto publish = [&](std::uint64_t index, std::size_t bytes) {
      auto staging = all.begin(Index{index});
      if (!staging) return reason(staging);
      for (const char* part : {"/upper", "/segment", "/libcrane.so", "/images/pages"}) {
        spill(staging.value().path + part, random_bytes(random, bytes));
      }
      return reason(all.publish(staging.value(), manifest_at(1, index)));
    };
    seen.published = publish(1, 300'000).empty();
    seen.why = publish(2, 700'000);
    seen.listed = all.list().value().size() == 1 && all.verify(all.list().value()[0].name).ok();
    seen.left = names_in(scratch.path() + "/checkpoints");
    spill(scratch.path() + "/ballast", random_bytes(random, 4'000'000));
    const std::string name = all.list().value()[0].name;
    const auto unpacked = all.unpack(name, scratch.path() + "/out", kOurs);
    seen.unpacked = unpacked.ok();
    seen.unpack_why = reason(unpacked);
    seen.left_targets = names_in(scratch.path());
    const auto shipped = all.ship(name, scratch.path() + "/there");
    seen.shipped = shipped.ok();
    seen.ship_why = reason(shipped);
    seen.left_there = names_in(scratch.path() + "/there");
  }).join();
  if (!seen.mounted) {
    std::printf("SKIPPED: image: a full disk: tmpfs cannot be mounted here\n");
    return;
  }
  INFO(seen.why);
  REQUIRE(seen.published);
  CHECK(seen.why.find("No space left on device; make room") != std::string::npos);
  CHECK(seen.why.find(scratch.path() + "/checkpoints/.new-2") != std::string::npos);
  CHECK(seen.listed);
  CHECK(seen.left == std::vector<std::string>{"00000001.000000000001"});
  CHECK(!seen.unpacked);
  CHECK(seen.unpack_why.find("No space left on device") != std::string::npos);
  CHECK(seen.left_targets == std::vector<std::string>{"ballast", "checkpoints"});
  CHECK(!seen.shipped);
  CHECK(seen.ship_why.find("No space left on device") != std::string::npos);
  CHECK(seen.left_there == std::vector<std::string>{".lock"});
}
