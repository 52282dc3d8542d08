// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/ground/branch_steps.h"

namespace crane::branches {
namespace {

Action on_interrupt(Slice& s, const Lengths& l, const Event& e) noexcept {
  const Next stepping = e.inside ? Next::kRun : Next::kStep;  // run until it leaves Crane
  if (s.near) return {stepping};
  if (e.count >= s.target) return {Next::kStop};
  const std::uint64_t left = s.target - e.count;
  if (left > l.margin) return {Next::kRun, left - l.margin};
  s.near = true;
  return {stepping, l.slice - l.margin};  // the next slice's interrupt, set once here
}

Action on_step(Slice& s, const Lengths& l, const Event& e) noexcept {
  if (!s.near || e.inside) return {Next::kRun};
  if (e.count < s.target) return {Next::kStep};
  if (e.may_end) {  // BRANCH-1
    s.near = false;
    return {Next::kEnd};
  }
  if (e.count - s.target < kTriedBranches) return {Next::kStep};
  s.target += l.slice / 2;
  if (e.count + l.margin >= s.target) return {Next::kStep};
  s.near = false;
  return {Next::kRun, s.target - e.count - l.margin};
}

}  // namespace

Action step(Slice& slice, const Lengths& lengths, const Event& event) noexcept {
  switch (event.what) {
    case What::kInterrupt:
      return on_interrupt(slice, lengths, event);
    case What::kStep:
      return on_step(slice, lengths, event);
  }
  return {Next::kStop};
}

}  // namespace crane::branches
