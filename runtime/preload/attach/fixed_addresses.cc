// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/attach/fixed_addresses.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdint>
#include <cstring>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"

namespace crane {
namespace {

constexpr unsigned long kAsk = 0xffffffff;
constexpr std::size_t kPathMost = 512;

// Returns the program's loader from its headers; null: it has none.
const char* loader_of_program() noexcept {
  const auto* headers = reinterpret_cast<const Elf64_Phdr*>(getauxval(AT_PHDR));
  const std::size_t count = getauxval(AT_PHNUM);
  std::uintptr_t moved = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_PHDR)
      moved = reinterpret_cast<std::uintptr_t>(headers) - headers[i].p_vaddr;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_INTERP)
      return reinterpret_cast<const char*>(moved + headers[i].p_vaddr);
  }
  return nullptr;
}

// Returns the program of the command line "loader --argv0 NAME PROGRAM ...".
const char* program_in(const char* line, std::size_t size) noexcept {
  std::size_t at = 0;
  for (int skipped = 0; skipped < 3; ++skipped) at += std::strlen(line + at) + 1;
  return at < size ? line + at : nullptr;
}

// Names the process after the program, because the kernel named it after the loader.
void name_process_again() noexcept {
  char line[kPathMost + 1] = {};
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  const long size = raw_syscall(SYS_read, fd, line, kPathMost);
  raw_syscall(SYS_close, fd);
  if (size <= 0 || std::strcmp(line + std::strlen(line) + 1, "--argv0") != 0) return;
  const char* program = program_in(line, static_cast<std::size_t>(size));
  if (program == nullptr) return;
  const char* slash = std::strrchr(program, '/');
  raw_syscall(SYS_prctl, PR_SET_NAME, slash == nullptr ? program : slash + 1, 0, 0, 0);
}

void execute_again(const char* loader, const char* program, int count, char** arguments,
                   char** environment) noexcept {
  const std::size_t bytes = (static_cast<std::size_t>(count) + 5) * sizeof(char*);
  const long room = raw_syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room < 0) return;
  auto** words = reinterpret_cast<const char**>(room);
  std::size_t n = 0;
  words[n++] = loader;
  words[n++] = "--argv0";
  words[n++] = count > 0 ? arguments[0] : program;
  words[n++] = program;
  for (int i = 1; i < count; ++i) words[n++] = arguments[i];
  words[n] = nullptr;
  raw_syscall(SYS_execve, loader, words, environment);
}

}  // namespace

void fix_addresses(int count, char** arguments, char** environment) noexcept {
  if (getauxval(AT_BASE) == 0) return name_process_again();  // the loader was executed itself
  const char* loader = loader_of_program();
  const long old = raw_syscall(SYS_personality, kAsk);
  if (loader == nullptr || old < 0 || (old & ADDR_NO_RANDOMIZE) != 0) return;
  char program[kPathMost];
  const long size =
      raw_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof program - 1);
  if (size > 0 && size < static_cast<long>(sizeof program) - 1) {
    program[size] = '\0';
    raw_syscall(SYS_personality, old | ADDR_NO_RANDOMIZE);
    execute_again(loader, program, count, arguments, environment);
  }
  Message() << "setuid or setgid: the program's addresses are random, and differ between replicas";
}

}  // namespace crane
