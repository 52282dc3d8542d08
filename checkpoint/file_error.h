// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors of system calls on files, with a sentence for the operator.
//
// Threads: plain function.

#include <string>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// Returns the error of errno: "cannot STEP OBJECT: REASON". kFull when a file system has no room,
// with the remedy; kNotFound, kExists and kDenied by errno; else kSystem.  `step` is static text.
Error file_error(const char* step, const std::string& object);

}  // namespace crane::checkpoint
