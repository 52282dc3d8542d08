// SPDX-License-Identifier: Apache-2.0
#pragma once
// While descriptors or memory are missing, the owner of a listening socket does not watch it,
// because its event loop would spin.  It watches the socket again when something may have become
// free, and retries every kAcceptAgainMs.
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
    // The value of on() has changed.
    virtual void accept_pause_changed() = 0;

   protected:
    ~Owner() = default;
  };

  // `what`: who waits meanwhile, for messages.
  AcceptPause(event_base* base, std::string what, Owner& owner)
      : base_(base), what_(std::move(what)), owner_(owner) {}
  ~AcceptPause();
  AcceptPause(const AcceptPause&) = delete;
  AcceptPause& operator=(const AcceptPause&) = delete;

  // accept() failed with `error`.  The first failure after a successful accept is logged.
  AcceptError failed(int error, const std::string& where);
  void accepted() noexcept { logged_ = false; }
  // True: no listening socket is to be watched.
  bool on() const noexcept { return on_; }
  // A descriptor has become free.
  void end();

 private:
  static void on_due(int, short, void* pause);

  event_base* const base_;
  const std::string what_;
  Owner& owner_;
  event event_{};
  bool on_ = false, logged_ = false;
};

}  // namespace crane::proxy
