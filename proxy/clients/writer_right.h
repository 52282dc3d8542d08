// SPDX-License-Identifier: Apache-2.0
#pragma once
// The right to use the clients' sockets of a host: one process at a time has it.
//
// An earlier writer that does not stop by itself is ended: one that is stopped in the middle of a
// write would go on with it whenever it is continued, in a stream that is no longer its own.  A
// leader that does not know yet that it is deposed takes the right from no newer one: its log is
// older.
//
// Pure but for `Processes`.  Threads: the node's one thread.
// INVARIANT WRITER-1  At most one process of the host reads or writes the group's clients' sockets:
//                     the one whose name is in the table, until it has given the right up or its
//                     main thread, which alone does so, has ended.
// INVARIANT WRITER-2  No process gets the right for a view older than one for which it was asked,
//                     before it has had time to hear of that view.

#include <atomic>
#include <cstdint>
#include <limits>

#include "proxy/clients/connection_table.h"

namespace crane::proxy {

// What a WriterRight asks of the host, or of a simulated one (proxy/sim).
class Processes {
 public:
  // Its main thread has not ended.  A process that dies is there for a while after that, until the
  // kernel has taken its memory apart; it executes nothing of its own any more.
  virtual bool may_write(ProcessName name) = 0;
  virtual bool is_stopped(ProcessName name) = 0;  // by a signal; it does nothing
  // Kills it.  Its main thread ends some time later.
  virtual void end(ProcessName name, std::int64_t waited_ns) = 0;

 protected:
  ~Processes() = default;
};
Processes& host_processes() noexcept;

class WriterRight {
 public:
  // How long an earlier writer that runs has to stop by itself, and to end.
  static constexpr std::int64_t kStopsNs = 20'000'000, kDiesNs = 2'000'000'000;
  // A leader of an older view that asks so often, for so long, has had time to hear that it is
  // deposed: the table is one that an earlier group has left.
  static constexpr unsigned kAsksMost = 1000;
  static constexpr std::int64_t kHearsNs = 2'000'000'000;

  // `memory`: the table's.
  WriterRight(ConnectionTableLayout& memory, ProcessName own, Processes& processes) noexcept
      : writer_(memory.writer), newest_(memory.view), own_(own), processes_(processes) {}

  enum class Right : std::uint8_t {
    kOurs,
    kWaits,   // ask again at due_ns()
    kCannot,  // the earlier writer cannot be ended: its clients must be reset
  };
  // `view`: in which this process leads.
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
  std::int64_t waits_since_ns_ = 0;  // for an earlier writer; 0: it does not
  bool killed_ = false;
  std::int64_t older_since_ns_ = 0;  // while its view is not the newest
  unsigned older_asks_ = 0;
  std::int64_t due_ns_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace crane::proxy
