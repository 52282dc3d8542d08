// SPDX-License-Identifier: Apache-2.0
// GOAL    At any time one process of the host uses the clients' sockets, and the next one gets all
//         of them.
// METHOD  Processes that share a table: some stop, some are stopped, some are killed.
// CHECKS  WRITER-1, WRITER-2, KEEPER-1, TABLE-1.
#include "proxy/clients/shared_sockets.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "dmt/base/clock.h"
#include "proxy/clients/host_sockets.h"
#include "tests/unit/clients/loopback_listener.h"
#include "tests/unit/waiting.h"

using namespace crane;
using namespace crane::proxy;

namespace {

constexpr int kLimitMs = 20'000;

bool eventually(const std::function<bool()>& condition) {
  return test::eventually(condition, kLimitMs);
}

struct Host {
  Host() {
    std::string name = "/tmp/crane-sockets-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
    REQUIRE(::pipe(ready) == 0);
  }
  ~Host() {
    ::close(ready[0]);
    ::close(ready[1]);
    std::filesystem::remove_all(directory);
  }
  std::unique_ptr<SharedSockets> open() {
    auto sockets = SharedSockets::open(directory + "/connections");
    REQUIRE(sockets.ok());
    sockets.value()->add_port(listener.port());
    return std::move(sockets).value();
  }
  // Starts another node, which leads and has accepted `clients`; then it runs `more`.
  pid_t leader(int clients, const std::function<void(SharedSockets&, std::vector<int>&)>& more) {
    const pid_t pid = ::fork();
    if (pid != 0) {
      char byte;
      REQUIRE(::read(ready[0], &byte, 1) == 1);
      return pid;
    }
    auto sockets = SharedSockets::open(directory + "/connections");
    if (!sockets.ok()) ::_exit(1);
    SharedSockets& own = *sockets.value();
    own.add_port(listener.port());
    if (own.become_writer(View{5}, monotonic_ns()) != SharedSockets::Right::kOurs) ::_exit(2);
    std::vector<int> accepted = own.adopt_sockets();
    for (int i = 0; i < clients; ++i) accepted.push_back(::accept(listener.fd, nullptr, nullptr));
    (void)!::write(ready[1], "x", 1);
    more(own, accepted);
    for (;;) ::pause();
  }
  // The keeper of a node that has opened the table.
  pid_t keeper_of(pid_t node) const {
    auto table = ConnectionTable::open(directory + "/connections");
    REQUIRE(table.ok());
    for (const SocketHolder& holder : table.value()->memory().holders) {
      if (pid_of(holder.node.load()) == node) return pid_of(holder.keeper.load());
    }
    FAIL("the node has no record");
    return -1;
  }
  // Waits until the keeper has seen its node end and has closed all but the clients' sockets.
  static bool closed_the_rest(pid_t keeper) {
    return eventually([keeper] {
      const std::string open = "/proc/" + std::to_string(keeper) + "/fd";
      return std::filesystem::exists(open) && !std::filesystem::exists(open + "/2");
    });
  }
  static bool becomes_writer(SharedSockets& sockets) {
    const std::int64_t until = monotonic_ns() + 5'000'000'000;
    while (monotonic_ns() < until) {
      const auto right = sockets.become_writer(View{6}, monotonic_ns());
      if (right != SharedSockets::Right::kWaits) return right == SharedSockets::Right::kOurs;
    }
    return false;
  }
  // Returns whether the client's end and one of `servers` are one connection.
  static bool reaches(int client, const std::vector<int>& servers) {
    if (::send(client, "x", 1, MSG_NOSIGNAL) != 1) return false;
    for (const int fd : servers) {
      char byte;
      if (::recv(fd, &byte, 1, MSG_DONTWAIT) == 1) return ::send(fd, "y", 1, 0) == 1;
    }
    return false;
  }
  std::string directory;
  LoopbackListener listener;
  int ready[2];
};

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

// Another node of the host becomes the writer, gets the client's socket and serves the client.
void next_node_takes(Host& host, int client) {
  auto own = host.open();
  REQUIRE(Host::becomes_writer(*own));
  const std::vector<int> taken = own->adopt_sockets();
  REQUIRE(taken.size() == 1);
  CHECK(Host::reaches(client, taken));
  CHECK(receive(client) == "y");
  ::close(client);
  for (const int fd : taken) ::close(fd);
  own->none_left();
}

}  // namespace

TEST_CASE("a killed leader's clients go to the next leader",
          "[shared_sockets][KEEPER-1][WRITER-1]") {
  Host host;
  const int first = host.listener.connect(), second = host.listener.connect();
  const pid_t leader = host.leader(2, [](auto&, auto&) {});
  auto own = host.open();
  end(leader);
  REQUIRE(Host::becomes_writer(*own));
  const std::vector<int> taken = own->adopt_sockets();
  REQUIRE(taken.size() == 2);
  for (const int client : {first, second}) {
    CHECK(Host::reaches(client, taken));
    CHECK(receive(client) == "y");
    ::close(client);
  }
  for (const int fd : taken) ::close(fd);
  own->none_left();
}

TEST_CASE("a closed listener is no client's socket, a socket that its client has reset is one",
          "[shared_sockets][LISTEN-2]") {
  Host host;
  const int stays = host.listener.connect(), resets = host.listener.connect();
  const pid_t leader = host.leader(2, [](auto&, auto&) {});
  auto own = host.open();
  REQUIRE(::shutdown(host.listener.fd, SHUT_RDWR) == 0);
  REQUIRE(::send(resets, "z", 1, 0) == 1);
  host_socket(resets).reset();
  end(leader);
  REQUIRE(Host::becomes_writer(*own));
  const std::vector<int> taken = own->adopt_sockets();
  CHECK(taken.size() == 2);
  CHECK(Host::reaches(stays, taken));
  const bool kept = std::any_of(taken.begin(), taken.end(), [](int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'z';
  });
  CHECK(kept);  // the bytes sent before the reset
  ::close(stays);
  for (const int fd : taken) ::close(fd);
  own->none_left();
}

TEST_CASE("a leader that is stopped is killed before the next one writes",
          "[shared_sockets][WRITER-1]") {
  Host host;
  const int client = host.listener.connect();
  const pid_t leader = host.leader(1, [](auto&, auto&) {});
  auto own = host.open();
  REQUIRE(::kill(leader, SIGSTOP) == 0);
  REQUIRE(Host::becomes_writer(*own));
  CHECK(consensus::process_stat(leader).main_thread_ended());
  int status = 0;
  REQUIRE(::waitpid(leader, &status, 0) == leader);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  const std::vector<int> taken = own->adopt_sockets();
  CHECK(taken.size() == 1);
  CHECK(Host::reaches(client, taken));
  ::close(client);
  for (const int fd : taken) ::close(fd);
  own->none_left();
}

TEST_CASE("a leader that does not know that it is deposed cannot end a newer leader's right",
          "[shared_sockets][WRITER-2]") {
  using Right = SharedSockets::Right;
  Host host;
  const pid_t leader = host.leader(0, [](auto&, auto&) {});  // in view 5
  auto own = host.open();
  const std::int64_t begin = monotonic_ns();
  for (const std::int64_t later : {0L, 1L, 3'000'000'000L}) {
    CHECK(own->become_writer(View{4}, begin + later) == Right::kWaits);
  }
  CHECK(::waitpid(leader, nullptr, WNOHANG) == 0);
  end(leader);  // its log is as old as before
  CHECK(own->become_writer(View{4}, monotonic_ns()) == Right::kWaits);
  CHECK(Host::becomes_writer(*own));
  CHECK(own->become_writer(View{5}, monotonic_ns()) == Right::kWaits);
}

TEST_CASE("a leader gets its clients despite a table that an earlier group has left",
          "[shared_sockets][WRITER-2]") {
  Host host;
  end(host.leader(0, [](auto&, auto&) {}));  // in view 5
  auto own = host.open();
  std::int64_t now_ns = monotonic_ns();
  unsigned asked = 0;
  while (own->become_writer(View{1}, now_ns) != SharedSockets::Right::kOurs) {
    now_ns = own->due_ns();
    REQUIRE(++asked < 20'000);
  }
  CHECK(asked >= WriterRight::kAsksMost);
  CHECK(own->become_writer(View{2}, now_ns) == SharedSockets::Right::kOurs);
}

TEST_CASE("a leader that steps down stays alive and learns that its sockets were taken",
          "[shared_sockets][WRITER-1]") {
  Host host;
  const int client = host.listener.connect();
  const pid_t leader = host.leader(1, [](SharedSockets& own, std::vector<int>& accepted) {
    own.stop_writing();
    while (!own.released()) continue;
    for (const int fd : accepted) ::close(fd);
    own.none_left();
    ::_exit(7);
  });
  auto own = host.open();
  REQUIRE(Host::becomes_writer(*own));
  const std::vector<int> taken = own->adopt_sockets();
  REQUIRE(taken.size() == 1);
  int status = 0;
  REQUIRE(::waitpid(leader, &status, 0) == leader);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  CHECK(Host::reaches(client, taken));
  CHECK(receive(client) == "y");
  ::close(client);
  for (const int fd : taken) ::close(fd);
  own->none_left();
}

TEST_CASE("when all nodes were killed, their clients wait for the next one",
          "[shared_sockets][KEEPER-1]") {
  Host host;
  const int client = host.listener.connect();
  const pid_t leader = host.leader(1, [](auto&, auto&) {});
  const pid_t keeper = host.keeper_of(leader);
  end(leader);  // no node is left
  REQUIRE(host.closed_the_rest(keeper));
  next_node_takes(host, client);
}

TEST_CASE("when the group has ended, waiting clients are reset and their keeper ends",
          "[shared_sockets][KEEPER-1]") {
  Host host;
  const int client = host.listener.connect();
  const pid_t leader = host.leader(1, [](auto&, auto&) {});
  const pid_t keeper = host.keeper_of(leader);
  end(leader);
  REQUIRE(host.closed_the_rest(keeper));
  const bool replaced = GENERATE(false, true);  // by a group that starts over
  const timeval limit{kLimitMs / 1000, 0};
  REQUIRE(::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  REQUIRE(std::filesystem::remove(host.directory + "/connections"));
  if (replaced) (void)host.open();
  CHECK(receive(client) == "error " + std::to_string(ECONNRESET));
  CHECK(eventually([keeper] {
    return consensus::process_stat(keeper).main_thread_ended() ||
           consensus::process_start(keeper) == 0;
  }));
  ::close(client);
}

TEST_CASE("a killed keeper is replaced, and the new one has its clients",
          "[shared_sockets][KEEPER-1]") {
  Host host;
  const int client = host.listener.connect();
  const pid_t leader = host.leader(1, [](SharedSockets& own, std::vector<int>& accepted) {
    pollfd ended{own.keeper_fd(), POLLIN, 0};
    if (::poll(&ended, 1, -1) != 1) ::_exit(3);
    own.replace_keeper();
    (void)!::send(accepted[0], "r", 1, 0);
  });
  ::kill(host.keeper_of(leader), SIGKILL);
  REQUIRE(receive(client) == "r");
  end(leader);
  next_node_takes(host, client);
}

TEST_CASE("the put position is read only by the connection of its slot",
          "[connection_table][TABLE-1]") {
  Host host;
  auto writer = ConnectionTable::open(host.directory + "/connections");
  auto reader = ConnectionTable::open(host.directory + "/connections");
  REQUIRE((writer.ok() && reader.ok()));
  ConnectionTable& w = *writer.value();
  const std::uint32_t slot = w.claim(SocketId{11});
  const std::uint32_t other = w.claim(SocketId{12});
  REQUIRE(slot != other);
  w.set_put(slot, 500);
  CHECK(reader.value()->put_of(slot, SocketId{11}) == 500U);
  CHECK_FALSE(reader.value()->put_of(slot, SocketId{12}));
  w.release(slot);
  CHECK_FALSE(reader.value()->put_of(slot, SocketId{11}));
  CHECK(w.claim(SocketId{13}) == slot);
  CHECK(reader.value()->put_of(slot, SocketId{13}) == 0U);
  reader.value()->keep_only({other});  // this node leads now
  CHECK_FALSE(w.put_of(slot, SocketId{13}));
  CHECK(w.put_of(other, SocketId{12}) == 0U);
}
