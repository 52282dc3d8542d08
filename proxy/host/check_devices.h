// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests the RDMA devices of this machine for the doctor of crane-run and crane-ctl, which do not
// link consensus/fabric.
//
// Threads: creates one while it tests a fence.

#include <nlohmann/json.hpp>

namespace crane::node {

// A list with one object per device: `device`, `driver`, `problem` (why it was not tested; empty if
// it was), `fence`, `rounds` (of the test), and `late_rounds` (rounds in which a write landed after
// the fence was down, consensus/fabric/verbs_fence.h).  Takes a few seconds per device.
nlohmann::json check_devices();

}  // namespace crane::node
