// SPDX-License-Identifier: Apache-2.0
// What the build precompiles for files with test cases.
#pragma once

#include "dmt/base/libraries/programs.h"

#include <catch2/catch.hpp>
