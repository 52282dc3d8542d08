// SPDX-License-Identifier: Apache-2.0
#pragma once
// Directories of the host that the server sees (--bind): it may connect to unix sockets in them
// (outbound.h).  They are identified by their paths in the server's file system, which are the same
// on all replicas; their content differs by host.
//
// Threads / Processes: they are added before the server starts and constant afterwards.

#include <string_view>

#include "dmt/layout.h"

namespace crane::dmt {

// Returns false if there is no room for it.
bool add_socket_directory(Layout& w, std::string_view directory) noexcept;
bool is_in_socket_directory(const Layout& w, std::string_view path) noexcept;

}  // namespace crane::dmt
