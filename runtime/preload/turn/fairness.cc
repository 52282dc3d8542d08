// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/fairness.h"

namespace crane {
namespace {

struct Reservation {
  std::uint64_t object;  // 0 = free
  std::uint16_t slot;
};
constexpr int kReservationsMax = 32;
Reservation reservations[kReservationsMax];
int reserved = 0;  // entries in use; usually 0, which saves the search

Reservation* find(std::uint64_t object) noexcept {
  if (reserved == 0) return nullptr;
  for (Reservation& r : reservations) {
    if (r.object == object) return &r;
  }
  return nullptr;
}

}  // namespace

bool is_reserved_for_another(std::uint64_t object) noexcept {
  const Reservation* r = find(object);
  return r != nullptr && r->slot != self.slot;
}

void note_failure(std::uint64_t object, int& failures) noexcept {
  if (++failures < kPatience || find(object) != nullptr) return;
  for (Reservation& r : reservations) {
    if (r.object != 0) continue;
    r = {object, self.slot};
    ++reserved;
    return;
  }
}

void end_reservation(dmt::Layout& w, std::uint64_t object, bool gave_up) noexcept {
  Reservation* r = find(object);
  if (r == nullptr || r->slot != self.slot) return;
  *r = {};
  --reserved;
  // Threads that failed only because of the reservation may find the object free.
  if (gave_up) dmt::signal(w, object, dmt::kAll);
}

std::uint32_t waiters_to_wake(std::uint64_t object) noexcept {
  return find(object) != nullptr ? dmt::kAll : 1;
}

void forget_reservations() noexcept {
  for (Reservation& r : reservations) r = {};
  reserved = 0;
}

}  // namespace crane
