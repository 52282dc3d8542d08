// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "dmt/base/crc.h"
#include "dmt/base/elf_program.h"

namespace crane::setup {
namespace {

constexpr int kInterpretersMax = 4;  // depth of scripts as interpreters; Linux has a limit, too

Outcome unsuitable(const std::string& path, const std::string& cause, const std::string& todo) {
  return failure(Status::kUnsuitable, "cannot replicate the program", path, cause, todo);
}

bool is_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string absolute(const std::string& path) {
  char resolved[PATH_MAX];
  if (path[0] == '/') return path;
  return getcwd(resolved, sizeof resolved) != nullptr ? std::string(resolved) + "/" + path : path;
}

// The directory of PostgreSQL's newest version.  Debian keeps its programs in one directory per
// version.
std::string of_postgresql() {
  std::string newest;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
    const std::string path = entry.path().string();
    const auto longer = path.size() != newest.size() ? path.size() > newest.size() : path > newest;
    if (longer) newest = path;
  }
  return newest.empty() ? "" : ":" + newest + "/bin";
}

std::vector<std::string> search_path() {
  const char* variable = getenv("PATH");
  std::string list = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  list += ":/usr/local/sbin:/usr/sbin:/sbin" + of_postgresql();
  std::vector<std::string> directories;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) directories.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return directories;
}

// Reads `size` bytes at `offset`; returns false if there are fewer.
bool read_at(int fd, void* to, std::size_t size, std::uint64_t offset) {
  return pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

Outcome check_elf(int fd, const std::string& path) {
  Elf64_Ehdr header{};
  if (!read_at(fd, &header, sizeof header, 0) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return unsuitable(path, "neither a program for Linux nor a script",
                      "name the server's program");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    return unsuitable(path, "built for another machine", "install its amd64 build");
  }
  const auto read = [fd](std::uint64_t at, void* to, std::size_t size) {
    return read_at(fd, to, size, at);
  };
  switch (elf_program(header, read)) {
    case ElfProgram::kLibraries:
      return Done{};
    case ElfProgram::kNoLibrary:
      return unsuitable(path, "without libc, so libcrane.so would not see its system calls",
                        "use a build that calls libc (for Go: with cgo)");
    case ElfProgram::kStatic:
    case ElfProgram::kUnreadable:
      break;
  }
  return unsuitable(path, "statically linked, so libcrane.so cannot be loaded into it",
                    "use a dynamically linked build");
}

// Returns python3 for "#!/usr/bin/env python3", and /bin/sh for "#!/bin/sh -e".
std::string interpreter_of(const char* line) {
  std::string text = line + 2;
  text = text.substr(0, text.find_first_of("\n\r"));
  const auto word = [&text] {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string::npos) return std::string();
    const auto end = std::min(text.find_first_of(" \t", begin), text.size());
    std::string found = text.substr(begin, end - begin);
    text.erase(0, end);
    return found;
  };
  std::string first = word();
  if (first == "/usr/bin/env" || first == "/bin/env") {
    std::string path;
    const std::string name = word();
    if (!name.empty() && find_program(name, path).ok()) return path;
  }
  return first;
}

// `is_elf`: the kernel loads this file itself, not an interpreter for it.
Outcome check_one(const std::string& path, bool is_elf) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return failure(Status::kNotExecutable, "cannot read the program", path, strerror(errno),
                   "check its permissions");
  }
  struct stat info {};
  fstat(fd, &info);
  const bool changes_user = (info.st_mode & S_ISUID) != 0 && info.st_uid != geteuid();
  const bool changes_group = (info.st_mode & S_ISGID) != 0 && info.st_gid != getegid();
  if (changes_user || changes_group) {
    close(fd);
    return unsuitable(path, "set-user-id or set-group-id, so the loader ignores libcrane.so",
                      "run crane-run as the program's owner, or a copy without that bit");
  }
  Outcome found = Done{};
  if (is_elf) found = check_elf(fd, path);
  close(fd);
  return found;
}

}  // namespace

Outcome find_program(const std::string& name, std::string& path) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(absolute(name));
  } else {
    for (const auto& directory : search_path()) candidates.push_back(directory + "/" + name);
  }
  std::string unusable;
  for (const auto& candidate : candidates) {
    if (!is_file(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) {
      path = candidate;
      return Done{};
    }
    if (unusable.empty()) unusable = candidate;
  }
  std::error_code ignored;
  if (name.find('/') != std::string::npos && std::filesystem::is_directory(name, ignored)) {
    return failure(Status::kNotExecutable, "cannot run the program", name, "it is a directory",
                   "name the program in it");
  }
  if (!unusable.empty()) {
    return failure(Status::kNotExecutable, "cannot run the program", unusable, "not executable",
                   "chmod +x it, or name the right file");
  }
  return failure(Status::kProgramMissing, "cannot run the program", name,
                 "there is no such program",
                 "check the name, or install the package that contains it");
}

std::vector<std::string> program_chain(const std::string& path) {
  std::vector<std::string> chain{path};
  while (chain.size() <= kInterpretersMax) {
    char start[256] = {};
    std::ifstream(chain.back(), std::ios::binary).read(start, sizeof start - 1);
    if (start[0] != '#' || start[1] != '!') break;
    chain.push_back(interpreter_of(start));
  }
  return chain;
}

Outcome check_program(const std::string& path) {
  const std::vector<std::string> chain = program_chain(path);
  for (const std::string& program : chain) {
    if (auto p = check_one(program, &program == &chain.back()); !p) return p;
  }
  return Done{};
}

std::uint64_t file_digest(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(1 << 16);
  std::uint64_t crc = 0;
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    crc = crc64(block.data(), static_cast<std::size_t>(in.gcount()), crc);
  }
  return crc;
}

}  // namespace crane::setup
