// SPDX-License-Identifier: Apache-2.0
#pragma once
// A store on a modelled disk: for the simulator, and for events that are too rare on a real disk to
// be tested (power loss in mid-write, torn pages, a lost tail, rotten bits).
//
// The disk outlives the store as a disk outlives a process.  Written bytes are in its cache until
// they are synced: a killed process loses none of them; a loss of power loses or tears any page
// that was not synced.  Records follow each other, each with a CRC.  The number of bytes that were
// reported as done is kept separately, as the high mark is (STORE-T4).

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "consensus/store/store.h"

namespace crane::consensus::store {

struct MemDisk {
  std::vector<std::byte> bytes;  // as a reader sees them
  std::size_t synced = 0;        // bytes before are on the platter
  std::size_t mark = 0;          // bytes before were reported as done
  std::uint64_t syncs = 0;
  bool test_only_no_sync = false;  // syncs do nothing, as if fdatasync were removed

  // Each unsynced page stays, is lost, or is torn, depending on `random`.
  void lose_power(const std::function<std::uint64_t()>& random);
  // Flips one bit of the synced bytes.
  void rot(std::uint64_t random);
};

class MemStore final : public Store {
 public:
  // Recovers what the disk holds.
  explicit MemStore(MemDisk& disk);

  const State& state() const noexcept override { return state_; }
  Outcome reset_at(const Identity& identity, const core::Cursor& begin, View promise) override;
  Outcome promise(View view) override;
  Result<core::Cursor> append(const core::Cursor& from, std::span<const std::byte> bytes,
                              const core::Cursor& commit) override;
  Result<Index> read(Index from, std::size_t bytes_max, std::vector<std::byte>& out) override;
  Result<core::EntryHeader> header(Index index) override;
  Outcome drop_below(Index index) override;

  // As append() and promise(), but a crash comes before the sync (for the simulator).
  void test_only_cut_short(const core::Cursor& from, std::span<const std::byte> bytes,
                           const core::Cursor& commit);

 private:
  enum class Kind : std::uint32_t { kIdentity = 1, kPromise, kEntries, kDrop, kBegin };
  struct Record {
    std::uint32_t crc = 0;  // over the rest and the body
    Kind kind{};
    std::uint64_t length = 0;
  };

  Outcome write(Kind kind, std::span<const std::byte> body, std::span<const std::byte> more);
  Outcome sync();
  std::size_t recover();
  void apply(Kind kind, std::size_t at, std::size_t length);
  void apply_entries(std::size_t at, std::size_t length);
  void truncate(Index last);
  std::span<const std::byte> entry(Index index) const;
  core::Cursor before(Index index) const;

  MemDisk& disk_;
  State state_;
  std::map<std::uint64_t, std::size_t> entries_;  // index -> offset of its header
};

}  // namespace crane::consensus::store
