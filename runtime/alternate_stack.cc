// SPDX-License-Identifier: Apache-2.0
#include "runtime/alternate_stack.h"

#include <cstdint>

#include "runtime/raw.h"

using Handler = void (*)(int, siginfo_t*, void*);
extern "C" void crane_call_on_stack(void* top, Handler handler, int signo, siginfo_t* info,
                                    void* context);

// The frame is found by %rbp, so that unwinding passes from one stack to the other.
asm(R"(
  .pushsection .text
  .hidden crane_call_on_stack
  .globl crane_call_on_stack
  .type crane_call_on_stack, @function
  .balign 16
crane_call_on_stack:
  .cfi_startproc
  endbr64
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  mov %rdi, %rsp
  mov %rsi, %rax
  mov %edx, %edi
  mov %rcx, %rsi
  mov %r8, %rdx
  call *%rax
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size crane_call_on_stack, . - crane_call_on_stack
  .popsection
)");

namespace crane {

void* alternate_stack_of(const struct sigaction& action) noexcept {
  if ((action.sa_flags & SA_ONSTACK) == 0) return nullptr;
  stack_t stack;
  if (raw_syscall(SYS_sigaltstack, nullptr, &stack) != 0) return nullptr;
  if ((stack.ss_flags & (SS_DISABLE | SS_ONSTACK)) != 0) return nullptr;
  constexpr std::uintptr_t kAligned = ~std::uintptr_t{15};
  const auto top = reinterpret_cast<std::uintptr_t>(stack.ss_sp) + stack.ss_size;
  return reinterpret_cast<void*>(top & kAligned);
}

void call_on_stack(void* top, const struct sigaction& action, int signo, siginfo_t* info,
                   void* context) noexcept {
  // A handler of one argument has its place in the same union and does not look at the others.
  crane_call_on_stack(top, action.sa_sigaction, signo, info, context);
}

void keep_alternate_stack(ucontext_t& context) noexcept {
  constexpr int kAutoDisarm = static_cast<int>(1u << 31);  // SS_AUTODISARM: the kernel took it away
  stack_t now;
  if (raw_syscall(SYS_sigaltstack, nullptr, &now) != 0) return;
  const bool armed_again = (context.uc_stack.ss_flags & kAutoDisarm) != 0;
  if (armed_again && (now.ss_flags & SS_DISABLE) != 0) return;
  context.uc_stack = now;
}

}  // namespace crane
