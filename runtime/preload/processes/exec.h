// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replacing the program of a process: the new one must load this library, so what cannot is found
// from its file before (rule 15); it takes over slot and process through the environment.
//
// Threads: any with a slot.

#include "dmt/base/thread_safety.h"

namespace crane {

// 0 when `path` could be executed and would load this library; else the error number to answer.
// A static or privilege-changing program is named in a message.
int check_program(const char* path) noexcept;

// The `file` of execvp in `out` (kProgramPathMax bytes); 0 or an error number.
inline constexpr unsigned kProgramPathMax = 4096;
int find_program(const char* file, char* out) noexcept;

// Executes `path`; returns an error number.
int execute(const char* path, char* const* argv, char* const* env) noexcept;

// As execute(), and a file without a known format is a script of /bin/sh, as execvp does.
int execute_or_shell(const char* path, char* const* argv, char* const* env) noexcept;

// First operation of the new program.  REQUIRES the turn: what exec has closed is unbound, the
// other threads are gone, handlers are back at the default.
CRANE_REQUIRES_TURN void settle_after_exec() noexcept;

}  // namespace crane
