// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replaces the program of a process. The new program must load this library, so programs that
// cannot are detected from their file first (rule 15). The new program gets slot and process
// through the environment.
//
// Threads: any with a slot.

#include "dmt/base/thread_safety.h"

namespace crane {

// Returns 0 when `path` could be executed and would load this library; else the error number of the
// call. A message names static programs and programs that change privileges.
int check_program(const char* path) noexcept;

// Writes the path of execvp's `file` to `out` (kProgramPathMax bytes); 0 or an error number.
inline constexpr unsigned kProgramPathMax = 4096;
int find_program(const char* file, char* out) noexcept;

// Executes `path`; returns an error number.
int execute(const char* path, char* const* argv, char* const* env) noexcept;

// As execute(), but runs a file of unknown format as a script of /bin/sh, as execvp does.
int execute_or_shell(const char* path, char* const* argv, char* const* env) noexcept;

// First operation of the new program. Unbinds the descriptors that exec closed, removes the other
// threads, and resets the handlers. REQUIRES the turn.
CRANE_REQUIRES_TURN void clean_up_after_exec() noexcept;

}  // namespace crane
