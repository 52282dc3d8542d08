// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/unhooked.h"

#include <fmt/format.h>

#include <cstring>

#include "dmt/unhooked.h"

namespace crane::node {
namespace {

constexpr std::size_t kShownMost = 8;

const char* name(dmt::Outcome outcome) {
  switch (outcome) {
    case dmt::Outcome::kOperation:
      return "scheduled";
    case dmt::Outcome::kRefused:
      return "refused";
    case dmt::Outcome::kPassed:
      return "passed";
  }
  return "?";
}

// The server writes this text into the segment, possibly without a terminating zero.
template <std::size_t size>
std::string text_of(const char (&text)[size]) {
  return std::string(text, strnlen(text, size));
}

Unhooked describe(const dmt::UnhookedRecord& r) {
  std::string call = text_of(r.call.name);
  if (call == "unknown") call = fmt::format("number {}", r.call.number);
  return {std::move(call), text_of(r.call.object), name(r.call.outcome), r.call.offset,
          r.count.load(std::memory_order_relaxed)};
}

}  // namespace

std::vector<Unhooked> unhooked_calls(const dmt::Layout& layout) {
  std::vector<Unhooked> all;
  for (std::uint32_t i = 0; i < dmt::kUnhookedMax && all.size() < kShownMost; ++i) {
    if (const auto* record = dmt::unhooked_record(layout, i)) all.push_back(describe(*record));
  }
  return all;
}

UnsupportedCounts unsupported(const dmt::Layout& layout) noexcept {
  const dmt::Unsupported& u = layout.unsupported;
  constexpr auto kAny = std::memory_order_relaxed;
  return {u.datagrams.load(kAny), u.udp_ports.load(kAny), u.sandboxes.load(kAny)};
}

std::string unhooked_reason(const dmt::Layout& layout) {
  const std::uint32_t stopped = layout.unhooked.stopped.load(std::memory_order_acquire);
  const auto* record = stopped == 0 ? nullptr : dmt::unhooked_record(layout, stopped - 1);
  if (record == nullptr) return "";
  const Unhooked u = describe(*record);
  return fmt::format("the server's system call {} at {}+0x{:x} bypassed libcrane.so", u.call,
                     u.object, u.offset);
}

}  // namespace crane::node
