// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/preflight.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "dmt/layout.h"

namespace crane::setup {
namespace {

namespace fs = std::filesystem;

// The identity of a lasting group, in its directory.
constexpr const char* kIdentity = "/group.json";

Outcome no_directory(const std::string& path, const std::string& cause) {
  return failure(Status::kDirectory, "cannot use the directory", path, cause,
                 "name another one with --dir, or correct its permissions");
}

// A full disk is no wrong directory: a service waits for room.
Outcome not_made(const std::string& path, int error) {
  if (error != ENOSPC && error != EDQUOT) return no_directory(path, strerror(error));
  return failure(Status::kDiskFull, "no room", path, strerror(error), "free space there");
}

// Refuses the segment of a killed group if another version of Crane wrote it, because that version
// may still need it (a checkpoint, an examination).  Other segments will be removed.
Outcome check_version(const std::string& segment) {
  const int fd = open(segment.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Done{};
  struct {
    std::uint64_t magic;
    std::uint32_t version;
  } start{};
  const ssize_t got = pread(fd, &start, sizeof start, 0);
  close(fd);
  static_assert(offsetof(dmt::SegmentHeader, version) == sizeof start.magic);
  if (got < static_cast<ssize_t>(sizeof start)) return Done{};
  if (start.version == 0) return Done{};  // killed while it was being created
  if (start.magic == dmt::kSegmentMagic && start.version == dmt::kLayoutVersion) return Done{};
  return failure(Status::kSharedVersion, "shared memory of another version", segment,
                 "version " + std::to_string(start.version) + " found, " +
                     std::to_string(dmt::kLayoutVersion) + " expected",
                 "remove " + fs::path(segment).parent_path().parent_path().string() +
                     " if no other Crane uses it");
}

Outcome check_versions(const GroupPlace& place, const std::string& shm) {
  for (int i = 0; i < place.replicas; ++i) {
    if (auto p = check_version(shm + "/r" + std::to_string(i) + "/segment"); !p) return p;
  }
  return Done{};
}

// Makes the replicas' directories in `top`.
Outcome make_homes(const GroupPlace& place, const std::string& top) {
  for (int i = 0; i < place.replicas; ++i) {
    std::error_code failed;
    fs::create_directories(top + "/r" + std::to_string(i), failed);
    if (failed) return not_made(top, failed.value());
  }
  return Done{};
}

// Whether a file in the directory of a lasting group outlives its processes.  of_a_replica() is the
// same for a replica's directory.
bool of_a_group(const std::string& name) {
  return name == "group.json" || name == "base" || name == "store" || name == kFilesRecord ||
         name == kGroupLog || name.rfind("restored-", 0) == 0 || name.rfind("member-", 0) == 0;
}

bool is_replica(const std::string& name) {
  return name.size() > 1 && name[0] == 'r' &&
         name.find_first_not_of("0123456789", 1) == std::string::npos;
}

bool is_note(const std::string& name) { return name == kLogGone || name == kEarlyPoints; }

bool of_a_replica(const std::string& name) {
  return is_note(name) || name == "checkpoints" || name == "left" || name == "upper" ||
         name == "position" || name == "node.log" || name.rfind("kept-", 0) == 0;
}

// Retries for a short time, because is_held() also takes the lock for a moment.
bool flock_soon(int fd, int how) {
  constexpr int kTries = 10, kPauseMs = 10;
  for (int i = 0; i < kTries; ++i) {
    if (flock(fd, how | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return false;
    poll(nullptr, 0, kPauseMs);
  }
  return false;
}

// Checks that the directory for recordings is writable; makes it if it is missing.
Outcome check_record(const std::string& record) {
  if (record.empty()) return Done{};
  std::error_code failed;
  fs::create_directories(record, failed);
  if (failed || access(record.c_str(), W_OK) != 0) {
    return failure(Status::kDirectory, "cannot record outputs in", record,
                   failed ? failed.message() : strerror(EACCES), "name another directory");
  }
  return check_room(record, kRoomForFiles);
}

}  // namespace

Outcome check_room(const std::string& path, std::uint64_t wanted) {
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) return no_directory(path, strerror(errno));
  const std::uint64_t room = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  if (room >= wanted) return Done{};
  return failure(
      Status::kDiskFull, "no room", path,
      std::to_string(room >> 20) + " MiB free, " + std::to_string(wanted >> 20) + " MiB needed",
      "free space there, or use another place");
}

std::uint64_t shared_memory_needed(int replicas, std::uint32_t ring_mb) {
  return static_cast<std::uint64_t>(replicas) *
         (kRoomForMemory + (static_cast<std::uint64_t>(ring_mb) << 20));
}

Outcome check_shared_memory(const std::string& path, int replicas, std::uint32_t ring_mb) {
  const std::uint64_t wanted = shared_memory_needed(replicas, ring_mb);
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) return no_directory(path, strerror(errno));
  const std::uint64_t room = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  if (room >= wanted) return Done{};
  const std::string each =
      replicas == 1 ? "the replica" : "each of " + std::to_string(replicas) + " replicas";
  const std::uint64_t size =
      (static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize + wanted - room) >> 20;
  return failure(
      Status::kDiskFull, "no room in shared memory", path,
      std::to_string(room >> 20) + " MiB free, " + std::to_string(wanted >> 20) +
          " MiB needed: " + each + " needs " + std::to_string(kRoomForMemory >> 20) +
          " MiB and a log of " + std::to_string(ring_mb) + " MiB",
      "mount -o remount,size=" + std::to_string(size + 1) + "M " + kSharedMemory +
          " (docker run --shm-size), or a smaller --ring-mb (16 at the least), or fewer replicas");
}

Outcome check_port(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  const int why = errno;
  close(fd);
  if (free) return Done{};
  return failure(Status::kPortTaken, "cannot listen on port", std::to_string(port), strerror(why),
                 "stop its owner, or choose another port with --publish");
}

std::string directory_of(const GroupPlace& place) {
  const std::string otherwise = place.lasts ? lasting_directory() : default_directory();
  const std::string base = place.dir.empty() ? otherwise : place.dir;
  return fs::absolute(base).lexically_normal().string() + "/" + place.name;
}

bool is_held(const std::string& directory) {
  const int fd = open((directory + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const bool held = flock(fd, LOCK_EX | LOCK_NB) != 0;
  close(fd);
  return held;
}

std::string default_directory() {
  if (geteuid() == 0) return "/run/crane";
  if (const char* runtime = getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime != '\0') {
    return std::string(runtime) + "/crane";
  }
  return "/tmp/crane-" + std::to_string(geteuid());
}

std::string shared_directory(const std::string& group) {
  return std::string(kSharedMemory) + "/" + kSharedPrefix + group;
}

bool end_connections(const std::string& group) {
  return unlink((shared_directory(group) + "/" + kConnections).c_str()) == 0;
}

std::string lasting_directory() {
  if (geteuid() == 0) return "/var/lib/crane";
  if (const char* state = getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return std::string(state) + "/crane";
  }
  if (const char* home = getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.local/state/crane";
  }
  return default_directory();
}

bool is_in_memory(const std::string& path) {
  struct statfs where {};
  return statfs(path.c_str(), &where) == 0 &&
         (where.f_type == TMPFS_MAGIC || where.f_type == RAMFS_MAGIC);
}

bool good_group_name(const std::string& name) {
  constexpr std::size_t kNameMax = 32;
  return !name.empty() && name.size() <= kNameMax && name[0] != '-' && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

Outcome find_programs(ProgramPaths& parts) {
  std::error_code failed;
  const fs::path here = fs::read_symlink("/proc/self/exe", failed).parent_path();
  const auto find = [&here](const char* name, const char* installed,
                            std::string& found) -> Outcome {
    for (const fs::path& path : {here / name, here / installed / name}) {
      if (access(path.c_str(), R_OK) == 0) {
        found = fs::weakly_canonical(path).string();
        return Done{};
      }
    }
    return failure(Status::kPartMissing, "a part of Crane is missing", (here / name).string(),
                   "it should be in the directory of crane-run",
                   "build all with make, or install all");
  };
  if (auto missing = find("crane-node", "../lib/crane", parts.node); !missing) return missing;
  return find("libcrane.so", "../lib/crane", parts.library);
}

Outcome check_root() {
  if (geteuid() == 0) return Done{};
  return failure(Status::kNoRoot, "cannot make containers", "LXC", "no root privilege",
                 "run as root, or add --no-container");
}

Outcome check_lxc() {
  void* library = dlopen("liblxc.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return failure(Status::kNoLxc, "cannot make containers", "liblxc.so.1", "LXC is not installed",
                   "install liblxc1 and liblxc-common, or add --no-container");
  }
  dlclose(library);
  return Done{};
}

Outcome check_machine(bool container, const Ports& publish) {
  if (container) {
    if (auto p = check_root(); !p) return p;
    if (auto p = check_lxc(); !p) return p;
  }
  for (const Published& port : publish) {
    if (auto taken = check_port(port.ours); !taken) return taken;
  }
  return Done{};
}

GroupDirectories::~GroupDirectories() { remove(); }

Outcome GroupDirectories::lock(const std::string& directory, const std::string& name, Hold hold) {
  // A process that removes the directory holds its lock.  If it removed the directory after this
  // function opened the lock, the loop makes it again.
  for (;;) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    if (failed) return not_made(directory, failed.value());
    const std::string path = directory + "/lock";
    const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) return not_made(directory, errno);
    if (!flock_soon(fd, hold == Hold::kAlone ? LOCK_EX : LOCK_SH)) {
      close(fd);
      return failure(Status::kGroupExists, "cannot start the group", name,
                     "a group of this name runs on this machine",
                     "stop it, or choose another name with --name");
    }
    struct stat own_file {
    }, there{};
    if (fstat(fd, &own_file) == 0 && stat(path.c_str(), &there) == 0 &&
        own_file.st_ino == there.st_ino) {
      locks_.push_back(fd);
      return Done{};
    }
    close(fd);
  }
}

// Empties one of the two directories, except for lasting data, and makes the replicas' directories
// in it.
Outcome GroupDirectories::make(const GroupPlace& place, const std::string& top) {
  chmod(top.c_str(), 0700);
  const bool lasts = place.lasts && top == dir_;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(top, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name == "lock" || (lasts && of_a_group(name))) continue;
    if (name == kConnections && place.log_lasts) continue;
    if (!lasts || !is_replica(name)) {
      fs::remove_all(entry.path(), ignored);
      continue;
    }
    for (const auto& own : fs::directory_iterator(entry.path(), ignored)) {
      if (!of_a_replica(own.path().filename().string())) fs::remove_all(own.path(), ignored);
    }
  }
  return make_homes(place, top);
}

// Errors are ignored: without the link the group can still be found by --dir.
void GroupDirectories::link_home(const std::string& shm, const std::string& dir) {
  const std::string link = shm + "/" + kHome;
  (void)unlink(link.c_str());
  (void)!symlink(dir.c_str(), link.c_str());
}

Outcome GroupDirectories::create(const GroupPlace& place) {
  lasts_ = place.lasts;
  const std::string dir = directory_of(place);
  const std::string shm = shared_directory(place.name);
  std::error_code unknown;
  const std::string parent = fs::path(dir).parent_path();
  if (!place.dir.empty() && !fs::exists(parent, unknown)) made_ = parent;
  if (auto p = lock(dir, place.name); !p) return p;
  if (std::error_code ignored; !place.lasts && fs::exists(dir + kIdentity, ignored)) {
    unlink((dir + "/lock").c_str());
    return failure(Status::kGroupExists, "cannot start the group", dir,
                   "a group that was started with --data or --durability disk keeps its data there",
                   "use the same option again, choose another --name or --dir, or remove that "
                   "directory");
  }
  dir_ = dir;
  if (auto p = check_versions(place, shm); !p) return p;
  if (auto p = lock(shm, place.name); !p) return p;
  shm_dir_ = shm;
  if (auto p = check_room(dir, kRoomForFiles); !p) return p;
  for (const auto& top : {dir, shm}) {
    if (auto p = make(place, top); !p) return p;
  }
  // After make(), which has removed the files of a killed group.
  if (auto p = check_shared_memory(shm, place.replicas, place.ring_mb); !p) return p;
  link_home(shm, dir);
  return check_record(place.record);
}

Outcome GroupDirectories::take_over(const GroupPlace& place) {
  lasts_ = place.lasts;
  const std::string dir = directory_of(place);
  const std::string shm = shared_directory(place.name);
  if (auto p = check_versions(place, shm); !p) return p;
  // Sets dir_ and shm_dir_ only after both are locked, so that remove() does not remove them
  // before.
  for (const auto& top : {dir, shm}) {
    if (auto p = lock(top, place.name); !p) return p;
  }
  for (const auto& top : {dir, shm}) {
    if (auto p = make_homes(place, top); !p) return p;
  }
  dir_ = dir;
  shm_dir_ = shm;
  link_home(shm, dir);
  return check_record(place.record);
}

Outcome GroupDirectories::create_replica(const GroupPlace& place, int replica) {
  const std::string dir = directory_of(place);
  const std::string shm = shared_directory(place.name);
  const std::string own = "/r" + std::to_string(replica);
  const std::string holder = place.name + " replica " + std::to_string(replica);
  if (auto p = check_version(shm + own + "/segment"); !p) return p;
  for (const auto& top : {dir, shm}) {
    if (auto p = lock(top, place.name, Hold::kShared); !p) return p;
    chmod(top.c_str(), 0700);
    if (auto p = lock(top + own, holder); !p) return p;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(top + own, ignored)) {
      // The replica's log continues and may need its checkpoints.  The server starts with nothing
      // else from the previous one.
      const auto name = entry.path().filename();
      const bool stays =
          name == "lock" || name == "node.log" || name == "checkpoints" || is_note(name);
      if (!stays) fs::remove_all(entry.path(), ignored);
    }
    if (top == dir) {
      if (auto p = check_room(dir, kRoomForFiles); !p) return p;
      continue;
    }
    // If the log of the previous process is still there, it already has most of its memory.
    const bool has_log = fs::exists(shm + "/consensus" + own + "/log", ignored) ||
                         fs::exists(shm + "/consensus-" + own.substr(2) + own + "/log", ignored);
    if (auto p = check_shared_memory(shm, 1, has_log ? 0 : place.ring_mb); !p) return p;
  }
  // Not dir_ and shm_dir_, which remove() removes: other replicas of the group may run here.
  dir_own_ = dir;
  shm_own_ = shm;
  link_home(shm, dir);
  return check_record(place.record);
}

Outcome GroupDirectories::create_host(const GroupPlace& place, int replica) {
  const std::string dir = directory_of(place);
  const std::string shm = shared_directory(place.name);
  const std::string home = dir + "/h" + std::to_string(replica);
  for (const auto& top : {dir, shm}) {
    if (auto p = lock(top, place.name, Hold::kShared); !p) return p;
    chmod(top.c_str(), 0700);
  }
  if (auto p = lock(home, place.name); !p) return p;
  if (is_held(dir + "/r" + std::to_string(replica))) {
    return failure(Status::kGroupExists, "cannot start the group", place.name,
                   "a node of this name and number runs without crane-run on this machine",
                   "stop it, or choose another name with --name");
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(home, ignored)) {
    if (entry.path().filename() != "lock") fs::remove_all(entry.path(), ignored);
  }
  chmod(home.c_str(), 0700);
  dir_own_ = dir;
  shm_own_ = shm;
  link_home(shm, dir);
  host_dir_ = home;
  host_replica_ = replica;
  return Done{};
}

namespace {

// Replaces the link to libcrane.so's log by a copy, because the shared memory with the log will be
// removed.
void keep_runtime_log(const std::string& replica) {
  std::error_code failed;
  const fs::path link = replica + "/" + kRuntimeLog;
  if (!fs::is_symlink(link, failed)) return;
  const fs::path log = fs::read_symlink(link, failed);
  fs::remove(link, failed);
  fs::copy_file(log, link, failed);  // fails if libcrane.so wrote no log
}

void keep_runtime_logs(const std::string& group) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(group, ignored)) {
    if (is_replica(entry.path().filename())) keep_runtime_log(entry.path());
  }
}

// In the directory of a replica or of a group: keeps the files, checkpoints and the schedules
// around a divergence; removes the server's data and the sockets.
void leave_logs(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename();
    if (entry.is_directory(ignored) && is_replica(name)) {
      leave_logs(entry.path());
    } else if (name == kFilesRecord || (!entry.is_regular_file(ignored) && name != "checkpoints" &&
                                        !name.starts_with("diverged-"))) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace

void GroupDirectories::remove_host(Removal removal) {
  if (host_dir_.empty()) return;
  std::error_code ignored;
  const std::string number = std::to_string(host_replica_);
  const std::string own = dir_own_ + "/r" + number;
  if (removal != Removal::kNothing && !is_held(own)) {
    keep_runtime_log(own);
    for (const char* part : {"/r", "/consensus-"})
      fs::remove_all(shm_own_ + part + number, ignored);
    if (removal != Removal::kMemory) fs::remove_all(dir_own_ + "/member-" + number, ignored);
    if (removal == Removal::kAllButLogs) leave_logs(own);
    if (removal == Removal::kAll) fs::remove_all(own, ignored);
  }
  fs::remove_all(host_dir_, ignored);
  // The first two locks are those of the group's directories.
  for (const std::size_t i : {0U, 1U}) {
    const std::string& top = i == 0 ? dir_own_ : shm_own_;
    const bool last = flock(locks_[i], LOCK_EX | LOCK_NB) == 0;
    const bool lasts = removal == Removal::kNothing || removal == Removal::kMemory;
    if (last && !lasts) unlink((top + "/" + kFilesRecord).c_str());
    const bool empty = std::all_of(fs::directory_iterator(top, ignored), {}, [](const auto& entry) {
      const std::string name = entry.path().filename();
      return name == "lock" || name == kHome;
    });
    if (last && empty) fs::remove_all(top, ignored);
  }
  for (const int fd : locks_) close(fd);
  locks_.clear();
  host_dir_.clear();
}

void GroupDirectories::remove() {
  std::error_code ignored;
  if (!dir_.empty() && !keep_all_) keep_runtime_logs(dir_);
  if (!shm_dir_.empty() && !keep_all_) fs::remove_all(shm_dir_, ignored);
  // Does not remove the parent: /run/crane is a mount point in the namespaces of other groups'
  // servers, and rmdir(2) would remove their mounts.
  const bool lasts = lasts_ && fs::exists(dir_ + kIdentity, ignored);  // the group has begun
  if (!keep_all_) {
    if (!dir_.empty() && !keep_logs_ && !lasts) fs::remove_all(dir_, ignored);
    if (!dir_.empty() && keep_logs_ && !lasts) leave_logs(dir_);
    if (!dir_.empty() && lasts) unlink((dir_ + "/state.json").c_str());
    if (keep_logs_ || lasts) unlink((dir_ + "/lock").c_str());
  }
  if (!made_.empty()) (void)rmdir(made_.c_str());  // fails if another group uses it
  for (const int fd : locks_) close(fd);
  locks_.clear();
  dir_.clear();
  shm_dir_.clear();
}

}  // namespace crane::setup
