// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the server's program.  Refuses, before anything runs, a program that cannot load
// libcrane.so, because static and set-user-id programs silently ignore LD_PRELOAD.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

// Finds `name` as a shell does, but also in sbin directories.  On success `path` is absolute and
// executable.  Errors: kProgramMissing, kNotExecutable, kUnsuitable.
Outcome find_program(const std::string& name, std::string& path);

// Checks that the dynamic loader would preload a library into the program at `path`, or into the
// interpreter of a script.
Outcome check_program(const std::string& path);

// A script followed by its interpreters, last the one that the kernel loads.  For a program, only
// the program.
std::vector<std::string> program_chain(const std::string& path);

// The CRC64 of the file's bytes; of no bytes if the file cannot be read.
std::uint64_t file_digest(const std::string& path);

}  // namespace crane::setup
