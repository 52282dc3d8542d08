// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/program_files.h"

#include <algorithm>
#include <cstdio>

#include "dmt/base/shell_word.h"
#include "runtime/setup/program.h"

namespace crane::setup {
namespace {

// The path in "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x..)".  The line of the loader has
// no arrow, and the line of the kernel's vDSO has no path.
std::string path_in(const std::string& line) {
  const auto begin = line.find('/'), end = line.rfind(" (");
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? ""
             : line.substr(begin, end - begin);
}

std::vector<std::string> libraries_of(const std::string& program) {
  const std::string command =
      "/lib64/ld-linux-x86-64.so.2 --list " + shell_word(program) + " 2>/dev/null";
  std::vector<std::string> found;
  FILE* const output = popen(command.c_str(), "re");
  if (output == nullptr) return found;
  char line[4096];
  while (fgets(line, sizeof line, output) != nullptr) {
    if (const std::string path = path_in(line); !path.empty()) found.push_back(path);
  }
  pclose(output);
  std::sort(found.begin(), found.end());
  return found;
}

const ProgramFile* find(const std::vector<ProgramFile>& files, const std::string& path) {
  const auto at = std::find_if(files.begin(), files.end(),
                               [&path](const ProgramFile& file) { return file.path == path; });
  return at == files.end() ? nullptr : &*at;
}

}  // namespace

std::vector<ProgramFile> program_files(const std::string& path) {
  std::vector<ProgramFile> files;
  const auto add = [&files](const std::string& file) {
    if (find(files, file) == nullptr) files.push_back({file, file_digest(file)});
  };
  const std::vector<std::string> chain = program_chain(path);
  for (const std::string& program : chain) add(program);
  for (const std::string& library : libraries_of(chain.back())) add(library);
  return files;
}

std::string difference_of(const std::vector<ProgramFile>& first,
                          const std::vector<ProgramFile>& other) {
  for (const ProgramFile& file : other) {
    const ProgramFile* const same = find(first, file.path);
    if (same == nullptr) return file.path + " is loaded there, but not on ";
    if (same->digest != file.digest) return file.path + " is another build than on ";
  }
  for (const ProgramFile& file : first) {
    if (find(other, file.path) == nullptr) return file.path + " is not loaded there, but is on ";
  }
  return "";
}

}  // namespace crane::setup
