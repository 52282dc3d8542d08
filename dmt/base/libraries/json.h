// SPDX-License-Identifier: Apache-2.0
// What the build precompiles for files that include nlohmann/json.hpp. It is apart from
// programs.h, because each file that sees these lines pays for the members' bodies.
#pragma once

#include "dmt/base/libraries/programs.h"

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
