// SPDX-License-Identifier: Apache-2.0
#pragma once
// The properties that must hold in every world, one class each.
//
// Each is told what happened and answers with a complaint, or "" when all is well.

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

// What was delivered, reduced to what must agree.
struct Delivered {
  View view{};
  std::uint32_t crc = 0;       // of type, stamp, grant, payload
  std::uint64_t proposal = 0;  // the client's number, 0 for the core's own entries
};

// AGREEMENT  The same index has the same bytes on all replicas for ever; views never fall along the
//            log, so nothing committed in an older view is missing from a newer one.
class AgreementChecker {
 public:
  std::string on_delivered(unsigned node, Index index, const Delivered& entry);
  std::uint64_t committed() const { return entries_.size(); }
  const std::vector<Delivered>& entries() const { return entries_; }

 private:
  std::vector<Delivered> entries_;
};

// NO GAP  A replica's application sees index 1, 2, 3, ... ; repeats only after a restart, and sees
//         exactly what follows its checkpoint when it was brought back from one.
class NoGapChecker {
 public:
  explicit NoGapChecker(unsigned nodes) : next_(nodes, 1), floor_(nodes, 1) {}
  std::string on_delivered(unsigned node, Index index);
  void on_restart(unsigned node) { may_repeat_.insert(node); }
  // Its server is brought back to where it stood behind `index`: nothing is repeated, nothing left
  // out.
  void on_restored(unsigned node, Index index) {
    may_repeat_.erase(node);
    floor_[node] = value(index) + 1;
    next_[node] = std::max(next_[node], floor_[node]);
  }
  std::uint64_t next(unsigned node) const { return next_[node]; }

 private:
  std::vector<std::uint64_t> next_;
  std::vector<std::uint64_t> floor_;
  std::set<unsigned> may_repeat_;
};

// SINGLE WRITER  Bytes land in a log only from the owner of the view which that log's owner
//                promised.
class SingleWriterChecker {
 public:
  std::string on_landed(unsigned writer, unsigned target, View promised) const;
};

// MAJORITY  When a leader commits an entry, a majority of the voters hold it.
class MajorityChecker {
 public:
  std::string on_committed(unsigned node, Index index, unsigned holders, unsigned voters) const;
};

// OWN VIEW  What no replica knew to be committed becomes so only with an entry of the leader's own
//           view.
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

// UNIQUE VIEWS  A view is asked for by its owner only, and by one run of it: one that forgot it
//               does not ask for it again.  A replica that recovered under a new incarnation may,
//               if none led in it: had it had a majority, the view in which it was let in again
//               would be higher.  One run at most leads in a view.
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

// LIVENESS  After the last fault, what is proposed commits and reaches every voter in reach.
class LivenessChecker {
 public:
  std::string at_end(unsigned node, std::uint64_t delivered, std::uint64_t committed) const;
  std::string at_end(std::uint64_t committed_after_faults) const;
};

// STABLE  After the last fault leadership comes to rest (L1): so many new leaders at most.
class StableChecker {
 public:
  std::string at_end(std::uint64_t views_after_faults, std::uint64_t views_max) const;
};

// TRUNCATION  Stores lose entries only below a checkpoint that a majority of the voters in force
//             hold (CORE-D5).
class TruncationChecker {
 public:
  void on_held(unsigned node, std::uint32_t incarnation, Index at) {
    Index& held = held_[{node, incarnation}];
    held = std::max(held, at);
  }
  // The entry that says so was delivered for the first time, under these members.
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
  // A CONFIG that was delivered; `slot`: where the analysis replica is.
  std::string on_config(unsigned slot, const core::Members& members) const;
};

// IN SIGHT  No replica leads that was told that the processes of a majority's voters are gone (C8).
class InSightChecker {
 public:
  // `node` was given `event`; it stands as told afterwards.
  std::string on_step(unsigned node, const core::Event& event, Role role,
                      const core::Members& members);

 private:
  std::map<unsigned, std::set<unsigned>> gone_;  // as each node was told
};

// KEPT LOG  A replica whose memory survived can begin at the place from which it was told to keep
// its
//           log, or where it began, and at each checkpoint behind it: it is not refused for its age
//           (CORE-C7).
class KeptLogChecker {
 public:
  explicit KeptLogChecker(unsigned nodes) : from_(nodes, Index{0}) {}
  void on_begun(unsigned node, Index at) { from_[node] = at; }
  // What was given up before, up to here, stays so.
  void on_kept(unsigned node, Index from, Index given_up) {
    from_[node] = std::max(from, from_[node].value_or(given_up));
  }
  void on_given_up(unsigned node) { from_[node].reset(); }
  std::string on_refused(unsigned node, Index checkpoint) const;

 private:
  std::vector<std::optional<Index>> from_;  // nothing: it does not keep its log
};

// NOTICED  A group that lost what was committed says so and stops, rather than going on without.
class NoticedChecker {
 public:
  std::string at_end(bool somebody_failed) const;
};

}  // namespace crane::consensus::sim
