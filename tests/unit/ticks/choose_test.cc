// SPDX-License-Identifier: Apache-2.0
// GOAL    A computation gets the rarest tick point that a stub can replace, and none where a jump
//         could lead into the replaced instructions.
// METHOD  Made-up code and lists of executed instructions; random ones for CHOOSE-1.
// CHECKS  CHOOSE-1; which instructions are replaced, their weight, known points, and the reason if
//         there is no point.
#include "proxy/ticks/choose.h"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

using namespace crane;
using namespace crane::ticks;

namespace {

using Bytes = std::vector<unsigned char>;
using Steps = std::vector<std::uint64_t>;

constexpr std::uint64_t kBuild = 0x1122334455667788;
constexpr std::uint64_t kBegin = 0x401000;
constexpr std::uint64_t kLinked = 0x1000;  // offset of kBegin in the object
constexpr std::size_t kRounds = 100;

// Follows all code: no instruction and no jump begins with these bytes.
const Bytes kEnd(32, 0x06);

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Object {
 public:
  explicit Object(Bytes bytes, std::uint64_t begin = kBegin) : bytes_(std::move(bytes)) {
    code.build = kBuild;
    code.base = begin - kLinked;
    code.begin = begin;
    code.bytes = bytes_;
    code.name = "/opt/server";
    code.may_be_point = true;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  bool has(std::uint64_t address) const { return address - code.begin < bytes_.size(); }

  Code code;

 private:
  const Bytes bytes_;
};

Choice choose_in(const Object& object, const Steps& steps,
                 const std::vector<TickPoint>& known = {}) {
  return choose(steps, known, [&object](std::uint64_t address) {
    return object.has(address) ? &object.code : nullptr;
  });
}

// Repeats `round`, which holds offsets in the object.
Steps rounds(const Steps& round, std::size_t count = kRounds) {
  Steps steps;
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::uint64_t offset : round) steps.push_back(kBegin + offset);
  }
  return steps;
}

void check_point(const Choice& choice, std::uint64_t offset, std::uint32_t bytes, bool dead_flags) {
  CAPTURE(choice.where);
  REQUIRE(choice.point);
  CHECK(choice.point->build == kBuild);
  CHECK(choice.point->offset == kLinked + offset);
  CHECK(choice.point->bytes == bytes);
  CHECK(choice.point->dead_flags == (dead_flags ? 1u : 0u));
}

// Three instructions that can begin a point of several instructions, and a loop around them.
const Bytes kLoop{0x48, 0x01, 0xf0,        // add %rsi, %rax
                  0x48, 0x8d, 0x49, 0xff,  // 3: lea -1(%rcx), %rcx
                  0x48, 0x85, 0xc9,        // 7: test %rcx, %rcx
                  0x75, 0xf4,              // 10: jne 0
                  0xc3};
const Steps kLoopRound{0, 3, 7, 10};
constexpr std::uint64_t kBehindLoop = 13;

// A row of instructions, each of which can be a point.
constexpr std::size_t kAdd = 7;
Object row() {
  Bytes code;
  for (int i = 0; i < 8; ++i) code = code + Bytes{0x48, 0x81, 0xc1, 1, 0, 0, 0};  // add $1, %rcx
  return Object(code + kEnd);
}

// Jumps and calls of all kinds from `from` to `to`.
std::vector<Bytes> all_jumps(std::uint64_t from, std::uint64_t to) {
  std::vector<Bytes> all;
  for (const Bytes& code :
       {Bytes{0xeb}, Bytes{0x70}, Bytes{0x7f}, Bytes{0xe0}, Bytes{0xe2}, Bytes{0xe3}}) {
    all.push_back(code + Bytes{static_cast<unsigned char>(to - (from + 2))});
  }
  for (const Bytes& code : {Bytes{0xe9}, Bytes{0xe8}, Bytes{0x0f, 0x80}, Bytes{0x0f, 0x8f}}) {
    const auto distance = static_cast<std::uint32_t>(to - (from + code.size() + 4));
    Bytes field(4);
    std::memcpy(field.data(), &distance, sizeof distance);
    all.push_back(code + field);
  }
  return all;
}

// Returns whether a direct jump or call that begins at any byte leads to `target`.
bool leads_to(const Bytes& code, std::uint64_t target) {
  for (std::uint64_t from = 0; from < code.size(); ++from) {
    for (const Bytes& jump : all_jumps(from, target)) {
      const bool is_short = jump.size() == 2;
      const auto fits = static_cast<std::int64_t>(target - (from + 2));
      if (is_short && (fits < -128 || fits > 127)) continue;
      if (from + jump.size() <= code.size() &&
          std::equal(jump.begin(), jump.end(), code.begin() + static_cast<std::ptrdiff_t>(from)))
        return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("choose: several instructions are replaced if no jump leads into them", "[ticks]") {
  const Object loop(kLoop + kEnd);
  const Choice choice = choose_in(loop, rounds(kLoopRound));
  check_point(choice, 0, 7, true);
  CHECK(choice.where == "/opt/server+0x1000");
  CHECK(choice.point->weight_ps == 4 * 350);  // the steps from one passage to the next
}

TEST_CASE("choose: CHOOSE-1, a jump or call from anywhere leads into the instructions",
          "[ticks][CHOOSE-1]") {
  for (const Bytes& jump : all_jumps(kBehindLoop, 3)) {
    CAPTURE(jump);
    check_point(choose_in(Object(kLoop + jump + kEnd), rounds(kLoopRound)), 7, 5, true);
  }
  for (const Bytes& jump : all_jumps(kBehindLoop, 0)) {  // to the first
    CAPTURE(jump);
    check_point(choose_in(Object(kLoop + jump + kEnd), rounds(kLoopRound)), 0, 7, true);
  }
  // From the last bytes, and from the middle of a possible instruction.
  const std::uint64_t last = kBehindLoop + kEnd.size();
  for (const Bytes& jump : all_jumps(last, 3)) {
    CAPTURE(jump);
    check_point(choose_in(Object(kLoop + kEnd + jump), rounds(kLoopRound)), 7, 5, true);
  }
  for (const Bytes& jump : all_jumps(kBehindLoop + 2, 3)) {
    CAPTURE(jump);
    const Bytes constant = Bytes{0x48, 0xb8} + jump;
    check_point(choose_in(Object(kLoop + constant + kEnd), rounds(kLoopRound)), 7, 5, true);
  }
}

TEST_CASE("choose: CHOOSE-1, a jump table may lead into the instructions", "[ticks][CHOOSE-1]") {
  const Bytes through_register{0x48, 0x01, 0xd0, 0xff, 0xe0};  // add %rdx, %rax; jmp *%rax
  const Bytes through_memory{0xff, 0x24, 0xc5, 0, 0, 0, 0};
  const Bytes no_table{0xff, 0xe0};
  CHECK(!choose_in(Object(kLoop + through_register + kEnd), rounds(kLoopRound)).point);
  CHECK(!choose_in(Object(kLoop + through_memory + kEnd), rounds(kLoopRound)).point);
  check_point(choose_in(Object(kLoop + no_table + kEnd), rounds(kLoopRound)), 0, 7, true);
  // A jump through a table that is executed, but far away.
  const Bytes far(2000, 0x90);
  const Object object(kLoop + far + through_memory + kEnd);
  check_point(choose_in(object, rounds(kLoopRound)), 0, 7, true);
  Steps steps = rounds(kLoopRound);
  steps.push_back(kBegin + kLoop.size() + far.size());
  CHECK(!choose_in(object, steps).point);
}

TEST_CASE("choose: CHOOSE-1, an executed step leads into the instructions", "[ticks][CHOOSE-1]") {
  const Object loop(kLoop + kEnd);
  // A jump through a register from after the loop to the lea.
  Steps steps = rounds(kLoopRound);
  steps.insert(steps.begin() + 8, {kBegin + 12, kBegin + 3, kBegin + 7, kBegin + 10});
  check_point(choose_in(loop, steps), 7, 5, true);
  steps = rounds(kLoopRound);
  steps.insert(steps.end(), {kBegin + 12, kBegin + 3});
  check_point(choose_in(loop, steps), 7, 5, true);
}

TEST_CASE("choose: without a safe place there is no point, and the last step is reported",
          "[ticks]") {
  const Bytes jumps = all_jumps(kBehindLoop, 3)[0] + all_jumps(kBehindLoop + 2, 7)[0] +
                      all_jumps(kBehindLoop + 4, 10)[0];
  const Choice choice = choose_in(Object(kLoop + jumps + kEnd), rounds(kLoopRound));
  CHECK_FALSE(choice.point);
  CHECK(choice.where == "/opt/server+0x100a");  // the last step
}

TEST_CASE("choose: flags are saved unless the first instruction overwrites them", "[ticks]") {
  const Bytes jumps = all_jumps(kBehindLoop, 3)[0] + all_jumps(kBehindLoop + 2, 10)[0];
  check_point(choose_in(Object(kLoop + jumps + kEnd), rounds(kLoopRound)), 3, 7, false);
  // adc and sbb read the flags that they overwrite.
  for (const unsigned char operation : Bytes{0x11, 0x19, 0x13, 0x1b}) {
    const Object one(Bytes{0x48, operation, 0x81, 0, 0, 0, 0} + kEnd);
    check_point(choose_in(one, rounds({0})), 0, 7, false);
  }
  for (const unsigned char operation : Bytes{0x01, 0x09, 0x21, 0x29, 0x31, 0x39, 0x85}) {
    const Object one(Bytes{0x48, operation, 0x81, 0, 0, 0, 0} + kEnd);
    check_point(choose_in(one, rounds({0})), 0, 7, true);
  }
  for (unsigned group = 0; group < 8; ++group) {
    const auto operands = static_cast<unsigned char>(0xc1 | (group << 3u));
    const Object one(Bytes{0x48, 0x81, operands, 1, 0, 0, 0} + kEnd);
    check_point(choose_in(one, rounds({0})), 0, 7, group != 2 && group != 3);
  }
  const Object move(Bytes{0x48, 0xc7, 0xc0, 1, 0, 0, 0} + kEnd);
  check_point(choose_in(move, rounds({0})), 0, 7, false);
}

TEST_CASE("choose: a call is better than another instruction, and one is better than several",
          "[ticks]") {
  const Bytes large{0x48, 0x81, 0xc1, 1, 0, 0, 0};
  const Object with_large(kLoop + large + kEnd);
  check_point(choose_in(with_large, rounds({0, 3, 7, 10, kBehindLoop})), kBehindLoop, 7, true);
  const Bytes call{0xe8, 0x10, 0, 0, 0};
  const Object with_call(kLoop + large + call + kEnd);
  check_point(choose_in(with_call, rounds({0, 3, 7, 10, kBehindLoop, kBehindLoop + 7})),
              kBehindLoop + 7, 5, true);
}

TEST_CASE("choose: a point of several contains no call and ends at a jump or return", "[ticks]") {
  const Bytes move{0x48, 0x89, 0xf8};
  for (const Bytes& last : {Bytes{0xe8, 0, 0, 0, 0}, Bytes{0xc3, 0x90, 0x90}, Bytes{0xeb, 0, 0x90},
                            Bytes{0x0f, 0xae, 0xe8}}) {
    CAPTURE(last);
    const bool ends_early = last[0] != 0xeb;  // a jump of two bytes makes five
    const Choice choice = choose_in(Object(move + last + kEnd), rounds({0}));
    CHECK(choice.point.has_value() != ends_early);
  }
  check_point(choose_in(Object(move + Bytes{0xe9, 0, 0, 0, 0} + kEnd), rounds({0})), 0, 8, false);
}

TEST_CASE("choose: flags need not be saved at the begin of a function", "[ticks]") {
  // Code that must not have a point calls a function that may have one.
  Object caller(Bytes{0xe8, 0, 0, 0, 0, 0x90, 0x90} + kEnd, kBegin + 0x10000);
  caller.code.may_be_point = false;
  const Object callee(Bytes{0x48, 0x8d, 0x80, 0x10, 0, 0, 0, 0xc3} + kEnd);
  const auto code_at = [&](std::uint64_t address) -> const Code* {
    if (callee.has(address)) return &callee.code;
    return caller.has(address) ? &caller.code : nullptr;
  };
  Steps steps;
  for (std::size_t i = 0; i < kRounds; ++i) {
    steps.insert(steps.end(), {kBegin + 0x10000, kBegin, kBegin + 7, kBegin + 0x10005});
  }
  check_point(choose(steps, {}, code_at), 0, 7, true);
  // One step reached it without a call.
  Steps last = steps;
  last.insert(last.end(), {kBegin + 0x10006, kBegin});
  check_point(choose(last, {}, code_at), 0, 7, false);
  Steps first = steps;
  first.insert(first.begin(), {kBegin + 0x10006, kBegin, kBegin + 7});
  check_point(choose(first, {}, code_at), 0, 7, false);
}

TEST_CASE("choose: an instruction that is executed rarely but regularly is better", "[ticks]") {
  const Object object = row();
  SECTION("an outer loop around an inner one") {
    const Choice choice = choose_in(object, rounds({0, 7, 14, 7, 14, 7, 14, 21, 0, 0}));
    check_point(choice, 21, kAdd, true);
    CHECK(choice.point->weight_ps == 10 * 350);
  }
  SECTION("but not one that was executed too few times") {
    Steps steps = rounds({0, 0, 0, 7, 0, 0}, kPassagesMin);
    Steps rare = rounds({0, 0, 0, 7, 0, 0}, kPassagesMin - 1);
    rare.insert(rare.end(), 6, kBegin);
    check_point(choose_in(object, steps), 7, kAdd, true);
    check_point(choose_in(object, rare), 0, kAdd, true);
  }
  SECTION("nor one that was missing for more than half of the steps") {
    const Steps regular = rounds({0, 7, 0, 0});
    Steps late = rounds({0, 0, 0, 0}, kRounds + 20);
    late.insert(late.end(), regular.begin(), regular.end());
    check_point(choose_in(object, late), 0, kAdd, true);
    Steps early = regular;
    early.insert(early.end(), 4 * (kRounds + 20), kBegin);
    check_point(choose_in(object, early), 0, kAdd, true);
    Steps between = rounds({0, 7, 0, 0}, 50);
    between.insert(between.end(), 4 * (kRounds + 20), kBegin);
    const Steps end = rounds({0, 7, 0, 0}, 50);
    between.insert(between.end(), end.begin(), end.end());
    check_point(choose_in(object, between), 0, kAdd, true);
  }
}

TEST_CASE("choose: a known point is chosen if it is suitable", "[ticks]") {
  const Object object = row();
  const Steps steps = rounds({0, 0, 0, 7, 14, 0});
  const auto known = [](std::uint64_t build, std::uint32_t offset) {
    return std::vector<TickPoint>{
        {build, static_cast<std::uint32_t>(kLinked) + offset, 99, kAdd, 1}};
  };
  check_point(choose_in(object, steps), 7, kAdd, true);
  const Choice again = choose_in(object, steps, known(kBuild, 14));
  check_point(again, 14, kAdd, true);
  CHECK(again.point->weight_ps == 99);
  CHECK(again.where == "/opt/server+0x100e");
  check_point(choose_in(object, steps, known(kBuild + 1, 14)), 7, kAdd, true);
  check_point(choose_in(object, steps, known(kBuild, 21)), 7, kAdd, true);  // not executed
  Steps seldom = steps;
  seldom.insert(seldom.begin() + 5, kPassagesMin - 1, kBegin + 21);
  check_point(choose_in(object, seldom, known(kBuild, 21)), 7, kAdd, true);
}

TEST_CASE("choose: code that must not have a point gets none, and its place is reported",
          "[ticks]") {
  Object object = row();
  SECTION("no build id") { object.code.build = 0; }
  SECTION("libc") { object.code.may_be_point = false; }
  const Choice choice = choose_in(object, rounds({0, 7, 14}));
  CHECK_FALSE(choice.point);
  CHECK(choice.where == "/opt/server+0x100e");
}

TEST_CASE("choose: memory that maps no file is reported by its address", "[ticks]") {
  const auto nothing = [](std::uint64_t) -> const Code* { return nullptr; };
  const Choice choice = choose(rounds({0, 7}), {}, nothing);
  CHECK_FALSE(choice.point);
  CHECK(choice.where == "memory of no file at 0x401007");
  const Choice none = choose({}, {}, nothing);
  CHECK_FALSE(none.point);
  CHECK(none.where == "no instruction was seen");
}

TEST_CASE("choose: an instruction cut off at the end of readable memory is not used", "[ticks]") {
  const Object object(Bytes{0x48, 0x81, 0xc1, 1, 0, 0, 0});
  CHECK_FALSE(choose_in(object, rounds({0})).point);
}

TEST_CASE("choose: CHOOSE-1 in random code", "[ticks][CHOOSE-1]") {
  const std::vector<Bytes> instructions{{0x48, 0x01, 0xf0},
                                        {0x48, 0x8d, 0x49, 0xff},
                                        {0x90},
                                        {0x48, 0x85, 0xc9},
                                        {0x75, 0x00},
                                        {0xeb, 0x00},
                                        {0xc3},
                                        {0x0f, 0x84, 0, 0, 0, 0}};
  CHECK(rc::check("no step and no jump leads to an inner instruction", [&instructions] {
    Bytes code;
    std::vector<std::uint64_t> begins;
    const auto count = *rc::gen::inRange<std::size_t>(4, 16);
    for (std::size_t i = 0; i < count; ++i) {
      Bytes next = *rc::gen::elementOf(instructions);
      if (next[0] == 0x75 || next[0] == 0xeb) {
        next[1] = static_cast<unsigned char>(*rc::gen::inRange(-30, 30));
      } else if (next[0] == 0x0f) {
        const int distance = *rc::gen::inRange(-30, 30);
        std::memcpy(next.data() + 2, &distance, sizeof distance);
      }
      begins.push_back(code.size());
      code = code + next;
    }
    // A path through the code: mostly straight on, sometimes to a random place, repeated.
    Steps round;
    std::size_t at = 0;
    for (int i = 0; i < 12; ++i) {
      round.push_back(begins[at]);
      at = *rc::gen::inRange(0, 4) == 0 ? *rc::gen::inRange<std::size_t>(0, count)
                                        : (at + 1) % count;
    }
    code = code + kEnd;
    const Steps steps = rounds(round, 5);
    const Choice choice = choose_in(Object(code), steps);
    if (!choice.point) return;
    const std::uint64_t first = choice.point->offset - kLinked;
    const std::uint64_t end = first + choice.point->bytes;
    RC_ASSERT(choice.point->bytes >= 5u);
    RC_ASSERT(std::find(begins.begin(), begins.end(), first) != begins.end());
    for (std::size_t b = 1; b < begins.size(); ++b) {
      if (begins[b] <= first || begins[b] >= end) continue;
      RC_ASSERT(!leads_to(code, begins[b]));
      for (std::size_t i = 1; i < steps.size(); ++i) {
        if (steps[i] == kBegin + begins[b]) RC_ASSERT(steps[i - 1] == kBegin + begins[b - 1]);
      }
    }
  }));
}
