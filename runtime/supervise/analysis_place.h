// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides whether the group shall have its analysis replica (crane-run --analysis), and which
// change of the group's list to request from the leader.
//
//   wanted --the list has it--> settled --release()--> unwanted --the list lacks it--> settled
//
// In the state settled only operators change the group's list.
//
// Threads: plain values.
// INVARIANT PLACE-1  A request to the leader is the missing change of the group's list, at most
// once
//                    per kAskAgainMs, and never in the state settled.

#include <cstdint>

namespace crane::supervise {

class AnalysisPlace {
 public:
  static constexpr std::int64_t kAskAgainMs = 500;

  // `exists`: the group was started with an analysis replica.
  explicit AnalysisPlace(bool exists) : exists_(exists) {}

  // Whether the group's list differs from the wanted state.  `is_member`: the list has the replica.
  bool differs(bool is_member) const noexcept {
    return exists_ && !settled_ && is_member == unwanted_;
  }
  std::int64_t due_ms() const noexcept { return request_ms_ + kAskAgainMs; }
  // The change to request now, "add" or "remove"; nullptr: none.
  const char* change(bool is_member, std::int64_t now_ms) noexcept {
    if (!differs(is_member) || now_ms < due_ms()) return nullptr;  // PLACE-1
    request_ms_ = now_ms;
    return unwanted_ ? "remove" : "add";
  }
  // Reports the current list.  Returns true if the replica must be started.
  bool listed(bool is_member, bool runs) noexcept {
    if (is_member != unwanted_) settled_ = true;
    if (!is_member || runs) return false;
    if (unwanted_ && !settled_) return false;  // its removal was requested
    unwanted_ = false;
    settled_ = true;
    return true;
  }
  void release() noexcept {
    unwanted_ = true;
    settled_ = false;
  }

 private:
  bool exists_;
  bool unwanted_ = false;  // the group shall have no analysis replica
  bool settled_ = false;   // the group's list has had the wanted state
  std::int64_t request_ms_ = -kAskAgainMs;
};

}  // namespace crane::supervise
