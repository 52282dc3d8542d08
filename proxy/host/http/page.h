// SPDX-License-Identifier: Apache-2.0
#pragma once
// The page that a node shows at /: page.html of this folder, which needs no other resource.
//
// Threads: plain function.

#include <string_view>

namespace crane::node {

std::string_view page_html() noexcept;

}  // namespace crane::node
