// SPDX-License-Identifier: Apache-2.0
#pragma once
// The properties that must hold in every world, one class each.
//
// The world calls them with each event.  They return a complaint, or "" if the property holds.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "consensus/core/membership.h"
#include "consensus/core/step.h"

namespace crane::consensus::sim {

// A delivered entry, reduced to what must agree.
struct Delivered {
  View view{};
  std::uint32_t crc = 0;       // of type, stamp, grant, payload
  std::uint64_t proposal = 0;  // the client's number, 0 for the core's own entries
};

// AGREEMENT  The same index always has the same bytes on all replicas.  Views never decrease along
//            the log, so a newer view has every entry that an older one committed.
class AgreementChecker {
 public:
  std::string on_delivered(unsigned node, Index index, const Delivered& entry);
  std::uint64_t committed() const { return entries_.size(); }

 private:
  std::vector<Delivered> entries_;
};

// NO GAP  A replica's application sees index 1, 2, 3, ... ; entries repeat only after a restart.
//         After a restore from a checkpoint the application sees exactly the entries after it.
class NoGapChecker {
 public:
  explicit NoGapChecker(unsigned nodes) : next_(nodes, 1), floor_(nodes, 1) {}
  std::string on_delivered(unsigned node, Index index);
  void on_restart(unsigned node) { may_repeat_.insert(node); }
  // Its server is restored to its state after `index`: no entry is repeated or left out.
  void on_restored(unsigned node, Index index) {
    may_repeat_.erase(node);
    floor_[node] = value(index) + 1;
    next_[node] = std::max(next_[node], floor_[node]);
  }

 private:
  std::vector<std::uint64_t> next_;
  std::vector<std::uint64_t> floor_;
  std::set<unsigned> may_repeat_;
};

// SINGLE WRITER  Bytes land in a log only from the owner of the view that the log's owner promised.
class SingleWriterChecker {
 public:
  std::string on_landed(unsigned writer, unsigned target, View promised) const;
};

// MAJORITY  When a leader commits an entry, a majority of the voters hold it.
class MajorityChecker {
 public:
  std::string on_committed(unsigned node, Index index, unsigned holders, unsigned voters) const;
};

// OWN VIEW  An entry that no replica knew to be committed becomes committed only with an entry of
//           the leader's own view.
class OwnViewChecker {
 public:
  std::string on_committed(unsigned node, Viewstamp newest, View leading);

 private:
  Index known_{};
};

// AT MOST ONCE  No proposal is committed twice.
class AtMostOnceChecker {
 public:
  std::string on_committed(std::uint64_t proposal);

 private:
  std::vector<std::uint64_t> seen_;  // ascending
};

// UNIQUE VIEWS  Only the owner of a view requests it, and only in one process: a process that lost
//               its memory does not request the view again.  A replica that recovered under a new
//               incarnation may request it if none led in it: with a majority for the view, the
//               replica would have been admitted again in a higher one.  At most one process leads
//               in a view.
class UniqueViewChecker {
 public:
  std::string on_asked(unsigned node, std::uint32_t process, std::uint32_t incarnation, View view);
  std::string on_leads(unsigned node, std::uint32_t process, View view);

 private:
  struct Run {
    std::uint32_t process = 0;
    std::uint32_t incarnation = 0;
  };
  std::map<std::uint64_t, Run> seen_;
  std::map<std::uint64_t, std::uint32_t> led_;
};

// LIVENESS  After the last fault, proposals commit and are delivered on every connected voter.
class LivenessChecker {
 public:
  std::string at_end(unsigned node, std::uint64_t delivered, std::uint64_t committed) const;
  std::string at_end(std::uint64_t committed_after_faults) const;
};

// STABLE  After the last fault leadership settles (L1): at most `views_max` new leaders.
class StableChecker {
 public:
  std::string at_end(std::uint64_t views_after_faults, std::uint64_t views_max) const;
};

// TRUNCATION  Stores drop only entries below a checkpoint that a majority of the voters in force
//             hold (CORE-D5).
class TruncationChecker {
 public:
  void on_held(unsigned node, std::uint32_t incarnation, Index at) {
    Index& held = held_[{node, incarnation}];
    held = std::max(held, at);
  }
  // The TRUNCATION entry was delivered for the first time, under these members.
  std::string on_truncation(Index upto, const core::Members& members);
  std::string on_dropped(unsigned node, Index upto) const;

 private:
  std::map<std::pair<unsigned, std::uint32_t>, Index> held_;
  Index covered_{};
};

// ANALYSIS  An analysis replica never campaigns or leads, and no list gives it a vote (CORE-M7).
class AnalysisChecker {
 public:
  std::string on_role(unsigned node, Role role) const;
  // A CONFIG was delivered; `slot` is the analysis replica's.
  std::string on_config(unsigned slot, const core::Members& members) const;
};

// IN SIGHT  No replica leads after it got PeerDown for a majority's voters (C8).
class InSightChecker {
 public:
  // `node` has processed `event`; `role` and `members` are those afterwards.
  std::string on_step(unsigned node, const core::Event& event, Role role,
                      const core::Members& members);

 private:
  std::map<unsigned, std::set<unsigned>> gone_;  // by the events that each node got
};

// KEPT LOG  A replica whose memory survived can begin at the place from which it must keep its log,
//           or where it began before, and at each later checkpoint.  It is not refused because the
//           place is too old (CORE-C7).
class KeptLogChecker {
 public:
  explicit KeptLogChecker(unsigned nodes) : from_(nodes, Index{0}) {}
  void on_begun(unsigned node, Index at) { from_[node] = at; }
  // Entries released before, up to `given_up`, stay released.
  void on_kept(unsigned node, Index from, Index given_up) {
    from_[node] = std::max(from, from_[node].value_or(given_up));
  }
  void on_given_up(unsigned node) { from_[node].reset(); }
  std::string on_refused(unsigned node, Index checkpoint) const;

 private:
  std::vector<std::optional<Index>> from_;  // nullopt: it does not keep its log
};

// NOTICED  A group that lost committed entries reports it and stops; it does not continue without
// them.
class NoticedChecker {
 public:
  std::string at_end(bool any_failed) const;
};

}  // namespace crane::consensus::sim
