// SPDX-License-Identifier: Apache-2.0
// pthread_once and call_once. The routine is the application's and runs between turns; other
// threads wait in the scheduler (trap 1).
//
// Rules:
// * If cancellation, pthread_exit or a C++ exception leaves the routine, the variable is as if the
//   routine had never run (POSIX). This library has no exceptions, so the routine is called through
//   a few instructions with unwinding information that names a personality function. The unwinder
//   calls this function when it passes; no other part of the C++ runtime is needed.
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/blocking.h"

namespace crane {
namespace {

constexpr int kOnceFresh = 0, kOnceRunning = 1, kOnceDone = 2;  // done as in glibc

// A running routine, on its caller's stack; the last one is first.
struct Running {
  int* state;
  Running* outer;
};
thread_local constinit Running* running = nullptr;

}  // namespace

// The personality function that the unwinder calls (the Itanium C++ ABI, section 1.6.2).
extern "C" __attribute__((visibility("hidden"))) int crane_routine_left(int, int actions,
                                                                        std::uint64_t, void*,
                                                                        void*) noexcept {
  constexpr int kCleanupPhase = 2, kContinue = 8;
  if ((actions & kCleanupPhase) == 0 || running == nullptr || self.slot == dmt::kNone) {
    return kContinue;
  }
  const bool was_inside = InsideCrane::inside();
  InsideCrane::set_inside();
  {
    Turn turn(Op::pthread_once);
    int* const state = running->state;
    running = running->outer;
    __atomic_store_n(state, kOnceFresh, __ATOMIC_RELEASE);
    dmt::signal(turn.w, object_of(state, false), dmt::kAll);
  }
  if (!was_inside) InsideCrane::set_outside();
  return kContinue;
}

extern "C" __attribute__((visibility("hidden"))) void crane_call_routine(InitRoutine routine);

// 0x1b: a signed 32-bit offset from its own position.
asm(R"(
.text
.p2align 4
.hidden crane_call_routine
.type crane_call_routine, @function
crane_call_routine:
  .cfi_startproc
  .cfi_personality 0x1b, crane_routine_left
  subq $8, %rsp
  .cfi_def_cfa_offset 16
  call *%rdi
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
.size crane_call_routine, . - crane_call_routine
)");

namespace {

void run_once(Op op, int* state, InitRoutine routine) noexcept {
  if (!is_parallel() && __atomic_load_n(state, __ATOMIC_ACQUIRE) == kOnceDone) return;
  Turn turn(op);
  const std::uint64_t object = object_of(state, false);
  while (*state == kOnceRunning) block(turn, object);
  if (*state == kOnceDone) return;
  *state = kOnceRunning;
  turn.result(1);
  turn.put();
  {
    Running frame{state, running};
    running = &frame;
    const OutsideCrane outside;
    crane_call_routine(routine);
    running = frame.outer;
  }
  turn.take();
  __atomic_store_n(state, kOnceDone, __ATOMIC_RELEASE);
  dmt::signal(turn.w, object, dmt::kAll);
}

}  // namespace

namespace wrap {

int pthread_once(pthread_once_t* o, InitRoutine f) {
  run_once(Op::pthread_once, o, f);
  return 0;
}

void call_once(once_flag* o, InitRoutine f) {
  run_once(Op::call_once, reinterpret_cast<int*>(o), f);
}

}  // namespace wrap
}  // namespace crane
