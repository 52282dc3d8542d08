// SPDX-License-Identifier: Apache-2.0
#include "consensus/driver/store_side.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dmt/base/assert.h"
#include "dmt/base/log.h"

namespace crane::consensus {
namespace {

constexpr std::size_t kReplayBytes = 1U << 20;

}  // namespace

Result<std::unique_ptr<StoreSide>> StoreSide::start(std::unique_ptr<store::Store> store,
                                                    std::string directory, ReplicaId self,
                                                    Index applied, Index replay_to) {
  const Index first = next(store->state().first.last.index);
  if (applied < replay_to && next(applied) < first) {
    Message() << "the store begins at entry " << value(first) << ", the server needs entry "
              << value(next(applied)) << ": r" << static_cast<unsigned>(value(self)) << ": "
              << directory.c_str() << ": start it from a checkpoint";
    return Error{Code::kGone, 0, "the checkpoint is older than what the store still holds"};
  }
  const std::uint64_t end_pos = store->state().last.pos;
  auto thread = StoreThread::start(std::move(store));
  if (!thread) return thread.error();
  std::unique_ptr<StoreSide> side(
      new StoreSide(std::move(thread).value(), std::move(directory), self));
  side->first_ = first;
  side->stored_pos_ = end_pos;
  side->next_ = next(applied);
  side->replay_to_ = replay_to;
  if (side->replaying()) side->ask();
  return side;
}

void StoreSide::submit(const core::StorePromise& a) {
  StoreJob job;
  job.kind = StoreJob::Kind::kPromise;
  job.view = a.view;
  thread_->push(std::move(job));
}

// The bytes are copied in this call, because the ring may be written later.
void StoreSide::submit(const core::StoreEntries& a, const core::LogRing& ring) {
  StoreJob job;
  job.kind = StoreJob::Kind::kAppend;
  job.sequence = a.sequence;
  job.from = {a.from_pos, a.before};
  job.commit = {a.commit_pos, a.commit};
  job.bytes = std::move(spare_);
  job.bytes.resize(a.to_pos - a.from_pos);
  ring.copy_out(a.from_pos, job.bytes);
  thread_->push(std::move(job));
}

void StoreSide::submit(const core::FetchEntries& a) {
  StoreJob job;
  job.kind = StoreJob::Kind::kFetch;
  job.sequence = a.sequence;
  job.index = a.first;
  job.bytes_max = a.bytes_max;
  job.bytes = std::move(fetched_);
  thread_->push(std::move(job));
}

void StoreSide::submit(const core::DropStored& a) {
  StoreJob job;
  job.kind = StoreJob::Kind::kDrop;
  job.index = a.upto;
  thread_->push(std::move(job));
}

bool StoreSide::take(const std::function<void(const core::Event&)>& step) {
  thread_->take(results_);
  for (StoreResult& r : results_) {
    if (const auto event = event_of(r)) step(*event);
  }
  return !results_.empty();
}

std::optional<core::Event> StoreSide::event_of(StoreResult& r) {
  if (r.job.kind == StoreJob::Kind::kCopy) {
    copied(r.error);
    return std::nullopt;
  }
  if (r.job.kind == StoreJob::Kind::kRoom) {
    note_room(r.room);
    return std::nullopt;
  }
  // If the entries were dropped already, only the peer is affected.
  const bool dropped = r.job.kind == StoreJob::Kind::kFetch && r.error.code == Code::kNotFound;
  if (r.error.code != Code::kOk && !dropped) return failed(r.error);
  switch (r.job.kind) {
    case StoreJob::Kind::kPromise:
      return core::PromiseStored{r.job.view};
    case StoreJob::Kind::kAppend:
      spare_ = std::move(r.job.bytes);
      synced_.add(r.took_ns);
      stored_pos_ = r.last.pos;
      return core::Stored{r.job.sequence, r.last.last, r.last.pos};
    case StoreJob::Kind::kRead:
      replay_bytes_ = std::move(r.job.bytes);
      ready_ = true;
      break;
    case StoreJob::Kind::kDrop:
      if (r.behind > first_) {
        Message() << "the store begins at entry " << value(r.behind) << " now: r"
                  << static_cast<unsigned>(value(self_)) << ": checkpoints of a majority cover "
                  << value(r.job.index);
      }
      first_ = r.behind;
      break;
    case StoreJob::Kind::kFetch:
      fetched_ = std::move(r.job.bytes);
      return core::Fetched{r.job.sequence, fetched_};
    case StoreJob::Kind::kCopy:
    case StoreJob::Kind::kRoom:
      break;
  }
  return std::nullopt;
}

void StoreSide::note_room(const store::Room& room) {
  const auto mib = [](std::uint64_t bytes) { return std::to_string((bytes >> 20) + 1) + " MiB"; };
  const bool was_full = !no_room_.empty();
  no_room_.clear();
  if (!room.enough) {
    no_room_ = directory_ + ": the disk is full: " + std::to_string(room.free >> 20) +
               " MiB free, " + mib(room.missing) + " missing";
  }
  const std::string self_name = "r" + std::to_string(value(self_)) + ": ";
  if (!room.enough && !was_full) {
    Message() << "no room for the log: " << self_name.c_str() << no_room_.c_str()
              << "; this replica stores nothing, and inputs wait if no majority stores; make room "
                 "there: it then continues";
  } else if (room.enough && was_full) {
    Message() << "there is room for the log again: " << self_name.c_str() << directory_.c_str();
  } else if (room.low && !low_ && room.enough) {
    Message() << "little room for the log: " << self_name.c_str() << directory_.c_str() << ": "
              << (room.free >> 20) << " MiB free; checkpoints are taken more often to cut it";
  }
  low_ = room.low;
}

// C5: an error of the store ends this node, not its peers.
core::Event StoreSide::failed(const Error& error) {
  const char* const advice = error.code == Code::kFull
                                 ? "; make room there and start this replica again"
                                 : "; check the disk, then start this replica again";
  Message() << "the store failed: r" << static_cast<unsigned>(value(self_)) << ": "
            << directory_.c_str() << ": " << error.what << ": "
            << (error.detail != 0 ? std::strerror(error.detail) : "it is damaged")
            << "; this replica stops acknowledging and ends" << advice;
  if (error.code == Code::kFull && no_room_.empty()) no_room_ = directory_ + ": the disk is full";
  return core::StoreFailed{error.code == Code::kFull ? "the store's disk is full"
                                                     : "the store failed"};
}

// One piece at a time: jobs that wait for the disk run between two pieces.
Result<LogCopy> StoreSide::copy(const LogCopyRequest& request, Index held) {
  const bool same = copy_ && request == copies_;
  if (copying_ && !same) return Error{Code::kBusy, 0, "another copy of the log is under way"};
  if (copying_) return LogCopy{false, copied_};
  if (same) {
    const auto ended = std::exchange(copy_, nullptr);
    if (copy_error_.code != Code::kOk) return copy_error_;
    return LogCopy{true, ended->last()};
  }
  if (held < std::max(request.through, request.behind.at.index)) return LogCopy{false, held};
  const core::Cursor begin{request.behind.pos, request.behind.at};
  copy_ = std::make_shared<store::TailWriter>(request.path, begin, held);
  copies_ = request;
  copied(Error{});
  return LogCopy{false, copied_};
}

// A piece is done; queues the next one.
void StoreSide::copied(const Error& error) {
  copy_error_ = error;
  copied_ = copy_->last();
  copying_ = error.code == Code::kOk && !copy_->done();
  if (!copying_) return;
  StoreJob job;
  job.kind = StoreJob::Kind::kCopy;
  job.copy = copy_;
  thread_->push(std::move(job));
}

void StoreSide::ask() {
  StoreJob job;
  job.kind = StoreJob::Kind::kRead;
  job.index = next_;
  job.bytes_max = kReplayBytes;
  job.bytes = std::move(replay_bytes_);
  thread_->push(std::move(job));
}

void StoreSide::replay(const std::function<void(const EntryView&)>& hand_out) {
  if (!std::exchange(ready_, false)) return;
  std::size_t used = 0;
  while (replaying() && used < replay_bytes_.size()) {
    core::EntryHeader h;
    std::memcpy(static_cast<void*>(&h), replay_bytes_.data() + used, sizeof h);
    CRANE_ASSERT(h.index == value(next_));  // STORE-T2
    const auto payload =
        std::span<const std::byte>(replay_bytes_).subspan(used + core::kHeaderBytes, h.length);
    next_ = next(next_);
    used += core::entry_bytes(h.length);
    hand_out({{View{h.view}, Index{h.index}},
              h.type,
              h.stamp_ns,
              h.grant,
              payload,
              core::LogRing::after(h).pos});
  }
  if (replaying()) ask();
}

}  // namespace crane::consensus
