// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log in a ring of memory that a remote leader writes: entry layout, validity, ring arithmetic.
//
// The idea (DESIGN C3): an entry contains everything that must hold at its place: the group's
// secret log id, its absolute byte position, its index and view, and its predecessor's view, under
// one CRC32C.  A scan therefore needs no canary and no zeroing: torn bytes, bytes of an earlier lap
// or of an older view, and client input shaped like an entry all fail to match.  A mismatch is the
// end of the log; overwriting one entry truncates the entries after it.
//
// Positions are absolute and never wrap; position p is at offset p mod ring_bytes.  An entry may
// straddle the end of the ring: two writes, two pieces under one CRC; its payload is handed out
// through a scratch buffer.  Entries start at multiples of 8.
//
// INVARIANT CORE-L1  the entries between two cursors of one log are contiguous in position and
//               index.
// INVARIANT CORE-L2  views never fall along a log, and an entry names its predecessor's view.
//
// Memory, owned by the caller: ring_bytes of ring, then kCommitCellBytes for the commit cell, two
// slots for the newest committed CONFIG, and the region that peers fetch from.
// Threads: one object, one thread.  Peers may write the memory at any time, so no byte is trusted
// before its CRC was checked on a copy of the header.

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
  std::uint64_t commit = 0;  // the writer's commit index when it appended this entry
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

// After the ring: the commit index, used when no later entry carries it.
struct CommitCell {
  std::uint64_t log_id = 0;
  std::uint64_t view = 0;
  std::uint64_t commit = 0;
  std::uint32_t zero = 0;
  std::uint32_t crc = 0;  // over the rest
};
inline constexpr std::uint64_t kCommitCellBytes = 64;
static_assert(sizeof(CommitCell) <= kCommitCellBytes);

// After the commit cell, written by the owner only: the newest committed CONFIG, used when its
// entry has left the ring.  The two slots alternate, so a crash during a write leaves the older one
// whole.
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

// After the slots, written by the owner only: stored entries that a peer requested, and reads
// one-sided (catch_up.cc).
inline constexpr std::uint64_t kFetchBytesMin = 1024;
inline constexpr std::uint64_t kFetchBytesMax = 1U << 20;
constexpr std::uint64_t fetch_bytes(std::uint64_t ring_bytes) noexcept {
  return std::clamp(ring_bytes / 16, kFetchBytesMin, kFetchBytesMax);
}

constexpr std::uint64_t log_memory_bytes(std::uint64_t ring_bytes) noexcept {
  return ring_bytes + kCommitCellBytes + kConfigSlots * kConfigSlotBytes + fetch_bytes(ring_bytes);
}

// A list of members and the stamp of its CONFIG entry; zero: the group's first members.
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

  // Copies the header at `pos` without checking it.
  EntryHeader header_at(std::uint64_t pos) const noexcept;
  // True if a whole entry that follows `at.last` is at `at.pos`; sets its header.
  bool valid_at(const Cursor& at, EntryHeader& header) const noexcept;
  // As valid_at without the CRC: for bytes that were checked before and that only the owner
  // changes.
  bool follows(const Cursor& at, const EntryHeader& header) const noexcept;
  static Cursor after(const EntryHeader& header) noexcept {
    return {header.pos + entry_bytes(header.length), {View{header.view}, Index{header.index}}};
  }

  // Writes an entry at `at` and moves `at` past it.  REQUIRES: there is room; payload fits.
  void append(Cursor& at, EntryHeader header, std::span<const std::byte> payload) noexcept;
  // Puts the bytes of a whole, checked entry at `pos`.
  void put(std::uint64_t pos, std::span<const std::byte> bytes) noexcept;
  // Copies out.size() bytes from `pos` on.
  void copy_out(std::uint64_t pos, std::span<std::byte> out) const noexcept;
  // The payload of the entry at header.pos; valid until the next call or until overwritten.
  std::span<const std::byte> payload(const EntryHeader& header) noexcept;

  // True if the ring holds all entries from `from` to exactly `to`, whole.
  bool holds(const Cursor& from, const Cursor& to) const noexcept;

  // True if `bytes` starts with a whole, valid entry that follows `at`.
  bool valid_bytes(const Cursor& at, std::span<const std::byte> bytes,
                   EntryHeader& header) const noexcept;

  void set_commit_cell(View view, Index commit) noexcept;
  // Returns the commit index if the cell is complete and of `view`, else 0.
  Index commit_cell(View view) const noexcept;
  std::uint64_t commit_cell_offset() const noexcept { return ring_bytes(); }

  // Makes the bytes readable for a peer at fetch_offset().  REQUIRES: bytes.size() <=
  // fetch_bytes().
  void put_fetched(std::span<const std::byte> bytes) noexcept;
  std::uint64_t fetch_offset() const noexcept { return config_slot_offset(kConfigSlots); }

  // Keeps a committed CONFIG across restarts on this memory.
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
