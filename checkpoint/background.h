// SPDX-License-Identifier: Apache-2.0
#pragma once
// A control group that gives a process a small share of the processors (its weight), until the
// share is raised.
//
// A nice value alone does not have this effect.  It counts only among the processes of one control
// group or, where the kernel makes each session a group (sched(7), autogroups), of one session.  A
// server's threads are in the group of their container, so a nice process of another group would
// get the share of any other process.
//
// Moving a process costs the caller some ten milliseconds, because the kernel waits until all
// processors pass a quiescent point.  Changing the group's weight costs nothing, so the share
// changes by the weight.
//
// The group is below the root, beside those of LXC's containers.  With cgroups version 2 its
// process is therefore outside all limits of the node's service.  Where no group can be made (no
// privilege, or version 2 without `cpu` in the root's cgroup.subtree_control) nothing happens.
//
// Threads: one object, one thread.
// INVARIANT SHARE-1  Work always has at least kLeast percent of the usual share, its share never
//                    shrinks while it waits, and reaches kMost within kMostNs of waiting.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

class Background {
 public:
  Background() = default;
  ~Background();  // removes the group if its process has ended
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  static constexpr unsigned kUsual = 100;

  // Moves `process` and its later children to a group with `percent` of the usual weight.  False:
  // the process was not moved.  REQUIRES: not entered before; percent > 0.
  bool enter(pid_t process, unsigned percent);
  // Sets the share.  Async-signal-safe.  REQUIRES: percent > 0.
  bool set(unsigned percent) const noexcept;
  bool entered() const noexcept { return static_cast<bool>(weight_); }
  // Moves the process to the caller's group.
  bool leave(pid_t process);

  // Gives a process that entered the usual share before it is ended: ending takes processor time,
  // and the caller waits for it.
  static void lift(pid_t process) noexcept;
  // Sets the share of the process's whole group, like a container's.  `left`: it gets only the time
  // that all others leave; else the usual share.  False if the caller is in that group, too.
  static bool set_group(pid_t process, bool left);
  // Removes the groups without a process, which killed processes left.  May wait for other
  // processes' moves.
  static void remove_left() noexcept;

 private:
  std::string group_;
  Descriptor weight_;
  unsigned usual_ = 0;  // the value of kUsual in weight_
};

// The processor share of work on a checkpoint beside servers: small at first, never zero, and
// growing with the time that the work has waited for a processor.  Work that a replica waits for (a
// lost replica returns, or the log has little room left) has the usual share from the start.
struct WorkShare {
  // Percent of what any other process gets.
  static constexpr unsigned kLeast = 10, kUsual = 100, kMost = 300;
  static constexpr std::int64_t kMostNs = 20'000'000'000;

  // `waited_ns`: time spent waiting for processors since the work began.
  static constexpr unsigned percent(std::int64_t waited_ns, bool urgent) noexcept {
    for (const Step& step : urgent ? kUrgent : kCalm) {
      if (waited_ns >= step.from_ns) return step.percent;
    }
    return kLeast;
  }
  // For a process whose control group has no weight: nearly the same effect within one group.
  static constexpr int nice_value(unsigned percent) noexcept {
    return percent < 30 ? 10 : percent < kUsual ? 5 : percent < kMost ? 0 : -5;
  }

 private:
  struct Step {
    std::int64_t from_ns;
    unsigned percent;
  };
  static constexpr std::array<Step, 4> kCalm{
      {{kMostNs, kMost}, {5'000'000'000, kUsual}, {500'000'000, 30}, {0, kLeast}}};
  static constexpr std::array<Step, 4> kUrgent{
      {{2'000'000'000, kMost}, {500'000'000, 200}, {0, kUsual}, {0, kUsual}}};
};

}  // namespace crane::checkpoint
