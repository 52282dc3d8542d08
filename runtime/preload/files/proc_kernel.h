// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files below /proc and /sys whose text is the kernel's but for what each replica has of its own:
// numbers of mounts, devices and inodes, where a container's files lie, counters of the machine.
//
// Threads: as proc_files.h.

#include "runtime/preload/files/proc_text.h"

namespace crane {

// Each writes the kernel's file at `path` without what is the replica's own, and returns 0 or the
// kernel's -errno.
//
// Mounts are numbered in their order; of options those remain that have no value.
long write_mountinfo(const char* path, ProcText& out) noexcept;
long write_mounts(const char* path, ProcText& out) noexcept;
// A file's inode is made of its name.
long write_maps(const char* path, ProcText& out) noexcept;
// Position and flags.
long write_fdinfo(const char* path, ProcText& out) noexcept;

// What a file below /sys, or of a file system below /proc/fs, is to the server.
enum class SysFile : unsigned char {
  kKernels,  // as the kernel has it
  kHidden,   // there is none: control groups, whose names, limits and use are the machine's
  kCounter,  // reads 0
};
SysFile sort_of(const char* path) noexcept;

}  // namespace crane
