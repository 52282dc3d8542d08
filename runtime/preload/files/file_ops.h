// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations on bound descriptors by kind of file, as Linux' file_operations. Each kind has a
// row in this table and one in dmt/file_kinds.cc.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include <sys/stat.h>

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"
#include "runtime/preload/sockets/socket_ops.h"

namespace crane {

inline constexpr std::int64_t kKernelKnows = -1;

struct FileOps {
  FileKind kind;
  ssize_t (*read)(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept;
  ssize_t (*write)(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept;
  // FIONREAD: bytes, or kKernelKnows.
  std::int64_t (*unread)(const dmt::Layout& w, std::uint32_t file) noexcept;
  const SocketOps* socket;
  mode_t mode;  // returned by fstat
  // open(2) of /dev/fd/N, which is `path`.
  int (*open_again)(Turn& turn, int fd, const char* path, int flags) noexcept = refuse<ENXIO>;
  // The flags of F_SETFL that the kernel gets, too.
  long kernel_flags = O_NONBLOCK;
  // The descriptor is a duplicate of its listener's placeholder and shares the kernel's flags.
  bool shares_placeholder = false;
  dev_t device = 0;               // returned by fstat
  bool ignores_position = false;  // a read at a position is a plain read
};

const FileOps& ops_of(const FileRecord& f) noexcept;

inline const FileOps& ops_of(const Turn& turn, std::uint32_t file) noexcept {
  return ops_of(turn.w.files[file]);
}

}  // namespace crane
