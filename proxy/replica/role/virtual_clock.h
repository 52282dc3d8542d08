// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's time stamps: virtual monotonic time, which an outage stops.
//
// Real virtual time = this host's CLOCK_MONOTONIC + an offset.  Every replica learns the offset
// from the committed stamps; the largest offset seen belongs to the stamp with the least delay.  A
// new leader compares it with its wall clock, because its process may have begun after or during an
// outage.
//
// An outage must not make the server's timers due before the inputs that waited for its end.  So
// virtual time stops at an outage, and continues when the leader has read all of its clients once.
// Then it is behind real time, and catches up by slewing: it runs one kSlewParts-th faster.  It is
// never more than kBehindMostNs behind: the excess passes at once, after the inputs.
//
//            lead()                    resume()
//   follows ------> stopped ----------------------------> runs ----> (it has caught up)
//                      ^                                    |
//                      +-- no commit for kOutageNs, or the process slept kOutageNs too long
//
// Pure.  Threads: one object, one thread.  Times are nanoseconds.
// INVARIANT CLOCK-1  next_stamp() never decreases, and is never before a committed stamp.
// INVARIANT CLOCK-2  From lead() until resume() no stamp is later than the last stamp that was
//                    committed or given before.
// INVARIANT CLOCK-3  Before resume() stamps exceed the beginning of an outage by at most kOutageNs.
// INVARIANT CLOCK-4  Stamps never exceed real virtual time, except by CLOCK-1.

#include <cstdint>
#include <limits>

namespace crane::replica {

class VirtualClock {
 public:
  // A committed entry carried `stamp_ns`, and arrived at `mono_ns`.  `fresh`: it belongs to the
  // reign that this replica follows or leads, so the stamp may be current.
  void committed(std::int64_t stamp_ns, std::int64_t mono_ns, bool fresh) noexcept;
  // Virtual time at `mono_ns`.  Before the first stamp of the group: this host's clock.
  std::int64_t now(std::int64_t mono_ns) const noexcept;
  // How far that is behind real virtual time.
  std::int64_t behind_ns(std::int64_t mono_ns) const noexcept;
  // The time of this host's clock at which virtual time `virtual_ns` is reached; INT64_MAX: not
  // before resume().
  std::int64_t mono_at(std::int64_t virtual_ns) const noexcept;

  // --- for a leader
  void lead() noexcept;
  void follow() noexcept;
  // According to the wall clock, real virtual time is `virtual_ns` at `mono_ns`.  If that is later
  // than the offset says, an outage was the cause.  But a replica that has followed a reign is
  // never moved by more than virtual time can be behind, because this host's wall clock may be
  // wrong.
  void aim(std::int64_t virtual_ns, std::int64_t mono_ns) noexcept;
  // The stamp of the next proposal.
  std::int64_t next_stamp(std::int64_t mono_ns) noexcept {
    last_ns_ = now(mono_ns);  // CLOCK-1
    return last_ns_;
  }
  // Consensus accepted the proposal.
  void proposed(std::int64_t mono_ns) noexcept;
  // An entry was committed in this reign.  `more` is true if other proposals are in flight.
  void progressed(std::int64_t mono_ns, bool more) noexcept;
  // The process runs, and may sleep until `until_ns`.
  void runs(std::int64_t mono_ns, std::int64_t until_ns) noexcept;
  // The outage is over, and the input that clients sent meanwhile must be proposed: resume()
  // follows.
  bool waits_for_inputs() const noexcept { return stopped_ && !waits_for_commit_; }
  // Increases with each outage: what was read before the last one does not count.
  std::uint64_t outages() const noexcept { return outages_; }
  void resume(std::int64_t mono_ns) noexcept;

 private:
  std::int64_t real(std::int64_t mono_ns) const noexcept { return mono_ns + offset_ns_; }
  std::int64_t shown(std::int64_t mono_ns) const noexcept;
  bool lacks_commit(std::int64_t mono_ns) const noexcept;
  void stop(std::int64_t mono_ns) noexcept;

  bool known_ = false;  // a stamp of the group is known
  bool fresh_ = false;  // the stamp is from a reign that was followed
  std::int64_t offset_ns_ = 0;
  std::int64_t last_ns_ = 0;

  // The leader's state.
  bool leads_ = false;
  bool stopped_ = false;
  bool waits_for_commit_ = false;  // stopped, and the outage is not over
  std::int64_t from_mono_ns_ = 0;  // since when it runs
  std::int64_t from_ns_ = 0;       // virtual time at that moment; stopped: virtual time
  bool under_way_ = false;         // proposals are in flight
  std::int64_t progress_ns_ = 0;   // since when none of them was committed
  std::int64_t awake_until_ns_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t outages_ = 0;
};

}  // namespace crane::replica
