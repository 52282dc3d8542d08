// SPDX-License-Identifier: Apache-2.0
// Container over liblxc's C API, which is opened at run time, so that a machine without LXC can
// still run plain process trees.
#include "checkpoint/container.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <lxc/lxccontainer.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "checkpoint/base.h"
#include "checkpoint/claim.h"
#include "checkpoint/container_supervisor.h"
#include "checkpoint/machine_files.h"
#include "checkpoint/tree.h"
#include "dmt/base/descriptor_limit.h"
#include "dmt/base/read_text.h"

namespace crane::checkpoint {
namespace {

constexpr const char* kLibrary = "liblxc.so.1";
// The overlay's directories, in the container's directory or, where both must be in memory, in a
// tmpfs at kWork.
constexpr const char* kUpper = "/upper";
constexpr const char* kWork = "/work";
constexpr const char* kParts = "/parts";  // where the parts of a state are mounted

// A try fails only if another process has just made one more directory of the path.
constexpr int kNewTriesMax = 16;
// A supervisor whose node is gone gives CRIU 2 s to end, kills it and waits 5 s more, and gives the
// server 10 s.  It may also be copying files.
constexpr int kOldSupervisorMs = 30'000;
// A killed process ends at once, unless the kernel waits for a disk.
constexpr int kLeftEndsMs = 1'000;

using NewContainer = lxc_container* (*)(const char*, const char*);

NewContainer find_lxc() noexcept {
  static void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<NewContainer>(dlsym(library, "lxc_container_new"));
}

// LXC reports a death by signal as (signal << 8 | 0x7f), which in wait(2) means "stopped".
int as_wait_status(int lxc_status) noexcept {
  return (lxc_status & 0xff) == 0x7f ? (lxc_status >> 8) & 0x7f : lxc_status;
}

// A path in lxc.mount.entry is a field of fstab(5).
std::string fstab_field(const std::string& path) {
  std::string field;
  for (const char c : path) {
    if (c == ' ') {
      field += "\\040";
    } else if (c == '\t') {
      field += "\\011";
    } else if (c == '\\') {
      field += "\\134";
    } else {
      field += c;
    }
  }
  return field;
}

// libcrane.so keeps its descriptors at the end of the server's range
// (runtime/preload/attach/init.cc).  CRIU needs numbers beyond those of the process that it
// restores, and cannot always raise the limit.  So the server starts with a lower limit.
void leave_numbers_to_criu() noexcept {
  constexpr rlim_t kForCriu = 1024;
  const rlimit limit = descriptor_limit();
  limit_descriptors(
      std::min(limit.rlim_cur, limit.rlim_max - std::min(kForCriu, limit.rlim_max / 2)));
}

// xino: directories keep their inode numbers even if the layers are on two file systems.  Without
// it the numbers change at each mount, and whenever the kernel has dropped the inodes.
Outcome mount_overlay(const std::string& lower, const std::string& upper, const std::string& work,
                      const std::string& place) {
  const std::string data =
      "lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work + ",xino=on";
  if (mount("crane", place.c_str(), "overlay", 0, data.c_str()) == 0) return Done{};
  return system_error("mount the overlay");
}

}  // namespace

// Results from LXC's monitor; the supervisor reads them when the monitor has ended.
struct Container::Verdict {
  std::atomic<int> started;  // 1: the server ran; 0: LXC failed before
  std::atomic<int> status;   // the server's, as in wait(2)
};

Outcome Container::available() {
  if (!is_root()) return Error{Code::kDenied, EPERM, "containers need root privilege"};
  if (find_lxc() == nullptr) return Error{Code::kUnsupported, 0, "LXC is not installed (liblxc1)"};
  return Done{};
}

std::string Container::in_root(const std::string& path) const {
  for (const Bind& part : parts_) {
    const bool within = path.starts_with(part.target) &&
                        (path.size() == part.target.size() || path[part.target.size()] == '/');
    if (within) return part.source + path.substr(part.target.size());
  }
  return options_.directory + "/rootfs" + path;
}

std::string Container::upper_directory() const {
  const std::string nested = options_.directory + kWork + kUpper;
  return std::filesystem::exists(nested) ? nested : options_.directory + kUpper;
}

// In the order of the mounts.
std::vector<Bind> Container::all_binds() const {
  std::vector<Bind> all = parts_;
  all.insert(all.end(), options_.binds.begin(), options_.binds.end());
  return all;
}

// FILES-1.  A directory that exists in the upper directory stays as the last server left it.
Outcome Container::make_own_directories() {
  for (const std::string& own : options_.own_directories) {
    if (access((upper_directory() + own).c_str(), F_OK) == 0) continue;
    if (auto covered = cover_directory(own, upper_directory()); !covered) return covered;
  }
  return Done{};
}

// Mounts /usr, /etc and the like, from the group's state of the machine's files or from the
// machine.  Each is a separate overlay whose upper directory is part of the root's, so that the
// server's changes are one tree.  They cannot be layers of the root's overlay, because they are
// inside another layer, `/`.  They are also mounted without a state: CRIU restores exactly the
// mounts that it dumped.
Outcome Container::mount_parts(const std::string& work) {
  GroupFiles files;
  if (!options_.files_record.empty()) {
    auto held = ensure_files(options_.files_record, options_.files_generation);
    if (!held.ok()) return held.error();
    files = std::move(held).value();
  }
  for (const std::string& target : parts_of_state()) {
    const std::string lower = located(files, target);
    const std::string upper = upper_directory() + target;
    const std::string own_work = work + "." + target.substr(1);
    const std::string place = options_.directory + kParts + target;
    if (access(upper.c_str(), F_OK) != 0) {  // an existing one stays as the last server left it
      if (auto made = make_directory_as(lower, upper); !made) return made;
    }
    if (auto made = make_directories(own_work); !made) return made;
    if (auto made = make_directories(place); !made) return made;
    if (auto mounted = mount_overlay(lower, upper, own_work, place); !mounted) return mounted;
    parts_.push_back({place, target});
  }
  return Done{};
}

void Container::unmount_parts() {
  for (const Bind& part : parts_) {
    umount2(part.source.c_str(), MNT_DETACH);
    remove_tree(options_.directory + kWork + "." + part.target.substr(1));
  }
  parts_.clear();
  remove_tree(options_.directory + kParts);
}

// Mounts the overlay over the machine's root; `upper`: a directory with its initial content, or "".
Outcome Container::mount_root(const std::string& upper) {
  const std::string& dir = options_.directory;
  parts_.clear();
  for (const std::string part : {"/rootfs", kUpper, kWork}) {
    remove_tree(dir + part);
    if (auto made = make_directories(dir + part); !made) return made;
  }
  std::string work = dir + kWork;
  if (is_on_overlay(dir)) {
    // An overlay cannot be another one's upper directory (a container in a container): use memory.
    const std::string nested = dir + kWork;
    if (mount("crane", nested.c_str(), "tmpfs", 0, "mode=755") != 0) {
      return system_error("mount a tmpfs for the overlay");
    }
    work = nested + kWork;
    if (auto made = make_directories(nested + kUpper); !made) return made;
    if (auto made = make_directories(work); !made) return made;
  }
  if (!upper.empty()) {
    const std::string place = upper_directory();
    remove_tree(place);  // the copy gets the attributes of `upper`
    if (auto copied = copy_tree(upper, place); !copied) return copied;
  }
  if (auto made = make_own_directories(); !made) return made;
  const std::string root = dir + "/rootfs";
  if (auto mounted = mount_overlay("/", upper_directory(), work, root); !mounted) return mounted;
  return mount_parts(work);
}

// The kernel gave the server's last writes this machine's time instead of the schedule's.  The next
// server would see the difference, so this sets the schedule's times.
Outcome Container::move_upper(const std::string& to) {
  namespace fs = std::filesystem;
  const std::string from = upper_directory();
  std::error_code failed;
  const auto set_time = [this, &from](const fs::path& path) {
    struct stat info {};
    std::int64_t ns = 0;
    const std::string seen = in_root(path.native().substr(from.size()));
    if (lstat(seen.c_str(), &info) != 0) return;  // the server has removed it
    if (!options_.modified || !options_.modified(info.st_dev, info.st_ino, ns)) return;
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    const timespec times[2] = {time, time};
    (void)utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  };
  for (auto it = fs::recursive_directory_iterator(from, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    set_time(it->path());
  }
  set_time(from);
  if (failed) return Error{Code::kSystem, failed.value(), "look at the server's files"};
  unmount_parts();
  umount2(in_root("").c_str(), MNT_DETACH);
  if (rename(from.c_str(), to.c_str()) == 0) return Done{};
  return copy_tree(from, to);
}

// Makes the server's root, with its own /run: the server must not see the pid files and sockets of
// the machine's services.
Outcome Container::prepare_root() {
  if (auto mounted = mount_root(options_.upper); !mounted) return mounted;
  if (mount("crane", in_root("/run").c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0) {
    return system_error("mount /run");
  }
  if (auto written = name_preload(); !written) return written;
  return make_directories(in_root("/run/lock"));
}

// Programs that gain or have dropped privileges ignore LD_PRELOAD; ld.so reads this file for them.
Outcome Container::name_preload() {
  if (options_.preload.empty()) return Done{};
  const std::string path = in_root("/etc/ld.so.preload");
  if (text_of_file(path).find(options_.preload) != std::string::npos) return Done{};
  std::ofstream file(path, std::ios::app);
  file << options_.preload << '\n';
  if (!file.flush()) return system_error("write /etc/ld.so.preload of the container");
  return Done{};
}

Outcome Container::prepare_place() {
  if (auto can = available(); !can) return can;
  if (options_.directory.find_first_of(",:\\") != std::string::npos) {
    return Error{Code::kBadArgument, 0, "a replica's directory must not contain , : or backslash"};
  }
  const bool waits = options_.awaits_old_supervisor || !restore_.images.empty();
  const auto deadline = now_ms() + (waits ? kOldSupervisorMs : 0);
  auto claimed = claim_container(options_.name);
  for (; !claimed; claimed = claim_container(options_.name)) {
    if (claimed.error().code != Code::kExists || now_ms() >= deadline) return claimed.error();
    poll(nullptr, 0, 5);
  }
  claim_ = claimed.value();
  if (auto entered = enter_private_mounts(); !entered) return entered;
  if (auto made = make_directories(options_.directory); !made) return made;
  for (const auto& bind : options_.binds) {
    if (access(bind.source.c_str(), F_OK) != 0) {
      return Error{Code::kNotFound, errno, "bind: find its source"};
    }
  }
  remove_leftovers();
  null_ = open("/dev/null", O_RDWR | O_CLOEXEC);
  return Done{};
}

Outcome Container::prepare() {
  if (auto placed = prepare_place(); !placed) return placed;
  if (auto made = prepare_root(); !made) return made;
  for (const auto& word : options_.make_directories) {
    // /var/run/x is a link to /run/x: resolve it before the path is moved into the container's
    // root.
    const OwnedDirectory wanted(word);
    std::error_code unresolved;
    const auto real = std::filesystem::weakly_canonical(wanted.path, unresolved);
    const std::string place = in_root(unresolved ? wanted.path : real.string());
    if (auto made = make_directories(place); !made) return made;
    if (auto given = change_owner(wanted, place); !given) return given;
  }
  // LXC makes the directories of its locks on first use.  It fails if another process makes one
  // between its check and its mkdir, so replicas that start together try again.
  for (int i = 0; i < kNewTriesMax && lxc_ == nullptr; ++i) {
    lxc_ = find_lxc()(options_.name.c_str(), options_.directory.c_str());
  }
  if (lxc_ == nullptr) return Error{Code::kSystem, 0, "lxc_container_new"};
  if (lxc_->init_pid(lxc_) > 0) {
    return Error{Code::kExists, 0, "a container of this name runs"};
  }
  void* memory =
      mmap(nullptr, sizeof(Verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("mmap");
  verdict_ = new (memory) Verdict{};
  return Done{};
}

void Container::configure() {
  const auto set = [this](const char* key, const std::string& text) {
    return lxc_->set_config_item(lxc_, key, text.c_str());
  };
  set("lxc.log.file", options_.directory + "/lxc.log");
  set("lxc.log.level", "WARN");
  set("lxc.uts.name", options_.host_name);
  set("lxc.rootfs.path", "dir:" + options_.directory + "/rootfs");
  set("lxc.net.0.type", "empty");
  set("lxc.net.0.flags", "up");
  set("lxc.mount.auto", "proc:mixed sys:ro");
  set("lxc.mount.entry", "tmpfs dev/shm tmpfs nosuid,nodev,create=dir 0 0");
  set("lxc.console.path", "none");
  set("lxc.tty.max", "0");
  set("lxc.pty.max", "16");
  set("lxc.cap.drop", "");
  set("lxc.apparmor.profile", "unconfined");  // fails if LXC lacks AppArmor; then it is not needed
  set("lxc.init.cwd", options_.working_directory);
  for (const auto& variable : options_.environment) set("lxc.environment", variable);
  // LXC makes these mounts, because CRIU takes the list of external mounts from these entries.
  for (const auto& bind : all_binds()) {
    const bool directory = std::filesystem::is_directory(bind.source);
    set("lxc.mount.entry", fstab_field(bind.source) + " " + fstab_field(bind.target.substr(1)) +
                               " none rbind," + (bind.read_only ? "ro," : "") +
                               "create=" + (directory ? "dir" : "file") + " 0 0");
  }
}

// Runs LXC's monitor in the foreground, so that the server inherits the standard descriptors.
void Container::run_monitor() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // LXC sets the same for the server's first process
  set_standard_fds(options_.stdout_fd, options_.stderr_fd);
  personality(ADDR_NO_RANDOMIZE);
  if (options_.descriptors != 0) limit_descriptors(options_.descriptors);
  leave_numbers_to_criu();
  umask(022);
  configure();
  lxc_->want_close_all_fds(lxc_, true);
  lxc_->want_daemonize(lxc_, false);
  std::vector<char*> argv;
  for (auto& word : options_.command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const bool ran = lxc_->start(lxc_, 0, argv.data());
  verdict_->status = as_wait_status(lxc_->error_num);
  verdict_->started = ran ? 1 : 0;
  _exit(ran ? 0 : 1);
}

Result<pid_t> Container::launch() {
  const pid_t child = fork();
  if (child == 0) run_monitor();
  if (child < 0) return system_error("fork");
  return child;
}

Result<pid_t> Container::find_first() {
  const pid_t pid = lxc_->init_pid(lxc_);
  if (pid > 0) return pid;
  return Error{Code::kBusy, 0, "not started yet"};
}

Result<int> Container::server_status(int child_status) {
  if (!restore_.images.empty()) return child_status;  // no LXC is involved
  if (verdict_ == nullptr) return SIGKILL;
  if (verdict_->started.load() != 0) return verdict_->status.load();
  if (WIFSIGNALED(child_status)) return child_status;
  return Error{Code::kSystem, 0, "LXC could not start the container (see lxc.log)"};
}

void Container::end_all() {
  // The first process takes the whole pid namespace with it.
  if (first_ > 0) {
    ::kill(first_, SIGKILL);
  } else if (direct_child_ > 0) {
    ::kill(direct_child_, SIGKILL);
  }
}

// A server can outlive its supervisor if both are killed while the server changes its user.  This
// process holds the name, so no living supervisor owns the processes in the group.
static void kill_left(const std::filesystem::path& group) {
  std::ifstream processes(group / "cgroup.procs");
  for (pid_t pid = 0; processes >> pid;) {
    const int process = pid > 0 ? open_pidfd(pid) : -1;
    if (process < 0) continue;
    syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
    pollfd ended{process, POLLIN, 0};
    poll(&ended, 1, kLeftEndsMs);
    close(process);
  }
}

// Removes the container's groups, also those that LXC names NAME-1 and so on when the first name is
// in use.
static void remove_groups(const std::filesystem::path& parent, const std::string& name) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string group = entry.path().filename();
    const std::string after = group.starts_with(name) ? group.substr(name.size()) : "?";
    const bool numbered = after.size() > 1 && after[0] == '-' &&
                          after.find_first_not_of("0123456789", 1) == std::string::npos;
    if (!after.empty() && !numbered) continue;
    kill_left(entry.path());
    rmdir(entry.path().c_str());
  }
}

// Removes control groups and lock files that LXC leaves when its monitor is killed.
void Container::remove_leftovers() {
  namespace fs = std::filesystem;
  Background::remove_left();
  std::error_code ignored;
  const fs::path all = "/sys/fs/cgroup";
  std::vector<fs::path> parents{all};
  for (const auto& controller : fs::directory_iterator(all, ignored)) {
    if (!controller.is_symlink() && controller.is_directory()) parents.push_back(controller.path());
  }
  for (const fs::path& parent : parents) {
    for (const char* kind : {"lxc.payload.", "lxc.monitor."}) {
      remove_groups(parent, kind + options_.name);
    }
    rmdir((parent / "lxc.pivot").c_str());  // refused while in use
  }
  const fs::path locks = "/run/lxc/lock";
  fs::path lock = locks / options_.directory.substr(1);
  unlink((lock / ("." + options_.name)).c_str());
  for (; lock.native().size() >= std::string("/run/lxc").size(); lock = lock.parent_path()) {
    if (rmdir(lock.c_str()) != 0 && errno != ENOENT) break;
  }
}

void Container::clean() {
  if (claim_ < 0) return;  // everything belongs to another supervisor
  const std::string& dir = options_.directory;
  unmount_parts();
  umount2(in_root("").c_str(), MNT_DETACH);
  umount2((dir + kWork).c_str(), MNT_DETACH);
  remove_leftovers();
  remove_tree(dir + kWork);
  remove_tree(dir + "/rootfs");
  if (!options_.leaves_upper) remove_tree(dir + kUpper);
  // After a failure the log stays: it contains the reason.
  if (server_status(0)) unlink((dir + "/lxc.log").c_str());
}

}  // namespace crane::checkpoint
