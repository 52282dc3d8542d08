// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/tcp_frame.h"

#include <bit>
#include <cstring>

namespace crane::consensus::tcp {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

struct Shape {
  Plane plane{};
  bool both = false;
  std::uint64_t body_min = 0;
  std::uint64_t body_max = 0;
  std::uint8_t flag_max = 0;
};

// False: no such kind.
bool shape_of(FrameKind kind, std::uint64_t write_bytes_max, Shape& s) noexcept {
  switch (kind) {
    case FrameKind::kHello:
      s = {Plane::kLog, true, sizeof(Hello), sizeof(Hello), 0};
      return true;
    case FrameKind::kWrite:
      s = {Plane::kLog, false, sizeof(WriteHead), sizeof(WriteHead) + write_bytes_max, 0};
      return true;
    case FrameKind::kOpen:
      s = {Plane::kLog, false, sizeof(WriteHead), sizeof(WriteHead), 0};
      return true;
    case FrameKind::kAck:
      s = {Plane::kLog, false, 0, 0, kOk};
      return true;
    case FrameKind::kRequest:
      s = {Plane::kBackground, false, 0, kRequestBytesMax, 0};
      return true;
    case FrameKind::kReadCell:
      s = {Plane::kBackground, false, 0, 0, kCellsMax - 1};
      return true;
    case FrameKind::kCell:
      s = {Plane::kBackground, false, sizeof(CellValue), sizeof(CellValue), 0};
      return true;
    case FrameKind::kRead:
      s = {Plane::kBackground, false, sizeof(ReadHead), sizeof(ReadHead), 0};
      return true;
    case FrameKind::kReadPart:
      s = {Plane::kBackground, false, 0, kPartBytes, kMoreParts};
      return true;
    case FrameKind::kPing:
      s = {Plane::kLog, true, 0, 0, kProbed};
      return true;
  }
  return false;
}

void append(std::vector<std::byte>& out, const void* from, std::size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  out.insert(out.end(), bytes, bytes + size);
}

}  // namespace

Decoded decode(std::span<const std::byte> in, Plane plane, std::uint64_t write_bytes_max,
               Frame& out) noexcept {
  out = Frame{};
  out.bytes = sizeof(FrameHead);
  if (in.size() < sizeof(FrameHead)) return Decoded::kMore;
  std::memcpy(&out.head, in.data(), sizeof(FrameHead));
  Shape shape;
  if (!shape_of(out.head.kind, write_bytes_max, shape)) return Decoded::kBad;
  if (!shape.both && shape.plane != plane) return Decoded::kBad;
  if (out.head.body < shape.body_min || out.head.body > shape.body_max) return Decoded::kBad;
  if (out.head.flag > shape.flag_max || out.head.zero != 0) return Decoded::kBad;
  out.bytes = sizeof(FrameHead) + out.head.body;
  if (in.size() < out.bytes) return Decoded::kMore;
  out.body = in.subspan(sizeof(FrameHead), out.head.body);
  return Decoded::kFrame;
}

void encode(std::vector<std::byte>& out, const FrameHead& head, std::span<const std::byte> first,
            std::span<const std::byte> second) {
  FrameHead h = head;
  h.body = static_cast<std::uint32_t>(first.size() + second.size());
  append(out, &h, sizeof h);
  if (!first.empty()) append(out, first.data(), first.size());
  if (!second.empty()) append(out, second.data(), second.size());
}

}  // namespace crane::consensus::tcp
