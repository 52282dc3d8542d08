// SPDX-License-Identifier: Apache-2.0
#pragma once
// The version of Crane that every program prints with --version.  Formats have versions of their
// own: ARCHITECTURE.md, section 8.

namespace crane {

inline constexpr char kVersion[] = "Crane 0.1.0";

}  // namespace crane
