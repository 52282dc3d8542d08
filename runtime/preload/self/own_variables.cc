// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/self/own_variables.h"

#include <sys/auxv.h>

#include <cstring>

#include "runtime/preload/ground/attach_error.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/types.h"

extern char** environ;

namespace crane {
namespace {

char segment_path[kOwnPathMax];
char preload[kOwnPathMax];

// The variables for the program after exec; filled at each exec.
char variable_preload[kOwnPathMax + 16];
char variable_segment[kOwnPathMax + 16];
char variable_descriptor[48], variable_slot[32], variable_process[32];
char variable_even[] = "CRANE_EVEN=";  // hide_own_variables

void copy_text(const char* text, char* out, std::size_t room) noexcept {
  const std::size_t size = std::strlen(text);
  if (size + 1 > room) give_up("a variable of the environment is too long", text);
  std::memcpy(out, text, size + 1);
}

bool is_ours(const char* entry) noexcept {
  static constexpr const char* kNames[] = {
      "LD_PRELOAD=",    "CRANE_SEGMENT=", "CRANE_SEGMENT_FD=", "CRANE_SLOT=",
      "CRANE_PROCESS=", "CRANE_EVEN=",    "CRANE_CONTAINER="};
  for (const char* name : kNames) {
    if (begins_with(entry, name)) return true;
  }
  return false;
}

}  // namespace

const char* variable(const char* name) noexcept {
  const std::size_t size = std::strlen(name);
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    if (std::strncmp(*e, name, size) == 0 && (*e)[size] == '=') return *e + size + 1;
  }
  return nullptr;
}

int variable_number(const char* name, int otherwise) noexcept {
  const char* const text = variable(name);
  if (text == nullptr || *text == '\0') return otherwise;
  std::uint32_t result;
  return *parse_number(text, result) == '\0' ? static_cast<int>(result) : otherwise;
}

void read_own_variables(const char* path) noexcept {
  copy_text(path, segment_path, sizeof segment_path);
  const char* const loaded = variable("LD_PRELOAD");
  copy_text(loaded == nullptr ? "" : loaded, preload, sizeof preload);
}

const char* own_segment_path() noexcept { return segment_path; }

// Gives the program its original environment; ours is added again at exec. The loader put the
// auxiliary vector after the environment, and runtimes (Go's) search it after the first null. So
// the gap is filled with ignored pairs, which requires an even number of our variables. Otherwise
// the vector looks empty, and the runtime reads /proc/self/auxv.
//
// LXC sets container=lxc. CRANE_CONTAINER contains the previous entry, or nothing.
void hide_own_variables() noexcept {
  char** out = environ;
  char** end = environ;
  const char* const before = variable("CRANE_CONTAINER");
  for (; *end != nullptr; ++end) {
    if (is_ours(*end)) continue;
    const bool replaces = before != nullptr && begins_with(*end, "container=");
    if (!replaces || *before != '\0') *out++ = replaces ? const_cast<char*>(before) : *end;
  }
  const std::uintptr_t type = (end - out) % 2 == 0 ? AT_IGNORE : AT_NULL;
  for (char** gap = out + 1; gap < end; gap += 2) {
    gap[0] = reinterpret_cast<char*>(type);
    gap[1] = nullptr;
  }
  *out = nullptr;
}

void build_environment(char* const* given, char** out, int descriptor, std::uint16_t slot,
                       std::uint16_t process) noexcept {
  for (; given != nullptr && *given != nullptr; ++given) {
    if (!is_ours(*given)) *out++ = *given;
  }
  std::memcpy(variable_preload, "LD_PRELOAD=", 11);
  std::memcpy(variable_preload + 11, preload, std::strlen(preload) + 1);
  std::memcpy(variable_segment, "CRANE_SEGMENT=", 14);
  std::memcpy(variable_segment + 14, segment_path, std::strlen(segment_path) + 1);
  print_number("CRANE_SEGMENT_FD=", static_cast<unsigned>(descriptor), variable_descriptor);
  print_number("CRANE_SLOT=", slot, variable_slot);
  print_number("CRANE_PROCESS=", process, variable_process);
  *out++ = variable_preload;
  *out++ = variable_segment;
  *out++ = variable_descriptor;
  *out++ = variable_slot;
  *out++ = variable_process;
  *out++ = variable_even;
  *out = nullptr;
}

}  // namespace crane
