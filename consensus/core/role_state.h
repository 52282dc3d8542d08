// SPDX-License-Identifier: Apache-2.0
#pragma once
// State that exists only while a replica has a role: it is created when the replica enters the
// role, destroyed when it leaves the role, and unreadable in any other role.
//
// Threads: a plain value.
// INVARIANT ROLE-1  The state of a role is neither read nor written outside of that role.

#include <optional>

#include "dmt/base/assert.h"

namespace crane::consensus::core {

template <typename T>
class RoleState {
 public:
  void enter() {
    CRANE_ASSERT(!state_.has_value());
    state_.emplace();
  }
  void leave() noexcept { state_.reset(); }
  bool entered() const noexcept { return state_.has_value(); }

  T* operator->() {
    CRANE_ASSERT(state_.has_value());  // ROLE-1
    return &*state_;
  }
  const T* operator->() const {
    CRANE_ASSERT(state_.has_value());  // ROLE-1
    return &*state_;
  }

 private:
  std::optional<T> state_;
};

}  // namespace crane::consensus::core
