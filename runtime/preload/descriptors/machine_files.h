// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files through which a process changes the machine or other processes (MACHINE-1): below /proc/sys
// and /sys, control groups, the kernel's tables.  A server may read them and change none; of /proc
// its own processes' files are its own.
//
// Threads: as each function says.

#include "runtime/preload/turn/turn.h"

namespace crane::machine_files {

// Whether to open the file for writing, or to cut it short, would reach the machine.  It is asked
// by its file system, so that links and relative names lead nowhere else.  REQUIRES the turn.
bool is_named(Turn& turn, int directory, const char* path) noexcept;

// The same of the owner and mode of what has the name: /proc has none to change.  Any thread.
bool has_owner(int directory, const char* path, int follow) noexcept;
bool has_owner(int fd) noexcept;

// Whether the name is in a directory that makes or removes control groups and the like.  Any
// thread.
bool is_made_in(int directory, const char* path) noexcept;

}  // namespace crane::machine_files
