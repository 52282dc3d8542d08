// SPDX-License-Identifier: Apache-2.0
// GOAL    A node and its crane-run: each request reaches its action, the end of crane-run is
//         noticed, and exactly one other crane-run can take its place.
// METHOD  A Supervisor in an event loop; the test plays crane-run, at the other ends of socket
//         pairs.
// CHECKS  SUPERVISE-1; descriptors are passed or closed; messages without a receiver are dropped.
#include "proxy/host/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/waiting.h"

using namespace crane;
using namespace crane::node;

namespace {

struct Pair {
  int node = -1, run = -1;
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    node = ends[0];
    run = ends[1];
  }
  ~Pair() {
    if (run >= 0) ::close(run);
  }
  void hang_up() { ::close(std::exchange(run, -1)); }
  nlohmann::json read() const {
    char text[4096];
    const ssize_t got = ::recv(run, text, sizeof text, MSG_DONTWAIT);
    if (got <= 0) return nullptr;
    return nlohmann::json::parse(std::string(text, static_cast<std::size_t>(got)));
  }
  void write(const std::string& text) const {
    REQUIRE(::send(run, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
};

struct World : Supervisor::Owner {
  event_base* base = event_base_new();
  Pair first;
  std::vector<std::string> calls;
  std::unique_ptr<Supervisor> supervisor = std::make_unique<Supervisor>(first.node);

  World() { supervisor->watch(base, *this); }
  virtual ~World() {
    supervisor.reset();
    event_base_free(base);
  }
  void woke() override {}
  void listener_received(const Place& place, int fd) override {
    ::close(fd);
    calls.push_back("listener " + std::to_string(place.port));
  }
  void listener_lost() override { calls.emplace_back("lost"); }
  void listen_failed(const Place& place, int error, const std::string& message) override {
    calls.push_back(std::to_string(place.port) + " " + std::to_string(error) + " " + message);
  }
  void not_published(const Place&) override {}
  void stop_requested() override { calls.emplace_back("stop"); }
  void signal_requested(std::uint32_t signo, std::uint32_t pid) override {
    calls.push_back("signal " + std::to_string(signo) + " " + std::to_string(pid));
  }
  void member_requested(const control::Message& change) override {
    calls.push_back(change.plain("do").dump());
  }
  void checkpoint_requested() override { calls.emplace_back("checkpoint"); }
  void supervisor_lost() override { calls.emplace_back("gone"); }
  void turn() { event_base_loop(base, EVLOOP_NONBLOCK); }
  static constexpr const char* kOffer = R"({"do":"supervise"})";
};

}  // namespace

TEST_CASE_METHOD(World, "each request of crane-run reaches its action", "[supervisor]") {
  first.write(R"({"t":"stop"})");
  first.write(R"({"t":"member","change":"add","replica":2,"later":1})");
  first.write(R"({"t":"listen_failed","port":80,"error":98,"message":"taken"})");
  first.write(R"({"t":"signal","signo":15,"pid":7})");
  first.write(R"({"t":"signal"})");
  first.write(R"({"t":"checkpoint"})");
  first.write("not JSON");
  turn();
  CHECK(calls == std::vector<std::string>{"stop", R"({"change":"add","do":"member","replica":2})",
                                          "80 98 taken", "signal 15 7", "checkpoint"});
}

TEST_CASE_METHOD(World, "a listener without its descriptor is requested again", "[supervisor]") {
  first.write(R"({"t":"listener","port":80})");
  turn();
  CHECK(calls.empty());
  CHECK(test::eventually(
      [&] {
        turn();
        return calls == std::vector<std::string>{"lost"};
      },
      20'000));
}

TEST_CASE_METHOD(World, "a second crane-run is refused while the first one runs",
                 "[supervisor][SUPERVISE-1]") {
  Pair second;
  CHECK(supervisor->offer(second.node, kOffer, false) == Supervisor::Offer::kRefused);
  CHECK(second.read()["error"] == "busy");
  supervisor->ready();
  CHECK(first.read()["t"] == "ready");
  CHECK(second.read().is_null());
}

TEST_CASE_METHOD(World, "after crane-run has ended the next one takes its place", "[supervisor]") {
  first.hang_up();
  turn();
  CHECK(calls == std::vector<std::string>{"gone"});
  CHECK_FALSE(supervisor->present());
  supervisor->ready();  // no process reads it

  Pair second;
  CHECK(supervisor->offer(second.node, kOffer, false) == Supervisor::Offer::kTaken);
  CHECK(second.read()["ok"] == true);
  supervisor->role("leader", 3);
  CHECK(second.read()["view"] == 3);
  second.write(R"({"t":"stop"})");
  turn();
  CHECK(calls.back() == "stop");
}

TEST_CASE_METHOD(World, "a stopped crane-run stops no node, and gets all messages later",
                 "[supervisor][OUTBOX-1]") {
  const bool taken_over = GENERATE(false, true);
  Pair second;
  if (taken_over) {
    first.hang_up();
    turn();
    REQUIRE(supervisor->offer(second.node, kOffer, false) == Supervisor::Offer::kTaken);
    REQUIRE(second.read()["ok"] == true);
  }
  const Pair& run = taken_over ? second : first;
  for (std::uint64_t view = 1; view <= 5'000; ++view) {
    supervisor->role(view % 2 == 0 ? "follower" : "leader", view);
  }
  for (unsigned port = 1; port <= 500; ++port)
    supervisor->listen(static_cast<std::uint16_t>(port), 5);
  supervisor->bring_back(2, false, "");
  turn();
  supervisor->fatal(ExitStatus::kFenced, "the last words");
  std::vector<nlohmann::json> messages;
  const auto read_all = [&] {
    for (auto next = run.read(); !next.is_null(); next = run.read()) messages.push_back(next);
  };
  read_all();
  CHECK(messages.back()["t"] == "fatal");  // it need not wait for the node's next turn
  for (int turns = 0; turns < 100; ++turns) {
    turn();
    read_all();
  }
  std::uint64_t view = 0;
  unsigned ports = 0, back = 0;
  for (const auto& message : messages) {
    if (message["t"] == "role") view = message["view"];
    if (message["t"] == "listen") CHECK(message["port"] == ++ports);
    if (message["t"] == "bring_back") ++back;
  }
  CHECK(view == 5'000);
  CHECK(ports == 500);
  CHECK(back == 1);
}

TEST_CASE_METHOD(World, "a request of another kind is left to other handlers", "[supervisor]") {
  Pair other;
  CHECK(supervisor->offer(other.node, R"({"do":"status"})", false) == Supervisor::Offer::kAnother);
  CHECK(::fcntl(other.node, F_GETFD) >= 0);  // still open
  ::close(other.node);
}

TEST_CASE_METHOD(World, "a node that never has a supervisor refuses every offer", "[supervisor]") {
  first.hang_up();
  turn();
  Pair second;
  CHECK(supervisor->offer(second.node, kOffer, true) == Supervisor::Offer::kRefused);
  CHECK(second.read()["error"] == "unsupported");
}

namespace {

// Another process, connected to this one as a crane-run that took a group over is to its nodes.
struct OtherRun {
  pid_t pid = -1;
  int node = -1;

  OtherRun() {
    const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socklen_t size = sizeof address.sun_family;  // the kernel chooses an abstract name
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener, 1) == 0);
    size = sizeof address;
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    pid = ::fork();
    if (pid == 0) {
      const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
      (void)::connect(fd, reinterpret_cast<sockaddr*>(&address), size);
      for (;;) ::pause();
    }
    node = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(listener);
    REQUIRE(node >= 0);
  }
  ~OtherRun() { end(); }
  OtherRun(const OtherRun&) = delete;
  OtherRun& operator=(const OtherRun&) = delete;
  void signal(int signo, int event) const {
    int status = 0;
    REQUIRE(::kill(pid, signo) == 0);
    REQUIRE(::waitpid(pid, &status, event) == pid);
  }
  void end() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(std::exchange(pid, -1), nullptr, 0);
  }
};

}  // namespace

TEST_CASE("a node knows that its crane-run is stopped", "[supervisor]") {
  OtherRun run;
  const Supervisor supervisor(run.node);
  CHECK_FALSE(supervisor.stopped());
  run.signal(SIGSTOP, WUNTRACED);
  CHECK(supervisor.stopped());
  CHECK(supervisor.present());
  run.signal(SIGCONT, WCONTINUED);
  CHECK_FALSE(supervisor.stopped());
  run.end();
  CHECK_FALSE(supervisor.stopped());  // its end is another event
  CHECK_FALSE(Supervisor(-1).stopped());
}
