// SPDX-License-Identifier: Apache-2.0
#pragma once
// Accepts the check-ins of the server's processes: each process connects to the segment's check-in
// socket and sends one dmt::CheckIn.
//
// A process connects and sends in two steps, and on a crowded machine it may wait long for a
// processor between them; another program may connect and never send.  Neither delays the loop,
// because the other replicas need its heartbeats.
//
// Threads: the node's one thread.

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/types.h>

#include <cstddef>
#include <list>
#include <memory>

#include "dmt/segment.h"
#include "proxy/clients/accept_pause.h"

namespace crane::node {

class CheckIns final : private proxy::AcceptPause::Owner {
 public:
  class Owner {
   public:
    // A process has checked in.  `host_pid` is its pid on this host, as the kernel reports it.
    // Check-ins of one process come in the order of sending.  REQUIRES: does not call forget().
    virtual void checked_in(const dmt::CheckIn& in, pid_t host_pid) = 0;

   protected:
    ~Owner() = default;
  };
  // Limit of connections without a message; one more closes the oldest.
  static constexpr std::size_t kSilentMax = 256;

  // `listener`: non-blocking; owned by the caller.
  CheckIns(event_base* base, int listener, Owner& owner);
  ~CheckIns();
  CheckIns(const CheckIns&) = delete;
  CheckIns& operator=(const CheckIns&) = delete;

  // Reads all messages sent so far, without waiting for the loop.
  void take_waiting();
  // Drops all current connections: their server has ended.
  void forget();
  std::size_t silent() const noexcept { return pending_.size(); }

 private:
  void accept_pause_changed() override;

  struct Connection {
    Connection(CheckIns* of, int socket) : owner(of), fd(socket) {}
    ~Connection();
    CheckIns* owner;
    int fd;
    event event_{};
  };

  static void on_connection(int fd, short what, void* check_ins);
  static void on_message(int fd, short what, void* connection);
  void take_connections();
  bool read(int fd);  // false: there is nothing to read yet
  void read_pending();
  void wait_for(int fd);

  event_base* base_;
  Owner& owner_;
  event listener_event_{};
  std::list<std::unique_ptr<Connection>> pending_;  // connections without a message, oldest first
  proxy::AcceptPause pause_;
};

}  // namespace crane::node
