// SPDX-License-Identifier: Apache-2.0
#pragma once
// State that exists only while a replica has a role: it is made when the role is entered, is gone
// when the role is left, and cannot be read in another one.
//
// Threads: a plain value.
// INVARIANT ROLE-1  Nothing of a role is read or written outside of it.

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
