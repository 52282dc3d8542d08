// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log in a ring of memory that a remote leader writes: entry layout, validity, ring arithmetic.
//
// The idea (DESIGN C3): an entry says everything that must hold where it stands: the group's secret
// log id, its absolute byte position, its index and view, its predecessor's view, under one CRC32C.
// Whoever scans needs no canary and no zeroing: torn bytes, bytes of an earlier lap, of an older
// view or of a client who shaped his input like an entry all fail to match, and a mismatch is the
// end of the log; overwriting one entry truncates what followed.
//
// Positions are absolute and never wrap; position p lives at offset p mod ring_bytes.  An entry may
// straddle the end of the ring: two writes, two pieces under one CRC; its payload is handed out
// through a scratch buffer.  Entries start at multiples of 8.
//
// INVARIANT CORE-L1  the entries between two cursors of one log are contiguous in position and
//               index.
// INVARIANT CORE-L2  views never fall along a log, and an entry names its predecessor's view.
//
// Memory: ring_bytes of ring, then kCommitCellBytes for the commit cell, two slots for the newest
// committed CONFIG, and what a peer fetches, given from outside.
// Threads: one object, one thread; peers may write the memory at any time, so nothing read from it
// is trusted before its CRC was checked on a copy of the header.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "consensus/core/membership.h"
#include "dmt/base/ids.h"

namespace crane::consensus::core {

struct EntryHeader {
  std::uint32_t crc = 0;     // over the header from `length` on, then the payload
  std::uint32_t length = 0;  // of the payload
  std::uint64_t log_id = 0;
  std::uint64_t pos = 0;
  std::uint64_t index = 0;
  std::uint64_t view = 0;
  std::uint64_t prev_view = 0;
  std::uint64_t commit = 0;  // the writer's commit index when it appended this
  std::uint64_t stamp_ns = 0;
  std::uint32_t grant = 0;
  std::uint8_t type = 0;
  std::uint8_t zero[3] = {};
};
inline constexpr std::uint64_t kHeaderBytes = sizeof(EntryHeader);
static_assert(kHeaderBytes == 72, "the byte format of the log");

constexpr std::uint64_t entry_bytes(std::uint64_t payload_bytes) noexcept {
  return (kHeaderBytes + payload_bytes + 7) & ~std::uint64_t{7};
}

// Behind the ring: what is committed, for when no later entry says so.
struct CommitCell {
  std::uint64_t log_id = 0;
  std::uint64_t view = 0;
  std::uint64_t commit = 0;
  std::uint32_t zero = 0;
  std::uint32_t crc = 0;  // over the rest
};
inline constexpr std::uint64_t kCommitCellBytes = 64;
static_assert(sizeof(CommitCell) <= kCommitCellBytes);

// Behind that, written by the owner only: the newest committed CONFIG, for when its entry has left
// the ring.  Two slots take turns, so that a crash in the middle leaves the older one whole.
struct ConfigSlot {
  std::uint64_t log_id = 0;
  std::uint64_t view = 0;
  std::uint64_t index = 0;
  std::uint32_t length = 0;
  std::uint32_t crc = 0;  // over the rest, then the list's bytes
};
inline constexpr std::uint64_t kConfigSlotBytes = sizeof(ConfigSlot) + kMembersBytesMax;
inline constexpr std::uint64_t kConfigSlots = 2;
static_assert(kConfigSlotBytes % 8 == 0);

// Behind those, written by the owner only: stored entries that a peer which was away has asked for,
// and reads one-sided (catch_up.cc).
inline constexpr std::uint64_t kFetchBytesMin = 1024;
inline constexpr std::uint64_t kFetchBytesMax = 1U << 20;
constexpr std::uint64_t fetch_bytes(std::uint64_t ring_bytes) noexcept {
  return std::clamp(ring_bytes / 16, kFetchBytesMin, kFetchBytesMax);
}

constexpr std::uint64_t log_memory_bytes(std::uint64_t ring_bytes) noexcept {
  return ring_bytes + kCommitCellBytes + kConfigSlots * kConfigSlotBytes + fetch_bytes(ring_bytes);
}

// A list of members and where the CONFIG that gave it stands; zero: the group's first members.
struct ConfigAt {
  Viewstamp at{};
  Members members;
};

// A place between two entries: the next one starts at `pos` and follows `last`.
struct Cursor {
  std::uint64_t pos = 0;
  Viewstamp last{};
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// True when `bytes` starts with a whole, valid entry of the log `log_id` that follows `at`.
bool valid_entry(const Cursor& at, std::uint64_t log_id, std::span<const std::byte> bytes,
                 EntryHeader& header) noexcept;

class LogRing {
 public:
  // REQUIRES: ring_bytes is a power of two >= 1024; memory.size() >= log_memory_bytes(ring_bytes).
  LogRing(std::span<std::byte> memory, std::uint64_t ring_bytes, std::uint64_t log_id,
          std::uint32_t payload_bytes_max);

  std::uint64_t ring_bytes() const noexcept { return mask_ + 1; }
  std::uint64_t offset(std::uint64_t pos) const noexcept { return pos & mask_; }
  // Bytes from `pos` to the end of the ring.
  std::uint64_t contiguous(std::uint64_t pos) const noexcept { return ring_bytes() - offset(pos); }

  // Copies the header at `pos`; says nothing about its validity.
  EntryHeader header_at(std::uint64_t pos) const noexcept;
  // True when a whole entry that follows `at.last` stands at `at.pos`; gives its header.
  bool valid_at(const Cursor& at, EntryHeader& header) const noexcept;
  // As valid_at without the CRC: for bytes that were checked before and that only the owner
  // changes.
  bool follows(const Cursor& at, const EntryHeader& header) const noexcept;
  static Cursor after(const EntryHeader& header) noexcept {
    return {header.pos + entry_bytes(header.length), {View{header.view}, Index{header.index}}};
  }

  // Writes an entry at `at` and moves `at` behind it.  REQUIRES: there is room; payload fits.
  void append(Cursor& at, EntryHeader header, std::span<const std::byte> payload) noexcept;
  // Puts the bytes of a whole, checked entry at `pos`.
  void put(std::uint64_t pos, std::span<const std::byte> bytes) noexcept;
  // Copies out size bytes from `pos` on.
  void copy_out(std::uint64_t pos, std::span<std::byte> out) const noexcept;
  // The payload of the entry at header.pos; valid until the next call or until overwritten.
  std::span<const std::byte> payload(const EntryHeader& header) noexcept;

  // True when the ring holds all from `from` to exactly `to`, whole.
  bool holds(const Cursor& from, const Cursor& to) const noexcept;

  // True when `bytes` starts with a whole, valid entry that follows `at`.
  bool valid_bytes(const Cursor& at, std::span<const std::byte> bytes,
                   EntryHeader& header) const noexcept;

  void set_commit_cell(View view, Index commit) noexcept;
  // The commit index if the cell is whole and of `view`, else 0.
  Index commit_cell(View view) const noexcept;
  std::uint64_t commit_cell_offset() const noexcept { return ring_bytes(); }

  // What a peer may read from fetch_offset() on.  REQUIRES: bytes.size() <= fetch_bytes().
  void put_fetched(std::span<const std::byte> bytes) noexcept;
  std::uint64_t fetch_offset() const noexcept { return config_slot_offset(kConfigSlots); }

  // Keeps a committed CONFIG over restarts on this memory.
  void save_config(const ConfigAt& config) noexcept;
  // The newest one saved, if any.
  std::optional<ConfigAt> saved_config() const noexcept;
  void test_only_trust_bytes(bool trust) noexcept { trust_bytes_ = trust; }

 private:
  std::optional<ConfigAt> config_slot(std::uint64_t slot) const noexcept;
  std::uint64_t config_slot_offset(std::uint64_t slot) const noexcept {
    return ring_bytes() + kCommitCellBytes + slot * kConfigSlotBytes;
  }
  std::uint32_t crc_of(const EntryHeader& header) const noexcept;

  std::span<std::byte> memory_;
  std::uint64_t mask_;
  std::uint64_t log_id_;
  std::uint32_t payload_bytes_max_;
  bool trust_bytes_ = false;        // only a mutant: no CRC is checked
  std::vector<std::byte> scratch_;  // a straddling payload
};

}  // namespace crane::consensus::core
