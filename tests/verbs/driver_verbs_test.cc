// SPDX-License-Identifier: Apache-2.0
// GOAL    The driver keeps LOG-K1..K4 of consensus/consensus.h over RDMA.
// METHOD  The cases of tests/fabric/driver_test.cc, on groups with the verbs fabric.
// CHECKS  The same as there.
#include "tests/fabric/node_process.h"

namespace {

const bool g_over_verbs = [] {
  crane::test::NodeGroup::usual_fabric() = crane::consensus::FabricKind::kVerbs;
  return true;
}();

}  // namespace

#include "tests/fabric/driver_test.cc"
