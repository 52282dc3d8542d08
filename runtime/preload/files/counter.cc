// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/counter.h"

#include "dmt/processes.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/turn/vrandom.h"

namespace crane::counter {
namespace {

constexpr std::uint64_t kEventMax = UINT64_MAX - 1;

// Takes the lowest pending signal of `mask`; 0 = none.
int take(dmt::Layout& w, std::uint64_t mask, struct signalfd_siginfo& out) noexcept {
  dmt::SignalInfo sent{};
  const int signo = dmt::take_signal_of(w, own_slot(), mask, sent);
  siginfo_t info;
  fill_siginfo(info, signo, sent);
  std::memset(&out, 0, sizeof out);
  out.ssi_signo = static_cast<std::uint32_t>(signo);
  out.ssi_code = info.si_code;
  if (info.si_code == SI_TIMER) {
    out.ssi_tid = static_cast<std::uint32_t>(info.si_timerid);
    out.ssi_overrun = static_cast<std::uint32_t>(info.si_overrun);
  } else {
    out.ssi_pid = sent.pid;
    out.ssi_uid = sent.uid;
  }
  out.ssi_status = sent.status;
  out.ssi_ptr = sent.value;
  out.ssi_int = static_cast<std::int32_t>(sent.value);
  return signo;
}

}  // namespace

ssize_t read_count(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  if (buffers.total < sizeof(std::uint64_t)) return -EINVAL;
  dmt::CounterState& c = turn.w.files[file].counter;
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  while (c.count == 0) {
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
  const std::uint64_t value_read = c.semaphore ? 1 : c.count;
  c.count -= value_read;
  Cursor(buffers).scatter(&value_read, sizeof value_read);
  dmt::refresh_readiness(turn.w, file, c.count == 0);  // an edge for writers
  // Wakes writers that wait for room to add.
  dmt::signal(turn.w, turn.w.files[file].object, dmt::kAll);
  return sizeof value_read;
}

ssize_t write_event(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  std::uint64_t added = 0;
  if (Cursor(buffers).gather(reinterpret_cast<std::byte*>(&added), sizeof added) < sizeof added) {
    return -EINVAL;
  }
  if (added == UINT64_MAX) return -EINVAL;
  dmt::CounterState& c = turn.w.files[file].counter;
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  while (added > kEventMax - c.count) {
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
  c.count += added;
  dmt::refresh_readiness(turn.w, file, true);
  return sizeof added;
}

ssize_t read_signals(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  if (buffers.total < sizeof(struct signalfd_siginfo)) return -EINVAL;
  FileRecord& f = turn.w.files[file];
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  struct signalfd_siginfo info;
  while (take(turn.w, f.counter.signal_mask, info) == 0) {
    f.counter.count = 0;
    dmt::refresh_readiness(turn.w, file, false);
    const int error = await_object(turn, fd, file, dmt::signal_object(self.process), policy);
    if (error < 0) return error;
  }
  std::size_t done = 0;
  do {
    Cursor cursor(buffers);
    cursor.skip(done);
    cursor.scatter(&info, sizeof info);
    done += sizeof info;
  } while (buffers.total - done >= sizeof info && take(turn.w, f.counter.signal_mask, info) != 0);
  const std::uint64_t left = turn.w.processes[self.process].pending_signals;
  f.counter.count = (left & f.counter.signal_mask) != 0 ? 1 : 0;
  dmt::refresh_readiness(turn.w, file, false);
  return static_cast<ssize_t>(done);
}

ssize_t read_random(Turn&, int, std::uint32_t, const Buffers& buffers) noexcept {
  for (std::size_t i = 0; i < buffers.count; ++i) {
    virtual_random(buffers.vectors[i].iov_base, buffers.vectors[i].iov_len);
  }
  return static_cast<ssize_t>(buffers.total);
}

// Writes to the random devices would only stir the kernel's generator.
ssize_t discard(Turn&, int, std::uint32_t, const Buffers& buffers) noexcept {
  return static_cast<ssize_t>(buffers.total);
}

}  // namespace crane::counter
