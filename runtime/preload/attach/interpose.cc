// SPDX-License-Identifier: Apache-2.0
// The exported entry points, one per row of interposed.def. Nothing else of this library is
// visible.
//
// Rules:
// * No logic: a stub tests one thread-local byte and calls the wrapper or the real function.
// * A stub may run before any constructor, in a thread without a slot, in a signal handler, and
//   inside dlsym (which allocates, and the allocator locks mutexes). It then resolves only its own
//   symbol.
// * Nothing allocates, throws, or uses a guard variable.
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/own_arguments.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/threads/thread_life.h"
#include "runtime/preload/trap/seccomp_check.h"

using crane::Descriptor;
using crane::Directory;

// The table for wrap_dlsym.cc: each name, and the stub's address under a name that no other object
// can have taken. The entries are relative to their own position, so ld.so need not relocate them
// when a program starts, and their pages stay those of the file.
asm(R"(
  .macro crane_name name
  .pushsection .rodata.str1.1, "aMS", @progbits, 1
1:
  .string "\name"
  .popsection
  .set crane_stub_\name, \name
  .pushsection crane_stubs, "a", @progbits
  .balign 4
  .long 1b - ., crane_stub_\name - .
  .popsection
  .endm
)");
#define CRANE_NAME(name) asm("crane_name " #name);
#define CRANE_EXPORT(name) CRANE_NAME(name) extern "C" __attribute__((visibility("default"), used))
#define CRANE_UNLIKELY(x) __builtin_expect((x), 0)
#define CRANE_REAL(name)                                     \
  crane::look_for_stray_thread(__builtin_return_address(0)); \
  crane::real::name.require();
#define CRANE_REST(last)                             \
  va_list list;                                      \
  va_start(list, last);                              \
  long rest[6];                                      \
  for (long& word : rest) word = va_arg(list, long); \
  va_end(list)

// A call that the thread's seccomp filters refuse.
#define CRANE_JUDGED(name, result, args)                                                         \
  if constexpr (crane::sandbox::number_of(crane::Op::name) >= 0) {                               \
    if (CRANE_UNLIKELY(crane::is_filtered())) {                                                  \
      constexpr long number = crane::sandbox::number_of(crane::Op::name);                        \
      const crane::sandbox::Words words = crane::sandbox::words args;                            \
      if (crane::sandbox::refuses(number, words)) {                                              \
        return crane::sandbox::result_of<result>(crane::sandbox::pass_to_kernel(number, words)); \
      }                                                                                          \
    }                                                                                            \
  }

// A call that names a descriptor of ours (OWN-FD-1).
#define CRANE_OWN_ARGUMENTS(name, result, args)                                                   \
  {                                                                                               \
    constexpr auto own_arguments = crane::own::arguments_of(crane::Op::name);                     \
    if constexpr (!own_arguments.none()) {                                                        \
      if (CRANE_UNLIKELY(crane::own::is_named<own_arguments>(crane::sandbox::words args.word))) { \
        return crane::own::no_such_descriptor<crane::Op::name, result>();                         \
      }                                                                                           \
    }                                                                                             \
  }

// The child of vfork writes above the frame of the stub and the return address.
#define CRANE_CALLER_STACK(name)                                                          \
  if constexpr (crane::Op::name == crane::Op::vfork) {                                    \
    crane::self.caller_stack =                                                            \
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) + 2 * sizeof(void*); \
  }

#define INTERPOSE(kind, name, result, params, args, version) \
  CRANE_EXPORT(name) result name params {                    \
    if (CRANE_UNLIKELY(crane::InsideCrane::inside())) {      \
      CRANE_REAL(name)                                       \
      return crane::real::name args;                         \
    }                                                        \
    CRANE_JUDGED(name, result, args)                         \
    CRANE_OWN_ARGUMENTS(name, result, args)                  \
    crane::InsideCrane inside;                               \
    crane::self.caller = __builtin_return_address(0);        \
    CRANE_CALLER_STACK(name)                                 \
    return crane::wrap::name args;                           \
  }
#define INTERPOSE_VOID(kind, name, params, args, version) \
  INTERPOSE(kind, name, void, params, args, version)
#define INTERPOSE_NORETURN(kind, name, params, args, version)     \
  CRANE_EXPORT(name) __attribute__((noreturn)) void name params { \
    if (CRANE_UNLIKELY(crane::InsideCrane::inside())) {           \
      CRANE_REAL(name)                                            \
      crane::real::name args;                                     \
      __builtin_unreachable();                                    \
    }                                                             \
    crane::InsideCrane inside;                                    \
    crane::wrap::name args;                                       \
  }
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  CRANE_EXPORT(name) result name params {                                                   \
    CRANE_REST(last);                                                                       \
    if (CRANE_UNLIKELY(crane::InsideCrane::inside())) {                                     \
      CRANE_REAL(name)                                                                      \
      return crane::real::name args;                                                        \
    }                                                                                       \
    CRANE_OWN_ARGUMENTS(name, result, given)                                                \
    crane::InsideCrane inside;                                                              \
    crane::self.caller = __builtin_return_address(0);                                       \
    return crane::wrap::name given;                                                         \
  }
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version) \
  CRANE_EXPORT(name) result name params {                                        \
    va_list rest;                                                                \
    CRANE_OWN_ARGUMENTS(name, result, args)                                      \
    va_start(rest, last);                                                        \
    const result answer = crane::wrap::name args;                                \
    va_end(rest);                                                                \
    return answer;                                                               \
  }
#define INTERPOSE_LATE(kind, name, result, params, args, version) \
  CRANE_EXPORT(name) result name params { return crane::wrap::name args; }
#define INTERPOSE_JUMP(kind, name, result, params, args, version) CRANE_NAME(name)
#define INTERPOSE_OWN(kind, name, result, params, args, version) \
  CRANE_EXPORT(name) result name params {                        \
    crane::real::name.require();                                 \
    return crane::wrap::name args;                               \
  }
#define INTERPOSE_SECOND(kind, name, function) \
  asm(".globl " #name                          \
      "\n"                                     \
      ".type " #name                           \
      ", @function\n"                          \
      ".set " #name ", " #function "\n");      \
  CRANE_NAME(name)

#include "runtime/preload/ground/interposed.def"

// sigsetjmp returns twice, and contexts belong to the callers. So these stubs end with a jump to
// the real function, which the function that they call first returns (wrap_jump.cc). The caller's
// arguments and stack are unchanged.
#define CRANE_JUMP_STUB(name, note) \
  asm(".pushsection .text\n"        \
      ".globl " name                \
      "\n"                          \
      ".type " name                 \
      ", @function\n"               \
      ".balign 16\n" name           \
      ":\n"                         \
      "endbr64\n"                   \
      "push %rdi\n"                 \
      "push %rsi\n"                 \
      "sub $8, %rsp\n"              \
      "call " note                  \
      "\n"                          \
      "add $8, %rsp\n"              \
      "pop %rsi\n"                  \
      "pop %rdi\n"                  \
      "jmp *%rax\n"                 \
      ".size " name ", . - " name   \
      "\n"                          \
      ".popsection\n")

CRANE_JUMP_STUB("__sigsetjmp", "crane_note_jump");
CRANE_JUMP_STUB("getcontext", "crane_note_context");
CRANE_JUMP_STUB("setcontext", "crane_enter_context");
CRANE_JUMP_STUB("swapcontext", "crane_swap_context");

// dlsym examines its caller (RTLD_NEXT). So if crane_look_up (wrap_dlsym.cc) has no answer, the
// stub jumps to the real dlsym, which crane_look_up also returns. Arguments, stack and caller are
// unchanged.
asm(R"(
  .pushsection .text
  .globl dlsym
  .type dlsym, @function
  .balign 16
dlsym:
  .cfi_startproc
  endbr64
  push %rdi
  .cfi_adjust_cfa_offset 8
  push %rsi
  .cfi_adjust_cfa_offset 8
  sub $8, %rsp
  .cfi_adjust_cfa_offset 8
  call crane_look_up
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop %rsi
  .cfi_adjust_cfa_offset -8
  pop %rdi
  .cfi_adjust_cfa_offset -8
  test %rax, %rax
  jz 1f
  ret
1:
  jmp *%rdx
  .cfi_endproc
  .size dlsym, . - dlsym
  .popsection
)");
