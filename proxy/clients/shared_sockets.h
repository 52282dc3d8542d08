// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients' sockets of a group whose nodes run on one host: which process may use them, and how
// the next one gets them.
//
//   become_writer() -- adopt_sockets() -- (serves clients) -- stop_writing()
//                                             `-- another process's adopt_sockets() --> released()
//
// Threads: the node's one thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "proxy/clients/connection_table.h"
#include "proxy/clients/socket_keeper.h"
#include "proxy/clients/writer_right.h"

namespace crane::proxy {

class SharedSockets {
 public:
  // `path`: the table, the same for all nodes of the group.  Errors: those of ConnectionTable and
  // SocketKeeper; then connections end with their leader.
  static Result<std::unique_ptr<SharedSockets>> open(const std::string& path);
  ~SharedSockets();
  SharedSockets(const SharedSockets&) = delete;
  SharedSockets& operator=(const SharedSockets&) = delete;

  // --- the right to use the sockets (WRITER-1)
  using Right = WriterRight::Right;
  Right become_writer(View view, std::int64_t now_ns) { return right_.become_writer(view, now_ns); }
  void stop_writing() noexcept { right_.stop_writing(); }
  std::int64_t due_ns() const noexcept { return right_.due_ns(); }

  // Takes the clients' sockets that other processes hold; these release them.  REQUIRES: the right.
  // From now on this process holds sockets, which another one's adopt_sockets() takes.
  std::vector<int> adopt_sockets();
  // This process has opened a client's socket.
  void opened(int fd) noexcept;
  // Another process has adopted this one's sockets: the descriptors must be closed.
  bool released() const noexcept;
  // This process has no client's socket any more: the keeper ends with it.
  void none_left() noexcept;

  // --- the keeper (KEEPER-1)
  // Readable after the keeper was killed; -1: there is none, and connections would end with this
  // process.
  int keeper_fd() const noexcept { return keeper_ ? keeper_->pidfd() : -1; }
  // Starts another keeper in its place.
  void replace_keeper();

  // Clients connect to this port of the host.
  void add_port(std::uint16_t port) noexcept { table_->add_port(port); }
  ConnectionTable& table() noexcept { return *table_; }

 private:
  SharedSockets(std::unique_ptr<ConnectionTable> table, SocketHolder& holder);

  std::unique_ptr<ConnectionTable> table_;
  SocketHolder& holder_;
  WriterRight right_;
  std::optional<SocketKeeper> keeper_;
  bool complained_ = false;  // about the missing keeper
  bool held_ = false;        // adopt_sockets() was called since the last released()
};

}  // namespace crane::proxy
