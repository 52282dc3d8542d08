// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants that the writer and the reader of packs (pack.h) share.

namespace crane::checkpoint {

inline constexpr char kPackMagic[] = "CRNPACK1";
inline constexpr char kPackEnding[] = ".pack";

}  // namespace crane::checkpoint
