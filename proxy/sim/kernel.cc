// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/kernel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::proxy::sim {

// --- clients -------------------------------------------------------------------------------------

SimSocket& Kernel::connect(unsigned client) {
  SimSocket& socket = sockets_.emplace_back();
  socket.id = SocketId{1000 + sockets_.size()};
  socket.client = client;
  ++socket.descriptors;  // the listener's queue
  backlog_.push_back(&socket);
  changed();
  return socket;
}

std::uint64_t Kernel::send_room(const SimSocket& socket) const {
  return kReceiveBuffer - (socket.received.size() - socket.taken);
}

// --- processes -----------------------------------------------------------------------------------

int Kernel::open(Process process, SimSocket& socket) {
  descriptors_[next_fd_] = {&socket, process};
  ++socket.descriptors;
  return next_fd_++;
}

int Kernel::accept(Process process) {
  if (backlog_.empty()) return -1;
  SimSocket& socket = *backlog_.front();
  backlog_.pop_front();
  const int fd = open(process, socket);
  --socket.descriptors;
  return fd;
}

void Kernel::died(Process process) {
  Table& table = tables_[process];
  table.dead = true;
  table.inside.clear();  // the call in which it was stopped had no effect
  if (!table.holds || mutant_ == Mutant::kNoKeeper) close_all(process);
}

std::vector<int> Kernel::adopt_sockets(Process process) {
  std::vector<int> all;
  for (auto& [other, table] : tables_) {
    if (other == process || !table.holds) continue;
    std::vector<SimSocket*> held;
    for (const auto& [fd, d] : descriptors_) {
      if (d.process == other) held.push_back(d.socket);
    }
    for (SimSocket* socket : held) all.push_back(open(process, *socket));
    table.holds = false;
    if (table.dead) close_all(other);
  }
  tables_[process].held = tables_[process].holds = true;
  return all;
}

bool Kernel::released(Process process) const {
  const auto found = tables_.find(process);
  return found != tables_.end() && found->second.held && !found->second.holds;
}

void Kernel::close_all(Process process) {
  for (auto d = descriptors_.begin(); d != descriptors_.end();) {
    if (d->second.process != process) {
      ++d;
      continue;
    }
    release(*d->second.socket, process);
    d = descriptors_.erase(d);
  }
}

// The last close: a FIN, or a reset if bytes were not read.
void Kernel::release(SimSocket& socket, Process by) {
  if (--socket.descriptors > 0 || socket.over()) return;
  if (socket.received.size() > socket.taken) {
    socket.reset_here = true;
    hooks_.was_reset(by, socket);
  }
  socket.fin_put = true;
  changed();
}

Kernel::Edges Kernel::edges_of(int fd) const {
  const SimSocket& s = socket_of(fd);
  const std::uint64_t ends = (s.fin_received ? 1 : 0) + (s.reset() ? 1 : 0);
  const std::uint64_t unacknowledged = s.put.size() - s.acked;
  return {s.received.size() + ends, s.acked + (s.reset() ? 1 : 0), ends > 0,
          s.reset() || unacknowledged < kSendBuffer};
}

bool Kernel::is_inside(Process process) const {
  const auto found = tables_.find(process);
  return found != tables_.end() && !found->second.inside.empty();
}

void Kernel::may_stop(Process process) {
  Table& table = tables_[process];
  if (interruptible_ && table.inside.empty() && hooks_.stops(process)) {
    table.inside.emplace_back([] {});
  }
}

void Kernel::resumed(Process process) {
  for (const auto& effect : std::exchange(tables_[process].inside, {})) effect();
}

template <typename Effect>
void Kernel::apply(const Descriptor& by, bool may_stop, Effect&& effect) {
  const auto full = [this, by, effect] { effect(*by.socket); };
  Table& table = tables_[by.process];
  const bool stops = may_stop && interruptible_ && table.inside.empty() && hooks_.stops(by.process);
  if (stops || !table.inside.empty()) {
    table.inside.push_back(full);
  } else {
    full();
  }
}

// --- calls ---------------------------------------------------------------------------------------

Peeked Kernel::peek(int fd, std::size_t skip, std::span<std::byte> into) noexcept {
  const Descriptor& by = descriptors_.at(fd);
  SimSocket& socket = *by.socket;
  CRANE_ASSERT(skip <= ClientSocket::kSkipMost);
  errno = EAGAIN;
  if (is_inside(by.process)) return {-1};
  hooks_.used(by.process, socket);
  const std::uint64_t at = socket.taken + skip;
  if (skip > 0 && socket.mark > socket.taken + 1 && socket.mark <= at + 1) return {-1};
  if (at < socket.received.size()) {
    std::size_t n = std::min<std::size_t>(into.size(), socket.received.size() - at);
    const bool shows_mark = socket.mark > at && socket.mark <= at + n;
    if (shows_mark) n = socket.mark - at;
    std::memcpy(into.data(), socket.received.data() + at, n);
    const bool more = at + n < socket.received.size();
    if (mutant_ == Mutant::kConsumeEarly) take(socket, n);
    const bool is_first = shows_mark && !std::exchange(socket.mark_shown, true);
    const bool is_urgent = mutant_ == Mutant::kMarkOnce ? is_first : shows_mark;
    return {static_cast<ssize_t>(n), is_urgent, more};
  }
  if (skip > 0) return {-1};
  if (socket.reset() && !std::exchange(socket.error_taken, true)) {
    errno = ECONNRESET;
    return {-1};
  }
  return {socket.reset() || socket.fin_received ? 0 : -1};
}

void Kernel::take(SimSocket& socket, std::uint64_t bytes) {
  socket.taken += std::min<std::uint64_t>(bytes, socket.received.size() - socket.taken);
  changed();
}

void Kernel::drop(int fd, std::uint64_t bytes) noexcept {
  if (mutant_ == Mutant::kConsumeEarly) return;
  const Descriptor& by = descriptors_.at(fd);
  apply(by, true, [this, bytes, process = by.process](SimSocket& socket) {
    take(socket, bytes);
    hooks_.used(process, socket);
  });
}

bool Kernel::holds_any(int fd) noexcept {
  const SimSocket& socket = *descriptors_.at(fd).socket;
  return socket.taken < socket.received.size();
}

std::uint64_t Kernel::unacknowledged(int fd) noexcept {
  const SimSocket& socket = *descriptors_.at(fd).socket;
  return socket.put.size() - socket.acked;
}

ssize_t Kernel::send(int fd, Pieces pieces, bool) noexcept {
  const Descriptor& by = descriptors_.at(fd);
  const SimSocket& socket = *by.socket;
  errno = EPIPE;
  if (socket.reset() || socket.fin_put) return -1;
  const std::uint64_t room = kSendBuffer - std::min(kSendBuffer, socket.put.size() - socket.acked);
  errno = EAGAIN;
  std::string part;
  for (const std::span<const std::byte> piece : pieces) {
    part.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  if (room == 0 && !part.empty()) return -1;
  part.resize(std::min<std::size_t>(room, part.size()));
  const std::size_t n = part.size();
  apply(by, true, [this, part, process = by.process](SimSocket& to) {
    hooks_.used(process, to);
    to.put += part;
    changed();
  });
  return static_cast<ssize_t>(n);
}

ssize_t Kernel::send_urgent(int fd, std::byte byte) noexcept {
  const std::span<const std::byte> one(&byte, 1);
  return send(fd, {&one, 1}, false);
}

void Kernel::end_output(int fd) noexcept {
  const Descriptor& by = descriptors_.at(fd);
  apply(by, true, [this, process = by.process](SimSocket& socket) {
    hooks_.used(process, socket);
    socket.fin_put = true;
    changed();
  });
}

void Kernel::reset(int fd) noexcept {
  const Descriptor& by = descriptors_.at(fd);
  apply(by, false, [this, process = by.process](SimSocket& socket) {
    if (socket.over()) return;
    hooks_.used(process, socket);
    socket.reset_here = true;
    hooks_.was_reset(process, socket);
    changed();
  });
}

void Kernel::close(int fd) noexcept {
  const Descriptor by = descriptors_.at(fd);
  if (is_inside(by.process)) {  // the descriptor still belongs to its keeper
    apply(by, false, [this, fd](SimSocket&) { close(fd); });
    return;
  }
  descriptors_.erase(fd);
  release(*by.socket, by.process);
}

// A closed socket includes the FINs in its counts, without reporting them.
std::optional<SocketState> Kernel::state(int fd, bool) noexcept {
  const SimSocket& socket = *descriptors_.at(fd).socket;
  SocketState s;
  s.taken = socket.taken;
  s.put = socket.put.size();
  s.closed = socket.over();
  if (s.closed) {
    s.taken += socket.fin_received ? 1 : 0;
    s.put += socket.fin_put ? 1 : 0;
    s.reset = socket.reset() && !socket.error_taken && mutant_ != Mutant::kResetIsFin;
  } else {
    s.input_ended = socket.fin_received;
    s.output_ended = socket.fin_put;
  }
  if (mutant_ == Mutant::kTakenOneMore) ++s.taken;
  if (mutant_ == Mutant::kTakenOneLess && s.taken > 0) --s.taken;
  if (mutant_ == Mutant::kPutOneMore) ++s.put;
  if (mutant_ == Mutant::kPutOneLess && s.put > 0) --s.put;
  return s;
}

}  // namespace crane::proxy::sim
