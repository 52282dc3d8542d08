// SPDX-License-Identifier: Apache-2.0
// Room for the log, in shared memory and on the store's disk (ROOM-1..2).
#include <algorithm>

#include "consensus/driver/driver.h"
#include "dmt/base/log.h"

namespace crane::consensus {
namespace {

// A leader hands over when this part of its ring is committed without its own store.
constexpr std::uint64_t kUnstoredDivisor = 8;

}  // namespace

// A leader whose disk is full can take only as much as its ring holds.  If the others, on other
// machines, have stored without it, one of them should lead.
void Driver::look_at_disk() {
  if (!store_ || store_->no_room().empty() || !leads() || options_.fabric == FabricKind::kShm) {
    return;
  }
  const bool alone = core_.committed() > core_.durable().index;
  const std::uint64_t ring = core_.config().ring_bytes;
  if (!alone || !core_.keeps_leading() ||
      core_.end_pos() - store_->stored_pos() <= ring / kUnstoredDivisor) {
    return;
  }
  ReplicaId best = options_.self;
  for (const MemberStatus& m : members()) {
    if (m.role != MemberRole::kVoter || !m.streaming || m.id == options_.self) continue;
    if (best == options_.self || m.durable > core_.peer_durable(best)) best = m.id;
  }
  if (best == options_.self || !core_.transfer(best, now()).ok()) return;
  Message() << "leadership handed over: r" << static_cast<unsigned>(value(options_.self))
            << ": its disk is full, the other replicas' disks are not";
  carry_out();
}

bool Driver::low_on_room() const noexcept { return store_ && store_->low_on_room(); }

bool Driver::out_of_room() const noexcept {
  return short_of_memory_ || (store_ && !store_->no_room().empty());
}

// Allocates positions of the log, which may be on both sides of the ring's end.
bool Driver::back(std::uint64_t pos, std::uint64_t bytes) noexcept {
  const std::uint64_t ring = core_.config().ring_bytes;
  const std::uint64_t offset = pos % ring;
  const std::uint64_t first = std::min(bytes, ring - offset);
  return fabric_->back(offset, first) && fabric_->back(0, std::min(bytes - first, ring));
}

// As back(), and at the followers: a write that fails there for lack of room loses its permission,
// and a new permission needs memory.
bool Driver::back_all(std::uint64_t pos, std::uint64_t bytes) noexcept {
  const std::uint64_t ring = core_.config().ring_bytes;
  const std::uint64_t offset = pos % ring;
  const std::uint64_t first = std::min(bytes, ring - offset);
  return back(pos, bytes) && fabric_->back_peers(offset, first) &&
         fabric_->back_peers(0, std::min(bytes - first, ring));
}

// ROOM-2 after an entry of `bytes` bytes.
bool Driver::has_room(std::uint64_t bytes) noexcept {
  const bool room = back_all(core_.end_pos(), bytes + kBackedBehind);
  refused_bytes_ = room ? 0 : std::max(refused_bytes_, bytes);
  if (room == !short_of_memory_) return room;
  short_of_memory_ = !room;
  Message() << (room ? "shared memory has room again: r" : "shared memory is full: r")
            << static_cast<unsigned>(value(options_.self)) << ": " << options_.directory.c_str()
            << (room ? ": inputs are accepted again"
                     : ": the log cannot grow, so inputs wait; remove other files from that file "
                       "system, or enlarge it with mount -o remount,size=");
  return room;
}

}  // namespace crane::consensus
