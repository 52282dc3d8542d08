// SPDX-License-Identifier: Apache-2.0
#pragma once
// The shell of replica::service::Service: begins and ends to take clients as that decides.
//
// Threads: the node's one thread.

#include <cstdint>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "proxy/clients/proxy.h"
#include "proxy/host/host_role.h"
#include "proxy/host/proposals.h"
#include "proxy/replica/action_loop.h"
#include "proxy/replica/role/leadership.h"
#include "proxy/replica/role/service.h"

namespace crane::node {

class Service {
 public:
  // The node, which knows the other parts.
  class Owner {
   public:
    virtual void drain_server() = 0;  // hands on what the own server has put out
    virtual void reign_began() = 0;   // START was proposed
    virtual void status_changed() = 0;
    // A crane-run starts the nodes of lost replicas.
    virtual bool has_supervisor() const = 0;

   protected:
    ~Owner() = default;
  };

  // `host`: nullptr when a crane-run has started this node.  All outlive it.
  Service(Owner& owner, dmt::Layout& layout, replica::Leadership& leadership, proxy::Proxy& proxy,
          Proposals& proposals, HostRole* host)
      : owner_(owner),
        layout_(layout),
        leadership_(leadership),
        proxy_(proxy),
        proposals_(proposals),
        host_(host) {}

  // Carries out what the role has become, at a point where no connection is in use.  `goes_on`:
  // nothing stops this replica, and its server has not ended; `stopping`: it was asked to stop.
  void follow_role(Index applied, bool goes_on, bool stopping, std::int64_t now_ns);
  // A replica that can serve nothing says so to its operator, and to its clients if other hosts may
  // serve them.
  void look_at_quorum(const consensus::QuorumStatus& quorum, std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return std::min(machine_.deadline_ns(), proxy_.due_ns()); }
  // Why clients are not served and what becomes of them; empty: there are a quorum and a leader.
  std::string why_not_served() const;
  // A program starts the nodes of lost replicas.
  bool supervised() const { return host_ != nullptr || owner_.has_supervisor(); }

 private:
  void step(const replica::service::Event& event);
  void carry_out(const replica::service::StopServing&);
  void carry_out(const replica::service::FollowRole& follow);
  void carry_out(const replica::service::EndClients&) { proxy_.end(); }
  void carry_out(const replica::service::BecomeWriter&);
  void carry_out(const replica::service::ProposeStart&);
  void carry_out(const replica::service::AdoptSockets&) { proxy_.adopt_sockets(); }
  void carry_out(const replica::service::Serve&);
  void carry_out(const replica::service::Refuse& refuse);
  void carry_out(const replica::service::ReportQuorum& quorum);
  void carry_out(const replica::service::StatusChanged&) { owner_.status_changed(); }

  Owner& owner_;
  dmt::Layout& layout_;
  replica::Leadership& leadership_;
  proxy::Proxy& proxy_;
  Proposals& proposals_;
  HostRole* const host_;
  replica::service::Service machine_;
  replica::ActionLoop<replica::service::ActionList> loop_;
  Index applied_{};  // of this round
  std::int64_t now_ns_ = 0;
};

}  // namespace crane::node
