// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network interfaces that every replica claims to have, whatever the container has: `lo`, and
// `eth0`, which is up but connected to nothing. They are constants, as the processors and the
// memory.
//
// Threads: any.

#include <array>
#include <cstdint>

#include "dmt/sequence/entry.h"

namespace crane::interfaces {

using Ip4 = std::array<std::uint8_t, 4>;

// The address that every replica claims to have, from a range that no host on the Internet uses
// (TEST-NET-1).
inline constexpr Ip4 kAddress = {192, 0, 2, 1};
inline constexpr Ip4 kLoopback = {127, 0, 0, 1};

VirtualAddress address_of(const Ip4& ip) noexcept;  // port 0
bool exists(const char* name) noexcept;
// Returns the number of the interface that carries packets to the address.
int index_for(const VirtualAddress& to) noexcept;
bool is_loopback(const VirtualAddress& a) noexcept;
// Whether the address is loopback or that of eth0.
bool is_own(const VirtualAddress& a) noexcept;
bool is_multicast(const VirtualAddress& a) noexcept;
bool is_broadcast(const VirtualAddress& a) noexcept;
// Replaces the wildcard by this host's address, as Linux does for a destination.
void name_this_host(VirtualAddress& to) noexcept;
// The source address towards `to` when a socket is not bound to one; port 0.
VirtualAddress source_for(const VirtualAddress& to) noexcept;

// ioctl: the SIOCGIF... family. 0 or a negative error number; -EPERM for commands that change
// something.
bool is_command(unsigned long command) noexcept;
int control(unsigned long command, void* argument) noexcept;

}  // namespace crane::interfaces
