// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine that every replica claims to be.

namespace crane {

inline constexpr int kProcessors = 2;

}  // namespace crane
