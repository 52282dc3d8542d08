// SPDX-License-Identifier: Apache-2.0
// GOAL    the commit strategies of eval do over RDMA what they do over every fabric.
// METHOD  the cases of tests/fabric/strategies_test.cc, whatever groups they name, on the group of
//         three devices that tests/vm makes.
// CHECKS  as there.
#include <catch2/catch.hpp>

#include "tests/verbs/verbs_group.h"

#undef TEMPLATE_TEST_CASE
#define TEMPLATE_TEST_CASE(name, tags, ...) \
  INTERNAL_CATCH_TEMPLATE_TEST_CASE(name, tags, crane::test::VerbsGroup)
#include "tests/fabric/strategies_test.cc"
