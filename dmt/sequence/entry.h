// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries of the Paxos sequence.  The replicated log carries them as opaque payload, and
// admission applies them to a replica's virtual world.  The bytes are the same everywhere.
//
// In the log, an entry is {type, stamp, grant} in the log's own header plus the body below.  In the
// Paxos sequence it is SequenceHeader plus the same body.
//
// Threads / Processes: plain values.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"

namespace crane {

inline constexpr std::uint32_t kEntryFormatVersion = 8;

enum class EntryType : std::uint8_t {
#define ENTRY(symbol, number, name, origin) symbol = number,
#include "dmt/sequence/entry_types.def"
#undef ENTRY
};

// Type numbers begin at 1, so an array indexed by type has one more slot than there are types.
inline constexpr std::size_t kEntryTypeSlots = 1
#define ENTRY(symbol, number, name, origin) +1
#include "dmt/sequence/entry_types.def"
#undef ENTRY
    ;

enum class EntryOrigin : std::uint8_t {
  kClient,  // a client or an operator did something
  kServer,  // the server needs turns or time, or a client took its output
  kNodes,   // nodes agree on something with each other
  kGroup,   // the rest: leaders, members, the stall rule, ports
};

constexpr EntryOrigin origin_of(EntryType type) noexcept {
  switch (type) {
#define ENTRY(symbol, number, name, origin) \
  case EntryType::symbol:                   \
    return EntryOrigin::origin;
#include "dmt/sequence/entry_types.def"
#undef ENTRY
  }
  return EntryOrigin::kGroup;
}

// Turns that an entry grants after its admission; 0 = admit the next entry at the same clock (D3).
using GrantTurns = std::uint32_t;

enum class Resets : std::uint32_t {
  kNone,  // the new leader is on the same host
  kAll,
  kThoseThatStay,  // all except those that can move to another host (TcpStart)
};

// START also fixes the values that the group agrees on once.  The first START defines the origin of
// virtual time.  Bytes after the body are for nodes only (proxy/host/agreed.h).
struct StartBody {
  std::uint64_t seed[4];        // virtual randomness (D7); only that of the first START counts
  std::int64_t wall_offset_ns;  // CLOCK_REALTIME minus virtual monotonic time; that of the first
                                // START counts
  std::uint32_t leader;         // replica number, for messages
  Resets resets;                // which connections end with the earlier leader (C8)
};

// An address as the server sees it.
struct VirtualAddress {
  std::uint16_t family;  // AF_INET or AF_INET6 of this platform (2, 10)
  std::uint16_t port;    // host byte order
  std::uint32_t scope;   // IPv6 scope id, else 0
  std::uint8_t ip[16];   // IPv4 uses the first 4, network order
};

// 0.0.0.0 or ::.
constexpr bool is_wildcard(const VirtualAddress& address) noexcept {
  for (const std::uint8_t byte : address.ip) {
    if (byte != 0) return false;
  }
  return true;
}

// Compares the addresses without their ports.
constexpr bool same_ip(const VirtualAddress& a, const VirtualAddress& b) noexcept {
  for (std::size_t i = 0; i < sizeof a.ip; ++i) {
    if (a.ip[i] != b.ip[i]) return false;
  }
  return a.family == b.family;
}

// How a TCP connection began.  Another host needs this to build its socket
// (proxy/clients/moved_socket.h).
struct TcpStart {
  std::uint32_t sent;      // sequence number of the first byte of output
  std::uint32_t received;  // sequence number of the first byte of input
  std::uint32_t clock;     // of our timestamps, minus the group's
  std::uint16_t mss;       // 0: the connection cannot move
  std::uint8_t options;    // TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE
  std::uint8_t scales;     // of windows: the client's, and ours << 4
  std::uint32_t rtt_us;    // of the handshake: the distance to the client
};

struct ConnectBody {
  std::uint16_t port;  // the server's port as passed to bind, not the published one
  std::uint16_t padding;
  std::uint32_t slot;  // in the host's connection table; kNoTableSlot: none
  VirtualAddress peer;
  VirtualAddress local;
  SocketId socket;  // unknown: the connection ends with its leader's host
  TcpStart tcp;
  std::uint32_t rest;  // always 0
};
inline constexpr std::uint32_t kNoTableSlot = 0xffffffff;

// The answer to OutputType::kConnect.
struct ConnectedBody {
  ConnId conn;
  std::int32_t error;    // errno of connect, or 0
  std::uint32_t slot;    // as in ConnectBody
  VirtualAddress local;  // the connection's local address
  SocketId socket;       // as in ConnectBody
};
static_assert(sizeof(ConnectedBody) == 48);

// The server's name query: getaddrinfo and related calls.
enum class NameQuestion : std::uint8_t { kAddresses = 1, kName = 2 };

inline constexpr std::uint32_t kNameBytes = 256;  // of a name, with its terminating 0
inline constexpr std::uint32_t kNameAddressesMax = 32;

// OutputType::kResolve.
struct NameRequest {
  NameQuestion question;
  std::uint8_t padding[3];
  std::uint32_t flags;     // AI_.. for addresses, NI_.. for a name
  VirtualAddress address;  // kName: the address to look up; kAddresses: only its family, 0 = any
  char name[kNameBytes];   // kAddresses
};
static_assert(sizeof(NameRequest) == 288);

// The answer to OutputType::kResolve.
struct ResolvedBody {
  std::uint64_t number;       // number of the request
  std::int32_t error;         // EAI_.., or 0
  std::int32_t system_error;  // errno of EAI_SYSTEM
  std::uint32_t count;
  std::uint32_t padding;
  VirtualAddress addresses[kNameAddressesMax];  // without ports
  char name[kNameBytes];                        // kAddresses: the canonical name; "": not requested
};
static_assert(sizeof(ResolvedBody) == 1048);

struct ConnBody {
  ConnId conn;
};

struct DataBody {
  ConnId conn;  // with kUrgentBit: the last byte is urgent
  // bytes follow
};
// A bit that no connection number has.  Older builds never set it, and only DATA entries use it.
inline constexpr std::uint64_t kUrgentBit = 1ULL << 62;
constexpr DataBody data_body(ConnId conn, bool is_urgent) noexcept {
  return {is_urgent ? ConnId{value(conn) | kUrgentBit} : conn};
}
constexpr ConnId connection_of(const DataBody& data) noexcept {
  return ConnId{value(data.conn) & ~kUrgentBit};
}
constexpr bool is_urgent(const DataBody& data) noexcept {
  return (value(data.conn) & kUrgentBit) != 0;
}

struct WindowBody {
  ConnId conn;
  std::uint64_t total;  // bytes of the connection's output that the client has taken, cumulative
};

struct TakenBody {
  ConnId conn;
  std::uint64_t total;  // bytes of output that the client has acknowledged, cumulative
};
inline constexpr std::uint64_t kTakenAll = ~std::uint64_t{0};  // all bytes, and the connection has
                                                               // ended

struct SignalBody {
  std::uint32_t signo;
  std::uint32_t pid;  // virtual pid; 0 = the main process
};

// Takes effect at `clock`, not at its admission: it may come after entries that are admitted later.
struct PreemptBody {
  std::uint64_t clock;
  std::uint64_t low, high;  // the range of instructions in which the leader's thread was found
  std::uint32_t slot;
  std::uint32_t generation;  // of the slot
  std::uint64_t leaves = 0;  // 0: the thread gives way; 1: it is detached until its next operation
};

struct PassedBody {
  std::uint64_t clock;  // the next operation of the leader's server
};

struct AttachBody {
  std::uint32_t slot;
  std::uint32_t number;  // the slot's detachment that ends
};

// Ends the server of every replica, and starts a new one on the files that it left.
//   kEnd    admission sends SIGTERM to the server's main process.
//   kBegin  the leader proposes it when its own main process has ended, or has not ended in time.
//           The old server does nothing after this entry.
//   kKeep   the leader proposes it when its new server serves.  An upgrade is not rolled back after
//           the server has admitted it (proxy/replica/recovery/upgrade.h).
// Bytes after the body of kEnd are for nodes only.  They describe the new server of an upgrade, or
// announce another build of Crane: then this build starts no server after kBegin (HANDOVER-1).
struct RestartBody {
  static constexpr std::uint32_t kEnd = 1, kBegin = 2, kKeep = 3;
  std::uint32_t step;
  std::uint32_t patience_s = 0;  // kEnd of an upgrade: the time limit of the new server
};
static_assert(sizeof(RestartBody) == 8);

struct CheckpointBody {
  std::uint32_t replica;  // the replica that takes it; no other stops
  std::uint32_t unused = 0;
};

// The answer to OutputType::kPortWanted.  A second copy, from another leader, has no effect.
struct PortBody {
  std::uint64_t question;  // ListenerState::question
  std::uint32_t file;      // the socket that waits
  std::int32_t error;      // errno of bind, or 0
};
static_assert(sizeof(PortBody) == 16);

// An instruction of the server at which a thread may be preempted (dmt/slices.h).
struct TickPoint {
  std::uint64_t build;       // the first bytes of the object's build id
  std::uint32_t offset;      // its address in the object, as linked
  std::uint32_t weight_ps;   // the time that one passage counts, in picoseconds
  std::uint32_t bytes;       // length of the instructions that the jump to the stub replaces
  std::uint32_t dead_flags;  // 1 = the processor's flags are dead there
};
static_assert(sizeof(TickPoint) == 24);
inline bool is_same(const TickPoint& a, const TickPoint& b) noexcept {  // whatever its weight
  return a.build == b.build && a.offset == b.offset;
}

// A point that counts from the turn at `clock` on, at which a computation without end began.  The
// entry is admitted too late for that turn, so a node reads it before its server starts
// (dmt/slices.h).
struct EarlyPoint {
  TickPoint point;
  std::uint64_t clock;
};
static_assert(sizeof(EarlyPoint) == 32);
inline bool is_same(const EarlyPoint& a, const EarlyPoint& b) noexcept {
  return a.clock == b.clock && is_same(a.point, b.point);
}

// Precedes a body in the Paxos sequence.  `stamp_ns` is the leader's virtual monotonic time.
struct SequenceHeader {
  std::uint32_t body_bytes;
  EntryType type;
  std::uint8_t padding[3];
  GrantTurns grant;
  std::uint32_t crc;  // CRC32C over header (this field 0) and body
  std::uint64_t stamp_ns;
  Viewstamp viewstamp;
};

static_assert(sizeof(StartBody) == 48 && sizeof(ConnectBody) == 88 && sizeof(WindowBody) == 16);
static_assert(sizeof(PreemptBody) == 40 && sizeof(PassedBody) == 8);
static_assert(sizeof(AttachBody) == 8 && sizeof(CheckpointBody) == 8);
static_assert(sizeof(SequenceHeader) == 40);

// The proxy splits DATA larger than this.
inline constexpr std::uint32_t kDataBytesMax = 64 * 1024;
inline constexpr std::uint32_t kBodyBytesMax = kDataBytesMax + 64;

}  // namespace crane
