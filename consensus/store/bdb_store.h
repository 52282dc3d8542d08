// SPDX-License-Identifier: Apache-2.0
#pragma once
// The store on disk: a transactional environment of Berkeley DB (APUS 5.1).
//
//   <directory>/lock         held by the process that has the store open
//   <directory>/high         the high mark: number of the last transaction, its last entry, promise
//   <directory>/env/         the environment: its write-ahead log, and
//       meta.db              one record: identity, promise, ends of the log, commit index
//       entries-<index>.db   the array of stores: a B-tree of entries by index, from <index> on
//   <directory>/damaged-N/   an environment that reset() set aside
//
// One append is one transaction: its records go to the write-ahead log, which is synced once; the
// B-trees are written later, at checkpoints of the environment.  A segment is closed when it is
// large enough, and dropped as a whole file (C9).  No B-tree gets high, and no record is ever
// deleted singly.
//
// The high mark makes a shortened log visible (U8): to Berkeley DB a write-ahead log with a rotten
// end looks like one that ends there.  It is written after each transaction, before the transaction
// is reported, but synced only when nothing waits.  It is never ahead of the log; after a loss of
// power it may be as far behind as the store was busy without a pause.

#include <db.h>

#include <memory>
#include <string>
#include <vector>

#include "consensus/store/store.h"

namespace crane::consensus::store {

struct BdbOptions {
  std::string directory;  // created if missing
  std::uint64_t segment_bytes = 64U << 20;
  std::uint64_t cut_bytes = 1U << 20;  // drop_below() closes a segment of this size, for the next
                                       // drop
  std::uint64_t checkpoint_bytes = 16U << 20;  // of the write-ahead log
  std::uint32_t cache_bytes = 16U << 20;
  std::uint32_t log_file_bytes = 32U << 20;
  // STORE-T6: left free when entries are written, for all stores on the same disk.  A transaction
  // of the largest size writes less than a quarter of the default, and the cache at most a half.
  std::uint64_t spare_bytes = 32U << 20;
};

class BdbStore final : public Store {
 public:
  // Opens or creates the store, recovers it, checks every record.  A damaged store opens (state()
  // reports the damage).  kBusy: another process has it; kFull; kDenied; kSystem.
  static Result<std::unique_ptr<BdbStore>> open(const BdbOptions& options);
  ~BdbStore() override;

  const State& state() const noexcept override { return state_; }
  Outcome reset_at(const Identity& identity, const core::Cursor& begin, View promise) override;
  Outcome promise(View view) override;
  Result<core::Cursor> append(const core::Cursor& from, std::span<const std::byte> bytes,
                              const core::Cursor& commit) override;
  Result<Index> read(Index from, std::size_t bytes_max, std::vector<std::byte>& out) override;
  Result<core::EntryHeader> header(Index index) override;
  Outcome drop_below(Index index) override;
  Room room(Work work, std::size_t bytes) override;
  Outcome tidy() override;
  Outcome idle() override;

 private:
  struct Meta;
  struct Segment {
    std::uint64_t first = 0;  // holds entries from this index to the next segment's
    DB* db = nullptr;
  };
  struct Transaction;

  explicit BdbStore(const BdbOptions& options) : options_(options) {}

  std::string path(const std::string& name) const { return options_.directory + "/" + name; }
  std::string env_path() const { return path("env"); }
  Outcome open_files();
  Outcome recover();
  int open_env(bool create);
  int open_db(const std::string& file, bool create, DB** db);
  int open_segments();
  int read_meta();
  bool read_high(std::uint64_t& sequence, Identity& identity, Index& last);
  void check_high(const Meta& meta);
  void check_entries();
  void close();
  Outcome begin_reset(const Identity& identity);
  Outcome set_aside();
  Segment* segment_of(std::uint64_t index);
  int add_segment(std::uint64_t first);
  int get(std::uint64_t index, std::vector<std::byte>& bytes, std::size_t bytes_max);
  int put_entry(DB_TXN* txn, const core::EntryHeader& h, std::span<const std::byte> bytes);
  int put_meta(DB_TXN* txn, const State& state);
  int commit(DB_TXN* txn, const State& state);  // nullptr: a new transaction
  Outcome write_high();
  Outcome failed(int code, const char* what);
  void damaged(const std::string& what);

  const BdbOptions options_;
  State state_;
  std::uint64_t sequence_ = 0;  // transactions since the reset
  int lock_fd_ = -1;
  int high_fd_ = -1;
  bool high_dirty_ = false;
  bool broken_ = false;  // STORE-T5; Berkeley DB itself would continue after a failed sync
  int messages_left_ = 0;
  DB_ENV* env_ = nullptr;
  DB* meta_ = nullptr;
  std::vector<Segment> segments_;  // by first index
  std::uint64_t segment_used_ = 0;
  std::uint64_t unchecked_bytes_ = 0;  // of the write-ahead log since its last checkpoint
  bool cut_ = false;                   // entries were dropped since that checkpoint
  bool short_ = false;                 // there was no room for the last entries
  std::vector<std::byte> buffer_;
};

}  // namespace crane::consensus::store
