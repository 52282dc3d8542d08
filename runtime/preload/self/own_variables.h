// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's own variables in the environment: read when it attaches, hidden from the program,
// and added again when exec replaces the program.
//
// CRANE_SEGMENT is the path of the segment file; after exec there are also CRANE_SEGMENT_FD,
// CRANE_SLOT, CRANE_PROCESS and CRANE_EVEN (which keeps their number even).
//
// Threads: any, after read_own_variables().

#include <cstddef>
#include <cstdint>

namespace crane {

inline constexpr std::size_t kOwnPathMax = 512;

// Returns the value of a variable of the environment, or null.
const char* variable(const char* name) noexcept;
// Returns the value as a number; `otherwise` when it is absent or not a number.
int variable_number(const char* name, int otherwise) noexcept;

// Stores the path of the segment and LD_PRELOAD. Ends the process when one of them is too long.
void read_own_variables(const char* segment_path) noexcept;
const char* own_segment_path() noexcept;

// Writes the environment of a program that takes over `slot` and `process` by exec: `given` without
// the library's own variables, then the library's. `out` has room for count + kOwnVariables + 1
// pointers. `descriptor` is the segment's.
inline constexpr int kOwnVariables = 6;
static_assert(kOwnVariables % 2 == 0);  // hide_own_variables
void build_environment(char* const* given, char** out, int descriptor, std::uint16_t slot,
                       std::uint16_t process) noexcept;

// Removes the library's own variables from the environment that the program sees.
void hide_own_variables() noexcept;

}  // namespace crane
