// SPDX-License-Identifier: Apache-2.0
// GOAL    The numbered guarantees of consensus/fabric/fabric.h hold over RDMA.
// METHOD  The conformance suite itself, for whatever groups it uses, on the group of three devices
//         that tests/vm makes, with both fences that are safe on them.
// CHECKS  The same as in tests/fabric/conformance_test.cc and conformance_planes_test.cc.
#include <catch2/catch.hpp>

#include "tests/verbs/verbs_group.h"

#undef TEMPLATE_TEST_CASE
#define TEMPLATE_TEST_CASE(name, tags, ...) \
  INTERNAL_CATCH_TEMPLATE_TEST_CASE(name, tags, VerbsGroup, VerbsResetGroup)
#include "tests/fabric/conformance_planes_test.cc"
#include "tests/fabric/conformance_test.cc"
