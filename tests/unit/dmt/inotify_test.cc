// SPDX-License-Identifier: Apache-2.0
// GOAL    An inotify instance gets the events that its watches request, in the order in which they
//         happened.
// METHOD  The test holds the turn, reports events and reads them.
// CHECKS  Numbers of watches (DMT-I1), which instance gets an event, equal events, blocks (DMT-I2),
//         interests (DMT-I3), limits.
#include "dmt/inotify.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "dmt/files.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr std::uint64_t kDirectory = 7, kFile = 9;

struct Instances : World {
  Instances() { hold(); }

  std::uint32_t create() {
    const std::uint32_t file = create_file(w, main, FileKind::kInotify);
    REQUIRE(file != 0);
    return file;
  }
  // Returns "watch mask[ name]" in hexadecimal.
  std::string next(std::uint32_t instance) {
    alignas(struct inotify_event) std::byte room[512];
    const std::size_t size = first_event_bytes(w, instance);
    if (size == 0) return "nothing";
    take_event(w, instance, room);
    struct inotify_event e;
    std::memcpy(&e, room, sizeof e);
    REQUIRE(size == sizeof e + e.len);
    REQUIRE(e.len % sizeof e == 0);
    char text[64];
    std::snprintf(text, sizeof text, "%d %x", e.wd, e.mask);
    const auto* const name = reinterpret_cast<const char*>(room + sizeof e);
    return e.len == 0 ? text : std::string(text) + " " + name;
  }
  void modify(std::string_view name) {
    report_file_event(w, {.directory = kDirectory, .file = kFile, .mask = IN_MODIFY, .name = name});
  }
  std::uint32_t blocks_in_use() const { return w.scheduler.blocks_in_use.load(); }
};

}  // namespace

TEST_CASE("watches are numbered from 1, and each instance has at most one per file", "[inotify]") {
  Instances s;
  const std::uint32_t one = s.create(), two = s.create();
  CHECK(add_file_watch(s.w, one, kDirectory, IN_CREATE) == 1);
  CHECK(add_file_watch(s.w, one, kFile, IN_MODIFY) == 2);
  CHECK(add_file_watch(s.w, one, kDirectory, IN_DELETE) == 1);
  CHECK(add_file_watch(s.w, two, kFile, IN_MODIFY) == 1);
  CHECK(add_file_watch(s.w, one, kFile, IN_MODIFY | IN_MASK_CREATE) == -EEXIST);
  CHECK(remove_file_watch(s.w, one, 1) == 0);
  CHECK(remove_file_watch(s.w, one, 1) == -EINVAL);
  CHECK(s.next(one) == "1 8000");
  CHECK(add_file_watch(s.w, one, kDirectory, IN_CREATE) == 3);  // no number is given twice
  CHECK(is_file_watched(s.w, kFile));
  CHECK_FALSE(is_file_watched(s.w, kFile + kFileWatchBuckets));
}

TEST_CASE("an event of a directory's watch has the name, one of the file's own watch has none",
          "[inotify]") {
  Instances s;
  const std::uint32_t i = s.create();
  add_file_watch(s.w, i, kFile, IN_ALL_EVENTS);
  add_file_watch(s.w, i, kDirectory, IN_ALL_EVENTS);
  s.modify("a");
  CHECK(s.next(i) == "2 2 a");  // the directory's event comes first
  CHECK(s.next(i) == "1 2");
  report_file_event(s.w, {.directory = kDirectory, .file = kFile, .mask = IN_CREATE, .name = "a"});
  CHECK(s.next(i) == "2 100 a");
  CHECK(s.next(i) == "nothing");
}

TEST_CASE("an event that equals the last queued one is not queued", "[inotify]") {
  Instances s;
  const std::uint32_t i = s.create();
  add_file_watch(s.w, i, kDirectory, IN_ALL_EVENTS);
  for (const char* name : {"a", "a", "aa", "a"}) s.modify(name);
  CHECK(s.next(i) == "1 2 a");
  CHECK(s.next(i) == "1 2 aa");
  CHECK(s.next(i) == "1 2 a");
  s.modify("a");  // an event that was read is no longer queued
  CHECK(s.next(i) == "1 2 a");
  CHECK(s.next(i) == "nothing");
}

TEST_CASE("masks are replaced or extended, and counted", "[inotify]") {
  Instances s;
  const std::uint32_t i = s.create();
  CHECK(s.w.scheduler.watched_events == 0);
  add_file_watch(s.w, i, kDirectory, IN_CREATE | IN_ONLYDIR);
  CHECK(s.w.scheduler.watched_events == IN_CREATE);
  add_file_watch(s.w, i, kDirectory, IN_MODIFY | IN_MASK_ADD);
  CHECK(s.w.scheduler.watched_events == (IN_CREATE | IN_MODIFY));
  add_file_watch(s.w, i, kDirectory, IN_DELETE);
  CHECK(s.w.scheduler.watched_events == IN_DELETE);
  add_file_watch(s.w, i, kFile, IN_DELETE);
  remove_file_watch(s.w, i, 1);
  CHECK(s.w.scheduler.watched_events == IN_DELETE);
  drop_reference(s.w, i);
  CHECK(s.w.scheduler.watched_events == 0);
  CHECK(s.w.scheduler.inotify_files == 0);
}

TEST_CASE("a oneshot watch ends with its event, and the watch of a file with the file",
          "[inotify]") {
  Instances s;
  const std::uint32_t i = s.create();
  add_file_watch(s.w, i, kDirectory, IN_MODIFY | IN_ONESHOT);
  add_file_watch(s.w, i, kFile, IN_DELETE_SELF);
  s.modify("a");
  s.modify("b");
  CHECK(s.next(i) == "1 2 a");
  CHECK(s.next(i) == "1 8000");
  report_file_end(s.w, kFile);
  CHECK(s.next(i) == "2 400");
  CHECK(s.next(i) == "2 8000");
  CHECK(s.next(i) == "nothing");
  CHECK_FALSE(is_file_watched(s.w, kFile));
}

TEST_CASE("a watch with IN_EXCL_UNLINK gets no events of unlinked names", "[inotify]") {
  Instances s;
  const std::uint32_t one = s.create(), two = s.create();
  add_file_watch(s.w, one, kDirectory, IN_MODIFY | IN_EXCL_UNLINK);
  add_file_watch(s.w, two, kDirectory, IN_MODIFY);
  report_file_event(s.w,
                    {.directory = kDirectory, .mask = IN_MODIFY, .name = "a", .is_unlinked = true});
  CHECK(s.next(one) == "nothing");
  CHECK(s.next(two) == "1 2 a");
}

TEST_CASE("events are stored in blocks that are freed", "[inotify]") {
  Instances s;
  const std::uint32_t i = s.create(), other = s.create();
  const std::uint32_t before = s.blocks_in_use();
  add_file_watch(s.w, i, kDirectory, IN_MODIFY);
  add_file_watch(s.w, other, kDirectory, IN_MODIFY);
  std::vector<std::string> names;
  std::size_t bytes = 0;
  for (std::size_t n = 0; n < 200; ++n) {
    names.push_back(std::string(1 + n * 7 % 255, 'a' + static_cast<char>(n % 26)));
    s.modify(names.back());
    bytes += 16 + (names.back().size() + 16) / 16 * 16;
  }
  CHECK(event_bytes(s.w.files[i]) == bytes);
  CHECK(readiness_of(s.w, i) == kIn);
  CHECK(s.blocks_in_use() > before + 10);
  for (const std::string& name : names) CHECK(s.next(i) == "1 2 " + name);
  CHECK(readiness_of(s.w, i) == 0);
  CHECK(event_bytes(s.w.files[i]) == 0);
  s.modify("again");
  CHECK(s.next(i) == "1 2 again");
  drop_reference(s.w, other);
  CHECK(s.blocks_in_use() == before);
}

TEST_CASE("an overflow is reported once, after the queued events", "[inotify]") {
  Instances s;
  const std::uint32_t i = s.create();
  add_file_watch(s.w, i, kDirectory, IN_MODIFY);
  for (std::uint32_t n = 0; n < kInotifyEventsMax + 5; ++n) s.modify(n % 2 == 0 ? "a" : "b");
  for (std::uint32_t n = 0; n < kInotifyEventsMax; ++n) {
    REQUIRE(s.next(i) == (n % 2 == 0 ? "1 2 a" : "1 2 b"));
  }
  CHECK(s.next(i) == "-1 4000");
  CHECK(s.next(i) == "nothing");
  s.modify("c");
  CHECK(s.next(i) == "1 2 c");
}

TEST_CASE("a full table of watches returns an error", "[inotify]") {
  Instances s;
  const std::uint32_t i = s.create();
  for (std::uint32_t n = 1; n < kFileWatchesMax; ++n) {
    REQUIRE(add_file_watch(s.w, i, n, IN_MODIFY) == static_cast<int>(n));
  }
  CHECK(add_file_watch(s.w, i, kFileWatchesMax, IN_MODIFY) == -ENOSPC);
  CHECK(add_file_watch(s.w, i, 1, IN_MODIFY) == 1);
  CHECK(remove_file_watch(s.w, i, 5) == 0);
  CHECK(add_file_watch(s.w, i, kFileWatchesMax, IN_MODIFY) == static_cast<int>(kFileWatchesMax));
  for (std::uint32_t n = 0; n < 3; ++n) CHECK(new_move_cookie(s.w) == n + 1);
}
