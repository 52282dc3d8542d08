// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether this replica takes clients: while it leads and its server knows that, and never without a
// quorum.
//
// Threads: the node's one thread.
// INVARIANT SERVE-1  Clients are taken only while this replica leads and its own server has
//                    admitted its START (LEAD-2); it leaves all of them, and the virtual address,
//                    before it does anything else after it was deposed.

#include <algorithm>
#include <cstdint>
#include <functional>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "proxy/clients/server.h"
#include "proxy/host/host_role.h"
#include "proxy/host/leadership.h"
#include "proxy/host/proposals.h"
#include "proxy/replica/role/quorum_watch.h"

namespace crane::node {

struct ServiceActions {
  // Hands on what the own server has put out.
  std::function<void()> drain;
  // The proxy leads, if connections outlive the leader.
  std::function<void()> took_over;
  // START was proposed.
  std::function<void()> started;
  // What status says has changed.
  std::function<void()> changed;
  // A crane-run starts the nodes of lost replicas.
  std::function<bool()> supervised;
};

class Service {
 public:
  // `host`: nullptr when a crane-run has started this node.  All outlive it.
  Service(dmt::Layout& layout, Leadership& leadership, proxy::Proxy& proxy, Proposals& proposals,
          HostRole* host, ServiceActions actions)
      : layout_(layout),
        leadership_(leadership),
        proxy_(proxy),
        proposals_(proposals),
        host_(host),
        actions_(std::move(actions)) {}

  // Carries out what the role has become, at a point where no connection is in use.  `goes_on`:
  // nothing stops this replica, and its server has not ended; `stopping`: it was asked to stop.
  void follow_role(Index applied, bool goes_on, bool stopping, std::int64_t now_ns);
  // A replica that can serve nothing says so to its operator, and to its clients if other hosts may
  // serve them.
  void look_at_quorum(const consensus::QuorumStatus& quorum, std::int64_t now_ns);
  std::int64_t due_ns() const noexcept {
    return std::min({quorum_.due_ns(), proxy_.due_ns(), collects_at_ns_});
  }
  // Why clients are not served and what becomes of them; empty: there are a quorum and a leader.
  std::string why_not_served() const;
  // A program starts the nodes of lost replicas.
  bool supervised() const { return host_ != nullptr || actions_.supervised(); }

 private:
  void be_deposed();

  dmt::Layout& layout_;
  Leadership& leadership_;
  proxy::Proxy& proxy_;
  Proposals& proposals_;
  HostRole* const host_;
  const ServiceActions actions_;
  replica::QuorumWatch quorum_;
  unsigned answering_ = 0;                       // of the voters, as of the last look
  std::int64_t collects_at_ns_ = proxy::kNever;  // an earlier leader's sockets, behind START
};

}  // namespace crane::node
