// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node's two ends of the segment: it puts committed entries into the Paxos sequence and takes
// output records out.  It is also slot 0 of the scheduler, which admits when no server thread does.
//
// Entries that do not fit into the sequence wait in a spool, in order, so that a slow server never
// delays consensus.
//
// Threads: the node's one thread.
// INVARIANT SLOT0-1  Entries enter the sequence in the order of committed(), each once.
// INVARIANT SLOT0-2  The output ring is empty when the node admits: admission may write to the
//               ring, and on a full ring it would wait for the node itself.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/tree.h"
#include "consensus/consensus.h"
#include "dmt/base/assert.h"
#include "dmt/layout.h"
#include "dmt/sequence/output.h"
#include "dmt/sequence/ring.h"

namespace crane::node {

class SchedulerLink {
 public:
  // The memory that holds the segment.
  class Memory {
   public:
    // Whether there is memory for an entry of that size (ROOM-3).  If not, the entry waits, as it
    // does for a full ring.
    virtual bool make_room(std::size_t entry_bytes) noexcept = 0;

   protected:
    ~Memory() = default;
  };

  SchedulerLink(dmt::Layout& layout, Memory& memory)
      : memory_(memory),
        layout_(layout),
        sequence_(layout.header.sequence, reinterpret_cast<std::byte*>(&layout)),
        output_(layout.header.output, reinterpret_cast<std::byte*>(&layout)) {}

  // A committed entry of the application (types below the core's own).
  void committed(const consensus::EntryView& entry);
  // Moves entries that fit from the spool to the sequence.  True: at least one was moved.
  bool pump();
  // Drops the spool: entries that the server did not get are not for the next server either.
  void forget() {
    spool_.clear();
    spooled_bytes_ = 0;
  }
  // Admits if no thread has the turn.  REQUIRES: drained (SLOT0-2).  True: it admitted.
  bool admit();
  // While on, no output leaves the ring, and the node does not admit.
  void hold(bool on) noexcept { held_ = on; }
  bool held() const noexcept { return held_; }

  // Passes every available record to `handler`, in order; returns their number.  `handler` returns
  // whether it no longer needs the bytes of all records so far; the bytes stay until then, or until
  // `finish` has run.
  template <typename Handler, typename Finish>
  std::size_t drain(Handler&& handler, Finish&& finish) {
    if (held_) return 0;
    std::size_t count = 0;
    std::uint64_t position = output_.read_position();
    for (auto record = output_.next(position); !record.empty(); record = output_.next(position)) {
      OutputHeader header;
      CRANE_ASSERT(record.size() >= sizeof header);
      std::memcpy(&header, record.data(), sizeof header);
      if (handler(header, record.subspan(sizeof header))) output_.release(position);
      ++count;
    }
    finish();
    output_.release(position);
    return count;
  }

  // Ranges of the segment, ascending: rings that hold nothing unread.  A checkpoint need not copy
  // and pack them; together they are up to the size of both rings.  REQUIRES: quiescent
  // (dmt/quiescence.h), so that no thread is about to write.
  std::vector<checkpoint::FileRange> read_bytes() const;

  bool outputs_waiting() const noexcept { return !held_ && !output_.empty(); }
  bool spooling() const noexcept { return !spool_.empty(); }
  std::uint64_t spooled_bytes() const noexcept { return spooled_bytes_; }
  // Bytes committed and not yet admitted.
  std::uint64_t waiting_bytes() const noexcept;

 private:
  bool push(std::span<const std::byte> header, std::span<const std::byte> body) noexcept;

  Memory& memory_;
  dmt::Layout& layout_;
  Ring sequence_;
  Ring output_;
  std::deque<std::vector<std::byte>> spool_;
  std::uint64_t spooled_bytes_ = 0;
  bool held_ = false;
};

}  // namespace crane::node
