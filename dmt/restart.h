// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replaces the server of a replica with a new one (RestartBody): what ends with the old server, and
// what continues.
//
// The old server does nothing after the entry: it has ended at a turn, or every thread of it sleeps
// for the turn.  So the content of its files is a function of the log.  The new server gets a fresh
// segment, in which the clock, the schedule hash and virtual time continue; its random streams are
// new.
//
// Threads / Processes: the node, while no process of the server runs, except for is_over().

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// Whether no thread of the server does anything while the node has the turn, nor has anything half
// done.  False: not yet, or the node does not have the turn.
bool is_over(const Layout& w) noexcept;

// The initial state of the new server's segment.
struct CarriedState {
  Viewstamp admitted;  // the entry
  View view{};
  std::uint64_t admissions = 0, clock = 0, hash = 0;
  std::int64_t now_ns = 0, wall_offset_ns = 0;
  std::uint64_t seed[4]{};
};
CarriedState carried_of(const Layout& w) noexcept;

// When a file of the server was last modified, in virtual wall time, for code that saves its files.
// A file without an entry in the inode table (inodes.h) has a physical time of this machine and
// counts as modified now.  Not `known`: the kernel's time is the same everywhere.
struct Modified {
  bool known;
  std::int64_t ns;
};
Modified last_modified(const Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// REQUIRES: initialise_segment() and create_main_process() were just called.
void continue_from(Layout& w, const CarriedState& carried) noexcept;

}  // namespace crane::dmt
