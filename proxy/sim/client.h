// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client of the simulated group: it sends what it was drawn to send, and compares every byte that
// it hears with what the server makes of it.
//
// Threads: one.

#include <cstdint>
#include <set>
#include <string>

#include "consensus/sim/world.h"
#include "proxy/sim/echo_server.h"
#include "proxy/sim/kernel.h"

namespace crane::proxy::sim {

using consensus::sim::Random;

class SimClient {
 public:
  // It sends so many bytes at most.
  SimClient(unsigned number, Random& random, std::uint64_t most = 6000);

  // It connects, sends or hears something.  A complaint, or "".
  std::string step(Kernel& kernel, Random& random);
  std::uint64_t begins_ns() const { return begins_ns_; }
  std::uint64_t pace_ns() const { return pace_ns_; }
  bool done() const { return done_; }
  // Its connection was reset by a leader that could not go on, as it may.
  bool lost() const { return lost_; }
  void lose() { lost_ = done_ = true; }
  // It has sent all that it was to send, and heard the end.
  bool complete() const { return ended_ && (fin_ || (quits_ && sent_.size() == to_send_)); }
  unsigned number() const { return number_; }

  const std::string& sent() const { return sent_; }
  bool aborted() const { return socket_ != nullptr && socket_->reset_by_client; }
  bool fin_sent() const { return fin_; }
  // Where its urgent bytes end.
  const std::set<std::uint64_t>& marks() const { return marks_; }
  std::uint64_t heard() const { return heard_; }
  // How far it has come, for a complaint.
  std::string text() const;

 private:
  bool sends_urgent() const;
  void send(Kernel& kernel, Random& random);
  std::string hear(Kernel& kernel, Random& random);

  const unsigned number_;
  std::uint64_t begins_ns_ = 0;
  std::uint64_t pace_ns_ = 0;
  std::uint64_t to_send_ = 0;
  std::uint64_t aborts_at_ = 0;  // it resets the connection behind so many bytes; 0: it does not
  std::uint64_t half_at_ = 0;    // where kHalf stands; 0: nowhere
  bool quits_ = false;           // kQuit is the last byte; else a FIN ends its stream
  bool sends_large_ = false;
  std::uint64_t hears_most_ = 0;

  SimSocket* socket_ = nullptr;
  std::string sent_, expected_;
  std::set<std::uint64_t> marks_;
  std::uint64_t heard_ = 0;
  bool fin_ = false, ended_ = false, done_ = false, lost_ = false;
};

}  // namespace crane::proxy::sim
