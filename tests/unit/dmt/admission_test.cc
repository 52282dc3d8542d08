// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica applies each entry whole and in order, or it stops. It never touches a segment
//         of another version.
// METHOD  One entry at a time; damage in a child process.
// CHECKS  stamps before effects, START, fences, attach states, the frozen layout (DMT-L2).
#include "dmt/admission.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/processes.h"
#include "dmt/segment.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

// Damages the oldest record of the sequence.
std::byte* oldest_record(World& world) { return world.w.sequence_data + Ring::kRecordHeader; }

int fate_of(const std::function<void(World&)>& damage) {
  return in_child([&] {
    World world;
    world.start(0);
    damage(world);
    admit_from_node(world.w);
  });
}

}  // namespace

TEST_CASE("the first START fixes the origin of time and randomness", "[admission]") {
  World world;
  world.hold();
  SchedulerState& s = world.w.scheduler;
  CHECK(s.now_ns == kOrigin);
  CHECK(s.wall_offset_ns == 1'700'000'000'000'000'000);
  CHECK(s.seed[0] == 42);
  CHECK(view_counter(s.view) == 1);
  s.seed[0] = 43;  // to see that a later one does not touch it
  world.start(kPlenty, 2);
  world.admit();
  CHECK(s.seed[0] == 43);
  CHECK(view_counter(s.view) == 2);
  CHECK(value(s.admitted.index) == 2);
  CHECK(s.applied_index.load() == 2);
}

TEST_CASE("virtual time is the newest stamp and never moves back", "[admission][time]") {
  World world;
  world.hold();
  world.time(500, kPlenty);
  world.admit();
  CHECK(world.w.scheduler.now_ns == kOrigin + 500);
  observe_time(world.w, kOrigin + 700);
  world.time(600, kPlenty);
  world.admit();
  CHECK(world.w.scheduler.now_ns == kOrigin + 700);
}

TEST_CASE("a deadline fires before the effect of an entry with a later stamp", "[admission]") {
  World world;
  world.w.processes[kMainProcess].dispositions[SIGUSR1] = Disposition::kHandler;
  WakeReason reason{};
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    reason = wait(world.w, me, 5, kOrigin + 100, 1);
    release_slot(world.w, me);
    leave(world.w, me);
  });
  world.start(kPlenty);
  // The signal would interrupt the wait if it had not timed out before.
  const SignalBody body{SIGUSR1, 0};
  world.push(EntryType::kSignal, kPlenty, &body, sizeof body, kOrigin + 100);
  world.drive();
  CHECK(reason == WakeReason::kTimeout);
}

TEST_CASE("connections survive a START that does not reset them", "[admission]") {
  World world;
  world.hold();
  const std::uint32_t listener = create_file(world.w, world.main, FileKind::kSocket);
  world.w.files[listener].listener.bound.port = 80;
  REQUIRE(start_listening(world.w, listener, 16));
  const std::uint64_t conn = world.connect(80);
  world.admit();
  const std::uint32_t file = accept_connection(world.w, listener);
  world.start(kPlenty, 2, false);
  world.data(conn, "goes on");
  world.admit();
  CHECK_FALSE(world.w.files[file].connection.reset);
  CHECK(readable_bytes(world.w, file) == 7);
}

TEST_CASE("a START that resets connections resets all older ones in connection order",
          "[admission]") {
  World world;
  world.hold();
  const std::uint32_t listener = create_file(world.w, world.main, FileKind::kSocket);
  world.w.files[listener].listener.bound.port = 80;
  REQUIRE(start_listening(world.w, listener, 16));
  for (int i = 0; i < 3; ++i) world.connect(80);
  world.admit();
  const std::uint32_t a = accept_connection(world.w, listener);
  const std::uint32_t b = accept_connection(world.w, listener);
  world.start(kPlenty, 2);
  const std::uint64_t young = world.connect(80);
  world.admit();
  for (const std::uint32_t file : {a, b}) {
    CHECK(world.w.files[file].connection.reset);
    CHECK(world.w.files[file].connection.socket_error == ECONNRESET);
    CHECK((world.w.files[file].readiness & (kErr | kHup)) == (kErr | kHup));
  }
  const std::uint32_t c = accept_connection(world.w, listener);  // reset while it was queued
  CHECK(world.w.files[c].connection.reset);
  const std::uint32_t d = accept_connection(world.w, listener);
  CHECK(value(world.w.files[d].connection.conn) == young);
  CHECK_FALSE(world.w.files[d].connection.reset);
}

TEST_CASE("a damaged sequence fences the replica", "[admission][fence]") {
  CHECK(fate_of([](World&) {}) == 0);
  SECTION("a bit of the body") {
    CHECK(fate_of([](World& world) {
            oldest_record(world)[sizeof(SequenceHeader) + 3] ^= std::byte{4};
          }) == kFenced);
  }
  SECTION("a bit of the header: the grant") {
    CHECK(fate_of([](World& world) {
            oldest_record(world)[offsetof(SequenceHeader, grant)] ^= std::byte{1};
          }) == kFenced);
  }
  SECTION("a wrong body length") {
    CHECK(fate_of([](World& world) {
            oldest_record(world)[offsetof(SequenceHeader, body_bytes)] ^= std::byte{1};
          }) == kFenced);
  }
  SECTION("an unknown type") {
    CHECK(fate_of([](World& world) { world.push(static_cast<EntryType>(99), kPlenty); }) ==
          kFenced);
  }
  SECTION("a body that is too short for its type") {
    CHECK(fate_of([](World& world) {
            const std::uint32_t half = 1;
            world.push(EntryType::kWindow, kPlenty, &half, sizeof half);
          }) == kFenced);
  }
}

TEST_CASE("each admission reports its log index, clock and hash, in order with the outputs",
          "[admission]") {
  World world;
  world.hold();
  put_turn(world.w, world.main, 7, 0, false);
  const std::uint64_t conn = world.connect(8080);  // refused: no socket listens
  world.admit();
  const auto out = world.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kRefused);
  const auto& points = world.points();
  REQUIRE(points.size() == 2);
  CHECK(points[0].index == 1);
  CHECK(points[0].clock == 0);
  CHECK(points[1].index == conn);
  CHECK(points[1].clock == 1);
  CHECK(points[1].hash == world.w.scheduler.hash);
  CHECK(points[1].hash != points[0].hash);
}

TEST_CASE("an entry is never admitted twice", "[admission][fence]") {
  CHECK(in_child([] {
          World world;
          world.hold();
          // The same bytes again, as a faulty node would push them.
          Ring ring(world.w.header.sequence, reinterpret_cast<std::byte*>(&world.w));
          world.w.header.sequence.read_position.store(0);
          admit_next(world.w);
        }) == 128 + SIGABRT);
}

TEST_CASE("a thread of a fenced replica does not continue", "[admission][fence]") {
  CHECK(in_child([] {
          World world;
          world.hold();
          world.w.scheduler.fenced.store(1);
          put_turn(world.w, world.main, 1, 0, true);  // the fast path: one thread
          const Slot other = create_slot(world.w, kMainProcess);
          (void)other;
          put_turn(world.w, world.main, 1, 0, true);
          ::_exit(1);
        }) == kFenced);
}

// --- the segment ---------------------------------------------------------------------------------

namespace {

class SegmentFile {
 public:
  SegmentFile() : fd_(static_cast<int>(::memfd_create("segment", MFD_CLOEXEC))) {
    REQUIRE(fd_ >= 0);
  }
  ~SegmentFile() {
    if (memory_ != nullptr) ::munmap(memory_, sizeof(Layout));
    ::close(fd_);
  }
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  void resize(std::size_t size) { REQUIRE(::ftruncate(fd_, static_cast<off_t>(size)) == 0); }
  Layout& initialise() {
    resize(sizeof(Layout));
    memory_ = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    REQUIRE(memory_ != MAP_FAILED);
    Configuration c{};
    c.mode = Mode::kSerial;
    c.admission = Admission::kGrant;
    return initialise_segment(memory_, c);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
  void* memory_ = nullptr;
};

}  // namespace

TEST_CASE("attach reports the state of an invalid segment", "[segment]") {
  SegmentFile file;
  CHECK(attach_segment(-1).state == Attach::kAbsent);
  CHECK(attach_segment(file.fd()).state == Attach::kTooSmall);
  file.resize(sizeof(SegmentHeader));
  CHECK(attach_segment(file.fd()).state ==
        Attach::kCreating);  // DMT-L2: the version is stored last
  Layout& w = file.initialise();
  const Attached ready = attach_segment(file.fd());
  REQUIRE(ready.state == Attach::kReady);
  CHECK(ready.layout->header.configuration.mode == Mode::kSerial);
  w.scheduler.clock = 99;
  CHECK(ready.layout->scheduler.clock == 99);  // the same memory
  ::munmap(ready.layout, sizeof(Layout));

  w.header.version.store(kLayoutVersion + 1);
  const Attached other = attach_segment(file.fd());
  CHECK(other.state == Attach::kWrongVersion);
  CHECK(other.found_version == kLayoutVersion + 1);
  w.header.version.store(kLayoutVersion);
  w.header.magic ^= 1;
  CHECK(attach_segment(file.fd()).state == Attach::kWrongVersion);
  w.header.magic ^= 1;
  w.header.total_bytes -= 1;
  CHECK(attach_segment(file.fd()).state == Attach::kWrongVersion);
  w.header.total_bytes += 1;
  file.resize(sizeof(Layout) - 4096);
  CHECK(attach_segment(file.fd()).state == Attach::kTooSmall);
}

TEST_CASE("the layout of version 27 is frozen", "[segment]") {
  // A server process and its node may come from different builds. A change of one of these numbers
  // requires a new kLayoutVersion, which is also named in this test.
  REQUIRE(kLayoutVersion == 27);
  CHECK(sizeof(SegmentHeader) == 1024);
  CHECK(sizeof(SlotRecord) == 128);
  CHECK(sizeof(ProcessRecord) == 256);
  CHECK(sizeof(TimerRecord) == 24);
  CHECK(sizeof(FileRecord) == 320);
  CHECK(sizeof(WatchRecord) == 56);
  CHECK(sizeof(SchedulerState) == 1152);
  CHECK(sizeof(Layout) == 233623552);
  CHECK(offsetof(Layout, scheduler) == 1024);
  CHECK(offsetof(Layout, slots) == 284800);
  CHECK(offsetof(Layout, processes) == 809088);
  CHECK(offsetof(Layout, files) == 1136768);
  CHECK(offsetof(Layout, watches) == 22108288);
  CHECK(offsetof(Layout, descriptors) == 29448320);
  CHECK(offsetof(Layout, blocks) == 46227456);
  CHECK(offsetof(Layout, sequence_data) == 180445184);
  CHECK(offsetof(Layout, output_data) == 197222400);
  CHECK(offsetof(Layout, unhooked) == 214220864);
  CHECK(offsetof(Layout, unsupported) == 214225536);
  CHECK(offsetof(Layout, inodes) == 214225560);
  CHECK(sizeof(InodeRecord) == 64);
  CHECK(sizeof(FileWatch) == 32);
  CHECK(offsetof(Layout, turns) == 231805824);
  CHECK(offsetof(Layout, semaphore_undos) == 231953280);
  CHECK(offsetof(Layout, soft_barrier_points) == 231965568);
  CHECK(sizeof(SoftBarrierPoint) == 96);
  CHECK(sizeof(TerminalRecord) == 4776);
  CHECK(offsetof(Layout, terminals) == 232039680);
  CHECK(sizeof(NameRecord) == 1352);
  CHECK(offsetof(Layout, names) == 233267112);
  CHECK(sizeof(TickPoints) == 1544);
  CHECK(offsetof(Layout, tick_points) == 233613248);
  CHECK(sizeof(EarlyPoints) == 520);
  CHECK(offsetof(Layout, early_points) == 233614792);
  CHECK(sizeof(SliceReport) == 280);
  CHECK(offsetof(Layout, slice_report) == 233615360);
  CHECK(offsetof(Layout, socket_directories) == 233615640);
  CHECK(offsetof(Configuration, branch_event) == 132);
  CHECK(offsetof(Configuration, slice_ps) == 136);
  CHECK(offsetof(SchedulerState, node_asleep) == 384);
  CHECK(offsetof(SchedulerState, fenced) == 436);
  CHECK(offsetof(SchedulerState, restores) == 1088);
}
