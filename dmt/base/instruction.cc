// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/instruction.h"

#include <cstring>

namespace crane {
namespace {

// The bytes that follow an operation code.
struct Form {
  bool known = false;
  bool operands = false;      // a ModRM byte and what it requires
  std::size_t immediate = 0;  // bytes of a constant
};
constexpr Form kPlain{true, false, 0}, kOperands{true, true, 0}, kOperandsAndByte{true, true, 1};

bool within(unsigned char code, unsigned char low, unsigned char high) noexcept {
  return code >= low && code <= high;
}

// `wide` is true with REX.W, `half` with the prefix 66.  `group` is the ModRM field that selects
// the operation.
Form form_of(unsigned char code, bool wide, bool half, unsigned group) noexcept {
  const std::size_t word = half ? 2 : 4;
  if (code < 0x40) {  // add, or, adc, sbb, and, sub, xor, cmp
    if ((code & 7) < 4) return kOperands;
    if ((code & 7) < 6) return {true, false, (code & 7) == 4 ? 1 : word};
    return {};
  }
  if (within(code, 0x50, 0x5f) || within(code, 0x90, 0x99) || code == 0xc3 || code == 0xc9) {
    return kPlain;
  }
  if (within(code, 0xa4, 0xa7) || within(code, 0xaa, 0xaf)) return kPlain;  // strings
  if (within(code, 0x84, 0x8b) || within(code, 0xd0, 0xd3)) return kOperands;
  if (code == 0x63 || code == 0x8d || code == 0xfe) return kOperands;  // movsxd, lea, inc, dec
  if (code == 0x6b || code == 0x80 || code == 0x83 || code == 0xc0 || code == 0xc1 ||
      code == 0xc6) {
    return kOperandsAndByte;
  }
  if (code == 0x69 || code == 0x81 || code == 0xc7) return {true, true, word};
  if (code == 0x6a || code == 0xa8 || within(code, 0xb0, 0xb7)) return {true, false, 1};
  if (code == 0x68) return {true, false, 4};
  if (code == 0xa9) return {true, false, word};
  if (within(code, 0xb8, 0xbf)) return {true, false, wide ? 8 : word};  // mov of a constant
  if (code == 0xf6 || code == 0xf7) {  // test with a constant, not, neg, mul, div
    return {true, true, group > 1 ? 0 : code == 0xf6 ? 1 : word};
  }
  if (code == 0xff && (group < 2 || group == 4 || group == 6)) return kOperands;  // no calls
  return {};
}

// The second byte after 0f: vector moves and arithmetic, conditional moves, extensions, bits, nops.
Form form_of_two(unsigned char code) noexcept {
  const bool plain = within(code, 0xc8, 0xcf);  // bswap
  const bool with_byte = within(code, 0x70, 0x73) || code == 0xa4 || code == 0xac || code == 0xba ||
                         code == 0xc2 || within(code, 0xc4, 0xc6);
  const bool operands =
      code == 0x0d || within(code, 0x10, 0x18) || within(code, 0x1e, 0x1f) ||
      within(code, 0x28, 0x2f) || within(code, 0x40, 0x6f) || within(code, 0x74, 0x76) ||
      within(code, 0x7c, 0x7f) || within(code, 0x90, 0x9f) || code == 0xa3 || code == 0xa5 ||
      code == 0xab || code == 0xad || within(code, 0xaf, 0xb1) || code == 0xb3 ||
      within(code, 0xb6, 0xb8) || within(code, 0xbb, 0xc1) || within(code, 0xd0, 0xfe);
  return plain ? kPlain : with_byte ? kOperandsAndByte : operands ? kOperands : Form{};
}

// Reads an operation code of one, two or three bytes, or one after a VEX prefix, and moves `at`
// past it.
Form read_form(const unsigned char* code, std::size_t& at, bool wide, bool half) noexcept {
  const unsigned char first = code[at++];
  if (first == 0xc5) {
    at += 2;
    return form_of_two(code[at - 1]);
  }
  if (first == 0xc4) {
    const unsigned char map = code[at] & 0x1f;
    at += 3;
    if (map == 1) return form_of_two(code[at - 1]);
    return map == 2 ? kOperands : map == 3 ? kOperandsAndByte : Form{};
  }
  if (first != 0x0f) return form_of(first, wide, half, (code[at] >> 3u) & 7u);
  const unsigned char second = code[at++];
  if (second != 0x38 && second != 0x3a) return form_of_two(second);
  ++at;
  return second == 0x38 ? kOperands : kOperandsAndByte;
}

bool is_relative(unsigned char operands) noexcept { return (operands & 0xc7u) == 5; }

// Bytes of ModRM, SIB and displacement.
std::size_t operand_bytes(const unsigned char* code) noexcept {
  const unsigned mode = code[0] >> 6u, rm = code[0] & 7u;
  if (mode == 3) return 1;
  if (is_relative(code[0])) return 5;
  std::size_t bytes = 1;
  if (rm == 4) {
    bytes = 2;
    if (mode == 0 && (code[1] & 7u) == 5) bytes += 4;
  }
  return bytes + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

}  // namespace

Move move_of(const unsigned char* code) noexcept {
  std::size_t at = 0, displacement = 0;
  bool half = false, wide = false;
  for (; code[at] == 0x66 || code[at] == 0xf0 || code[at] == 0xf2 || code[at] == 0xf3 ||
         code[at] == 0x64;
       ++at) {
    if (at == 4) return {};
    half = half || code[at] == 0x66;
  }
  if (within(code[at], 0x40, 0x4f)) wide = (code[at++] & 8u) != 0;
  const Form form = read_form(code, at, wide, half);
  if (!form.known) return {};
  if (form.operands) {
    if (is_relative(code[at])) displacement = at + 1;
    at += operand_bytes(code + at);
  }
  at += form.immediate;
  return at <= kInstructionMax ? Move{at, displacement} : Move{};
}

std::size_t movable_length(const unsigned char* code) noexcept {
  const Move move = move_of(code);
  return move.displacement == 0 ? move.length : 0;
}

Move jump_of_call(const unsigned char* code, unsigned char (&jump)[kInstructionMax]) noexcept {
  constexpr unsigned kGroup = 0x38, kCall = 2u << 3u, kJump = 4u << 3u;
  const std::size_t at = within(code[0], 0x40, 0x4f) ? 1 : 0;
  const unsigned operands = code[at + 1];
  const bool by_stack = (operands & 7u) == 4 && (code[at + 2] & 7u) == 4;  // the call changes the
                                                                           // stack pointer
  if (code[at] != 0xff || (operands & kGroup) != kCall || operands >> 6u == 3 || by_stack)
    return {};
  std::memcpy(jump, code, at + 2);
  jump[at + 1] = static_cast<unsigned char>((operands & ~kGroup) | kJump);
  std::memcpy(jump + at + 2, code + at + 2, operand_bytes(code + at + 1) - 1);
  return move_of(jump);
}

}  // namespace crane
