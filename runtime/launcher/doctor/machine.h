// SPDX-License-Identifier: Apache-2.0
#pragma once
// Examines a machine for the doctor.  The results are plain values, which tests can make up;
// checks.h judges them.
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
  std::vector<std::string> lacks;  // missing capabilities that Crane uses, such as "CAP_NET_ADMIN"
};

// The errors are the errno of a test; 0: it works.
struct Kernel {
  std::string release;
  int major = 0, minor = 0;
  int trap_error = 0;       // Syscall User Dispatch
  int addresses_error = 0;  // personality(ADDR_NO_RANDOMIZE)
  int take_error = 0;       // pidfd_getfd between two processes, neither the other's parent
};

struct ControlGroups {
  int version = 0;                       // 2: all; 1: some have version 1; 0: none are mounted
  std::vector<std::string> controllers;  // controllers of the root group
  bool weighs = false;                   // a group with a weight could be created and entered
};

struct Limits {
  // In bytes or descriptors; nullopt: without limit.
  std::optional<std::uint64_t> locked_bytes, descriptors;
};

struct Clock {
  bool synchronised = false;
  std::int64_t error_us = 0;  // maximal error that the kernel reports
  std::string source;         // such as "tsc"; empty: unknown
};

// The trial of a container and of a dump in it.  No problems: both work.
struct Trial {
  bool tried = false;                        // a container was tried
  std::string container_problem;             // why no container starts
  std::string criu, criu_version;            // the program; empty: not found
  std::string criu_problem;                  // why CRIU is unusable, or what it refused
  std::int64_t dump_us = 0, restore_us = 0;  // time of the whole CRIU call; 0: not done
};

struct Device {
  std::string name, driver;
  std::string problem;       // why the device is unusable or its fence could not be tested
  unsigned rounds = 0;       // rounds of the test
  unsigned late_writes = 0;  // rounds with writes after the right to write was revoked
};
struct Devices {
  std::vector<Device> found;
  std::string problem;  // why crane-node could not check devices
};

struct Port {
  std::uint16_t number = 0;
  Outcome free = Done{};
  bool is_ours = false;  // the examined group listens there
};

// The limit in bytes that a file system sets for a user or a project; 0: none.
struct Quota {
  std::uint64_t limit = 0, used = 0;
  const char* whose = "";
};

struct Room {
  std::string path;     // the path that will be used
  std::string there;    // its nearest existing directory
  int write_error = 0;  // errno of creating a directory there
  std::string type;     // type of the file system, such as "ext4"
  bool in_memory = false;
  std::uint64_t free_bytes = 0;
  std::optional<std::uint64_t> free_inodes;  // nullopt: the file system has no limit
  std::vector<Quota> quotas;

  // The bytes that the free space and the quotas allow.
  std::uint64_t usable_bytes() const;
};

struct DiskSpeed {
  int writes = 0;  // number of measured writes
  std::int64_t median_us = 0, slowest_us = 0;
  int error = 0;
};

Privileges look_at_privileges();
Kernel look_at_kernel();
ControlGroups look_at_control_groups();
// The number of processors that the affinity and the control group of this process allow.
int usable_processors();
Limits look_at_limits();
Clock look_at_clock();
// The first line of a file; empty if it cannot be read.
std::string first_line(const std::string& path);

// disk.cc.  If `path` does not exist, examines the nearest directory above.  Leaves nothing there.
Room look_at_room(const std::string& path);
// Measures small writes in `directory`, each followed by fsync(); takes some seconds at most.
DiskSpeed measure_fsync(const std::string& directory);
// Bytes of the files below `directory`.
std::uint64_t bytes_below(const std::string& directory);

// trial.cc.  Tries a container and CRIU in `directory`, which must exist, and leaves nothing there.
// Each step may take `limit_ms`.
Trial try_container(const std::string& directory, int limit_ms);
// Only finds CRIU, without a container.
Trial look_for_criu();

// devices.cc.  Runs the crane-node at `node` to find and test devices.
Devices look_at_devices(const std::string& node);
// Parses the output of crane-node --check-devices.
Devices parse_devices(const std::string& text);

}  // namespace crane::launcher
