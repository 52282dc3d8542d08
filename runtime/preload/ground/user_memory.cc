// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/ground/user_memory.h"

#include <ucontext.h>

#include <cstdint>

// The first instruction of each function may fault. Nothing is pushed, so a thread that continues
// at the third label returns to the function's caller.
asm(R"(
  .pushsection .text
  .globl crane_look_to_read
  .hidden crane_look_to_read
crane_look_to_read:
  movb (%rdi), %al
  movl $1, %eax
  ret
  .globl crane_look_to_write
  .hidden crane_look_to_write
crane_look_to_write:
  lock orb $0, (%rdi)
  movl $1, %eax
  ret
  .globl crane_look_in_vain
  .hidden crane_look_in_vain
crane_look_in_vain:
  xorl %eax, %eax
  ret
  .popsection
)");

extern "C" {
[[gnu::visibility("hidden")]] int crane_look_to_read(std::uintptr_t at) noexcept;
[[gnu::visibility("hidden")]] int crane_look_to_write(std::uintptr_t at) noexcept;
[[gnu::visibility("hidden")]] int crane_look_in_vain(std::uintptr_t at) noexcept;
}

namespace crane {
namespace {

constexpr std::size_t kPage = 4096;

using Look = int (*)(std::uintptr_t) noexcept;

std::uintptr_t place_of(Look look) noexcept { return reinterpret_cast<std::uintptr_t>(look); }

bool look_at(Look look, const void* memory, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (begin + bytes - 1 < begin) return false;
  const std::uintptr_t last = begin + bytes - 1;
  for (std::uintptr_t at = begin; at < last; at += kPage) {
    if (look(at) == 0) return false;
  }
  return look(last) != 0;
}

}  // namespace

bool is_readable(const void* memory, std::size_t bytes) noexcept {
  return look_at(crane_look_to_read, memory, bytes);
}
bool is_writable(const void* memory, std::size_t bytes) noexcept {
  return look_at(crane_look_to_write, memory, bytes);
}

bool handle_look(void* context) noexcept {
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
  if (at != place_of(crane_look_to_read) && at != place_of(crane_look_to_write)) return false;
  registers[REG_RIP] = static_cast<greg_t>(place_of(crane_look_in_vain));
  return true;
}

}  // namespace crane
