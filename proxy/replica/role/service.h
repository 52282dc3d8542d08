// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether this replica accepts clients: while it leads and its server knows that, and never without
// a quorum.  The interface has the form of step.h.
//
// Pure.  Threads: the node's one thread.
// INVARIANT SERVE-1  Clients are accepted only while this replica leads and its server has admitted
//                    its START (LEAD-2).  When it was deposed, it leaves all clients and the
//                    virtual address before it does anything else.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "consensus/consensus.h"
#include "proxy/replica/deadline.h"
#include "proxy/replica/role/quorum_watch.h"

namespace crane::replica::service {

// --- events --------------------------------------------------------------------------------------

// A point where no connection is in use.
struct Round {
  bool deposed = false, changed = false;  // the role, since the last round
  bool stopping = false;                  // the replica was ordered to stop
  bool is_active = false;  // the replica is not stopping, and its server has not ended
  bool leads = false;
  bool started = false;  // START was proposed in this view
  bool serves = false;   // clients are accepted
};
// The answer to BecomeWriter.
struct Writer {
  bool ours = false;      // no earlier leader of this host uses the clients' sockets any more
  bool started = false;   // as of now
  bool admitted = false;  // started, and this replica's server has admitted START
  bool serves = false;
};
// The answer to ProposeStart.
struct StartProposed {
  bool ok = false;
};
struct Quorum {
  consensus::QuorumStatus seen;
};
using Event = std::variant<Round, Writer, StartProposed, Quorum>;

// --- actions -------------------------------------------------------------------------------------

struct StopServing {};  // leaves all clients, and the virtual address
struct FollowRole {     // on a host of its own: its ports, its hook
  bool refuses = false;
};
struct EndClients {};
struct BecomeWriter {};  // Writer follows
struct ProposeStart {};  // StartProposed follows
struct AdoptSockets {};  // those of an earlier leader
struct Serve {};
struct Refuse {  // refuses clients if another host may serve them
  bool on = false;
};
struct ReportQuorum {
  bool lost = false;
};
struct StatusChanged {};
using Action = std::variant<StopServing, FollowRole, EndClients, BecomeWriter, ProposeStart,
                            AdoptSockets, Serve, Refuse, ReportQuorum, StatusChanged>;
using ActionList = std::vector<Action>;

class Service {
 public:
  void step(const Event& event, std::int64_t now_ns);
  // Returns the actions of the last steps; false: there are none.
  bool take_actions(ActionList& into) {
    into.clear();
    into.swap(actions_);
    return !into.empty();
  }
  std::int64_t deadline_ns() const noexcept { return std::min(quorum_.due_ns(), collects_at_ns_); }

  // How lost replicas are restarted.
  enum class Supervisor : std::uint8_t {
    kHosts,  // each host has its own supervisor, and clients go to another host
    kHere,
    kStopped,  // there is one, which does nothing until it continues
    kNone,
  };
  // Why clients are not served and what happens to them; empty: there are a quorum and a leader.
  std::string why_not_served(Supervisor supervisor) const;

 private:
  void on(const Round& round);
  void on(const Writer& writer);
  void on(const StartProposed& start);
  void on(const Quorum& quorum);
  template <typename A>
  void act(A&& action) {
    actions_.emplace_back(std::forward<A>(action));
  }

  QuorumWatch quorum_;
  unsigned answering_ = 0;  // voters that answered the last time
  // When to collect an earlier leader's sockets, after START.
  std::int64_t collects_at_ns_ = kNever;
  std::int64_t now_ns_ = 0;
  ActionList actions_;
};

}  // namespace crane::replica::service
