// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out time slices.  The decisions are made by a state machine
// (proxy/replica/check/slices.h).  This class reads the server's segment for it, follows a thread
// that computes (proxy/ticks), and stores the points in the directory of a group with lasting data.
//
// Threads: the node's one thread.

#include <event2/event.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "proxy/host/config.h"
#include "proxy/replica/action_loop.h"
#include "proxy/replica/check/slices.h"
#include "proxy/ticks/finder.h"

namespace crane::node {

class Proposals;
class ReplicaServer;

class SliceWatch final : private ticks::Finder::Owner {
 public:
  // The references must outlive it.
  SliceWatch(event_base* base, const Config& config, ReplicaServer& server, Proposals& proposals);

  // Checks the server; returns the time of the next call (kNever: after the next event).
  // `supervised`: the node is started again if it ends.
  std::int64_t step(std::int64_t now_ns, bool leads, bool supervised);

  const replica::Unsliced& unsliced() const noexcept { return machine_.unsliced(); }

 private:
  void found(const ticks::Choice& choice) override;
  void step(const replica::slices::Event& event);
  void look_at_server(replica::slices::Look& look);
  void copy_points();
  void carry_out(const replica::slices::Find& find);
  void carry_out(const replica::slices::Propose& proposal);
  void carry_out(const replica::slices::BeginAgain& begin);
  void carry_out(const replica::slices::LogMessage& report);
  bool others_wait(const replica::slices::Computing& thread) const;

  const std::string path_;
  const dmt::Layout& w_;
  ReplicaServer& server_;
  Proposals& proposals_;
  ticks::Finder finder_;
  replica::Slices machine_;
  replica::ActionLoop<replica::slices::ActionList> loop_;
  std::int64_t now_ns_ = 0;
  std::vector<TickPoint> points_;  // copy of the admitted points
  std::uint32_t changes_seen_ = 0;
  bool supervised_ = false;
};

}  // namespace crane::node
