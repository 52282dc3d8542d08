// SPDX-License-Identifier: Apache-2.0
#pragma once
// read and write on bound descriptors, by kind of file.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "runtime/preload/core/buffers.h"
#include "runtime/preload/files/counter.h"
#include "runtime/preload/sockets/dsock.h"
#include "runtime/preload/sockets/ksock.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/vsock.h"
#include "runtime/preload/terminals/terminal.h"

namespace crane {

inline ssize_t read_bound(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  switch (turn.w.files[file].kind) {
    case FileKind::kConnection:
      return vsock::receive(turn, fd, file, b, 0);
    case FileKind::kPipeBoth:
      return stream::read(turn, fd, turn.w.files[file].both.reads, b);
    case FileKind::kPipeRead:
    case FileKind::kPipeWrite:
    case FileKind::kUnixStream:
      return stream::read(turn, fd, file, b);
    case FileKind::kSocket:
    case FileKind::kListener:
    case FileKind::kUnixListener:
      return -ENOTCONN;
    case FileKind::kUnixSocket:
      return -EINVAL;
    case FileKind::kDatagram:
      return dsock::read(turn, fd, file, b);
    case FileKind::kKernelSocket:
      return ksock::read(turn, fd, file, b);
    case FileKind::kTerminalMaster:
    case FileKind::kTerminalLine:
      return terminal::read(turn, fd, file, b);
    default:
      return counter::read(turn, fd, file, b);
  }
}

inline ssize_t write_bound(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  switch (turn.w.files[file].kind) {
    case FileKind::kConnection:
    case FileKind::kSocket:
    case FileKind::kListener:
      return vsock::send(turn, fd, file, b, 0);
    case FileKind::kPipeBoth:
      return stream::write(turn, fd, turn.w.files[file].both.writes, b);
    case FileKind::kPipeRead:
    case FileKind::kPipeWrite:
    case FileKind::kUnixStream:
      return stream::write(turn, fd, file, b);
    case FileKind::kUnixSocket:
    case FileKind::kUnixListener:
      return -ENOTCONN;
    case FileKind::kDatagram:
      return dsock::write(turn, file, b);
    case FileKind::kKernelSocket:
      return ksock::write(turn, fd, file, b);
    case FileKind::kTerminalMaster:
    case FileKind::kTerminalLine:
      return terminal::write(turn, fd, file, b);
    default:
      return counter::write(turn, fd, file, b);
  }
}

}  // namespace crane
