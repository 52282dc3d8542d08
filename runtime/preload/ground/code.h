// SPDX-License-Identifier: Apache-2.0
#pragma once
// Changes the code of a function that other code calls directly: its first bytes become a jump to a
// function of ours, in this process' own copy of the page.
//
// Threads: only while no other thread can run in the bytes that change.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"

namespace crane {

inline constexpr std::uintptr_t kCodePage = 4096;
inline constexpr std::size_t kJumpBytes = 12;

template <typename F>
std::uintptr_t address_of(F function) noexcept {
  return reinterpret_cast<std::uintptr_t>(function);
}

// Writes mov $function, %rax; jmp *%rax. REQUIRES that the page is writable.
inline void write_jump(std::uintptr_t at, std::uintptr_t function) noexcept {
  unsigned char code[kJumpBytes] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
  std::memcpy(code + 2, &function, sizeof function);
  std::memcpy(reinterpret_cast<void*>(at), code, sizeof code);
  forget_translation(at, sizeof code);
}

// Sets the protection of the pages that hold `size` bytes at `at`; 0 or a negative error number.
inline long protect_code(std::uintptr_t at, std::size_t size, int protection) noexcept {
  const std::uintptr_t begin = at & ~(kCodePage - 1);
  const std::uintptr_t end = (at + size + kCodePage - 1) & ~(kCodePage - 1);
  return raw_syscall(SYS_mprotect, begin, end - begin, protection);
}

inline constexpr int kWritableCode = PROT_READ | PROT_WRITE | PROT_EXEC;

inline unsigned char* code_at(std::uintptr_t address) noexcept {
  return reinterpret_cast<unsigned char*>(address);
}

// Calls `write` with the bytes at `address`, while other threads may run in the same page. False:
// the kernel does not make them writable.
template <typename Write>
bool change_code(std::uintptr_t address, std::size_t size, Write write) noexcept {
  if (protect_code(address, size, kWritableCode) != 0) return false;
  write(code_at(address));
  const bool restored = protect_code(address, size, PROT_READ | PROT_EXEC) == 0;
  forget_translation(address, size);
  return restored;
}

// The offset of the calling thread's variable from %fs, which is equal in all threads.
inline std::int32_t thread_word(const void* variable) noexcept {
  return static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(variable) -
                                   reinterpret_cast<std::intptr_t>(__builtin_thread_pointer()));
}

}  // namespace crane
