// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/processes/sandbox.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>

#include <atomic>
#include <cerrno>

#include "dmt/base/log.h"
#include "runtime/preload/core/raw.h"
#include "runtime/preload/threads/thread.h"

namespace crane::sandbox {
namespace {

// What the process was told; children of fork inherit it, as natively.
std::atomic<long> told{SECCOMP_MODE_DISABLED};

// In libc's text or ours the kernel lets it through unseen; the name has at most 16 bytes.
void say() noexcept {
  char name[17] = {};
  raw_syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
  Message() << "the seccomp sandbox of process " << world->processes[self.process].pid << " ("
            << name << ") is not applied: it would end the process at Crane's own calls";
}

long accept(long mode) noexcept {
  if (told.exchange(mode) == SECCOMP_MODE_DISABLED) {
    world->unsupported.sandboxes.fetch_add(1, std::memory_order_relaxed);
    say();
  }
  return 0;
}

bool may_filter() noexcept {
  return raw_syscall(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
         raw_syscall(SYS_geteuid) == 0;
}

long set_filter(const void* given) noexcept {
  if (!may_filter()) return -EACCES;
  if (given == nullptr) return -EFAULT;  // programs ask so whether there are filters
  const auto& program = *static_cast<const sock_fprog*>(given);
  if (program.filter == nullptr) return -EFAULT;
  if (program.len == 0 || program.len > BPF_MAXINSNS) return -EINVAL;
  if (told.load() == SECCOMP_MODE_STRICT) return -EINVAL;
  return accept(SECCOMP_MODE_FILTER);
}

long set_strict() noexcept {
  return told.load() == SECCOMP_MODE_FILTER ? -EINVAL : accept(SECCOMP_MODE_STRICT);
}

}  // namespace

long set_by_prctl(long mode, const void* filter) noexcept {
  if (mode == SECCOMP_MODE_STRICT) return set_strict();
  return mode == SECCOMP_MODE_FILTER ? set_filter(filter) : -EINVAL;
}

long mode() noexcept { return told.load(); }

long by_seccomp(long operation, long flags, const void* argument) noexcept {
  switch (operation) {
    case SECCOMP_SET_MODE_STRICT:
      return flags != 0 || argument != nullptr ? -EINVAL : set_strict();
    case SECCOMP_SET_MODE_FILTER:
      // A supervisor would wait for calls that never come.
      if ((flags & static_cast<long>(SECCOMP_FILTER_FLAG_NEW_LISTENER)) != 0) return -EINVAL;
      return set_filter(argument);
    default:  // what there is: asked only
      return raw_syscall(SYS_seccomp, operation, flags, argument);
  }
}

bool wants_namespace(long flags) noexcept {
  constexpr long kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                               CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  return (flags & kNamespaces) != 0;
}

long refuse_namespace(const char* call) noexcept {
  world->unsupported.sandboxes.fetch_add(1, std::memory_order_relaxed);
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    Message() << call << ": namespaces of the server's own are not supported (EPERM)";
  }
  return -EPERM;
}

}  // namespace crane::sandbox
