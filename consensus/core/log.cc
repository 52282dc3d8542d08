// SPDX-License-Identifier: Apache-2.0
#include "consensus/core/log.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"

namespace crane::consensus::core {

namespace {

std::uint32_t header_crc(const EntryHeader& h) noexcept {
  return crc32c(reinterpret_cast<const std::byte*>(&h) + sizeof h.crc, kHeaderBytes - sizeof h.crc);
}

std::uint32_t cell_crc(const CommitCell& c) noexcept { return crc32c(&c, sizeof c - sizeof c.crc); }

}  // namespace

bool valid_entry(const Cursor& at, std::uint64_t log_id, std::span<const std::byte> bytes,
                 EntryHeader& h) noexcept {
  if (bytes.size() < kHeaderBytes) return false;
  std::memcpy(static_cast<void*>(&h), bytes.data(), kHeaderBytes);
  const bool follows = h.log_id == log_id && h.pos == at.pos &&
                       h.index == value(at.last.index) + 1 && h.prev_view == value(at.last.view) &&
                       h.view >= h.prev_view;
  if (!follows || bytes.size() - kHeaderBytes < h.length) return false;
  return crc32c(bytes.data() + kHeaderBytes, h.length, header_crc(h)) == h.crc;
}

LogRing::LogRing(std::span<std::byte> memory, std::uint64_t ring_bytes, std::uint64_t log_id,
                 std::uint32_t payload_bytes_max)
    : memory_(memory),
      mask_(ring_bytes - 1),
      log_id_(log_id),
      payload_bytes_max_(payload_bytes_max),
      scratch_(payload_bytes_max) {
  CRANE_ASSERT(std::has_single_bit(ring_bytes) && ring_bytes >= 1024);
  CRANE_ASSERT(memory.size() >= log_memory_bytes(ring_bytes));
  CRANE_ASSERT(entry_bytes(payload_bytes_max) <= ring_bytes / 4);
}

EntryHeader LogRing::header_at(std::uint64_t pos) const noexcept {
  EntryHeader h;
  const std::uint64_t first = std::min(kHeaderBytes, contiguous(pos));
  std::memcpy(static_cast<void*>(&h), memory_.data() + offset(pos), first);
  if (first < kHeaderBytes) {
    std::memcpy(reinterpret_cast<std::byte*>(&h) + first, memory_.data(), kHeaderBytes - first);
  }
  return h;
}

std::uint32_t LogRing::crc_of(const EntryHeader& h) const noexcept {
  std::uint32_t crc = header_crc(h);
  const std::uint64_t pos = h.pos + kHeaderBytes;
  const std::uint64_t first = std::min<std::uint64_t>(h.length, contiguous(pos));
  crc = crc32c(memory_.data() + offset(pos), first, crc);
  if (first < h.length) crc = crc32c(memory_.data(), h.length - first, crc);
  return crc;
}

bool LogRing::follows(const Cursor& at, const EntryHeader& h) const noexcept {
  return h.log_id == log_id_ && h.pos == at.pos && h.index == value(at.last.index) + 1 &&
         h.prev_view == value(at.last.view) && h.view >= h.prev_view &&
         h.length <= payload_bytes_max_;
}

bool LogRing::valid_at(const Cursor& at, EntryHeader& header) const noexcept {
  header = header_at(at.pos);
  return follows(at, header) && (trust_bytes_ || crc_of(header) == header.crc);
}

bool LogRing::holds(const Cursor& from, const Cursor& to) const noexcept {
  if (from.pos > to.pos || to.pos - from.pos > ring_bytes()) return false;
  Cursor at = from;
  EntryHeader h;
  while (at.last.index < to.last.index && valid_at(at, h)) at = after(h);
  return at == to;
}

bool LogRing::valid_bytes(const Cursor& at, std::span<const std::byte> bytes,
                          EntryHeader& header) const noexcept {
  if (bytes.size() < kHeaderBytes) return false;
  std::memcpy(static_cast<void*>(&header), bytes.data(), kHeaderBytes);
  if (!follows(at, header) || bytes.size() < entry_bytes(header.length)) return false;
  return crc32c(bytes.data() + kHeaderBytes, header.length, header_crc(header)) == header.crc;
}

void LogRing::append(Cursor& at, EntryHeader header, std::span<const std::byte> payload) noexcept {
  CRANE_ASSERT(payload.size() <= payload_bytes_max_);
  CRANE_ASSERT(header.view >= value(at.last.view));  // CORE-L2
  header.log_id = log_id_;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.pos = at.pos;
  header.index = value(at.last.index) + 1;
  header.prev_view = value(at.last.view);
  header.crc = crc32c(payload.data(), payload.size(), header_crc(header));
  const std::span<const std::byte> head{reinterpret_cast<const std::byte*>(&header), kHeaderBytes};
  put(at.pos, head);
  put(at.pos + kHeaderBytes, payload);
  at = after(header);
}

void LogRing::put(std::uint64_t pos, std::span<const std::byte> bytes) noexcept {
  CRANE_ASSERT(bytes.size() <= ring_bytes());
  const std::uint64_t first = std::min<std::uint64_t>(bytes.size(), contiguous(pos));
  if (first > 0) std::memcpy(memory_.data() + offset(pos), bytes.data(), first);
  if (first < bytes.size()) {
    std::memcpy(memory_.data(), bytes.data() + first, bytes.size() - first);
  }
}

void LogRing::copy_out(std::uint64_t pos, std::span<std::byte> out) const noexcept {
  CRANE_ASSERT(out.size() <= ring_bytes());
  const std::uint64_t first = std::min<std::uint64_t>(out.size(), contiguous(pos));
  if (first > 0) std::memcpy(out.data(), memory_.data() + offset(pos), first);
  if (first < out.size()) std::memcpy(out.data() + first, memory_.data(), out.size() - first);
}

std::span<const std::byte> LogRing::payload(const EntryHeader& h) noexcept {
  CRANE_ASSERT(h.length <= payload_bytes_max_);
  const std::uint64_t pos = h.pos + kHeaderBytes;
  const std::uint64_t first = contiguous(pos);
  if (first >= h.length) return memory_.subspan(offset(pos), h.length);
  std::memcpy(scratch_.data(), memory_.data() + offset(pos), first);
  std::memcpy(scratch_.data() + first, memory_.data(), h.length - first);
  return {scratch_.data(), h.length};
}

void LogRing::put_fetched(std::span<const std::byte> bytes) noexcept {
  CRANE_ASSERT(bytes.size() <= fetch_bytes(ring_bytes()));
  std::memcpy(memory_.data() + fetch_offset(), bytes.data(), bytes.size());
}

void LogRing::set_commit_cell(View view, Index commit) noexcept {
  CommitCell cell{log_id_, value(view), value(commit), 0, 0};
  cell.crc = cell_crc(cell);
  std::memcpy(memory_.data() + commit_cell_offset(), &cell, sizeof cell);
}

Index LogRing::commit_cell(View view) const noexcept {
  CommitCell cell;
  std::memcpy(&cell, memory_.data() + commit_cell_offset(), sizeof cell);
  const bool whole = cell.log_id == log_id_ && cell.crc == cell_crc(cell);
  return whole && cell.view == value(view) ? Index{cell.commit} : Index{0};
}

std::optional<ConfigAt> LogRing::config_slot(std::uint64_t slot) const noexcept {
  const std::byte* const at = memory_.data() + config_slot_offset(slot);
  ConfigSlot head;
  std::memcpy(&head, at, sizeof head);
  if (head.log_id != log_id_ || head.length > kMembersBytesMax) return std::nullopt;
  const std::uint32_t crc = crc32c(&head, sizeof head - sizeof head.crc);
  if (crc32c(at + sizeof head, head.length, crc) != head.crc) return std::nullopt;
  const auto members = Members::decode({at + sizeof head, head.length});
  if (!members) return std::nullopt;
  return ConfigAt{{View{head.view}, Index{head.index}}, *members};
}

std::optional<ConfigAt> LogRing::saved_config() const noexcept {
  const auto a = config_slot(0);
  const auto b = config_slot(1);
  if (!a || !b) return a ? a : b;
  return a->at.index > b->at.index ? a : b;
}

void LogRing::save_config(const ConfigAt& config) noexcept {
  const auto first = config_slot(0);
  const auto second = config_slot(1);
  const bool first_is_newest = first && (!second || first->at.index > second->at.index);
  std::byte* const at = memory_.data() + config_slot_offset(first_is_newest ? 1 : 0);
  ConfigSlot head{log_id_, value(config.at.view), value(config.at.index), 0, 0};
  const std::span<std::byte> body{at + sizeof head, kMembersBytesMax};
  head.length = static_cast<std::uint32_t>(config.members.encode(body));
  head.crc = crc32c(body.data(), head.length, crc32c(&head, sizeof head - sizeof head.crc));
  std::memcpy(at, &head, sizeof head);
}

}  // namespace crane::consensus::core
