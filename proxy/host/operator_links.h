// SPDX-License-Identifier: Apache-2.0
#pragma once
// Links of operators on other machines, at the port of the node's fabric (kOperatorPlane of
// consensus/fabric/secure_link.h): one request and one answer per link, the same texts as at
// control.sock, in frames (runtime/control/frame.h).  The fabric has finished the handshake, so the
// other end holds the group's secret (LINK-S1).
//
// Threads: the node's one thread, inside its event loop.
// Errors: a link is closed if it fails, or has not sent its request and taken its answer in 10 s.
// INVARIANT OPLINK-1  At most kLinksMax links are open.  A new one replaces the oldest.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "consensus/fabric/secure_link.h"
#include "proxy/clients/woken.h"

namespace crane::node {

class OperatorLinks {
 public:
  static constexpr std::size_t kLinksMax = 16;

  class Owner : public proxy::Woken {
   public:
    virtual std::string answer(const std::string& request) = 0;

   protected:
    ~Owner() = default;
  };

  // `owner` must outlive it.
  OperatorLinks(event_base* base, Owner& owner) : base_(base), owner_(owner) {}
  ~OperatorLinks();
  OperatorLinks(const OperatorLinks&) = delete;
  OperatorLinks& operator=(const OperatorLinks&) = delete;

  // `link` is open.  Its request is read later, in the event loop.
  void take(std::unique_ptr<consensus::SecureLink> link);
  std::size_t open() const noexcept { return links_.size(); }

 private:
  struct Link {
    OperatorLinks* owner = nullptr;
    std::unique_ptr<consensus::SecureLink> link;
    std::int64_t until_ns = 0;  // CLOCK_MONOTONIC
    bool answered = false;
    event event_{};
  };
  void advance(Link& link, short what);
  // False: the link has no further use.
  bool serve(Link& link);
  void wait(Link& link);
  static void reply(Link& link, const std::string& answer);
  void close(Link& link);

  event_base* const base_;
  Owner& owner_;
  std::list<Link> links_;  // the oldest first; events have their addresses
};

}  // namespace crane::node
