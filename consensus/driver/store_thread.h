// SPDX-License-Identifier: Apache-2.0
#pragma once
// The thread that owns a replica's store, so that no sync ever blocks the event loop.
//
// The idea: jobs in, results out, each through a short list under a mutex that is held for a move
// only; an eventfd says that there are results.  The lists are bounded by the protocol: one
// transaction of entries at a time (CORE-D4), promises that wait are merged into the newest, one
// read for the own server and one for a peer at a time, one piece of a copy; drops are merged, too.
// After an error nothing more is done (STORE-T5).
//
// Where the disk is full (STORE-T6) entries and promises wait in their order, with nothing begun;
// reads and drops go ahead of them, as drops make room.  No event of the kernel tells of room, so
// the thread looks again after kRoomLook, and after each drop.  What it sees is a result, too, when
// it changes.
//
// Threads: all members from the loop's thread, except where the comment says store thread.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "consensus/core/log.h"
#include "consensus/store/store.h"
#include "consensus/store/tail_writer.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"

namespace crane::consensus {

struct StoreJob {
  enum class Kind : std::uint8_t { kPromise, kAppend, kRead, kFetch, kDrop, kCopy, kRoom };
  Kind kind{};
  View view{};                 // kPromise
  std::uint64_t sequence = 0;  // kAppend, kFetch: the core's
  core::Cursor from;
  core::Cursor commit;
  Index index{};  // kRead, kFetch: from here on, up to about bytes_max; kDrop: up to here
  std::size_t bytes_max = 0;
  std::vector<std::byte> bytes;             // kAppend: the entries; else where they go
  std::shared_ptr<store::TailWriter> copy;  // kCopy: of which a piece is written
};

// A job that is done; or none is done any more, because of `error`.
struct StoreResult {
  StoreJob job;
  core::Cursor last;  // kAppend: durable up to here
  // kRead, kFetch: the index behind the last one that was read; kDrop: of the first one held.
  Index behind{};
  Error error;               // kOk: it is done.  A read or a copy may fail without consequences.
  std::int64_t took_ns = 0;  // the job, on the store thread
  store::Room room;          // kRoom: no job; what the disk has changed
};

class StoreThread {
 public:
  // kSystem: no thread, no eventfd.
  static Result<std::unique_ptr<StoreThread>> start(std::unique_ptr<store::Store> store);
  ~StoreThread();  // after the job under way

  void push(StoreJob job);
  // The results since the last call, in order; makes event_fd() silent.
  void take(std::vector<StoreResult>& out);
  // Readable when take() has something.
  int event_fd() const noexcept { return event_fd_; }

 private:
  StoreThread(std::unique_ptr<store::Store> store, int event_fd)
      : store_(std::move(store)), event_fd_(event_fd) {}
  void run();                                             // store thread
  bool take_job(StoreJob& job, std::size_t& seen);        // store thread
  bool has_room(StoreJob::Kind kind, std::size_t bytes);  // store thread
  bool wait(std::size_t seen, bool worked);               // store thread
  bool stopping();                                        // store thread
  void carry_out(StoreResult& result);                    // store thread
  void tell(StoreResult result);                          // store thread

  std::unique_ptr<store::Store> store_;
  const int event_fd_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<StoreJob> jobs_;
  std::vector<StoreResult> results_;
  bool stop_ = false;
  store::Room room_;  // store thread: as told last
  std::thread thread_;
};

}  // namespace crane::consensus
