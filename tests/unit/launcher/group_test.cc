// SPDX-License-Identifier: Apache-2.0
// GOAL    crane-run starts, watches and ends a group, and leaves nothing behind.
// METHOD  The real Group in a child process, with fake_node.py, which speaks the control protocol.
// CHECKS  The exit status is passed through; one socket for all; losses are handled; everything is
//         removed.
#include "runtime/launcher/run/group.h"
#include "tests/unit/clients/loopback_listener.h"
#include "tests/unit/waiting.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace crane::launcher;
using namespace crane::setup;
using crane::Outcome;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

using crane::test::slurp;

// From a row of state.json; -1: its node does not run.
pid_t pid_in(const Json& row) {
  return row["node_pid"].is_number() ? row["node_pid"].get<pid_t>() : -1;
}

constexpr int kLimitMs = 20'000;
constexpr const char* kFakeNode = "tests/unit/launcher/fake_node.py";

bool eventually(const std::function<bool()>& condition) {
  return crane::test::eventually(condition, kLimitMs);
}

// A group in a child process, as crane-run would run it.
struct Running {
  std::string scratch;
  Options options;
  pid_t pid = -1;

  Running(int replicas, std::vector<std::string> play, const std::string& tag, int spares = 0,
          const std::string& analysis = "") {
    char name[] = "/tmp/crane-group-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    scratch = name;
    options.replicas = replicas;
    options.spares = spares;
    options.analysis = analysis;
    options.analysis_dir = scratch + "/analysis";
    options.name = "test-" + tag + "-" + std::to_string(getpid());
    options.dir = scratch;
    options.container = false;
    options.program = {"/bin/true"};
    options.words = {"--", "/bin/true"};
    options.test_only_return_ms = 20;
    start(play);
  }
  // Also starts a second crane-run for the same group.
  void start(const std::vector<std::string>& play) {
    pid = fork();
    if (pid == 0) _exit(child(play));
  }
  ~Running() {
    const Json last = state();
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    for (const Json& row : last.is_object() ? last["replicas"] : Json::array()) {
      const pid_t node = pid_in(row);  // the node outlives crane-run
      if (node > 0 && slurp("/proc/" + std::to_string(node) + "/cmdline").find("fake_node") !=
                          std::string::npos) {
        kill(node, SIGKILL);
      }
    }
    fs::remove_all(scratch);
    fs::remove_all("/dev/shm/crane." + options.name);
  }

  int child(const std::vector<std::string>& play) {
    const int out = open((scratch + "/out").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    const int err = open((scratch + "/err").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(out, 1);
    dup2(err, 2);
    signal(SIGHUP, SIG_DFL);
    ProgramPaths parts{fs::absolute(kFakeNode).string(), "/bin/true"};
    Profile profile;
    profile.name = "default";
    profile.environment = play;
    GroupDirectories directories;
    const Remains remains = look_for_remains(options.place());
    const bool fresh = !remains.record;
    const Outcome made =
        fresh ? directories.create(options.place()) : directories.take_over(options.place());
    if (!made) return 99;
    const GroupRecord record = fresh ? new_record(options) : *remains.record;
    const Lasting lasting(options);
    Group group(options, parts, profile, options.program[0], directories, record, lasting);
    group.when_up([this] { std::ofstream(scratch + "/up", std::ios::app) << '.'; });
    return fresh ? group.run() : group.take_over(false);
  }

  std::string dir() const { return scratch + "/" + options.name; }
  Json state() const { return Json::parse(slurp(dir() + "/state.json"), nullptr, false); }
  bool ready() const {
    const Json s = state();
    return s.is_object() && s.value("ready", false);
  }
  pid_t node(int replica) const {
    return pid_in(state()["replicas"][static_cast<unsigned>(replica)]);
  }
  // Reads the state only once: between two reads the node could end.
  bool has_other_node(int replica, pid_t than) const {
    const pid_t now = node(replica);
    return now > 0 && now != than;
  }
  int wait() {
    int status = 0;
    REQUIRE(eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; }));
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::size_t times_up() const { return slurp(scratch + "/up").size(); }
  bool left_nothing() const {
    return !fs::exists(dir()) && !fs::exists("/dev/shm/crane." + options.name);
  }
  std::string printed() const { return slurp(scratch + "/err"); }
  bool has_logged(const std::string& part) const {
    return printed().find(part) != std::string::npos;
  }
  std::string role(unsigned replica) const { return state()["replicas"][replica]["role"]; }
  // With FAKE_WORDS: replica k sends this to crane-run, after its earlier messages.
  void send_from_node(int k, const Json& message) const {
    const std::string path = dir() + "/say-" + std::to_string(k);
    REQUIRE(eventually([&] { return !fs::exists(path); }));
    std::ofstream(path + ".new") << message.dump();
    fs::rename(path + ".new", path);
  }
  Json configuration(int replica) const {
    return Json::parse(slurp(dir() + "/r" + std::to_string(replica) + "/config.json"));
  }
};

Json members(const std::vector<std::pair<int, const char*>>& all) {
  Json list = Json::array();
  for (const auto& [replica, role] : all) list.push_back({{"replica", replica}, {"member", role}});
  return {{"t", "members"}, {"members", list}};
}

bool dead(pid_t pid) { return kill(pid, 0) != 0; }

std::uint16_t free_port() { return crane::proxy::LoopbackListener().port(); }

std::string ask(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string text;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    char buffer[100];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) text.assign(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  return text;
}

}  // namespace

TEST_CASE("group: a server that ends successfully leaves nothing", "[launcher]") {
  Running group(3, {"FAKE_EXIT=0"}, "well");
  CHECK(group.wait() == 0);
  CHECK(group.left_nothing());
}

TEST_CASE("group: the server's exit status is passed through, and its log is mentioned",
          "[launcher]") {
  Running group(3, {"FAKE_EXIT=7"}, "exit");
  CHECK(group.wait() == 7);
  CHECK(group.has_logged("/server.log"));
  CHECK(fs::exists(group.dir() + "/r0/server.log"));
  CHECK_FALSE(fs::exists("/dev/shm/crane." + group.options.name));
  CHECK(slurp(group.scratch + "/out") == "hello from the server\n");  // once, not three times
  CHECK(group.printed().find("the server ended with status 7") != std::string::npos);
}

TEST_CASE("group: it serves one published socket, and a signal stops everything", "[launcher]") {
  const std::uint16_t port = free_port();
  Running group(3, {"FAKE_PORT=" + std::to_string(port)}, "serve");
  REQUIRE(eventually([&] { return group.ready() && !group.state()["listening"].empty(); }));
  CHECK(group.state()["leader"] == 0);
  CHECK(group.state()["listening"][0]["published"] == port);
  CHECK(eventually([&] { return ask(port) == "replica 0\n"; }));
  std::vector<pid_t> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(group.node(i));
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
  for (const pid_t node : nodes) CHECK(dead(node));
  CHECK(group.left_nothing());
  CHECK(ask(port).empty());
}

TEST_CASE("group: it is up once all replicas run and the server listens", "[launcher]") {
  const std::uint16_t port = free_port();
  const std::vector<std::string> play{"FAKE_PORT=" + std::to_string(port)};
  Running group(3, play, "up");
  REQUIRE(eventually([&] { return group.times_up() == 1; }));
  CHECK(group.ready());
  CHECK(group.state()["leader"] == 0);
  CHECK_FALSE(group.state()["listening"].empty());
  kill(group.pid, SIGKILL);
  group.wait();
  group.start(play);  // takes the group over
  CHECK(eventually([&] { return group.times_up() == 2; }));
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
  CHECK(group.times_up() == 2);
}

TEST_CASE("group: without a listening server it is not up", "[launcher]") {
  Running group(1, {}, "quiet");
  REQUIRE(eventually([&] { return group.ready(); }));
  kill(group.pid, SIGINT);
  CHECK(group.wait() == 0);
  CHECK(group.times_up() == 0);
}

TEST_CASE("group: a closed terminal ends it, and its logs stay", "[launcher]") {
  Running group(1, {}, "terminal");
  REQUIRE(eventually([&] { return group.ready(); }));
  kill(group.pid, SIGHUP);
  CHECK(group.wait() == 0);
  CHECK(group.has_logged("SIGHUP"));
  CHECK(group.has_logged("--detach"));
  CHECK(fs::exists(group.dir() + "/r0/server.log"));
  CHECK_FALSE(fs::exists("/dev/shm/crane." + group.options.name));
}

// Returns whether the child has ended and was not waited for.
bool is_dead(pid_t child) {
  std::string text;
  std::getline(std::ifstream("/proc/" + std::to_string(child) + "/stat"), text);
  return text.find(") Z ") != std::string::npos;
}

TEST_CASE("group: lost replicas are restarted, even a majority at once", "[launcher]") {
  Running group(3, {}, "losses");
  REQUIRE(eventually([&] { return group.ready(); }));
  const pid_t first = group.node(1), second = group.node(0);
  kill(first, SIGKILL);
  REQUIRE(eventually([&] { return group.has_logged("the group continues with 2 of 3 replicas"); }));
  CHECK(group.has_logged("killed by SIGKILL"));
  REQUIRE(eventually([&] { return group.has_other_node(1, first); }));
  CHECK(group.configuration(1)["restore"] == true);
  CHECK(group.configuration(1)["may_begin"] == true);
  const pid_t third = group.node(1);
  kill(group.pid, SIGSTOP);  // so that it learns of both at once
  kill(second, SIGKILL);
  kill(third, SIGKILL);
  for (const pid_t node : {second, third}) {
    REQUIRE(eventually([node] { return is_dead(node); }));
  }
  kill(group.pid, SIGCONT);
  REQUIRE(eventually([&] { return group.has_other_node(0, second); }));
  REQUIRE(eventually([&] { return group.has_other_node(1, third); }));
  CHECK(group.has_logged("the group waits: 1 of 3 replicas are left"));
  CHECK(group.configuration(0)["forget"] == false);
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
  CHECK_FALSE(fs::exists("/dev/shm/crane." + group.options.name));
  CHECK_FALSE(look_for_remains(group.options.place()).record);  // its logs stay; it has ended
}

// RETURN-1: ten ends in a row, each right after the start, and no last attempt.
TEST_CASE("group: a replica that is lost again and again is never given up", "[launcher]") {
  Running group(3, {}, "again");
  REQUIRE(eventually([&] { return group.ready(); }));
  for (int i = 0; i < 6; ++i) {
    const pid_t node = group.node(2);
    kill(node, SIGKILL);
    REQUIRE(eventually([&] { return group.node(2) != node; }));
    if (i == 4) {  // while it waits, crane-run prints for how long
      CHECK(eventually(
          [&] { return group.has_logged("crane-ctl replica resume 2 starts it at once"); }));
    }
    REQUIRE(eventually([&] { return group.node(2) > 0; }));
  }
  CHECK_FALSE(fs::exists(group.dir() + "/r2/returning.json"));
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
}

TEST_CASE("group: it survives its crane-run, and the next one takes it over", "[launcher]") {
  const std::uint16_t port = free_port();
  Running group(3, {"FAKE_PORT=" + std::to_string(port)}, "takeover");
  REQUIRE(eventually([&] { return group.ready() && !group.state()["listening"].empty(); }));
  REQUIRE(eventually([&] { return ask(port) == "replica 0\n"; }));
  const pid_t kept = group.node(0), lost = group.node(2);
  kill(group.pid, SIGKILL);
  CHECK(group.wait() == 1000 + SIGKILL);
  CHECK(ask(port) == "replica 0\n");
  kill(lost, SIGKILL);
  REQUIRE(eventually([&] { return !node_lives("/dev/shm/crane." + group.options.name, 2); }));
  group.start({"FAKE_PORT=" + std::to_string(port)});
  REQUIRE(eventually([&] { return group.has_logged("2 nodes run"); }));
  REQUIRE(eventually([&] { return group.has_other_node(2, lost); }));
  CHECK(group.node(0) == kept);
  CHECK(group.configuration(2)["restore"] == true);
  CHECK(group.configuration(2)["log_id"] == group.configuration(0)["log_id"]);
  REQUIRE(eventually([&] { return !group.state()["listening"].empty(); }));
  CHECK(group.state()["listening"][0]["published"] == port);
  CHECK(ask(port) == "replica 0\n");
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
  REQUIRE(eventually([&] { return dead(kept); }));
  CHECK(group.left_nothing());
}

TEST_CASE("group: if all nodes died with its crane-run, the next one continues", "[launcher]") {
  Running group(3, {}, "remains");
  REQUIRE(eventually([&] { return group.ready(); }));
  const Json log = group.configuration(0)["log_id"];
  const std::vector<pid_t> nodes{group.node(0), group.node(1), group.node(2)};
  kill(group.pid, SIGKILL);
  CHECK(group.wait() == 1000 + SIGKILL);
  for (const pid_t node : nodes) kill(node, SIGKILL);
  REQUIRE(eventually([&] { return look_for_remains(group.options.place()).living == 0; }));
  group.start({});
  REQUIRE(eventually([&] { return group.has_logged("none of its nodes runs"); }));
  const auto fresh = [&](int k) {
    return group.has_other_node(k, nodes[static_cast<std::size_t>(k)]);
  };
  REQUIRE(eventually([&] { return fresh(0) && fresh(1) && fresh(2); }));
  CHECK(group.configuration(0)["log_id"] == log);
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
  CHECK(group.left_nothing());
}

TEST_CASE("take over: another command is refused, and the difference is reported", "[launcher]") {
  Options options;
  options.name = "g";
  options.words = {"--name", "g", "--", "redis-server", "--maxmemory", "100mb"};
  GroupRecord record = new_record(options);
  CHECK(compare(record, options, 3).ok());
  record.words = {"-v", "--name", "g", "--", "redis-server", "--maxmemory", "50mb"};
  const Outcome living = compare(record, options, 3), dead = compare(record, options, 0);
  CHECK(status_of(living) == Status::kGroupExists);
  CHECK(living.error().text.find("\"100mb\" was \"50mb\"") != std::string::npos);
  CHECK(living.error().text.find("crane-run --stop --name g") != std::string::npos);
  CHECK(dead.error().text.find("--force-new-group") != std::string::npos);
  record = new_record(options);
  record.build = "another";
  CHECK(compare(record, options, 3).error().text.find("another build") != std::string::npos);
}

TEST_CASE("group: an added member gets a node, and a removed one is not restarted", "[launcher]") {
  Running group(3, {"FAKE_WORDS=1"}, "members", 1);
  REQUIRE(eventually([&] { return group.ready(); }));
  CHECK(group.role(3) == "spare");
  group.send_from_node(1, members({{0, "voter"}, {1, "voter"}, {2, "voter"}, {3, "learner"}}));
  group.send_from_node(0, members({{0, "voter"}, {1, "voter"}, {2, "voter"}, {3, "learner"}}));
  REQUIRE(eventually([&] { return group.node(3) > 0; }));
  const Json begins = group.configuration(3);
  CHECK(begins["restore"] == true);
  CHECK(begins["may_begin"] == true);  // without a checkpoint it runs all inputs
  CHECK(begins["forget"] == true);     // its place may have been used before
  CHECK(begins["members"] == 3);
  CHECK(begins["replicas"] == 4);
  group.send_from_node(0, members({{0, "voter"}, {1, "voter"}, {2, "voter"}, {3, "voter"}}));
  REQUIRE(eventually([&] { return group.has_logged("replica 3 votes from now on"); }));
  group.send_from_node(2, {{"t", "removed"}});
  REQUIRE(eventually([&] { return group.has_logged("replica 2 has left the group"); }));
  REQUIRE(eventually([&] { return group.role(2) == "spare"; }));  // the file is written after it
  group.send_from_node(0, members({{0, "voter"}, {1, "voter"}, {3, "voter"}}));
  // Of three voters one more may be lost.
  kill(group.node(3), SIGKILL);
  REQUIRE(eventually([&] { return group.has_logged("2 of 3 replicas"); }));
  REQUIRE(eventually([&] { return group.node(3) > 0; }));
  group.send_from_node(0, members({{0, "voter"}, {1, "voter"}, {2, "learner"}, {3, "voter"}}));
  REQUIRE(eventually([&] { return group.node(2) > 0; }));
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
}

TEST_CASE("group: after a divergence a checkpoint is requested", "[launcher]") {
  Running group(3, {"FAKE_WORDS=1"}, "diverged");
  REQUIRE(eventually([&] { return group.ready(); }));
  const pid_t first = group.node(2);
  group.send_from_node(2, {{"t", "fatal"}, {"code", 79}, {"message", "replica 2 diverged"}});
  REQUIRE(eventually(
      [&] { return slurp(group.dir() + "/asked-0").find("\"checkpoint\"") != std::string::npos; }));
  REQUIRE(eventually([&] { return group.node(2) > 0 && group.node(2) != first; }));
  CHECK_FALSE(fs::exists(group.dir() + "/asked-1"));  // it follows
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
}

TEST_CASE("group: a drained replica is not restarted, and recovers on request", "[launcher]") {
  Running group(3, {"FAKE_WORDS=1"}, "drained");
  REQUIRE(eventually([&] { return group.ready(); }));
  const Json wanted{{"t", "bring_back"}, {"replica", 2}, {"checkpoint", "00000001.000000000007"}};
  group.send_from_node(0, wanted);  // it runs: no effect
  const pid_t first = group.node(2);
  group.send_from_node(2, {{"t", "drained"}});
  // Requested between its last message and its end: it recovers once it has ended.
  REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-2"); }));
  REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-0"); }));
  group.send_from_node(0, wanted);
  REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-0"); }));
  CHECK(group.node(2) == first);
  std::ofstream(group.dir() + "/end-2") << "";
  REQUIRE(eventually([&] { return group.has_logged("replica 2 is brought back"); }));
  CHECK(group.has_logged("replica 2 is drained"));
  CHECK_FALSE(group.has_logged("of 3 replicas"));
  CHECK(group.node(2) != first);
  const Json begins = group.configuration(2);
  CHECK(begins["checkpoint"] == "00000001.000000000007");
  CHECK(begins["may_begin"] == false);  // that checkpoint or none
  CHECK(begins["forget"] == false);
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
}

TEST_CASE("group: a fatal report of a node at the start becomes message and status", "[launcher]") {
  Running group(3, {"FAKE_FATAL=1"}, "fatal");
  CHECK(group.wait() == static_cast<int>(Status::kNeverCheckedIn));
  CHECK(group.printed().find("did not load libcrane.so") != std::string::npos);
  CHECK(group.printed().find("its log: ") != std::string::npos);
}

TEST_CASE("group: if a majority fails each time by itself, the group ends and keeps all",
          "[launcher]") {
  Running group(3, {"FAKE_WORDS=1"}, "checkin");
  REQUIRE(eventually([&] { return group.ready(); }));
  const std::string connections = shared_directory(group.options.name) + "/" + kConnections;
  std::ofstream{connections}.put('x');
  const auto lose = [&group](int k) {
    const pid_t node = group.node(k);
    group.send_from_node(k, Json{{"t", "fatal"}, {"code", 68}, {"message", "no check-in in time"}});
    REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-" + std::to_string(k)); }));
    kill(node, SIGKILL);
    REQUIRE(eventually([&] { return group.node(k) != node; }));
  };
  lose(2);
  REQUIRE(eventually([&] { return group.has_logged("the group continues with 2 of 3 replicas"); }));
  for (int i = 0; i < 4; ++i) {
    for (const int k : {1, 2}) {
      REQUIRE(eventually([&] { return group.node(k) > 0; }));
      lose(k);
    }
  }
  REQUIRE(eventually([&] { return group.node(1) > 0; }));
  const pid_t last = group.node(1);
  group.send_from_node(1, Json{{"t", "fatal"}, {"code", 68}, {"message", "no check-in in time"}});
  REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-1"); }));
  kill(last, SIGKILL);
  CHECK(group.wait() == static_cast<int>(Status::kNeverCheckedIn));
  CHECK(group.has_logged("no check-in in time"));
  CHECK(group.has_logged("the same command continues with them"));
  CHECK(fs::exists("/dev/shm/crane." + group.options.name));
  CHECK_FALSE(fs::exists(connections));  // no client waits for it (KEEPER-1)
  CHECK(look_for_remains(group.options.place()).record);
}

TEST_CASE("group: a port in use ends the start with a message", "[launcher]") {
  const crane::proxy::LoopbackListener holder;
  Running group(1, {"FAKE_PORT=" + std::to_string(holder.port())}, "port");
  CHECK(group.wait() == static_cast<int>(Status::kPortTaken));
  CHECK(group.printed().find("cannot listen on port") != std::string::npos);
}

TEST_CASE("group: a node that ignores stop is killed", "[launcher]") {
  Running group(1, {"FAKE_STUBBORN=0"}, "stubborn");
  REQUIRE(eventually([&] { return group.ready(); }));
  kill(group.pid, SIGINT);
  REQUIRE(eventually([&] { return group.printed().find("stopping") != std::string::npos; }));
  kill(group.pid, SIGINT);  // the second request ends it at once
  CHECK(group.wait() == 0);
  CHECK(group.left_nothing());
}

TEST_CASE("group: an analysis replica is added, recovers, and is not counted as missing",
          "[launcher]") {
  Running group(3, {"FAKE_WORDS=1"}, "analysis", 0, "helgrind");
  REQUIRE(eventually([&] { return group.ready(); }));
  // Crane-run requests its addition from the leader, and starts it once the member list has it.
  const std::string asked = group.dir() + "/asked-0";
  REQUIRE(eventually([&] { return slurp(asked).find("\"add\"") != std::string::npos; }));
  CHECK(group.node(3) == -1);
  const Json with = members({{0, "voter"}, {1, "voter"}, {2, "voter"}, {3, "analysis"}});
  group.send_from_node(0, with);
  REQUIRE(eventually([&] { return group.node(3) > 0; }));
  CHECK(group.configuration(3)["analysis"] == "helgrind");
  CHECK(group.configuration(0)["analysis"] == "");
  CHECK(group.configuration(0)["analysis_replica"] == 3);
  REQUIRE(eventually([&] { return group.role(3) == "analysis"; }));
  group.send_from_node(3, Json{{"t", "analysis"}, {"text", "helgrind finding 1: x"}});
  REQUIRE(
      eventually([&] { return group.has_logged("analysis replica 3: helgrind finding 1: x"); }));
  const pid_t first = group.node(3);
  kill(first, SIGKILL);
  REQUIRE(eventually([&] { return group.has_other_node(3, first); }));
  REQUIRE(eventually([&] { return group.has_logged("begins again"); }));
  CHECK_FALSE(group.has_logged("of 3 replicas"));
  // It lost something that it cannot do without: it is released, and removed from the member list.
  fs::remove(asked);
  group.send_from_node(
      3, Json{{"t", "fatal"}, {"code", 76}, {"message", "the log begins at entry 9"}});
  REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-3"); }));
  kill(group.node(3), SIGKILL);
  REQUIRE(eventually([&] { return group.has_logged("analysis replica 3 is gone: "); }));
  REQUIRE(eventually([&] { return group.has_logged("the log begins at entry 9"); }));
  REQUIRE(eventually([&] { return slurp(asked).find("\"remove\"") != std::string::npos; }));
  group.send_from_node(0, with);  // the list from before
  REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-0"); }));
  group.send_from_node(0, members({{0, "voter"}, {1, "voter"}, {2, "voter"}}));
  REQUIRE(eventually([&] { return !fs::exists(group.dir() + "/say-0"); }));
  REQUIRE(eventually([&] { return group.role(3) == "spare"; }));
  fs::remove(asked);
  CHECK(group.node(3) == -1);
  // Until an operator adds it again.
  group.send_from_node(0, with);
  REQUIRE(eventually([&] { return group.node(3) > 0; }));
  CHECK_FALSE(fs::exists(asked));
  kill(group.pid, SIGTERM);
  CHECK(group.wait() == 0);
}
