// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients' sockets of a group whose nodes run on one host: which process may use them, and how
// the next one gets them.
//
//   become_writer() -- collect() -- (serves clients) -- stop_writing()
//                                                           `--> another's collect() --> released()
//
// An earlier writer that does not stop by itself is ended: one that is stopped in the middle of a
// write would go on with it whenever it is continued, in a stream that is no longer its own.
//
// Threads: the node's one thread.
// INVARIANT WRITER-1  At most one process of the host reads or writes the group's clients' sockets:
//                     the one whose name is in the table, until it has stopped or is dead.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "proxy/clients/connection_table.h"
#include "proxy/clients/socket_keeper.h"

namespace crane::proxy {

class SharedSockets {
 public:
  // How long an earlier writer that runs has to stop by itself, and to die.
  static constexpr std::int64_t kStopsNs = 20'000'000, kDiesNs = 2'000'000'000;

  // `path`: the table, the same for all nodes of the group.  Errors: of ConnectionTable and
  // SocketKeeper; the group's connections cannot outlive their leader on this host.
  static Result<std::unique_ptr<SharedSockets>> open(const std::string& path);
  ~SharedSockets();
  SharedSockets(const SharedSockets&) = delete;
  SharedSockets& operator=(const SharedSockets&) = delete;

  // --- the right to use the sockets (WRITER-1)
  enum class Right : std::uint8_t {
    kOurs,
    kWaits,   // ask again at due_ns()
    kCannot,  // the earlier writer cannot be ended: its clients must be reset
  };
  Right become_writer(std::int64_t now_ns);
  void stop_writing() noexcept;
  std::int64_t due_ns() const noexcept { return due_ns_; }

  // The clients' sockets that other processes hold; these let go of them.  REQUIRES: the right.
  // From here on this process holds sockets: another one that collects() gets them.
  std::vector<int> collect();
  // A client's socket was opened here.
  void opened(int fd) noexcept;
  // Another process has collected what this one held: its descriptors are to be closed.
  bool released() const noexcept;
  // No client's socket is left here: the keeper ends with this process.
  void none_left() noexcept;

  // Clients come to this port of the host.
  void add_port(std::uint16_t port) noexcept { table_->add_port(port); }
  ConnectionTable& table() noexcept { return *table_; }

 private:
  SharedSockets(std::unique_ptr<ConnectionTable> table, SocketHolder& holder);

  void end_writer(ProcessName writer, std::int64_t now_ns);

  std::unique_ptr<ConnectionTable> table_;
  SocketHolder& holder_;
  const ProcessName own_;
  std::optional<SocketKeeper> keeper_;
  bool held_ = false;                // collect() was called since the last released()
  std::int64_t waits_since_ns_ = 0;  // for an earlier writer; 0: it does not
  bool killed_ = false;
  std::int64_t due_ns_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace crane::proxy
