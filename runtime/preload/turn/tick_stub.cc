// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/tick_stub.h"

#include <cstring>

#include "dmt/base/instruction.h"

namespace crane::ticks {
namespace {

constexpr unsigned char kCall = 0xe8, kJump = 0xe9, kShortJump = 0xeb, kBreak = 0xcc, kNop = 0x90;
constexpr unsigned char kJumpIfNegative = 0x78;

bool is_short_condition(const unsigned char* code) noexcept { return (code[0] & 0xf0) == 0x70; }
bool is_condition(const unsigned char* code) noexcept {
  return code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
}

std::uintptr_t target_of(std::uintptr_t behind, const unsigned char* field,
                         std::size_t bytes) noexcept {
  std::int32_t distance = 0;
  if (bytes == 1) {
    distance = static_cast<signed char>(*field);
  } else {
    std::memcpy(&distance, field, sizeof distance);
  }
  return behind + static_cast<std::uintptr_t>(std::int64_t{distance});
}

// Returns the length of the call at `code`; 0: no call that a stub can replace.
std::size_t call_bytes(const unsigned char* code) noexcept {
  unsigned char jump[kInstructionMax];
  return code[0] == kCall ? kNearJump : jump_of_call(code, jump).length;
}

void put_count(Assembler& a, const TickPoint& point, std::int32_t left, Stub& out) noexcept {
  a.put_word(left, 0x48, 0x81, 0x2c);  // subq $weight, left
  out.weight = a.size();
  a.append(&point.weight_ps, sizeof point.weight_ps);
}

// Emits the instruction at `code`, which was at `at`. Returns its length; 0: it cannot be moved.
std::size_t put_moved(Assembler& a, std::uintptr_t at, const unsigned char* code) noexcept {
  if (code[0] == kShortJump || code[0] == kJump) {
    const std::size_t length = code[0] == kJump ? 5 : 2;
    const std::uintptr_t target = target_of(at + length, code + 1, length - 1);
    if (!reaches(a.here(), target)) return 0;
    a.put_jump(target);
    return length;
  }
  if (is_short_condition(code) || is_condition(code)) {
    const bool is_short = is_short_condition(code);
    const std::size_t length = is_short ? 2 : 6;
    const std::uintptr_t target =
        target_of(at + length, code + (is_short ? 1 : 2), is_short ? 1 : 4);
    if (!reaches(a.here(), target)) return 0;
    a.put(0x0f, 0x80 | ((is_short ? code[0] : code[1]) & 0x0f));
    a.put_distance(target);
    return length;
  }
  const Move move = move_of(code);
  if (move.length == 0) return 0;
  unsigned char moved[kInstructionMax];
  std::memcpy(moved, code, move.length);
  if (move.displacement != 0 && !move_displacement(moved + move.displacement, at, a.here())) {
    return 0;
  }
  a.append(moved, move.length);
  return move.length;
}

// A call through memory becomes a jump, because its return address is already on the stack.
bool put_jump_of_call(Assembler& a, std::uintptr_t site, const unsigned char* code) noexcept {
  unsigned char jump[kInstructionMax];
  const Move move = jump_of_call(code, jump);
  if (move.displacement != 0 && !move_displacement(jump + move.displacement, site, a.here())) {
    return false;
  }
  a.append(jump, move.length);
  return true;
}

const char* put_all_moved(Assembler& a, std::uintptr_t site, const unsigned char* code,
                          std::size_t bytes, Stub& out) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    out.begins[done] = static_cast<unsigned char>(a.size());
    const std::size_t length = put_moved(a, site + done, code + done);
    if (length == 0) return "it has an instruction that cannot be moved";
    done += length;
  }
  if (done != bytes) return "it ends within an instruction";
  a.put_jump(site + bytes);
  return nullptr;
}

}  // namespace

const char* build(const TickPoint& point, std::uintptr_t site, const unsigned char* code,
                  std::uintptr_t place, const ThreadWords& words, Stub& out) noexcept {
  if (point.bytes < kNearJump || point.bytes > kReplacedMax) return "it is too short, or too long";
  if (!reaches(site, place)) return "no place for its stub is near enough";
  const std::size_t call = call_bytes(code);
  const bool is_call = call != 0;
  if (is_call && point.bytes != call) return "it begins with a call";
  const bool keeps_flags = !is_call && point.dead_flags == 0;
  Assembler a(place, out.code, sizeof out.code);
  const auto restore = [&a, &words] {
    a.put_flags();
    a.put_word(words.saved, 0x48, 0x8b, 0x04);  // mov saved, %rax
  };
  if (keeps_flags) {
    a.put_word(words.saved, 0x48, 0x89, 0x04);  // mov %rax, saved
    a.put(0x9f, 0x0f, 0x90, 0xc0);              // lahf; seto %al
  }
  put_count(a, point, words.left, out);
  const std::size_t over = a.put_forward(kJumpIfNegative);
  if (keeps_flags) restore();
  out.moved = a.size();
  std::memset(out.begins, 0, sizeof out.begins);
  out.begins[0] = static_cast<unsigned char>(out.moved);
  out.shown = site;
  if (code[0] == kCall || (code[0] == kJump && point.bytes == kNearJump)) {
    const std::uintptr_t target = target_of(site + kNearJump, code + 1, 4);
    if (!reaches(place, target)) return "its stub would be too far from the target";
    a.put_jump(target);
    if (is_call) out.shown = target;
  } else if (is_call) {
    if (!put_jump_of_call(a, site, code)) return "the called function is out of reach";
  } else if (const char* wrong = put_all_moved(a, site, code, point.bytes, out); wrong != nullptr) {
    return wrong;
  }
  a.bind(over);
  if (keeps_flags) restore();
  out.stop = a.size();
  a.put(kBreak);
  a.put_back(out.moved);
  out.size = a.size();
  return nullptr;
}

void build_entry(std::uintptr_t site, const unsigned char* code, std::size_t bytes,
                 std::uintptr_t place, unsigned char (&out)[kReplacedMax]) noexcept {
  Assembler a(site, out, sizeof out);
  a.put(call_bytes(code) != 0 ? kCall : kJump);
  a.put_distance(place);
  while (a.size() < bytes) a.put(kNop);
}

}  // namespace crane::ticks
