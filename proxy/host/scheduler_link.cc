// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/scheduler_link.h"

#include <algorithm>

#include "dmt/base/crc.h"
#include "dmt/scheduler.h"
#include "dmt/sequence/entry.h"

namespace crane::node {

void SchedulerLink::committed(const consensus::EntryView& entry) {
  SequenceHeader header{};
  header.body_bytes = static_cast<std::uint32_t>(entry.payload.size());
  header.type = static_cast<EntryType>(entry.type);
  header.grant = entry.grant;
  header.stamp_ns = entry.stamp_ns;
  header.viewstamp = entry.at;
  header.crc = crc32c(entry.payload.data(), entry.payload.size(), crc32c(&header, sizeof header));
  const auto head = std::as_bytes(std::span<const SequenceHeader, 1>{&header, 1});
  if (spool_.empty() && push(head, entry.payload)) return;
  std::vector<std::byte> record(head.begin(), head.end());  // SLOT0-1: after the waiting entries
  record.insert(record.end(), entry.payload.begin(), entry.payload.end());
  spooled_bytes_ += record.size();
  spool_.push_back(std::move(record));
}

bool SchedulerLink::push(std::span<const std::byte> header,
                         std::span<const std::byte> body) noexcept {
  const auto size = static_cast<std::uint32_t>(header.size() + body.size());
  if (!memory_.make_room(size)) return false;
  const std::span<std::byte> room = sequence_.reserve(size);
  if (room.empty()) return false;
  std::memcpy(room.data(), header.data(), header.size());
  if (!body.empty()) std::memcpy(room.data() + header.size(), body.data(), body.size());
  sequence_.commit(size);
  return true;
}

bool SchedulerLink::pump() {
  bool moved = false;
  while (!spool_.empty() && push(spool_.front(), {})) {
    spooled_bytes_ -= spool_.front().size();
    spool_.pop_front();
    moved = true;
  }
  return moved;
}

bool SchedulerLink::admit() {
  // No thread writes to the ring while the turn is unowned.  Does nothing if a thread has the turn.
  if (held_ || outputs_waiting()) return false;  // SLOT0-2
  return dmt::admit_from_node(layout_);
}

std::vector<checkpoint::FileRange> SchedulerLink::read_bytes() const {
  std::vector<checkpoint::FileRange> ranges;
  for (const RingLayout* ring : {&layout_.header.sequence, &layout_.header.output}) {
    if (ring->read_position.load() != ring->write_position.load()) continue;
    ranges.push_back({ring->data_offset, ring->data_offset + ring->capacity});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.from < b.from; });
  return ranges;
}

std::uint64_t SchedulerLink::waiting_bytes() const noexcept {
  const RingLayout& ring = layout_.header.sequence;
  return spooled_bytes_ + ring.write_position.load(std::memory_order_relaxed) -
         ring.read_position.load(std::memory_order_relaxed);
}

}  // namespace crane::node
