// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files of a program: the program, the interpreters of a script, and the libraries that the
// dynamic loader finds for them.  Files that the program loads later (modules, plugins) are not
// included.
//
// Threads: plain functions; program_files() runs the loader as a child and waits for it.

#include <cstdint>
#include <string>
#include <vector>

namespace crane::setup {

struct ProgramFile {
  std::string path;
  std::uint64_t digest = 0;  // file_digest()
};

// The program is the first element.  REQUIRES: check_program(path) succeeded.
std::vector<ProgramFile> program_files(const std::string& path);

// Describes the first file that differs: `other` has another build than `first`, or only one of
// them has the file.  The caller appends the name of the host of `first`.  "": no difference.
std::string difference_of(const std::vector<ProgramFile>& first,
                          const std::vector<ProgramFile>& other);

}  // namespace crane::setup
