// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/client.h"
#include "dmt/base/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace crane::linear {
namespace {

constexpr std::uint64_t kPauseNs = 20'000'000;  // before another connection attempt

std::uint64_t monotonic_ns() noexcept { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

}  // namespace

Clients::Clients(const ClientOptions& options)
    : options_(options),
      workload_(options.workload),
      random_(options.workload.seed ^ 0x5bd1e995),
      clients_(options.clients),
      polled_(options.clients) {}

Clients::~Clients() {
  for (const Client& c : clients_) {
    if (c.fd >= 0) ::close(c.fd);
  }
  if (history_ != nullptr) std::fclose(history_);
}

bool Clients::open() {
  for (const std::string& address : options_.addresses) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(options_.port);
    if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return false;
    addresses_.push_back(to);
  }
  history_ = std::fopen(options_.history.c_str(), "we");
  return history_ != nullptr && !addresses_.empty();
}

void Clients::finish() {
  if (finishing_) return;
  finishing_ = true;
  for (Request& r : workload_.closing_reads()) waiting_.push_back(std::move(r));
}

void Clients::turn(int wait_ms) {
  const std::uint64_t now = monotonic_ns();
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    Client& c = clients_[i];
    if (now >= c.due_ns && c.phase != Phase::kIdle) {
      if (c.phase == Phase::kPaused) {
        connect(c);
      } else {
        lose(c);
      }
    }
    if (c.phase == Phase::kIdle) ask(c);
    const short events = c.phase == Phase::kConnecting ? POLLOUT : POLLIN;
    polled_[i] = {c.phase == Phase::kPaused ? -1 : c.fd, events, 0};
  }
  if (::poll(polled_.data(), polled_.size(), wait_ms) <= 0) return;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (polled_[i].revents != 0) on_ready(clients_[i], polled_[i].revents);
  }
}

void Clients::connect(Client& c) {
  const sockaddr_in& to = addresses_[random_() % addresses_.size()];
  c.number = ++numbers_;
  c.received.clear();
  c.phase = Phase::kConnecting;
  c.due_ns = monotonic_ns() + std::uint64_t{options_.timeout_ms} * 1'000'000;
  c.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  (void)::setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (c.fd < 0 || (::connect(c.fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
                   errno != EINPROGRESS)) {
    lose(c);
  }
}

void Clients::on_ready(Client& c, short events) {
  if (c.phase == Phase::kConnecting) {
    if ((events & (POLLERR | POLLHUP)) != 0) return lose(c);
    c.phase = Phase::kIdle;
    return ask(c);
  }
  receive(c);
}

void Clients::ask(Client& c) {
  if (!finishing_) {
    c.request = workload_.next();
  } else if (!waiting_.empty()) {
    c.request = std::move(waiting_.front());
    waiting_.pop_front();
  } else {
    return;
  }
  std::string bytes;
  write_request(bytes, c.request);
  ++busy_;
  c.phase = Phase::kAsked;
  c.request.operation.client = c.number;
  c.request.operation.called_ns = monotonic_ns();
  c.due_ns = c.request.operation.called_ns + std::uint64_t{options_.timeout_ms} * 1'000'000;
  const ssize_t sent = ::send(c.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) lose(c);
}

void Clients::receive(Client& c) {
  char bytes[16384];
  const ssize_t n = ::recv(c.fd, bytes, sizeof bytes, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return lose(c);
  c.received.append(bytes, static_cast<std::size_t>(n));
  Reply reply;
  std::size_t used = 0;
  const Parsed parsed = parse_reply(c.received, reply, used);
  if (parsed == Parsed::kMore) return;
  if (parsed == Parsed::kBad || c.phase != Phase::kAsked || used != c.received.size()) {
    ++counts_.odd;
    return lose(c);
  }
  c.received.clear();
  answered(c, reply);
}

void Clients::answered(Client& c, const Reply& reply) {
  Operation& op = c.request.operation;
  if (!take_reply(reply, op)) {
    ++counts_.odd;
    return lose(c);
  }
  if (op.refused) {
    ++counts_.refused;
    ++counts_.open;
  } else {
    op.returned_ns = monotonic_ns();
    ++counts_.answered;
  }
  write_down(c.request);
  --busy_;
  c.phase = Phase::kIdle;
  ask(c);
}

void Clients::lose(Client& c) {
  if (c.phase == Phase::kAsked) {
    ++counts_.open;
    --busy_;
    c.request.operation.given_up_ns = monotonic_ns();
    write_down(c.request);
    if (finishing_ && c.request.operation.reads()) {
      Request again;  // another client repeats the read
      again.key = c.request.key;
      again.operation.action = c.request.operation.action;
      waiting_.push_back(std::move(again));
    }
  }
  if (c.fd >= 0) ::close(c.fd);
  c.fd = -1;
  c.phase = Phase::kPaused;
  c.due_ns = monotonic_ns() + kPauseNs;
}

void Clients::write_down(const Request& request) {
  line_.clear();
  write_line(line_, request.key, request.operation);
  (void)std::fwrite(line_.data(), 1, line_.size(), history_);
}

}  // namespace crane::linear
