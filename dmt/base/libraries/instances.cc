// SPDX-License-Identifier: Apache-2.0
// Templates of libraries that all programs share, compiled once.
#include "dmt/base/libraries/json.h"

template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                            fmt::format_args, fmt::detail::locale_ref);
template class nlohmann::basic_json<>;
template class nlohmann::detail::serializer<nlohmann::json>;
