// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's node decides about time slices (dmt/slices.h): which thread it looks at for a tick
// point, when it proposes a point that is known, and how much a passage of a point is worth.
//
// Looks only while a thread has the turn: an idle replica costs nothing.  A thread that has had it
// for kComputesNs at one clock (longer while the server starts) computes without a tick point, or
// its points come too rarely; it is looked at, which makes it slow for a while: so much later, as
// SLICES-3 says, the next one may be. What is found serves from the thread's next turn on; for a
// computation that has none for long, all replicas begin again.
//
// Contract with the shell (proxy/host/slice_watch.h): as consensus/core/step.h.  Each Find is
// answered by Found.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT SLICES-1  One thread at a time is looked at.
// INVARIANT SLICES-2  A weight is proposed again only when the last one that was proposed for the
//               point has been admitted.
// INVARIANT SLICES-3  Between two looks lies kApart times as long as the last one took, twice as
//               long for each in a row that found nothing, at most kApartMaxNs.
// INVARIANT SLICES-4  All begin again only for a thread that has computed at one clock for
//               kEndlessNs, twice as long for each time before, for which a point was found that
//               does not count yet, and for which others wait.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dmt/sequence/entry.h"
#include "proxy/replica/deadline.h"

namespace crane::replica {

namespace slices {

// A thread that has the turn, outside of Crane.
struct Computing {
  std::uint16_t slot = 0;
  std::uint64_t clock = 0;
};

struct Look {
  bool leads = false;
  bool serves = false;  // the server has had a client
  std::optional<Computing> thread;
  std::span<const TickPoint> points;  // that were admitted; valid during the step
  // The last slice that ended here: how many did, at which point, what that weighed in it, and the
  // processor time that it took.
  std::uint64_t slices = 0;
  std::uint32_t point = 0;
  std::uint32_t weight_ps = 0;
  std::int64_t cpu_ns = 0;  // 0: not known
  // Somebody waits for the thread, and a replica that ends is started again.
  bool may_begin_again = false;
  std::uint32_t early_points = 0;  // of this group so far
};
struct Found {
  std::optional<TickPoint> point;
  std::string where;  // it is, or why there is none
};
// The entry of this point could not be proposed.
struct NotProposed {
  TickPoint point{};
};

using Event = std::variant<Look, Found, NotProposed>;

// `proposed`: points to know beside those that were admitted.
struct Find {
  std::uint16_t slot = 0;
  std::vector<TickPoint> proposed;
};
struct Propose {
  TickPoint point{};
};
// The thread has no turn at which it could get the point that was found for it, so all replicas
// begin again, where it gets it before it computes.  When that cannot be proposed it is asked for
// again.
struct BeginAgain {
  EarlyPoint early{};
};
struct Say {
  bool warns = false;
  std::string text;
};

using Action = std::variant<Find, Propose, BeginAgain, Say>;
using ActionList = std::vector<Action>;

struct Options {
  std::int64_t slice_ns = 0;     // 0: there are no slices
  std::vector<TickPoint> known;  // from earlier runs, and of the profile
  std::size_t points_max = 0;
};

}  // namespace slices

// What computes without a tick point, for the status.
struct Unsliced {
  std::string where;  // "": nothing was seen to
  std::int64_t lasted_ns = 0;
};

class Slices {
 public:
  explicit Slices(slices::Options options) : options_(std::move(options)) {}

  void step(const slices::Event& event, std::int64_t now_ns);
  // Gives the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(slices::ActionList& out);
  // When the next Look is due; kNever: after the next event.
  std::int64_t deadline_ns() const noexcept { return due_ns_; }
  const Unsliced& unsliced() const noexcept { return unsliced_; }

 private:
  void on(const slices::Look& look);
  void on(const slices::Found& found);
  void on(const slices::NotProposed& refused);

  void note_admitted(std::span<const TickPoint> points);
  void propose_known(const slices::Look& look);
  void correct_weight(const slices::Look& look);
  void look_for_computation(const slices::Look& look);
  void begin_again(const slices::Look& look);
  void propose(const TickPoint& point);
  void note_look(bool found);
  bool is_known(const TickPoint& point) const noexcept;
  std::size_t points_to_be() const noexcept;

  const slices::Options options_;
  slices::ActionList actions_;
  std::int64_t now_ns_ = 0;
  std::int64_t due_ns_ = kNever;

  bool led_ = false;
  bool known_proposed_ = false;  // all of options_.known, in this reign
  std::uint64_t slices_seen_ = 0;
  std::vector<TickPoint> proposed_;  // and not yet admitted
  std::vector<TickPoint> admitted_;  // as of the last Look

  slices::Computing computing_;
  std::int64_t since_ns_ = 0;
  std::int64_t find_began_ns_ = 0, next_find_ns_ = 0;
  unsigned in_vain_ = 0;  // looks in a row
  bool finding_ = false;
  bool followed_ = false;  // in the slice that is under way
  slices::Computing found_for_;
  std::optional<TickPoint> early_;  // for the computation that is under way
  std::int64_t found_since_ns_ = 0;
  Unsliced unsliced_;
};

}  // namespace crane::replica
