// SPDX-License-Identifier: Apache-2.0
#include "consensus/sim/checkers.h"

#include <algorithm>

namespace crane::consensus::sim {

namespace {

std::string at(unsigned node, std::uint64_t index) {
  return "replica " + std::to_string(node) + " at index " + std::to_string(index);
}

}  // namespace

std::string AgreementChecker::on_delivered(unsigned node, Index index, const Delivered& entry) {
  const std::uint64_t i = value(index);
  if (i <= entries_.size()) {
    const Delivered& known = entries_[i - 1];
    if (known.view == entry.view && known.crc == entry.crc) return "";
    return "AGREEMENT: " + at(node, i) + " has another entry, of view " +
           std::to_string(value(entry.view)) + " instead of " + std::to_string(value(known.view));
  }
  if (i > entries_.size() + 1) return "AGREEMENT: " + at(node, i) + " is ahead of all replicas";
  if (!entries_.empty() && entries_.back().view > entry.view) {
    return "AGREEMENT: " + at(node, i) + " follows an entry of a newer view";
  }
  entries_.push_back(entry);
  return "";
}

std::string NoGapChecker::on_delivered(unsigned node, Index index) {
  const std::uint64_t i = value(index);
  if (may_repeat_.erase(node) > 0) {
    if (i > next_[node]) return "NO GAP: " + at(node, i) + " skipped entries at a restart";
    floor_[node] = i;
  }
  if (i != floor_[node]) return "NO GAP: " + at(node, i) + ", not the next one";
  ++floor_[node];
  if (floor_[node] > next_[node]) next_[node] = floor_[node];
  return "";
}

std::string SingleWriterChecker::on_landed(unsigned writer, unsigned target, View promised) const {
  if (value(view_owner(promised)) == writer) return "";
  return "SINGLE WRITER: replica " + std::to_string(writer) + " wrote into the log of " +
         std::to_string(target) + ", which promised view " + std::to_string(value(promised));
}

std::string MajorityChecker::on_committed(unsigned node, Index index, unsigned holders,
                                          unsigned voters) const {
  if (holders > voters / 2) return "";
  return "MAJORITY: " + at(node, value(index)) + " committed with " + std::to_string(holders) +
         " holders of " + std::to_string(voters);
}

std::string OwnViewChecker::on_committed(unsigned node, Viewstamp newest, View leading) {
  if (newest.index <= known_) return "";
  known_ = newest.index;
  if (leading == View{0} || newest.view == leading) return "";
  return "OWN VIEW: " + at(node, value(newest.index)) + " of view " +
         std::to_string(value(newest.view)) + " committed by counting in view " +
         std::to_string(value(leading));
}

std::string AtMostOnceChecker::on_committed(std::uint64_t proposal) {
  if (proposal == 0) return "";
  if (seen_.empty() || seen_.back() < proposal) {  // as it nearly always is
    seen_.push_back(proposal);
    return "";
  }
  const auto place = std::lower_bound(seen_.begin(), seen_.end(), proposal);
  if (*place != proposal) {
    seen_.insert(place, proposal);
    return "";
  }
  return "AT MOST ONCE: proposal " + std::to_string(proposal) + " is committed twice";
}

std::string UniqueViewChecker::on_leads(unsigned node, std::uint32_t process, View view) {
  if (led_.emplace(value(view), process).first->second == process) return "";
  return "UNIQUE VIEWS: replica " + std::to_string(node) + " leads in view " +
         std::to_string(value(view)) + " again";
}

std::string UniqueViewChecker::on_asked(unsigned node, std::uint32_t process,
                                        std::uint32_t incarnation, View view) {
  Run& first = seen_.emplace(value(view), Run{process, incarnation}).first->second;
  if (first.incarnation != incarnation && led_.count(value(view)) == 0) {
    first = {process, incarnation};
  }
  if (value(view_owner(view)) == node && first.process == process) return "";
  return "UNIQUE VIEWS: view " + std::to_string(value(view)) + " of replica " +
         std::to_string(node) + " is requested again";
}

std::string LivenessChecker::at_end(unsigned node, std::uint64_t delivered,
                                    std::uint64_t committed) const {
  if (delivered >= committed) return "";
  return "LIVENESS: replica " + std::to_string(node) + " has " + std::to_string(delivered) +
         " of " + std::to_string(committed) + " entries";
}

std::string LivenessChecker::at_end(std::uint64_t committed_after_faults) const {
  return committed_after_faults > 0 ? "" : "LIVENESS: nothing was committed after the last fault";
}

std::string StableChecker::at_end(std::uint64_t views_after_faults, std::uint64_t views_max) const {
  if (views_after_faults <= views_max) return "";
  return "STABLE: " + std::to_string(views_after_faults) + " new leaders after the last fault";
}

std::string InSightChecker::on_step(unsigned node, const core::Event& event, Role role,
                                    const core::Members& members) {
  std::set<unsigned>& gone = gone_[node];
  if (std::holds_alternative<core::Start>(event)) gone.clear();
  if (const auto* up = std::get_if<core::PeerUp>(&event)) gone.erase(value(up->peer));
  // A message proves that its process is running: PeerUp may come later.
  if (const auto* message = std::get_if<core::MessageArrived>(&event))
    gone.erase(value(message->from));
  const auto* down = std::get_if<core::PeerDown>(&event);
  if (down == nullptr) return "";
  gone.insert(value(down->peer));
  const auto seen = [&](ReplicaId id) { return !gone.contains(value(id)); };
  if (role != Role::kLeader || members.quorum_of(seen)) return "";
  return "IN SIGHT: replica " + std::to_string(node) + " leads without a majority's processes";
}

std::string TruncationChecker::on_truncation(Index upto, const core::Members& members) {
  covered_ = std::max(covered_, upto);
  const bool majority = members.quorum_of([&](ReplicaId voter) {
    const auto held = held_.find({value(voter), members.incarnation(voter)});
    return held != held_.end() && held->second >= upto;
  });
  if (majority) return "";
  return "TRUNCATION: no majority of the voters holds a checkpoint at " +
         std::to_string(value(upto));
}

std::string TruncationChecker::on_dropped(unsigned node, Index upto) const {
  if (upto <= covered_) return "";
  return "TRUNCATION: " + at(node, value(upto)) + " drops an entry that is not covered";
}

std::string AnalysisChecker::on_role(unsigned node, Role role) const {
  if (role != Role::kCandidate && role != Role::kLeader) return "";
  return "ANALYSIS: replica " + std::to_string(node) + " seeks the lead";
}

std::string AnalysisChecker::on_config(unsigned slot, const core::Members& members) const {
  if (slot >= kReplicasMax) return "";
  const MemberRole role = members.role(ReplicaId{static_cast<std::uint8_t>(slot)});
  if (role != MemberRole::kVoter && role != MemberRole::kReturning) return "";
  return "ANALYSIS: replica " + std::to_string(slot) + " gets a vote";
}

std::string KeptLogChecker::on_refused(unsigned node, Index checkpoint) const {
  if (!from_[node] || checkpoint < *from_[node]) return "";
  return "KEPT LOG: " + at(node, value(checkpoint)) +
         " cannot begin, although it kept its log after " + std::to_string(value(*from_[node]));
}

std::string NoticedChecker::at_end(bool any_failed) const {
  return any_failed ? "" : "NOTICED: committed entries are lost and no replica failed";
}

}  // namespace crane::consensus::sim
