// SPDX-License-Identifier: Apache-2.0
// The build precompiles this for files that include nlohmann/json.hpp. It is separate from
// programs.h, because each file that sees these lines pays for the members' bodies.
#pragma once

#include "dmt/base/libraries/programs.h"

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
