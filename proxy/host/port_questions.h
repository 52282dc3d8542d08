// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's answers to binds of its server that wait to know whether the outside can have a port
// (OutputType::kPortWanted).  Asks whoever opens ports for clients, and proposes PORT.
//
// Every replica remembers what its server asked, so that a new leader can answer; whether a bind
// still waits is read from the segment.
//
// Threads: the node's one thread.
// INVARIANT PORT-1  A leader proposes at most one answer to a question; two leaders may, and
//                   admission obeys the first.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "dmt/layout.h"

namespace crane::node {

struct PortActions {
  // The group has a listening socket for this port of the server.
  std::function<bool(std::uint16_t port)> has;
  // Tries to open one: errno or 0; nothing when the answer comes later, as has() or settled().
  std::function<std::optional<int>(std::uint16_t port)> open;
  // Proposes PORT; false: not now.
  std::function<bool(const PortBody& body)> propose;
};

class PortQuestions {
 public:
  PortQuestions(dmt::Layout& layout, PortActions actions)
      : w_(layout), actions_(std::move(actions)) {}

  // The server asks.
  void wanted(std::uint16_t port, std::uint64_t question) { waiting_[question] = port; }
  // The server comes from a checkpoint.  REQUIRES the turn.
  void recover();
  // The later answer of open(): errno, or 0 for a port that needs no listening socket.
  void settled(std::uint16_t port, int error) { settled_[port] = error; }
  // Whoever was asked is gone.
  void ask_again();
  // `leads`: this replica's server has admitted its leader's START, and it may propose.
  void step(bool leads);

 private:
  // The socket whose bind waits; 0: none does.
  std::uint32_t socket_of(std::uint64_t question) const noexcept;
  std::optional<int> find_out(std::uint16_t port, std::uint64_t question);

  dmt::Layout& w_;
  PortActions actions_;
  std::map<std::uint64_t, std::uint16_t> waiting_;  // the ports of questions
  std::map<std::uint64_t, bool> reign_questions_;   // questions of this reign; true: answered
  std::map<std::uint16_t, int> settled_;            // ports, while they are asked for
};

}  // namespace crane::node
