// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's time stamps: virtual monotonic time, which an outage stops.
//
// Real virtual time = the own CLOCK_MONOTONIC + an offset, which every replica learns from the
// stamps that it sees committed; the largest offset seen is the one that arrived with the least
// delay.  A new leader compares it with its wall clock: its process may have begun behind or during
// the outage.
//
// An outage must not make the server's timers due before the inputs that waited for its end.  So
// virtual time stops at an outage, and continues when the leader has read all of its clients once.
// Then it is behind real time, and catches up by slewing: it runs one kSlewParts-th faster.  More
// than kBehindMostNs it is never behind: what exceeds that passes at once, behind the inputs.
//
//            lead()                    resume()
//   follows ------> stopped ----------------------------> runs ----> (it has caught up)
//                      ^                                    |
//                      +-- no commit for kOutageNs, or the process slept kOutageNs too long
//
// Pure.  Threads: one object, one thread.  Times are nanoseconds.
// INVARIANT CLOCK-1  next_stamp() never goes back, nor behind a committed stamp.
// INVARIANT CLOCK-2  From lead() until resume() the stamps do not pass the last stamp that was
//                    committed or given before.
// INVARIANT CLOCK-3  Stamps pass the beginning of an outage by at most kOutageNs before resume().
// INVARIANT CLOCK-4  Stamps never pass real virtual time, but for CLOCK-1.

#include <cstdint>
#include <limits>

namespace crane::replica {

class VirtualClock {
 public:
  // A committed entry carried `stamp_ns`; it came in at `mono_ns`.  `fresh`: it is of the reign
  // that this replica follows or leads, so that the stamp may be of this moment.
  void committed(std::int64_t stamp_ns, std::int64_t mono_ns, bool fresh) noexcept;
  // Virtual time at `mono_ns`.  Before the first stamp of the group: the own clock.
  std::int64_t now(std::int64_t mono_ns) const noexcept;
  // How far that is behind real virtual time.
  std::int64_t behind_ns(std::int64_t mono_ns) const noexcept;
  // When the own clock will show that virtual time `virtual_ns` has come; INT64_MAX: not before
  // resume().
  std::int64_t mono_at(std::int64_t virtual_ns) const noexcept;

  // --- of a leader
  void lead() noexcept;
  void follow() noexcept;
  // The wall clock tells that real virtual time is `virtual_ns` at `mono_ns`.  An outage was the
  // cause if that is later than the offset tells; but who has followed a reign is not moved by more
  // than it can be behind, because this host's wall clock may be wrong.
  void aim(std::int64_t virtual_ns, std::int64_t mono_ns) noexcept;
  // The stamp of the next proposal.
  std::int64_t next_stamp(std::int64_t mono_ns) noexcept {
    last_ns_ = now(mono_ns);  // CLOCK-1
    return last_ns_;
  }
  // Consensus took the proposal.
  void proposed(std::int64_t mono_ns) noexcept;
  // An entry was committed in this reign; `more` proposals are under way.
  void progressed(std::int64_t mono_ns, bool more) noexcept;
  // The process runs, and may sleep until `until_ns`.
  void runs(std::int64_t mono_ns, std::int64_t until_ns) noexcept;
  // The outage is over, and what clients have sent meanwhile is to be proposed: resume() follows.
  bool waits_for_inputs() const noexcept { return stopped_ && !waits_for_commit_; }
  // Rises with each outage: what was read before the last one does not count.
  std::uint64_t outages() const noexcept { return outages_; }
  void resume(std::int64_t mono_ns) noexcept;

 private:
  std::int64_t real(std::int64_t mono_ns) const noexcept { return mono_ns + offset_ns_; }
  std::int64_t shown(std::int64_t mono_ns) const noexcept;
  bool lacks_commit(std::int64_t mono_ns) const noexcept;
  void stop(std::int64_t mono_ns) noexcept;

  bool known_ = false;  // a stamp of the group is
  bool fresh_ = false;  // .. of a reign that was followed
  std::int64_t offset_ns_ = 0;
  std::int64_t last_ns_ = 0;

  // The leader's.
  bool leads_ = false;
  bool stopped_ = false;
  bool waits_for_commit_ = false;  // stopped, and the outage is not over
  std::int64_t from_mono_ns_ = 0;  // since when it runs, and
  std::int64_t from_ns_ = 0;       // virtual time then; stopped: where
  bool under_way_ = false;         // proposals are,
  std::int64_t progress_ns_ = 0;   // .. and since when none of them was committed
  std::int64_t awake_until_ns_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t outages_ = 0;
};

}  // namespace crane::replica
