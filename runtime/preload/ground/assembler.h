// SPDX-License-Identifier: Apache-2.0
#pragma once
// Emits code from left to right for a known address.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dmt/base/assert.h"

namespace crane {

inline constexpr std::size_t kNearJump = 5;  // bytes of jmp and call with 32 bits

class Assembler {
 public:
  // The code goes to `out` and will run at `place`.
  Assembler(std::uintptr_t place, unsigned char* out, std::size_t room) noexcept
      : place_(place), out_(out), room_(room) {}

  template <typename... Bytes>
  void put(Bytes... bytes) noexcept {
    const unsigned char code[] = {static_cast<unsigned char>(bytes)...};
    append(code, sizeof code);
  }
  // Emits an instruction with an operand that is a word of the thread, relative to %fs.
  template <typename... Bytes>
  void put_word(std::int32_t word, Bytes... bytes) noexcept {
    put(0x64, bytes..., 0x25);
    append(&word, sizeof word);
  }
  // Emits a jump of two bytes with a target that follows later; returns the argument for bind().
  std::size_t put_forward(unsigned char code) noexcept {
    put(code, 0);
    return size_;
  }
  void bind(std::size_t behind_jump) noexcept {
    out_[behind_jump - 1] = static_cast<unsigned char>(size_ - behind_jump);
  }
  void put_back(std::size_t target) noexcept { put(0xeb, target - (size_ + 2)); }
  void put_jump(std::uintptr_t target) noexcept {
    put(0xe9);
    put_distance(target);
  }
  // Emits the last 32 bits of an instruction, the distance to `target`.
  void put_distance(std::uintptr_t target) noexcept {
    const auto distance = static_cast<std::uint32_t>(target - (here() + sizeof(std::uint32_t)));
    append(&distance, sizeof distance);
  }
  // Restores the flags that `lahf; seto %al` saved: add $0x7f, %al sets overflow, sahf the others.
  void put_flags() noexcept { put(0x04, 0x7f, 0x9e); }
  void append(const void* bytes, std::size_t size) noexcept {
    CRANE_ASSERT(size_ + size <= room_);
    std::memcpy(out_ + size_, bytes, size);
    size_ += size;
  }
  std::uintptr_t here() const noexcept { return place_ + size_; }
  std::size_t size() const noexcept { return size_; }

 private:
  const std::uintptr_t place_;
  unsigned char* const out_;
  const std::size_t room_;
  std::size_t size_ = 0;
};

// Whether 32-bit distances connect the two places, and all places within a page of them.
inline bool reaches(std::uintptr_t from, std::uintptr_t to) noexcept {
  constexpr std::int64_t kReach = INT32_MAX - 4096;
  const auto distance = static_cast<std::int64_t>(to - from);
  return distance > -kReach && distance < kReach;
}

// Adjusts the displacement at `field` of an instruction that moved from `from` to `to`. False: the
// target is out of reach.
inline bool move_displacement(unsigned char* field, std::uintptr_t from,
                              std::uintptr_t to) noexcept {
  std::int32_t distance = 0;
  std::memcpy(&distance, field, sizeof distance);
  const std::int64_t moved = distance + static_cast<std::int64_t>(from - to);
  if (moved != static_cast<std::int32_t>(moved)) return false;
  distance = static_cast<std::int32_t>(moved);
  std::memcpy(field, &distance, sizeof distance);
  return true;
}

}  // namespace crane
