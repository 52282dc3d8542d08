// SPDX-License-Identifier: Apache-2.0
// engine: a matching engine. Limit orders for several symbols over TCP (eval/engine/wire.h).
//
// The main thread accepts connections and distributes them to workers. A worker reads its
// connections, executes their requests and sends the reports, also to accounts whose connections
// other workers read.
//
// Exit: 1 the port is unavailable, 2 wrong use; it runs until a signal ends it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "eval/engine/exchange.h"

namespace {

using namespace engine;

struct Connection {
  int fd = -1;
  Outlet* outlet = nullptr;  // set after logon
  Account account = 0;
  std::size_t held = 0;  // bytes of `in`
  std::array<char, 256 * sizeof(Request)> in;
};

class Worker {
 public:
  explicit Worker(Exchange& exchange) : exchange_(exchange), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  void take(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = new Connection{.fd = fd, .in = {}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  [[noreturn]] void run() {
    std::array<epoll_event, 64> events;
    for (;;) {
      const int n = epoll_wait(epoll_, events.data(), int{events.size()}, -1);
      for (int i = 0; i < n; ++i) {
        auto* connection = static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
        if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) {
          connection->outlet->flush();
        }
        if ((events[static_cast<std::size_t>(i)].events & ~std::uint32_t{EPOLLOUT}) != 0 &&
            !read_some(*connection)) {
          close(connection->fd);
          delete connection;
        }
      }
    }
  }

 private:
  // False if the connection has ended.
  bool read_some(Connection& c) {
    const ssize_t got = recv(c.fd, c.in.data() + c.held, c.in.size() - c.held, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    bool stays = got > 0;
    if (stays) c.held += static_cast<std::size_t>(got);
    std::size_t used = 0;
    for (; stays && c.held - used >= sizeof(Request); used += sizeof(Request)) {
      Request request;
      std::memcpy(&request, c.in.data() + used, sizeof request);
      stays = obey(c, request);
    }
    std::memmove(c.in.data(), c.in.data() + used, c.held - used);
    c.held -= used;
    for (const Account other : touched_) exchange_.outlet(other)->flush();
    touched_.clear();
    if (c.outlet == nullptr) return stays;
    c.outlet->flush();
    if (!stays) c.outlet->detach(c.fd);
    return stays;
  }

  bool obey(Connection& c, const Request& request) {
    if (c.outlet == nullptr) {
      if (request.ask != Ask::kLogon) return false;
      c.outlet = exchange_.outlet(request.order);
      if (c.outlet == nullptr) return false;
      c.account = static_cast<Account>(request.order);
      c.outlet->attach(c.fd, epoll_, &c);
    }
    exchange_.obey(c.account, request, touched_);
    return true;
  }

  Exchange& exchange_;
  int epoll_;
  std::vector<Account> touched_;
};

int listener_at(const std::string& address, std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &a.sin_addr) != 1 ||
      bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(fd, 128) != 0) {
    std::fprintf(stderr, "engine: cannot listen on %s:%u: %s; choose another --port\n",
                 address.c_str(), unsigned{port}, std::strerror(errno));
    return -1;
  }
  return fd;
}

}  // namespace

int main(int argc, char** argv) {
  std::string address = "127.0.0.1";
  std::uint16_t port = 7001;
  std::size_t workers = 4, symbols = 16, accounts = 1024;
  CLI::App app("A matching engine: limit orders, price first, then time");
  app.option_defaults()->always_capture_default();
  app.add_option("--address", address, "to listen on");
  app.add_option("--port", port, "");
  app.add_option("--workers", workers, "threads that execute requests")->check(CLI::Range(1, 256));
  app.add_option("--symbols", symbols, "0 .. this - 1")->check(CLI::Range(1, 65536));
  app.add_option("--accounts", accounts, "0 .. this - 1")->check(CLI::Range(1, 1 << 20));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const int listener = listener_at(address, port);
  if (listener < 0) return 1;
  Exchange exchange(symbols, accounts);
  std::vector<std::unique_ptr<Worker>> crew;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < workers; ++i) {
    crew.push_back(std::make_unique<Worker>(exchange));
    threads.emplace_back([worker = crew.back().get()] { worker->run(); });
  }
  std::printf("engine: %zu symbols, %zu workers, listening on %s:%u\n", symbols, workers,
              address.c_str(), unsigned{port});
  std::fflush(stdout);
  for (std::size_t next = 0;; next = (next + 1) % workers) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    crew[next]->take(fd);
  }
}
