// SPDX-License-Identifier: Apache-2.0
// GOAL    Every full table of the segment refuses, reports it in the log, and works again after a
//         release.
// METHOD  The test holds the turn and fills the tables, which a program could hardly do.
// CHECKS  The refusal; lines in the log, which do not grow with the refusals; earlier contents are
//         kept; a success after a release.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>

#include "dmt/base/bound.h"
#include "dmt/base/log.h"
#include "dmt/blocks.h"
#include "dmt/connections.h"
#include "dmt/datagrams.h"
#include "dmt/files.h"
#include "dmt/inodes.h"
#include "dmt/loopback.h"
#include "dmt/message_notices.h"
#include "dmt/posix_timers.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

// Collects the messages written during its lifetime.
class Log {
 public:
  Log() : fd_(memfd_create("log", MFD_CLOEXEC)), before_(message_fd()) {
    REQUIRE(fd_ >= 0);
    set_message_fd(fd_);
  }
  ~Log() {
    set_message_fd(before_);
    close(fd_);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  std::string text() const {
    std::string all(1 << 16, '\0');
    const ssize_t n = pread(fd_, all.data(), all.size(), 0);
    all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return all;
  }
  bool is_empty() const {
    struct stat status {};
    return fstat(fd_, &status) == 0 && status.st_size == 0;
  }
  std::size_t lines() const {
    const std::string all = text();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
  }

 private:
  const int fd_, before_;
};

struct Full : World {
  Full() { hold(); }
  std::uint32_t file(FileKind kind = FileKind::kEventFd) { return create_file(w, main, kind); }
};

constexpr int kRefusals = 100;
// Other tests may have reached the same bound, and it is reported only when refusals have doubled.
constexpr int kTriesMost = 1 << 22;
constexpr std::size_t kLinesMost = 7;

// `refused` tries it again and returns whether it was refused.
template <typename Refused>
void check_refused(Refused refused) {
  Log log;
  int done = 0;
  while (done < kTriesMost && (done < kRefusals || log.is_empty()) && refused()) ++done;
  CHECK(done >= kRefusals);
  CHECK(log.lines() >= 1);
  CHECK(log.lines() <= kLinesMost);
  CHECK(log.text().find("crane: limit: ") == 0);
}

}  // namespace

TEST_CASE("a bound is reported at the first refusal and whenever refusals have doubled",
          "[limits]") {
  Bound bound(12, "things", "another one fails (EAGAIN)");
  Log log;
  bound.count_refusal();
  CHECK(log.text() == "crane: limit: 12 things, another one fails (EAGAIN) (1 time)\n");
  for (int i = 1; i < 1'000'000; ++i) bound.count_refusal();
  CHECK(log.lines() == 20);
}

TEST_CASE("limits: open files", "[limits]") {
  Full f;
  std::uint32_t last = 0;
  for (std::uint32_t i = 1; i < kFilesMax; ++i) last = f.file();
  REQUIRE(last != 0);
  check_refused([&] { return f.file() == 0; });
  CHECK_FALSE(has_room_for_files(f.w, 1));
  drop_reference(f.w, last);
  drop_reference(f.w, last - 1);
  CHECK(has_room_for_files(f.w, 2));
  check_refused([&] { return !has_room_for_files(f.w, 3); });
  CHECK(f.file() == last - 1);
  CHECK(has_room_for_files(f.w, 1));
  CHECK(f.file() == last);
}

TEST_CASE("limits: a client for which no file is free is refused", "[limits][connections]") {
  Full f;
  const std::uint32_t listener = f.file(FileKind::kSocket);
  f.w.files[listener].listener.bound.port = 80;
  REQUIRE(start_listening(f.w, listener, 16));
  std::uint32_t last = 0;
  for (std::uint32_t next = 0; (next = f.file()) != 0;) last = next;
  f.outputs();
  f.connect(80);
  f.admit();
  const std::vector<Output> out = f.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kRefused);
  drop_reference(f.w, last);
  f.connect(80);
  f.admit();
  CHECK(accept_connection(f.w, listener) == last);
}

TEST_CASE("limits: watches of epolls and polls", "[limits]") {
  Full f;
  const std::uint32_t epoll = f.file(FileKind::kEpoll), file = f.file();
  std::uint32_t last = 0;
  for (std::uint32_t i = 1; i < kWatchesMax; ++i) {
    last = epoll_add(f.w, epoll, static_cast<int>(i), file, kIn, 0);
  }
  REQUIRE(last != 0);
  check_refused([&] { return epoll_add(f.w, epoll, 0, file, kIn, 0) == 0; });
  check_refused([&] { return watch_by_slot(f.w, f.main, file, kIn) == 0; });
  epoll_remove(f.w, last);
  CHECK(watch_by_slot(f.w, f.main, file, kIn) == last);
}

TEST_CASE("limits: timers, of which each process reserves one for its alarm", "[limits]") {
  Full f;
  std::vector<std::uint32_t> files;
  for (std::uint32_t i = kFirstSharedTimer; i < kTimersMax; ++i) {
    files.push_back(f.file(FileKind::kTimerFd));
  }
  REQUIRE(files.back() != 0);
  check_refused([&] { return f.file(FileKind::kTimerFd) == 0; });
  PosixTimer like{};
  like.counts = TimerClock::kVirtual;
  like.process = kMainProcess;
  CHECK(create_posix_timer(f.w, like) == kNoPosixTimer);
  std::vector<std::uint16_t> alarms;
  for (std::uint32_t p = 1; p < kProcessesMax; ++p) {
    alarms.push_back(create_timer(f.w, TimerKind::kProcess, p));
    REQUIRE(alarms.back() != kNone);
    arm_timer(f.w, alarms.back(), kOrigin + p);
  }
  CHECK(f.w.scheduler.timers_armed == kProcessesMax - 1);
  // The timer of a finished alarm is reserved for alarms again.
  for (const std::uint16_t timer : alarms) destroy_timer(f.w, timer);
  CHECK(f.file(FileKind::kTimerFd) == 0);
  CHECK(create_timer(f.w, TimerKind::kProcess, 7) == alarms[6]);
  drop_reference(f.w, files[3]);
  CHECK(create_posix_timer(f.w, like) != kNoPosixTimer);
}

TEST_CASE("limits: POSIX timers", "[limits]") {
  Full f;
  PosixTimer like{};
  like.counts = TimerClock::kProcess;
  like.process = kMainProcess;
  for (std::uint32_t i = 0; i < kPosixTimersMax; ++i) REQUIRE(create_posix_timer(f.w, like) == i);
  check_refused([&] { return create_posix_timer(f.w, like) == kNoPosixTimer; });
  delete_posix_timer(f.w, 5);
  CHECK(create_posix_timer(f.w, like) == 5);
}

TEST_CASE("limits: notifications of message queues", "[limits]") {
  Full f;
  MessageNotice like{};
  like.process = kMainProcess;
  for (like.object = 1; like.object <= kMessageNoticesMax; ++like.object) {
    REQUIRE(add_notice(f.w, like) != kNoNotice);
  }
  check_refused([&] { return add_notice(f.w, like) == kNoNotice; });
  remove_notice(f.w, 9, kMainProcess);
  CHECK(add_notice(f.w, like) == 8);
}

TEST_CASE("limits: processes and threads", "[limits]") {
  Full f;
  std::vector<Child> children;
  for (std::uint32_t i = 2; i < kProcessesMax; ++i) {
    children.push_back(create_process(f.w, kMainProcess));
    REQUIRE(children.back().process != kNoProcess);
  }
  check_refused([&] { return create_process(f.w, kMainProcess).process == kNoProcess; });
  abandon_process(f.w, children.back().process);
  std::uint16_t last = 0;
  for (Slot slot; (slot = create_slot(f.w, kMainProcess)) != kNoSlot;) last = value(slot);
  check_refused([&] { return create_slot(f.w, kMainProcess) == kNoSlot; });
  CHECK(create_process(f.w, kMainProcess).process == kNoProcess);  // a record is free, but no slot
  release_slot(f.w, Slot{last});
  CHECK(create_process(f.w, kMainProcess).process == children.back().process);
}

TEST_CASE("limits: if unread input fills the blocks, the client that sends more is reset",
          "[limits]") {
  Full f;
  const std::uint32_t listener = f.file(FileKind::kSocket);
  f.w.files[listener].listener.bound.port = 80;
  REQUIRE(start_listening(f.w, listener, 16));
  const std::uint64_t first = f.connect(80), second = f.connect(80);
  f.data(first, std::string(10'000, 'x'));
  f.admit();
  const std::uint32_t a = accept_connection(f.w, listener);
  const std::uint32_t b = accept_connection(f.w, listener);
  const std::uint32_t rest = kBlocksMax - 1 - f.w.scheduler.blocks_in_use.load();
  f.w.scheduler.blocks_in_use.fetch_add(rest);
  {
    Log log;
    f.data(second, std::string(10'000, 'y'));
    f.admit();
    CHECK(log.lines() == 1);
  }
  CHECK(f.w.files[b].connection.reset);
  CHECK(f.w.files[b].connection.socket_error == ECONNRESET);
  CHECK(f.w.scheduler.fenced.load() == 0);
  CHECK_FALSE(f.w.files[a].connection.reset);
  CHECK(readable_bytes(f.w, a) == 10'000);
  f.w.scheduler.blocks_in_use.fetch_sub(rest);
  f.data(first, std::string(10'000, 'x'));
  f.admit();
  CHECK(readable_bytes(f.w, a) == 20'000);
}

TEST_CASE("limits: loopback connections leave blocks for clients", "[limits]") {
  Full f;
  const std::uint32_t most = kBlocksMax / 8 * 7;
  CHECK(has_room_at_other_end(f.w, kReceiveWindow));
  f.w.scheduler.blocks_in_use.store(most - 2);
  CHECK(has_room_at_other_end(f.w, 100));
  check_refused([&] { return !has_room_at_other_end(f.w, kBlockBytes); });
  f.w.scheduler.blocks_in_use.store(0);
  CHECK(has_room_at_other_end(f.w, kBlockBytes));
}

TEST_CASE("limits: datagrams are dropped when the blocks are in use", "[limits]") {
  Full f;
  const std::uint32_t file = f.file(FileKind::kDatagram);
  char byte = 'd';
  const struct iovec one = {&byte, 1};
  DatagramHeader header{};
  header.size = 1;
  f.w.scheduler.blocks_in_use.store(kBlocksMax / 2);
  check_refused([&] {
    put_datagram(f.w, file, header, &one);
    return f.w.files[file].datagram.first == 0;
  });
  f.w.scheduler.blocks_in_use.store(0);
  put_datagram(f.w, file, header, &one);
  CHECK(f.w.files[file].datagram.first != 0);
}

TEST_CASE("limits: numbers of files, held numbers and paths", "[limits]") {
  Full f;
  std::uint64_t inode = 0;
  while (inode < kInodesMax) find_inode(f.w, 1, ++inode);
  check_refused([&] { return find_inode(f.w, 1, ++inode).number > kInodesMax; });
  for (std::uint64_t i = 0; i < kInodesHeldMax; ++i) hold_inode(f.w, find_inode(f.w, 1, inode - i));
  CHECK(f.w.inodes.held == kInodesHeldMax);
  InodeRecord& r = find_inode(f.w, 1, inode - kInodesHeldMax);
  check_refused([&] {
    hold_inode(f.w, r);
    return !r.held;
  });
  const std::string path(4000, 'p');
  for (std::uint32_t i = 0; i < kPathsBytes / 4000; ++i) remember_path(f.w, r, path);
  check_refused([&] {
    remember_path(f.w, r, path);
    return path_of(f.w, r) == path;
  });
}
