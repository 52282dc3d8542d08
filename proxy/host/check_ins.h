// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes of the server that say they are there: each connects to the segment's check-in socket
// and sends one dmt::CheckIn.
//
// It connects and sends in two steps, and on a crowded machine it may wait for a processor between
// them for a long time; a stranger may never send.  Neither holds up the loop, whose heartbeats the
// other replicas read.
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
    // A process says that it is there; its pid on this host, which the kernel vouches for.  In the
    // order of sending, for each process.  REQUIRES that it does not call forget().
    virtual void checked_in(const dmt::CheckIn& in, pid_t host_pid) = 0;

   protected:
    ~Owner() = default;
  };
  // Connections that have said nothing yet; one more ends the oldest.
  static constexpr std::size_t kSilentMax = 256;

  // `listener`: non-blocking, the caller's.
  CheckIns(event_base* base, int listener, Owner& owner);
  ~CheckIns();
  CheckIns(const CheckIns&) = delete;
  CheckIns& operator=(const CheckIns&) = delete;

  // What was sent by now, without waiting for the loop to come by.
  void take_waiting();
  // Of those that are connected now nothing follows: their server has ended.
  void forget();
  std::size_t silent() const noexcept { return silent_.size(); }

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
  void hear_silent();
  void wait_for(int fd);

  event_base* base_;
  Owner& owner_;
  event listener_event_{};
  std::list<std::unique_ptr<Connection>> silent_;  // the oldest first
  proxy::AcceptPause pause_;
};

}  // namespace crane::node
