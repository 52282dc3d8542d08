// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes addresses equal on all replicas. The container and crane-solo turn randomisation off, and
// programs inherit that. For a file with the setuid or setgid bit the kernel turns it on again, for
// any user.
//
// Threads: the first, in the constructor.

namespace crane {

// If this program has random addresses, executes it again by the dynamic loader, which has no such
// bit; privileges are kept. Returns when the addresses are fixed, or when they cannot be, after a
// message.
void fix_addresses(int count, char** arguments, char** environment) noexcept;

}  // namespace crane
