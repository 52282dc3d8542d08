// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/instruction.h"

namespace crane {
namespace {

// What follows an operation code.
struct Form {
  bool known = false;
  bool operands = false;      // a ModRM byte, and what that asks for
  std::size_t immediate = 0;  // bytes of a constant
};
constexpr Form kPlain{true, false, 0}, kOperands{true, true, 0}, kOperandsAndByte{true, true, 1};

bool within(unsigned char code, unsigned char low, unsigned char high) noexcept {
  return code >= low && code <= high;
}

// `wide`: REX.W; `half`: the prefix 66.
Form form_of(unsigned char code, bool wide, bool half) noexcept {
  const std::size_t word = half ? 2 : 4;
  if (code < 0x40 && (code & 7) < 4) return kOperands;  // add, or, and, sub, xor, cmp
  if (within(code, 0x50, 0x57) || code == 0x90 || code == 0xc3) return kPlain;  // push, nop, ret
  if (within(code, 0x84, 0x85) || within(code, 0x88, 0x8b)) return kOperands;   // test, mov
  if (code == 0x63 || code == 0x8d) return kOperands;                           // movsxd, lea
  if (code == 0x6b || code == 0x80 || code == 0x83 || code == 0xc0 || code == 0xc1 ||
      code == 0xc6) {
    return kOperandsAndByte;
  }
  if (code == 0x69 || code == 0x81 || code == 0xc7) return {true, true, word};
  if (within(code, 0xb8, 0xbf)) return {true, false, wide ? 8 : word};  // mov of a constant
  return {};
}

// Behind 0f: moves and arithmetic of vectors, conditional moves, extensions, endbr64 and nops.
Form form_of_two(unsigned char code) noexcept {
  const bool operands = within(code, 0x10, 0x17) || within(code, 0x1e, 0x1f) ||
                        within(code, 0x28, 0x2f) || within(code, 0x40, 0x6f) ||
                        within(code, 0x7e, 0x7f) || within(code, 0xb6, 0xb7) ||
                        within(code, 0xbe, 0xbf) || code == 0xaf || code == 0xd6 || code == 0xef;
  return operands ? kOperands : Form{};
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
  for (; code[at] == 0x66 || code[at] == 0xf2 || code[at] == 0xf3 || code[at] == 0x64; ++at) {
    if (at == 4) return {};
    half = half || code[at] == 0x66;
  }
  if (within(code[at], 0x40, 0x4f)) wide = (code[at++] & 8u) != 0;
  Form form;
  if (code[at] == 0x0f) {
    form = form_of_two(code[at + 1]);
    at += 2;
  } else {
    form = form_of(code[at], wide, half);
    ++at;
  }
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

}  // namespace crane
