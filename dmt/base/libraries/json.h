// SPDX-License-Identifier: Apache-2.0
// The build precompiles this for files that include nlohmann/json.hpp. It is separate from
// programs.h, because each file that sees these lines pays for the members' bodies.
#pragma once

#include "dmt/base/libraries/programs.h"

// The literal ""_json is a plain function, so each file that sees it would compile json's parser
// for it: half a second. Here it is a template, and nothing uses it.
#define _json(text, size) \
  _json(text, size);      \
  template <class Text>   \
  nlohmann::json unused_literal(const Text* s, std::size_t n)
#include <nlohmann/json.hpp>
#undef _json

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
