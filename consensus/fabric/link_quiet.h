// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the network to a peer has gone quiet, long before the peer is given up (FABRIC-F7): for
// who has clients to send away.  A pure function of what was heard and of what the kernel tells of
// the link.
//
// A peer that is heard later than usual is asked something; its kernel acknowledges that, also when
// its process waits for a processor.  No acknowledgement within kQuietNs: the network is cut, or it
// lost the question and TCP repairs that after 200 ms or more.  A network that loses segments is
// known by those that were sent again: for kLossMemoryNs after one nothing is judged here.
//
// Threads: a plain value.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace crane::consensus {

// What the kernel tells of a link now.
struct LinkState {
  bool unacknowledged = false;  // bytes that the peer's kernel has not acknowledged
  std::uint64_t acknowledged_ago_ns = 0;
  std::uint64_t round_trip_ns = 0;
  std::uint64_t resent = 0;  // segments, since the link was made
};

class LinkQuiet {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kAskMinNs = 20'000'000, kAskMaxNs = 300'000'000;
  static constexpr std::uint64_t kQuietNs = 60'000'000;
  static constexpr std::uint64_t kLossMemoryNs = 60'000'000'000;
  // Of short gaps, how long they are to last until they are what is usual: an idle peer's come in
  // bursts, and it is not to be asked in every pause between two.
  static constexpr std::uint64_t kUsualNs = 128'000'000;
  enum class Step : std::uint8_t { kNothing, kAsk, kLook };

  // Something came from the peer.  A question whether this one is there, and the answer to one, are
  // not `by_habit`: they tell how long the peer may be silent, but two peers must not teach each
  // other to ask.
  void heard(std::uint64_t now_ns, bool by_habit = true) noexcept {
    if (habit_ns_ != 0) note_gap(std::min(now_ns - habit_ns_, kAskMaxNs), by_habit);
    if (by_habit || habit_ns_ == 0) habit_ns_ = now_ns;
    from_ns_ = now_ns;
    probe_sent_ns_ = 0;
    quiet_ = false;
  }

  // The own process was away: the silence until now says nothing of the peer.
  void resume(std::uint64_t now_ns) noexcept {
    if (habit_ns_ == 0) return;
    from_ns_ = now_ns;
    probe_sent_ns_ = 0;
  }

  void forget() noexcept { *this = LinkQuiet{}; }

  // When step() has something to say, if nothing is heard until then.
  std::uint64_t due_ns() const noexcept {
    if (habit_ns_ == 0 || quiet_) return kNever;
    if (probe_sent_ns_ == 0) return from_ns_ + std::clamp(2 * usual_ns_, kAskMinNs, kAskMaxNs);
    return probe_sent_ns_ + kQuietNs + 2 * round_trip_ns_;
  }

  // kAsk: the peer is to be asked now; kLook: look() wants to know the link.
  Step step(std::uint64_t now_ns) noexcept {
    if (now_ns < due_ns()) return Step::kNothing;
    if (probe_sent_ns_ != 0) return Step::kLook;
    probe_sent_ns_ = now_ns;
    return Step::kAsk;
  }

  void look(const LinkState& s, std::uint64_t now_ns) noexcept {
    const bool loses = lost_ns_ != 0 && now_ns - lost_ns_ < kLossMemoryNs;
    quiet_ = !loses && s.unacknowledged && s.acknowledged_ago_ns >= kQuietNs;
    if (!quiet_) probe_sent_ns_ = now_ns;  // the process is slow, or the network loses: again later
  }

  // Now and then while the peer is heard.
  void note(const LinkState& s, std::uint64_t now_ns) noexcept {
    if (probe_sent_ns_ != 0) return;  // what is sent again now may be for the cut
    if (has_sample_ && s.resent != resent_) lost_ns_ = now_ns;
    has_sample_ = true;
    resent_ = s.resent;
    round_trip_ns_ = s.round_trip_ns;
  }

  bool quiet() const noexcept { return quiet_; }

 private:
  void note_gap(std::uint64_t ns, bool is_over) noexcept {
    if (ns > usual_ns_) {
      usual_ns_ += (ns - usual_ns_ + 7) / 8;
    } else if (is_over) {
      usual_ns_ -= (usual_ns_ - ns) * std::min(ns, kUsualNs) / kUsualNs;
    }
  }

  std::uint64_t habit_ns_ = 0;       // when it was last heard by habit, or first at all; 0: not yet
  std::uint64_t from_ns_ = 0;        // silence counts from here
  std::uint64_t usual_ns_ = 0;       // between what is heard by habit
  std::uint64_t probe_sent_ns_ = 0;  // 0: not since it was heard
  std::uint64_t round_trip_ns_ = 0;
  std::uint64_t resent_ = 0;
  std::uint64_t lost_ns_ = 0;  // when the network was last seen to lose; 0: never
  bool has_sample_ = false;
  bool quiet_ = false;
};

}  // namespace crane::consensus
