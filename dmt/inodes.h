// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual inode numbers and times of files (DESIGN D7, rule 20).
//
// The kernel's numbers differ between replicas and its times are physical. The first look at a file
// gives it the next number of the replica; a file is recognised by the kernel's (device, inode), so
// renames and hard links keep the number. A new file may get the kernel's number of one that is
// gone, on one replica and not on another: whoever creates a file says so (`make_inode`).
//
// Threads: everything REQUIRES the turn.
//
// INVARIANT DMT-N1  Whether a file has a number, and which, is a function of the turns' order: a
//               number is forgotten when the numbering comes round to its place again, after
//               kInodesMax, wherever it lies.  A place that is held is passed over for ever: when
//               its file goes, and what the kernel calls by its name then, is each replica's own.
// INVARIANT DMT-N2  A record that is not free is in the bucket of its (device, inode), once.

#include <cstdint>
#include <string_view>

#include "dmt/layout.h"

namespace crane::dmt {

// The record of a file, which gets a number if it has none. Never null.
InodeRecord& find_inode(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// The number of a file that has one; 0: it has none, and gets none.
std::uint64_t known_number(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// The record of a file that was just created: always a new number, and no time yet.
InodeRecord& make_inode(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// Whether the server has made the file, as far as it is remembered.
bool is_made_by_server(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept;

// From now on the number is not forgotten: a FIFO and memory that processes share by a file go by
// it.  Of the first kInodesHeldMax files; the others' are forgotten like any.
void hold_inode(Layout& w, InodeRecord& r) noexcept;

// Where the file of a record was when it was first looked at: a path from the root of the server's
// file system, without links in it.  It tells a restored server's files from each other on a
// machine that keeps them under other inode numbers.  "": not known, or forgotten: so are the
// oldest beyond kPathsBytes, of which no path may have more than PATH_MAX.
void remember_path(Layout& w, InodeRecord& r, std::string_view path) noexcept;
std::string_view path_of(const Layout& w, const InodeRecord& r) noexcept;

// After a restore: what the kernel calls each file now, the root of the file system among them.
// `rename` changes device and inode of a record in place (path: path_of); true: the file is there,
// false: as far as that can be told (it may be gone, then another one may have its name meanwhile).
// Where two come to be called the same, the one that is not there is forgotten, else the older one.
using RenameInode = bool (*)(void* context, std::string_view path, std::uint64_t& device,
                             std::uint64_t& inode) noexcept;
void rename_inodes(Layout& w, RenameInode rename, void* context) noexcept;

// A record remembered by index is still that of the number remembered with it.
inline bool is_inode(const Layout& w, std::uint32_t record, std::uint64_t number) noexcept {
  return number != 0 && w.inodes.records[record].number == number;
}
inline std::uint32_t index_of(const Layout& w, const InodeRecord& r) noexcept {
  return static_cast<std::uint32_t>(&r - w.inodes.records);
}

}  // namespace crane::dmt
