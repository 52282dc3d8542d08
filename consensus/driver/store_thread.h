// SPDX-License-Identifier: Apache-2.0
#pragma once
// The thread that owns a replica's store, so that no sync ever blocks the event loop.
//
// The idea: jobs in, results out, each through a short list under a mutex that is held only for a
// move; an eventfd signals results.  The protocol bounds the lists: one transaction of entries at a
// time (CORE-D4), waiting promises are merged into the newest, one read for its server and one
// for a peer at a time, one piece of a copy; drops are merged, too.  After an error the thread does
// nothing more (STORE-T5).
//
// If the disk is full (STORE-T6), entries and promises wait in their order, and none begins; reads
// and drops overtake them, because drops make room.  The kernel sends no event when room appears,
// so the thread checks again after kRoomLook, and after each drop.  A change of the disk's state is
// a result, too.
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
  Index index{};  // kRead, kFetch: first index, up to about bytes_max; kDrop: last index
  std::size_t bytes_max = 0;
  std::vector<std::byte> bytes;             // kAppend: the entries; else the buffer for the result
  std::shared_ptr<store::TailWriter> copy;  // kCopy: one piece of it is written
};

// A finished job; or, with `error` of a job other than a read or copy, the end of all work.
struct StoreResult {
  StoreJob job;
  core::Cursor last;  // kAppend: durable up to here
  // kRead, kFetch: the index after the last one that was read; kDrop: the first index still held.
  Index behind{};
  Error error;               // kOk: success; an error of a read or a copy is harmless
  std::int64_t took_ns = 0;  // the job, on the store thread
  store::Room room;          // kRoom: no job; the changed state of the disk
};

class StoreThread {
 public:
  // kSystem: no thread, no eventfd.
  static Result<std::unique_ptr<StoreThread>> start(std::unique_ptr<store::Store> store);
  ~StoreThread();  // waits for the job under way

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
  void post_result(StoreResult result);                   // store thread

  std::unique_ptr<store::Store> store_;
  const int event_fd_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<StoreJob> jobs_;
  std::vector<StoreResult> results_;
  bool stop_ = false;
  store::Room room_;  // store thread: as last reported
  std::thread thread_;
};

}  // namespace crane::consensus
