// SPDX-License-Identifier: Apache-2.0
#pragma once
// Directories of the host that the server sees (--bind): it may connect to unix sockets there
// (outbound.h).  They are known by their paths in the server's file system, the same on all
// replicas; what lies in them is each host's own.
//
// Threads / Processes: they are added before the server begins, and constant from there on.

#include <string_view>

#include "dmt/layout.h"

namespace crane::dmt {

// False: there is no room for it.
bool add_socket_directory(Layout& w, std::string_view directory) noexcept;
bool is_in_socket_directory(const Layout& w, std::string_view path) noexcept;

}  // namespace crane::dmt
