// SPDX-License-Identifier: Apache-2.0
// Jumps: siglongjmp and setcontext restore the virtual mask that sigsetjmp and getcontext stored
// (the kernel's mask never changes). It is kept in libc's own buffers, in words that the kernel's
// mask does not use.
#include <bit>

#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/self/signal_stack.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace {

// Words of the 1024-bit mask in libc's buffer; the kernel fills only the first.
constexpr int kMaskAt = 14, kMarkAt = 15;
constexpr unsigned long kMark = 0x6a756d706d61736b;  // "jumpmask"

unsigned long mark_of(const struct __jmp_buf_tag* e) noexcept {
  return kMark ^ reinterpret_cast<unsigned long>(e);
}

// libc stores it scrambled with a word of the thread.
std::uintptr_t stack_pointer_of(const struct __jmp_buf_tag* e) noexcept {
  constexpr int kStackPointerAt = 6, kRotation = 17;
  std::uintptr_t guard = 0;
  asm("mov %%fs:0x30, %0" : "=r"(guard));
  return std::rotr(static_cast<std::uintptr_t>(e->__jmpbuf[kStackPointerAt]), kRotation) ^ guard;
}

[[noreturn]] void jump(void (*real_jump)(struct __jmp_buf_tag*, int), struct __jmp_buf_tag* e,
                       int v) noexcept {
  // Buffers without a mask may end before these words (those of pthread_cleanup_push do).
  if (e->__mask_was_saved != 0 && e->__saved_mask.__val[kMarkAt] == mark_of(e)) {
    Turn turn(Op::siglongjmp);
    exchange_mask(turn.w, e->__saved_mask.__val[kMaskAt]);
  }
  const std::uintptr_t target = stack_pointer_of(e);
  signal_stack::jump_to(target);
  ScratchMemory::forget_left_behind(target);
  InsideCrane::set_outside();  // INSIDE-1: the jump skips destructors in our frames
  real_jump(e, v);
  __builtin_unreachable();
}

}  // namespace

// Called by the assembly stub: stores the mask and returns the address to jump to.
extern "C" __attribute__((visibility("hidden"), used)) void* crane_note_jump(
    struct __jmp_buf_tag* e, int saves_mask) noexcept {
  if (self.slot != dmt::kNone && saves_mask != 0) {
    // The thread's own mask: no other thread changes it, so this needs no turn.
    e->__saved_mask.__val[kMaskAt] = without_turn().slots[self.slot].blocked_signals;
    e->__saved_mask.__val[kMarkAt] = mark_of(e);
  }
  return reinterpret_cast<void*>(real::__sigsetjmp.get());
}

// --- contexts ------------------------------------------------------------------------------------

namespace {

// Words of the context's mask that the kernel, which has 64 signals, does not use.
constexpr int kContextMaskAt = 1, kContextMarkAt = 2;

unsigned long mark_of(const ucontext_t* c) noexcept {
  return kMark ^ reinterpret_cast<unsigned long>(c);
}

void note_mask(ucontext_t* c) noexcept {
  if (self.slot == dmt::kNone) return;
  c->uc_sigmask.__val[kContextMaskAt] = without_turn().slots[self.slot].blocked_signals;
  c->uc_sigmask.__val[kContextMarkAt] = mark_of(c);
}

// Sets the thread's mask to the mask of the context plus the signals that the program added since.
void take_mask(ucontext_t* c) noexcept {
  if (self.slot == dmt::kNone || c->uc_sigmask.__val[kContextMarkAt] != mark_of(c)) return;
  c->uc_sigmask.__val[kContextMaskAt] |= c->uc_sigmask.__val[0];
  c->uc_sigmask.__val[0] = 0;  // the kernel's mask blocks nothing
  if (InsideCrane::inside()) return;
  const InsideCrane inside;
  Turn turn(Op::setcontext);
  exchange_mask(turn.w, c->uc_sigmask.__val[kContextMaskAt]);
}

}  // namespace

// Called by the assembly stubs, as crane_note_jump.
extern "C" __attribute__((visibility("hidden"), used)) void* crane_note_context(
    ucontext_t* c) noexcept {
  note_mask(c);
  return reinterpret_cast<void*>(real::getcontext.get());
}

extern "C" __attribute__((visibility("hidden"), used)) void* crane_enter_context(
    ucontext_t* c) noexcept {
  take_mask(c);
  return reinterpret_cast<void*>(real::setcontext.get());
}

extern "C" __attribute__((visibility("hidden"), used)) void* crane_swap_context(
    ucontext_t* c, ucontext_t* next) noexcept {
  note_mask(c);
  take_mask(next);
  return reinterpret_cast<void*>(real::swapcontext.get());
}

namespace wrap {

void siglongjmp(struct __jmp_buf_tag* e, int v) { jump(real::siglongjmp.get(), e, v); }
void longjmp(struct __jmp_buf_tag* e, int v) { jump(real::longjmp.get(), e, v); }
void _longjmp(struct __jmp_buf_tag* e, int v) { jump(real::_longjmp.get(), e, v); }
void __longjmp_chk(struct __jmp_buf_tag* e, int v) {
  // A jump from the alternate stack may lead upwards. libc would query the kernel, which does not
  // know the program's alternate stack.
  jump(signal_stack::on_alternate() ? real::longjmp.get() : real::__longjmp_chk.get(), e, v);
}

}  // namespace wrap
}  // namespace crane
