// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the calls on bound descriptors do, by kind of file: Linux' file_operations.  A kind has its
// row here and one in dmt/file_kinds.cc.
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
  mode_t mode;  // what fstat says
  // open(2) of /dev/fd/N, which `path` names.
  int (*open_again)(Turn& turn, int fd, const char* path, int flags) noexcept = refuse<ENXIO>;
  // The flags of F_SETFL that are the kernel's, too.
  long kernel_flags = O_NONBLOCK;
  // The placeholder is the listener's, and so are the kernel's flags.
  bool shares_placeholder = false;
  dev_t device = 0;               // what fstat says
  bool ignores_position = false;  // reads at a position are reads
};

const FileOps& ops_of(const FileRecord& f) noexcept;

inline const FileOps& ops_of(const Turn& turn, std::uint32_t file) noexcept {
  return ops_of(turn.w.files[file]);
}

}  // namespace crane
