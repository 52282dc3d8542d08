// SPDX-License-Identifier: Apache-2.0
#include "dmt/names.h"

#include <cstddef>

#include "dmt/base/assert.h"
#include "dmt/connections.h"
#include "dmt/node_link.h"
#include "dmt/sequence/output.h"
#include "dmt/signals.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

// A thread that was killed, was cancelled or jumped out of its call does not return for the answer.
bool is_abandoned(const Layout& w, const NameRecord& r, Slot me) noexcept {
  const SlotRecord& s = w.slots[r.slot];
  return r.slot == value(me) || !is_alive(s) || s.generation != r.generation;
}

NameRecord* find(Layout& w, std::uint64_t number) noexcept {
  for (NameRecord& r : w.names) {
    if (r.state != NameState::kFree && r.number == number) return &r;
  }
  return nullptr;
}

NameRecord* find_room(Layout& w, Slot me) noexcept {
  for (NameRecord& r : w.names) {
    if (r.state == NameState::kFree) return &r;
  }
  for (NameRecord& r : w.names) {
    if (is_abandoned(w, r, me)) return &r;
  }
  return nullptr;
}

}  // namespace

std::uint64_t send_name_query(Layout& w, Slot me, const NameRequest& request) noexcept {
  NameRecord* const r = find_room(w, me);
  if (r == nullptr) return 0;
  const std::uint64_t number = kOutboundBit | w.scheduler.clock;
  CRANE_ASSERT(find(w, number) == nullptr);  // a turn is one operation
  r->state = NameState::kAsked;
  r->slot = value(me);
  r->generation = w.slots[value(me)].generation;
  r->number = number;
  r->request = request;
  emit(w, OutputType::kResolve, number, 0, reinterpret_cast<const std::byte*>(&request),
       sizeof request);
  return number;
}

const NameRecord* find_name(const Layout& w, std::uint64_t number) noexcept {
  return find(const_cast<Layout&>(w), number);
}

void forget_name(Layout& w, std::uint64_t number) noexcept {
  if (NameRecord* const r = find(w, number); r != nullptr) r->state = NameState::kFree;
}

void admit_resolved(Layout& w, const ResolvedBody& body) noexcept {
  NameRecord* const r = find(w, body.number);
  if (r == nullptr || r->state != NameState::kAsked) return;  // NAME-1
  r->state = NameState::kAnswered;
  r->answer = body;
  r->answer.name[kNameBytes - 1] = '\0';
  if (r->answer.count > kNameAddressesMax)
    fence(w, "a RESOLVED entry counts more addresses than it can hold");
  signal(w, r->number, kAll);
}

}  // namespace crane::dmt
