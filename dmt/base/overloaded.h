// SPDX-License-Identifier: Apache-2.0
#pragma once
// One visitor of several lambdas, for std::visit.

namespace crane {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace crane
