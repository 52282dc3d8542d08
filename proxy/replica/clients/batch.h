// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inputs of one loop iteration, in the order in which they were read.  They are proposed
// together at the end of the iteration.
//
// All but the last grant no turns.  So the server admits the whole batch at one logical clock, and
// works on it without looking at the sequence again (DESIGN D3, rule 4).  Bytes are received
// directly into the batch; once it has grown, nothing is allocated.
//
// A connection is named by the index of its CONNECT, which is known only when that is proposed.
// Later entries of the same batch refer to it by an Opener, and receive the number then.
//
// Threads: one object, one thread.
// INVARIANT BATCH-1  Entries are proposed in the order of add(), each at most once (C8).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "dmt/base/assert.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"

namespace crane::proxy {

// The connection that proposed a CONNECT; `conn` is set when the log has accepted it.
struct Opener {
  ConnId conn{};  // 0 until proposed
};

class Batch {
 public:
  // Room for `bytes` of DATA; valid until the next call of any other method.
  std::span<std::byte> room(std::size_t bytes);
  // The first `bytes` of room() become a DATA entry; the last of them may be urgent.
  void add_data(Opener& from, std::size_t bytes, bool ends_urgent = false);
  void add_connect(Opener& opener, const ConnectBody& body);
  void add_shutdown(Opener& from) { add_conn(EntryType::kShutdown, from, 0, false); }
  void add_reset(Opener& from) { add_conn(EntryType::kReset, from, 0, false); }
  void add_window(Opener& from, std::uint64_t total) {
    add_conn(EntryType::kWindow, from, total, true);
  }
  void add_taken(std::span<const TakenBody> clients);
  // An entry that names no connection of this batch.
  template <typename Body>
  void add(EntryType type, const Body& body) {
    std::memcpy(append(type, sizeof body, nullptr), &body, sizeof body);
  }

  bool empty() const noexcept { return next_ == pending_.size(); }
  std::size_t entries() const noexcept { return pending_.size() - next_; }
  std::size_t bytes() const noexcept { return arena_used_; }

  // Proposes all entries by `propose`, which returns a Result<Index>; the last entry grants `grant`
  // turns.  kBusy: the rest stays for the next call.  kNotLeader: the rest is dropped.  `named`
  // receives each Opener whose CONNECT was accepted.
  template <typename Propose, typename Named>
  Outcome propose_all(GrantTurns grant, Propose&& propose, Named&& named);
  // Leadership is lost: drops everything.
  void clear() noexcept;

 private:
  struct Pending {
    EntryType type;
    // Its conn is filled in when this entry is proposed; null: the number is known.
    Opener* unnamed;
    std::size_t offset, size;
    std::uint64_t marks = 0;  // flags beside the number that is filled in
  };
  std::byte* append(EntryType type, std::size_t size, Opener* unnamed);
  void add_conn(EntryType type, Opener& from, std::uint64_t total, bool with_total);

  std::vector<Pending> pending_;
  std::size_t next_ = 0;  // first entry of pending_ that is not proposed yet
  std::vector<std::byte> arena_;
  std::size_t arena_used_ = 0;
};

template <typename Propose, typename Named>
Outcome Batch::propose_all(GrantTurns grant, Propose&& propose, Named&& named) {
  while (next_ < pending_.size()) {
    const Pending& entry = pending_[next_];
    std::byte* body = arena_.data() + entry.offset;
    const bool last = next_ + 1 == pending_.size();
    if (entry.unnamed != nullptr && entry.type != EntryType::kConnect) {
      CRANE_ASSERT(value(entry.unnamed->conn) != 0);  // BATCH-1: its CONNECT came before
      const ConnId name{value(entry.unnamed->conn) | entry.marks};
      std::memcpy(body, &name, sizeof name);
    }
    const Result<Index> index = propose(entry.type, last ? grant : GrantTurns{0},
                                        std::span<const std::byte>(body, entry.size));
    if (!index.ok()) {
      const Error error = index.error();
      if (error.code != Code::kBusy) clear();
      return error;
    }
    ++next_;
    if (entry.type == EntryType::kConnect) {
      entry.unnamed->conn = ConnId{value(index.value())};
      named(*entry.unnamed);
    }
  }
  clear();
  return Done{};
}

}  // namespace crane::proxy
