// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process that works in a directory holds a lock on it.  The kernel drops the lock with the
// process, so a dead owner is recognised even if another process has its number.

#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

// flock(2) of the directory `path`, LOCK_EX or LOCK_SH, without waiting. kBusy: another process
// works there. kNotFound: the directory no longer has that name.
Result<Descriptor> lock_directory(const std::string& path, int operation);

}  // namespace crane::checkpoint
