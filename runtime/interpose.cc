// SPDX-License-Identifier: Apache-2.0
// The exported entry points, one per row of interposed.def.  Nothing else of this library is
// visible.
//
// What must hold here (STYLE R8-R11):
//  * No logic: a stub tests one thread-local byte and calls the wrapper or the real function.
//  * It may run before any constructor, in a thread without a slot, in a signal handler, and inside
//    dlsym (which allocates, and the allocator locks mutexes): then it resolves its own symbol
//    only.
//  * Nothing allocates, throws, or uses a guard variable.
#include "runtime/inside.h"
#include "runtime/real.h"
#include "runtime/thread.h"
#include "runtime/types.h"
#include "runtime/wrappers.h"

#define CRANE_EXPORT extern "C" __attribute__((visibility("default"), used))
#define CRANE_UNLIKELY(x) __builtin_expect((x), 0)
#define CRANE_RESOLVE(name, version)                                                         \
  if (CRANE_UNLIKELY(crane::real::name == nullptr)) {                                        \
    crane::real::name =                                                                      \
        reinterpret_cast<decltype(crane::real::name)>(crane::real::resolve(#name, version)); \
  }
#define CRANE_REST(last)                             \
  va_list list;                                      \
  va_start(list, last);                              \
  long rest[6];                                      \
  for (long& word : rest) word = va_arg(list, long); \
  va_end(list)

#define INTERPOSE(kind, name, result, params, args, version) \
  CRANE_EXPORT result name params {                          \
    if (CRANE_UNLIKELY(crane::InsideCrane::inside())) {      \
      CRANE_RESOLVE(name, version)                           \
      return crane::real::name args;                         \
    }                                                        \
    crane::InsideCrane inside;                               \
    crane::self.caller = __builtin_return_address(0);        \
    return crane::wrap::name args;                           \
  }
#define INTERPOSE_VOID(kind, name, params, args, version) \
  INTERPOSE(kind, name, void, params, args, version)
#define INTERPOSE_NORETURN(kind, name, params, args, version) \
  CRANE_EXPORT __attribute__((noreturn)) void name params {   \
    if (CRANE_UNLIKELY(crane::InsideCrane::inside())) {       \
      CRANE_RESOLVE(name, version)                            \
      crane::real::name args;                                 \
      __builtin_unreachable();                                \
    }                                                         \
    crane::InsideCrane inside;                                \
    crane::wrap::name args;                                   \
  }
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  CRANE_EXPORT result name params {                                                         \
    CRANE_REST(last);                                                                       \
    if (CRANE_UNLIKELY(crane::InsideCrane::inside())) {                                     \
      CRANE_RESOLVE(name, version)                                                          \
      return crane::real::name args;                                                        \
    }                                                                                       \
    crane::InsideCrane inside;                                                              \
    crane::self.caller = __builtin_return_address(0);                                       \
    return crane::wrap::name given;                                                         \
  }
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version) \
  CRANE_EXPORT result name params {                                              \
    va_list rest;                                                                \
    va_start(rest, last);                                                        \
    const result answer = crane::wrap::name args;                                \
    va_end(rest);                                                                \
    return answer;                                                               \
  }
#define INTERPOSE_LATE(kind, name, result, params, args, version) \
  CRANE_EXPORT result name params { return crane::wrap::name args; }
#define INTERPOSE_JUMP(kind, name, result, params, args, version)
#define INTERPOSE_OWN(kind, name, result, params, args, version) \
  CRANE_EXPORT result name params {                              \
    CRANE_RESOLVE(name, version)                                 \
    return crane::wrap::name args;                               \
  }

#include "runtime/interposed.def"

// sigsetjmp returns twice, so its stub ends with a jump to the real one, which crane_note_jump
// (wrap_jump.cc) returns; the caller's arguments and stack are as they were.
asm(R"(
  .pushsection .text
  .globl __sigsetjmp
  .type __sigsetjmp, @function
  .balign 16
__sigsetjmp:
  endbr64
  push %rdi
  push %rsi
  sub $8, %rsp
  call crane_note_jump
  add $8, %rsp
  pop %rsi
  pop %rdi
  jmp *%rax
  .size __sigsetjmp, . - __sigsetjmp
  .popsection
)");
