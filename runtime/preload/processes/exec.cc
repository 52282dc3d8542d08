// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/processes/exec.h"
#include "runtime/preload/threads/robust_mutexes.h"

#include <elf.h>

#include <climits>
#include <cstring>

#include "dmt/base/elf_program.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/files.h"
#include "dmt/posix_timers.h"
#include "dmt/processes.h"
#include "runtime/preload/descriptors/file_lock.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/processes/vfork_memory.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/self/own_variables.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/trap/vdso.h"
#include "runtime/preload/turn/turn.h"

extern char** environ;

namespace crane {
namespace {

constexpr int kScriptDepthMax = 4;
constexpr std::size_t kHeadBytes = 4096;

int refuse(const char* path, const char* why) noexcept {
  Message() << "exec of " << path << " is refused: " << why;
  return ENOEXEC;
}

// Returns why the kernel would set AT_SECURE, with which ld.so ignores LD_PRELOAD; null: it would
// not.
const char* why_secure(const char* path, const struct stat& s) noexcept {
  const long uid = raw_syscall(SYS_getuid), gid = raw_syscall(SYS_getgid);
  const long euid = raw_syscall(SYS_geteuid), egid = raw_syscall(SYS_getegid);
  if ((s.st_mode & S_ISUID) != 0 && s.st_uid != euid) return "it is setuid";
  if ((s.st_mode & S_ISGID) != 0 && s.st_gid != egid) return "it is setgid";
  if (uid != euid || gid != egid) return "the process has two user or group ids";
  constexpr char kCapabilities[] = "security.capability";
  if (uid != 0 && raw_syscall(SYS_getxattr, path, kCapabilities, nullptr, 0) > 0) {
    return "the file has capabilities";
  }
  return nullptr;
}

// In a container, /etc/ld.so.preload makes ld.so load the library into all programs
// (checkpoint/container.cc).
bool is_preloaded_by_system() noexcept {
  char text[1024] = {};
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, "/etc/ld.so.preload", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  raw_syscall(SYS_read, fd, text, sizeof text - 1);
  raw_syscall(SYS_close, fd);
  return std::strstr(text, "/libcrane.so") != nullptr;
}

int check_elf(const char* path, const char* head, std::size_t size, int fd) noexcept {
  Elf64_Ehdr elf;
  if (size < sizeof elf) return ENOEXEC;
  std::memcpy(&elf, head, sizeof elf);
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64) {
    return refuse(path, "it is for another processor");
  }
  const auto read_at = [fd](std::uint64_t at, void* to, std::size_t bytes) {
    return raw_syscall(SYS_pread64, fd, to, bytes, static_cast<long>(at)) ==
           static_cast<long>(bytes);
  };
  switch (elf_program(elf, read_at)) {
    case ElfProgram::kLibraries:
      return 0;
    case ElfProgram::kStatic:
      return refuse(path, "it is statically linked and cannot load libcrane.so");
    case ElfProgram::kNoLibrary:
      return refuse(path, "it has no libc, and libcrane.so would not see its calls");
    case ElfProgram::kUnreadable:
      break;
  }
  return ENOEXEC;
}

// Returns the interpreter of a script's first line, in place; null when there is none.
char* interpreter_of(char* head, std::size_t size) noexcept {
  std::size_t i = 2;
  while (i < size && (head[i] == ' ' || head[i] == '\t')) ++i;
  const std::size_t start = i;
  while (i < size && head[i] != ' ' && head[i] != '\t' && head[i] != '\n' && head[i] != '\0') ++i;
  if (i == start || i == size) return nullptr;
  head[i] = '\0';
  return head + start;
}

int check_file(const char* path, int depth) noexcept {
  if (const long error = raw_syscall(SYS_faccessat, AT_FDCWD, path, X_OK); error < 0) {
    return static_cast<int>(-error);
  }
  struct stat status {};
  if (const long error = raw_syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0); error < 0) {
    return static_cast<int>(-error);
  }
  if (!S_ISREG(status.st_mode)) return EACCES;
  const char* secure = why_secure(path, status);
  if (secure != nullptr && !is_preloaded_by_system()) {
    { Message() << path << " would not load libcrane.so: " << secure; }
    return refuse(path, "it could not be one of the server's processes");
  }
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd == -EACCES) return 0;  // executable but not readable: it is assumed to be valid
  if (fd < 0) return static_cast<int>(-fd);
  const Scratch<char> head(kHeadBytes);
  const long got = raw_syscall(SYS_pread64, fd, head.data(), kHeadBytes - 1, 0);
  const std::size_t size = got < 0 ? 0 : static_cast<std::size_t>(got);
  int error = ENOEXEC;
  char* interpreter = nullptr;
  if (size >= SELFMAG && std::memcmp(head.data(), ELFMAG, SELFMAG) == 0) {
    error = check_elf(path, head.data(), size, static_cast<int>(fd));
  } else if (size > 2 && head[0] == '#' && head[1] == '!') {
    interpreter = interpreter_of(head.data(), size);
  }
  raw_syscall(SYS_close, fd);
  if (interpreter == nullptr) return error;
  return depth == 0 ? ELOOP : check_file(interpreter, depth - 1);
}

std::size_t count_of(char* const* list) noexcept {
  std::size_t n = 0;
  while (list != nullptr && list[n] != nullptr) ++n;
  return n;
}

const char* search_path() noexcept {
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    if (std::strncmp(*e, "PATH=", 5) == 0) return *e + 5;
  }
  return "/bin:/usr/bin";
}

// Writes `directory`[0, size) + "/" + `file`; false when it is too long.
bool join_path(const char* directory, std::size_t size, const char* file, char* out) noexcept {
  const std::size_t file_size = std::strlen(file);
  if (size + file_size + 2 > kProgramPathMax) return false;
  std::memcpy(out, directory, size);
  if (size > 0) out[size++] = '/';
  std::memcpy(out + size, file, file_size + 1);
  return true;
}

int answer(int error) noexcept {
  errno = error;
  return -1;
}

}  // namespace

int check_program(const char* path) noexcept { return check_file(path, kScriptDepthMax); }

int find_program(const char* file, char* out) noexcept {
  if (*file == '\0') return ENOENT;
  if (std::strchr(file, '/') != nullptr) return join_path("", 0, file, out) ? 0 : ENAMETOOLONG;
  bool denied = false;
  const char* directory = search_path();
  for (;;) {
    const char* end = std::strchr(directory, ':');
    const std::size_t size =
        end == nullptr ? std::strlen(directory) : static_cast<std::size_t>(end - directory);
    if (join_path(directory, size, file, out)) {
      const long error = raw_syscall(SYS_faccessat, AT_FDCWD, out, X_OK);
      struct stat status {};
      const bool regular =
          raw_syscall(SYS_newfstatat, AT_FDCWD, out, &status, 0) == 0 && S_ISREG(status.st_mode);
      if (error == 0 && regular) return 0;
      denied = denied || error == -EACCES;
    }
    if (end == nullptr) return denied ? EACCES : ENOENT;
    directory = end + 1;
  }
}

int execute(const char* path, char* const* argv, char* const* env) noexcept {
  if (const int error = check_program(path); error != 0) return error;
  const std::size_t room = count_of(env) + kOwnVariables + 1;
  const Scratch<char*> variables(room);
  build_environment(env, variables.data(), own_descriptor_base(), self.slot, self.process);
  vfork_memory::publish();
  Turn turn(Op::execve);
  // The new program takes over the turn, and its first operation ends this one. Until then no other
  // thread of this process can have the turn.
  turn.w.processes[self.process].exec_pending = true;
  wake_waiters_of_robust_mutexes();
  notify::closing(turn.w, {0, INT_MAX, true});
  allow_tsc();  // ld.so of the new program uses it before there is a handler
  const long error = raw_syscall(SYS_execve, path, argv, variables.data());
  forbid_tsc();
  turn.w.processes[self.process].exec_pending = false;
  return static_cast<int>(-error);
}

int execute_or_shell(const char* path, char* const* argv, char* const* env) noexcept {
  const int error = execute(path, argv, env);
  if (error != ENOEXEC) return error;
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  char head[SELFMAG] = {};
  const long got = fd < 0 ? 0 : raw_syscall(SYS_pread64, fd, head, sizeof head, 0);
  if (fd >= 0) raw_syscall(SYS_close, fd);
  if (got == SELFMAG && std::memcmp(head, ELFMAG, SELFMAG) == 0) return error;
  const std::size_t n = count_of(argv);
  const Scratch<char*> shell(n + 3);
  static char shell_path[] = "/bin/sh";
  shell[0] = shell_path;
  shell[1] = const_cast<char*>(path);
  for (std::size_t i = 1; i <= n; ++i) shell[i + 1] = argv[i];
  if (n == 0) shell[2] = nullptr;
  return execute(shell_path, shell.data(), env);
}

void clean_up_after_exec() noexcept {
  dmt::Layout& w = *segment;
  dmt::ProcessRecord& p = w.processes[self.process];
  p.exec_pending = false;
  p.shares_memory = false;
  if (p.spawn != dmt::SpawnState::kOver) {
    p.spawn = dmt::SpawnState::kOver;
    dmt::signal(w, dmt::child_object(p.parent), dmt::kAll);
  }
  p.main_slot = self.slot;
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const dmt::SlotRecord& s = w.slots[i];
    if (i == self.slot || s.process != self.process || s.state == dmt::SlotState::kFree) continue;
    dmt::release_slot(w, Slot{i});
  }
  const std::uint32_t limit = p.fd_limit;
  for (std::uint32_t fd = 0; fd < limit; ++fd) {
    if (dmt::file_of(w, self.process, static_cast<int>(fd)) == 0) continue;
    if (raw_syscall(SYS_fcntl, fd, F_GETFD) < 0) {
      dmt::unbind_descriptor(w, self.process, static_cast<int>(fd));
    }
  }
  file_lock::wake_lock_waiters(w);  // with the descriptors closed on exec
  dmt::delete_posix_timers(w, self.process);
  reset_handlers_for_exec();
}

namespace wrap {

int execve(const char* path, char* const* argv, char* const* env) {
  if (InsideCrane::inside()) return real::execve(path, argv, env);
  InsideCrane inside;
  return answer(execute(path, argv, env));
}

int execv(const char* path, char* const* argv) { return wrap::execve(path, argv, environ); }

int execvpe(const char* file, char* const* argv, char* const* env) {
  if (InsideCrane::inside()) return real::execvpe(file, argv, env);
  InsideCrane inside;
  const Scratch<char> path(kProgramPathMax);
  if (const int error = find_program(file, path.data()); error != 0) return answer(error);
  return answer(execute_or_shell(path.data(), argv, env));
}

int execvp(const char* file, char* const* argv) { return wrap::execvpe(file, argv, environ); }

int fexecve(int fd, char* const* argv, char* const* env) {
  if (InsideCrane::inside()) return real::fexecve(fd, argv, env);
  InsideCrane inside;
  const Scratch<char> path(kProgramPathMax);
  const long size = read_link_of(static_cast<unsigned>(fd), path.data(), path.size() - 1);
  if (size < 0) return answer(EBADF);
  path[static_cast<std::size_t>(size)] = '\0';
  return answer(execute(path.data(), argv, env));
}

int execveat(int fd, const char* path, char* const* argv, char* const* env, int flags) {
  if (InsideCrane::inside()) return real::execveat(fd, path, argv, env, flags);
  if (path != nullptr && (path[0] == '/' || fd == AT_FDCWD)) return wrap::execve(path, argv, env);
  if ((flags & AT_EMPTY_PATH) != 0) return wrap::fexecve(fd, argv, env);
  if (path == nullptr) return answer(EFAULT);
  const Scratch<char> whole(kProgramPathMax);
  print_number(kDescriptorLinks, static_cast<unsigned>(fd), whole.data());
  const std::size_t size = std::strlen(whole.data());
  if (size + std::strlen(path) + 2 > whole.size()) return answer(ENAMETOOLONG);
  whole[size] = '/';
  std::memcpy(whole.data() + size + 1, path, std::strlen(path) + 1);
  return wrap::execve(whole.data(), argv, env);
}

namespace {

// Counts the arguments of an execl call: `first` to the null pointer, inclusive.
std::size_t count_of(const char* first, va_list rest) noexcept {
  std::size_t n = 1;
  va_list again;
  va_copy(again, rest);
  for (const char* one = first; one != nullptr; ++n) one = va_arg(again, const char*);
  va_end(again);
  return n;
}

void collect(const char* first, va_list rest, const Scratch<char*>& out) noexcept {
  out[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i < out.size(); ++i) out[i] = va_arg(rest, char*);
}

}  // namespace

int execl(const char* path, const char* first, va_list rest) {
  const Scratch<char*> argv(count_of(first, rest));
  collect(first, rest, argv);
  return wrap::execve(path, argv.data(), environ);
}

int execlp(const char* path, const char* first, va_list rest) {
  const Scratch<char*> argv(count_of(first, rest));
  collect(first, rest, argv);
  return wrap::execvpe(path, argv.data(), environ);
}

int execle(const char* path, const char* first, va_list rest) {
  const Scratch<char*> argv(count_of(first, rest));
  collect(first, rest, argv);
  char** const env = va_arg(rest, char**);  // after the end of the list
  return wrap::execve(path, argv.data(), env);
}

}  // namespace wrap
}  // namespace crane
