// SPDX-License-Identifier: Apache-2.0
// Connections to one server in one thread: an open loop at a rate, or a closed one at full speed.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/latency/histogram.h"
#include "eval/latency/protocol.h"
#include "eval/latency/schedule.h"

namespace latency {

struct Options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  unsigned connections = 16;
  double rate = 0;  // 0: closed loop, each connection sends the next request at once
  double seconds = 10;
  double warm_seconds = 2;     // before the window, not measured
  std::uint64_t requests = 0;  // maximum in a closed loop; 0: limited by time
  double late_us = 1000;       // a request that is sent later than this counts as late
};

struct Result {
  Counts counts;
  double took_seconds = 0;  // from the start of the window to the last answer
  Histogram latency;        // from the intended time of each request
  Histogram lateness;       // of lateness(), us
};

// Throws WrongAnswer, and std::system_error.
class Client {
 public:
  Client(const Options& options, const Protocol& protocol);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void fill();  // gives all keys a value
  Result run();

 private:
  struct Connection {
    int fd = -1;
    bool busy = false;
    Request request;
    Nanoseconds intended = 0;
    Nanoseconds free_since = 0;
    std::string in;
  };

  void open(Connection& c);
  void ask(Connection& c, const Request& request);
  // True if the answer to its request is complete; then the connection is free again.
  bool take_answer(Connection& c);
  void read_some(Connection& c);
  void send_due();
  bool is_enough() const;
  bool is_due(Nanoseconds now) const;
  Nanoseconds next_wake(Nanoseconds now) const;
  std::span<const epoll_event> ready_until(Nanoseconds then);
  void finish(Connection& c, Nanoseconds now);
  bool is_measured(const Connection& c) const { return c.intended >= measured_from_; }

  const Options options_;
  const Protocol& protocol_;
  int epoll_;
  std::array<epoll_event, 256> events_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::deque<Connection*> free_;
  Schedule schedule_{1, 0, 0};
  Nanoseconds measured_from_ = 0, end_ = 0;
  std::uint64_t next_ = 0;
  Result result_;
};

}  // namespace latency
