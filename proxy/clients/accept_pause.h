// SPDX-License-Identifier: Apache-2.0
#pragma once
// While descriptors or memory are missing, the owner of a listening socket does not listen to it:
// its event loop would turn at full speed.  It listens again when something may have become free,
// and looks every kAcceptAgainMs.
//
// Threads: the node's one thread.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <string>
#include <utility>

#include "dmt/base/accept_error.h"

namespace crane::proxy {

class AcceptPause {
 public:
  class Owner {
   public:
    // on() did.
    virtual void accept_pause_changed() = 0;

   protected:
    ~Owner() = default;
  };

  // `what`: who waits meanwhile, for people.
  AcceptPause(event_base* base, std::string what, Owner& owner)
      : base_(base), what_(std::move(what)), owner_(owner) {}
  ~AcceptPause();
  AcceptPause(const AcceptPause&) = delete;
  AcceptPause& operator=(const AcceptPause&) = delete;

  // accept() has failed so.  The first time since a connection was accepted it is said.
  AcceptError failed(int error, const std::string& where);
  void accepted() noexcept { said_ = false; }
  // Nothing is to be listened to.
  bool on() const noexcept { return on_; }
  // A descriptor has become free.
  void end();

 private:
  static void on_due(int, short, void* pause);

  event_base* const base_;
  const std::string what_;
  Owner& owner_;
  event event_{};
  bool on_ = false, said_ = false;
};

}  // namespace crane::proxy
