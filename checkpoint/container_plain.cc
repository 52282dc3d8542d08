// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "checkpoint/container.h"
#include "checkpoint/container_supervisor.h"
#include "dmt/base/descriptor_limit.h"
#include "dmt/base/process_stat.h"

namespace crane::checkpoint {
namespace {

constexpr int kKillRoundsMax = 1000;
constexpr int kExecFailed = 127;  // as in a shell

// The processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    const auto stat = read_process_stat(pid);
    if (stat && stat->parent == parent) found.push_back(pid);
  }
  closedir(proc);
  return found;
}

void kill_descendants(pid_t top) {
  for (const pid_t child : children_of(top)) {
    kill_descendants(child);
    ::kill(child, SIGKILL);
  }
}

}  // namespace

Outcome PlainProcessTree::prepare() {
  // The server's orphans become children of this process, so that none escapes (CONTAINER-1).
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const auto& word : options_.make_directories) {
    if (auto made = make_directories(OwnedDirectory(word).path); !made) return made;
  }
  if (!is_root()) return Done{};
  if (auto entered = enter_private_mounts(); !entered) return entered;
  // Every replica has its own copy of these directories, although all share the machine's root file
  // system.
  for (const auto& word : options_.make_directories) {
    const OwnedDirectory wanted(word);
    const std::string own = options_.directory + "/private" + wanted.path;
    if (auto made = make_directories(own); !made) return made;
    if (auto given = change_owner(wanted, own); !given) return given;
    if (auto bound = bind_mount(own, wanted.path); !bound) return bound;
  }
  for (const auto& bind : options_.binds) {
    if (auto bound = bind_mount(bind.source, bind.target); !bound) return bound;
    constexpr unsigned long kReadOnly = MS_REMOUNT | MS_BIND | MS_RDONLY;
    if (!bind.read_only) continue;
    if (mount(nullptr, bind.target.c_str(), nullptr, kReadOnly, nullptr) != 0) {
      return system_error("bind: make it read-only");
    }
  }
  // Later children are in the pid namespace: the server becomes its pid 1.
  if (unshare(CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC) != 0) return system_error("unshare");
  if (sethostname(options_.host_name.c_str(), options_.host_name.size()) != 0) {
    return system_error("set the host name");
  }
  return Done{};
}

void PlainProcessTree::run_server() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  // In a separate mount namespace: the supervisor still sees the machine's /proc.
  if (is_root() && unshare(CLONE_NEWNS) == 0) {
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  }
  set_standard_fds(options_.stdout_fd, options_.stderr_fd);
  if (options_.descriptors != 0) limit_descriptors(options_.descriptors);
  personality(ADDR_NO_RANDOMIZE);
  signal(SIGPIPE, SIG_DFL);
  umask(022);
  for (int fd = 3; fd < 32; ++fd) close(fd);
  if (chdir(options_.working_directory.c_str()) != 0) _exit(kExecFailed);
  std::vector<char*> argv, envp;
  for (auto& word : options_.command) argv.push_back(word.data());
  for (auto& variable : options_.environment) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  execve(argv[0], argv.data(), envp.data());
  _exit(kExecFailed);
}

Result<pid_t> PlainProcessTree::launch() {
  const pid_t child = fork();
  if (child == 0) run_server();
  if (child < 0) return system_error("fork");
  return child;
}

Result<pid_t> PlainProcessTree::find_first() { return direct_child_; }

Result<int> PlainProcessTree::server_status(int child_status) { return child_status; }

void PlainProcessTree::end_all() {
  if (direct_child_ > 0) ::kill(direct_child_, SIGKILL);
  if (is_root()) return;  // the first process takes the whole pid namespace with it
  // Without a pid namespace, descendants may fork during the search: repeat until a round finds
  // none (each round's orphans become this process's children).
  for (int round = 0; round < kKillRoundsMax; ++round) {
    const auto children = children_of(getpid());
    bool others = false;
    for (const pid_t child : children) {
      kill_descendants(child);
      ::kill(child, SIGKILL);
      // The direct child's status is the server's: finish() waits for that child.
      if (child != direct_child_) {
        waitpid(child, nullptr, 0);
        others = true;
      }
    }
    if (!others) break;
  }
}

// The mount points stay as empty directories: rmdir(2) would also remove the mounts of other
// namespaces there, those of another replica.
void PlainProcessTree::clean() {
  if (!is_root()) return;
  for (auto bind = options_.binds.rbegin(); bind != options_.binds.rend(); ++bind) {
    umount2(bind->target.c_str(), MNT_DETACH);
  }
  for (const auto& word : options_.make_directories) {
    umount2(OwnedDirectory(word).path.c_str(), MNT_DETACH);
  }
  remove_tree(options_.directory + "/private");
}

}  // namespace crane::checkpoint
