// SPDX-License-Identifier: Apache-2.0
#pragma once
// The version that every program prints with --version.  Formats have their own versions:
// ARCHITECTURE.md, section 8.

namespace crane {

inline constexpr char kVersion[] = "Crane 0.1.0";

}  // namespace crane
