// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files that a program is loaded from: itself, the interpreters of a script, and the libraries
// that the dynamic loader finds for them. What a program loads later (modules, plugins) is not
// among them.
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

// The program first. REQUIRES: check_program(path) is well.
std::vector<ProgramFile> program_files(const std::string& path);

// The first file of which `other` has another build than `first`, or which one of them has alone,
// and how it differs, for a sentence that ends with the place of `first`; "": none.
std::string difference_of(const std::vector<ProgramFile>& first,
                          const std::vector<ProgramFile>& other);

}  // namespace crane::setup
