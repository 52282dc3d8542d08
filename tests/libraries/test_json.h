// SPDX-License-Identifier: Apache-2.0
// The build precompiles this for files with test cases that include nlohmann/json.hpp.
#pragma once

#include "dmt/base/libraries/json.h"

#include <catch2/catch.hpp>
