// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's part in the transfer of checkpoints between hosts.  It serves checkpoints to replicas
// that request one, and fetches those that it lacks.  Workers do this over separate connections,
// so neither consensus nor the server waits.
//
// Threads: the node's one thread.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/worker.h"
#include "consensus/fabric/secure_link.h"
#include "proxy/clients/woken.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/ship_link.h"
#include "runtime/control/progress.h"

namespace crane::node {

// Whether this replica can get checkpoints from replicas on other hosts.
bool ships(const Config& config);
// The properties of a checkpoint that this replica can use.
checkpoint::Expected expected_of(const Config& config);
ShipParty party_of(const Config& config);

// "fetched the checkpoint at entry 812 from replica 1: 3.4 MB in 120 ms".
std::string sentence_of(const checkpoint::Fetched& fetched);

class Shipping {
 public:
  class Owner : public proxy::Woken {
   public:
    // Whether the group knew the replica before: as a member of another incarnation, or by a log
    // that it held.
    virtual bool knows(ReplicaId peer) const = 0;
    // A replica requested a checkpoint after that entry, and this replica has none.
    virtual void lacked(ReplicaId peer, Index behind) = 0;

   protected:
    ~Owner() = default;
  };

  // The references must outlive it.
  Shipping(event_base* base, const Config& config, Owner& owner)
      : base_(base), config_(config), owner_(owner) {}
  ~Shipping() { stop(); }
  Shipping(const Shipping&) = delete;
  Shipping& operator=(const Shipping&) = delete;

  // A replica has connected to get a checkpoint; step() serves it.
  void take_visitor(ReplicaId from, std::unique_ptr<consensus::SecureLink> link);
  void step();
  // Fetches a checkpoint after that entry, unless a fetch runs or was tried just now.
  void fetch(Index behind, std::int64_t now_ns);
  bool fetches() const noexcept { return !fetching_.worker.idle(); }
  std::vector<control::Operation> operations() const;
  // Ends all transfers at once; parts that have arrived stay for the next fetch.
  void stop();

 private:
  struct Visitor {
    ReplicaId from{};
    std::unique_ptr<consensus::SecureLink> link;
  };
  struct Job {
    Shipping* owner = nullptr;
    ReplicaId peer{};  // the receiver; unused by fetching_
    checkpoint::Worker worker;
    control::ProgressMeter meter;  // of its bytes
    event event_{};
  };
  bool watch(Job& job);
  void advance(Job& job);
  void begin_serving(Visitor visitor);
  void served(const Job& job);
  void fetched();

  event_base* base_;
  const Config& config_;
  Owner& owner_;
  std::deque<Visitor> waiting_;
  std::vector<std::unique_ptr<Job>> serving_;
  Job fetching_;
  std::int64_t fetch_at_ns_ = 0;  // earliest time of the next fetch
  std::string last_failure_;      // why the last fetch failed
};

}  // namespace crane::node
