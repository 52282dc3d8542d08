// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's decisions about time slices (dmt/slices.h): in which thread it looks for a tick
// point, when it proposes a known point, and how much the passage of a point weighs.
//
// The leader looks only while a thread has the turn, so an idle replica costs nothing.  A thread
// that has had it for kComputesNs at one clock (longer while the server starts) computes without a
// tick point, or passes its points too rarely.  Looking for a point in it makes it slow for a
// while; SLICES-3 says how much later the next search may be.  A point that was found takes effect
// from the thread's next turn on.  If a computation has no turn for long, all replicas begin again.
//
// The contract with the shell (proxy/host/slice_watch.h) is that of consensus/core/step.h.  Found
// answers each Find.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT SLICES-1  One thread is searched at a time.
// INVARIANT SLICES-2  A weight of a point is proposed only when the last one that was proposed for
//                     it has been admitted.
// INVARIANT SLICES-3  The time between two searches is kApart times the duration of the last one,
//                     doubled for each one in a row that found nothing, and at most kApartMaxNs.
// INVARIANT SLICES-4  All replicas begin again only for a thread for which other threads wait,
//                     which has computed at one clock for kEndlessNs, doubled for each earlier
//                     time, and for which a point was found that is not in effect yet.

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

// A thread that has the turn and runs outside of Crane.
struct Computing {
  std::uint16_t slot = 0;
  std::uint64_t clock = 0;
};

struct Look {
  bool leads = false;
  bool serves = false;  // the server has had a client
  std::optional<Computing> thread;
  std::span<const TickPoint> points;  // those that were admitted; valid during the step
  // The last slice that ended on this replica: the number of such slices, its point, the weight of
  // that point in it, and the processor time of the slice.
  std::uint64_t slices = 0;
  std::uint32_t point = 0;
  std::uint32_t weight_ps = 0;
  std::int64_t cpu_ns = 0;  // 0: unknown
  // Other threads wait for this one, and a replica that ends is restarted.
  bool may_begin_again = false;
  std::uint32_t early_points = 0;  // of this group, so far
};
struct Found {
  std::optional<TickPoint> point;
  std::string where;  // the place of the point, or why there is none
};
// The entry of this point could not be proposed.
struct NotProposed {
  TickPoint point{};
};

using Event = std::variant<Look, Found, NotProposed>;

// `proposed`: points that count as known in addition to the admitted ones.
struct Find {
  std::uint16_t slot = 0;
  std::vector<TickPoint> proposed;
};
struct Propose {
  TickPoint point{};
};
// The thread has no turn at which the found point could take effect.  So all replicas begin again,
// with the point in effect before the thread computes.  If this cannot be proposed, it is requested
// again.
struct BeginAgain {
  EarlyPoint early{};
};
struct LogMessage {
  bool warns = false;
  std::string text;
};

using Action = std::variant<Find, Propose, BeginAgain, LogMessage>;
using ActionList = std::vector<Action>;

struct Options {
  std::int64_t slice_ns = 0;     // 0: slices are off
  std::vector<TickPoint> known;  // from earlier runs and the profile
  std::size_t points_max = 0;
};

}  // namespace slices

// A computation without a tick point, for the status.
struct Unsliced {
  std::string where;  // "": none was seen
  std::int64_t lasted_ns = 0;
};

class Slices {
 public:
  explicit Slices(slices::Options options) : options_(std::move(options)) {}

  void step(const slices::Event& event, std::int64_t now_ns);
  // Returns the actions since the last call by swapping buffers; false when there are none.
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
  bool known_proposed_ = false;  // all of options_.known were, in this reign
  std::uint64_t slices_seen_ = 0;
  std::vector<TickPoint> proposed_;  // not yet admitted
  std::vector<TickPoint> admitted_;  // as of the last Look

  slices::Computing computing_;
  std::int64_t since_ns_ = 0;
  std::int64_t find_began_ns_ = 0, next_find_ns_ = 0;
  unsigned in_vain_ = 0;  // fruitless searches in a row
  bool finding_ = false;
  bool followed_ = false;  // a thread was searched during the current slice
  slices::Computing found_for_;
  std::optional<TickPoint> early_;  // the point for the current computation
  std::int64_t found_since_ns_ = 0;
  Unsliced unsliced_;
  slices::Computing logged_for_;  // the computation of the last message about one without a point
  bool warned_ = false;           // .. was a warning
};

}  // namespace crane::replica
