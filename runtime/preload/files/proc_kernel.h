// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files below /proc and /sys that have the kernel's text without the replica's own values: numbers
// of mounts, devices and inodes, the places of a container's files, counters of the machine.
//
// Threads: as proc_files.h.

#include "runtime/preload/files/proc_text.h"

namespace crane {

// Each function writes the kernel's file at `path` without the replica's own values, and returns 0
// or the kernel's -errno.
//
// Numbers the mounts in their order; keeps only options without a value.
long write_mountinfo(const char* path, ProcText& out) noexcept;
long write_mounts(const char* path, ProcText& out) noexcept;
// Derives the inode number of a file from its name.
long write_maps(const char* path, ProcText& out) noexcept;
// Keeps the position and the flags.
long write_fdinfo(const char* path, ProcText& out) noexcept;

// How a file below /sys, or of a file system below /proc/fs, appears to the server.
enum class SysFile : unsigned char {
  kKernels,  // the kernel's file
  kHidden,   // does not exist: control groups, whose names, limits and use are the machine's
  kCounter,  // reads 0
};
SysFile sort_of(const char* path) noexcept;

}  // namespace crane
