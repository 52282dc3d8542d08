// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a machine is like, as the doctor looks at it: plain values, which tests make up.  checks.h
// judges them.
//
// Threads: the functions fork, so their caller must be single-threaded.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::launcher {

struct Privileges {
  Outcome root = Done{};
  std::vector<std::string> lacks;  // capabilities that Crane uses, as "CAP_NET_ADMIN"
};

// Errors are errno of what was tried, 0: it works.
struct Kernel {
  std::string release;
  int major = 0, minor = 0;
  int trap_error = 0;       // of Syscall User Dispatch
  int addresses_error = 0;  // of personality(ADDR_NO_RANDOMIZE)
  int take_error = 0;       // of pidfd_getfd between two processes, neither the other's parent
};

struct ControlGroups {
  int version = 0;                       // 2: all; 1: some are of version 1; 0: none are mounted
  std::vector<std::string> controllers;  // of the root
  bool weighs = false;                   // one with a weight could be made and entered
};

struct Limits {
  // In bytes or descriptors; nullopt: without limit.
  std::optional<std::uint64_t> locked_bytes, descriptors;
};

struct Clock {
  bool synchronised = false;
  std::int64_t error_us = 0;  // the most that the kernel says it may be wrong
  std::string source;         // as "tsc"; empty: unknown
};

// A server in a container, and its dump; all empty: everything was tried, and works.
struct Trial {
  bool tried = false;                        // a container
  std::string container_problem;             // why none starts
  std::string criu, criu_version;            // the program; empty: there is none
  std::string criu_problem;                  // why it is none, or what it refused
  std::int64_t dump_us = 0, restore_us = 0;  // of CRIU as a whole; 0: not done
};

struct Device {
  std::string name, driver;
  std::string problem;       // why it cannot be used, or the test of the fence not be done
  unsigned rounds = 0;       // of the test
  unsigned late_writes = 0;  // that landed after the right to write was taken back
};
struct Devices {
  std::vector<Device> found;
  std::string problem;  // why crane-node could not look
};

struct Port {
  std::uint16_t number = 0;
  Outcome free = Done{};
  bool is_ours = false;  // the group that is looked at listens there
};

// The limit of a user or project that a file system sets, in bytes; 0: there is none.
struct Quota {
  std::uint64_t limit = 0, used = 0;
  const char* whose = "";
};

struct Room {
  std::string path;     // as it will be used
  std::string there;    // what of it exists
  int write_error = 0;  // errno of making a directory there
  std::string type;     // of the file system, as "ext4"
  bool in_memory = false;
  std::uint64_t free_bytes = 0;
  std::optional<std::uint64_t> free_inodes;  // nullopt: the file system has no limit
  std::vector<Quota> quotas;

  // What the free space and the quotas allow.
  std::uint64_t usable_bytes() const;
};

struct DiskSpeed {
  int writes = 0;  // that were measured
  std::int64_t median_us = 0, slowest_us = 0;
  int error = 0;
};

Privileges look_at_privileges();
Kernel look_at_kernel();
ControlGroups look_at_control_groups();
// By affinity, and by the control group of this process.
int usable_processors();
Limits look_at_limits();
Clock look_at_clock();
// The first line of a file; empty: it cannot be read.
std::string first_line(const std::string& path);

// disk.cc.  `path` need not exist: the nearest directory above counts, and nothing stays there.
Room look_at_room(const std::string& path);
// Small writes, each followed by fsync(), in `directory`; at most some seconds.
DiskSpeed measure_fsync(const std::string& directory);
// Bytes of the files below `directory`.
std::uint64_t bytes_below(const std::string& directory);

// trial.cc.  In `directory`, which exists; nothing stays there.  Each step has `limit_ms`.
Trial try_container(const std::string& directory, int limit_ms);
// The same without a container: whether there is a CRIU at all.
Trial look_for_criu();

// devices.cc.  crane-node at `node` looks and tests.
Devices look_at_devices(const std::string& node);
// Of what it prints.
Devices parse_devices(const std::string& text);

}  // namespace crane::launcher
