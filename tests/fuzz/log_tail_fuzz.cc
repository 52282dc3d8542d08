// SPDX-License-Identifier: Apache-2.0
// The log of a backup (consensus/log_tail.h): for any bytes of the file its reader returns only
// consecutive entries, allocates no memory for missing ones, and reports the file as whole only if
// all of it is (BACKUP-1).

#include <algorithm>

#include "consensus/core/log.h"
#include "consensus/log_tail.h"
#include "consensus/store/tail_format.h"
#include "dmt/base/assert.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane;
using namespace crane::consensus;

constexpr std::uint64_t kRing = 8192;
constexpr std::uint64_t kLogId = 77;
constexpr std::uint32_t kPayloadMax = 300;

store::TailPlace place_of(const core::Cursor& c) {
  return {c.pos, value(c.last.view), value(c.last.index)};
}

std::string written(const core::Cursor& begin, unsigned entries) {
  std::vector<std::byte> memory(core::log_memory_bytes(kRing));
  core::LogRing ring(memory, kRing, kLogId, kPayloadMax);
  core::Cursor at = begin;
  for (unsigned i = 0; i < entries; ++i) {
    core::EntryHeader h;
    h.view = 257 + i / 3 * 256;
    ring.append(at, h, std::vector<std::byte>(i * 37 % kPayloadMax, std::byte(i)));
  }
  std::vector<std::byte> bytes(at.pos - begin.pos);
  ring.copy_out(begin.pos, bytes);
  store::TailHead head;
  head.magic = store::kTailMagic;
  head.log_id = kLogId;
  head.begin = place_of(begin);
  head.end = place_of(at);
  head.entries = entries;
  head.digest = crc64(bytes.data(), bytes.size());
  head.crc = store::crc_of(head);
  std::string file;
  fuzz::put(file, head);
  return file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

namespace crane::fuzz {

// The first byte selects whether checksums of the head are corrected, so that the rest is reached.
std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (const char mends : {'\0', '\1'}) {
    for (const unsigned entries : {0U, 1U, 9U}) {
      out.push_back(mends + written({4096, {View{257}, Index{512}}}, entries));
    }
  }
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  const bool mends = (input.take<std::uint8_t>() & 1) != 0;
  std::vector<std::byte> file(input.rest().begin(), input.rest().end());
  if (mends && file.size() >= sizeof(store::TailHead)) {
    store::TailHead head;
    std::memcpy(&head, file.data(), sizeof head);
    head.crc = store::crc_of(head);
    std::memcpy(file.data(), &head, sizeof head);
  }
  std::span<const std::byte> rest = file;
  auto reader = LogTailReader::open([&rest](std::span<std::byte> to) -> Result<std::size_t> {
    const std::size_t got = std::min(to.size(), rest.size());
    std::copy_n(rest.begin(), got, to.begin());
    rest = rest.subspan(got);
    return got;
  });
  bool whole = false;
  if (reader) {
    const LogTail& tail = reader.value().tail();
    core::Cursor at{tail.begin.pos, tail.begin.at};
    for (auto piece = reader.value().next(); piece; piece = reader.value().next()) {
      whole = piece.value().empty();
      if (whole) break;
      for (auto bytes = piece.value(); !bytes.empty();) {
        core::EntryHeader h;
        CRANE_ASSERT(core::valid_entry(at, tail.log_id, bytes, h));  // BACKUP-1
        at = core::LogRing::after(h);
        bytes = bytes.subspan(core::entry_bytes(h.length));
      }
    }
    CRANE_ASSERT(!whole || (at.pos == tail.end.pos && at.last == tail.end.at && rest.empty()));
  }
  crane::fuzz::check_seed(data, size, whole);
  return 0;
}
