// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "dmt/base/assert.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {

Connection::Read Connection::read(Batch& batch) {
  if (fd_ < 0 || input_ended_) return Read::kEnded;
  if (!window_open()) return Read::kFull;
  const std::size_t want =
      std::min<std::uint64_t>(window() - (proposed_ - consumed_), kDataBytesMax);
  const std::span<std::byte> room = batch.room(want);
  ssize_t got;
  do {
    got = ::recv(fd_, room.data(), room.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    batch.add_data(*this, static_cast<std::size_t>(got));
    proposed_ += static_cast<std::uint64_t>(got);
    CRANE_ASSERT(proposed_ - consumed_ <= window());  // CONN-1
    if (!window_open()) return Read::kFull;
    return static_cast<std::size_t>(got) < want ? Read::kDrained : Read::kSome;
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

void Connection::consumed(std::uint64_t total) noexcept {
  consumed_ = std::max(consumed_, std::min(total, proposed_));
}

bool Connection::write(std::span<const std::byte> bytes, Batch& batch) {
  received_ += bytes.size();
  if (fd_ < 0) return true;
  std::size_t sent = 0;
  if (queued() == 0) {
    const ssize_t took = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (took >= 0) {
      sent = static_cast<std::size_t>(took);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      broken(batch);
      return true;
    }
    drained_ += sent;
    if (sent == bytes.size()) {
      propose_window(batch);
      return true;
    }
  }
  const auto rest = bytes.subspan(sent);
  queue_.insert(queue_.end(), rest.begin(), rest.end());
  propose_window(batch);
  return false;
}

bool Connection::flush(Batch& batch) {
  if (fd_ < 0) return true;
  while (queued() > 0) {
    const ssize_t took =
        ::send(fd_, queue_.data() + queue_sent_, queued(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (took < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      broken(batch);
      return true;
    }
    queue_sent_ += static_cast<std::size_t>(took);
    drained_ += static_cast<std::uint64_t>(took);
  }
  if (queued() == 0) {
    queue_.clear();
    queue_sent_ = 0;
  } else if (queue_sent_ > queue_.size() / 2) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(queue_sent_));
    queue_sent_ = 0;
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
  input_ended_ = true;
  if (with_reset) {
    drop_socket_with_reset();
    return true;
  }
  return flush(batch);
}

bool Connection::finish_output() noexcept {
  if (queued() > 0) return false;
  if (server_closed_) {
    drop_socket();
  } else if (fin_wanted_ && !fin_sent_) {
    fin_sent_ = true;
    ::shutdown(fd_, SHUT_WR);
  }
  return true;
}

void Connection::propose_window(Batch& batch) {
  CRANE_ASSERT(drained_ <= received_ && window_reported_ <= drained_);  // CONN-2
  if (server_closed_ || reset_told_ || drained_ == window_reported_) return;
  if (received_ - window_reported_ <= options_->send_buffer / kWindowUsed) return;
  const bool all = drained_ == received_;
  if (!all && drained_ - window_reported_ < options_->send_buffer / kWindowStep) return;
  window_reported_ = drained_;
  batch.add_window(*this, drained_);
}

void Connection::broken(Batch& batch) {
  if (!server_closed_ && !reset_told_) {
    reset_told_ = true;  // CONN-3
    batch.add_reset(*this);
  }
  input_ended_ = true;
  drop_socket();
}

void Connection::reset(Batch& batch, bool tell) {
  if (tell && !server_closed_ && !reset_told_) {
    reset_told_ = true;  // CONN-3
    batch.add_reset(*this);
  }
  input_ended_ = true;
  drop_socket_with_reset();
}

void Connection::drop_socket_with_reset() noexcept {
  if (fd_ < 0) return;
  const linger now{1, 0};
  (void)::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  drop_socket();
}

void Connection::drop_socket() noexcept {
  if (fd_ < 0) return;
  closing();
  ::close(fd_);
  fd_ = -1;
  queue_ = {};
  queue_sent_ = 0;
}

}  // namespace crane::proxy
