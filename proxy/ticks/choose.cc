// SPDX-License-Identifier: Apache-2.0
#include "proxy/ticks/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "dmt/base/instruction.h"

namespace crane::ticks {
namespace {

constexpr std::size_t kEntryBytes = 5;       // size of the jump or call to the stub
constexpr std::size_t kInstructionsMax = 5;  // in a point
// Approximate time per instruction; the leader corrects the weight later.
constexpr std::uint64_t kPsPerStep = 350;
constexpr std::uint32_t kWeightMax = 1'000'000'000;

// The executions of one instruction.
struct Execution {
  std::size_t count = 0;
  std::size_t last = 0;
  std::size_t gap = 0;                    // longest run of steps without it
  std::optional<std::uint64_t> from_all;  // the instruction before it, if always the same
  bool from_others = false;
  bool is_called = false;  // always reached by a call
};

struct Instruction {
  std::size_t length = 0;                               // 0: unknown
  bool is_call = false, is_jump = false, ends = false;  // ends: the last one of a point
};

const unsigned char* bytes_at(const Code& code, std::uint64_t address, std::size_t count) {
  const std::uint64_t at = address - code.begin;
  return at + count <= code.bytes.size() ? code.bytes.data() + at : nullptr;
}

Instruction decode(const Code& code, std::uint64_t address) {
  const unsigned char* c = bytes_at(code, address, kInstructionMax + 1);
  if (c == nullptr) return {};
  if (c[0] == 0xe8) return {5, true, false, true};
  unsigned char jump[kInstructionMax];
  if (const Move through = jump_of_call(c, jump); through.length != 0) {
    return {through.length, true, false, true};
  }
  if (c[0] == 0xe9) return {5, false, true, true};
  if (c[0] == 0xeb) return {2, false, true, true};
  if ((c[0] & 0xf0) == 0x70) return {2, false, true, false};
  if (c[0] == 0x0f && (c[1] & 0xf0) == 0x80) return {6, false, true, false};
  const std::size_t length = move_of(c).length;
  const bool leaves = c[0] == 0xc3 || c[0] == 0xff || ((c[0] & 0xf0) == 0x40 && c[1] == 0xff);
  return {length, false, false, length != 0 && leaves};
}

// add, or, and, sub, xor, cmp or test: overwrites all flags.
bool overwrites_flags(const unsigned char* c) {
  while (*c == 0x66) ++c;
  if ((*c & 0xf0) == 0x40) ++c;
  const unsigned group = (c[1] >> 3u) & 7u;
  if (*c < 0x40 && (*c & 7) < 6) return (*c >> 3u) != 2 && (*c >> 3u) != 3;  // not adc, sbb
  if (*c == 0x80 || *c == 0x81 || *c == 0x83) return group != 2 && group != 3;
  return *c == 0x84 || *c == 0x85 || *c == 0xa8 || *c == 0xa9;
}

std::unordered_map<std::uint64_t, Execution> count_all(std::span<const std::uint64_t> steps,
                                                       const CodeAt& code_at) {
  std::unordered_map<std::uint64_t, Execution> all;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Execution& s = all[steps[i]];
    s.gap = std::max(s.gap, i - s.last);
    s.last = i;
    ++s.count;
    if (i == 0) continue;
    const std::uint64_t before = steps[i - 1];
    if (s.from_all && *s.from_all != before) s.from_others = true;
    s.from_all = before;
    const Code* code = code_at(before);
    const bool called = code != nullptr && decode(*code, before).is_call &&
                        steps[i] != before + decode(*code, before).length;
    s.is_called = called && (s.count == 1 || s.is_called);
  }
  for (auto& [address, s] : all) s.gap = std::max(s.gap, steps.size() - s.last);
  return all;
}

// CHOOSE-1, for code: whether a direct jump or call leads to `target`.  Treats every byte as a
// possible start of an instruction.
bool is_jumped_to(const Code& code, std::uint64_t target) {
  const auto leads = [target](std::uint64_t behind, std::int64_t distance) {
    return behind + static_cast<std::uint64_t>(distance) == target;
  };
  const auto& b = code.bytes;
  for (std::size_t i = 0; i + 2 <= b.size(); ++i) {
    const unsigned char c = b[i];
    const bool is_short = (c & 0xf0) == 0x70 || c == 0xeb || (c & 0xfc) == 0xe0;
    if (is_short && leads(code.begin + i + 2, static_cast<signed char>(b[i + 1]))) return true;
    const bool is_long =
        c == 0xe8 || c == 0xe9 || ((c & 0xf0) == 0x80 && i > 0 && b[i - 1] == 0x0f);
    if (!is_long || i + 5 > b.size()) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, b.data() + i + 1, sizeof distance);
    if (leads(code.begin + i + 5, distance)) return true;
  }
  return false;
}

// Jumps through a table in compiled code: add %r1, %r2; jmp *%r2, or jmp *table(,%r,8).
constexpr std::size_t kTableJump = 5;
bool is_table_jump(const unsigned char* c) {
  if (c[0] == 0xff && c[1] == 0x24) return (c[2] & 0xc7) == 0xc5;
  const std::size_t prefix = c[2] == 0x3e ? 1 : 0;  // notrack
  return c[0] == 0x01 && c[2 + prefix] == 0xff && (c[3 + prefix] & 0xf8) == 0xe0;
}

// Whether an indirect jump, such as one through a table, was executed near `address`, or is in the
// code very near it: its targets are unknown.
bool is_near_table(const Code& code, std::uint64_t address, std::span<const std::uint64_t> jumps) {
  constexpr std::uint64_t kNear = 64 * 1024, kVeryNear = 1024;
  const auto is_near = [address](std::uint64_t jump) { return jump - address + kNear < 2 * kNear; };
  if (std::any_of(jumps.begin(), jumps.end(), is_near)) return true;
  const std::uint64_t at = address - code.begin;
  const std::uint64_t first = at > kVeryNear ? at - kVeryNear : 0;
  const std::uint64_t end = std::min<std::uint64_t>(at + kVeryNear, code.bytes.size());
  const auto near = code.bytes.subspan(first, end - first);
  for (std::size_t i = 0; i + kTableJump <= near.size(); ++i) {
    if (is_table_jump(near.data() + i)) return true;
  }
  return false;
}

bool is_indirect_jump(const unsigned char* c) {
  while (*c == 0x3e || (*c & 0xf0) == 0x40) ++c;
  return *c == 0xff && ((c[1] >> 3u) & 7u) == 4;
}

std::vector<std::uint64_t> indirect_jumps(std::span<const std::uint64_t> steps,
                                          const CodeAt& code_at) {
  std::vector<std::uint64_t> jumps;
  for (const std::uint64_t step : steps) {
    const Code* code = code_at(step);
    const unsigned char* c = code == nullptr ? nullptr : bytes_at(*code, step, kInstructionMax);
    if (c != nullptr && is_indirect_jump(c)) jumps.push_back(step);
  }
  std::sort(jumps.begin(), jumps.end());
  jumps.erase(std::unique(jumps.begin(), jumps.end()), jumps.end());
  return jumps;
}

struct Candidate {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  bool dead_flags = false;
  std::size_t cost = 0;
  std::vector<std::uint64_t> inner;  // the instructions after the first
};

using Counts = std::unordered_map<std::uint64_t, Execution>;

// The point that begins at `address`, according to the executed steps.
std::optional<Candidate> candidate_at(const Code& code, std::uint64_t address,
                                      const Execution& seen, const Counts& all) {
  Candidate c;
  c.address = address;
  std::uint64_t at = address, before = address;
  Instruction last;
  while (c.bytes < kEntryBytes) {
    const Instruction next = decode(code, at);
    if (next.length == 0 || last.ends || c.inner.size() + 1 >= kInstructionsMax) return {};
    if (next.is_call && at != address) return {};
    if (at != address) {
      c.inner.push_back(at);
      const auto known = all.find(at);
      const bool from_before =
          known == all.end() || (!known->second.from_others && known->second.from_all == before);
      if (!from_before) return {};
    }
    before = at;
    c.bytes += next.length;
    at += next.length;
    last = next;
  }
  const bool is_call = decode(code, address).is_call;
  c.dead_flags =
      is_call || seen.is_called || overwrites_flags(bytes_at(code, address, kInstructionMax));
  c.cost = seen.count * (c.dead_flags ? 2 : 5) + (is_call ? 0 : c.inner.empty() ? 1 : 2);
  return c;
}

std::string place_of(const Code& code, std::uint64_t address) {
  return fmt::format("{}+{:#x}", code.name, address - code.base);
}

}  // namespace

Choice choose(std::span<const std::uint64_t> steps, std::span<const TickPoint> known,
              const CodeAt& code_at) {
  Choice choice;
  if (steps.empty()) return {{}, "no instruction was seen"};
  const Counts all = count_all(steps, code_at);
  for (const auto& [address, seen] : all) {
    const Code* code = code_at(address);
    if (code == nullptr || seen.count < kPassagesMin || seen.gap > steps.size() / 2) continue;
    for (const TickPoint& point : known) {
      if (point.build == code->build && code->base + point.offset == address)
        return {point, place_of(*code, address)};
    }
  }
  std::vector<Candidate> candidates;
  for (const auto& [address, seen] : all) {
    const Code* code = code_at(address);
    if (code == nullptr || !code->may_be_point || code->build == 0) continue;
    if (seen.count < kPassagesMin || seen.gap > steps.size() / 2) continue;
    if (auto c = candidate_at(*code, address, seen, all)) candidates.push_back(std::move(*c));
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.address < b.address;
  });
  const std::vector<std::uint64_t> tables = indirect_jumps(steps, code_at);
  for (const Candidate& c : candidates) {
    const Code& code = *code_at(c.address);
    if (!c.inner.empty() && is_near_table(code, c.address, tables)) continue;
    const auto jumped = [&code](std::uint64_t inner) { return is_jumped_to(code, inner); };
    if (std::any_of(c.inner.begin(), c.inner.end(), jumped)) continue;
    const std::uint64_t offset = c.address - code.base;
    if (offset > UINT32_MAX) continue;
    const std::uint64_t weight = steps.size() * kPsPerStep / all.at(c.address).count;
    choice.point =
        TickPoint{code.build, static_cast<std::uint32_t>(offset),
                  static_cast<std::uint32_t>(std::min<std::uint64_t>(weight, kWeightMax)),
                  static_cast<std::uint32_t>(c.bytes), c.dead_flags ? 1u : 0u};
    choice.where = place_of(code, c.address);
    return choice;
  }
  const Code* code = code_at(steps.back());
  choice.where = code == nullptr ? fmt::format("memory of no file at {:#x}", steps.back())
                                 : place_of(*code, steps.back());
  return choice;
}

}  // namespace crane::ticks
