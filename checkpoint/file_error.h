// SPDX-License-Identifier: Apache-2.0
#pragma once
// The error of a system call on a file, with a sentence for the operator.
//
// Threads: plain function.

#include <string>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// From errno: "cannot STEP OBJECT: REASON".  kFull when a file system has no room, with what to
// do; kNotFound, kExists and kDenied where errno says so; else kSystem.  `step` is static.
Error file_error(const char* step, const std::string& object);

}  // namespace crane::checkpoint
