// SPDX-License-Identifier: Apache-2.0
#include "consensus/driver/store_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "consensus/fabric/process.h"
#include "dmt/base/assert.h"
#include "dmt/base/clock.h"

namespace crane::consensus {
namespace {

constexpr std::size_t kJobsMax = 8;
// After being idle this long the store may write what is not urgent.
constexpr std::chrono::milliseconds kIdleAfter{20};
// How often a full disk is checked.
constexpr std::chrono::milliseconds kRoomLook{50};

// Changes nothing in the store.
bool only_reads(StoreJob::Kind kind) noexcept {
  using Kind = StoreJob::Kind;
  return kind == Kind::kRead || kind == Kind::kFetch || kind == Kind::kCopy;
}

}  // namespace

Result<std::unique_ptr<StoreThread>> StoreThread::start(std::unique_ptr<store::Store> store) {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return system_error("make an eventfd for the store");
  std::unique_ptr<StoreThread> t(new StoreThread(std::move(store), fd));
  const SignalsBlocked blocked;
  t->thread_ = std::thread([at = t.get()] { at->run(); });
  return t;
}

StoreThread::~StoreThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
  ::close(event_fd_);
}

void StoreThread::push(StoreJob job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (job.kind == StoreJob::Kind::kPromise || job.kind == StoreJob::Kind::kDrop) {
      const auto waits = std::find_if(jobs_.begin(), jobs_.end(),
                                      [&](const StoreJob& j) { return j.kind == job.kind; });
      if (waits != jobs_.end()) {
        waits->view = std::max(waits->view, job.view);
        waits->index = std::max(waits->index, job.index);
        return;
      }
    }
    CRANE_ASSERT(jobs_.size() < kJobsMax);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void StoreThread::take(std::vector<StoreResult>& out) {
  out.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (results_.empty()) return;
  eventfd_t count = 0;
  ::eventfd_read(event_fd_, &count);
  out.swap(results_);
}

// STORE-T6; reports a change of the disk's state to the loop's thread.
bool StoreThread::has_room(StoreJob::Kind kind, std::size_t bytes) {
  using Kind = StoreJob::Kind;
  if (only_reads(kind)) return true;
  const store::Work work = kind == Kind::kAppend    ? store::Work::kEntries
                           : kind == Kind::kPromise ? store::Work::kPromise
                                                    : store::Work::kDrop;
  const store::Room seen = store_->room(work, bytes);
  // Enough room for a small write does not mean room for waiting entries.
  if (kind != Kind::kAppend && seen.enough) return true;
  const bool changed = seen.enough != room_.enough || seen.low != room_.low;
  room_ = seen;
  if (changed) {
    StoreResult change;
    change.job.kind = Kind::kRoom;
    change.room = seen;
    post_result(std::move(change));
  }
  return seen.enough;
}

// Takes the first job that can begin; entries and promises keep their order.  False if there is
// none. `seen`: the number of jobs.
bool StoreThread::take_job(StoreJob& job, std::size_t& seen) {
  std::array<std::pair<StoreJob::Kind, std::size_t>, kJobsMax> waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen = jobs_.size();
    for (std::size_t i = 0; i < seen; ++i) waiting[i] = {jobs_[i].kind, jobs_[i].bytes.size()};
  }
  bool waits = false;
  for (std::size_t i = 0; i < seen; ++i) {  // only this thread removes jobs
    const auto [kind, bytes] = waiting[i];
    const bool ordered = kind == StoreJob::Kind::kAppend || kind == StoreJob::Kind::kPromise;
    if (ordered && waits) continue;
    if (has_room(kind, bytes)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      job = std::move(jobs_[i]);
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    waits = waits || ordered;
  }
  return false;
}

// Waits until there is another job, or until the disk must be checked for one of the `seen` waiting
// ones.  False if there is no job, and none came for a while.
bool StoreThread::wait(std::size_t seen, bool worked) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto news = [&] { return stop_ || jobs_.size() > seen; };
  if (seen != 0) {
    wake_.wait_for(lock, kRoomLook, news);
  } else if (!worked) {
    wake_.wait(lock, news);
  } else {
    return wake_.wait_for(lock, kIdleAfter, news);
  }
  return true;
}

bool StoreThread::stopping() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stop_;
}

void StoreThread::post_result(StoreResult result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  results_.push_back(std::move(result));
  ::eventfd_write(event_fd_, 1);
}

void StoreThread::run() {
  bool failed = false;
  bool worked = false;
  while (!failed && !stopping()) {
    StoreResult result;
    std::size_t seen = 0;
    const bool begins = take_job(result.job, seen);
    if (!begins && wait(seen, worked)) continue;
    worked = begins;
    if (begins) {
      const std::int64_t begun_ns = monotonic_ns();
      carry_out(result);
      result.took_ns = monotonic_ns() - begun_ns;
    } else if (const Outcome o = store_->idle(); !o) {
      result.error = o.error();
    } else {
      continue;
    }
    const bool read = only_reads(result.job.kind);
    failed = result.error.code != Code::kOk && !(begins && read);
    post_result(std::move(result));
    if (failed || read) continue;
    if (const Outcome o = store_->tidy(); !o) {
      StoreResult untidy;
      untidy.error = o.error();
      failed = true;
      post_result(std::move(untidy));
    }
  }
  while (!stopping()) {  // STORE-T5: later jobs are never done
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    jobs_.clear();
  }
  if (!failed) static_cast<void>(store_->idle());
  store_.reset();
}

void StoreThread::carry_out(StoreResult& r) {
  switch (r.job.kind) {
    case StoreJob::Kind::kPromise:
      if (const Outcome o = store_->promise(r.job.view); !o) r.error = o.error();
      break;
    case StoreJob::Kind::kAppend: {
      const auto last = store_->append(r.job.from, r.job.bytes, r.job.commit);
      if (last) {
        r.last = last.value();
      } else {
        r.error = last.error();
      }
      break;
    }
    case StoreJob::Kind::kDrop:
      if (const Outcome o = store_->drop_below(next(r.job.index)); !o) r.error = o.error();
      r.behind = next(store_->state().first.last.index);
      break;
    case StoreJob::Kind::kCopy:
      if (const Outcome o = r.job.copy->step(*store_); !o) r.error = o.error();
      break;
    case StoreJob::Kind::kRoom:
      break;
    case StoreJob::Kind::kRead:
    case StoreJob::Kind::kFetch: {
      r.job.bytes.clear();
      const auto behind = store_->read(r.job.index, r.job.bytes_max, r.job.bytes);
      if (behind) {
        r.behind = behind.value();
      } else {
        r.error = behind.error();
      }
      break;
    }
  }
}

}  // namespace crane::consensus
