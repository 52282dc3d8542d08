// SPDX-License-Identifier: Apache-2.0
#include "eval/latency/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace latency {
namespace {

constexpr Nanoseconds kDrain = 2'000'000'000;      // for answers after the window
constexpr Nanoseconds kPatience = 10'000'000'000;  // for an answer before it

Nanoseconds clock_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
Nanoseconds from_seconds(double seconds) { return static_cast<Nanoseconds>(seconds * kSecond); }

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Client::Client(const Options& options, const Protocol& protocol)
    : options_(options), protocol_(protocol), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) fail("epoll_create1");
  prctl(PR_SET_TIMERSLACK, 1);  // otherwise the kernel wakes us up to 50 us late
  for (unsigned i = 0; i < options.connections; ++i) {
    open(*connections_.emplace_back(std::make_unique<Connection>()));
  }
}

Client::~Client() {
  for (const auto& c : connections_) close(c->fd);
  close(epoll_);
}

void Client::open(Connection& c) {
  c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (c.fd < 0) fail("socket");
  const int on = 1;
  setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(options_.port);
  if (inet_pton(AF_INET, options_.address.c_str(), &a.sin_addr) != 1 ||
      connect(c.fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) {
    fail("connecting");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &c;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, c.fd, &event) != 0) fail("epoll_ctl");
}

void Client::ask(Connection& c, const Request& request) {
  c.request = request;
  c.busy = true;
  const std::string text = protocol_.text_of(request);
  const ssize_t sent = send(c.fd, text.data(), text.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(text.size())) fail("sending");
}

void Client::read_some(Connection& c) {
  std::array<char, 65536> bytes;
  const ssize_t got = recv(c.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got > 0) {
    c.in.append(bytes.data(), static_cast<std::size_t>(got));
  } else if (got == 0) {
    throw WrongAnswer("the server closed a connection");
  } else if (errno != EAGAIN && errno != EINTR) {
    fail("receiving");
  }
}

bool Client::take_answer(Connection& c) {
  if (!c.busy) throw WrongAnswer("bytes without a request: " + c.in.substr(0, 100));
  const std::size_t whole = protocol_.answer_in(c.request, c.in);
  if (whole == 0) return false;
  const bool last = protocol_.is_last(std::string_view(c.in).substr(0, whole));
  c.in.erase(0, whole);
  c.busy = false;
  if (last) {
    close(c.fd);
    open(c);
  }
  return true;
}

void Client::fill() {
  if (!protocol_.has_keys()) return;
  Connection& c = *connections_.front();
  for (std::uint32_t key = 0; key < kKeys; ++key) {
    ask(c, {.writes = true, .key = key});
    do {
      if (ready_until(clock_now() + kPatience).empty()) throw WrongAnswer("no answer to a write");
      read_some(c);
    } while (!take_answer(c));
  }
}

// Sleeps until that time or until connections are ready; returns these.
std::span<const epoll_event> Client::ready_until(Nanoseconds then) {
  const Nanoseconds left = std::max<Nanoseconds>(0, then - clock_now());
  const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  const int n =
      epoll_pwait2(epoll_, events_.data(), static_cast<int>(events_.size()), &timeout, nullptr);
  if (n < 0 && errno != EINTR) fail("epoll_pwait2");
  return {events_.data(), static_cast<std::size_t>(std::max(n, 0))};
}

bool Client::is_enough() const { return options_.requests > 0 && next_ >= options_.requests; }

bool Client::is_due(Nanoseconds now) const {
  if (options_.rate <= 0) return now < end_ && !is_enough();
  return next_ < schedule_.count() && schedule_.time_of(next_) <= now;
}

void Client::send_due() {
  for (Nanoseconds now = clock_now(); !free_.empty() && is_due(now); now = clock_now()) {
    Connection& c = *free_.front();
    free_.pop_front();
    c.intended = options_.rate > 0 ? schedule_.time_of(next_) : now;
    if (is_measured(c)) {
      const Nanoseconds late = lateness(c.intended, c.free_since, now);
      result_.lateness.add(static_cast<double>(late) / 1000);
      result_.counts.late += static_cast<double>(late) > options_.late_us * 1000;
      result_.counts.due += options_.rate <= 0;
    }
    ask(c, request_of(next_++));
  }
}

void Client::finish(Connection& c, Nanoseconds now) {
  c.free_since = now;
  free_.push_back(&c);
  if (!is_measured(c)) return;
  result_.latency.add(static_cast<double>(now - c.intended) / 1000);
  ++result_.counts.answered;
  result_.took_seconds = static_cast<double>(now - measured_from_) / kSecond;
  result_.counts.answered_in_time += now <= end_;
}

Nanoseconds Client::next_wake(Nanoseconds now) const {
  const bool sends = options_.rate > 0 && next_ < schedule_.count() && !free_.empty();
  return sends ? std::max(now, schedule_.time_of(next_)) : end_ + kDrain;
}

Result Client::run() {
  const Nanoseconds begin = clock_now();
  measured_from_ = begin + from_seconds(options_.warm_seconds);
  end_ = measured_from_ + from_seconds(options_.seconds);
  if (options_.rate > 0) {
    schedule_ = Schedule(options_.rate, begin, end_);
    for (std::uint64_t i = 0; i < schedule_.count(); ++i) {
      result_.counts.due += schedule_.time_of(i) >= measured_from_;
    }
  }
  for (const auto& c : connections_) free_.push_back(c.get());
  for (Nanoseconds now = begin; now < end_ + kDrain; now = clock_now()) {
    send_due();
    const bool all_sent =
        options_.rate > 0 ? next_ >= schedule_.count() : now >= end_ || is_enough();
    if (all_sent && free_.size() == connections_.size()) break;
    for (const epoll_event& event : ready_until(next_wake(now))) {
      auto& c = *static_cast<Connection*>(event.data.ptr);
      read_some(c);
      if (!c.in.empty() && take_answer(c)) finish(c, clock_now());
    }
  }
  return result_;
}

}  // namespace latency
