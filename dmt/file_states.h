// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an open file description of each kind keeps in the segment (layout.h, FileRecord).  Only
// layout; no logic.  DMT-L1 holds for all of it.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"

namespace crane::dmt {

struct ListenerState {
  std::uint16_t port;
  std::uint16_t any_address;  // bits: kWildcardAddress and its like
  std::uint32_t backlog;
  std::uint32_t queued;
  std::uint32_t head, tail;  // files (connections, or unix streams) linked by `chain`
  std::uint32_t next;        // listening files of the replica
  VirtualAddress bound;
  std::uint64_t question;  // a bind waits for PORT with this number, and on this object; 0 = none
  std::int32_t answer;     // errno of the last PORT
  std::int32_t connect_error;  // of a nonblocking connect, told once
};

struct ConnectionState {
  ConnId conn;
  VirtualAddress peer, local;
  SocketId socket;           // of the client, and its slot: as CONNECT says, for a node that
  std::uint32_t table_slot;  // recovers with this segment
  TcpStart tcp;
  std::uint32_t head_block, tail_block;  // inbound bytes
  std::uint32_t head_offset, tail_used;
  std::uint64_t received, consumed;  // bytes admitted and bytes read, cumulative
  std::uint64_t reported;            // `consumed` as last told to the node
  std::uint64_t sent, drained;       // bytes written, bytes taken by the client (D15)
  std::uint64_t taken;               // TakenBody::total, for a node that recovers
  bool fin_received, reset, shut_read, shut_write, accepted, linger_reset;
  bool loopback;              // with another socket of the server (loopback.h): no `conn`
  bool told_connected;        // a nonblocking connect has been asked for its outcome
  std::int32_t socket_error;  // SO_ERROR, cleared by reading it
  std::uint32_t low_water;    // SO_RCVLOWAT
  std::uint32_t bucket_next;  // files with the same hash of `conn`
  bool connecting;            // by the server, and CONNECTED has not come (outbound.h)
  std::uint8_t urgent;        // bits: kUrgentUnread and its like (urgent.h)
  std::uint16_t any_address;  // ListenerState's, while it is connecting
  std::uint32_t other;        // its other end, 0 = closed
  std::uint32_t urgent_at;    // of the urgent byte: as `received` counts, modulo 2^32
  VirtualAddress from;        // OutboundRequest::local, for a node that recovers
  std::uint32_t path_block;   // of a unix socket of the host: a block with its path; 0 = of TCP
};
static_assert(sizeof(ConnectionState) == 216);  // four bytes of it are unused

// Kernel pipe or one direction of a kernel unix stream, or one eventfd/timerfd's count.
struct StreamState {
  std::uint32_t peer;   // file of the other end, 0 = gone
  std::uint64_t bytes;  // written by hooked calls and not yet read (by this end); of a named
                        // pipe's writers: left by a reader that went
  std::uint64_t
      fifo;  // which named pipe this is an end of, 0 = none (runtime/preload/files/fifo.h)
  std::uint64_t capacity;
  std::uint32_t both;       // of a named pipe: the first kPipeBoth that refers to this end
  std::uint64_t taken;      // read at this end, as `bytes` counts
  std::uint64_t name;       // of a pipe: the object of its reading end
  std::uint64_t size;       // of a pipe, as F_SETPIPE_SZ has set it; 0 = the usual one
  std::uint32_t connector;  // of a unix stream that waits for accept: the process that connected
  bool peer_shut_write, shut_read, shut_write;
  bool reset;    // a unix stream's peer went with bytes unread: the kernel's next read tells it
  bool packets;  // of a pipe (O_DIRECT): each write of up to a page is read by itself and counts
                 // as a page, however small it is
};

// A descriptor of both sides of a named pipe: it refers to both ends.
struct BothEnds {
  std::uint32_t reads, writes;  // files
  std::uint32_t next;           // of the same ends
};

inline constexpr std::uint32_t kGroupsMax = 8;  // multicast groups that one UDP socket is in

struct DatagramState {
  VirtualAddress bound, peer;  // family 0 = not bound, not connected
  std::uint32_t first, last;   // blocks of the datagrams that wait, linked by block_next
  std::uint32_t blocks;        // how many
  std::int32_t error;          // SO_ERROR, told once: no socket was there for a datagram
  bool reuses, only_v6, shut_read, shut_write;
  bool chose_address, chose_port;    // by bind: what connect filled in goes when it is dissolved
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
  std::uint32_t head_block, tail_block;  // of the events that wait, linked by block_next
  std::uint32_t head_offset;             // where the oldest begins in its block
  std::uint32_t last_offset;             // .. and the newest
  std::uint32_t events, bytes;           // how many wait, without an overflow
  std::uint32_t watches;                 // linked by FileWatch::instance_next
  std::int32_t last_watch;               // the number that was given last
  bool overflowed;                       // events were lost behind those that wait
};

// An open file description of a pseudo-terminal's end.
struct TerminalEnd {
  std::uint16_t terminal;
  bool hung_up;         // a line's: its terminal is gone for it
  bool is_controlling;  // opened as /dev/tty
  std::uint32_t next;   // file of the same terminal
};

}  // namespace crane::dmt
