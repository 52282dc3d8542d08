// SPDX-License-Identifier: Apache-2.0
// Waits for children, and the calls that libc builds from fork and exec: posix_spawn, system,
// popen, daemon. libc's own versions do not call the interposed functions (rule 15), so Crane
// replaces them.
#include <climits>
#include <cstring>

#include "dmt/base/bound.h"
#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/processes/exec.h"
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/processes/pidfd.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/terminals/terminal.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/vtime.h"

extern char** environ;

namespace crane {
namespace {

struct WaitResult {
  int error = 0;  // 0, ECHILD or EINTR
  pid_t pid = 0;  // 0 = no child has changed (WNOHANG)
  std::int32_t status = 0;
  unsigned event = 0;       // a dmt::ChildEvent
  std::int64_t cpu_ns = 0;  // used by the child and by those that it waited for
};

// Reaps the kernel's zombie, which ends soon and needs no turn for it (D12).
void await_kernel(std::uint32_t pid) noexcept {
  for (;;) {
    const long result = raw_syscall(SYS_wait4, static_cast<pid_t>(pid), nullptr, 0, nullptr);
    if (result != -EINTR && result != -ECHILD) return;
    // An orphan becomes our child only when its parent has ended in the kernel.
    if (result == -ECHILD && raw_syscall(SYS_kill, pid, 0) == -ESRCH) return;
    if (result == -ECHILD) raw_syscall(SYS_sched_yield);
  }
}

WaitResult await_child(Op op, pid_t which, unsigned events, int options) noexcept {
  Turn turn(op, Turn::kCancellationPoint);
  WaitResult result;
  for (;;) {
    const dmt::WaitChoice choice = dmt::find_child(turn.w, self.process, which, events);
    if (choice.child != dmt::kNoProcess) {
      const dmt::ProcessRecord& child = turn.w.processes[choice.child];
      result = {0, static_cast<pid_t>(child.pid), choice.status, choice.event,
                child.cpu_ns + child.children_cpu_ns};
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
      result.error = ECHILD;
      break;
    }
    if ((options & WNOHANG) != 0) {
      turn.yield();
      break;
    }
    const dmt::WakeReason why = turn.wait(dmt::child_object(self.process));
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kRestarts)) {
      result.error = EINTR;
      break;
    }
  }
  turn.result(static_cast<std::int64_t>(result.error != 0 ? -result.error : result.status));
  return result;
}

pid_t answer(const WaitResult& result, int* status, struct rusage* usage) noexcept {
  if (result.error != 0) {
    errno = result.error;
    return -1;
  }
  if (result.pid != 0 && status != nullptr) *status = result.status;
  if (usage != nullptr) {
    std::memset(usage, 0, sizeof *usage);
    usage->ru_utime = to_timeval(result.cpu_ns);
  }
  return result.pid;
}

// Fills in si_code and si_status.
void describe_child(const WaitResult& result, siginfo_t& info) noexcept {
  const int status = result.status;
  switch (result.event) {
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
  if (which == INT_MIN) return fail(ESRCH);
  unsigned events = dmt::kChildEnded;
  if ((options & WUNTRACED) != 0) events |= dmt::kChildStopped;
  if ((options & WCONTINUED) != 0) events |= dmt::kChildContinued;
  return answer(await_child(op, which, events, options & WNOHANG), status, r);
}

// The part of waitid after its arguments are checked.
int wait_and_describe(pid_t which, siginfo_t* info, int options) noexcept {
  unsigned events = 0;
  if ((options & WEXITED) != 0) events |= dmt::kChildEnded;
  if ((options & WSTOPPED) != 0) events |= dmt::kChildStopped;
  if ((options & WCONTINUED) != 0) events |= dmt::kChildContinued;
  const WaitResult result = await_child(Op::waitid, which, events, options);
  if (result.error != 0) return fail(result.error);
  if (info == nullptr) return 0;
  std::memset(info, 0, sizeof *info);
  if (result.pid == 0) return 0;
  info->si_signo = SIGCHLD;
  info->si_pid = result.pid;
  describe_child(result, *info);
  return 0;
}

int wait_by_descriptor(int fd, siginfo_t* info, int options) noexcept {
  bool nonblocking = false;
  int process = 0;
  pid_t pid = 0;
  {
    Turn turn(Op::waitid);
    process = process_of_descriptor(turn.w, fd, nonblocking);
    if (process >= 0) pid = static_cast<pid_t>(turn.w.processes[process].pid);
  }
  if (process == -EBADF) return fail(EBADF);
  if (process < 0) return fail(ECHILD);
  siginfo_t own;
  const bool asks_only = (options & WNOHANG) != 0;
  const int result =
      wait_and_describe(pid, info != nullptr ? info : &own, options | (nonblocking ? WNOHANG : 0));
  const bool nothing = result == 0 && (info != nullptr ? info : &own)->si_pid == 0;
  return nothing && nonblocking && !asks_only ? fail(EAGAIN) : result;
}

char shell_path[] = "/bin/sh";
char shell_option[] = "-c";
char shell_name[] = "sh";

[[noreturn]] void become_shell(const char* command) noexcept {
  char* argv[] = {shell_name, shell_option, const_cast<char*>(command), nullptr};
  execute(shell_path, argv, environ);
  end_now(status_of_exit(127));
}

// --- posix_spawn's opaque objects in the layout of glibc 2.15 and later --------------------------

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
    struct {
      int fd;
    } terminal;
  };
};

const SpawnAction* actions_of(const posix_spawn_file_actions_t& a) noexcept {
  return reinterpret_cast<const SpawnAction*>(a.__actions);
}

// Moves to the terminal's foreground with SIGTTOU blocked; libc's child has all signals blocked.
int set_foreground(int fd) noexcept {
  if (terminal::terminal_file(fd) == 0) return 0;
  const sigset_t output = set_of(bit_of(SIGTTOU));
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, &output, &mask);
  const auto group = static_cast<pid_t>(raw_syscall(SYS_getpgid, 0));
  const int error = ::tcsetpgrp(fd, group) < 0 ? errno : 0;
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  return error;
}

// Performs one action in the child by the interposed functions, so that descriptors stay known.
// Returns an error number.
int perform(const SpawnAction& a) noexcept {
  OutsideCrane outside;
  const auto error_of = [](long result) { return result < 0 ? errno : 0; };
  switch (a.tag) {
    case SpawnAction::kClose:
      ::close(a.close.fd);
      return 0;
    case SpawnAction::kDup2: {
      if (a.dup2.fd != a.dup2.new_fd) return error_of(::dup2(a.dup2.fd, a.dup2.new_fd));
      const long flags = raw_syscall(SYS_fcntl, a.dup2.fd, F_GETFD);
      if (flags < 0) return static_cast<int>(-flags);
      return static_cast<int>(-raw_syscall(SYS_fcntl, a.dup2.fd, F_SETFD, flags & ~FD_CLOEXEC));
    }
    case SpawnAction::kOpen: {
      ::close(a.open.fd);
      const int fd = ::open(a.open.path, a.open.flags, a.open.mode);
      if (fd < 0 || fd == a.open.fd) return error_of(fd);
      const int moved = error_of(::dup2(fd, a.open.fd));
      ::close(fd);
      return moved;
    }
    case SpawnAction::kChdir:
      return static_cast<int>(-raw_syscall(SYS_chdir, a.chdir.path));
    case SpawnAction::kFchdir:
      return static_cast<int>(-raw_syscall(SYS_fchdir, a.fchdir.fd));
    case SpawnAction::kCloseFrom: {
      constexpr int kHighest = 65536;
      for (int fd = a.close_from.from; fd < kHighest; ++fd) {
        if (raw_syscall(SYS_fcntl, fd, F_GETFD) >= 0) ::close(fd);
      }
      return 0;
    }
    case SpawnAction::kTerminal:
      return set_foreground(a.terminal.fd);
  }
  return EINVAL;
}

// Returns an error number.
int apply_attributes(const posix_spawnattr_t& t) noexcept {
  OutsideCrane outside;
  const int flags = t.__flags;
  if ((flags & POSIX_SPAWN_SETSIGDEF) != 0) {
    for (int s = 1; s <= 64; ++s) {
      const bool wanted = (bits_of(t.__sd) & bit_of(s)) != 0;
      if (wanted && s != SIGKILL && s != SIGSTOP) ::signal(s, SIG_DFL);
    }
  }
  if ((flags & POSIX_SPAWN_SETSCHEDULER) != 0) {
    if (::sched_setscheduler(0, t.__policy, &t.__sp) < 0) return errno;
  } else if ((flags & POSIX_SPAWN_SETSCHEDPARAM) != 0) {
    if (::sched_setparam(0, &t.__sp) < 0) return errno;
  }
  if ((flags & POSIX_SPAWN_SETSID) != 0 && ::setsid() < 0) return errno;
  if ((flags & POSIX_SPAWN_SETPGROUP) != 0 && ::setpgid(0, t.__pgrp) < 0) return errno;
  if ((flags & POSIX_SPAWN_RESETIDS) != 0) {
    long error = raw_syscall(SYS_setresgid, -1, raw_syscall(SYS_getgid), -1);
    if (error == 0) error = raw_syscall(SYS_setresuid, -1, raw_syscall(SYS_getuid), -1);
    if (error < 0) return static_cast<int>(-error);
  }
  if ((flags & POSIX_SPAWN_SETSIGMASK) != 0) ::sigprocmask(SIG_SETMASK, &t.__ss, nullptr);
  return 0;
}

struct Spawn {
  const char* file;  // a path, or a name to search for
  bool looks_for;
  const posix_spawn_file_actions_t* actions;
  const posix_spawnattr_t* attributes;
  char* const* argv;
  char* const* env;
};

// Runs in the child. Returns only on failure, an error number.
int become(const Spawn& s) noexcept {
  int error = s.attributes == nullptr ? 0 : apply_attributes(*s.attributes);
  for (int i = 0; s.actions != nullptr && error == 0 && i < s.actions->__used; ++i) {
    error = perform(actions_of(*s.actions)[i]);
  }
  if (error != 0) return error;
  if (!s.looks_for) return execute(s.file, s.argv, s.env);
  const Scratch<char> found(kProgramPathMax);
  error = find_program(s.file, found.data());
  return error != 0 ? error : execute_or_shell(found.data(), s.argv, s.env);
}

// As in libc, returns when the child has executed the program or failed.
int spawn(Op op, pid_t* p, const Spawn& s) noexcept {
  const pid_t pid = scheduled_fork(kSpawns);
  if (pid < 0) return errno;
  if (pid == 0) {
    const int error = become(s);
    {
      Turn turn(op);
      dmt::ProcessRecord& own = turn.w.processes[self.process];
      own.spawn = dmt::SpawnState::kFailed;
      own.spawn_error = error;
    }
    end_now(status_of_exit(127));
  }
  Turn turn(op);
  const std::uint16_t child = dmt::find_process(turn.w, static_cast<std::uint32_t>(pid));
  const dmt::ProcessRecord& record = turn.w.processes[child];
  const auto goes_on = [&record] { return record.state == dmt::ProcessState::kAlive; };
  while (goes_on() && record.spawn != dmt::SpawnState::kOver) {
    const dmt::WakeReason why = turn.wait(dmt::child_object(self.process));
    if (why == dmt::WakeReason::kInterrupted) (void)turn.interrupted(kRestarts);
  }
  if (record.spawn != dmt::SpawnState::kFailed || goes_on()) {
    if (p != nullptr) *p = pid;
    return 0;
  }
  const int error = record.spawn_error;
  turn.result(error);
  if (record.state == dmt::ProcessState::kZombie) {
    await_kernel(record.pid);
    dmt::reap_process(turn.w, child);
  }
  return error;
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

Opened* claim_opened() noexcept {
  for (Opened& o : opened) {
    if (!__atomic_exchange_n(&o.used, true, __ATOMIC_ACQ_REL)) return &o;
  }
  static constinit Bound bound{kOpenedMax, "streams of popen", "popen fails (EMFILE)"};
  bound.count_refusal();
  return nullptr;
}

// Runs in the child: end `there` of the pipe becomes stdin or stdout, and the shell is executed.
[[noreturn]] void popen_child(int here, int there, bool reads, const char* command) noexcept {
  {
    OutsideCrane outside;
    const int wanted = reads ? STDOUT_FILENO : STDIN_FILENO;
    for (const Opened& o : opened) {
      if (o.used && o.stream != nullptr) ::close(o.fd);  // as POSIX requires
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
  if (t == P_PIDFD) return wait_by_descriptor(static_cast<int>(id), info, options);
  if ((t == P_PID && static_cast<pid_t>(id) <= 0) || (t == P_PGID && static_cast<pid_t>(id) < 0)) {
    return fail(EINVAL);
  }
  if (t == P_PID) which = static_cast<pid_t>(id);
  if (t == P_PGID) which = id == 0 ? 0 : -static_cast<pid_t>(id);
  constexpr int kKinds = WEXITED | WSTOPPED | WCONTINUED;
  constexpr int kKnown = kKinds | WNOHANG | WNOWAIT | __WNOTHREAD | __WCLONE | __WALL;
  const bool bad = (options & ~kKnown) != 0 || (options & kKinds) == 0;
  if (bad || (t != P_PID && t != P_PGID && t != P_ALL)) return fail(EINVAL);
  return wait_and_describe(which, info, options);
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
    record.terminal = 0;
    record.hung_up_group = 0;
  }
  turn.result(static_cast<std::int64_t>(result < 0 ? -1 : 0));
  return result;
}

// --- composed  -----------------------------------------------------------------------------------

int posix_spawn(pid_t* p, const char* path, const posix_spawn_file_actions_t* a,
                const posix_spawnattr_t* t, char* const* argv, char* const* env) {
  const int saved = errno;
  const int error = spawn(Op::posix_spawn, p, {path, false, a, t, argv, env});
  errno = saved;
  return error;
}

int posix_spawnp(pid_t* p, const char* file, const posix_spawn_file_actions_t* a,
                 const posix_spawnattr_t* t, char* const* argv, char* const* env) {
  const int saved = errno;
  const int error = spawn(Op::posix_spawnp, p, {file, true, a, t, argv, env});
  errno = saved;
  return error;
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
  bool reads = false, writes = false, known = true, kept = true;
  for (const char* m = mode; *m != '\0'; ++m) {
    reads = reads || *m == 'r';
    writes = writes || *m == 'w';
    kept = kept && *m != 'e';
    known = known && (*m == 'r' || *m == 'w' || *m == 'e');
  }
  if (!known || reads == writes) {
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
    if (kept) ::fcntl(here, F_SETFD, 0);
    if (o->pid > 0) o->stream = ::fdopen(here, reads ? "r" : "w");
    if (o->stream == nullptr) ::close(here);
  }
  if (o->stream == nullptr) o->used = false;
  return o->stream;
}

int pclose(FILE* stream) {
  for (Opened& o : opened) {
    if (!o.used || o.stream != stream) continue;
    int closed;
    {
      OutsideCrane outside;
      closed = ::fclose(stream);
    }
    const int error = errno;
    int status = -1;
    while (wrap::waitpid(o.pid, &status, 0) < 0 && errno == EINTR) {
    }
    o.stream = nullptr;
    o.used = false;
    // As libc: reports bytes that did not reach the command, unless the command failed itself.
    return status == 0 && closed != 0 ? fail(error) : status;
  }
  return fail(EINVAL);
}

int daemon(int nochdir, int noclose) {
  const pid_t pid = scheduled_fork();
  if (pid < 0) return -1;
  if (pid > 0) end_now(status_of_exit(0));
  if (wrap::setsid() < 0) return -1;
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
