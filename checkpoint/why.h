// SPDX-License-Identifier: Apache-2.0
#pragma once
// What failed, in a sentence for the operator: what, which object, why, what to do.  Error's own
// `what` is static and names only the step; this carries the rest.
//
// Threads: plain value, one thread.

#include <string>

#include "dmt/base/result.h"

namespace crane::checkpoint {

struct Why {
  std::string text;

  // Sets the text; returns the Error to hand on.  `step` is static.
  Error is(Code code, const char* step, std::string sentence);
  // From errno: "cannot STEP OBJECT: REASON".  kFull when a file system has no room, with what to
  // do; kNotFound, kExists and kDenied where errno says so; else kSystem.
  Error system(const char* step, const std::string& object);
};

}  // namespace crane::checkpoint
