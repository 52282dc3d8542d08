// SPDX-License-Identifier: Apache-2.0
// The log's entries (consensus/core/log.h): any bytes in the ring, checksummed or not, from any
// cursor. A scan ends, stays within the memory, and finds only consecutive entries.

#include <algorithm>

#include "consensus/core/log.h"
#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane;
using namespace crane::consensus::core;

constexpr std::uint64_t kRing = 2048;
constexpr std::uint64_t kLogId = 77;
constexpr std::uint32_t kPayloadMax = 300;

struct Prefix {
  std::uint8_t mend;  // number of entries with corrected checksums, so that the rest is reached
  std::uint8_t padding[7];
  std::uint64_t pos, view, index;
};

void mend(std::vector<std::byte>& memory, LogRing& ring, Cursor at, unsigned count) {
  for (; count > 0; --count) {
    EntryHeader h = ring.header_at(at.pos);
    h.log_id = kLogId;
    h.pos = at.pos;
    h.index = value(at.last.index) + 1;
    h.prev_view = value(at.last.view);
    h.view = std::max(h.view, h.prev_view);
    h.length %= 2 * kPayloadMax;
    if (h.length <= kPayloadMax) {
      const auto body = ring.payload(h);
      h.crc = crc32c(reinterpret_cast<const std::byte*>(&h) + 4, kHeaderBytes - 4);
      h.crc = crc32c(body.data(), body.size(), h.crc);
    }
    for (std::size_t i = 0; i < kHeaderBytes; ++i) {
      memory[ring.offset(at.pos + i)] = reinterpret_cast<const std::byte*>(&h)[i];
    }
    at = LogRing::after(h);
  }
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (const std::uint64_t start : {std::uint64_t{0}, kRing - 200, 5 * kRing - 8}) {
    std::vector<std::byte> memory(log_memory_bytes(kRing));
    LogRing ring(memory, kRing, kLogId, kPayloadMax);
    const Cursor begin{start, {View{257}, Index{start / 8}}};
    Cursor at = begin;
    for (std::uint64_t i = 0; i < 6; ++i) {
      EntryHeader h;
      h.view = 257 + i / 3 * 256;
      h.commit = i;
      ring.append(at, h, std::vector<std::byte>(i * 37 % kPayloadMax, std::byte(i)));
    }
    ring.set_commit_cell(at.last.view, at.last.index);
    for (const std::uint8_t mends : {std::uint8_t{0}, std::uint8_t{3}}) {
      std::string s;
      put(s, Prefix{mends, {}, start, value(begin.last.view), value(begin.last.index)});
      s.append(reinterpret_cast<const char*>(memory.data()), memory.size());
      out.push_back(s);
    }
  }
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  const auto prefix = input.take<Prefix>();
  std::vector<std::byte> memory(log_memory_bytes(kRing));
  const auto bytes = input.rest();
  std::copy_n(bytes.begin(), std::min(bytes.size(), memory.size()), memory.begin());
  LogRing ring(memory, kRing, kLogId, kPayloadMax);
  const Cursor begin{prefix.pos & ~std::uint64_t{7} & (~std::uint64_t{0} >> 1),
                     {View{prefix.view}, Index{prefix.index & (~std::uint64_t{0} >> 1)}}};
  mend(memory, ring, begin, prefix.mend % 16);
  Cursor at = begin;
  EntryHeader h;
  unsigned sum = 0;
  while (ring.valid_at(at, h)) {
    CRANE_ASSERT(h.length <= kPayloadMax && h.pos == at.pos && View{h.view} >= at.last.view);
    const auto payload = ring.payload(h);
    CRANE_ASSERT(payload.size() == h.length);
    for (const std::byte b : payload) sum += static_cast<unsigned>(b);
    at = LogRing::after(h);
    CRANE_ASSERT(at.pos - begin.pos <= 2 * kRing);
  }
  if (ring.valid_bytes(begin, bytes, h)) CRANE_ASSERT(entry_bytes(h.length) <= bytes.size());
  (void)ring.commit_cell(View{prefix.view});
  return static_cast<int>(sum & 0);
}
