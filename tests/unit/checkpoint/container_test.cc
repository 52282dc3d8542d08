// SPDX-License-Identifier: Apache-2.0
// GOAL    A server runs isolated in its container or process tree and leaves nothing behind.
// METHOD  /bin/sh as the server; its standard output is a pipe to the test.
// CHECKS  CONTAINER-1 (no process left), CONTAINER-2 (no mount in the caller's namespace), status,
//         isolation, distinct errors.
#include "checkpoint/container.h"
#include "tests/unit/containers.h"
#include "tests/unit/waiting.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

using crane::Code;
using crane::checkpoint::Container;
using crane::checkpoint::PlainProcessTree;
using crane::checkpoint::Server;
using crane::checkpoint::ServerOptions;
namespace fs = std::filesystem;

namespace {

using crane::test::containers_work;
using crane::test::slurp;

constexpr int kLimitMs = 20'000;

bool eventually(const std::function<bool()>& condition) {
  return crane::test::eventually(condition, kLimitMs);
}

// A scratch directory, a pipe for the server's output, and the options of one server.
struct Fixture {
  std::string dir;
  int pipe_fds[2] = {-1, -1};
  ServerOptions options;

  explicit Fixture(const std::string& script) {
    char path[] = "/tmp/crane-container-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    dir = path;
    REQUIRE(pipe2(pipe_fds, O_CLOEXEC) == 0);
    options.name = "crane.test." + fs::path(dir).filename().string();
    options.host_name = "craned";
    options.directory = dir + "/r0";
    options.command = {"/bin/sh", "-c", script};
    options.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "GREETING=hello world"};
    options.stdout_fd = pipe_fds[1];
  }
  ~Fixture() {
    close(pipe_fds[0]);
    if (pipe_fds[1] >= 0) close(pipe_fds[1]);
    fs::remove_all(dir);
  }
  // The server's output until its end; closes this process's writing end first.
  std::string output() {
    close(pipe_fds[1]);
    pipe_fds[1] = -1;
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(pipe_fds[0], buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }
  std::string line() {
    std::string text;
    for (char c; read(pipe_fds[0], &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  bool left_nothing() const {
    for (const char* part : {"/rootfs", "/upper", "/work", "/private", "/lxc.log"}) {
      if (fs::exists(options.directory + part)) return false;
    }
    if (fs::exists("/run/lxc/lock" + options.directory)) return false;
    if (slurp("/proc/self/mountinfo").find(dir) != std::string::npos) return false;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/sys/fs/cgroup", ignored)) {
      if (fs::exists(entry.path() / ("lxc.payload." + options.name))) return false;
      if (fs::exists(entry.path() / ("lxc.monitor." + options.name))) return false;
    }
    return true;
  }
};

bool dead(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

std::unique_ptr<Server> make_server(bool container, const ServerOptions& options) {
  if (container) return std::make_unique<Container>(options);
  return std::make_unique<PlainProcessTree>(options);
}

struct Doomed {
  pid_t node;
  pid_t first;
};

// Forks a "node" that starts the server, reports its pid and waits to be killed.
Doomed start_under_doomed_node(bool container, const ServerOptions& options) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t node = fork();
  if (node == 0) {
    auto server = make_server(container, options);
    auto pid = server->start();
    const pid_t number = pid ? pid.value() : -1;
    (void)!write(ends[1], &number, sizeof number);
    for (;;) pause();
  }
  pid_t first = -1;
  REQUIRE(read(ends[0], &first, sizeof first) == sizeof first);
  close(ends[0]);
  close(ends[1]);
  REQUIRE(first > 0);
  return {node, first};
}

}  // namespace

TEST_CASE("container: the server is pid 1 with its own host name, lo only, and fixed addresses",
          "[container]") {
  if (!containers_work("container: the server is pid 1")) return;
  Fixture f(
      "echo $$; hostname; grep -c : /proc/net/dev; grep -o lo: /proc/net/dev;"
      "cat /proc/self/personality; echo $GREETING; echo $OTHER; ls /proc | grep -c '^[0-9]'");
  setenv("OTHER", "must not be seen", 1);
  Container server(f.options);
  auto pid = server.start();
  REQUIRE(pid.ok());
  CHECK(pid.value() > 1);
  auto status = server.wait(kLimitMs);
  REQUIRE(status.ok());
  CHECK(WIFEXITED(status.value()));
  CHECK(WEXITSTATUS(status.value()) == 0);
  REQUIRE(server.destroy().ok());
  std::istringstream out(f.output());
  std::string pid1, host, interfaces, lo, personality, greeting, other;
  std::getline(out, pid1);
  std::getline(out, host);
  std::getline(out, interfaces);
  std::getline(out, lo);
  std::getline(out, personality);
  std::getline(out, greeting);
  std::getline(out, other);
  CHECK(pid1 == "1");
  CHECK(host == "craned");
  CHECK(interfaces == "1");
  CHECK(lo == "lo:");
  CHECK(personality == "00040000");
  CHECK(greeting == "hello world");
  CHECK(other.empty());
  CHECK(f.left_nothing());
}

TEST_CASE("container: the server's writes stay in its overlay", "[container]") {
  if (!containers_work("container: overlay")) return;
  Fixture f("echo mine > /etc/crane-probe; cat /etc/crane-probe; rm /etc/hostname; exit 7");
  f.options.leaves_upper = true;
  Container server(f.options);
  REQUIRE(server.start().ok());
  auto status = server.wait(kLimitMs);
  REQUIRE(status.ok());
  CHECK(WEXITSTATUS(status.value()) == 7);
  CHECK(f.output() == "mine\n");
  CHECK_FALSE(fs::exists("/etc/crane-probe"));
  CHECK(fs::exists("/etc/hostname"));
  CHECK(slurp(f.options.directory + "/upper/etc/crane-probe") == "mine\n");
}

TEST_CASE("container: binds and directories exist; the machine's /run does not", "[container]") {
  if (!containers_work("container: binds")) return;
  Fixture f(
      "cat '/run/crane/a file'; echo back > /run/crane/b; ls -d /run/apache2; ls /run; "
      "stat -c %U:%G:%a /run/mail");
  fs::create_directories(f.dir + "/shared dir");
  std::ofstream(f.dir + "/shared dir/a file") << "from outside\n";
  f.options.binds = {{f.dir + "/shared dir", "/run/crane"}};
  f.options.make_directories = {"/run/apache2", "mail:/run/mail"};
  Container server(f.options);
  REQUIRE(server.start().ok());
  REQUIRE(server.wait(kLimitMs).ok());
  CHECK(f.output() == "from outside\n/run/apache2\napache2\ncrane\nlock\nmail\nmail:mail:755\n");
  CHECK(slurp(f.dir + "/shared dir/b") == "back\n");
  REQUIRE(server.destroy().ok());
  CHECK(fs::exists(f.dir + "/shared dir/a file"));
  CHECK(f.left_nothing());
}

TEST_CASE("container: destroy ends all processes and leaves nothing (CONTAINER-1)", "[container]") {
  const bool container = GENERATE(true, false);
  if (container && !containers_work("container: destroy")) return;
  Fixture f("sleep 1000 & setsid sleep 1000 & echo ready; wait");
  auto server = make_server(container, f.options);
  auto pid = server->start();
  REQUIRE(pid.ok());
  CHECK(f.line() == "ready");
  CHECK(server->wait(0).error().code == Code::kBusy);
  REQUIRE(server->destroy().ok());
  CHECK(dead(pid.value()));
  CHECK(f.output().empty());  // end of file: no process holds the writing end
  CHECK(f.left_nothing());
}

TEST_CASE("container: the server of a killed node dies, too (CONTAINER-1)", "[container]") {
  const bool container = GENERATE(true, false);
  if (container && !containers_work("container: the server of a killed node")) return;
  Fixture f("sleep 1000 & sleep 1000 & echo ready; wait");
  const auto [node, first] = start_under_doomed_node(container, f.options);
  CHECK(f.line() == "ready");
  ::kill(node, SIGKILL);
  waitpid(node, nullptr, 0);
  CHECK(f.output().empty());
  const pid_t server = first;
  CHECK(eventually([&] { return dead(server); }));
  CHECK(eventually([&] { return f.left_nothing(); }));
}

TEST_CASE("container: signals reach the server, and its death by signal is reported",
          "[container]") {
  const bool container = GENERATE(true, false);
  if (container && !containers_work("container: signals")) return;
  Fixture f("trap 'echo term; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
  auto server = make_server(container, f.options);
  REQUIRE(server->start().ok());
  CHECK(f.line() == "ready");
  SECTION("a handled signal") {
    server->kill(SIGTERM);
    auto status = server->wait(kLimitMs);
    REQUIRE(status.ok());
    CHECK(WEXITSTATUS(status.value()) == 3);
    CHECK(f.output() == "term\n");
  }
  SECTION("SIGKILL") {
    server->kill(SIGKILL);
    pollfd watch{server->event_fd(), POLLIN, 0};
    REQUIRE(poll(&watch, 1, kLimitMs) == 1);
    auto status = server->wait(0);
    REQUIRE(status.ok());
    CHECK(WIFSIGNALED(status.value()));
    CHECK(WTERMSIG(status.value()) == SIGKILL);
  }
}

TEST_CASE("container: a second container of the same name is refused", "[container]") {
  if (!containers_work("container: same name")) return;
  Fixture f("echo ready; sleep 1000");
  Container first(f.options);
  REQUIRE(first.start().ok());
  CHECK(f.line() == "ready");
  Fixture g("true");
  g.options.name = f.options.name;
  g.options.directory = f.options.directory;
  Container second(g.options);
  auto refused = second.start();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::kExists);
  CHECK(first.wait(0).error().code == Code::kBusy);
}

TEST_CASE("container: a returning server waits for the supervisor that held its name",
          "[container]") {
  if (!containers_work("container: waits for its name")) return;
  Fixture f("echo ready; sleep 1000");
  f.options.awaits_old_supervisor = true;
  // Plays a supervisor that is ending.
  const std::string name = "crane/container/" + f.options.name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  const int old = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(bind(old, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  Container server(f.options);
  REQUIRE(server.begin().ok());
  CHECK(server.started(200).error().code == Code::kBusy);
  close(old);
  CHECK(server.started(kLimitMs).ok());
  CHECK(f.line() == "ready");
}

TEST_CASE("container: errors are distinct", "[container]") {
  if (!containers_work("container: errors")) return;
  Fixture f("true");
  SECTION("a bind without a source") {
    f.options.binds = {{f.dir + "/absent", "/run/crane"}};
    Container server(f.options);
    CHECK(server.start().error().code == Code::kNotFound);
  }
  SECTION("a directory that overlay options cannot name") {
    f.options.directory = f.dir + "/a,b";
    Container server(f.options);
    CHECK(server.start().error().code == Code::kBadArgument);
  }
  SECTION("a program given without its path") {
    f.options.command = {"sh"};
    Container server(f.options);
    CHECK(server.start().error().code == Code::kBadArgument);
  }
  SECTION("a missing program") {
    f.options.command = {"/nonexistent"};
    Container server(f.options);
    CHECK(server.start().error().code == Code::kSystem);
  }
}

TEST_CASE("servers: a server starts with the limit of descriptors in its options", "[container]") {
  if (!containers_work("servers: one starts with the limit")) return;
  for (const bool container : {true, false}) {
    CAPTURE(container);
    Fixture f("ulimit -Sn");
    f.options.descriptors = 123;
    const auto server = make_server(container, f.options);
    REQUIRE(server->start().ok());
    REQUIRE(server->wait(kLimitMs).ok());
    CHECK(f.output() == "123\n");
  }
}

TEST_CASE("plain tree: own pid and host name for root, private directories, status", "[plain]") {
  if (geteuid() != 0) {
    std::printf("SKIPPED: plain tree as root: no root privilege\n");
    return;
  }
  Fixture f(
      "echo $$; hostname; cat /proc/self/personality; echo x > /run/crane-plain/pid; "
      "stat -c %U:%G:%a /run/crane-plain; exit 9");
  f.options.make_directories = {"mail:/run/crane-plain"};
  PlainProcessTree server(f.options);
  REQUIRE(server.start().ok());
  auto status = server.wait(kLimitMs);
  REQUIRE(status.ok());
  CHECK(WEXITSTATUS(status.value()) == 9);
  CHECK(f.output() == "1\ncraned\n00040000\nmail:mail:755\n");
  REQUIRE(server.destroy().ok());
  CHECK_FALSE(fs::exists("/run/crane-plain/pid"));  // the server wrote to the replica's directory
  CHECK(f.left_nothing());
  rmdir("/run/crane-plain");
}

TEST_CASE("plain tree: without root no process escapes, either", "[plain]") {
  if (geteuid() != 0) return;  // then the other cases run without root
  Fixture f("sleep 1000 & (setsid sleep 1000 &) ; echo ready $$; wait");
  fs::permissions(f.dir, fs::perms::all);
  int report[2];
  REQUIRE(pipe(report) == 0);
  const pid_t node = fork();
  if (node == 0) {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(1);
    PlainProcessTree server(f.options);
    if (!server.start().ok()) _exit(2);
    char c;
    (void)!read(report[0], &c, 1);  // until the test has seen "ready"
    _exit(server.destroy().ok() ? 0 : 3);
  }
  CHECK(f.line().substr(0, 5) == "ready");
  REQUIRE(write(report[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(waitpid(node, &status, 0) == node);
  CHECK(status == 0);
  CHECK(f.output().empty());
  close(report[0]);
  close(report[1]);
}
