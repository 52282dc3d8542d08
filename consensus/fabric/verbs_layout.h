// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layout of the verbs fabric's files and of its frames to peers; no behaviour.
//
//   <dir>/r<i>/lock      held by the live process of replica i
//   <dir>/r<i>/control   Control: identity, live keys, cells; peers read the cells by RDMA
//   <dir>/r<i>/log       the log memory; peers write it by RDMA, under a grant
//
// Each field's comment names its only writer.  A change of layout changes kVerbsVersion.  Numbers
// are little endian, like all machines that this fabric is built for.

#include <infiniband/verbs.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "consensus/fabric/tmpfs_fabric.h"

namespace crane::consensus::verbs {

inline constexpr std::uint64_t kControlMagic = 0x3176627274436e72;
inline constexpr std::uint32_t kFrameMagic = 0x56726e43;
inline constexpr std::uint32_t kVerbsVersion = 1;

// One version of a cell.  A device may read bytes in any order and words torn, and the owner may
// die in the middle of a write.  So a copy is valid only if its checksum matches.
struct CellCopy {
  std::uint64_t version;
  std::uint64_t words[kCellWords];
  std::uint64_t check;  // CRC64 of the rest
};

// Version n is written into copy[n % 2] while the other copy holds version n - 1.
struct alignas(kLine) Cell {
  CellCopy copy[2];
};

// A counter that a peer writes by RDMA.  It is valid only if the halves match (words may be torn).
struct alignas(kLine) Credit {
  std::atomic<std::uint32_t> consumed;
  std::atomic<std::uint32_t> inverse;  // ~consumed
};

struct Control {
  ControlHead head;
  std::uint64_t memory;                  // random: identifies this memory until it is lost
  std::atomic<std::uint64_t> next_key;   // owner
  std::atomic<std::uint64_t> pid_start;  // owner; with pid: identifies one process for ever
  std::atomic<std::uint32_t> pid;        // owner
  alignas(kLine) std::atomic<std::uint64_t> live_key[kReplicasMax + 1];  // owner; [j]: j's grant
  Cell cells[kCellsMax];                                                 // owner; peers read
};

// Head of every SEND on the background plane; a request's body follows.
struct MailHead {
  std::uint32_t kind;  // a MailKind
  std::uint32_t size;
};
enum MailKind : std::uint32_t {
  kMailRequest = 1,
  kMailBell = 2,        // something was sent
  kMailBellLanded = 3,  // something was written into the log memory
};
inline constexpr std::uint32_t kMailBytesMax = sizeof(MailHead) + kRequestBytesMax;

// A frame of the authenticated bootstrap connection.  All kinds share one struct: it is small, and
// a connection needs only a few.
enum class FrameKind : std::uint8_t {
  kHello = 1,  // my identity, my end of the background connection, the readable memory
  kReady,      // my end of the background connection is up
  kOffer,      // a spare slot: my end and the key to my log memory
  kAccept,     // my end of the slot you offered
  kOpen,       // a request to write under `key` again
  kOpened,     // granted, through slot `slot`
  kRefused,    // `key` is not live for the sender of kOpen
};
struct Frame {
  std::uint32_t magic;
  std::uint32_t version;
  FrameKind kind;
  std::uint8_t pad[3];
  std::uint32_t replicas;   // hello
  std::uint64_t group;      // hello
  std::uint64_t log_bytes;  // hello
  std::uint64_t memory;     // hello
  std::uint64_t key;        // open
  std::uint64_t slot;       // offer, accept, opened
  std::uint8_t gid[16];     // hello, offer, accept: address of qpn
  std::uint32_t qpn;        // hello, offer, accept
  std::uint32_t psn;
  std::uint32_t mtu;
  std::uint32_t lid;
  std::uint64_t log_at;  // hello: for reading; offer: for writing
  std::uint64_t cells_at;
  std::uint64_t credit_at;
  std::uint32_t log_rkey;
  std::uint32_t cells_rkey;
  std::uint32_t credit_rkey;
  std::uint32_t serial;  // open, opened, refused: number of the writer's kOpen
};

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(CellCopy) == kLine && sizeof(Cell) == 2 * kLine && sizeof(Credit) == kLine);
static_assert(std::is_trivially_copyable_v<Frame> && sizeof(Frame) == 128);
static_assert(std::is_standard_layout_v<Control> && offsetof(Control, cells) % kLine == 0);

}  // namespace crane::consensus::verbs
