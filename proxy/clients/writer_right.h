// SPDX-License-Identifier: Apache-2.0
#pragma once
// The right to use the clients' sockets of a host: one process at a time has it.
//
// An earlier writer that does not stop by itself is ended: one that is stopped in the middle of a
// write would go on with it whenever it is continued, in a stream that is no longer its own.
//
// Pure but for `Processes`.  Threads: the node's one thread.
// INVARIANT WRITER-1  At most one process of the host reads or writes the group's clients' sockets:
//                     the one whose name is in the table, until it has stopped or is dead.

#include <atomic>
#include <cstdint>
#include <limits>

#include "proxy/clients/connection_table.h"

namespace crane::proxy {

// What a WriterRight asks of the host, or of a simulated one (proxy/sim).
class Processes {
 public:
  virtual bool is_alive(ProcessName name) = 0;
  virtual bool is_stopped(ProcessName name) = 0;  // by a signal; it does nothing
  // Kills it.  It is dead some time later.
  virtual void end(ProcessName name, std::int64_t waited_ns) = 0;

 protected:
  ~Processes() = default;
};
Processes& host_processes() noexcept;

class WriterRight {
 public:
  // How long an earlier writer that runs has to stop by itself, and to die.
  static constexpr std::int64_t kStopsNs = 20'000'000, kDiesNs = 2'000'000'000;

  // `writer`: in the table.
  WriterRight(std::atomic<ProcessName>& writer, ProcessName own, Processes& processes) noexcept
      : writer_(writer), own_(own), processes_(processes) {}

  enum class Right : std::uint8_t {
    kOurs,
    kWaits,   // ask again at due_ns()
    kCannot,  // the earlier writer cannot be ended: its clients must be reset
  };
  Right become_writer(std::int64_t now_ns);
  void stop_writing() noexcept;
  std::int64_t due_ns() const noexcept { return due_ns_; }

 private:
  std::atomic<ProcessName>& writer_;
  const ProcessName own_;
  Processes& processes_;
  std::int64_t waits_since_ns_ = 0;  // for an earlier writer; 0: it does not
  bool killed_ = false;
  std::int64_t due_ns_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace crane::proxy
