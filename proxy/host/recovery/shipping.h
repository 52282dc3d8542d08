// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's part in checkpoints that travel between hosts: it gives them to replicas that come for
// one, and fetches what it lacks itself.  All of it goes on in Workers, over connections of their
// own, so neither consensus nor the server waits for any of it.
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

namespace crane::node {

// Whether this replica has others on other hosts that checkpoints come from.
bool ships(const Config& config);
// What a checkpoint must be to be of use here; it reads libcrane.so.
checkpoint::Expected expected_of(const Config& config);
ShipParty party_of(const Config& config);

// "fetched the checkpoint at entry 812 from replica 1: 3.4 MB in 120 ms".
std::string sentence_of(const checkpoint::Fetched& fetched);

class Shipping {
 public:
  class Owner : public proxy::Woken {
   public:
    // Whether the group has heard of it before: as a member of another incarnation, or of a log
    // that it held.
    virtual bool knows(ReplicaId who) const = 0;
    // A replica came for a checkpoint behind that entry, and there is none here.
    virtual void lacked(ReplicaId who, Index behind) = 0;

   protected:
    ~Owner() = default;
  };

  // The references outlive it.
  Shipping(event_base* base, const Config& config, Owner& owner)
      : base_(base), config_(config), owner_(owner) {}
  ~Shipping() { stop(); }
  Shipping(const Shipping&) = delete;
  Shipping& operator=(const Shipping&) = delete;

  // Somebody came; step() sees to it.
  void take_visitor(ReplicaId from, std::unique_ptr<consensus::SecureLink> link);
  void step();
  // Fetches one behind that entry, unless it does so or has just tried.
  void fetch(Index behind, std::int64_t now_ns);
  bool fetches() const noexcept { return !fetching_.worker.idle(); }
  // All of it, at once; what has arrived stays, and is gone on with.
  void stop();

 private:
  struct Visitor {
    ReplicaId from{};
    std::unique_ptr<consensus::SecureLink> link;
  };
  struct Job {
    Shipping* owner = nullptr;
    ReplicaId who{};  // gets it; of the fetching one none
    checkpoint::Worker worker;
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
  std::int64_t fetch_at_ns_ = 0;  // not before
  std::string last_failure_;      // why the last one failed
};

}  // namespace crane::node
