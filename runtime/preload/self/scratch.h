// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that a call of ours needs while it is done: vectors, paths, chunks of bytes.  It is none
// of the program's stack, which may be a thread of PTHREAD_STACK_MIN or a handler's 16 KB: Linux
// needs a few hundred bytes of it for a system call, and so do we
// (-Wframe-larger-than, Libcrane.cmake).
//
// Each thread has an area of its own beside its signal stacks (signal_stack.h), used as a stack.
// Where that has no room - a thread without one, calls within handlers within calls - the kernel is
// asked for pages.  A program that jumps out of a handler leaves calls of ours behind: their memory
// is free again (forget_left_behind).
//
// Threads: each has its own.
//
// INVARIANT SCRATCH-1  Who gives its piece back gives back all that were taken after it: they
// belong
//                to calls inside of its own, or to calls that a jump has left behind.

#include <cstddef>
#include <cstdint>
#include <new>

namespace crane {

// What a thread keeps of its area (ThreadBlock).
struct ScratchState {
  static constexpr std::uint32_t kPiecesMax = 32;
  struct Piece {
    std::uintptr_t program;  // the program's stack pointer, by which a jump is judged
    std::size_t begin;
  };
  std::uint32_t pieces = 0;
  std::size_t used = 0;  // bytes
  Piece piece[kPiecesMax] = {};
};

class ScratchMemory {
 public:
  // Ends the process when the kernel has no memory: the call is half done.
  explicit ScratchMemory(std::size_t bytes) noexcept;
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  void* data() const noexcept { return data_; }

  // The program jumps to where its stack pointer was `target`.
  static void forget_left_behind(std::uintptr_t target) noexcept;

 private:
  void* data_ = nullptr;
  std::size_t page_bytes_ = 0;  // of the kernel's; 0: piece_ of the area
  std::uint32_t piece_ = 0;
};

// `count` elements, not initialised unless their type does it.
template <typename T>
class Scratch {
 public:
  explicit Scratch(std::size_t count = 1) noexcept
      : count_(count), memory_(count * sizeof(T)), data_(new (memory_.data()) T[count]) {}

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return count_; }
  T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  const std::size_t count_;
  const ScratchMemory memory_;
  T* const data_;
};

}  // namespace crane
