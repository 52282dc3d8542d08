// SPDX-License-Identifier: Apache-2.0
// The entry point of every Catch2 test program; one object shared by all of them.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
