// SPDX-License-Identifier: Apache-2.0
#include "dmt/unhooked.h"

#include <cstring>

namespace crane::dmt {
namespace {

constexpr std::uint32_t kFree = 0, kWriting = 1, kThere = 2;

bool same(const UnhookedCall& a, const UnhookedCall& b) noexcept {
  return a.number == b.number && a.offset == b.offset && a.outcome == b.outcome &&
         std::strncmp(a.object, b.object, sizeof a.object) == 0;
}

}  // namespace

Counted count_unhooked(Layout& w, const UnhookedCall& call) noexcept {
  UnhookedCalls& u = w.unhooked;
  u.total.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < kUnhookedMax; ++i) {
    UnhookedRecord& r = u.records[i];
    std::uint32_t seen = kFree;
    if (r.state.compare_exchange_strong(seen, kWriting, std::memory_order_acq_rel)) {
      r.call = call;
      r.count.store(1, std::memory_order_relaxed);
      r.state.store(kThere, std::memory_order_release);
      return {i, true};
    }
    // A record that is being written may hold the same call.  Then the call is recorded twice; no
    // caller waits.
    if (seen == kThere && same(r.call, call)) {
      r.count.fetch_add(1, std::memory_order_relaxed);
      return {i, false};
    }
  }
  return {kNoRecord, false};
}

void count_unhooked_again(Layout& w, std::uint32_t record) noexcept {
  w.unhooked.total.fetch_add(1, std::memory_order_relaxed);
  if (record < kUnhookedMax) {
    w.unhooked.records[record].count.fetch_add(1, std::memory_order_relaxed);
  }
}

void note_stopped(Layout& w, std::uint32_t record) noexcept {
  std::uint32_t none = 0;
  w.unhooked.stopped.compare_exchange_strong(none, record + 1, std::memory_order_seq_cst);
}

const UnhookedRecord* unhooked_record(const Layout& w, std::uint32_t record) noexcept {
  if (record >= kUnhookedMax) return nullptr;
  const UnhookedRecord& r = w.unhooked.records[record];
  return r.state.load(std::memory_order_acquire) == kThere ? &r : nullptr;
}

}  // namespace crane::dmt
