// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records of the output ring: what the server did that the outside must learn, in turn order. The
// node of every replica reads them.  All nodes hash (and record) the bytes; the leader sends them.
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
  kUnlisten = 5,   // the server stopped listening; argument 1 = for a restart; ListenPlace follows
  kConsumed = 6,   // the server has read `argument` bytes of `conn` in total (the proxy's receive
                   // window)
  kRefused = 7,    // CONNECT `conn` found no listener or a full backlog: reset the client (rule 21)
  kExit = 8,       // the server's main process ended; argument = wait status, `conn` = how many of
                   // its processes continue
  kSpawn = 9,      // a process was created; argument = its pid inside the container
  kAdmitted = 10,  // entry `conn` of the log was admitted; argument = the schedule hash after it
  kTurns = 11,     // turns `conn`, `conn` + 1, ...: TurnRecords follow (when tracing)
  kPortWanted = 12,  // a bind waits to learn whether the server can have port `conn`; argument =
                     // the question; ListenPlace follows
  kConnect = 13,     // the server opens connection `conn`; OutboundRequest follows
  kResolve = 14,     // the server looks up a name, request `conn`; NameRequest follows
};

struct OutputMarks {
  bool urgent = false;  // kBytes: the last byte is urgent
  std::uint8_t padding[6] = {};
};

struct OutputHeader {
  OutputType type;
  OutputMarks marks;
  std::uint64_t conn;      // ConnId, a port for the listen records, a log index for kAdmitted
  std::uint64_t argument;  // depends on the type
  std::uint64_t clock;     // logical clock of the turn that wrote the record
};
static_assert(sizeof(OutputHeader) == 32);

// Where the server listens, on its own port.  Several listeners may share one (SO_REUSEPORT):
// kListen reports the first, kUnlisten the last.
struct ListenPlace {
  VirtualAddress bound;
  bool only_ipv6;        // IPv6 wildcard without IPv4
  bool loopback_device;  // only clients of the loopback interface
  std::uint8_t padding[6];
};
static_assert(sizeof(ListenPlace) == 32);

// Every kConnect has one kClose, even if the connection was refused.  A peer of AF_UNIX is a socket
// of the host: its path follows, at most kSocketPathBytes without a terminating 0.  With port
// kFifoToRead it is a FIFO of the host that the server reads.
struct OutboundRequest {
  VirtualAddress peer;
  VirtualAddress local;  // as the server bound its socket: the wildcard and port 0 mean any
};
static_assert(sizeof(OutboundRequest) == 48);
inline constexpr std::uint32_t kSocketPathBytes = 108;
inline constexpr std::uint16_t kFifoToRead = 1;

// One record carries at most this many bytes; longer writes produce several records.
inline constexpr std::uint32_t kOutputBytesMax = 64 * 1024;

}  // namespace crane
