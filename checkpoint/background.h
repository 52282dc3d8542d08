// SPDX-License-Identifier: Apache-2.0
#pragma once
// A control group for a process that gets a small share of the processors beside all others (its
// weight), until it is given more.
//
// A nice value alone does not say that: it counts among the processes of one control group, and of
// one session where the kernel makes a group of each (sched(7), autogroups).  A server's threads
// are in the group of their container, so they would share with a nice process of another group as
// with any process.
//
// To move a process costs its mover some ten milliseconds (the kernel lets all processors pass a
// quiet point).  To change what the group gets costs nothing, so its weight changes.
//
// The group is below the root, beside those of LXC's containers: with cgroups of version 2 its
// process has left all limits of the service that the node is in.  Where there is none to be had
// (no privilege, a version 2 without `cpu` in the root's cgroup.subtree_control) nothing happens.
//
// Threads: one object, one thread.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

class Background {
 public:
  Background() = default;
  ~Background();  // the group goes if its process has gone
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  static constexpr unsigned kUsual = 100;

  // `process`: it and its later children get `percent` of what the processes of a group weigh that
  // has the usual weight.  False: it is where it was.  REQUIRES: not entered before; percent > 0.
  bool enter(pid_t process, unsigned percent);
  // Async-signal-safe.  REQUIRES: percent > 0.
  bool set(unsigned percent) const noexcept;
  bool entered() const noexcept { return static_cast<bool>(weight_); }
  // Back to where the caller is.
  bool leave(pid_t process);

  // A process that entered is about to be ended: that takes some of the processors, and a caller
  // waits.  kUsual.
  static void lift(pid_t process) noexcept;
  // The whole group that the process is in, like a container's: what all others leave, or as usual.
  // False if the caller is in it, too.
  static bool set_group(pid_t process, bool left);
  // What was left, by whoever was killed: the groups without a process.  May wait for others that
  // move.
  static void remove_left() noexcept;

 private:
  std::string group_;
  Descriptor weight_;
  unsigned usual_ = 0;  // what kUsual is in the file's words
};

}  // namespace crane::checkpoint
