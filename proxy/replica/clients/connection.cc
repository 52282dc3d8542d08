// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/connection.h"

#include <algorithm>
#include <cerrno>

#include "dmt/base/assert.h"
#include "proxy/replica/clients/tuning.h"

namespace crane::proxy {

// --- from the log --------------------------------------------------------------------------------

void Connection::committed_data(std::uint64_t bytes) noexcept {
  committed_ += bytes;
  if (!serves_) {
    proposed_ = committed_;
    return;
  }
  CRANE_ASSERT(committed_ <= proposed_);  // CONN-4
  undropped_ += bytes;
}

void Connection::committed_shutdown() noexcept { fin_committed_ = input_ended_ = true; }

void Connection::committed_reset() noexcept {
  reset_committed_ = reset_proposed_ = input_ended_ = true;
  if (!serves_) tail_.forget();
}

void Connection::committed_window(std::uint64_t total) noexcept {
  window_committed_ = std::max(window_committed_, total);
  if (serves_) return;
  window_proposed_ = window_committed_;
  if (!moves_) tail_.put(total);  // the leader's kernel has it, and its host may be lost
}

void Connection::restore(const ConnectionProgress& p) {
  committed_ = proposed_ = p.received;
  consumed_ = p.consumed;
  window_committed_ = window_proposed_ = p.window;
  tail_ = OutputTail(p.written);
  fin_wanted_ = p.shut_write;
  if (p.fin_received) committed_shutdown();
  if (p.reset) committed_reset();
}

void Connection::serve_opened(ClientSocket socket) noexcept {
  CRANE_ASSERT(!serves_ && !socket_);
  socket_ = std::move(socket);
  serves_ = true;
  shared_ = false;
}

// --- from the client -----------------------------------------------------------------------------

Connection::Read Connection::read(Batch& batch) {
  CRANE_ASSERT(serves_);
  if (!socket_ || input_ended_) return Read::kEnded;
  if (proposed_ > committed_) return Read::kUnderWay;
  if (!window_open()) return Read::kFull;
  drop_committed();
  const std::size_t want =
      std::min<std::uint64_t>(window() - (proposed_ - consumed_), kDataBytesMax);
  const std::span<std::byte> room = batch.room(want);
  const Peeked seen = peek(room);
  const ssize_t got = seen.bytes;
  if (got > 0) {
    batch.add_data(*this, static_cast<std::size_t>(got), seen.is_urgent);
    proposed_ += static_cast<std::uint64_t>(got);
    CRANE_ASSERT(proposed_ - consumed_ <= window());  // CONN-1
    if (!window_open()) return Read::kFull;
    return static_cast<std::size_t>(got) < want && !seen.more ? Read::kDrained : Read::kSome;
  }
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Read::kDrained;
  if (got == 0) {
    input_ended_ = true;
    batch.add_shutdown(*this);
  } else {
    broken(batch);
  }
  return Read::kEnded;
}

// CONN-4: proposed bytes stay in the socket.
Peeked Connection::peek(std::span<std::byte> room) noexcept {
  const Peeked seen = socket_.peek(static_cast<std::size_t>(undropped_), room);
  if (seen.bytes >= 0 || errno != EAGAIN || undropped_ == 0) return seen;
  drop_all();  // a FIN or an urgent byte may follow
  return socket_.peek(0, room);
}

void Connection::drop_committed() noexcept {
  if (undropped_ > ClientSocket::kSkipMost) {
    drop_all();
    parted_ = true;
  } else if (undropped_ == committed_) {
    drop_all();
  } else if (parted_ && undropped_ > 0 && socket_) {
    drop_all();
    parted_ = socket_.holds_any();
  }
}

void Connection::drop_all() noexcept {
  if (undropped_ > 0 && socket_) socket_.drop(std::exchange(undropped_, 0));
}

// --- from the server -----------------------------------------------------------------------------

void Connection::consumed(std::uint64_t total) noexcept {
  consumed_ = std::max(consumed_, std::min(total, proposed_));
}

// --- the end -------------------------------------------------------------------------------------

void Connection::report_reset(Batch& batch) {
  input_ended_ = true;
  if (server_closed_ || reset_proposed_) return;
  reset_proposed_ = true;  // CONN-3
  batch.add_reset(*this);
}

void Connection::broken(Batch& batch) {
  report_reset(batch);
  drop_socket();
}

void Connection::reset(Batch& batch, bool notify) {
  if (notify) report_reset(batch);
  input_ended_ = true;
  drop_socket_with_reset();
}

void Connection::drop_socket_with_reset() noexcept {
  if (!socket_) return;
  unwatch();
  socket_.abort();
  allow_close(std::move(socket_));
  tail_.forget();
}

void Connection::drop_socket() noexcept {
  if (!socket_) return;
  unwatch();
  allow_close(std::move(socket_));
  tail_.forget();
}

// --- changes of the leader -----------------------------------------------------------------------

Connection::Adopted Connection::serve(ClientSocket socket, Batch& batch) {
  CRANE_ASSERT(!serves_);
  serves_ = true;
  if (socket) {
    socket_ = std::move(socket);
    shared_ = true;
  }
  if (!socket_) {
    const bool ended = server_closed_ || reset_proposed_;
    report_reset(batch);
    tail_.forget();
    return ended ? Adopted::kEnded : Adopted::kReset;
  }
  if (reset_committed_ || closed_hard_) {
    drop_socket_with_reset();
    return Adopted::kEnded;
  }
  const std::optional<SocketState> state = socket_.state(is_outbound(conn));
  if (state && state->closed && server_closed_) {
    drop_socket();
    return Adopted::kEnded;
  }
  if (!state || !resume(*state)) {
    reset(batch, true);
    return Adopted::kReset;
  }
  (void)flush(batch);
  return socket_ ? Adopted::kServed : Adopted::kEnded;
}

Connection::Adopted Connection::serve_moved(ClientSocket socket, Batch& batch) {
  CRANE_ASSERT(!serves_ && moves_ && !socket_);
  if (!socket) return serve({}, batch);
  socket_ = std::move(socket);
  serves_ = true;
  shared_ = fin_sent_ = false;
  undropped_ = 0;
  (void)flush(batch);
  return socket_ ? Adopted::kServed : Adopted::kEnded;
}

// Continues where the socket is; false: this replica does not have the next bytes.
bool Connection::resume(SocketState state) noexcept {
  if (state.closed) {
    // The client has acknowledged all of the output and our FIN, so its reset loses nothing.  A
    // client that reset after all of that has sent no FIN; it would be counted as taken.
    if (state.reset || !fin_wanted_ || state.put != tail_.end() + 1) return false;
    --state.put;
    state.taken -= std::min<std::uint64_t>(state.taken, 1);
    state.output_ended = true;
  }
  // Only committed bytes were taken, and the START of this replica's reign comes after all of them;
  // this replica's server has written everything that an earlier leader's server had written.
  if (state.taken > committed_ || state.put > tail_.end()) return false;  // CONN-4, CONN-5
  // This replica has recovered, and lacks earlier output.
  if (state.put < tail_.from()) return false;
  undropped_ = committed_ - state.taken;
  parted_ = true;
  tail_.put(state.put);
  fin_sent_ = state.output_ended;
  return true;
}

void Connection::follow() noexcept {
  serves_ = false;
  shared_ = true;
  proposed_ = committed_;
  consumed_ = std::min(consumed_, committed_);
  undropped_ = 0;
  window_proposed_ = window_committed_;
  reset_proposed_ = reset_committed_;
  input_ended_ = fin_committed_ || reset_committed_ || server_closed_;
}

}  // namespace crane::proxy
