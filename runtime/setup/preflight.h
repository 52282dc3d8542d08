// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that can be found wrong before the first node starts, and the group's directories.
//
// A group has two directories, <dir>/<name> and /dev/shm/crane.<name>.  crane-run holds both alone;
// a node that runs by itself shares them with the group's other nodes of this machine and holds its
// own r<i> in them alone.  The kernel releases a lock when its holder dies however it dies: what
// lies in a directory that no process holds is left over from a killed crane-run, whose nodes may
// live; the next one goes on with it (launcher/take_over.h), or removes it.

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

// In a replica's directory while it is drained: its node makes it, an agent that brings it back in
// vain as well.
inline constexpr char kDrainedMark[] = "drained";
// There, too: what one life of its node notes for the next (proxy/host/recovery).
inline constexpr char kLogGone[] = "log-gone";
inline constexpr char kEarlyPoints[] = "early_points";

// In a group's directory: which state of the machine's files it reads (checkpoint/machine_files.h).
inline constexpr char kFilesRecord[] = "files";

// In a replica's directory: what libcrane.so wrote; a link into the shared memory while it runs.
inline constexpr char kRuntimeLog[] = "runtime.log";

// Root privilege and LXC when containers are wanted; published ports that are named.
Outcome check_machine(bool container, const Ports& publish);
// Each of these by itself.  Statuses: kNoRoot; kNoLxc; kPortTaken.
Outcome check_root();
Outcome check_lxc();
Outcome check_port(std::uint16_t port);

// What must be free in a group's directory, and for each replica in its shared memory beside its
// log, in bytes.
inline constexpr std::uint64_t kRoomForFiles = 8ULL << 20, kRoomForMemory = 64ULL << 20;
// Of a replica's log in memory, unless the user says otherwise.
inline constexpr std::uint32_t kRingMb = 128;
// Whether `wanted` bytes are free where `path` lies.  Statuses: kDirectory, kDiskFull.
Outcome check_room(const std::string& path, std::uint64_t wanted);
// What so many replicas need in /dev/shm, in bytes, with logs of so many MiB.
std::uint64_t shared_memory_needed(int replicas, std::uint32_t ring_mb);
// Whether it is free where `path` lies.  The files there are sparse: with less than this a group
// would start, and wait for room later, in the middle of its work.  Statuses as check_room().
Outcome check_shared_memory(const std::string& path, int replicas, std::uint32_t ring_mb);

// /run/crane for root, else below $XDG_RUNTIME_DIR: where groups live unless told otherwise.
std::string default_directory();
// Likewise for groups that outlive their processes: /var/lib/crane for root, else below
// $XDG_STATE_HOME or ~/.local/state.
std::string lasting_directory();
// Whether what lies there is gone with the machine's power.
bool is_in_memory(const std::string& path);
// The other one: /dev/shm/crane.<name>.  In it, from the start of the group on, `home` is a link to
// <dir>/<name>.  crane-ctl finds a running group by that link.
inline constexpr char kSharedMemory[] = "/dev/shm", kSharedPrefix[] = "crane.", kHome[] = "home";
std::string shared_directory(const std::string& group);
// In it: what the nodes of one host know of each other's clients.  As long as it is there the
// clients of a lost group wait for the next node (proxy/clients/socket_keeper.h).
inline constexpr char kConnections[] = "connections";
// The group has ended: clients that wait for it are reset.  False: there was no such file.
bool end_connections(const std::string& group);
// Part of paths, of a container's name and of its host name.
bool good_group_name(const std::string& name);

struct GroupPlace {
  std::string name;
  std::string dir;  // empty: default_directory(), or lasting_directory()
  int replicas = 1;
  std::string record;      // directory for recorded outputs; empty: none
  bool lasts = false;      // what is of value in <dir>/<name> is there again at the next start
  bool log_lasts = false;  // so is the log: clients of a group that was killed go on
  std::uint32_t ring_mb = kRingMb;  // of each replica's log in memory; 0: it has none
};

// The places that a group can have.
inline constexpr int kPlacesMost = 9;
// Whether somebody holds the lock of a directory.
bool is_held(const std::string& directory);

class GroupDirectories {
 public:
  GroupDirectories() = default;
  ~GroupDirectories();
  GroupDirectories(const GroupDirectories&) = delete;
  GroupDirectories& operator=(const GroupDirectories&) = delete;

  // Creates and locks both directories, with one for each replica in them.
  // Statuses: kDirectory, kDiskFull, kGroupExists, kSharedVersion.
  Outcome create(const GroupPlace& place);
  // Locks both as they are, of a group whose crane-run died; what is missing is made.
  // Statuses as create().
  Outcome take_over(const GroupPlace& place);
  // The same for the one replica of a node that runs by itself: its r<replica> is emptied (but for
  // node.log and checkpoints), and nothing is removed at the end, for other replicas of the group
  // may be here.
  Outcome create_replica(const GroupPlace& place, int replica);
  // What crane-run --hosts keeps on a host beside its replica: host_dir(), <dir>/<name>/h<replica>,
  // held alone and emptied.  Statuses as create(); kGroupExists also when a node runs by itself
  // there.
  Outcome create_host(const GroupPlace& place, int replica);
  // Ends that.  What goes besides host_dir(), once the replica's node has ended: nothing, its
  // shared memory, all but its logs, all.  The group's directories go with the last one who uses
  // them; what another node holds stays.
  enum class Goes { kNothing, kMemory, kAllButLogs, kAll };
  void remove_host(Goes goes);
  const std::string& host_dir() const { return host_dir_; }
  // Removes both, with all they hold, but of a group that lasts the shared memory and what only a
  // running group needs.  Nothing happens before create().
  void remove();
  // Leaves the logs and the checkpoints in <dir>/<name> at the end.
  void keep_logs() { keep_logs_ = true; }
  bool keeps_logs() const { return keep_logs_; }
  // Leaves both in place, so that the group can be gone on with.
  void keep_all() { keep_logs_ = keep_all_ = true; }

  const std::string& dir() const { return dir_own_.empty() ? dir_ : dir_own_; }
  const std::string& shm_dir() const { return shm_own_.empty() ? shm_dir_ : shm_own_; }

 private:
  enum class Hold { kAlone, kShared };
  Outcome lock(const std::string& directory, const std::string& name, Hold hold = Hold::kAlone);

  Outcome make(const GroupPlace& place, const std::string& top);
  static void link_home(const std::string& shm, const std::string& dir);

  std::string dir_, shm_dir_;      // removed at the end
  bool lasts_ = false;             // of dir_ only what a running group needs
  std::string dir_own_, shm_own_;  // of create_replica and create_host
  std::string host_dir_;
  int host_replica_ = -1;
  std::vector<int> locks_;
  bool keep_logs_ = false, keep_all_ = false;
  std::string made_;  // the user's --dir, which was not there before; removed with the last group
};

}  // namespace crane::setup
