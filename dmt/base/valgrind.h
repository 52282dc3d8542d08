// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports whether this process runs in valgrind (crane-replay --valgrind), and sends requests to
// its helgrind.
//
// Valgrind makes a process' system calls for it and emulates the processor's clock, so Crane must
// not ask the kernel to trap either.  Helgrind sees what libcrane.so takes from libc under the turn
// (mutexes, threads).  The scheduler decides which thread wakes for a condition, a semaphore, a
// barrier or a byte, so helgrind must be informed of that order: an operation that signals an
// object or waits for it comes after all earlier ones on that object.
//
// Threads: any.

#include <cstddef>
#include <cstdint>

namespace crane {

// The instructions that valgrind interprets as a request (valgrind.h of version 3).  They change
// nothing on a real processor.
inline unsigned long ask_valgrind(unsigned long request, unsigned long argument,
                                  unsigned long second = 0) noexcept {
  unsigned long answer = 0;
#if defined(__x86_64__)
  const unsigned long words[6] = {request, argument, second, 0, 0, 0};
  asm volatile(
      "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(&words[0])
      : "cc", "memory");
#else
  (void)request;
  (void)argument;
  (void)second;
#endif
  return answer;
}

// Set by look_for_valgrind(), before there is a second thread.
inline bool in_valgrind = false;
inline void look_for_valgrind() noexcept {
  constexpr unsigned long kRunning = 0x1001;
  in_valgrind = ask_valgrind(kRunning, 0) != 0;
}

// The code at `address` has changed; valgrind discards its translation.
inline void forget_translation(std::uintptr_t address, std::size_t size) noexcept {
  constexpr unsigned long kDiscardTranslations = 0x1002;
  if (in_valgrind) ask_valgrind(kDiscardTranslations, address, size);
}

inline void order_in_valgrind(std::uint64_t object) noexcept {
  if (!in_valgrind) return;
  constexpr unsigned long kHelgrind = ('H' << 24 | 'G' << 16) + 0x100;
  constexpr unsigned long kSend = kHelgrind + 0x21, kReceive = kHelgrind + 0x22;
  ask_valgrind(kReceive, object);
  ask_valgrind(kSend, object);
}

}  // namespace crane
