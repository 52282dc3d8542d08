// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the group has its analysis replica (crane-run --analysis), and what is asked of the
// leader so that it has one, or none.
//
//   wanted --the list has it--> settled --it is let go--> unwanted --the list lacks it--> settled
//
// Settled means that the group's list is the operators' from then on.
//
// Threads: plain values.
// INVARIANT PLACE-1  What is asked of the leader is what the group's list lacks, at most once per
//                    kAskAgainMs, and nothing once it is settled.

#include <cstdint>

namespace crane::supervise {

class AnalysisPlace {
 public:
  static constexpr std::int64_t kAskAgainMs = 500;

  // `exists`: the group has an analysis replica at all.
  explicit AnalysisPlace(bool exists) : exists_(exists) {}

  // The list of the group says otherwise than what is wanted.  `is_member`: it has the replica.
  bool differs(bool is_member) const noexcept {
    return exists_ && !settled_ && is_member == unwanted_;
  }
  std::int64_t due_ms() const noexcept { return request_ms_ + kAskAgainMs; }
  // The change to ask for now, "add" or "remove"; nullptr: none.
  const char* change(bool is_member, std::int64_t now_ms) noexcept {
    if (!differs(is_member) || now_ms < due_ms()) return nullptr;  // PLACE-1
    request_ms_ = now_ms;
    return unwanted_ ? "remove" : "add";
  }
  // The list, as it is now, after what was asked for.  True: the replica is to be started.
  bool listed(bool is_member, bool runs) noexcept {
    if (is_member != unwanted_) settled_ = true;
    if (!is_member || runs) return false;
    if (unwanted_ && !settled_) return false;  // its removal is on its way
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
  bool unwanted_ = false;  // none is to be there
  bool settled_ = false;   // and the group's list says so; or one is, and the list has it
  std::int64_t request_ms_ = -kAskAgainMs;
};

}  // namespace crane::supervise
