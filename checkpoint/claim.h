// SPDX-License-Identifier: Apache-2.0
#pragma once
// A container's name belongs to one supervisor at a time.  The supervisor holds the name until it
// has cleaned up, however the container ends.
//
// Threads: plain functions.

#include <string>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// Returns a descriptor that holds the name while it is open.  The claim is an abstract socket, so
// it leaves no file. kExists: another supervisor holds the name.
Result<int> claim_container(const std::string& name);
// False: another supervisor still holds the name after `timeout_ms`.
bool await_container_end(const std::string& name, int timeout_ms);
// The name of a replica's container.
std::string container_name(const std::string& group, int replica);

}  // namespace crane::checkpoint
