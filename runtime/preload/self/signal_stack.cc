// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/self/signal_stack.h"

#include <cerrno>
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "runtime/preload/ground/pages.h"
#include "runtime/preload/self/thread.h"

using Handler = void (*)(int, siginfo_t*, void*);
extern "C" void crane_call_on_stack(void* top, Handler handler, int signo, siginfo_t* info,
                                    void* context);
extern "C" [[noreturn]] void crane_continue_on(void* frame, Handler handler, int signo,
                                               siginfo_t* info, void* context);

// %rbp points to the frame, so unwinding passes from one stack to the other.
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

  .hidden crane_continue_on
  .globl crane_continue_on
  .type crane_continue_on, @function
  .balign 16
crane_continue_on:
  endbr64
  mov %rdi, %rsp
  mov %rsi, %rax
  mov %edx, %edi
  mov %rcx, %rsi
  mov %r8, %rdx
  jmp *%rax
  .size crane_continue_on, . - crane_continue_on
  .popsection
)");

namespace crane::signal_stack {
namespace {

constexpr std::uintptr_t kGuard = 4096;
constexpr std::uintptr_t kOperationBytes = 256 * 1024;
constexpr std::uintptr_t kEntryBytes = 64 * 1024;
constexpr std::uintptr_t kStackBytes = 2 * kGuard + kOperationBytes + kEntryBytes;
constexpr std::uintptr_t kBytes = kStackBytes + kScratchBytes;
constexpr std::uintptr_t kLeastRoom = 96 * 1024;  // stack that an operation may need
constexpr std::uintptr_t kRedZone = 128;          // written below the stack pointer
constexpr std::uintptr_t kPage = 4096;
constexpr int kAutoDisarm = static_cast<int>(1u << 31);  // SS_AUTODISARM
constexpr std::size_t kSmallest = 2048;                  // the kernel's MINSIGSTKSZ

std::uintptr_t word_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }
void* pointer_to(std::uintptr_t word) noexcept { return reinterpret_cast<void*>(word); }

std::uintptr_t operation_begin(const Stacks& s) noexcept { return s.memory + kGuard; }
std::uintptr_t operation_end(const Stacks& s) noexcept {
  return operation_begin(s) + kOperationBytes;
}
std::uintptr_t entry_begin(const Stacks& s) noexcept { return operation_end(s) + kGuard; }

bool is_on_operation(const Stacks& s, std::uintptr_t sp) noexcept {
  return s.memory != 0 && sp - operation_begin(s) <= kOperationBytes;
}

bool is_on_entry(const Stacks& s, std::uintptr_t sp) noexcept {
  return s.memory != 0 && sp - entry_begin(s) <= kEntryBytes;
}

bool is_on(const stack_t& stack, std::uintptr_t sp) noexcept {
  if ((stack.ss_flags & SS_DISABLE) != 0) return false;
  const std::uintptr_t begin = word_of(stack.ss_sp);
  return sp > begin && sp - begin <= stack.ss_size;
}

std::uintptr_t stack_pointer_of(const void* context) noexcept {
  return static_cast<std::uintptr_t>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
}

// --- moving a frame of the kernel's --------------------------------------------------------------

// From the return address below the context to the end of the floating-point state.
struct Frame {
  std::uintptr_t begin, end;
};

Frame frame_of(const void* context) noexcept {
  constexpr std::size_t kLegacyBytes = 512, kMagicAt = 464, kSizeAt = 468;
  constexpr std::uint32_t kMagic = 0x46505853;  // FP_XSTATE_MAGIC1
  const auto* registers = reinterpret_cast<const unsigned char*>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.fpregs);
  std::uint32_t magic = 0, size = 0;
  std::memcpy(&magic, registers + kMagicAt, sizeof magic);
  std::memcpy(&size, registers + kSizeAt, sizeof size);
  const std::size_t state = magic == kMagic ? size : kLegacyBytes;
  return {word_of(context) - sizeof(void*), word_of(registers) + state};
}

bool can_move(const void* context) noexcept {
  return !in_valgrind && self.stacks.memory != 0 &&
         static_cast<const ucontext_t*>(context)->uc_mcontext.fpregs != nullptr;
}

// Returns the begin of the frame when it is moved below `top` by a multiple of the alignment.
std::uintptr_t place_below(std::uintptr_t top, const Frame& frame) noexcept {
  constexpr std::uintptr_t kAlignment = 64;
  const std::uintptr_t moved_end = top - ((top - frame.end) & (kAlignment - 1));
  return moved_end - (frame.end - frame.begin);
}

// Whether the range is writable; tested by the kernel, because a stack may end there.
bool is_writable(std::uintptr_t begin, std::uintptr_t end) noexcept {
  for (std::uintptr_t at = end - 8; at >= begin; at -= kPage) {
    if (raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, at & ~7ul, 8) != 0) return false;
    if (at < begin + kPage) break;
  }
  return raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, begin & ~7ul, 8) == 0;
}

[[noreturn]] void move(const Frame& frame, std::uintptr_t to, Continuation f, int signo,
                       const siginfo_t* info, const void* context) noexcept {
  const std::uintptr_t by = to - frame.begin;
  std::memcpy(pointer_to(to), pointer_to(frame.begin), frame.end - frame.begin);
  auto* moved = static_cast<ucontext_t*>(pointer_to(word_of(context) + by));
  moved->uc_mcontext.fpregs =
      static_cast<fpregset_t>(pointer_to(word_of(moved->uc_mcontext.fpregs) + by));
  crane_continue_on(pointer_to(to), f, signo,
                    static_cast<siginfo_t*>(pointer_to(word_of(info) + by)), moved);
}

// Returns where the kernel would put a frame for `action`; nothing may be written above it.
std::uintptr_t top_for(const struct sigaction& action, std::uintptr_t interrupted) noexcept {
  const stack_t& alternate = self.stacks.alternate;
  const bool is_watched = (action.sa_flags & SA_ONSTACK) != 0;
  if (is_watched && (alternate.ss_flags & SS_DISABLE) == 0 && !is_on(alternate, interrupted)) {
    return word_of(alternate.ss_sp) + alternate.ss_size;
  }
  return interrupted - kRedZone;
}

// SS_AUTODISARM: the alternate stack is disabled while a handler runs on it, and set again
// afterwards.
void begin_on_alternate(std::uintptr_t top) noexcept {
  stack_t& alternate = self.stacks.alternate;
  if ((alternate.ss_flags & kAutoDisarm) == 0 || (alternate.ss_flags & SS_DISABLE) != 0) return;
  if (top == word_of(alternate.ss_sp) + alternate.ss_size) alternate = {nullptr, SS_DISABLE, 0};
}

}  // namespace

std::uintptr_t program_pointer() noexcept {
  return self.stacks.program != 0 ? self.stacks.program : word_of(__builtin_frame_address(0));
}

std::byte* scratch_area() noexcept {
  const std::uintptr_t memory = self.stacks.memory;
  return memory == 0 ? nullptr : static_cast<std::byte*>(pointer_to(memory + kStackBytes));
}

// --- a thread's stacks ---------------------------------------------------------------------------

void* map() noexcept {
  void* memory = map_pages(kBytes);
  if (memory == nullptr) return nullptr;
  const std::uintptr_t begin = word_of(memory);
  raw_syscall(SYS_mprotect, begin, kGuard, PROT_NONE);
  raw_syscall(SYS_mprotect, begin + kGuard + kOperationBytes, kGuard, PROT_NONE);
  return memory;
}

void unmap(void* memory) noexcept { raw_syscall(SYS_munmap, memory, kBytes); }

void arm(void* memory) noexcept {
  Stacks& s = self.stacks;
  s = Stacks{};
  if (memory == nullptr) return;
  s.memory = word_of(memory);
  s.next = operation_end(s);
  const stack_t entry{pointer_to(entry_begin(s)), 0, kEntryBytes};
  raw_syscall(SYS_sigaltstack, &entry, nullptr);
}

void disarm() noexcept {
  Stacks& s = self.stacks;
  const std::uintptr_t here = word_of(__builtin_frame_address(0));
  if (s.memory == 0 || here - s.memory < kBytes) return;
  const stack_t none{nullptr, SS_DISABLE, 0};
  raw_syscall(SYS_sigaltstack, &none, nullptr);
  unmap(pointer_to(s.memory));
  s.memory = 0;
}

// --- moving --------------------------------------------------------------------------------------

void move_to_operation(Continuation f, int signo, siginfo_t* info, void* context) noexcept {
  if (!can_move(context)) return;
  const Stacks& s = self.stacks;
  const Frame frame = frame_of(context);
  const std::uintptr_t interrupted = stack_pointer_of(context);
  if (is_on_entry(s, interrupted)) return;  // STACK-2
  const bool nested = is_on_operation(s, interrupted);
  std::uintptr_t to = place_below(nested ? interrupted - kRedZone : s.next, frame);
  // Jumps out of many handlers have used up the stack: acts as a kernel without alternate stacks.
  if (to < operation_begin(s) + kLeastRoom && !nested) {
    to = place_below(interrupted - kRedZone, frame);
  }
  move(frame, to, f, signo, info, context);
}

bool move_to_program(const struct sigaction& action, Continuation f, int signo, siginfo_t* info,
                     void* context) noexcept {
  if (!can_move(context)) return true;
  const Stacks& s = self.stacks;
  const Frame frame = frame_of(context);
  std::uintptr_t interrupted = stack_pointer_of(context);
  if (is_on_operation(s, interrupted) && s.program != 0) interrupted = s.program;
  const std::uintptr_t top = top_for(action, interrupted);
  const std::uintptr_t to = place_below(top, frame);
  const bool on_it = is_on(s.alternate, top);
  if (on_it && to < word_of(s.alternate.ss_sp)) return false;
  if (!is_writable(to, top)) return false;
  begin_on_alternate(top);
  move(frame, to, f, signo, info, context);
}

// --- nesting -------------------------------------------------------------------------------------

Operation::Operation(const void* context) noexcept
    : level_{self.stacks.level, stack_pointer_of(context), self.stacks.next, self.stacks.program} {
  Stacks& s = self.stacks;
  s.level = &level_;
  const bool on_ours = is_on_operation(s, word_of(__builtin_frame_address(0)));
  if (on_ours && !is_on_operation(s, level_.interrupted)) s.program = level_.interrupted;
}

Operation::~Operation() {
  Stacks& s = self.stacks;
  s.level = level_.outer;
  s.next = level_.next;
  s.program = level_.program;
}

ProgramCode::ProgramCode(std::uintptr_t below) noexcept
    : next_(self.stacks.next), program_(self.stacks.program) {
  Stacks& s = self.stacks;
  if (is_on_operation(s, below)) s.next = below;
  s.program = 0;
}

ProgramCode::~ProgramCode() {
  self.stacks.next = next_;
  self.stacks.program = program_;
}

void call_handler(const struct sigaction& action, int signo, siginfo_t* info,
                  void* context) noexcept {
  const std::uintptr_t interrupted = program_pointer();
  const std::uintptr_t top = top_for(action, interrupted);
  const bool elsewhere = self.stacks.program != 0 || top != interrupted - kRedZone;
  constexpr std::uintptr_t kOwnFrame = 1024, kAligned = ~std::uintptr_t{15};
  ProgramCode program_code(word_of(__builtin_frame_address(0)) - kOwnFrame);
  const stack_t alternate = self.stacks.alternate;
  begin_on_alternate(top);
  OutsideCrane outside;
  // A handler with one argument is in the same union and ignores the other arguments.
  if (elsewhere) {
    crane_call_on_stack(pointer_to(top & kAligned), action.sa_sigaction, signo, info, context);
  } else if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signo, info, context);
  } else {
    action.sa_handler(signo);
  }
  if ((alternate.ss_flags & kAutoDisarm) != 0) self.stacks.alternate = alternate;
}

// --- the program's alternate stack ---------------------------------------------------------------

bool on_alternate() noexcept { return is_on(self.stacks.alternate, program_pointer()); }

int exchange_alternate(const stack_t* wanted, stack_t* old) noexcept {
  stack_t& alternate = self.stacks.alternate;
  const stack_t before = alternate;
  const bool on_it = on_alternate();
  if (wanted != nullptr) {
    const stack_t next = *wanted;
    const int mode = next.ss_flags & ~kAutoDisarm;
    if (on_it) return EPERM;
    if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE) return EINVAL;
    if (mode == SS_DISABLE) {
      alternate = {nullptr, next.ss_flags, 0};
    } else {
      if (next.ss_size < kSmallest) return ENOMEM;
      alternate = {next.ss_sp, next.ss_flags & kAutoDisarm, next.ss_size};
    }
  }
  if (old != nullptr) {
    *old = before;
    if (on_it) old->ss_flags |= SS_ONSTACK;
  }
  return 0;
}

bool is_left_behind(std::uintptr_t interrupted, std::uintptr_t target) noexcept {
  const stack_t& alternate = self.stacks.alternate;
  const bool to_alternate = is_on(alternate, target);
  const bool was_alternate = is_on(alternate, interrupted);
  // A handler jumps within the alternate stack: the interrupted code continues later.
  if (to_alternate != was_alternate) return was_alternate;
  return target > interrupted;
}

void jump_to(std::uintptr_t target) noexcept {
  Stacks& s = self.stacks;
  while (s.level != nullptr && is_left_behind(s.level->interrupted, target)) {
    s.next = s.level->next;
    s.level = s.level->outer;
  }
  s.program = 0;
}

}  // namespace crane::signal_stack
