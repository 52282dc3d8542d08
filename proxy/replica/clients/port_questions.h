// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's answers to binds of its server that wait to learn whether a port can be had outside
// (OutputType::kPortWanted).  Requests the port from the part that opens ports for clients, and
// proposes PORT.
//
// Every replica remembers the questions of its server, so that a new leader can answer them.  Each
// Tick reports whether a bind still waits.
//
// The contract with the shell (proxy/host/listeners.h) is that of consensus/core/step.h: actions
// are carried out in order and completely before those of a later step, and every event is legal in
// every state.  Opened answers Open, Proposed answers Propose.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT PORT-1  A leader proposes at most one answer to a question.  Two leaders may propose
//                   one each; admission obeys the first.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "dmt/base/place.h"
#include "dmt/sequence/entry.h"

namespace crane::replica {

namespace ports {

// --- events

// The server asks a question.
struct Wanted {
  Place place;
  std::uint64_t question = 0;
};
// The answer to Open: errno or 0; nullopt: it follows later, as Seen::has or Settled.
struct Opened {
  std::uint64_t question = 0;
  std::optional<int> error;
};
// The later answer: errno, or 0 for a port that needs no listening socket.
struct Settled {
  Place place;
  int error = 0;
};
// The questions to the shell are lost.
struct AskAgain {};
struct Proposed {
  std::uint64_t question = 0;
  bool ok = false;
};
// A question.  `file` is the socket whose bind waits, or 0.  `has` is true if the group has a
// listening socket.
struct OpenQuestion {
  std::uint64_t question = 0;
  std::uint32_t file = 0;
  bool has = false;
};
struct Tick {
  // This replica's server has admitted its leader's START, and the replica may propose.
  bool leads = false;
  std::span<const OpenQuestion> seen;  // one for each question of waiting(); valid during the step
};

using Event = std::variant<Tick, Wanted, Opened, Settled, AskAgain, Proposed>;

// --- actions

// Tries to open the port.
struct Open {
  std::uint64_t question = 0;
  Place place;
};
struct Propose {
  PortBody body{};
};

using Action = std::variant<Open, Propose>;
using ActionList = std::vector<Action>;

}  // namespace ports

class PortQuestions {
 public:
  enum class State : std::uint8_t { kNew, kAsked, kAnswered };  // in this reign
  struct Question {
    Place place;
    std::uint32_t file = 0;  // as of the last Tick
    State state = State::kNew;
  };

  void step(const ports::Event& event) {
    std::visit([this](const auto& e) { on(e); }, event);
  }
  // Returns the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(ports::ActionList& out) {
    out.clear();
    std::swap(out, actions_);
    return !out.empty();
  }
  // By number.  While it is empty, a Tick does nothing.
  const std::map<std::uint64_t, Question>& waiting() const noexcept { return waiting_; }

 private:
  void on(const ports::Tick& tick);
  void on(const ports::Wanted& wanted) { waiting_[wanted.question] = {wanted.place}; }
  void on(const ports::Opened& opened);
  void on(const ports::Settled& settled) { settled_[settled.place] = settled.error; }
  void on(const ports::AskAgain&);
  void on(const ports::Proposed& proposed);
  void look(std::uint64_t number, Question& question, bool has);

  ports::ActionList actions_;
  std::map<std::uint64_t, Question> waiting_;
  std::map<Place, int> settled_;  // answers that arrived while the question is open
};

}  // namespace crane::replica
