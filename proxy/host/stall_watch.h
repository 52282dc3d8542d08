// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stall rule as it is carried out: what a node decides by it is a machine's
// (proxy/replica/check/stalls.h), for which this reads the server's segment, and writes there what
// it decided.
//
// Threads: the node's one thread.

#include <cstdint>
#include <span>
#include <vector>

#include "dmt/layout.h"
#include "dmt/stall.h"
#include "proxy/replica/action_loop.h"
#include "proxy/replica/check/stalls.h"

namespace crane::node {

class Proposals;
class ReplicaServer;

class StallWatch {
 public:
  // The references outlive it.
  StallWatch(dmt::Layout& layout, std::uint8_t replicas, ReplicaServer& server,
             Proposals& proposals);

  // A PREEMPT or PASSED of the log, in its order; others are ignored.
  void committed(EntryType type, std::span<const std::byte> body);
  // All is known: the log tells nothing new.
  void close() { step(replica::stalls::Closed{}, now_ns_); }
  // True when a step has something to do at once: an entry came, or an order was obeyed.
  bool has_news() const noexcept {
    return machine_.has_news(dmt::preempt_requests_obeyed(w_),
                             w_.scheduler.arrivals.load(std::memory_order_relaxed));
  }

  struct Role {
    bool leads;    // may propose
    bool decides;  // STALL-1
  };
  struct Next {
    std::int64_t due_ns;             // to look again; kNever: after the next event
    const char* diverged = nullptr;  // why this replica must not go on
  };
  // Does what there is to do.
  Next step(std::int64_t now_ns, Role role);

  // For a checkpoint: as far as the log says up to its entry.
  std::uint64_t passed() const noexcept { return machine_.passed(); }
  // The server recovered from one, at `clock`; the log behind the entry follows.
  void restore(std::uint64_t passed, std::uint64_t clock);

  const replica::Standing& standing() const noexcept { return machine_.standing(); }

 private:
  replica::stalls::Tick look(Role role);
  void step(const replica::stalls::Event& event, std::int64_t now_ns);
  void carry_out(const replica::stalls::SetLeaderClockLimit& limit) {
    dmt::set_leader_clock_limit(w_, limit.clock);
  }
  void carry_out(const replica::stalls::RequestPreemption& order) {
    dmt::request_preemption(w_, order.body);
  }
  void carry_out(const replica::stalls::ReleaseHeldThread&) { dmt::release_held_thread(w_); }
  void carry_out(const replica::stalls::Diverged& diverged) { diverged_ = diverged.why; }
  void carry_out(const replica::stalls::Probe& probe);
  void carry_out(const replica::stalls::Propose& proposal);
  void carry_out(const replica::stalls::LookForArrived&);
  void carry_out(const replica::stalls::Warn& warning);

  dmt::Layout& w_;
  ReplicaServer& server_;
  Proposals& proposals_;
  replica::Stalls machine_;
  replica::ActionLoop<replica::stalls::ActionList> loop_;
  std::int64_t now_ns_ = 0;  // of the last step
  std::vector<AttachBody> arrived_;
  const char* diverged_ = nullptr;
};

}  // namespace crane::node
