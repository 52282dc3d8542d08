// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's control.sock: one request and one answer per connection (crane-ctl, a host's agent), or
// a crane-run that takes the connection over.
//
// Threads: the node's one thread, inside its event loop.
// Errors: open() gives the errno; afterwards a client that sends nothing within 2 s, that leaves
// before its answer, or that comes when 32 others wait is dropped.
// INVARIANT CTL-3  A connection is closed by exactly one owner: the socket, or what took it over.

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
    // True: the connection is the callee's from here on.
    virtual bool take_over(int fd, const std::string& request) = 0;
    virtual std::string answer(const std::string& request) = 0;

   protected:
    ~Owner() = default;
  };

  // `owner` outlives it.
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
  std::vector<std::unique_ptr<Connection>> connections_;  // whose request has not come yet
};

}  // namespace crane::node
