// SPDX-License-Identifier: Apache-2.0
// GOAL    A jump that replaces RDTSC leads to its stub, a thread that jumps into the middle of it
//         meets int3, and the stub does what the original code did.
// METHOD  Places and stubs at made-up addresses; the written code is read back.
// CHECKS  next_place(), build_jump(), and what build() refuses and moves.
#include "runtime/preload/trap/tsc_stub.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

using namespace crane::tsc;

namespace {

constexpr std::uintptr_t kSite = 0x555555600123;
constexpr ThreadWords kWords{-0x100, -0x80, -0x78};

// RDTSC and the given code, padded with bytes with which no instruction begins.
std::vector<unsigned char> code_of(std::vector<unsigned char> behind) {
  std::vector<unsigned char> code{kRead[0], kRead[1]};
  code.insert(code.end(), behind.begin(), behind.end());
  code.resize(code.size() + 16, 0x06);
  return code;
}

std::int32_t word_at(const unsigned char* code) {
  std::int32_t word = 0;
  std::memcpy(&word, code, sizeof word);
  return word;
}

bool builds(const std::vector<unsigned char>& behind, std::uintptr_t place) {
  Stub stub;
  return build(kSite, code_of(behind).data(), place, kWords, stub);
}

const std::vector<unsigned char> kShift{0x48, 0xc1, 0xe2, 0x20};         // shl $32, %rdx
const std::vector<unsigned char> kLea{0x48, 0x8d, 0x0d, 0x10, 0, 0, 0};  // lea 0x10(%rip), %rcx

}  // namespace

TEST_CASE("tsc_stub: the jump's third byte is int3 at every place, on both sides", "[runtime]") {
  for (const std::uintptr_t from : {kSite - 0x123456, kSite + 5, kSite + 0x70000000}) {
    std::uintptr_t place = from - 1;
    for (int i = 0; i < 600; ++i) {
      const std::uintptr_t next = next_place(kSite, place + 1);
      REQUIRE(next > place);
      REQUIRE(next - place <= 0x10000);
      unsigned char jump[kJump];
      build_jump(kSite, next, jump);
      REQUIRE(jump[0] == 0xe9);
      REQUIRE(jump[2] == kBreak);
      REQUIRE(kSite + kJump + static_cast<std::uintptr_t>(word_at(jump + 1)) == next);
      place = next;
    }
  }
}

TEST_CASE("tsc_stub: code that is short, unknown or out of reach is not changed", "[runtime]") {
  const std::uintptr_t near = next_place(kSite, kSite + 0x1000);
  CHECK(builds(kShift, near));
  CHECK(builds(kLea, near));
  CHECK_FALSE(builds({0x5d}, near));                    // pop %rbp
  CHECK_FALSE(builds({0x89, 0xc1}, near));              // mov %eax, %ecx
  CHECK_FALSE(builds({0xe9, 0, 0, 0, 0}, near));        // jmp
  CHECK_FALSE(builds({0x0f, 0x84, 0, 0, 0, 0}, near));  // je
  CHECK_FALSE(builds({0x0f, 0xae, 0xe8}, near));        // lfence: unknown
  CHECK_FALSE(builds(kShift, next_place(kSite, kSite + 0x7ffff000)));
  CHECK_FALSE(builds(kShift, next_place(kSite, kSite - 0x90000000)));
  CHECK(builds(kLea, next_place(kSite, kSite - 0x7fff0000)));
  // The stub is in reach of the place, but not of an address on its other side.
  const std::vector<unsigned char> far{0x48, 0x8d, 0x0d, 0, 0, 0, 0x70};
  CHECK(builds(far, near));
  CHECK_FALSE(builds(far, next_place(kSite, kSite - 0x20000000)));
}

TEST_CASE("tsc_stub: the moved instruction has the same effect, and the jump back follows it",
          "[runtime]") {
  Stub stub;
  const std::uintptr_t place = next_place(kSite, kSite - 0x20000);
  REQUIRE(build(kSite, code_of(kLea).data(), place, kWords, stub));
  const unsigned char* moved = stub.code + stub.after;
  const std::uintptr_t at = place + stub.after;
  CHECK(std::memcmp(moved, kLea.data(), 3) == 0);
  CHECK(at + 7 + static_cast<std::uintptr_t>(word_at(moved + 3)) == kSite + 2 + 7 + 0x10);
  REQUIRE(moved[7] == 0xe9);
  CHECK(at + 12 + static_cast<std::uintptr_t>(word_at(moved + 8)) == kSite + 2 + 7);
  // It also jumps from its own RDTSC to the moved instruction.
  const std::size_t end = stub.size;
  CHECK(std::memcmp(stub.code + end - 4, kRead, sizeof kRead) == 0);
  CHECK(stub.code[end - 2] == 0xeb);
  CHECK(end + static_cast<std::size_t>(static_cast<signed char>(stub.code[end - 1])) == stub.after);
}
