// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out the stall rule.  The decisions are made by a state machine
// (proxy/replica/check/stalls.h).  This class reads the server's segment for it and writes its
// decisions to the segment.
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
  // The references must outlive it.
  StallWatch(dmt::Layout& layout, std::uint8_t replicas, ReplicaServer& server,
             Proposals& proposals);

  // A PREEMPT or PASSED entry, in log order; other types are ignored.
  void committed(EntryType type, std::span<const std::byte> body);
  // All stalls are known: the log adds nothing.
  void close() { step(replica::stalls::Closed{}, now_ns_); }
  // Whether a step has work now: an entry came, or a preemption request was obeyed.
  bool has_news() const noexcept {
    return machine_.has_news(dmt::preempt_requests_obeyed(w_),
                             w_.scheduler.arrivals.load(std::memory_order_relaxed));
  }

  struct Role {
    bool leads;    // may propose
    bool decides;  // STALL-1
  };
  struct Next {
    std::int64_t due_ns;             // time of the next step; kNever: after the next event
    const char* diverged = nullptr;  // why this replica must not continue
  };
  // Carries out what is due.
  Next step(std::int64_t now_ns, Role role);

  // For a checkpoint: the passed clock according to the log up to the checkpoint's entry.
  std::uint64_t passed() const noexcept { return machine_.passed(); }
  // The server recovered from a checkpoint, at `clock`; the log after its entry follows.
  void restore(std::uint64_t passed, std::uint64_t clock);

  const replica::StalledThread& stalled_thread() const noexcept {
    return machine_.stalled_thread();
  }

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
