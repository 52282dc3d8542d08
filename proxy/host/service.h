// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out replica::service::Service: begins and stops to take clients as it decides.
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
  // The node, which connects this class to its other parts.
  class Owner {
   public:
    virtual void drain_server() = 0;  // passes on the own server's output
    virtual void reign_began() = 0;   // START was proposed
    virtual void status_changed() = 0;
    // Whether a crane-run starts the nodes of lost replicas.
    virtual bool has_supervisor() const = 0;
    // Whether that crane-run is stopped (SIGSTOP): it starts them only when it continues.
    virtual bool supervisor_stopped() const = 0;

   protected:
    ~Owner() = default;
  };

  // `host`: nullptr if crane-run started this node.  All arguments must outlive it.
  Service(Owner& owner, dmt::Layout& layout, replica::Leadership& leadership, proxy::Proxy& proxy,
          Proposals& proposals, HostRole* host)
      : owner_(owner),
        layout_(layout),
        leadership_(leadership),
        proxy_(proxy),
        proposals_(proposals),
        host_(host) {}

  // Carries out a change of the role; call while no connection is in use.  `is_active` is
  // true if nothing stops this replica and its server has not ended.  `stopping` is true if the
  // replica was requested to stop.
  void follow_role(Index applied, bool is_active, bool stopping, std::int64_t now_ns);
  // Reports a replica that can serve nothing to its operator, and to its clients if other hosts may
  // serve them.
  void look_at_quorum(const consensus::QuorumStatus& quorum, std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return std::min(machine_.deadline_ns(), proxy_.due_ns()); }
  // Why clients are not served, and what happens to them; empty: there are a quorum and a leader.
  std::string why_not_served() const;
  // Whether a program starts the nodes of lost replicas.
  bool supervised() const { return host_ != nullptr || owner_.has_supervisor(); }
  // The same, and it can do so now: it is not stopped.
  bool attended() const {
    return supervised() && (host_ != nullptr || !owner_.supervisor_stopped());
  }

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
