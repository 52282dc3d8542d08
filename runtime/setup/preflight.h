// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checks before the first node starts, and the group's directories.
//
// A group has two directories, <dir>/<name> and /dev/shm/crane.<name>.  crane-run locks both
// exclusively.  A node without crane-run shares them with the group's other nodes of this machine,
// and locks only its r<i> in them exclusively.  The kernel releases a lock when its holder dies for
// any reason.  So the content of an unlocked directory is left over from a killed crane-run, and
// its nodes may still live.  The next crane-run continues with it (runtime/launcher/take_over.h)
// or removes it.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"
#include "runtime/setup/publish.h"

namespace crane::setup {

// The programs of Crane, found beside crane-run.
struct ProgramPaths {
  std::string node;
  std::string library;
};

Outcome find_programs(ProgramPaths& parts);

// This file is in a replica's directory while it is drained.  The replica's node makes it, and so
// does an agent after a failed attempt to bring the replica back.
inline constexpr char kDrainedMark[] = "drained";
// Files in the same directory with notes of one node process for the next (proxy/host/recovery).
inline constexpr char kLogGone[] = "log-gone";
inline constexpr char kEarlyPoints[] = "early_points";

// This file in a group's directory names the state of the machine's files that the group reads
// (checkpoint/machine_files.h).
inline constexpr char kFilesRecord[] = "files";

// The messages of the group's crane-run, in the group's directory.
inline constexpr char kGroupLog[] = "runtime.log";

// libcrane.so's log in a replica's directory; a link into the shared memory while the replica runs.
inline constexpr char kRuntimeLog[] = "runtime.log";

// Checks for root privilege and LXC if containers are wanted, and that the published ports are
// free.
Outcome check_machine(bool container, const Ports& publish);
// The single checks.  Errors: kNoRoot; kNoLxc; kPortTaken.
Outcome check_root();
Outcome check_lxc();
Outcome check_port(std::uint16_t port);

// The free bytes required in a group's directory, and for each replica in shared memory in addition
// to its log.
inline constexpr std::uint64_t kRoomForFiles = 8ULL << 20, kRoomForMemory = 64ULL << 20;
// The default size of a replica's log in memory.
inline constexpr std::uint32_t kRingMb = 128;
// Checks that the file system of `path` has `wanted` free bytes.  Errors: kDirectory, kDiskFull.
Outcome check_room(const std::string& path, std::uint64_t wanted);
// The bytes that this number of replicas needs in /dev/shm, with logs of `ring_mb` MiB.
std::uint64_t shared_memory_needed(int replicas, std::uint32_t ring_mb);
// Checks that the file system of `path` has that much free.  The files there are sparse: with less,
// a group would start but later wait for room in the middle of its work.  Errors like check_room().
Outcome check_shared_memory(const std::string& path, int replicas, std::uint32_t ring_mb);

// The default directory of groups: /run/crane for root, else below $XDG_RUNTIME_DIR.
std::string default_directory();
// The default directory of groups that outlive their processes: /var/lib/crane for root, else below
// $XDG_STATE_HOME or ~/.local/state.
std::string lasting_directory();
// Whether the content of `path` is lost when the machine loses power.
bool is_in_memory(const std::string& path);
// The group's other directory: /dev/shm/crane.<name>.  From the start of the group on, `home` in it
// is a link to <dir>/<name>.  crane-ctl finds a running group by that link.
inline constexpr char kSharedMemory[] = "/dev/shm", kSharedPrefix[] = "crane.", kHome[] = "home";
std::string shared_directory(const std::string& group);
// This file in it contains what the nodes of one host know of each other's clients.  While it
// exists, the clients of a lost group wait for the next node (proxy/clients/socket_keeper.h).
inline constexpr char kConnections[] = "connections";
// Removes that file after the group has ended, so that waiting clients are reset.  Returns false if
// there was no such file.
bool end_connections(const std::string& group);
// Whether `name` may be part of paths, of a container's name and of its host name.
bool good_group_name(const std::string& name);

struct GroupPlace {
  std::string name;
  std::string dir;  // empty: default_directory(), or lasting_directory()
  int replicas = 1;
  std::string record;               // directory for recorded outputs; empty: none
  bool lasts = false;               // the data in <dir>/<name> is kept for the next start
  bool log_lasts = false;           // and so is the log: clients of a killed group continue
  std::uint32_t ring_mb = kRingMb;  // size of each replica's log in memory; 0: no such log
};

// The group's own directory.
std::string directory_of(const GroupPlace& place);

// The largest number of places in a group.
inline constexpr int kPlacesMost = 9;
// Whether a process holds the lock of a directory.
bool is_held(const std::string& directory);

class GroupDirectories {
 public:
  GroupDirectories() = default;
  ~GroupDirectories();
  GroupDirectories(const GroupDirectories&) = delete;
  GroupDirectories& operator=(const GroupDirectories&) = delete;

  // Creates and locks both directories, with one directory for each replica in them.
  // Errors: kDirectory, kDiskFull, kGroupExists, kSharedVersion.
  Outcome create(const GroupPlace& place);
  // Locks both directories of a group after its crane-run died, keeps their content, and makes
  // what is missing.  Errors like create().
  Outcome take_over(const GroupPlace& place);
  // Like create() for the one replica of a node without crane-run.  Empties its r<replica> (except
  // node.log and checkpoints).  Removes nothing at the end, because other replicas of the group may
  // run on this machine.
  Outcome create_replica(const GroupPlace& place, int replica);
  // Creates, empties and locks exclusively host_dir(), <dir>/<name>/h<replica>: the state of
  // crane-run --hosts on a host beside its replica.  Errors like create(); also kGroupExists if the
  // replica has a node without crane-run.
  Outcome create_host(const GroupPlace& place, int replica);
  // Removes host_dir(), and of the replica after its node has ended: nothing, its shared memory,
  // everything except its logs, or everything.  The last user of the group's directories removes
  // them; another node's locked directories stay.
  enum class Removal { kNothing, kMemory, kAllButLogs, kAll };
  void remove_host(Removal removal);
  const std::string& host_dir() const { return host_dir_; }
  // Removes both directories with their content.  Of a lasting group it removes only the shared
  // memory and the files that only a running group needs.  Does nothing before create().
  void remove();
  // remove() leaves the logs and the checkpoints in <dir>/<name>.
  void keep_logs() { keep_logs_ = true; }
  bool keeps_logs() const { return keep_logs_; }
  // remove() leaves both directories, so that the group can be continued.
  void keep_all() { keep_logs_ = keep_all_ = true; }

  const std::string& dir() const { return dir_own_.empty() ? dir_ : dir_own_; }
  const std::string& shm_dir() const { return shm_own_.empty() ? shm_dir_ : shm_own_; }

 private:
  enum class Hold { kAlone, kShared };
  Outcome lock(const std::string& directory, const std::string& name, Hold hold = Hold::kAlone);

  Outcome make(const GroupPlace& place, const std::string& top);
  static void link_home(const std::string& shm, const std::string& dir);

  std::string dir_, shm_dir_;      // removed at the end
  bool lasts_ = false;             // remove() keeps the data in dir_
  std::string dir_own_, shm_own_;  // directories of create_replica() and create_host()
  std::string host_dir_;
  int host_replica_ = -1;
  std::vector<int> locks_;
  bool keep_logs_ = false, keep_all_ = false;
  std::string made_;  // the user's --dir if Crane made it; removed with the last group
};

}  // namespace crane::setup
