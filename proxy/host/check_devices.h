// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looks at the RDMA devices of this machine, for the doctor of crane-run and crane-ctl, which do
// not know consensus/fabric.
//
// Threads: one of its own while a fence is tested.

#include <nlohmann/json.hpp>

namespace crane::node {

// A list with an object for each device: `device`, `driver`, `problem` (why it was not tested;
// empty: it was), `fence`, `rounds` of its test, and `late_rounds`, those in which a write landed
// after the fence was down (consensus/fabric/verbs_fence.h).  Takes some seconds for each.
nlohmann::json check_devices();

}  // namespace crane::node
