// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classifies system calls by number, for syscall(2) and for calls that bypass libc
// (system_call_trap.h). The table is system_calls.def.
//
// Threads: any with a slot, inside Crane, without the turn.
// INVARIANT MACHINE-1  No call of a server changes the machine itself: its names, clock, boot,
//     modules, swap, accounting, quotas, ports, console, kernel keys, mounts, namespaces, kernel
//     programs and counters, files below /proc/sys and /sys, the network's links, addresses and
//     routes.

namespace crane {

enum class CallKind : unsigned char { kUnknown, kOperation, kRefused, kBounded, kPassed };

struct SystemCall {
  const char* name = nullptr;  // null: not in the table
  CallKind kind = CallKind::kUnknown;
  // For kOperation and some of kBounded. Takes the arguments as the kernel gets them; a result in
  // [-4095, -1] is -errno.
  long (*operation)(const long* arguments) = nullptr;
};

// Looks a call up by its number.
using SystemCallTable = const SystemCall& (*)(long number);

}  // namespace crane
