// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crane's numbers that must not mix: each has its own type.
//
// Threads / Processes: plain values, shared-memory safe.

#include <compare>
#include <cstdint>

namespace crane {

// The term of one leader: (counter << 8) | replica, hence unique (DESIGN C1).
enum class View : std::uint64_t {};
// Position of an entry in the replicated log; 1 is the first, 0 is "none".
enum class Index : std::uint64_t {};
// 0-based number of a replica within its group.
enum class ReplicaId : std::uint8_t {};
// A thread of the server in the scheduler; 0 is the node.
enum class Slot : std::uint16_t {};
// A connection.  If a client opened it: the log index of its CONNECT entry (APUS 4.3).  If the
// server opened it: kOutboundBit and the logical clock of its connect().
enum class ConnId : std::uint64_t {};
inline constexpr std::uint64_t kOutboundBit = 1ULL << 63;
// A client's socket in the kernel of the leader's host, unique over all processes and time; 0 is
// "unknown".
enum class SocketId : std::uint64_t {};

inline constexpr std::uint64_t value(View v) noexcept { return static_cast<std::uint64_t>(v); }
inline constexpr std::uint64_t value(Index i) noexcept { return static_cast<std::uint64_t>(i); }
inline constexpr std::uint8_t value(ReplicaId r) noexcept { return static_cast<std::uint8_t>(r); }
inline constexpr std::uint16_t value(Slot s) noexcept { return static_cast<std::uint16_t>(s); }
inline constexpr std::uint64_t value(ConnId c) noexcept { return static_cast<std::uint64_t>(c); }
inline constexpr std::uint64_t value(SocketId s) noexcept { return static_cast<std::uint64_t>(s); }

inline constexpr bool is_outbound(ConnId c) noexcept { return (value(c) & kOutboundBit) != 0; }

inline constexpr Index next(Index i) noexcept { return Index{value(i) + 1}; }

// The view number `counter` of `replica`.  Two replicas never produce the same view.
inline constexpr View make_view(std::uint64_t counter, ReplicaId replica) noexcept {
  return View{(counter << 8) | value(replica)};
}
inline constexpr std::uint64_t view_counter(View v) noexcept { return value(v) >> 8; }
inline constexpr ReplicaId view_owner(View v) noexcept {
  return ReplicaId{static_cast<std::uint8_t>(value(v) & 0xff)};
}

// The global position of an entry, ordered by (view, index).  A new leader adopts the log whose
// last entry has the highest viewstamp (DESIGN C2).
struct Viewstamp {
  View view{};
  Index index{};
  friend constexpr auto operator<=>(const Viewstamp&, const Viewstamp&) = default;
};

inline constexpr std::uint8_t kReplicasMax = 127;

}  // namespace crane
