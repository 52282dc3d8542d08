// SPDX-License-Identifier: Apache-2.0
// GOAL    If the disk has no space, entries wait: nothing is begun, lost or reordered (STORE-T6).
//         Operations that free space or only read go ahead.
// METHOD  The store's thread over a store in memory, whose disk is full when the test sets that.
// REPLAY  deterministic but for the threads' interleaving.
#include "consensus/driver/store_thread.h"

#include <poll.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/unit/store/store_harness.h"

namespace crane::test {
namespace {

using consensus::StoreJob;
using consensus::StoreResult;
using consensus::StoreThread;
using consensus::store::Room;
using consensus::store::Work;
using Kind = StoreJob::Kind;

// A store in memory; `full` may change while the thread works.
class FullStore final : public Store {
 public:
  FullStore(std::atomic<bool>& full, std::atomic<int>& tidied) : full_(full), tidied_(tidied) {}
  const State& state() const noexcept override { return inner_.state(); }
  Outcome reset_at(const Identity& identity, const Cursor& begin, View promise) override {
    return inner_.reset_at(identity, begin, promise);
  }
  Outcome promise(View view) override { return inner_.promise(view); }
  Result<Cursor> append(const Cursor& from, std::span<const std::byte> bytes,
                        const Cursor& commit) override {
    CHECK_FALSE(full_.load());
    return inner_.append(from, bytes, commit);
  }
  Result<Index> read(Index from, std::size_t bytes_max, std::vector<std::byte>& out) override {
    return inner_.read(from, bytes_max, out);
  }
  Result<EntryHeader> header(Index index) override { return inner_.header(index); }
  Outcome drop_below(Index index) override {
    const Outcome done = inner_.drop_below(index);
    full_ = false;  // dropping entries frees space
    return done;
  }
  Outcome tidy() override {
    ++tidied_;
    return Done{};
  }
  Room room(Work work, std::size_t) override {
    Room r;
    r.enough = work != Work::kEntries || !full_.load();
    r.low = !r.enough;
    return r;
  }

 private:
  MemDisk disk_;
  MemStore inner_{disk_};
  std::atomic<bool>& full_;
  std::atomic<int>& tidied_;
};

struct Fixture {
  std::atomic<bool> full{false};
  std::atomic<int> tidied{0};
  Log log;
  std::unique_ptr<StoreThread> thread;
  std::vector<StoreResult> seen;

  Fixture() {
    auto store = std::make_unique<FullStore>(full, tidied);
    REQUIRE(store->reset(kOwner).ok());
    auto started = StoreThread::start(std::move(store));
    REQUIRE(started.ok());
    thread = std::move(started).value();
  }
  void append(std::uint64_t number) {
    StoreJob job;
    job.kind = Kind::kAppend;
    job.sequence = number;
    job.from = log.end();
    log.append(1, 300, number);
    job.bytes = log.between(job.from, log.end());
    thread->push(std::move(job));
  }
  void push(Kind kind, Index index) {
    StoreJob job;
    job.kind = kind;
    job.index = index;
    job.view = view(7);
    job.bytes_max = 1000;
    thread->push(std::move(job));
  }
  // Waits for `n` more results and returns their kinds.
  std::vector<Kind> take(std::size_t n) {
    seen.clear();
    std::vector<StoreResult> some;
    while (seen.size() < n) {
      pollfd ready{thread->event_fd(), POLLIN, 0};
      REQUIRE(::poll(&ready, 1, 30'000) == 1);
      thread->take(some);
      for (StoreResult& r : some) {
        CHECK(r.error.code == Code::kOk);
        seen.push_back(std::move(r));
      }
    }
    std::vector<Kind> kinds;
    for (const StoreResult& r : seen) kinds.push_back(r.job.kind);
    return kinds;
  }
};

using Kinds = std::vector<Kind>;

}  // namespace

TEST_CASE("store thread: entries and promises wait for space in order, reads do not",
          "[STORE-T6]") {
  Fixture f;
  f.append(1);
  CHECK(f.take(1) == Kinds{Kind::kAppend});
  f.full = true;
  f.append(2);
  CHECK(f.take(1) == Kinds{Kind::kRoom});
  CHECK_FALSE(f.seen[0].room.enough);
  f.push(Kind::kPromise, {});
  f.push(Kind::kFetch, Index{1});
  CHECK(f.take(1) == Kinds{Kind::kFetch});
  f.full = false;
  CHECK(f.take(3) == Kinds{Kind::kRoom, Kind::kAppend, Kind::kPromise});
  CHECK(f.seen[0].room.enough);
  CHECK(f.seen[1].last == f.log.end());
}

TEST_CASE("store thread: dropping entries frees space for waiting ones", "[STORE-T6]") {
  Fixture f;
  for (std::uint64_t n = 1; n <= 3; ++n) {
    f.append(n);
    CHECK(f.take(1) == Kinds{Kind::kAppend});
  }
  f.full = true;
  f.append(4);
  CHECK(f.take(1) == Kinds{Kind::kRoom});
  f.push(Kind::kDrop, Index{0});
  CHECK(f.take(3) == Kinds{Kind::kDrop, Kind::kRoom, Kind::kAppend});
}

TEST_CASE("store thread: the store is tidied after each result that wrote", "[C9]") {
  Fixture f;
  for (std::uint64_t n = 1; n <= 3; ++n) {
    f.append(n);
    CHECK(f.take(1) == Kinds{Kind::kAppend});
  }
  f.push(Kind::kDrop, Index{0});
  CHECK(f.take(1) == Kinds{Kind::kDrop});
  f.thread.reset();  // after its current work
  CHECK(f.tidied == 4);
}

TEST_CASE("store thread: it ends while entries wait", "[STORE-T6]") {
  Fixture f;
  f.full = true;
  f.append(1);
  CHECK(f.take(1) == Kinds{Kind::kRoom});
  f.thread.reset();
}

}  // namespace crane::test
