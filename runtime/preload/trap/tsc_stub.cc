// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/tsc_stub.h"

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/instruction.h"
#include "dmt/tuning.h"
#include "runtime/preload/ground/assembler.h"

namespace crane::tsc {

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
  Assembler a(place, out.code, sizeof out.code);
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
  out.after = a.size();
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
  out.size = a.size();
  return true;
}

void build_jump(std::uintptr_t site, std::uintptr_t place, unsigned char (&out)[kJump]) noexcept {
  const auto distance = static_cast<std::uint32_t>(place - (site + kJump));
  out[0] = 0xe9;
  std::memcpy(out + 1, &distance, sizeof distance);
  CRANE_ASSERT(out[sizeof kRead] == kBreak);
}

}  // namespace crane::tsc
