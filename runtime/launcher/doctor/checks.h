// SPDX-License-Identifier: Apache-2.0
#pragma once
// Judges the properties of a machine (machine.h): what each limit costs a group, and how to fix it.
//
// Threads: pure functions.

#include "runtime/launcher/doctor/finding.h"
#include "runtime/launcher/doctor/machine.h"

namespace crane::launcher {

// The group that the machine is checked for.
struct Wanted {
  int replicas = 3;
  std::uint32_t ring_mb = 128;  // size of each replica's log in memory
  bool container = true;        // false: do not check containers and checkpoints
  bool lasts = true;            // the group keeps data; false: do not check disks
  bool runs = false;            // the group has its memory and ports already
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
// The directory of a group's files.  `lasts`: that of --data and --durability disk.
Finding check_directory(const Room& room, const Wanted& wanted, bool lasts);
Finding check_shared_memory(const Room& room, const Wanted& wanted);
Finding check_fsync(const DiskSpeed& speed, const Room& room);
// The room for each replica's copy of `base_bytes` of lasting data.
Finding check_copies(const Room& room, const Wanted& wanted, std::uint64_t base_bytes);

}  // namespace crane::launcher
