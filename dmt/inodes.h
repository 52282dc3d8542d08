// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual inode numbers and times of files (DESIGN D7, rule 20).
//
// The kernel's numbers differ between replicas, and its times are physical.  The first look-up of a
// file gives it the replica's next number.  The kernel's (device, inode) identifies the file, so
// renames and hard links keep the number.  On one replica a new file may get the kernel's number of
// a deleted file, and on another not: code that creates a file must call `make_inode`.
//
// Threads: everything REQUIRES the turn.
//
// INVARIANT DMT-N1  Whether a file has a number, and which, is a function of the turns' order.  A
//               number is forgotten when the numbering reaches its record again, after kInodesMax
//               numbers. A held record is skipped for ever: when its file ends, and which file the
//               kernel then gives the same (device, inode), differs by replica.
// INVARIANT DMT-N2  A record that is not free is in the bucket of its (device, inode), once.

#include <cstdint>
#include <string_view>

#include "dmt/layout.h"

namespace crane::dmt {

// The record of a file, which gets a number if it has none.  Never null.
InodeRecord& find_inode(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// The number of a file; 0: it has none (and gets none).
std::uint64_t known_number(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// The record of a file that was just created: always a new number, and no time yet.
InodeRecord& make_inode(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// Whether the server created the file, if its record still exists.
bool is_made_by_server(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// Keeps the number for ever, because FIFOs and memory shared through a file depend on it.  Limited
// to the first kInodesHeldMax files; later ones can be forgotten.
void hold_inode(Layout& w, InodeRecord& r) noexcept;

// The path of a record's file at its first look-up, from the root of the server's file system and
// without links.  It identifies the files of a restored server on a machine with other inode
// numbers.  "": unknown or forgotten.  The oldest paths beyond kPathsBytes are forgotten; a path
// has at most PATH_MAX bytes.
void remember_path(Layout& w, InodeRecord& r, std::string_view path) noexcept;
std::string_view path_of(const Layout& w, const InodeRecord& r) noexcept;

// Call after a restore: updates the kernel's identity of each file, including the file-system root.
// `rename` changes device and inode of a record in place (path: path_of).  It returns true if the
// file exists, false if that is unknown (the file may be gone, and another may have its name).  If
// two records get the same identity, the one without a file is forgotten, otherwise the older one.
using RenameInode = bool (*)(void* context, std::string_view path, std::uint64_t& device,
                             std::uint64_t& inode) noexcept;
void rename_inodes(Layout& w, RenameInode rename, void* context) noexcept;

// Whether the record at a stored index still has the number stored with it.
inline bool is_inode(const Layout& w, std::uint32_t record, std::uint64_t number) noexcept {
  return number != 0 && w.inodes.records[record].number == number;
}
inline std::uint32_t index_of(const Layout& w, const InodeRecord& r) noexcept {
  return static_cast<std::uint32_t>(&r - w.inodes.records);
}

}  // namespace crane::dmt
