// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/trap/seccomp_check.h"

namespace crane::sandbox {
namespace {

bool is_strict = false;

// Reports a sandbox. A thread's name has at most 16 bytes.
void log_refusal(const char* what, const char* why) noexcept {
  char name[17] = {};
  raw_syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
  Message() << "the seccomp sandbox of process " << without_turn().processes[self.process].pid
            << " (" << name << ") " << what << why;
}

long leave_out(const char* why) noexcept {
  without_turn().unsupported.sandboxes.fetch_add(1, std::memory_order_relaxed);
  log_refusal("is not applied: ", why);
  return 0;
}

bool starts_processes(const filter::Filter* filters) noexcept {
  struct seccomp_data fork {};
  fork.nr = SYS_clone;
  fork.arch = AUDIT_ARCH_X86_64;
  fork.args[0] = SIGCHLD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
  return filter::evaluate(filters, fork) == SECCOMP_RET_ALLOW;
}

// The address after the system call by which libc returns from handlers: mov $15, %rax; syscall.
std::uintptr_t handler_return() noexcept {
  struct {
    std::uintptr_t handler, flags, restorer;
    std::uint64_t mask;
  } action{};
  constexpr std::uintptr_t kInstructions = 9;
  raw_syscall(SYS_rt_sigaction, SIGSEGV, nullptr, &action, sizeof action.mask);
  return action.restorer == 0 ? 0 : action.restorer + kInstructions;
}

// Returns 0, or a negative error number.
long apply(const struct sock_fprog& program, long flags) noexcept {
  const filter::Filter* kept = filter::keep(program, self.filters);
  if (kept == nullptr) return -ENOMEM;
  const LoadedText text = own_text();
  const filter::Own own{text.begin, text.begin + text.size,
                        static_cast<std::uint32_t>(raw_syscall(SYS_getpid)), starts_processes(kept),
                        handler_return()};
  const Scratch<struct sock_filter> code(program.len + filter::kOwnPartMax);
  const std::size_t size = filter::compose(program, own, code.data(), code.size());
  if (size == 0 || size > BPF_MAXINSNS) {
    filter::drop(kept);
    return leave_out("Crane's own part does not fit");
  }
  const struct sock_fprog composed = {static_cast<unsigned short>(size), code.data()};
  const long result = raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &composed);
  if (result != 0) {
    filter::drop(kept);
    return result;
  }
  if (self.filters == nullptr) log_refusal("is applied; calls of libcrane.so itself bypass it", "");
  self.filters = kept;
  return 0;
}

// The kernel checks the program itself.
long set_filter(const void* given, long flags) noexcept {
  if (given == nullptr) return -EFAULT;  // programs test for filters this way
  const auto& program = *static_cast<const sock_fprog*>(given);
  if (program.filter == nullptr) return -EFAULT;
  if (program.len == 0 || program.len > BPF_MAXINSNS) return -EINVAL;
  if (is_strict) return -EINVAL;
  return apply(program, flags);
}

// Strict mode is a filter like any other, but the kernel requires no privilege for it.
long set_strict() noexcept {
  if (self.filters != nullptr && !is_strict) return -EINVAL;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof code / sizeof code[0], code};
  raw_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long result = apply(program, 0);
  if (result == 0) is_strict = true;
  return result;
}

}  // namespace

long set_by_prctl(long mode, const void* filter) noexcept {
  if (mode == SECCOMP_MODE_STRICT) return set_strict();
  return mode == SECCOMP_MODE_FILTER ? set_filter(filter, 0) : -EINVAL;
}

long mode() noexcept { return raw_syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0); }

long by_seccomp(long operation, long flags, const void* argument) noexcept {
  switch (operation) {
    case SECCOMP_SET_MODE_STRICT:
      return flags != 0 || argument != nullptr ? -EINVAL : set_strict();
    case SECCOMP_SET_MODE_FILTER:
      // A supervisor would wait for calls that never come.
      if ((flags & static_cast<long>(SECCOMP_FILTER_FLAG_NEW_LISTENER)) != 0) return -EINVAL;
      return set_filter(argument, flags);
    default:  // queries what exists
      return raw_syscall(SYS_seccomp, operation, flags, argument);
  }
}

bool refuses(long number, const Words& arguments) noexcept {
  struct seccomp_data call {};
  call.nr = static_cast<int>(number);
  call.arch = AUDIT_ARCH_X86_64;
  call.instruction_pointer = reinterpret_cast<std::uintptr_t>(real::syscall.get());
  for (std::size_t i = 0; i < std::size(arguments.word); ++i) {
    call.args[i] = static_cast<std::uint64_t>(arguments.word[i]);
  }
  const std::uint32_t action = filter::evaluate(self.filters, call) & SECCOMP_RET_ACTION_FULL;
  return action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG;
}

// Called from libc's text, where the kernel applies only the program's filter.
long pass_to_kernel(long number, const Words& a) noexcept {
  return real::syscall(number, a.word[0], a.word[1], a.word[2], a.word[3], a.word[4], a.word[5]);
}

bool is_answered(long number, const long* a, long& answer) noexcept {
  if (!is_filtered()) return false;
  const Words words{{a[0], a[1], a[2], a[3], a[4], a[5]}};
  if (!refuses(number, words)) return false;
  const long result = pass_to_kernel(number, words);
  answer = result == -1 ? -errno : result;
  return true;
}

bool is_kill(const siginfo_t& info) noexcept {
  constexpr int kSeccomp = 1;  // SYS_SECCOMP
  return info.si_signo == SIGSYS && info.si_code == kSeccomp && info.si_errno == filter::kKillMark;
}

bool wants_namespace(long flags) noexcept {
  constexpr long kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                               CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  return (flags & kNamespaces) != 0;
}

long refuse_namespace(const char* call) noexcept {
  without_turn().unsupported.sandboxes.fetch_add(1, std::memory_order_relaxed);
  static std::atomic<bool> logged{false};
  if (!logged.exchange(true)) {
    Message() << call << ": separate namespaces are not supported (EPERM)";
  }
  return -EPERM;
}

}  // namespace crane::sandbox
