// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records of the output ring: what the server did that the outside must learn, in turn order.  The
// node of every replica reads them: all hash (and record) the bytes, the leader sends them.
//
// Processes: written by the turn holder, read by the node.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"

namespace crane {

enum class OutputType : std::uint8_t {
  kBytes = 1,      // bytes the server wrote to `conn` follow the header
  kShutdown = 2,   // the server shut down writing on `conn`: FIN after what was written
  kClose = 3,      // the server's last reference to `conn` is gone; argument 1 = RST (unread input)
  kListen = 4,     // the server listens on port `conn`; argument = backlog; ListenPlace follows
  kUnlisten = 5,   // it does so no longer; argument 1 = it is restarted; ListenPlace follows
  kConsumed = 6,   // the server read `argument` bytes of `conn` in all (the proxy's receive window)
  kRefused = 7,    // CONNECT `conn` found no listener or a full backlog: reset the client (rule 21)
  kExit = 8,       // the server's main process ended; argument = wait status, `conn` = how many of
                   // its processes go on
  kSpawn = 9,      // a process was created; argument = its pid inside the container
  kAdmitted = 10,  // entry `conn` of the log was admitted; argument = the schedule hash after it
  kTurns = 11,     // turns `conn`, `conn` + 1, ...: TurnRecords follow (when tracing)
  kPortWanted = 12,  // a bind waits: can the server have port `conn`? argument = the question;
                     // ListenPlace follows
  kConnect = 13,     // the server opens connection `conn`; OutboundRequest follows
  kResolve = 14,     // the server asks for a name, by request `conn`; NameRequest follows
};

struct OutputMarks {
  bool urgent = false;  // kBytes: the last byte is urgent
  std::uint8_t padding[6] = {};
};

struct OutputHeader {
  OutputType type;
  OutputMarks marks;
  std::uint64_t conn;      // ConnId, a port for kListen and its like, a log index for kAdmitted
  std::uint64_t argument;  // by type
  std::uint64_t clock;     // logical clock of the turn that wrote it
};
static_assert(sizeof(OutputHeader) == 32);

// Where the server listens, at a port of its own.  Several listeners may share one (SO_REUSEPORT):
// kListen tells of the first, kUnlisten of the last.
struct ListenPlace {
  VirtualAddress bound;
  bool only_ipv6;        // not also IPv4, at the wildcard of IPv6
  bool loopback_device;  // clients of the loopback interface alone
  std::uint8_t padding[6];
};
static_assert(sizeof(ListenPlace) == 32);

// Every kConnect has one kClose, also when the connection was refused.  A peer of AF_UNIX is a
// socket of the host: its path, at most kSocketPathBytes, follows, and has no 0 at its end.  With
// port kFifoToRead it is a FIFO of the host, whose bytes the server reads.
struct OutboundRequest {
  VirtualAddress peer;
  VirtualAddress local;  // as the server has bound its socket: the wildcard and port 0 mean any
};
static_assert(sizeof(OutboundRequest) == 48);
inline constexpr std::uint32_t kSocketPathBytes = 108;
inline constexpr std::uint16_t kFifoToRead = 1;

// One record carries at most this many bytes; longer writes make several.
inline constexpr std::uint32_t kOutputBytesMax = 64 * 1024;

}  // namespace crane
