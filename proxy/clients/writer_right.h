// SPDX-License-Identifier: Apache-2.0
#pragma once
// The right to use the clients' sockets of a host: one process has it at a time.
//
// An earlier writer that does not stop is ended: a process that is stopped in the middle of a write
// would continue it after SIGCONT, in a stream that no longer belongs to it.  A leader that does
// not know yet that it is deposed takes the right from no newer one: its log is older.
//
// Pure but for `Processes`.  Threads: the node's one thread.
// INVARIANT WRITER-1  At most one process of the host reads or writes the group's clients' sockets:
//                     the process whose name is in the table, until it has given up the right or
//                     its main thread, which alone uses the sockets, has ended.
// INVARIANT WRITER-2  No process gets the right for a view older than one for which it was
//                     requested, before the process has had time to learn of that view.

#include <atomic>
#include <cstdint>
#include <limits>

#include "proxy/clients/connection_table.h"

namespace crane::proxy {

// The host's processes, or those of a simulated host (proxy/sim), as far as a WriterRight needs
// them.
class Processes {
 public:
  // The main thread of the process has not ended.  A dying process exists for a while after that,
  // until the kernel has freed its memory, but it executes no code of its own.
  virtual bool may_write(ProcessName name) = 0;
  virtual bool is_stopped(ProcessName name) = 0;  // by a signal: it executes nothing
  // Kills the process.  Its main thread ends some time later.
  virtual void end(ProcessName name, std::int64_t waited_ns) = 0;

 protected:
  ~Processes() = default;
};
Processes& host_processes() noexcept;

class WriterRight {
 public:
  // How long a running earlier writer has to stop, and then to end.
  static constexpr std::int64_t kStopsNs = 20'000'000, kDiesNs = 2'000'000'000;
  // A leader of an older view that asks this often, for this long, has had time to learn that it is
  // deposed.  Then the table is one that an earlier group has left.
  static constexpr unsigned kAsksMost = 1000;
  static constexpr std::int64_t kOlderWriterNs = 2'000'000'000;

  // `memory`: the table.
  WriterRight(ConnectionTableLayout& memory, ProcessName own, Processes& processes) noexcept
      : writer_(memory.writer), newest_(memory.view), own_(own), processes_(processes) {}

  enum class Right : std::uint8_t {
    kOurs,
    kWaits,   // ask again at due_ns()
    kCannot,  // the earlier writer cannot be ended: its clients must be reset
  };
  // `view`: the one in which this process leads.
  Right become_writer(View view, std::int64_t now_ns);
  void stop_writing() noexcept;
  std::int64_t due_ns() const noexcept { return due_ns_; }

 private:
  bool is_newest(View view) noexcept;
  bool insists(View view, std::int64_t now_ns) noexcept;
  void give_up() noexcept;

  std::atomic<ProcessName>& writer_;
  std::atomic<View>& newest_;
  const ProcessName own_;
  Processes& processes_;
  std::int64_t waits_since_ns_ = 0;  // since when it waits for an earlier writer; 0: it does not
  bool killed_ = false;
  std::int64_t older_since_ns_ = 0;  // since when its view is not the newest
  unsigned older_asks_ = 0;
  std::int64_t due_ns_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace crane::proxy
