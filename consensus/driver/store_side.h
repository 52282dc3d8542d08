// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's half of disk mode: jobs for the store thread, its answers as events of the core, and
// committed entries from the store, if the core starts after them (LOG-K1).
//
// Threads: the loop's.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/core/step.h"
#include "consensus/driver/store_thread.h"
#include "dmt/base/latency_histogram.h"

namespace crane::consensus {

class StoreSide {
 public:
  // `directory` is for messages.  Entries applied + 1 .. replay_to are replayed.
  static Result<std::unique_ptr<StoreSide>> start(std::unique_ptr<store::Store> store,
                                                  std::string directory, ReplicaId self,
                                                  Index applied, Index replay_to);

  void submit(const core::StorePromise& a);
  void submit(const core::StoreEntries& a, const core::LogRing& ring);
  void submit(const core::FetchEntries& a);
  void submit(const core::DropStored& a);
  // Passes the store's answers to `step` as events; true if there were any.
  bool take(const std::function<void(const core::Event&)>& step);
  int event_fd() const noexcept { return thread_->event_fd(); }

  // See Consensus::copy_log().  All entries up to `held` are committed and in the store.
  Result<LogCopy> copy(const LogCopyRequest& request, Index held);

  // The store still has entries to hand out, before the core's.
  bool replaying() const noexcept { return next_ <= replay_to_; }
  // Some of these entries are already read.
  bool ready() const noexcept { return ready_; }
  // Hands out the entries that were read.
  void replay(const std::function<void(const EntryView&)>& hand_out);
  Index replayed() const noexcept { return Index{value(next_) - 1}; }
  // The oldest entry that the store holds.
  Index first() const noexcept { return first_; }
  // How long transactions of entries took until they were durable.
  const LatencyHistogram& synced() const noexcept { return synced_; }
  // Which disk has no room for the waiting entries (STORE-T6), and how much is missing; empty:
  // there is room.
  const std::string& no_room() const noexcept { return no_room_; }
  // It will have no room soon: the log should be cut.
  bool low_on_room() const noexcept { return low_; }
  // End of the durable log.
  std::uint64_t stored_pos() const noexcept { return stored_pos_; }

 private:
  StoreSide(std::unique_ptr<StoreThread> thread, std::string directory, ReplicaId self)
      : thread_(std::move(thread)), directory_(std::move(directory)), self_(self) {}
  void ask();
  core::Event failed(const Error& error);
  void copied(const Error& error);
  void note_room(const store::Room& room);
  std::optional<core::Event> event_of(StoreResult& r);

  std::unique_ptr<StoreThread> thread_;
  const std::string directory_;
  const ReplicaId self_;
  std::vector<StoreResult> results_;
  std::vector<std::byte> spare_;  // the buffer of the last transaction
  Index first_{};
  LatencyHistogram synced_;
  std::string no_room_;
  bool low_ = false;
  std::uint64_t stored_pos_ = 0;
  Index next_{1};  // next to be replayed
  Index replay_to_{};
  bool ready_ = false;
  std::vector<std::byte> replay_bytes_;
  std::vector<std::byte> fetched_;  // for a peer
  // The last requested copy, until its end was reported.
  std::shared_ptr<store::TailWriter> copy_;
  LogCopyRequest copies_;
  bool copying_ = false;  // the store's thread works on a piece of it
  Index copied_{};
  Error copy_error_{};
};

}  // namespace crane::consensus
