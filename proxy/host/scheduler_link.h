// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node's two ends of the segment: committed entries go into the Paxos sequence, output records
// come out; and its part as slot 0 of the scheduler, which admits when no server thread does.
//
// What does not fit into the sequence waits in a spool, in order: consensus is never held up by a
// slow server.
//
// Threads: the node's one thread.
// INVARIANT SLOT0-1  Entries enter the sequence in the order of committed(), each once.
// INVARIANT SLOT0-2  The output ring is empty when the node admits: admission may write to it and
//               would wait for the node, that is for itself.

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
  // The memory that the segment lies in.
  class Memory {
   public:
    // Whether it has room for an entry of so many bytes (ROOM-3); without it the entry waits, as
    // for a ring that is full.
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
  // Moves from the spool what fits.  True when something moved.
  bool pump();
  // What the server did not get is not for the next one, either.  Then: as new.
  void forget() {
    spool_.clear();
    spooled_bytes_ = 0;
  }
  // Admits if no thread has the turn.  REQUIRES: drained (SLOT0-2).  True when it did.
  bool admit();
  // While on: nothing that the server puts out leaves the ring, and nothing is admitted here.
  void hold(bool on) noexcept { held_ = on; }
  bool held() const noexcept { return held_; }

  // Hands out every record that is there, in order; returns how many.  `handler` returns whether
  // it is done with the bytes of all records so far: they stay until it is, or until `finish`.
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

  // Of the segment's bytes, ascending: the rings' where nothing is unread.  A checkpoint need not
  // copy and pack them, up to the size of both rings.  REQUIRES: quiescent (dmt/quiescence.h), so
  // that no thread is about to write.
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
