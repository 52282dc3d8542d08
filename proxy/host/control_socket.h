// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's control.sock: one request and one answer per connection (crane-ctl, a host's agent), or
// a crane-run that keeps the connection as its channel.
//
// Threads: the node's one thread, inside its event loop.
// Errors: open() returns the errno.  Later a client is dropped if it sends nothing within 2 s,
// leaves before its answer, or connects while 32 others wait.
// INVARIANT CTL-3  A connection is closed by exactly one owner: this object, or the callee that
//                  took it over.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <memory>
#include <string>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/clients/accept_pause.h"
#include "proxy/clients/woken.h"

namespace crane::node {

class ControlSocket final : private proxy::AcceptPause::Owner {
 public:
  class Owner : public proxy::Woken {
   public:
    // True: the callee now owns the connection.
    virtual bool take_over(int fd, const std::string& request) = 0;
    virtual std::string answer(const std::string& request) = 0;

   protected:
    ~Owner() = default;
  };

  // `owner` must outlive it.
  ControlSocket(event_base* base, Owner& owner);
  ~ControlSocket() { close(); }
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  Outcome open(const std::string& path);
  void close();

 private:
  struct Connection {
    ControlSocket* owner;
    int fd;
    event event_;
  };

  void accept_pause_changed() override;
  void accept();
  void serve(const Connection& connection);

  event_base* const base_;
  Owner& owner_;
  int fd_ = -1;
  event event_{};
  proxy::AcceptPause pause_;
  std::vector<std::unique_ptr<Connection>> connections_;  // still without a request
};

}  // namespace crane::node
