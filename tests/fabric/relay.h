// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries the bytes of all connections to `listen` on to `forward` and back.  Never returns; meant
// for a child process, which a test stops to cut the network without telling either side.

#include "consensus/consensus.h"

namespace crane::test {

[[noreturn]] void run_relay(const consensus::Endpoint& listen, const consensus::Endpoint& forward);

}  // namespace crane::test
