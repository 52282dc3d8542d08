// SPDX-License-Identifier: Apache-2.0
#pragma once
// A container's name belongs to one supervisor at a time.  The supervisor holds it until it has
// cleaned up, however the container ends.
//
// Threads: plain functions.

#include <string>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// A descriptor that holds the name as long as it is open, by a name that no file system keeps.
// kExists: another one holds it.
Result<int> claim_container(const std::string& name);
// False: another one still holds it after `timeout_ms`.
bool await_container_end(const std::string& name, int timeout_ms);
// A replica's container.
std::string container_name(const std::string& group, int replica);

}  // namespace crane::checkpoint
