// SPDX-License-Identifier: Apache-2.0
// Awaiting children, and what libc builds from fork and exec: posix_spawn, system, popen, daemon.
// libc's own versions call none of the interposed functions (rule 15), so these are ours.
#include <cstring>

#include "dmt/base/log.h"
#include "dmt/processes.h"
#include "runtime/preload/core/blocking.h"
#include "runtime/preload/core/inside.h"
#include "runtime/preload/core/raw.h"
#include "runtime/preload/core/real.h"
#include "runtime/preload/core/wrappers.h"
#include "runtime/preload/processes/exec.h"
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/signals/signals.h"

extern char** environ;

namespace crane {
namespace {

struct Told {
  int error = 0;  // 0, ECHILD or EINTR
  pid_t pid = 0;  // 0 = nothing to tell of any (WNOHANG)
  std::int32_t status = 0;
  unsigned event = 0;  // a dmt::ChildEvent
};

// The zombie's kernel half follows at once; it needs nobody's turn (D12).
void await_kernel(std::uint32_t pid) noexcept {
  while (raw_syscall(SYS_wait4, static_cast<pid_t>(pid), nullptr, 0, nullptr) == -EINTR) {
  }
}

Told await_child(Op op, pid_t which, unsigned events, int options) noexcept {
  Turn turn(op, Turn::kCancellationPoint);
  Told told;
  for (;;) {
    const dmt::WaitChoice choice = dmt::find_child(turn.w, self.process, which, events);
    if (choice.child != dmt::kNoProcess) {
      const dmt::ProcessRecord& child = turn.w.processes[choice.child];
      told = {0, static_cast<pid_t>(child.pid), choice.status, choice.event};
      if ((options & WNOWAIT) != 0) break;
      if (choice.event != dmt::kChildEnded) {
        dmt::take_stop_event(turn.w, choice.child);
        break;
      }
      await_kernel(child.pid);
      dmt::reap_process(turn.w, choice.child);
      break;
    }
    if (!choice.exists) {
      told.error = ECHILD;
      break;
    }
    if ((options & WNOHANG) != 0) {
      turn.yield();
      break;
    }
    const dmt::WakeReason why = turn.wait(dmt::child_object(self.process));
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kRestarts)) {
      told.error = EINTR;
      break;
    }
  }
  turn.result(static_cast<std::int64_t>(told.error != 0 ? -told.error : told.status));
  return told;
}

pid_t answer(const Told& told, int* status, struct rusage* usage) noexcept {
  if (told.error != 0) {
    errno = told.error;
    return -1;
  }
  if (told.pid != 0 && status != nullptr) *status = told.status;
  if (usage != nullptr) std::memset(usage, 0, sizeof *usage);
  return told.pid;
}

// si_code and si_status.
void describe_child(const Told& told, siginfo_t& info) noexcept {
  const int status = told.status;
  switch (told.event) {
    case dmt::kChildStopped:
      info.si_code = CLD_STOPPED;
      info.si_status = WSTOPSIG(status);
      return;
    case dmt::kChildContinued:
      info.si_code = CLD_CONTINUED;
      info.si_status = SIGCONT;
      return;
    default:
      info.si_code = WIFSIGNALED(status) ? CLD_KILLED : CLD_EXITED;
      info.si_status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }
}

pid_t wait_by_number(Op op, pid_t which, int* status, int options, struct rusage* r) noexcept {
  constexpr int kKnown = WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
  if ((options & ~kKnown) != 0) return fail(EINVAL);
  unsigned events = dmt::kChildEnded;
  if ((options & WUNTRACED) != 0) events |= dmt::kChildStopped;
  if ((options & WCONTINUED) != 0) events |= dmt::kChildContinued;
  return answer(await_child(op, which, events, options & WNOHANG), status, r);
}

char shell_path[] = "/bin/sh";
char shell_option[] = "-c";
char shell_name[] = "sh";

[[noreturn]] void become_shell(const char* command) noexcept {
  char* argv[] = {shell_name, shell_option, const_cast<char*>(command), nullptr};
  execute(shell_path, argv, environ);
  end_now(status_of_exit(127));
}

// --- posix_spawn's opaque objects, as glibc 2.15 and later lay them out  -------------------------

struct SpawnAction {
  enum Tag : int { kClose, kDup2, kOpen, kChdir, kFchdir, kCloseFrom, kTerminal } tag;
  union {
    struct {
      int fd;
    } close;
    struct {
      int fd, new_fd;
    } dup2;
    struct {
      int fd;
      char* path;
      int flags;
      mode_t mode;
    } open;
    struct {
      char* path;
    } chdir;
    struct {
      int fd;
    } fchdir;
    struct {
      int from;
    } close_from;
  };
};

const SpawnAction* actions_of(const posix_spawn_file_actions_t& a) noexcept {
  return reinterpret_cast<const SpawnAction*>(a.__actions);
}

// One action in the child, by the interposed functions, so that descriptors stay known.
bool perform(const SpawnAction& a) noexcept {
  OutsideCrane outside;
  switch (a.tag) {
    case SpawnAction::kClose:
      ::close(a.close.fd);
      return true;
    case SpawnAction::kDup2: {
      if (a.dup2.fd != a.dup2.new_fd) return ::dup2(a.dup2.fd, a.dup2.new_fd) >= 0;
      const long flags = raw_syscall(SYS_fcntl, a.dup2.fd, F_GETFD);
      return flags >= 0 && raw_syscall(SYS_fcntl, a.dup2.fd, F_SETFD, flags & ~FD_CLOEXEC) == 0;
    }
    case SpawnAction::kOpen: {
      const int fd = ::open(a.open.path, a.open.flags, a.open.mode);
      if (fd < 0 || fd == a.open.fd) return fd >= 0;
      const bool moved = ::dup2(fd, a.open.fd) >= 0;
      ::close(fd);
      return moved;
    }
    case SpawnAction::kChdir:
      return raw_syscall(SYS_chdir, a.chdir.path) == 0;
    case SpawnAction::kFchdir:
      return raw_syscall(SYS_fchdir, a.fchdir.fd) == 0;
    case SpawnAction::kCloseFrom: {
      constexpr int kHighest = 65536;
      for (int fd = a.close_from.from; fd < kHighest; ++fd) {
        if (raw_syscall(SYS_fcntl, fd, F_GETFD) >= 0) ::close(fd);
      }
      return true;
    }
    case SpawnAction::kTerminal:
      return true;
  }
  return false;
}

void apply_attributes(const posix_spawnattr_t& t) noexcept {
  OutsideCrane outside;
  const int flags = t.__flags;
  if ((flags & POSIX_SPAWN_SETSID) != 0) ::setsid();
  if ((flags & POSIX_SPAWN_SETPGROUP) != 0) ::setpgid(0, t.__pgrp);
  if ((flags & POSIX_SPAWN_RESETIDS) != 0) {
    raw_syscall(SYS_setresgid, -1, raw_syscall(SYS_getgid), -1);
    raw_syscall(SYS_setresuid, -1, raw_syscall(SYS_getuid), -1);
  }
  if ((flags & POSIX_SPAWN_SETSIGMASK) != 0) ::sigprocmask(SIG_SETMASK, &t.__ss, nullptr);
  if ((flags & POSIX_SPAWN_SETSIGDEF) == 0) return;
  for (int s = 1; s <= 64; ++s) {
    const bool wanted = (bits_of(t.__sd) & bit_of(s)) != 0;
    if (wanted && s != SIGKILL && s != SIGSTOP) ::signal(s, SIG_DFL);
  }
}

int spawn(pid_t* p, const char* path, const posix_spawn_file_actions_t* a,
          const posix_spawnattr_t* t, char* const* argv, char* const* env) noexcept {
  // What cannot be executed is told by the parent, as posix_spawn does; later failures exit 127.
  if (const int error = check_program(path); error != 0) return error;
  const pid_t pid = scheduled_fork();
  if (pid < 0) return errno;
  if (pid > 0) {
    if (p != nullptr) *p = pid;
    return 0;
  }
  if (t != nullptr) apply_attributes(*t);
  bool good = true;
  for (int i = 0; a != nullptr && good && i < a->__used; ++i) good = perform(actions_of(*a)[i]);
  if (good) execute(path, argv, env);
  end_now(status_of_exit(127));
}

// --- popen  --------------------------------------------------------------------------------------

struct Opened {
  bool used;
  FILE* stream;
  int fd;
  pid_t pid;
};
constexpr std::size_t kOpenedMax = 64;
Opened opened[kOpenedMax];

// stdio reads and writes the pipe by the interposed functions: libc's own would block unscheduled.
ssize_t read_cookie(void* cookie, char* buffer, size_t size) noexcept {
  return ::read(static_cast<Opened*>(cookie)->fd, buffer, size);
}
ssize_t write_cookie(void* cookie, const char* buffer, size_t size) noexcept {
  const ssize_t n = ::write(static_cast<Opened*>(cookie)->fd, buffer, size);
  return n < 0 ? 0 : n;
}
int close_cookie(void* cookie) noexcept { return ::close(static_cast<Opened*>(cookie)->fd); }

Opened* claim_opened() noexcept {
  for (Opened& o : opened) {
    if (!__atomic_exchange_n(&o.used, true, __ATOMIC_ACQ_REL)) return &o;
  }
  return nullptr;
}

// In the child: end `there` of the pipe becomes stdin or stdout, and the shell takes over.
[[noreturn]] void popen_child(int here, int there, bool reads, const char* command) noexcept {
  {
    OutsideCrane outside;
    const int wanted = reads ? STDOUT_FILENO : STDIN_FILENO;
    for (const Opened& o : opened) {
      if (o.used && o.stream != nullptr) ::close(o.fd);  // as POSIX asks
    }
    ::close(here);
    if (there != wanted) {
      ::dup2(there, wanted);
      ::close(there);
    }
  }
  become_shell(command);
}

}  // namespace

namespace wrap {

pid_t wait(int* status) {
  return answer(await_child(Op::wait, -1, dmt::kChildEnded, 0), status, nullptr);
}

pid_t waitpid(pid_t p, int* status, int options) {
  return wait_by_number(Op::waitpid, p, status, options, nullptr);
}

pid_t wait3(int* status, int options, struct rusage* r) {
  return wait_by_number(Op::wait3, -1, status, options, r);
}

pid_t wait4(pid_t p, int* status, int options, struct rusage* r) {
  return wait_by_number(Op::wait4, p, status, options, r);
}

int waitid(idtype_t t, id_t id, siginfo_t* info, int options) {
  pid_t which = -1;
  if (t == P_PID) which = static_cast<pid_t>(id);
  if (t == P_PGID) which = id == 0 ? 0 : -static_cast<pid_t>(id);
  constexpr int kKinds = WEXITED | WSTOPPED | WCONTINUED;
  constexpr int kKnown = kKinds | WNOHANG | WNOWAIT | __WNOTHREAD | __WCLONE | __WALL;
  const bool bad = (options & ~kKnown) != 0 || (options & kKinds) == 0;
  if (bad || (t != P_PID && t != P_PGID && t != P_ALL)) return fail(EINVAL);
  unsigned events = 0;
  if ((options & WEXITED) != 0) events |= dmt::kChildEnded;
  if ((options & WSTOPPED) != 0) events |= dmt::kChildStopped;
  if ((options & WCONTINUED) != 0) events |= dmt::kChildContinued;
  const Told told = await_child(Op::waitid, which, events, options);
  if (told.error != 0) return fail(told.error);
  if (info == nullptr) return 0;
  std::memset(info, 0, sizeof *info);
  if (told.pid == 0) return 0;
  info->si_signo = SIGCHLD;
  info->si_pid = told.pid;
  describe_child(told, *info);
  return 0;
}

// --- groups  -------------------------------------------------------------------------------------

int setpgid(pid_t p, pid_t g) {
  Turn turn(Op::setpgid);
  const int result = real::setpgid(p, g);
  if (result == 0) {
    const std::uint16_t process =
        p == 0 ? self.process : dmt::find_process(turn.w, static_cast<std::uint32_t>(p));
    if (process != dmt::kNoProcess) {
      dmt::ProcessRecord& record = turn.w.processes[process];
      record.group = g == 0 ? record.pid : static_cast<std::uint32_t>(g);
    }
  }
  turn.result(result);
  return result;
}

int setpgrp() { return wrap::setpgid(0, 0); }

pid_t setsid() {
  Turn turn(Op::setsid);
  const pid_t result = real::setsid();
  if (result >= 0) {
    dmt::ProcessRecord& record = turn.w.processes[self.process];
    record.group = record.session = static_cast<std::uint32_t>(result);
  }
  turn.result(static_cast<std::int64_t>(result < 0 ? -1 : 0));
  return result;
}

// --- composed  -----------------------------------------------------------------------------------

int posix_spawn(pid_t* p, const char* path, const posix_spawn_file_actions_t* a,
                const posix_spawnattr_t* t, char* const* argv, char* const* env) {
  const int saved = errno;
  const int error = spawn(p, path, a, t, argv, env);
  errno = saved;
  return error;
}

int posix_spawnp(pid_t* p, const char* path, const posix_spawn_file_actions_t* a,
                 const posix_spawnattr_t* t, char* const* argv, char* const* env) {
  char found[kProgramPathMax];
  if (const int error = find_program(path, found); error != 0) return error;
  return wrap::posix_spawn(p, found, a, t, argv, env);
}

int system(const char* command) {
  if (command == nullptr) return 1;
  const sigset_t child = set_of(bit_of(SIGCHLD));
  sigset_t mask;
  struct sigaction ignore {};
  struct sigaction old_int {};
  struct sigaction old_quit {};
  ignore.sa_handler = SIG_IGN;
  wrap::sigaction(SIGINT, &ignore, &old_int);
  wrap::sigaction(SIGQUIT, &ignore, &old_quit);
  wrap::sigprocmask(SIG_BLOCK, &child, &mask);
  int status = -1;
  const pid_t pid = scheduled_fork();
  if (pid == 0) {
    wrap::sigaction(SIGINT, &old_int, nullptr);
    wrap::sigaction(SIGQUIT, &old_quit, nullptr);
    wrap::sigprocmask(SIG_SETMASK, &mask, nullptr);
    become_shell(command);
  }
  if (pid > 0) {
    while (wrap::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  wrap::sigaction(SIGINT, &old_int, nullptr);
  wrap::sigaction(SIGQUIT, &old_quit, nullptr);
  wrap::sigprocmask(SIG_SETMASK, &mask, nullptr);
  return status;
}

FILE* popen(const char* command, const char* mode) {
  const bool reads = mode[0] == 'r';
  if (!reads && mode[0] != 'w') {
    errno = EINVAL;
    return nullptr;
  }
  Opened* o = claim_opened();
  if (o == nullptr) {
    errno = EMFILE;
    return nullptr;
  }
  o->stream = nullptr;
  int ends[2];
  {
    OutsideCrane outside;
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      o->used = false;
      return nullptr;
    }
  }
  const int here = reads ? ends[0] : ends[1];
  const int there = reads ? ends[1] : ends[0];
  o->pid = scheduled_fork();
  if (o->pid == 0) popen_child(here, there, reads, command);
  o->fd = here;
  {
    OutsideCrane outside;
    ::close(there);
    const cookie_io_functions_t calls = {read_cookie, write_cookie, nullptr, close_cookie};
    if (o->pid > 0) o->stream = real::fopencookie(o, reads ? "r" : "w", calls);
    if (o->stream == nullptr) ::close(here);
  }
  if (o->stream == nullptr) o->used = false;
  return o->stream;
}

int pclose(FILE* stream) {
  for (Opened& o : opened) {
    if (!o.used || o.stream != stream) continue;
    {
      OutsideCrane outside;
      ::fclose(stream);
    }
    int status = -1;
    while (wrap::waitpid(o.pid, &status, 0) < 0 && errno == EINTR) {
    }
    o.stream = nullptr;
    o.used = false;
    return status;
  }
  return fail(EINVAL);
}

int daemon(int nochdir, int noclose) {
  const pid_t pid = scheduled_fork();
  if (pid < 0) return -1;
  if (pid > 0) end_now(status_of_exit(0));
  wrap::setsid();
  if (nochdir == 0) raw_syscall(SYS_chdir, "/");
  if (noclose != 0) return 0;
  OutsideCrane outside;
  const int fd = ::open("/dev/null", O_RDWR);
  if (fd < 0) return -1;
  for (int i = 0; i < 3; ++i) ::dup2(fd, i);
  if (fd > 2) ::close(fd);
  return 0;
}

}  // namespace wrap
}  // namespace crane
