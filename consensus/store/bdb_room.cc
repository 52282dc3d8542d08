// SPDX-License-Identifier: Apache-2.0
// Room on the disk of a store (STORE-T6), and how it is regained.
#include <sys/statvfs.h>

#include "consensus/store/bdb_store.h"

namespace crane::consensus::store {
namespace {

// kLowFactor: below this many times BdbOptions::spare_bytes the log should be cut.  kSmallDivisor:
// a promise or a cut needs this part of it.  kWriteFactor: an entry goes to Berkeley DB's log, and
// then to a page.
constexpr std::uint64_t kLowFactor = 2, kSmallDivisor = 8, kWriteFactor = 3;

}  // namespace

Room BdbStore::room(Work work, std::size_t bytes) {
  struct statvfs disk {};
  if (::statvfs(options_.directory.c_str(), &disk) != 0) return {};  // the write reports it
  Room r;
  r.free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  r.low = r.free < kLowFactor * options_.spare_bytes;
  std::uint64_t needed = options_.spare_bytes / kSmallDivisor;
  if (work == Work::kEntries) {
    // Entries wait until there is room for more than a few.
    needed = options_.spare_bytes + (short_ ? options_.spare_bytes / 4 : 0) + kWriteFactor * bytes;
  }
  r.enough = r.free >= needed;
  if (!r.enough) r.missing = needed - r.free;
  if (work == Work::kEntries) short_ = !r.enough;
  return r;
}

// After a cut this also removes files of Berkeley DB's own log.
Outcome BdbStore::tidy() {
  if (broken_ || (unchecked_bytes_ <= options_.checkpoint_bytes && !cut_)) return Done{};
  if (!room(Work::kDrop, 0).enough) return Done{};  // the next call tries again
  unchecked_bytes_ = 0;
  cut_ = false;
  const int code = env_->txn_checkpoint(env_, 0, 0, 0);
  if (code != 0) return failed(code, "write the store's checkpoint");
  return Done{};
}

}  // namespace crane::consensus::store
