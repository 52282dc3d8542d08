// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process that works in a directory holds a lock on it; the kernel drops it with the process, so
// that a dead owner is told from a living one whatever became of its number.

#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

// flock(2) of the directory `path`, LOCK_EX or LOCK_SH, without waiting.  kBusy: another process
// works there.  kNotFound: it has that name no more.
Result<Descriptor> lock_directory(const std::string& path, int operation);

}  // namespace crane::checkpoint
