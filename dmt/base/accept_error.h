// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a failed accept() means for the listening descriptor.  Where the host lacks descriptors or
// memory, or the socket does not listen, nothing leaves the queue: the descriptor stays readable,
// and a loop that listens to it turns at full speed.
//
// Threads: pure.

#include <cerrno>

namespace crane {

enum class AcceptError {
  kNone,       // nothing waits, or the call was interrupted
  kOneClient,  // the client has left, or cannot be reached: others may wait behind it
  kHost,       // no client can be accepted now: stop listening to the descriptor, and look again
};

inline AcceptError judge_accept(int error) noexcept {
  switch (error) {
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
    case EINTR:
      return AcceptError::kNone;
    // As accept(2) lists them: of the connection, not of the socket.
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
      return AcceptError::kOneClient;
    default:
      return AcceptError::kHost;
  }
}

// How long until the next look.
inline constexpr int kAcceptAgainMs = 100;

}  // namespace crane
