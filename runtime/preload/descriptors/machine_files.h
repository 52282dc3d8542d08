// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files through which a process changes the machine or other processes (MACHINE-1): below /proc/sys
// and /sys, control groups, the kernel's tables. A server may read these files but not change them.
// In /proc, the files of the server's own processes are exempt.
//
// Threads: see each function.

#include "runtime/preload/turn/turn.h"

namespace crane::machine_files {

// Whether opening the file for writing or truncating it would change the machine. The decision uses
// the file system of the file, so links and relative names cannot avoid it. REQUIRES the turn.
bool is_named(Turn& turn, int directory, const char* path) noexcept;

// Whether the owner and mode of the file belong to the machine; not for /proc, where they cannot be
// changed. Any thread.
bool has_owner(int directory, const char* path, int follow) noexcept;
bool has_owner(int fd) noexcept;

// Whether the name is in a directory of a file system of the machine, where mkdir and rmdir create
// or remove control groups and the like. Any thread.
bool is_made_in(int directory, const char* path) noexcept;

}  // namespace crane::machine_files
