// SPDX-License-Identifier: Apache-2.0
#pragma once
// The frames of the tcp fabric: pure functions between bytes and frames, no I/O, no state.
//
// A frame is a FrameHead, little-endian, and `body` bytes.  This file checks the planes and sizes
// of the kinds; tcp.h gives them their meaning.
//
//   both planes   kHello    Hello; the first frame of each side, and only that
//                 kPing     flag: 0 the sender is alive, 1 a probe, 2 the reply to probe `sequence`
//   log plane     kWrite    sequence, WriteHead (key, offset), the bytes
//                 kOpen     sequence, WriteHead (key, 0), nothing
//                 kAck      sequence: everything up to it is done; flag: 1 ok, 0 refused
//   background    kRequest  up to kRequestBytesMax bytes
//                 kReadCell sequence; flag: the cell     -> kCell      sequence, a CellValue
//                 kRead     sequence, ReadHead           -> kReadPart  sequence, up to kPartBytes
//                           flag: 2 more follows, 1 the last, 0 refused
//
// Fuzzers call decode(): any bytes give kMore, kFrame or kBad.
//
// Threads: pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "consensus/fabric/fabric.h"

namespace crane::consensus::tcp {

enum class Plane : std::uint8_t { kLog = 0, kBackground = 1 };
inline constexpr std::size_t kPlanes = 2;

enum class FrameKind : std::uint8_t {
  kHello = 1,
  kWrite,
  kOpen,
  kAck,
  kRequest,
  kReadCell,
  kCell,
  kRead,
  kReadPart,
  kPing,
};

struct FrameHead {
  std::uint32_t body;  // bytes that follow the head
  FrameKind kind;
  std::uint8_t flag;
  std::uint16_t zero;
  std::uint64_t sequence;
};
static_assert(sizeof(FrameHead) == 16);

inline constexpr std::uint64_t kHelloMagic = 0x31706354656e6172;
inline constexpr std::uint32_t kTcpVersion = 2;
struct Hello {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t replicas;
  std::uint64_t group;
  std::uint64_t log_bytes;
  std::uint64_t incarnation;  // random, not 0: identifies the sender's process
  std::uint64_t session;      // of the pair: chosen by the dialler, the same on both planes
};
struct WriteHead {
  std::uint64_t key;
  std::uint64_t offset;
};
struct ReadHead {
  std::uint64_t offset;
  std::uint64_t size;
};
static_assert(sizeof(Hello) == 48 && sizeof(WriteHead) == 16 && sizeof(ReadHead) == 16);

inline constexpr std::size_t kPartBytes = 32U << 10;

inline constexpr std::uint8_t kRefused = 0;
inline constexpr std::uint8_t kOk = 1;  // the last part, for reads
inline constexpr std::uint8_t kMoreParts = 2;

inline constexpr std::uint8_t kAlive = 0;  // flags of pings
inline constexpr std::uint8_t kProbe = 1;
inline constexpr std::uint8_t kProbed = 2;

// A probe or the reply to one.
constexpr bool is_probe(const FrameHead& head) noexcept {
  return head.kind == FrameKind::kPing && head.flag != kAlive;
}

struct Frame {
  FrameHead head{};
  std::span<const std::byte> body;
  std::size_t bytes = 0;  // head and body
};

enum class Decoded : std::uint8_t { kMore, kFrame, kBad };

// Decodes the frame at the beginning of `in`. kMore: the frame is not complete yet; `out.bytes` is
// the number of bytes it needs (at least sizeof(FrameHead)). kBad: no frame of this plane begins
// like that; the caller must close the link.  `write_bytes_max` limits the bytes of a kWrite.
Decoded decode(std::span<const std::byte> in, Plane plane, std::uint64_t write_bytes_max,
               Frame& out) noexcept;

// Appends a frame; `first` and `second` are its body.
void encode(std::vector<std::byte>& out, const FrameHead& head,
            std::span<const std::byte> first = {}, std::span<const std::byte> second = {});

}  // namespace crane::consensus::tcp
