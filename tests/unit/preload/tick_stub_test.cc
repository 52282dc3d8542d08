// SPDX-License-Identifier: Apache-2.0
// GOAL    Code with a tick point has the same results as before, and each passage subtracts the
//         point's weight.
// METHOD  Small functions are put into executable memory and run with and without a stub; invalid
//         points are built for made-up addresses.
// CHECKS  build(), build_entry(): results, flags and registers, the count, the stop, refusals.
#include "runtime/preload/turn/tick_stub.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

using namespace crane;
using namespace crane::ticks;

namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::int64_t kPlenty = 1'000'000'000;
constexpr std::uint32_t kWeight = 1000;
constexpr std::int64_t kStatusFlags = 0x8d5;
constexpr std::size_t kMemory = 1 << 20;
constexpr std::size_t kStubAt = kMemory / 2;

thread_local std::int64_t left_ps = 0;
thread_local std::uint64_t saved = 0;

std::int32_t word_of(const void* address) {
  return static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(address) -
                                   reinterpret_cast<std::intptr_t>(__builtin_thread_pointer()));
}

ThreadWords words() { return {word_of(&left_ps), word_of(&saved)}; }

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A function at the beginning of executable memory; its stub is far after it.
class Function {
 public:
  explicit Function(const Bytes& code)
      : memory_(
            static_cast<unsigned char*>(::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE | PROT_EXEC,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(memory_ != MAP_FAILED);
    std::memcpy(memory_, code.data(), code.size());
  }
  ~Function() { ::munmap(memory_, kMemory); }
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  // Makes the instructions at `offset` a tick point.
  void add_point(std::size_t offset, std::uint32_t bytes, bool dead_flags) {
    const TickPoint point{1, 0, kWeight, bytes, dead_flags ? 1u : 0u};
    const char* wrong = build(point, at(offset), memory_ + offset, at(kStubAt), words(), stub);
    CAPTURE(std::string(wrong == nullptr ? "" : wrong));
    REQUIRE(wrong == nullptr);
    std::memcpy(memory_ + kStubAt, stub.code, stub.size);
    unsigned char entry[kReplacedMax];
    build_entry(at(offset), memory_ + offset, bytes, at(kStubAt), entry);
    std::memcpy(memory_ + offset, entry, bytes);
  }
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return reinterpret_cast<std::uint64_t (*)(std::uint64_t, std::uint64_t)>(memory_)(a, b);
  }
  std::uintptr_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory_) + offset;
  }
  unsigned char* byte(std::size_t offset) const { return memory_ + offset; }

  Stub stub{};

 private:
  unsigned char* const memory_;
};

// Values whose sums, differences and comparisons give each flag both values.
constexpr std::uint64_t kValues[] = {0,
                                     1,
                                     2,
                                     5,
                                     15,
                                     16,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0x8000000000000001,
                                     0xfffffffffffffffe,
                                     0xffffffffffffffff};

struct Point {
  std::size_t offset;
  std::uint32_t bytes;
};

// Checks that the function has the same results with the point, which each call passes once.
void check_same(const Bytes& code, Point point, bool dead_flags) {
  const Function plain(code);
  Function counted(code);
  counted.add_point(point.offset, point.bytes, dead_flags);
  left_ps = kPlenty;
  std::int64_t passages = 0;
  for (const std::uint64_t a : kValues) {
    for (const std::uint64_t b : kValues) {
      CAPTURE(a, b);
      REQUIRE(counted(a, b) == plain(a, b));
      REQUIRE(left_ps == kPlenty - ++passages * kWeight);
    }
  }
}

const Bytes kCompare{0x48, 0x39, 0xf7};           // cmp %rsi, %rdi
const Bytes kTakeFirst{0x48, 0x89, 0xf8};         // mov %rdi, %rax
const Bytes kTakeSecond{0x48, 0x89, 0xf0};        // mov %rsi, %rax
const Bytes kTakeIfLess{0x48, 0x0f, 0x4c, 0xc6};  // cmovl %rsi, %rax
const Bytes kReturn{0xc3};
const Bytes kNop{0x90};
const Bytes kFlags{0x9c, 0x58, 0xc3};  // pushf; pop %rax; ret

// Combines both arguments, with a carry from each round to the next; the first one counts the
// rounds.
const Bytes kLoop{0x48, 0x31, 0xc0,        // xor %rax, %rax
                  0x48, 0x31, 0xd2,        // xor %rdx, %rdx
                  0x48, 0x89, 0xf9,        // mov %rdi, %rcx
                  0x48, 0x01, 0xf0,        // 9: add %rsi, %rax
                  0x48, 0x11, 0xf2,        // 12: adc %rsi, %rdx
                  0x48, 0x8d, 0x49, 0xff,  // lea -1(%rcx), %rcx
                  0x48, 0x85, 0xc9,        // test %rcx, %rcx
                  0x75, 0xf1,              // jne 9
                  0x48, 0x31, 0xd0,        // xor %rdx, %rax
                  0xc3};
constexpr std::size_t kAdc = 12;
constexpr std::uint32_t kAdcAndLea = 7;

// The state of a thread at a stop.
struct Seen {
  int stops = 0;
  greg_t registers[NGREG] = {};
};
Seen seen;
std::int64_t refill = 0;
unsigned char* break_at = nullptr;  // an int3 that replaces `instead`
unsigned char instead = 0;

void note_break(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  std::memcpy(seen.registers, registers, sizeof registers);
  ++seen.stops;
  left_ps = refill;
  if (break_at == nullptr) return;
  *break_at = instead;
  registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(break_at));
}

class Breaks {
 public:
  Breaks() {
    struct sigaction action = {};
    action.sa_sigaction = note_break;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGTRAP, &action, &before_);
    seen = {};
  }
  ~Breaks() {
    ::sigaction(SIGTRAP, &before_, nullptr);
    break_at = nullptr;
  }
  Breaks(const Breaks&) = delete;
  Breaks& operator=(const Breaks&) = delete;

 private:
  struct sigaction before_ = {};
};

// Sets each register that a function may change; %r10 is the stack pointer.
const Bytes kFill{0x48, 0x8d, 0x47, 0x11,  // lea 0x11(%rdi), %rax
                  0x48, 0x8d, 0x4f, 0x22,  // lea 0x22(%rdi), %rcx
                  0x48, 0x8d, 0x57, 0x33,  // lea 0x33(%rdi), %rdx
                  0x4c, 0x8d, 0x47, 0x44,  // lea 0x44(%rdi), %r8
                  0x4c, 0x8d, 0x4f, 0x55,  // lea 0x55(%rdi), %r9
                  0x4c, 0x8d, 0x5f, 0x66,  // lea 0x66(%rdi), %r11
                  0x49, 0x89, 0xe2};       // mov %rsp, %r10
constexpr int kFilled[] = {REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
                           REG_R8,  REG_R9,  REG_R11, REG_RBX, REG_RBP};

const char* refusal(const Bytes& code, std::uint32_t bytes, std::intptr_t stub_behind = 0x10000,
                    std::uint32_t dead_flags = 0) {
  constexpr std::uintptr_t kSite = 0x555555600123;
  Bytes room = code;
  room.resize(64, 0x06);  // no instruction begins with this byte
  Stub stub;
  const TickPoint point{1, 0, kWeight, bytes, dead_flags};
  return build(point, kSite, room.data(), kSite + static_cast<std::uintptr_t>(stub_behind),
               {-0x100, -0x80}, stub);
}

constexpr std::intptr_t kFar = 0x60000000;

}  // namespace

TEST_CASE("tick_stub: each condition sees the flags of the instruction before the point",
          "[runtime]") {
  for (unsigned condition = 0; condition < 16; ++condition) {
    CAPTURE(condition);
    const auto with = [condition](unsigned code) {
      return static_cast<unsigned char>(code | condition);
    };
    // A conditional move, which changes %rax or not.
    const Bytes move{0x48, 0x0f, with(0x40), 0xc7};
    check_same(kTakeSecond + kCompare + move + kNop + kReturn, {6, 5}, false);
    const Bytes short_jump{with(0x70), 0x03};
    check_same(kTakeFirst + kCompare + short_jump + kTakeSecond + kReturn, {6, 5}, false);
    const Bytes long_jump{0x0f, with(0x80), 0x03, 0, 0, 0};
    check_same(kTakeFirst + kCompare + long_jump + kTakeSecond + kReturn, {6, 6}, false);
  }
}

TEST_CASE("tick_stub: all arithmetic flags are the same after the point as before it",
          "[runtime]") {
  const Bytes nops{0x66, 0x0f, 0x1f, 0x44, 0, 0};
  check_same(kCompare + nops + kFlags, {3, 6}, false);
  const Bytes sum{0x48, 0x01, 0xf7};  // add %rsi, %rdi
  check_same(sum + nops + kFlags, {3, 6}, false);
}

TEST_CASE("tick_stub: flags that are not read need not be saved", "[runtime]") {
  const Bytes moves = kTakeSecond + kCompare;
  check_same(moves + Bytes{0x48, 0x0f, 0x4c, 0xc7} + kReturn, {0, 6}, true);
}

TEST_CASE("tick_stub: a carry passes through the point from round to round", "[runtime]") {
  const Function plain(kLoop);
  Function counted(kLoop);
  counted.add_point(kAdc, kAdcAndLea, false);
  for (const std::uint64_t rounds : {1u, 2u, 3u, 1000u}) {
    left_ps = kPlenty;
    CHECK(counted(rounds, 0x9000000000000001) == plain(rounds, 0x9000000000000001));
    CHECK(left_ps == kPlenty - static_cast<std::int64_t>(rounds) * kWeight);
  }
}

TEST_CASE("tick_stub: a short jump back leads from the stub to the loop", "[runtime]") {
  // The point consists of the loop's condition and jump, and the xor after them.
  constexpr std::size_t kTest = 19;
  const Function plain(kLoop);
  Function counted(kLoop);
  counted.add_point(kTest, 5, true);
  left_ps = kPlenty;
  CHECK(counted(100, 0x9000000000000001) == plain(100, 0x9000000000000001));
  CHECK(left_ps == kPlenty - 100 * kWeight);
}

TEST_CASE("tick_stub: unconditional jumps lead to their old targets", "[runtime]") {
  const Bytes none{0x48, 0x31, 0xc0};  // xor %rax, %rax
  const Bytes near{0xe9, 0x03, 0, 0, 0};
  check_same(kTakeFirst + kCompare + near + none + kFlags, {6, 5}, false);
  check_same(kTakeFirst + kCompare + near + none + kReturn, {6, 5}, true);
  const Bytes close{0xeb, 0x03};
  check_same(kTakeFirst + kCompare + close + none + kFlags, {6, 5}, false);
}

TEST_CASE("tick_stub: a relative instruction accesses the same address", "[runtime]") {
  // mov 9(%rip), %rax; add %rdi, %rax; ret; and the data that it reads.
  const Bytes load{0x48, 0x8b, 0x05, 0x09, 0, 0, 0, 0x48, 0x01, 0xf8, 0xc3, 0, 0, 0, 0, 0};
  const Bytes word{1, 2, 3, 4, 5, 6, 7, 8};
  const Function plain(load + word);
  Function counted(load + word);
  counted.add_point(0, 7, false);
  left_ps = kPlenty;
  CHECK(plain(0, 0) == 0x0807060504030201);
  CHECK(counted(0, 0) == 0x0807060504030201);
  CHECK(left_ps == kPlenty - kWeight);
  // lea 9(%rip), %rax
  Function address(Bytes{0x48, 0x8d, 0x05, 0x09, 0, 0, 0, 0xc3});
  address.add_point(0, 7, false);
  CHECK(address(0, 0) == address.at(7 + 9));
}

TEST_CASE("tick_stub: a called function returns after the call", "[runtime]") {
  const Bytes calls{0x48, 0x83, 0xec, 0x08,     // sub $8, %rsp
                    0xe8, 0x05, 0,    0,    0,  // 4: call 14
                    0x48, 0x83, 0xc4, 0x08,     // add $8, %rsp
                    0xc3,                       // ret
                    0x48, 0x8b, 0x04, 0x24,     // 14: mov (%rsp), %rax
                    0x48, 0x01, 0xf8, 0xc3};    // add %rdi, %rax; ret
  Function counted(calls);
  counted.add_point(4, 5, false);
  left_ps = kPlenty;
  CHECK(counted(3, 0) == counted.at(9) + 3);
  CHECK(left_ps == kPlenty - kWeight);
  CHECK(*counted.byte(4) == 0xe8);  // only its target changed
  // At the stop the return address is on the stack, as at the start of the function.
  CHECK(counted.stub.shown == counted.at(14));
  CHECK(counted.stub.begins[0] == counted.stub.moved);

  Breaks breaks;
  left_ps = kWeight - 1;
  refill = kPlenty;
  CHECK(counted(3, 0) == counted.at(9) + 3);
  CHECK(seen.stops == 1);
  CHECK(seen.registers[REG_RDI] == 3);
  CHECK(left_ps == kPlenty);
}

TEST_CASE("tick_stub: a call through memory continues through the same memory", "[runtime]") {
  const Bytes calls{0x48, 0x83, 0xec, 0x08,                    // sub $8, %rsp
                    0xff, 0x15, 0x06, 0,    0,    0,           // 4: call *16(%rip)
                    0x48, 0x83, 0xc4, 0x08, 0xc3, 0x90,        // add $8, %rsp; ret; nop
                    0,    0,    0,    0,    0,    0,    0, 0,  // 16: where it leads
                    0x48, 0x8b, 0x04, 0x24,                    // 24: mov (%rsp), %rax
                    0x48, 0x01, 0xf8, 0xc3};                   // add %rdi, %rax; ret
  Function counted(calls);
  const std::uintptr_t function = counted.at(24);
  std::memcpy(counted.byte(16), &function, sizeof function);
  CHECK(counted(3, 0) == counted.at(10) + 3);
  counted.add_point(4, 6, true);
  left_ps = kPlenty;
  CHECK(counted(3, 0) == counted.at(9) + 3);  // a nop follows the shorter call
  CHECK(left_ps == kPlenty - kWeight);
}

TEST_CASE("tick_stub: a thread stops with its state at the point, and continues", "[runtime]") {
  for (const bool dead_flags : {false, true}) {
    for (const std::uint64_t a : kValues) {
      CAPTURE(dead_flags, a);
      const Bytes last = dead_flags ? kTakeSecond + kNop : kTakeIfLess;
      const Bytes code = kFill + kCompare + kTakeFirst + last + kReturn;
      const std::size_t site = kFill.size() + kCompare.size();
      Breaks breaks;
      // The code without a stub.
      const Function plain(code);
      break_at = plain.byte(site);
      instead = *break_at;
      *break_at = 0xcc;
      const std::uint64_t result = plain(a, 5);
      REQUIRE(seen.stops == 1);
      const Seen at_site = seen;
      break_at = nullptr;

      Function counted(code);
      counted.add_point(site, 7, dead_flags);
      left_ps = kWeight - 1;
      refill = 7;
      CHECK(counted(a, 5) == result);
      REQUIRE(seen.stops == 2);
      CHECK(left_ps == 7);  // the passage that stopped is not counted again
      const auto place = static_cast<greg_t>(counted.at(kStubAt + counted.stub.stop));
      CHECK(seen.registers[REG_RIP] == place + 1);
      for (const int r : kFilled) CHECK(seen.registers[r] == at_site.registers[r]);
      CHECK(seen.registers[REG_RSP] == seen.registers[REG_R10]);
      if (dead_flags) continue;
      CHECK((seen.registers[REG_EFL] & kStatusFlags) ==
            (at_site.registers[REG_EFL] & kStatusFlags));
    }
  }
}

TEST_CASE("tick_stub: a slice ends at the passage that takes more than is left", "[runtime]") {
  Breaks breaks;
  Function counted(kLoop);
  counted.add_point(kAdc, kAdcAndLea, false);
  left_ps = 10 * kWeight;
  refill = 10 * kWeight;
  counted(10, 1);
  CHECK(left_ps == 0);
  CHECK(seen.stops == 0);
  counted(1, 1);
  CHECK(seen.stops == 1);
  left_ps = 10 * kWeight;
  seen = {};
  CHECK(counted(110, 1) == Function(kLoop)(110, 1));
  CHECK(seen.stops == 10);  // ten passages, and the one that stops
}

TEST_CASE("tick_stub: each moved instruction is found from its original place, and vice versa",
          "[runtime]") {
  // A short jump, which is longer in the stub, and a load after it.
  const Bytes code = kCompare + Bytes{0x74, 0x00, 0x48, 0x8b, 0x07} + kReturn;
  Function counted(code);
  counted.add_point(kCompare.size(), 5, false);
  const unsigned char* begins = counted.stub.begins;
  CHECK(begins[0] == counted.stub.moved);
  CHECK(begins[1] == 0);
  CHECK(begins[2] == counted.stub.moved + 6);
  CHECK(begins[3] == 0);
  CHECK(begins[5] == 0);
  CHECK(counted.stub.shown == counted.at(kCompare.size()));
  // The program sees the same load, and would continue there after a fault.
  CHECK(std::memcmp(counted.stub.code + begins[2], code.data() + 5, 3) == 0);
}

TEST_CASE("tick_stub: a new weight counts from then on", "[runtime]") {
  Function counted(kLoop);
  counted.add_point(kAdc, kAdcAndLea, false);
  const std::uint32_t weight = 77;
  std::memcpy(counted.byte(kStubAt + counted.stub.weight), &weight, sizeof weight);
  left_ps = kPlenty;
  counted(3, 1);
  CHECK(left_ps == kPlenty - 3 * 77);
}

TEST_CASE("tick_stub: invalid points are refused", "[runtime]") {
  const Bytes call{0xe8, 0x10, 0, 0, 0};
  const Bytes three = kTakeFirst + kTakeFirst + kTakeFirst;
  CHECK(refusal(three, 6) == nullptr);
  CHECK(refusal(three, 9) == nullptr);
  CHECK(refusal(call, 5) == nullptr);
  SECTION("too short for a jump, or too long") {
    CHECK(refusal(three, 3) != nullptr);
    CHECK(refusal(kNop + kNop + kNop + kNop, 4) != nullptr);
    CHECK(refusal(Bytes(kReplacedMax, 0x90), kReplacedMax) == nullptr);
    CHECK(refusal(Bytes(kReplacedMax + 1, 0x90), kReplacedMax + 1) != nullptr);
  }
  SECTION("a call together with other instructions") {
    CHECK(refusal(call + kTakeFirst, 8) != nullptr);
    CHECK(refusal(kTakeFirst + call, 8) != nullptr);
  }
  SECTION("an unknown instruction") {
    CHECK(refusal(Bytes{0x0f, 0xae, 0xe8} + kTakeFirst, 6) != nullptr);  // lfence
    CHECK(refusal(kTakeFirst + Bytes{0xe2, 0x10}, 5) != nullptr);        // loop
  }
  SECTION("an end inside an instruction") {
    CHECK(refusal(three, 5) != nullptr);
    CHECK(refusal(three, 8) != nullptr);
  }
  SECTION("out of reach of its stub") {
    CHECK(refusal(three, 6, INT32_MAX) != nullptr);
    CHECK(refusal(three, 6, -std::intptr_t{INT32_MAX}) != nullptr);
    CHECK(refusal(three, 6, kFar) == nullptr);
  }
  SECTION("a stub that cannot reach the addresses of its instructions") {
    const Bytes below{0, 0, 0, 0xa0};  // -kFar
    const std::vector<Bytes> all{{0x48, 0x8b, 0x05}, {0xe8}, {0xe9}, {0x0f, 0x84}};
    for (const Bytes& operation : all) {
      const Bytes code = operation + below;
      const auto bytes = static_cast<std::uint32_t>(code.size());
      CAPTURE(operation);
      CHECK(refusal(code, bytes, -kFar) == nullptr);
      CHECK(refusal(code, bytes, kFar) != nullptr);
    }
    CHECK(refusal(kTakeFirst + Bytes{0xe9} + below, 8, kFar) != nullptr);
  }
}

TEST_CASE("tick_stub: the longest stub fits", "[runtime]") {
  Bytes jumps;
  for (std::size_t i = 0; i + 2 <= kReplacedMax; i += 2) jumps = jumps + Bytes{0x74, 0x10};
  CHECK(refusal(jumps, static_cast<std::uint32_t>(jumps.size())) == nullptr);
}
