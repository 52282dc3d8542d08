// SPDX-License-Identifier: Apache-2.0
// The build precompiles this for files with test cases.
#pragma once

#include "dmt/base/libraries/programs.h"

#include <catch2/catch.hpp>
