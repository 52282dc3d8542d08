// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a machine is like (machine.h), judged: what each lack costs a group, and how to mend it.
//
// Threads: pure functions.

#include "runtime/launcher/doctor/finding.h"
#include "runtime/launcher/doctor/machine.h"

namespace crane::launcher {

// What is asked for: a group of so many replicas.
struct Wanted {
  int replicas = 3;
  std::uint32_t ring_mb = 128;  // of each replica's log in memory
  bool container = true;        // else containers and checkpoints are not looked at
  bool lasts = true;            // something of it is to outlive it, else no disk is looked at
  bool runs = false;            // it has its memory and its ports already
};

Finding check_parts(const Outcome& parts);
Finding check_privileges(const Privileges& privileges);
Finding check_kernel(const Kernel& kernel);
Finding check_trap(const Kernel& kernel);
Finding check_addresses(const Kernel& kernel);
Finding check_taking(const Kernel& kernel);
Finding check_container(const Privileges& privileges, const Outcome& lxc, const Trial& trial);
Finding check_checkpoints(const Privileges& privileges, const Outcome& lxc, const Trial& trial);
Finding check_control_groups(const ControlGroups& groups, bool is_root);
Finding check_processors(int usable, const Wanted& wanted);
Finding check_memory_lock(const Limits& limits, const Devices& devices, const Wanted& wanted);
Finding check_descriptors(const Limits& limits);
Finding check_clock(const Clock& clock);
Finding check_devices(const Devices& devices);
Finding check_port(const Port& port);
// Where a group's files are.  `lasts`: with --data or --durability disk; nothing else needs it.
Finding check_directory(const Room& room, const Wanted& wanted, bool lasts);
Finding check_shared_memory(const Room& room, const Wanted& wanted);
Finding check_fsync(const DiskSpeed& speed, const Room& room);
// Copies of what `base` bytes of lasting data come to.
Finding check_copies(const Room& room, const Wanted& wanted, std::uint64_t base_bytes);

}  // namespace crane::launcher
