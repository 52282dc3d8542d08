// SPDX-License-Identifier: Apache-2.0
#pragma once
// Addresses are the same on all replicas: the container and crane-solo turn their randomisation
// off, and programs inherit that.  A file with the setuid or setgid bit does not: the kernel turns
// it on again, for whoever starts it.
//
// Threads: the first, in the constructor.

namespace crane {

// Executes this program once more where its addresses are random, by the dynamic loader, which has
// no such bit: privileges stay.  Returns when they are fixed, or cannot be, which a message says.
void fix_addresses(int count, char** arguments, char** environment) noexcept;

}  // namespace crane
