// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meaning of a failed accept() for the listening descriptor.  When the host lacks descriptors
// or memory, or the socket does not listen, accept() removes nothing from the queue.  The
// descriptor stays readable, so a loop that polls it would spin.
//
// Threads: pure.

#include <cerrno>

namespace crane {

enum class AcceptError {
  kNone,       // nothing waits, or the call was interrupted
  kOneClient,  // this client left or is unreachable; others may wait after it
  kHost,       // no client can be accepted now: stop polling the descriptor and try again later
};

inline AcceptError classify_accept_error(int error) noexcept {
  switch (error) {
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
    case EINTR:
      return AcceptError::kNone;
    // Errors of the connection, not of the socket (accept(2)).
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

// How long to wait before the next attempt.
inline constexpr int kAcceptAgainMs = 100;

}  // namespace crane
