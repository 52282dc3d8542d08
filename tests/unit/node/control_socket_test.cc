// SPDX-License-Identifier: Apache-2.0
// GOAL    Each connection carries one request and one answer; a connection that was taken over
//         stays open.
// METHOD  A ControlSocket in an event loop with clients on real sockets.
// CHECKS  CTL-3; answers; a path that is too long; clients that leave.
#include "proxy/host/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/unit/no_descriptors.h"
#include "tests/unit/waiting.h"

using namespace crane;
using namespace crane::node;

namespace {

struct World : ControlSocket::Owner {
  std::string directory;
  event_base* base = event_base_new();
  int taken = -1;
  int events = 0;
  std::unique_ptr<ControlSocket> socket;

  World() {
    char name[] = "/tmp/crane-control-XXXXXX";
    directory = ::mkdtemp(name);
    socket = std::make_unique<ControlSocket>(base, *this);
    REQUIRE(socket->open(path()).ok());
  }
  virtual ~World() {
    socket.reset();
    if (taken >= 0) ::close(taken);
    event_base_free(base);
    std::filesystem::remove_all(directory);
  }
  void woke() override { ++events; }
  bool take_over(int fd, const std::string& request) override {
    if (request != "mine") return false;
    taken = fd;
    return true;
  }
  std::string answer(const std::string& request) override { return "heard " + request; }
  std::string path() const { return directory + "/control.sock"; }
  int ask(const std::string& request) const {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().c_str(), path().size() + 1);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    if (!request.empty()) {
      REQUIRE(::send(fd, request.data(), request.size(), 0) > 0);
    }
    return fd;
  }
  void turn() {
    for (int i = 0; i < 4; ++i) event_base_loop(base, EVLOOP_NONBLOCK);
  }
  // Returns "" if the connection was closed, "-" if nothing has arrived.
  static std::string read(int fd) {
    char text[256];
    const ssize_t got = ::recv(fd, text, sizeof text, MSG_DONTWAIT);
    return got < 0 ? "-" : std::string(text, static_cast<std::size_t>(got));
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a request is answered and its connection closed", "[control]") {
  const int fd = ask("status");
  turn();
  CHECK(read(fd) == "heard status");
  CHECK(read(fd) == "");
  ::close(fd);
}

TEST_CASE_METHOD(World, "a connection that is taken over stays open", "[control][CTL-3]") {
  const int fd = ask("mine");
  turn();
  CHECK(read(fd) == "-");
  REQUIRE(taken >= 0);
  REQUIRE(::send(taken, "hello", 5, 0) == 5);
  CHECK(read(fd) == "hello");
  ::close(fd);
}

TEST_CASE_METHOD(World, "a client that leaves without a request is dropped", "[control]") {
  ::close(ask(""));
  const int fd = ask("status");
  turn();
  CHECK(read(fd) == "heard status");
  ::close(fd);
}

TEST_CASE_METHOD(World, "the 33rd waiting client is refused", "[control]") {
  std::vector<int> waiting;
  for (int i = 0; i < 32; ++i) {
    waiting.push_back(ask(""));
    turn();
  }
  const int fd = ask("");
  turn();
  CHECK(read(fd) == "");
  CHECK(read(waiting.front()) == "-");
  for (const int w : waiting) ::close(w);
  ::close(fd);
}

TEST_CASE_METHOD(World, "without free descriptors the loop does not spin, and later it serves",
                 "[control]") {
  const int fd = ask("status");
  {
    const test::NoDescriptors none;
    for (int i = 0; i < 1000; ++i) turn();
    CHECK(events < 100);
    CHECK(read(fd) == "-");
  }
  CHECK(test::eventually(
      [&] {
        turn();
        return read(fd) == "heard status";
      },
      20'000));
  ::close(fd);
}

TEST_CASE_METHOD(World, "a path too long for a socket is an error", "[control]") {
  const Outcome opened = socket->open("/tmp/" + std::string(200, 'x'));
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().detail == ENAMETOOLONG);
}
