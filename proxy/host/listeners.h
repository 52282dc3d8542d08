// SPDX-License-Identifier: Apache-2.0
#pragma once
// The listeners for the server's ports on this machine: the host's own, or those that crane-run
// opens.  Also handles binds of the server that wait until a machine has checked whether their port
// is free (proxy/replica/clients/port_questions.h).
//
// Threads: the node's one thread.
// INVARIANT LISTEN-1  For each port at which the server listens, the node requests a listener until
//                     it is open.  It repeats the request to each crane-run that takes over.

#include <cstdint>
#include <optional>
#include <vector>

#include "dmt/layout.h"
#include "proxy/clients/proxy.h"
#include "proxy/host/host_role.h"
#include "proxy/host/proposals.h"
#include "proxy/host/supervisor.h"
#include "proxy/replica/action_loop.h"
#include "proxy/replica/clients/port_questions.h"

namespace crane::node {

class Listeners {
 public:
  // `host` is nullptr if crane-run started this node.  All arguments must outlive the object.
  Listeners(dmt::Layout& layout, proxy::Proxy& proxy, HostRole* host, Supervisor& supervisor,
            Proposals& proposals);

  // The server listens at `place`.
  void open(const Place& place, std::uint64_t backlog);
  // Opens all ports again: for a new crane-run, or, with `notify_proxy`, for a server that was
  // restored from a checkpoint.
  void open_all(bool notify_proxy);

  // --- binds that wait
  void wanted(const Place& place, std::uint64_t question) {
    step(replica::ports::Wanted{place, question});
  }
  // No listener was opened for a requested place.  `error` is the errno, or 0 if clients must not
  // reach the place.
  void settled(const Place& place, int error) { step(replica::ports::Settled{place, error}); }
  // The crane-run that received the request is gone.
  void ask_again() { step(replica::ports::AskAgain{}); }
  // The server was restored from a checkpoint.  REQUIRES the turn.
  void recover();
  // If `leads`, this replica may propose the answer for the group.
  void step(bool leads, std::int64_t now_ns);

 private:
  void step(const replica::ports::Event& event);
  void carry_out(const replica::ports::Open& open);
  void carry_out(const replica::ports::Propose& proposal);
  std::optional<int> open_for_bind(const Place& place);
  std::uint32_t socket_of(std::uint64_t question) const noexcept;

  dmt::Layout& layout_;
  proxy::Proxy& proxy_;
  HostRole* const host_;
  Supervisor& supervisor_;
  Proposals& proposals_;
  replica::PortQuestions questions_;
  replica::ActionLoop<replica::ports::ActionList> loop_;
  std::vector<replica::ports::OpenQuestion> seen_;
  std::int64_t now_ns_ = 0;  // of the last step
};

}  // namespace crane::node
