// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connections with one operation at a time, which record their calls and answers.
//
// One thread, one clock (CLOCK_MONOTONIC): CALLED is taken before the request is sent, RETURNED
// after its answer was read. If a connection breaks or does not answer in time, its operation stays
// open, and a new client with a new number connects to an address drawn at random.

#include <netinet/in.h>
#include <poll.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "tests/linear/workload.h"

namespace crane::linear {

struct ClientOptions {
  std::vector<std::string> addresses;
  std::uint16_t port = 0;
  unsigned clients = 16;
  unsigned timeout_ms = 1000;
  std::string history;
  WorkloadOptions workload;
};

struct Counts {
  std::uint64_t answered = 0;
  std::uint64_t open = 0;  // includes the refused ones
  std::uint64_t refused = 0;
  std::uint64_t odd = 0;  // answers of another type than the request's
};

class Clients {
 public:
  explicit Clients(const ClientOptions& options);
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  // Returns false if the history cannot be written or an address is invalid.
  bool open();
  // Works for at most `wait_ms`.
  void turn(int wait_ms);
  // Starts no more random operations; after those in progress every key is read once.
  void finish();
  bool finished() const noexcept { return finishing_ && waiting_.empty() && busy_ == 0; }
  const Counts& counts() const noexcept { return counts_; }

 private:
  enum class Phase : std::uint8_t { kPaused, kConnecting, kIdle, kAsked };
  struct Client {
    int fd = -1;
    Phase phase = Phase::kPaused;
    std::uint64_t number = 0;
    std::uint64_t due_ns = 0;  // paused: time to connect; otherwise: time to give up
    Request request;
    std::string received;
  };

  void connect(Client& client);
  void ask(Client& client);
  void receive(Client& client);
  void answered(Client& client, const Reply& reply);
  void lose(Client& client);
  void on_ready(Client& client, short events);
  void write_down(const Request& request);

  const ClientOptions options_;
  std::vector<sockaddr_in> addresses_;
  Workload workload_;
  std::mt19937_64 random_;
  std::vector<Client> clients_;
  std::vector<pollfd> polled_;
  std::deque<Request> waiting_;  // closing reads
  std::uint64_t numbers_ = 0;
  unsigned busy_ = 0;  // operations in progress
  bool finishing_ = false;
  Counts counts_;
  std::FILE* history_ = nullptr;
  std::string line_;
};

}  // namespace crane::linear
