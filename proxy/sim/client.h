// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client of the simulated group.  It sends bytes drawn at random, and compares every received
// byte with the server's output.
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
  // `most`: the most bytes that it sends.
  SimClient(unsigned number, Random& random, std::uint64_t most = 6000);

  // Connects, sends or receives something.  Returns a complaint, or "".
  std::string step(Kernel& kernel, Random& random);
  std::uint64_t begins_ns() const { return begins_ns_; }
  std::uint64_t pace_ns() const { return pace_ns_; }
  bool done() const { return done_; }
  // Its connection was reset by a leader that could not continue it, which is allowed.
  bool lost() const { return lost_; }
  void lose() { lost_ = done_ = true; }
  // It has sent everything and received the end.
  bool complete() const { return ended_ && (fin_ || (quits_ && sent_.size() == to_send_)); }
  unsigned number() const { return number_; }

  const std::string& sent() const { return sent_; }
  bool aborted() const { return socket_ != nullptr && socket_->reset_by_client; }
  bool fin_sent() const { return fin_; }
  // The ends of its urgent bytes.
  const std::set<std::uint64_t>& marks() const { return marks_; }
  std::uint64_t received() const { return received_; }
  // Its progress, for a complaint.
  std::string text() const;

 private:
  bool sends_urgent() const;
  void send(Kernel& kernel, Random& random);
  std::string receive(Kernel& kernel, Random& random);

  const unsigned number_;
  std::uint64_t begins_ns_ = 0;
  std::uint64_t pace_ns_ = 0;
  std::uint64_t to_send_ = 0;
  std::uint64_t aborts_at_ = 0;  // it resets the connection after this many bytes; 0: never
  std::uint64_t half_at_ = 0;    // the place of kHalf; 0: none
  bool quits_ = false;           // kQuit is the last byte; otherwise a FIN ends its stream
  bool sends_large_ = false;
  std::uint64_t receives_most_ = 0;

  SimSocket* socket_ = nullptr;
  std::string sent_, expected_;
  std::set<std::uint64_t> marks_;
  std::uint64_t received_ = 0;
  bool fin_ = false, ended_ = false, done_ = false, lost_ = false;
};

}  // namespace crane::proxy::sim
