// SPDX-License-Identifier: Apache-2.0
#pragma once
// A control group for a process that gets only what all others leave of the processors (cpu.idle,
// Linux 5.15), until it is told otherwise.
//
// SCHED_IDLE alone does not say that: it counts among the processes of one control group, and of
// one session where the kernel makes a group of each (sched(7), autogroups).  A server's threads
// are in the group of their container, so they would wait for the SCHED_IDLE process of another
// group as for any process.
//
// To move a process costs its mover some ten milliseconds (the kernel lets all processors pass a
// quiet point), to change what the group gets none: so who is to hurry changes the group.
//
// Where there is no such group to be had (an older kernel, no control groups), nothing happens.
//
// Threads: one object, one thread.

#include <sys/types.h>

#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

class Background {
 public:
  Background() = default;
  ~Background();  // the group goes if its process has gone
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // `process`: it and its later children.  False: it is where it was.  REQUIRES: not entered
  // before.
  bool enter(pid_t process);
  // Behind all others, as from enter() on, or like them.  Async-signal-safe.
  bool be_last(bool last) const noexcept;
  // Back to where the caller is.
  bool leave(pid_t process);

  // The whole group that the process is in, like a container's; false if the caller is in it, too.
  static bool put_group_last(pid_t process);

  // What was left, by whoever was killed: the groups without a process.
  static void remove_left() noexcept;

 private:
  std::string group_;
  Descriptor idle_;
};

}  // namespace crane::checkpoint
