// SPDX-License-Identifier: Apache-2.0
// The server's side of a connection: what it writes, and how it ends.
#include <algorithm>
#include <cerrno>

#include "dmt/base/assert.h"
#include "proxy/replica/clients/connection.h"
#include "proxy/replica/clients/tuning.h"

namespace crane::proxy {

bool Connection::write(std::uint64_t at, Pieces pieces, Batch& batch, bool last) {
  const bool first = tail_.size() == 0;
  if (!socket_ || !serves_) {
    keep(at, pieces);
    // The bytes have no recipient: the client is gone, on this replica or for all.
    if (serves_ || reset_committed_) tail_.forget();
    return true;
  }
  if (first) {
    const ssize_t took = socket_.send(pieces, last);
    if (took >= 0) {
      tail_.put(at + static_cast<std::uint64_t>(took));  // CONN-5
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      broken(batch);
      keep(at, pieces);
      tail_.forget();
      return true;
    }
  }
  keep(at, pieces);
  propose_window(batch);
  return tail_.size() == 0;
}

bool Connection::write_urgent(std::uint64_t at, Pieces pieces, Batch& batch) {
  keep_urgent(at, pieces);
  if (socket_ && serves_) return flush(batch);
  if (serves_ || reset_committed_) tail_.forget();
  return true;
}

// Sends the bytes before the urgent one, which the kernel puts into the same packet, or the urgent
// byte alone.  If the kernel took only a part, the mark would be at the end of that part.
ssize_t Connection::send_tail() noexcept {
  const std::span<const std::byte> bytes = tail_.bytes();
  const std::size_t before = tail_.before_urgent();
  if (before == 0) return socket_.send_urgent(bytes.front());
  return before < bytes.size() ? socket_.send(bytes.first(before), true) : socket_.send(bytes);
}

bool Connection::flush(Batch& batch) {
  if (!socket_ || !serves_) return true;
  while (tail_.size() > 0) {
    const ssize_t took = send_tail();
    if (took < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      broken(batch);
      return true;
    }
    tail_.put(tail_.from() + static_cast<std::uint64_t>(took));  // CONN-5
  }
  propose_window(batch);
  return finish_output();
}

bool Connection::shut_down(Batch& batch) {
  fin_wanted_ = true;
  return flush(batch);
}

bool Connection::close(bool with_reset, Batch& batch) {
  server_closed_ = true;
  closed_hard_ = with_reset;
  input_ended_ = true;
  if (!serves_) return true;
  if (with_reset) {
    drop_socket_with_reset();
    return true;
  }
  return flush(batch);
}

bool Connection::finish_output() noexcept {
  if (tail_.size() > 0) return false;
  if (server_closed_) {
    drop_all();  // the kernel would reset the client if bytes were unread
    if (moves_) {
      if (!std::exchange(fin_sent_, true)) socket_.end_output();
      unwatch();
      return true;  // until is_out()
    }
    if (shared_ && !fin_sent_) socket_.end_output();
    drop_socket();
  } else if (fin_wanted_ && !fin_sent_) {
    fin_sent_ = true;
    socket_.end_output();
  }
  return true;
}

void Connection::propose_window(Batch& batch) {
  const std::uint64_t drained = tail_.from();
  const std::uint64_t written = tail_.end();
  CRANE_ASSERT(drained <= written && (moves_ || window_proposed_ <= drained));  // CONN-2
  if (server_closed_ || reset_proposed_ || drained <= window_proposed_) return;
  if (written - window_proposed_ <= options_->send_buffer / kWindowUsed) return;
  const bool all = drained == written;
  if (!all && drained - window_proposed_ < options_->send_buffer / kWindowStep) return;
  window_proposed_ = drained;
  batch.add_window(*this, drained);
}

std::uint64_t Connection::acknowledged() const noexcept {
  if (!socket_) return 0;
  const std::uint64_t sent = tail_.from() + (fin_sent_ ? 1 : 0);
  return std::min(tail_.from(), sent - std::min(sent, socket_.unacknowledged()));
}

bool Connection::is_out() const noexcept {
  if (!server_closed_ || !socket_ || tail_.size() > 0) return false;
  if (socket_.unacknowledged() == 0) return true;
  const std::optional<SocketState> state = socket_.state(is_outbound(conn));
  return !state || state->closed;
}

}  // namespace crane::proxy
