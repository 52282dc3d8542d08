// SPDX-License-Identifier: Apache-2.0
// GOAL    A server in its container is dumped while it runs, continues, and recovers elsewhere.
// METHOD  patient.c as the server: threads, processes, two users, shared mappings, files without a
//         name.  The test sends it requests through a file in the directory bound to /run/crane.
// CHECKS  State in memory and files, end status, CONTAINER-1..2 for a recovered server; every
//         refusal has a reason in words and leaves nothing.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "checkpoint/container.h"
#include "checkpoint/criu.h"
#include "patient.h"
#include "tests/unit/checkpoint/control_group.h"
#include "tests/unit/waiting.h"

using crane::Code;
using crane::checkpoint::CheckpointTimes;
using crane::checkpoint::Container;
using crane::checkpoint::PlainProcessTree;
using crane::checkpoint::ServerOptions;
namespace fs = std::filesystem;

namespace {

using crane::test::slurp;

constexpr int kLimitMs = 60'000;

bool dumps_work(const char* test) {
  auto can = Container::available();
  const auto criu = crane::checkpoint::find_criu();
  const char* why = !can ? can.error().what : !criu ? criu.error().what : nullptr;
  if (why != nullptr) std::printf("SKIPPED: %s: %s\n", test, why);
  return why == nullptr;
}

bool eventually(const std::function<bool()>& condition) {
  return crane::test::eventually(condition, kLimitMs);
}

bool dead(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

bool has(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

fs::path patient_program() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "unit/checkpoint/patient";
}

// The directories that CRIUs left on the machine; another CRIU may be running.
int criu_leftovers() {
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/tmp")) {
    if (entry.path().filename().string().rfind(".criu.", 0) == 0) ++found;
  }
  return found;
}

// A place for the server: a name, a directory, the directory for /run/crane, a log.
struct Place {
  std::string name, directory, shared, log;
  ServerOptions options;
  patient_segment* segment = nullptr;

  Place(const std::string& dir, const std::string& id)
      : name("crane.test." + fs::path(dir).filename().string() + "." + id),
        directory(dir + "/" + id),
        shared(dir + "/shared." + id),
        log(dir + "/log." + id) {
    options.name = name;
    options.host_name = "craned";
    options.directory = directory;
    options.command = {"/run/crane/patient"};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.binds = {{shared, "/run/crane"}};
    options.stdout_fd = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    options.stderr_fd = options.stdout_fd;
    fs::create_directories(shared);
    REQUIRE(mkfifo((shared + "/doorbell").c_str(), 0666) == 0);
    fs::copy(patient_program(), shared);
  }
  ~Place() {
    if (segment != nullptr) munmap(segment, PATIENT_SEGMENT_BYTES);
    ::close(options.stdout_fd);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  ServerOptions options_with(int criu_limit_ms) const {
    ServerOptions some = options;
    some.criu_limit_ms = criu_limit_ms;
    return some;
  }
  // A new segment, or a copy of another place's current one.
  void make_segment(const Place* other = nullptr) {
    const std::string path = shared + "/segment";
    if (other != nullptr) {
      fs::copy(other->shared + "/segment", path);
    } else {
      std::ofstream(path).close();
      fs::resize_file(path, PATIENT_SEGMENT_BYTES);
    }
    fs::permissions(path, fs::perms(0666));
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* memory = mmap(nullptr, PATIENT_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    REQUIRE(memory != MAP_FAILED);
    segment = static_cast<patient_segment*>(memory);
  }
  bool answered() const {
    return std::atomic_ref(segment->answered).load() == std::atomic_ref(segment->asked).load();
  }
  void send_command(unsigned word, unsigned argument = 0) const {
    segment->word = word;
    segment->argument = argument;
    ++std::atomic_ref(segment->asked);
  }
  unsigned ask(unsigned word) const {
    send_command(word);
    REQUIRE(eventually([this] { return answered(); }));
    return segment->answer;
  }
  bool left_nothing() const {
    for (const char* part : {"/rootfs", "/upper", "/work", "/criu", "/lxc.log"}) {
      if (fs::exists(directory + part)) return false;
    }
    if (fs::exists("/run/lxc/lock" + directory)) return false;
    if (has(slurp("/proc/self/mountinfo"), directory)) return false;
    for (const auto& entry : fs::directory_iterator("/sys/fs/cgroup")) {
      if (fs::exists(entry.path() / ("lxc.payload." + name))) return false;
      if (fs::exists(entry.path() / ("lxc.monitor." + name))) return false;
    }
    return true;
  }
};

struct Fixture {
  std::string dir, images, upper;
  int leftovers = criu_leftovers();
  int checkpoints = 0;

  Fixture() {
    char path[] = "/tmp/crane-dump-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    dir = path;
  }
  ~Fixture() { fs::remove_all(dir); }

  crane::Result<CheckpointTimes> dump(Container& server) {
    const std::string place = dir + "/checkpoint" + std::to_string(++checkpoints);
    images = place + "/images";
    upper = place + "/upper";
    fs::create_directories(place);
    REQUIRE(server.begin_checkpoint(images, upper).ok());
    CHECK(server.begin_checkpoint(images, upper).error().code == Code::kBusy);
    pollfd watch{server.event_fd(), POLLIN, 0};
    REQUIRE(poll(&watch, 1, kLimitMs) == 1);
    CHECK(server.wait(0).error().code == Code::kBusy);
    return server.checkpointed(0);
  }
};

crane::Result<pid_t> restore(Container& server, const Fixture& f) {
  if (auto begun = server.begin_restore(f.images, f.upper); !begun) return begun.error();
  return server.started(kLimitMs);
}

// A server that has started and changed its files once, and its dump.
struct Dumped : Fixture {
  Place first{dir, "r0"};
  Container original{first.options};

  Dumped() {
    first.make_segment();
    REQUIRE(original.start().ok());
    REQUIRE(first.ask(kPatientCheck) == kPatientAll);
    REQUIRE(first.ask(kPatientChange) == 1);
    const auto times = dump(original);
    INFO(original.reason());
    REQUIRE(times.ok());
    CHECK(times.value().dumping > 0);
    CHECK(times.value().copying > 0);
    CHECK(times.value().frozen >= times.value().memory);
    CHECK(times.value().memory > 0);
  }
};

pid_t parent_of(pid_t pid) {
  const std::string stat = slurp("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(") ");
  return name_end == std::string::npos ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

// The CRIU of the test's supervisor; 0: none.
pid_t our_criu() {
  for (const auto& process : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(process.path().filename().c_str());
    // With its own C library, the process has the loader's name.
    const std::string name = slurp(process.path() / "comm");
    if (pid <= 0 || (name != "criu\n" && !has(name, "ld-linux"))) continue;
    pid_t ancestor = pid;
    while (ancestor > 1 && ancestor != ::getpid()) ancestor = parent_of(ancestor);
    if (ancestor == ::getpid()) return pid;
  }
  return 0;
}

// A server whose dump is made in steps.
struct Stepped : Fixture {
  Place place{dir, "r0"};
  Container server;

  explicit Stepped(int criu_limit_ms = ServerOptions().criu_limit_ms)
      : server(place.options_with(criu_limit_ms)) {
    place.make_segment();
    REQUIRE(server.start().ok());
    REQUIRE(place.ask(kPatientCheck) == kPatientAll);
  }
  // Takes the reports; the server runs.
  bool busy() { return server.wait(0).error().code == Code::kBusy; }
  void prepare() {
    const std::string target = dir + "/checkpoint" + std::to_string(++checkpoints);
    images = target + "/images";
    upper = target + "/upper";
    fs::create_directories(target);
    // A cancelled CRIU may still be ending.
    REQUIRE(eventually([&] { return busy() && server.prepare_checkpoint(images, upper).ok(); }));
    CHECK(server.freeze(false).error().code == Code::kBusy);
    REQUIRE(eventually([&] { return busy() && server.prepared(); }));
    CHECK(server.prepare_checkpoint(images, upper).error().code == Code::kBusy);
    CHECK(place.ask(kPatientCheck) == kPatientAll);
  }
};

}  // namespace

TEST_CASE("dump: the server continues, and recovers elsewhere unchanged", "[dump]") {
  if (!dumps_work("dump: the server goes on")) return;
  Dumped f;
  Place second(f.dir, "r1"), third(f.dir, "r2");
  second.make_segment(&f.first);
  CHECK(f.first.ask(kPatientCheck) == kPatientAll);
  CHECK(f.first.ask(kPatientChange) == 1);
  CHECK(f.first.ask(kPatientCheck) == kPatientAll);
  CHECK(slurp(f.first.log) == "started\nchange 1\nchange 2\n");

  Container again(second.options);
  const auto pid = restore(again, f);
  INFO(again.reason());
  REQUIRE(pid.ok());
  CHECK(second.ask(kPatientCheck) == kPatientAll);
  CHECK(second.segment->changes == 1);
  CHECK(second.ask(kPatientChange) == 1);
  CHECK(second.ask(kPatientCheck) == kPatientAll);
  CHECK(slurp(second.log) == "change 2\n");
  CHECK(second.segment->child == f.first.segment->child);
  CHECK(f.first.ask(kPatientCheck) == kPatientAll);
  REQUIRE(f.original.destroy().ok());
  CHECK(f.first.left_nothing());

  // A recovered server can be dumped like any other, and a dump can be used twice.
  auto copy = f.dump(again);
  INFO(again.reason());
  REQUIRE(copy.ok());
  third.make_segment(&second);
  REQUIRE(again.destroy().ok());
  CHECK(dead(pid.value()));
  Container last(third.options);
  REQUIRE(restore(last, f).ok());
  CHECK(third.ask(kPatientCheck) == kPatientAll);
  CHECK(third.segment->changes == 2);
  third.send_command(kPatientExit, 42);
  auto status = last.wait(kLimitMs);
  REQUIRE(status.ok());
  CHECK(WIFEXITED(status.value()));
  CHECK(WEXITSTATUS(status.value()) == 42);
  REQUIRE(last.destroy().ok());
  CHECK(second.left_nothing());
  CHECK(third.left_nothing());
  CHECK(eventually([&] { return criu_leftovers() <= f.leftovers; }));
}

TEST_CASE("dump: in steps, at the caller's pace", "[dump]") {
  if (!dumps_work("dump: in steps")) return;
  const bool boost = GENERATE(false, true);
  Stepped f;
  f.prepare();
  const pid_t criu = our_criu();
  REQUIRE(criu > 0);
  const unsigned share = crane::test::weight_of(criu);  // 100: it has prepared for a long time
  if (crane::test::can_weigh()) CHECK((share == 30 || share == 100));
  REQUIRE(f.place.ask(kPatientChange) == 1);
  REQUIRE(f.server.freeze(boost).ok());
  // All is dumped, and the server is still paused: it does not answer requests.
  REQUIRE(eventually([&] { return fs::exists(f.upper); }));
  CHECK((crane::test::weight_of(criu) == 100 || crane::test::weight_of(criu) == 0));
  f.place.send_command(kPatientCheck);
  CHECK_FALSE(f.server.checkpointed(50).ok());
  CHECK_FALSE(f.place.answered());
  SECTION("the caller's copies succeed") {
    REQUIRE(f.server.thaw(true).ok());
    REQUIRE(f.server.checkpointed(kLimitMs).ok());
    REQUIRE(eventually([&] { return f.place.answered(); }));
    Place second(f.dir, "r1");
    second.make_segment(&f.place);
    second.segment->answered = second.segment->asked;
    Container again(second.options);
    const auto pid = restore(again, f);
    INFO(again.reason());
    REQUIRE(pid.ok());
    CHECK(second.ask(kPatientCheck) == kPatientAll);
  }
  SECTION("the caller's copies fail") {
    REQUIRE(f.server.thaw(false).ok());
    CHECK(f.server.checkpointed(kLimitMs).error().code == Code::kUnsupported);
    REQUIRE(eventually([&] { return f.place.answered(); }));
  }
  CHECK(f.place.ask(kPatientCheck) == kPatientAll);
  CHECK(eventually([&] { return crane::test::group_of(criu).empty(); }));
}

// Replaces CRIU in tests that need a slow one: goes through a dump or a restore without touching
// any process.
class StandIn {
 public:
  // `refuses`: the dump is refused.  It ends when the test has opened and closed `last_word`.
  explicit StandIn(bool refuses) {
    REQUIRE(mkdtemp(path_) != nullptr);
    REQUIRE(mkfifo(last_word().c_str(), 0600) == 0);
    std::ofstream(program()) << R"(#!/usr/bin/python3
import socket, sys
end = lambda: open(")" + last_word() +
                                    R"(").read()
if "swrk" not in sys.argv:
    end()
    sys.exit(1)
node = socket.socket(fileno=3)
node.recv(65536)
for place in (b"pre-dump", b"network-lock", b"post-dump"):
    name = b"\x0a" + bytes([len(place)]) + place
    node.send(b"\x08\x06\x10\x01\x2a" + bytes([len(name)]) + name)
    node.recv(4096)
node.send(b"\x08\x01\x10)" + (refuses ? "\\x00" : "\\x01") +
                                    "\")\nend()\n";
    fs::permissions(program(), fs::perms(0755));
    setenv("CRANE_CRIU", program().c_str(), 1);
  }
  ~StandIn() {
    unsetenv("CRANE_CRIU");
    fs::remove_all(path_);
  }
  void let_end() const { std::ofstream(last_word()).close(); }

 private:
  std::string program() const { return std::string(path_) + "/criu"; }
  std::string last_word() const { return std::string(path_) + "/last_word"; }
  char path_[32] = "/tmp/crane-dump-criu-XXXXXX";
};

TEST_CASE("dump: a CRIU that refuses gets time to end, also in a boost", "[dump]") {
  if (!dumps_work("dump: time to end")) return;
  const bool boost = GENERATE(true, false);
  const StandIn criu(true);
  Stepped f;
  f.prepare();
  REQUIRE(f.server.freeze(boost).ok());
  REQUIRE(f.server.thaw(false).ok());
  // Longer than CRIU runs before it gets a higher priority.
  CHECK(f.server.checkpointed(200).error().code == Code::kBusy);
  criu.let_end();
  CHECK(f.server.checkpointed(kLimitMs).error().code == Code::kUnsupported);
  CHECK(f.place.ask(kPatientCheck) == kPatientAll);
}

TEST_CASE("dump: CRIU's time limit does not run while the supervisor or the node copies",
          "[dump]") {
  if (!dumps_work("dump: time to copy")) return;
  const StandIn criu(false);
  Stepped f(4'000);
  f.prepare();
  REQUIRE(f.server.freeze(false).ok());
  CHECK(f.server.checkpointed(4'500).error().code == Code::kBusy);
  REQUIRE(f.server.thaw(true).ok());
  criu.let_end();
  CHECK(f.server.checkpointed(kLimitMs).ok());
  CHECK(f.place.ask(kPatientCheck) == kPatientAll);
}

TEST_CASE("dump: a node's request during a restore is not taken for its death", "[dump]") {
  if (!dumps_work("dump: asked during a restore")) return;
  Fixture f;
  Place place(f.dir, "r0");
  f.images = f.dir + "/images";
  f.upper = f.dir + "/kept";
  fs::create_directories(f.images);
  fs::create_directories(f.upper);
  std::ofstream(f.images + "/crane.stdio") << "\n\n\n";
  const StandIn criu(true);
  Container server(place.options);
  REQUIRE(server.begin_restore(f.images, f.upper).ok());
  REQUIRE(server.keep_files(f.dir + "/keep").ok());
  // Longer than CRIU may run without a node.
  CHECK(server.started(2'500).error().code == Code::kBusy);
  criu.let_end();
  CHECK(server.started(kLimitMs).error().code == Code::kSystem);
  CHECK_FALSE(has(server.reason(), "killed"));
}

TEST_CASE("dump: a cancelled dump leaves the server unchanged", "[dump]") {
  if (!dumps_work("dump: given up")) return;
  Stepped f;
  f.prepare();
  f.server.cancel_checkpoint();
  CHECK(f.server.checkpointed(0).error().code == Code::kBusy);
  CHECK(f.place.ask(kPatientChange) == 1);
  f.prepare();
  REQUIRE(f.server.freeze(true).ok());
  REQUIRE(f.server.thaw(true).ok());
  REQUIRE(f.server.checkpointed(kLimitMs).ok());
  CHECK(f.place.ask(kPatientCheck) == kPatientAll);
  f.prepare();  // the server's end does not wait for this dump
  REQUIRE(f.server.destroy().ok());
  CHECK(f.place.left_nothing());
  CHECK(eventually([&] { return criu_leftovers() <= f.leftovers; }));
}

TEST_CASE("dump: a recovered server dies with its node or its supervisor (CONTAINER-1)", "[dump]") {
  if (!dumps_work("dump: a recovered server dies")) return;
  const bool kill_node = GENERATE(true, false);
  Dumped f;
  Place second(f.dir, "r1");
  second.make_segment(&f.first);
  REQUIRE(f.original.destroy().ok());
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t node = fork();
  if (node == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // it must not remain when a check fails
    Container server(second.options);
    const auto pid = restore(server, f);
    const pid_t number = pid ? pid.value() : -1;
    (void)!write(ends[1], &number, sizeof number);
    for (;;) pause();
  }
  pid_t first = -1;
  REQUIRE(read(ends[0], &first, sizeof first) == sizeof first);
  ::close(ends[0]);
  ::close(ends[1]);
  REQUIRE(first > 0);
  CHECK(second.ask(kPatientCheck) == kPatientAll);
  if (!kill_node) {
    pid_t supervisor = -1;
    std::ifstream("/proc/" + std::to_string(node) + "/task/" + std::to_string(node) +
                  "/children") >>
        supervisor;
    REQUIRE(supervisor > 0);
    ::kill(supervisor, SIGKILL);
    CHECK(eventually([first] { return dead(first); }));
  }
  ::kill(node, SIGKILL);
  waitpid(node, nullptr, 0);
  CHECK(eventually([first] { return dead(first); }));
  if (kill_node) CHECK(eventually([&] { return second.left_nothing(); }));
  CHECK_FALSE(has(slurp("/proc/self/mountinfo"), f.dir));
}

TEST_CASE("dump: the reason of CRIU's refusal is named, and the server continues", "[dump]") {
  if (!dumps_work("dump: refused")) return;
  struct Case {
    unsigned word;
    const char* name;
  };
  const auto [word, name] =
      GENERATE(Case{kPatientUring, "io_uring"}, Case{kPatientQueue, "message queue"});
  Fixture f;
  Place place(f.dir, "r0");
  place.make_segment();
  Container server(place.options);
  REQUIRE(server.start().ok());
  if (place.ask(word) != 1) {
    std::printf("SKIPPED: dump: refused: no %s on this machine\n", name);
    return;
  }
  const auto times = f.dump(server);
  REQUIRE_FALSE(times.ok());
  CHECK(times.error().code == Code::kUnsupported);
  INFO(server.reason());
  CHECK(has(server.reason(), name));
  CHECK(std::count(server.reason().begin(), server.reason().end(), '\n') == 0);
  CHECK(place.ask(kPatientCheck) == kPatientAll);
  REQUIRE(server.destroy().ok());
  CHECK(place.left_nothing());
  CHECK(eventually([&] { return criu_leftovers() <= f.leftovers; }));
}

TEST_CASE("dump: an impossible restore is refused with a reason and leaves nothing", "[dump]") {
  if (!dumps_work("dump: restore refused")) return;
  Dumped f;
  Place second(f.dir, "r1");
  second.make_segment(&f.first);
  std::string reason;
  SECTION("no images at all") {
    fs::remove_all(f.images);
    reason = f.images;
  }
  SECTION("no upper directory") {
    fs::remove_all(f.upper);
    reason = f.upper;
  }
  SECTION("an empty directory of images") {
    fs::remove_all(f.images);
    fs::create_directory(f.images);
  }
  SECTION("an image is missing") {
    fs::remove(f.images + "/inventory.img");
    reason = "missing";
  }
  SECTION("an image is damaged") {
    std::fstream image(f.images + "/files.img", std::ios::in | std::ios::out | std::ios::binary);
    image << "damaged!";
    image.close();
    reason = "damaged";
  }
  SECTION("an image is cut short") {
    fs::resize_file(f.images + "/core-1.img", 20);
    reason = "CRIU";
  }
  SECTION("the shared file has another size") {
    fs::resize_file(second.shared + "/segment", 100);
    reason = "another size";
  }
  SECTION("a file of the upper directory is missing") {
    fs::remove_all(f.upper + "/var");
    reason = "CRIU";
  }
  Container server(second.options);
  const auto pid = restore(server, f);
  REQUIRE_FALSE(pid.ok());
  CAPTURE(server.reason(), pid.error().what);
  CHECK(has(server.reason(), reason));
  CHECK(std::string(pid.error().what) != "");
  fs::remove(second.directory + "/criu.log");
  CHECK(second.left_nothing());
  CHECK(eventually([&] { return criu_leftovers() <= f.leftovers; }));
  CHECK(f.first.ask(kPatientCheck) == kPatientAll);
}

TEST_CASE("dump: misuse gives distinct errors", "[dump]") {
  if (!dumps_work("dump: misuse")) return;
  SECTION("a second container of the same name, after a restore") {
    Dumped f;
    Place second(f.dir, "r1");
    second.make_segment(&f.first);
    Container again(second.options), twin(second.options);
    REQUIRE(restore(again, f).ok());
    CHECK(restore(twin, f).error().code == Code::kExists);
    CHECK(second.ask(kPatientCheck) == kPatientAll);
  }
  SECTION("paths that are not absolute; a server that does not run") {
    Fixture f;
    Place place(f.dir, "r0");
    place.make_segment();
    Container server(place.options);
    CHECK(server.begin_checkpoint("/a", "/b").error().code == Code::kNotFound);
    CHECK(server.begin_restore("a", "/b").error().code == Code::kBadArgument);
    CHECK(server.checkpointed(0).error().code == Code::kBusy);
    REQUIRE(server.start().ok());
    CHECK(server.begin_checkpoint("/a", "b").error().code == Code::kBadArgument);
  }
  SECTION("a plain process tree") {
    Fixture f;
    Place place(f.dir, "r0");
    place.options.command = {"/bin/sleep", "1000"};
    place.options.binds.clear();
    PlainProcessTree server(place.options);
    REQUIRE(server.start().ok());
    REQUIRE(server.begin_checkpoint(f.dir, f.dir + "/upper").ok());
    CHECK(server.checkpointed(kLimitMs).error().code == Code::kUnsupported);
    CHECK(server.wait(0).error().code == Code::kBusy);
    PlainProcessTree other(place.options);
    REQUIRE(other.begin_restore(f.dir, f.dir).ok());
    CHECK(other.started(kLimitMs).error().code == Code::kUnsupported);
  }
}
