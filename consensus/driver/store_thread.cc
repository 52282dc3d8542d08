// SPDX-License-Identifier: Apache-2.0
#include "consensus/driver/store_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "consensus/fabric/process.h"
#include "dmt/base/assert.h"
#include "dmt/base/clock.h"

namespace crane::consensus {
namespace {

constexpr std::size_t kJobsMax = 8;
// With nothing to do for so long the store may write what is not urgent.
constexpr std::chrono::milliseconds kIdleAfter{20};

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

void StoreThread::run() {
  bool failed = false;
  bool worked = false;
  for (;;) {
    StoreResult result;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto ready = [this] { return stop_ || !jobs_.empty(); };
      if (!worked) {
        wake_.wait(lock, ready);
      } else if (!wake_.wait_for(lock, kIdleAfter, ready)) {
        worked = false;
      }
      if (stop_) break;
      if (!jobs_.empty()) {
        result.job = std::move(jobs_.front());
        jobs_.erase(jobs_.begin());
        worked = true;
      }
    }
    if (failed) continue;
    if (worked) {
      const std::int64_t begun_ns = monotonic_ns();
      carry_out(result);
      result.took_ns = monotonic_ns() - begun_ns;
    } else if (const Outcome o = store_->idle(); !o) {
      result.error = o.error();
    } else {
      continue;
    }
    using Kind = StoreJob::Kind;
    const Kind kind = result.job.kind;
    const bool read = kind == Kind::kRead || kind == Kind::kFetch || kind == Kind::kCopy;
    failed = result.error.code != Code::kOk && !(worked && read);
    const std::lock_guard<std::mutex> lock(mutex_);
    results_.push_back(std::move(result));
    ::eventfd_write(event_fd_, 1);
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
