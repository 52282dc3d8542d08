// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides whether the network to a peer has gone quiet, long before the peer is given up
// (FABRIC-F7), for a node that has clients to send away.  A pure function of what was received and
// of the kernel's state of the link.
//
// A peer that is silent for longer than usual gets a probe.  Its kernel acknowledges the probe,
// even while its process waits for a processor.  If no acknowledgement comes within kQuietNs,
// either the network is cut, or it lost the probe, which TCP repairs after 200 ms or more.
// Retransmitted segments show that a network loses packets: for kLossMemoryNs after one, no link is
// judged quiet.
//
// Threads: a plain value.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace crane::consensus {

// The kernel's state of a link.
struct LinkState {
  bool unacknowledged = false;  // bytes that the peer's kernel has not acknowledged
  std::uint64_t acknowledged_ago_ns = 0;
  std::uint64_t round_trip_ns = 0;
  std::uint64_t resent = 0;  // retransmitted segments, since the link was made
};

class LinkQuiet {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kAskMinNs = 20'000'000, kAskMaxNs = 300'000'000;
  static constexpr std::uint64_t kQuietNs = 60'000'000;
  static constexpr std::uint64_t kLossMemoryNs = 60'000'000'000;
  // How long short gaps must continue before they count as usual. An idle peer sends in bursts, and
  // must not get a probe in every pause between two bursts.
  static constexpr std::uint64_t kUsualNs = 128'000'000;
  enum class Step : std::uint8_t { kNothing, kAsk, kLook };

  // Something came from the peer.  Probes and their replies are not `by_habit`: they show how long
  // the peer may be silent, but two peers must not cause each other's probes.
  void on_receive(std::uint64_t now_ns, bool by_habit = true) noexcept {
    if (habit_ns_ != 0) note_gap(std::min(now_ns - habit_ns_, kAskMaxNs), by_habit);
    if (by_habit || habit_ns_ == 0) habit_ns_ = now_ns;
    from_ns_ = now_ns;
    probe_sent_ns_ = 0;
    quiet_ = false;
  }

  // This process did not run: the silence until now is no sign about the peer.
  void resume(std::uint64_t now_ns) noexcept {
    if (habit_ns_ == 0) return;
    from_ns_ = now_ns;
    probe_sent_ns_ = 0;
  }

  void forget() noexcept { *this = LinkQuiet{}; }

  // When to call step(), if nothing is received until then.
  std::uint64_t due_ns() const noexcept {
    if (habit_ns_ == 0 || quiet_) return kNever;
    if (probe_sent_ns_ == 0) return from_ns_ + std::clamp(2 * usual_ns_, kAskMinNs, kAskMaxNs);
    return probe_sent_ns_ + kQuietNs + 2 * round_trip_ns_;
  }

  // kAsk: send a probe now; kLook: call look() with the link's state.
  Step step(std::uint64_t now_ns) noexcept {
    if (now_ns < due_ns()) return Step::kNothing;
    if (probe_sent_ns_ != 0) return Step::kLook;
    probe_sent_ns_ = now_ns;
    return Step::kAsk;
  }

  void look(const LinkState& s, std::uint64_t now_ns) noexcept {
    const bool loses = lost_ns_ != 0 && now_ns - lost_ns_ < kLossMemoryNs;
    quiet_ = !loses && s.unacknowledged && s.acknowledged_ago_ns >= kQuietNs;
    // If not quiet, the process is slow or the network loses packets: look again later.
    if (!quiet_) probe_sent_ns_ = now_ns;
  }

  // Call it now and then while the peer is heard.
  void note(const LinkState& s, std::uint64_t now_ns) noexcept {
    if (probe_sent_ns_ != 0) return;  // a cut may cause the retransmissions now
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

  std::uint64_t habit_ns_ = 0;       // when it was last heard by habit, or heard first; 0: never
  std::uint64_t from_ns_ = 0;        // start of the current silence
  std::uint64_t usual_ns_ = 0;       // usual gap between receipts by habit
  std::uint64_t probe_sent_ns_ = 0;  // 0: no probe since the last receipt
  std::uint64_t round_trip_ns_ = 0;
  std::uint64_t resent_ = 0;
  std::uint64_t lost_ns_ = 0;  // when a loss was last seen; 0: never
  bool has_sample_ = false;
  bool quiet_ = false;
};

}  // namespace crane::consensus
