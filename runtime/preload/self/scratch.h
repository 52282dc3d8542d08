// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for the duration of a call of ours: vectors, paths, chunks of bytes. It is not on the
// program's stack, which may belong to a thread of PTHREAD_STACK_MIN or to a handler with 16 KB.
// Linux needs a few hundred bytes of stack for a system call, and so does Crane (the Makefile's
// -Wframe-larger-than).
//
// Each thread has an area next to its signal stacks (signal_stack.h), used as a stack. If the
// thread has no area, or the area has no room (calls within handlers within calls), the memory is
// pages of the kernel. A program that jumps out of a handler abandons calls of ours; their memory
// becomes free again (forget_left_behind).
//
// Threads: each has its own.
//
// INVARIANT SCRATCH-1  Returning a piece also returns all pieces that were taken after it: they
//     belong to inner calls, or to calls that a jump has abandoned.

#include <cstddef>
#include <cstdint>
#include <new>

namespace crane {

// The state of a thread's area (ThreadBlock).
struct ScratchState {
  static constexpr std::uint32_t kPiecesMax = 32;
  struct Piece {
    std::uintptr_t program;  // the program's stack pointer, to detect jumps
    std::size_t begin;
  };
  std::uint32_t pieces = 0;
  std::size_t used = 0;  // bytes
  Piece piece[kPiecesMax] = {};
};

class ScratchMemory {
 public:
  // Ends the process when the kernel has no memory, because the call is half done.
  explicit ScratchMemory(std::size_t bytes) noexcept;
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  void* data() const noexcept { return data_; }

  // Called when the program jumps to where its stack pointer was `target`.
  static void forget_left_behind(std::uintptr_t target) noexcept;

 private:
  void* data_ = nullptr;
  std::size_t page_bytes_ = 0;  // size of the kernel's pages; 0: piece_ of the area
  std::uint32_t piece_ = 0;
};

// `count` elements, initialised only if their type does so.
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
