// SPDX-License-Identifier: Apache-2.0
// GOAL    The doctor reports what a machine lacks, what that costs, and whether a group can run.
// METHOD  Made-up machines and made-up answers of nodes; what it tries for real is tried where
//         possible.
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/control/answers.h"
#include "runtime/launcher/doctor/checks.h"
#include "runtime/launcher/doctor/finding.h"
#include "runtime/launcher/doctor/group_checks.h"
#include "runtime/launcher/doctor/scratch.h"
#include "runtime/launcher/options.h"
#include "runtime/setup/preflight.h"
#include "tests/unit/waiting.h"

using namespace crane::launcher;
using crane::Done;
using crane::Outcome;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr std::uint64_t kMiB = 1ULL << 20, kGiB = 1ULL << 30;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The errors of the preflight, as the preflight makes them.
Outcome no_root() {
  return failure(Status::kNoRoot, "cannot make containers", "LXC", "no root privilege",
                 "run as root, or add --no-container");
}
Outcome no_lxc() {
  return failure(Status::kNoLxc, "cannot make containers", "liblxc.so.1", "LXC is not installed",
                 "install liblxc1 and liblxc-common, or add --no-container");
}

Trial good_trial() {
  Trial trial;
  trial.tried = true;
  trial.criu = "/usr/sbin/criu";
  trial.criu_version = "4.1";
  trial.dump_us = 80'000;
  trial.restore_us = 120'000;
  return trial;
}

Kernel kernel_of(const char* release, int major, int minor) {
  Kernel kernel;
  kernel.release = release;
  kernel.major = major;
  kernel.minor = minor;
  return kernel;
}

Room room_of(std::uint64_t free_bytes) {
  Room room;
  room.path = room.there = "/srv/groups";
  room.type = "ext4";
  room.free_bytes = free_bytes;
  room.free_inodes = 1'000'000;
  return room;
}

// Checks that a limitation comes with its cost and its remedy.
void check_limited(const Finding& f, Verdict verdict, const std::string& seen,
                   const std::string& costs, const std::string& mend) {
  INFO(f.area << ": " << f.seen << " / " << f.costs << " / " << f.mend);
  CHECK(f.verdict == verdict);
  CHECK(has(f.seen, seen));
  CHECK(has(f.costs, costs));
  CHECK(has(f.mend, mend));
}

void check_well(const Finding& f, const std::string& seen) {
  INFO(f.area << ": " << f.seen);
  CHECK(f.verdict == Verdict::kOk);
  CHECK(has(f.seen, seen));
  CHECK(f.costs.empty());
  CHECK(f.mend.empty());
}

Json node_of(int replica) {
  return {{"replica", replica},
          {"state", "ok"},
          {"unhooked_calls", 0},
          {"recovery", {{"tier", "criu"}, {"why", ""}, {"refused", ""}}},
          {"checkpoint", {{"taken", 2}, {"why_not", ""}, {"none_because", ""}}},
          {"unsupported", {{"datagrams", 0}, {"udp_ports", 0}, {"sandboxes", 0}}},
          {"log_pages", nullptr}};
}
Json group_of(std::vector<Json> nodes) {
  return {{"group", "shop"}, {"health", "well"}, {"not_serving", nullptr}, {"replicas", nodes}};
}

const Finding* find(const std::vector<Finding>& all, const std::string& area) {
  for (const Finding& f : all) {
    if (f.area == area) return &f;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("doctor: verdict, first line and exit status follow the most serious finding",
          "[doctor]") {
  Report report{kThisMachine, {{"clock", Verdict::kOk, "synchronised", "", ""}}};
  CHECK(report.verdict() == Verdict::kOk);
  CHECK(report.headline() == "this machine can run groups; all is well");
  report.findings.push_back({"disk", Verdict::kLimited, "slow", "answers wait", "another disk"});
  CHECK(static_cast<int>(report.verdict()) == 1);
  CHECK(report.headline() == "this machine can run groups; 1 thing is limited");
  report.findings.push_back({"RDMA", Verdict::kLimited, "no fence", "no verbs", "tcp"});
  CHECK(report.headline() == "this machine can run groups; 2 things are limited");
  report.findings.push_back({"parts", Verdict::kMissing, "none", "all", "make"});
  CHECK(static_cast<int>(report.verdict()) == 2);
  CHECK(report.headline() ==
        "this machine cannot run a group; 1 thing is missing; 2 things are limited");
  report.subject = "shop";
  CHECK(report.headline() == "shop cannot run here; 1 thing is missing; 2 things are limited");
  const std::string text = report.text();
  CHECK(text.rfind(report.headline() + "\n\n", 0) == 0);
  CHECK(has(text, "  limited  disk   slow\n"));
  CHECK(has(text, "costs: answers wait\n"));
  CHECK(has(text, "mend: another disk\n"));
}

TEST_CASE("doctor: its JSON matches the schema", "[doctor]") {
  Report report{kThisMachine, {check_processors(2, {}), check_clock({})}};
  const auto documents = crane::control::documents();
  const auto document = std::find_if(documents.begin(), documents.end(), [](const auto& one) {
    return std::string("doctor") == one.name;
  });
  REQUIRE(document != documents.end());
  CHECK(crane::control::differs(report.json(), document->fields).empty());
  CHECK(report.json()["findings"][0]["measures"]["processors"] == 2);
}

TEST_CASE("doctor: without root, LXC or a startable container it suggests --no-container",
          "[doctor]") {
  const Privileges root;
  const Privileges user{no_root(), {}};
  check_well(check_privileges(root), "root");
  check_well(check_container(root, Done{}, good_trial()), "started");
  check_limited(check_privileges(user), Verdict::kLimited, "no root", "--no-container", "root");
  check_limited(check_container(user, Done{}, {}), Verdict::kLimited, "no root privilege",
                "--no-container", "run as root");
  check_limited(check_container(root, no_lxc(), {}), Verdict::kLimited, "LXC is not installed",
                "--no-container", "install liblxc1 and liblxc-common");
  Trial trial = good_trial();
  trial.container_problem = "mount the overlay: Operation not permitted";
  check_limited(check_container(root, Done{}, trial), Verdict::kLimited, "mount the overlay",
                "--no-container", "privileged");
  const Privileges some{Done{}, {"CAP_NET_ADMIN", "CAP_SYS_PTRACE"}};
  check_limited(check_privileges(some), Verdict::kLimited, "without CAP_NET_ADMIN, CAP_SYS_PTRACE",
                "no virtual address, clients are disconnected", "give them");
  const Privileges no_mounts{Done{}, {"CAP_SYS_ADMIN"}};
  check_limited(check_privileges(no_mounts), Verdict::kMissing, "without CAP_SYS_ADMIN",
                "no groups of root", "another user than root");
}

TEST_CASE("doctor: without a working CRIU a lost replica runs all inputs again", "[doctor]") {
  const Privileges root;
  check_well(check_checkpoints(root, Done{}, good_trial()), "dumped a process in 80 ms");
  Trial none;
  none.criu_problem = "no CRIU is installed";
  check_limited(check_checkpoints(root, Done{}, none), Verdict::kLimited, "no CRIU is installed",
                "runs all inputs again", "get_criu.sh");
  Trial refuses = good_trial();
  refuses.criu_problem = "dump: CRIU: Can't dump task 7";
  check_limited(check_checkpoints(root, Done{}, refuses), Verdict::kLimited,
                "CRIU 4.1 (/usr/sbin/criu) refuses: dump", "runs all inputs again", "get_criu.sh");
  for (const auto& [problem, remedy] :
       {std::pair("dump: a program on an overlay of an overlay", "CRANE_ROOT"),
        std::pair("restore: settings below /proc/sys are read-only here", "privileged"),
        std::pair("restore: the capability sys_time is missing here", "add the capability")}) {
    refuses.criu_problem = problem;
    check_limited(check_checkpoints(root, Done{}, refuses), Verdict::kLimited, problem,
                  "runs all inputs again", remedy);
  }
  check_limited(check_checkpoints({no_root(), {}}, Done{}, good_trial()), Verdict::kLimited,
                "no container", "runs all inputs again", "make containers work");
  Trial closed = good_trial();
  closed.container_problem = "mount";
  CHECK(has(check_checkpoints(root, Done{}, closed).seen, "no container"));
}

TEST_CASE("doctor: missing abilities of the kernel are reported with their cost", "[doctor]") {
  check_well(check_kernel(kernel_of("6.1.0-18-amd64", 6, 1)), "Linux 6.1.0-18-amd64");
  check_limited(check_kernel(kernel_of("5.15.0", 5, 15)), Verdict::kLimited, "5.15.0", "RDMA",
                "6.1");
  check_limited(check_kernel(kernel_of("5.10.0", 5, 10)), Verdict::kLimited, "5.10.0",
                "packing of checkpoints", "6.1");
  Kernel kernel = kernel_of("5.10.0", 5, 10);
  check_well(check_trap(kernel), "works");
  check_well(check_addresses(kernel), "off");
  check_well(check_taking(kernel), "sockets");
  kernel.trap_error = EINVAL;
  kernel.addresses_error = EPERM;
  kernel.take_error = EPERM;
  check_limited(check_trap(kernel), Verdict::kLimited, "refused: Invalid argument", "--strict",
                "5.11");
  check_limited(check_addresses(kernel), Verdict::kLimited, "not permitted", "diverge", "seccomp");
  check_limited(check_taking(kernel), Verdict::kLimited, "not permitted", "disconnected", "yama");
  kernel.take_error = ENOSYS;
  CHECK(has(check_taking(kernel).mend, "5.6"));
}

TEST_CASE("doctor: processors, descriptors, locked memory and clock have limits", "[doctor]") {
  check_well(check_processors(3, {}), "3 for 3");
  check_limited(check_processors(2, {}), Verdict::kLimited, "2 for 3", "share", "give it 3");
  check_well(check_descriptors({{}, 20'000}), "20000");
  check_well(check_descriptors({{}, {}}), "without limit");
  check_limited(check_descriptors({{}, 1024}), Verdict::kLimited, "1024", "clients", "ulimit -Hn");

  const Devices device{{{"mlx5_0", "mlx5_core", "", 100, 0}}, ""};
  check_well(check_memory_lock({8 * kMiB, {}}, {}, {}), "8 MiB; only RDMA");
  check_well(check_memory_lock({{}, {}}, device, {}), "without limit");
  check_limited(check_memory_lock({8 * kMiB, {}}, device, {}), Verdict::kLimited, "8 MiB",
                "register", "ulimit -l");

  check_well(check_clock({true, 3'000, "tsc"}), "at most 3 ms wrong, source tsc");
  check_limited(check_clock({false, 16'000'000, "tsc"}), Verdict::kLimited, "not synchronised",
                "date", "chrony");
  check_limited(check_clock({false, 0, "hpet"}), Verdict::kLimited, "hpet",
                "may be wrong; each look at the clock", "time; use tsc");
  check_limited(check_clock({true, 0, "hpet"}), Verdict::kLimited, "hpet", "system call", "tsc");

  check_well(check_control_groups({2, {"cpu", "memory"}, true}, true), "version 2: cpu, memory");
  check_well(check_control_groups({2, {"memory"}, false}, false), "version 2");
  check_limited(check_control_groups({2, {"memory"}, false}, true), Verdict::kLimited, "weight",
                "packing", "subtree_control");
  check_limited(check_control_groups({}, true), Verdict::kLimited, "none", "LXC", "mount");
}

TEST_CASE("doctor: an RDMA device whose fence lets a write pass is not trusted", "[doctor]") {
  check_well(check_devices({}), "no device");
  check_well(
      check_devices(parse_devices(
          R"([{"device":"rxe1","driver":"rxe","problem":"","rounds":100,"late_rounds":0}])")),
      "rxe1 (rxe): fence tested, 0 of 100");
  check_limited(check_devices({{{"rxe1", "rxe", "", 12, 1}}, ""}), Verdict::kLimited,
                "1 of 12 rounds had late writes", "verbs", "tcp");
  check_limited(check_devices({{{"mlx5_0", "", "its port is down", 0, 0}}, ""}), Verdict::kLimited,
                "mlx5_0: its port is down", "verbs", "port");
  CHECK(has(check_devices(parse_devices("")).seen, "unknown"));
}

TEST_CASE("doctor: a port in use, and disk space, decide whether a group can run", "[doctor]") {
  check_well(check_port({80, Done{}, false}), "free");
  const Outcome taken = failure(Status::kPortTaken, "cannot listen on port", "80",
                                "Address already in use", "stop its owner");
  check_limited(check_port({80, taken, false}), Verdict::kMissing, "Address already in use",
                "clients", "stop its owner");
  check_well(check_port({80, taken, true}), "this group");

  check_well(check_directory(room_of(kGiB), {}, false), "/srv/groups (ext4): 1024 MiB free");
  check_limited(check_directory(room_of(kMiB), {}, false), Verdict::kMissing, "1 MiB free, 8 MiB",
                "full", "free space");
  check_limited(check_directory(room_of(kMiB), {}, true), Verdict::kLimited, "1 MiB free", "full",
                "free space");
  Room room = room_of(kGiB);
  room.free_inodes = 10;
  check_limited(check_directory(room, {}, false), Verdict::kLimited, "10 inodes", "checkpoints",
                "remove files");
  room.free_inodes = {};
  check_well(check_directory(room, {}, false), "1024 MiB");
  room.write_error = EACCES;
  check_limited(check_directory(room, {}, false), Verdict::kMissing, "Permission denied",
                "no group", "--dir");
  check_limited(check_directory(room, {}, true), Verdict::kLimited, "Permission denied", "--data",
                "--dir");
  room = room_of(kGiB);
  room.in_memory = true;
  check_well(check_directory(room, {}, false), "1024 MiB");
  check_limited(check_directory(room, {}, true), Verdict::kLimited, "1024", "memory", "--dir");

  // 3 replicas of 64 MiB each, and a log of 128 MiB.
  check_well(check_shared_memory(room_of(kGiB), {}), "576 MiB needed");
  check_limited(check_shared_memory(room_of(300 * kMiB), {}), Verdict::kMissing, "300 MiB free",
                "no such group", "--ring-mb");
  check_limited(check_shared_memory(room_of(100 * kMiB), {}), Verdict::kMissing, "100 MiB free",
                "no such group", "--shm-size");
  Wanted small;
  small.replicas = 1;
  small.ring_mb = 16;
  check_well(check_shared_memory(room_of(100 * kMiB), small), "80 MiB needed");
  Wanted running;
  running.runs = true;
  CHECK(check_shared_memory(room_of(100 * kMiB), running).verdict == Verdict::kLimited);
  check_limited(check_copies(room_of(kGiB), {}, 2 * kGiB), Verdict::kLimited, "6144 MiB needed",
                "no room", "free space");
}

TEST_CASE("doctor: a quota limits the available space", "[doctor]") {
  Room room = room_of(100 * kGiB);
  room.quotas = {{20 * kMiB, 15 * kMiB, "of this user"}};
  CHECK(room.usable_bytes() == 5 * kMiB);
  check_limited(check_directory(room, {}, false), Verdict::kMissing,
                "quota of this user: 15 MiB of 20 MiB", "full", "free space");
  room.quotas[0].used = 30 * kMiB;
  CHECK(room.usable_bytes() == 0);
}

TEST_CASE("doctor: a slow disk limits the work that waits for it", "[doctor]") {
  check_well(check_fsync({50, 900, 4'000, 0}, room_of(kGiB)), "take 900 us now (median of 50");
  check_limited(check_fsync({50, 9'000, 40'000, 0}, room_of(kGiB)), Verdict::kLimited, "9000 us",
                "--durability disk", "disk");
  check_limited(check_fsync({0, 0, 0, EROFS}, room_of(kGiB)), Verdict::kLimited, "Read-only",
                "--durability disk", "--dir");
}

TEST_CASE("doctor: it reports the missing parts of a group", "[doctor]") {
  const auto all = check_group(group_of({node_of(0), node_of(1)}));
  for (const Finding& f : all) CHECK(f.verdict == Verdict::kOk);
  CHECK(find(all, "recovery") != nullptr);
  CHECK(find(all, "durability") == nullptr);  // no node reports it
  Json on_disk = group_of({node_of(0)});
  on_disk["durability"] = "disk";
  CHECK(has(find(check_group(on_disk), "durability")->seen, "outlives all replicas"));
  Json early = node_of(0);
  early["recovery"]["why"] = "no checkpoint was taken yet";
  CHECK(has(find(check_group(group_of({early})), "recovery")->seen, "no checkpoint was taken yet"));

  Json refused = node_of(1), passed = node_of(0), vain = node_of(0), pages = node_of(0);
  refused["recovery"]["refused"] = "a process has an io_uring";
  check_limited(*find(check_group(group_of({node_of(0), refused})), "recovery"), Verdict::kLimited,
                "io_uring", "runs all inputs again", "--restart-checkpoints");
  Json plain = node_of(0);
  plain["checkpoint"]["none_because"] = "the server runs without a container";
  check_limited(*find(check_group(group_of({plain})), "recovery"), Verdict::kLimited,
                "without a container", "runs all inputs again", "container");
  Json bare = refused;
  bare["checkpoint"]["none_because"] = "no CRIU is installed";
  check_limited(*find(check_group(group_of({bare})), "recovery"), Verdict::kLimited,
                "no CRIU is installed", "runs all inputs again", "get_criu.sh");
  CHECK(find(check_group(group_of({bare})), "recovery")->mend.find("--restart") ==
        std::string::npos);
  vain["checkpoint"] = {{"taken", 0}, {"why_not", "it was busy"}, {"none_because", ""}};
  check_limited(*find(check_group(group_of({vain})), "recovery"), Verdict::kLimited,
                "gave up a checkpoint: it was busy", "until one is taken", "checkpoint now");
  passed["unhooked_calls"] = 3;
  passed["unhooked"] = {{{"call", "futex"},
                         {"object", "/bin/x"},
                         {"offset", "0x12"},
                         {"outcome", "passed"},
                         {"count", 3}}};
  check_limited(*find(check_group(group_of({passed})), "unhooked calls"), Verdict::kLimited,
                "futex at /bin/x+0x12", "differ", "--strict");
  passed["unhooked"][0]["outcome"] = "scheduled";
  CHECK(find(check_group(group_of({passed})), "unhooked calls")->verdict == Verdict::kOk);
  passed["unhooked_calls"] = nullptr;
  CHECK(find(check_group(group_of({passed})), "unhooked calls")->verdict == Verdict::kLimited);
  vain["unsupported"]["datagrams"] = 7;
  CHECK(has(find(check_group(group_of({vain})), "asked in vain")->seen, "7 datagrams"));
  pages["log_pages"] = "4 KiB";
  check_limited(*find(check_group(group_of({pages})), "log pages"), Verdict::kLimited, "4 KiB",
                "RDMA", "6.1");
  pages["log_pages"] = "2 MiB";
  CHECK(find(check_group(group_of({pages})), "log pages")->verdict == Verdict::kOk);

  Json degraded = group_of({node_of(0)});
  degraded["health"] = "not serving";
  degraded["not_serving"] = "a deadlock";
  check_limited(*find(check_group(degraded), "group"), Verdict::kLimited, "a deadlock", "clients",
                "status");
  const auto stopped = check_group(group_of({}));
  REQUIRE(stopped.size() == 1);
  CHECK(stopped[0].verdict == Verdict::kOk);
}

TEST_CASE("doctor: the real trials work, and leave nothing", "[doctor]") {
  char name[] = "/tmp/crane-doctor-test-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const std::string dir = name;
  const Kernel kernel = look_at_kernel();
  CHECK(kernel.major > 0);
  CHECK(look_at_privileges().root.ok() == (geteuid() == 0));
  CHECK(usable_processors() > 0);
  const Room room = look_at_room(dir + "/not/there/yet");
  CHECK(room.there == dir);
  CHECK(room.path == dir + "/not/there/yet");
  CHECK(room.write_error == 0);
  CHECK(room.free_bytes > 0);
  const DiskSpeed speed = measure_fsync(dir);
  CHECK(speed.error == 0);
  CHECK(speed.writes > 0);
  CHECK(look_at_room("/proc/none").write_error != 0);
  CHECK(fs::is_empty(dir));
  fs::remove_all(dir);
}

TEST_CASE("doctor: a scratch directory is removed when its process is killed", "[doctor]") {
  char name[] = "/tmp/crane-doctor-test-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const Scratch scratch(name);
    if (!scratch.path().empty()) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(crane::test::eventually([&] { return fs::is_empty(name); }, 20'000));
  fs::remove_all(name);
}

TEST_CASE("crane-run: the first word doctor is a command, after -- it is a program", "[doctor]") {
  const auto parse = [](std::vector<const char*> words, Options& options, Outcome& problem) {
    words.insert(words.begin(), "crane-run");
    return parse_options(static_cast<int>(words.size()), words.data(), options, problem);
  };
  Outcome problem = Done{};
  Options doctor;
  REQUIRE(parse({"doctor", "--dir", "/x", "--port", "80", "--port", "443", "-n", "5", "-o", "json"},
                doctor, problem) == Parsed::kRun);
  CHECK(doctor.doctor.typed);
  CHECK(doctor.doctor.dir == "/x");
  CHECK(doctor.doctor.ports == std::vector<std::uint16_t>{80, 443});
  CHECK(doctor.doctor.replicas == 5);
  CHECK(doctor.doctor.output == "json");
  for (const auto& words : {std::vector<const char*>{"--", "doctor"}, {"-n", "1", "doctor"}}) {
    Options program;
    REQUIRE(parse(words, program, problem) == Parsed::kRun);
    CHECK_FALSE(program.doctor.typed);
    CHECK(program.program == std::vector<std::string>{"doctor"});
  }
  Options wrong;
  CHECK(parse({"doctor", "--port", "0"}, wrong, problem) == Parsed::kProblem);
  CHECK(has(problem.error().text, "--port: 0"));
  CHECK(parse({"doctor", "--prot", "1"}, wrong, problem) == Parsed::kProblem);
  CHECK(has(problem.error().text, "did you mean --port?"));
  CHECK(parse({"doctor", "--publish", "80:80"}, wrong, problem) == Parsed::kProblem);
  CHECK(parse({"doctor", "redis-server"}, wrong, problem) == Parsed::kProblem);
}
