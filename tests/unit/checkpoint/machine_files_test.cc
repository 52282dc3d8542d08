// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/machine_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/checkpoint/machine.h"

namespace crane::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::Machine;
using test::replace;
using test::text_of;
using test::write;

}  // namespace

TEST_CASE("files: a group reads its initial files, whatever is installed", "[root][FILES-2]") {
  const Machine m;
  const GroupFiles files = m.hold("a");
  REQUIRE(files.layers.size() == 2);
  REQUIRE(files.made_names > 1);
  REQUIRE(is_current(files, m.root));
  replace(m.root + "/usr/bin/server", "two");
  replace(m.root + "/etc/server.conf", "two");
  write(m.root + "/usr/lib/a/new.so", "new");
  fs::remove(m.root + "/usr/lib/a/library.so");
  CHECK(!is_current(files, m.root));
  const GroupFiles again = m.hold("a");
  CHECK(again.state == files.state);
  CHECK(again.made_names == 0);
  CHECK(m.seen(again, "/usr/bin/server") == "one");
  CHECK(m.seen(again, "/usr/lib/a/library.so") == "one");
  CHECK(m.seen(again, "/etc/server.conf") == "one");
  CHECK(!fs::exists(located(again, "/usr/lib/a/new.so")));
  CHECK(written_in_place(again, 10).empty());

  SECTION("until it takes the next generation, and returns") {
    const auto found = next_files(m.record("a"), 0, m.root);
    REQUIRE(found.ok());
    REQUIRE(found.value().generation == 1);
    const GroupFiles& next = found.value().files;
    CHECK(next.state != files.state);
    const ChangedFiles changed = compare_files(files, next, 10);
    CHECK(changed.changed == std::vector<std::string>{"/etc/server.conf", "/usr/bin/server"});
    CHECK(changed.added == std::vector<std::string>{"/usr/lib/a/new.so"});
    CHECK(changed.removed == std::vector<std::string>{"/usr/lib/a/library.so"});
    CHECK(changed.all == 4);
    CHECK(next_files(m.record("a"), 1, m.root).value().generation == 1);  // there is no newer state
    CHECK(m.seen(next, "/usr/bin/server") == "two");
    CHECK(m.seen(next, "/usr/lib/a/new.so") == "new");
    CHECK(is_current(next, m.root));
    CHECK(m.hold("a", 0).state == files.state);
    CHECK(m.hold("a", 1).state == next.state);
  }
}

TEST_CASE("files: groups share a state, which is removed with the last group", "[root][FILES-3]") {
  const Machine m;
  const GroupFiles one = m.hold("a"), two = m.hold("b");
  CHECK(one.state == two.state);
  CHECK(two.made_names == 0);
  replace(m.root + "/usr/bin/server", "two");
  fs::remove(m.record("a"));
  const GroupFiles three = m.hold("c");
  CHECK(m.hold("b").state == two.state);
  CHECK(m.seen(m.hold("b"), "/usr/bin/server") == "one");
  fs::remove(m.record("b"));
  replace(m.root + "/usr/bin/server", "three");
  (void)m.hold("d");
  CHECK(!fs::exists(two.layers[1]));
  CHECK(fs::exists(three.layers[1]));
}

TEST_CASE("files: changed settings do not change the programs' tree", "[root]") {
  const Machine m;
  const GroupFiles one = m.hold("a");
  write(m.root + "/etc/server.conf", "more");
  const GroupFiles two = m.hold("b");
  CHECK(two.layers[0] != one.layers[0]);
  CHECK(two.layers[1] == one.layers[1]);
  CHECK(m.seen(one, "/etc/server.conf") == "one");
  CHECK(m.seen(two, "/etc/server.conf") == "more");
}

TEST_CASE("files: files written in place are named", "[root]") {
  const Machine m;
  const GroupFiles files = m.hold("a");
  struct stat before {};
  REQUIRE(stat((files.layers[1] + ".list").c_str(), &before) == 0);
  const std::string program = m.root + "/usr/bin/server";
  write(program, "in place");
  const timespec later{before.st_mtim.tv_sec + 1, 0};
  const timespec times[2] = {later, later};
  REQUIRE(utimensat(AT_FDCWD, program.c_str(), times, 0) == 0);
  CHECK(written_in_place(files, 10) == std::vector<std::string>{"/usr/bin/server"});
}

TEST_CASE("files: links are followed as the server follows them", "[root]") {
  const Machine m;
  const GroupFiles files = m.hold("a");
  replace(m.root + "/usr/bin/server", "two");
  CHECK(m.seen(files, "/usr/bin/editor") == "one");
  CHECK(located(files, "/var/lib/x") == "/var/lib/x");
}

TEST_CASE("files: a removed state is reported, and the newest is used", "[root]") {
  const Machine m;
  const GroupFiles files = m.hold("a");
  fs::remove_all(files.layers[1]);
  const GroupFiles now = m.hold("a");
  CHECK(now.lost);
  CHECK(m.seen(now, "/usr/bin/server") == "one");
  CHECK(!m.hold("a").lost);
}

TEST_CASE("files: if no state can be kept, they are read from the machine, with a reason",
          "[root]") {
  const Machine m;
  write(m.root + "/var/lib/crane", "no directory");
  const GroupFiles files = m.hold("a");
  CHECK(files.state == kLiveFiles);
  CHECK(files.layers.empty());
  CHECK(files.why_live.find("/var/lib/crane") != std::string::npos);
  fs::remove(m.root + "/var/lib/crane");
  CHECK(m.hold("a").state == kLiveFiles);  // FILES-2: also for later replicas
  CHECK(located(files, "/usr/bin/server") == "/usr/bin/server");
}

TEST_CASE("files: owners, modes, times and kinds of linked files", "[root]") {
  const Machine m;
  const std::string place = m.root + "/usr/lib/b";
  fs::create_directories(place);
  REQUIRE(chmod(place.c_str(), 02750) == 0);
  REQUIRE(chown(place.c_str(), 12, 34) == 0);
  REQUIRE(mkfifo((place + "/fifo").c_str(), 0640) == 0);
  fs::create_symlink("nowhere", place + "/link");
  const timespec times[2] = {{1, 2}, {3, 4}};
  REQUIRE(utimensat(AT_FDCWD, place.c_str(), times, 0) == 0);
  const GroupFiles files = m.hold("a");
  struct stat info {};
  REQUIRE(stat((files.layers[1] + "/usr/lib/b").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 02750);
  CHECK(info.st_uid == 12);
  CHECK(info.st_gid == 34);
  CHECK(info.st_mtim.tv_sec == 3);
  CHECK(info.st_mtim.tv_nsec == 4);
  CHECK(fs::is_fifo(files.layers[1] + "/usr/lib/b/fifo"));
  CHECK(fs::read_symlink(files.layers[1] + "/usr/lib/b/link") == "nowhere");
  CHECK((fs::status(fs::path(files.layers[1]).parent_path()).permissions() &
         fs::perms::others_all) == fs::perms::none);
}

}  // namespace crane::checkpoint
