// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica whose server is ended so that a new one takes its place (RestartBody): what
// is gone with the old one, and what goes on.
//
// Nothing of the old server goes on behind the entry: it has ended at a turn, or every thread of it
// sleeps for the turn, so that what it has done to its files is a function of the log.  The new one
// finds a fresh segment, in which the clock, the schedule hash and virtual time go on; its random
// streams are others.
//
// Threads / Processes: the node, while no process of the server runs, but for is_over().

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// No thread of the server does anything while the node has the turn, nor has anything half done.
// False: not yet, or the node does not have the turn.
bool is_over(const Layout& w) noexcept;

// What the new server's segment begins with.
struct Carried {
  Viewstamp admitted;  // the entry
  View view{};
  std::uint64_t admissions = 0, clock = 0, hash = 0;
  std::int64_t now_ns = 0, wall_offset_ns = 0;
  std::uint64_t seed[4]{};
};
Carried carried_of(const Layout& w) noexcept;

// When a file of the server's was modified last, in virtual wall time, for who keeps its files: one
// that the table of inodes (inodes.h) does not know has a time of this machine's, and is as young
// as this.  Not `known`: what the kernel says is the same everywhere.
struct Modified {
  bool known;
  std::int64_t ns;
};
Modified last_modified(const Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// REQUIRES: initialise_segment() and create_main_process() were just called.
void go_on_from(Layout& w, const Carried& carried) noexcept;

}  // namespace crane::dmt
