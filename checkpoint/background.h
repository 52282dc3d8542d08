// SPDX-License-Identifier: Apache-2.0
#pragma once
// A control group for a process that gets only what all others leave of the processors (cpu.idle,
// Linux 5.15), until it is told otherwise.
//
// SCHED_IDLE alone does not say that: it counts among the processes of one control group, and of
// one session where the kernel makes a group of each (sched(7), autogroups).  A server's threads
// are in the group of their container, so they would wait for the SCHED_IDLE process of another
// group as for any process.  Nice values count as little.
//
// To move a process costs its mover some ten milliseconds (the kernel lets all processors pass a
// quiet point).  To change what the group gets costs nothing, so a boost changes the group.
//
// The group is below the root, beside those of LXC's containers: with cgroups of version 2 its
// process has left all limits of the service that the node is in.  Where there is none to be had
// (an older kernel, no privilege, a version 2 without `cpu` in the root's cgroup.subtree_control)
// nothing happens.
//
// Threads: one object, one thread.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

class Background {
 public:
  enum class Share : std::uint8_t {
    kLeft,    // what all others leave
    kLittle,  // on a busy machine as who has a nice value of 19
    kUsual,
  };

  Background() = default;
  ~Background();  // the group goes if its process has gone
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // `process`: it and its later children; kLeft.  False: it is where it was.  REQUIRES: not entered
  // before.
  bool enter(pid_t process);
  // Async-signal-safe.
  bool set(Share share) const noexcept;
  // Back to where the caller is.
  bool leave(pid_t process);

  // A process that entered is about to be ended: that takes some of the processors, and a caller
  // waits.
  static void lift(pid_t process) noexcept;
  // The whole group that the process is in, like a container's: what all others leave, or as usual.
  // False if the caller is in it, too.
  static bool set_group(pid_t process, bool left);
  // What was left, by whoever was killed: the groups without a process.  May wait for others that
  // move.
  static void remove_left() noexcept;

 private:
  std::string group_;
  Descriptor idle_, weight_;
  const char* little_ = "";
};

}  // namespace crane::checkpoint
