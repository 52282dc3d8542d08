// SPDX-License-Identifier: Apache-2.0
// GOAL    The commit strategies of eval work over RDMA as over every fabric.
// METHOD  The cases of tests/fabric/strategies_test.cc, for whatever groups they use, on the group
//         of three devices that tests/vm makes.
// CHECKS  The same as there.
#include <catch2/catch.hpp>

#include "tests/verbs/verbs_group.h"

#undef TEMPLATE_TEST_CASE
#define TEMPLATE_TEST_CASE(name, tags, ...) \
  INTERNAL_CATCH_TEMPLATE_TEST_CASE(name, tags, crane::test::VerbsGroup)
#include "tests/fabric/strategies_test.cc"
