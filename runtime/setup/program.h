// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the server's program and refuses, before anything runs, one that could never load
// libcrane.so: LD_PRELOAD is silently ignored by static and by set-user-id programs.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

// `name` as a shell would find it (sbin directories are searched as well). On success `path` is
// absolute and may be executed. Statuses: kProgramMissing, kNotExecutable, kUnsuitable.
Outcome find_program(const std::string& name, std::string& path);

// Whether the dynamic loader would preload a library into the program at `path`. A script stands
// for its interpreter.
Outcome check_program(const std::string& path);

// A script and its interpreters, the one that the kernel loads last; a program: itself.
std::vector<std::string> program_chain(const std::string& path);

// CRC64 of its bytes; of none when it cannot be read.
std::uint64_t file_digest(const std::string& path);

}  // namespace crane::setup
