// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/tsc_stub.h"

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/tuning.h"
#include "runtime/preload/trap/instruction.h"

namespace crane::tsc {
namespace {

// Code that is put together from left to right.
class Assembler {
 public:
  Assembler(std::uintptr_t place, Stub& out) noexcept : place_(place), out_(out) { out_.size = 0; }

  template <typename... Bytes>
  void put(Bytes... bytes) noexcept {
    const unsigned char code[] = {static_cast<unsigned char>(bytes)...};
    append(code, sizeof code);
  }
  // An instruction whose operand is the thread's word.
  template <typename... Bytes>
  void put_word(std::int32_t word, Bytes... bytes) noexcept {
    put(0x64, bytes..., 0x25);
    append(&word, sizeof word);
  }
  // A jump of two bytes whose target comes later; returns what bind() wants.
  std::size_t put_forward(unsigned char code) noexcept {
    put(code, 0);
    return out_.size;
  }
  void bind(std::size_t behind_jump) noexcept {
    out_.code[behind_jump - 1] = static_cast<unsigned char>(out_.size - behind_jump);
  }
  void put_back(std::size_t target) noexcept { put(0xeb, target - (out_.size + 2)); }
  void put_jump(std::uintptr_t target) noexcept {
    const auto distance = static_cast<std::uint32_t>(target - (here() + kJump));
    put(0xe9);
    append(&distance, sizeof distance);
  }
  void put_flags() noexcept { put(0x04, 0x7f, 0x9e); }  // add $0x7f, %al: overflow; sahf: the rest
  void append(const void* bytes, std::size_t size) noexcept {
    CRANE_ASSERT(out_.size + size <= kStubMax);
    std::memcpy(out_.code + out_.size, bytes, size);
    out_.size += size;
  }
  std::uintptr_t here() const noexcept { return place_ + out_.size; }

 private:
  const std::uintptr_t place_;
  Stub& out_;
};

bool reaches(std::uintptr_t from, std::uintptr_t to) noexcept {
  constexpr std::int64_t kReach = INT32_MAX - 4096;  // whatever is within one of the two ends
  const auto distance = static_cast<std::int64_t>(to - from);
  return distance > -kReach && distance < kReach;
}

// The same address, from another place.  False: it is out of reach.
bool move_displacement(unsigned char* field, std::uintptr_t from, std::uintptr_t to) noexcept {
  std::int32_t distance = 0;
  std::memcpy(&distance, field, sizeof distance);
  const std::int64_t moved = distance + static_cast<std::int64_t>(from - to);
  if (moved != static_cast<std::int32_t>(moved)) return false;
  distance = static_cast<std::int32_t>(moved);
  std::memcpy(field, &distance, sizeof distance);
  return true;
}

}  // namespace

std::uintptr_t next_place(std::uintptr_t site, std::uintptr_t from) noexcept {
  constexpr std::uintptr_t kPeriod = 0x10000, kBegin = std::uintptr_t{kBreak} << 8, kWindow = 0x100;
  const std::uintptr_t distance = from - (site + kJump);
  const std::uintptr_t within = distance & (kPeriod - 1);
  if (within < kBegin) return from + (kBegin - within);
  return within < kBegin + kWindow ? from : from + (kPeriod - within) + kBegin;
}

bool build(std::uintptr_t site, const unsigned char* code, std::uintptr_t place,
           const ThreadWords& words, Stub& out) noexcept {
  const std::uintptr_t behind = site + sizeof kRead;
  const Move move = move_of(code + sizeof kRead);
  if (move.length < kJump - sizeof kRead || !reaches(site, place)) return false;
  Assembler a(place, out);
  a.put(0x9f, 0x0f, 0x90, 0xc0);                      // lahf; seto %al
  a.put_word(words.application, 0x80, 0x3c);          // cmpb $0, application
  a.put(0);                                           //
  const std::size_t inside = a.put_forward(0x74);     // je trap
  a.put_word(words.reads, 0x83, 0x3c);                // cmpl $limit, reads
  static_assert(dmt::kClockReadsPerTurn - 1 < 0x80);  // it is a signed byte
  a.put(dmt::kClockReadsPerTurn - 1);                 //
  const std::size_t turn = a.put_forward(0x73);       // jae trap
  a.put_word(words.reads, 0xff, 0x04);                // incl reads
  a.put_word(words.now, 0x48, 0xff, 0x04);            // incq now
  a.put_flags();                                      //
  a.put_word(words.now, 0x8b, 0x04);                  // mov now, %eax
  a.put_word(words.now + 4, 0x8b, 0x14);              // mov now+4, %edx
  out.after = out.size;
  const std::uintptr_t moved = a.here();
  a.append(code + sizeof kRead, move.length);
  if (move.displacement != 0 &&
      !move_displacement(out.code + out.after + move.displacement, behind, moved)) {
    return false;
  }
  a.put_jump(behind + move.length);
  a.bind(inside);
  a.bind(turn);
  a.put_flags();
  a.append(kRead, sizeof kRead);
  a.put_back(out.after);
  return true;
}

void build_jump(std::uintptr_t site, std::uintptr_t place, unsigned char (&out)[kJump]) noexcept {
  const auto distance = static_cast<std::uint32_t>(place - (site + kJump));
  out[0] = 0xe9;
  std::memcpy(out + 1, &distance, sizeof distance);
  CRANE_ASSERT(out[sizeof kRead] == kBreak);
}

}  // namespace crane::tsc
