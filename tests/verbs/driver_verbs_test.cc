// SPDX-License-Identifier: Apache-2.0
// GOAL    the driver keeps LOG-K1..K4 of consensus/consensus.h over RDMA.
// METHOD  the cases of tests/fabric/driver_test.cc, on groups whose fabric is verbs.
// CHECKS  as there.
#include "tests/fabric/node_process.h"

namespace {

const bool g_over_verbs = [] {
  crane::test::NodeGroup::usual_fabric() = crane::consensus::FabricKind::kVerbs;
  return true;
}();

}  // namespace

#include "tests/fabric/driver_test.cc"
