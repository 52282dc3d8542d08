// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stacks on which the kernel's signals arrive. Each thread has two, and next to them the area
// of scratch.h:
//
//   entry      the kernel's alternate stack (sigaltstack): every handler of ours begins on it, so
//              a program's stack may have overflowed, or have no room for the kernel's frame
//   operation  for a system call or a soft barrier that came as a signal. It may block and run
//              handlers of the program; the system calls of these arrive on the entry stack
//
// A handler moves its frame, so that the entry stack is free before signals can nest: to the
// operation stack, or to where the kernel would have run the program's handler.
//
// The kernel does not get the program's own alternate stack. It is stored in the thread block, and
// handlers with SA_ONSTACK are called on it. As in the kernel, the stack pointer shows whether a
// thread is on it, because a handler may jump out of it.
//
// Threads: each has its own; `map` is for a thread to come.
//
// INVARIANT STACK-1  No frame of ours is live on the entry stack while the program's code runs.
// INVARIANT STACK-2  A handler of ours that interrupts another one on the entry stack stays there,
//     because the outer one may itself have interrupted an operation, whose frame ends at `next`.

#include <ucontext.h>

#include <csignal>
#include <cstddef>
#include <cstdint>

namespace crane::signal_stack {

using Continuation = void (*)(int signo, siginfo_t* info, void* context);

// An operation that came as a signal, innermost first. A jump out of a handler ends some.
struct Level {
  Level* outer;
  std::uintptr_t interrupted;  // the program's stack pointer
  std::uintptr_t next, program;
};

// The state of a thread (ThreadBlock).
struct Stacks {
  std::uintptr_t memory = 0;   // the mapping; 0: none
  std::uintptr_t next = 0;     // upper bound of the next operation's frame
  std::uintptr_t program = 0;  // on the operation stack: the program's stack pointer; else 0
  Level* level = nullptr;
  bool was_inside = false;                    // from a fault's entry to its continuation
  stack_t alternate{nullptr, SS_DISABLE, 0};  // the program's
};

inline constexpr std::size_t kScratchBytes = 256 * 1024;

// Maps a thread's stacks and its scratch area; null: the kernel has no memory.
void* map() noexcept;
void unmap(void* memory) noexcept;

// Makes the calling thread's signals arrive on these stacks.
void arm(void* memory) noexcept;
// Called when the thread ends: frees its stacks unless it runs on them.
void disarm() noexcept;

// Continues on the calling thread's operation stack or, if that has no room, below the program's
// frames. Returns when the frame cannot or must not be moved (STACK-2); the caller then continues
// in place.
void move_to_operation(Continuation f, int signo, siginfo_t* info, void* context) noexcept;

// Continues where the kernel would have called the program's handler `action`. False: that stack
// has no room, so the program must die. Returns true when the frame cannot be moved.
bool move_to_program(const struct sigaction& action, Continuation f, int signo, siginfo_t* info,
                     void* context) noexcept;

// The scope of an operation that came as a signal.
class Operation {
 public:
  explicit Operation(const void* context) noexcept;
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  Level level_;
};

// The scope of a call of the program's code. `below`: frames of ours end above this address.
class ProgramCode {
 public:
  explicit ProgramCode(std::uintptr_t below) noexcept;
  ~ProgramCode();
  ProgramCode(const ProgramCode&) = delete;
  ProgramCode& operator=(const ProgramCode&) = delete;

 private:
  const std::uintptr_t next_, program_;
};

// Calls the program's handler on its stack: the alternate one, that of the interrupted program, or
// the caller's.
void call_handler(const struct sigaction& action, int signo, siginfo_t* info,
                  void* context) noexcept;

// sigaltstack(2) for the program: 0 or an error number.
int exchange_alternate(const stack_t* wanted, stack_t* old) noexcept;
bool on_alternate() noexcept;

// The program's stack pointer, whichever stack the calling thread is on.
std::uintptr_t program_pointer() noexcept;
// Returns the calling thread's area; null: it has none.
std::byte* scratch_area() noexcept;

// Called when the program jumps to where its stack pointer was `target`.
void jump_to(std::uintptr_t target) noexcept;
// Whether this jump abandons a frame of ours that began where the program's was `interrupted`.
bool is_left_behind(std::uintptr_t interrupted, std::uintptr_t target) noexcept;

}  // namespace crane::signal_stack
