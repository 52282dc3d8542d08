// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of an open file description in the segment, by kind (layout.h, FileRecord).  Layout
// only; no logic.  DMT-L1 holds for all of it.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"

namespace crane::dmt {

struct ListenerState {
  std::uint16_t port;
  std::uint16_t any_address;  // bits: kWildcardAddress and similar
  std::uint32_t backlog;
  std::uint32_t queued;
  std::uint32_t head, tail;  // files (connections, or unix streams) linked by `chain`
  std::uint32_t next;        // listening files of the replica
  VirtualAddress bound;
  std::uint64_t question;  // the PORT number that a bind waits for, also as wait object; 0 = none
  std::int32_t answer;     // errno of the last PORT
  std::int32_t connect_error;  // of a nonblocking connect, reported once
};

struct ConnectionState {
  ConnId conn;
  VirtualAddress peer, local;
  SocketId socket;           // the client's, from CONNECT; for a node that recovers with this
                             // segment
  std::uint32_t table_slot;  // from CONNECT; for the same node
  TcpStart tcp;
  std::uint32_t head_block, tail_block;  // inbound bytes
  std::uint32_t head_offset, tail_used;
  std::uint64_t received, consumed;  // bytes admitted and bytes read, cumulative
  std::uint64_t reported;            // `consumed` as last reported to the node
  std::uint64_t sent, drained;       // bytes written, bytes taken by the client (D15)
  std::uint64_t taken;               // TakenBody::total, for a node that recovers
  bool fin_received, reset, shut_read, shut_write, accepted, linger_reset;
  bool loopback;              // peer is another socket of the server (loopback.h): no `conn`
  bool reported_connected;    // the program has read the outcome of a nonblocking connect
  std::int32_t socket_error;  // SO_ERROR, cleared by reading it
  std::uint32_t low_water;    // SO_RCVLOWAT
  std::uint32_t bucket_next;  // files with the same hash of `conn`
  bool connecting;            // the server is connecting; CONNECTED has not come (outbound.h)
  std::uint8_t urgent;        // bits: kUrgentUnread and similar (urgent.h)
  std::uint16_t any_address;  // as in ListenerState, while connecting
  std::uint32_t other;        // loopback: the other end; 0 = closed
  std::uint32_t urgent_at;    // position of the urgent byte, in `received` counts modulo 2^32
  VirtualAddress from;        // OutboundRequest::local, for a node that recovers
  std::uint32_t path_block;   // a unix socket of the host: block with its path; 0 = TCP
};
static_assert(sizeof(ConnectionState) == 216);  // four bytes of it are unused

// A kernel pipe, or one direction of a kernel unix stream.
struct StreamState {
  std::uint32_t peer;   // file of the other end, 0 = gone
  std::uint64_t bytes;  // written by hooked calls and not yet read by this end; writers of a named
                        // pipe: left unread by a reader that closed
  std::uint64_t fifo;   // identity of the named pipe, 0 = none (runtime/preload/files/fifo.h)
  std::uint64_t capacity;
  std::uint32_t both;       // named pipe: the first kPipeBoth that refers to this end
  std::uint64_t taken;      // read at this end, in `bytes` counts
  std::uint64_t name;       // pipe: the object of its reading end
  std::uint64_t size;       // pipe: set by F_SETPIPE_SZ; 0 = the default
  std::uint32_t connector;  // unix stream waiting for accept: the connecting process
  bool peer_shut_write, shut_read, shut_write;
  bool reset;    // unix stream: the peer closed with bytes unread; the kernel's next read reports
                 // it
  bool packets;  // pipe (O_DIRECT): each write of up to a page is one read and counts as a whole
                 // page
};

// A descriptor of a named pipe opened for both sides: it refers to both ends.
struct BothEnds {
  std::uint32_t reads, writes;  // files
  std::uint32_t next;           // next with the same ends
};

inline constexpr std::uint32_t kGroupsMax = 8;  // multicast groups per UDP socket

struct DatagramState {
  VirtualAddress bound, peer;  // family 0 = not bound, not connected
  std::uint32_t first, last;   // blocks of queued datagrams, linked by block_next
  std::uint32_t blocks;        // number of those blocks
  std::int32_t error;          // SO_ERROR, reported once: a datagram found no socket
  bool reuses, only_v6, shut_read, shut_write;
  bool chose_address, chose_port;    // by bind: dissolving a connect clears only the rest
  std::uint32_t groups[kGroupsMax];  // 0 = free (group_name)
};

struct CounterState {
  std::uint64_t count;
  bool semaphore;
  std::int64_t interval_ns;
  std::uint16_t timer;
  std::uint64_t signal_mask;
};

struct EpollState {
  std::uint32_t ready_head, ready_tail;  // watches linked by `ready_next`
  std::uint32_t items;                   // all watches of this epoll linked by `owner_next`
};

// An inotify instance (inotify.h).
struct InotifyState {
  std::uint32_t head_block, tail_block;  // queued events, linked by block_next
  std::uint32_t head_offset;             // offset of the oldest event in its block
  std::uint32_t last_offset;             // offset of the newest event
  std::uint32_t events, bytes;           // queued, without an overflow event
  std::uint32_t watches;                 // linked by FileWatch::instance_next
  std::int32_t last_watch;               // the last watch number handed out
  bool overflowed;                       // events were lost after the queued ones
};

// An open file description of a pseudo-terminal's end.
struct TerminalEnd {
  std::uint16_t terminal;
  bool hung_up;         // of a line: its terminal has hung up
  bool is_controlling;  // opened as /dev/tty
  std::uint32_t next;   // next file of the same terminal
};

}  // namespace crane::dmt
