// SPDX-License-Identifier: Apache-2.0
#pragma once
// Addresses as servers see them, and the names of entries.
//
// Threads: pure functions.

#include <sys/socket.h>

#include <string>

#include "dmt/base/place.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/replica/clients/bodies.h"
#include "proxy/replica/clients/client_socket.h"

namespace crane::proxy {

// An IPv4 or IPv6 address; a v4-mapped IPv6 address becomes IPv4, any other family 0.0.0.0:0.
VirtualAddress virtual_address(const sockaddr* address, socklen_t size) noexcept;

// "192.0.2.1:1234" or "[2001:db8::1]:1234".
std::string text(const VirtualAddress& address);

// For kListen and similar records.  The server's own address, which Crane invents, stands for all
// addresses of the host.
ListenPlace listen_place(Pieces pieces) noexcept;  // zeros: no place follows the header
Place place_of(const ListenPlace& place);
Place place_of(const OutputHeader& header, Pieces pieces);

const char* name(EntryType type) noexcept;

}  // namespace crane::proxy
