// SPDX-License-Identifier: Apache-2.0
// Jumps out of signal handlers: siglongjmp restores the virtual mask that sigsetjmp saw (the kernel's
// never changes).  The mask is kept in libc's own buffer, in the words that the kernel's would use.
#include "runtime/inside.h"
#include "runtime/real.h"
#include "runtime/signals.h"
#include "runtime/turn.h"
#include "runtime/wrappers.h"

namespace crane {
namespace {

constexpr int kMarkAt = 15;
constexpr unsigned long kMark = 0x6a756d706d61736b;  // "jumpmask"

unsigned long mark_of(const struct __jmp_buf_tag* e) noexcept {
  return kMark ^ reinterpret_cast<unsigned long>(e);
}

// Registers rax and rdx.
struct Jump {
  void* target;
  long saves_mask;
};

[[noreturn]] void jump(void (*real_jump)(struct __jmp_buf_tag*, int), struct __jmp_buf_tag* e,
                       int v) noexcept {
  if (e->__saved_mask.__val[kMarkAt] == mark_of(e)) {
    Turn turn(Op::siglongjmp);
    exchange_mask(turn.w, e->__saved_mask.__val[0]);
  }
  InsideCrane::set_outside();  // I1: the frames of ours that are jumped over end nothing
  real_jump(e, v);
  __builtin_unreachable();
}

}  // namespace

// Called by the assembly stubs; `plain` 1 = _setjmp.
extern "C" __attribute__((visibility("hidden"), used)) Jump crane_note_jump(
    struct __jmp_buf_tag* e, int saves_mask, int plain) noexcept {
  if (real::__sigsetjmp == nullptr || real::_setjmp == nullptr) real::init();
  void* target = plain != 0 ? reinterpret_cast<void*>(real::_setjmp)
                            : reinterpret_cast<void*>(real::__sigsetjmp);
  if (self.slot == dmt::kNone) return {target, saves_mask};
  e->__saved_mask.__val[kMarkAt] = 0;
  if (saves_mask != 0) {
    // Its own mask: nobody else changes it, so this needs no turn.
    e->__saved_mask.__val[0] = world->slots[self.slot].blocked_signals;
    e->__saved_mask.__val[kMarkAt] = mark_of(e);
  }
  return {target, 0};
}

namespace wrap {

void siglongjmp(struct __jmp_buf_tag* e, int v) { jump(real::siglongjmp, e, v); }
void longjmp(struct __jmp_buf_tag* e, int v) { jump(real::longjmp, e, v); }
void _longjmp(struct __jmp_buf_tag* e, int v) { jump(real::_longjmp, e, v); }
void __longjmp_chk(struct __jmp_buf_tag* e, int v) { jump(real::__longjmp_chk, e, v); }

}  // namespace wrap
}  // namespace crane
