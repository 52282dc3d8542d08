// SPDX-License-Identifier: Apache-2.0
// Any bytes that a writer with permission may leave in the ring of a follower's log memory and in
// the commit cell after it. The follower delivers only whole entries in sequence.

#include <algorithm>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/consensus/core_harness.h"

namespace {

using namespace crane;
using namespace crane::consensus::core;

constexpr std::uint64_t kRing = 4096;

struct Patch {
  std::uint16_t at;
  std::uint8_t size;
  std::uint8_t then;
};

void mend_cell(InstantGroup& group, unsigned id) {
  CommitCell cell;
  std::byte* const at = group.nodes[id].memory.data() + kRing;
  std::memcpy(&cell, at, sizeof cell);
  cell.log_id = group.config.log_id;
  cell.view = value(group.nodes[id].core->promised_view());
  cell.crc = crc32c(&cell, sizeof cell - sizeof cell.crc);
  std::memcpy(at, &cell, sizeof cell);
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (const unsigned at : {0U, 72U, 160U, 4000U, 4096U, 4112U}) {
    std::string s;
    for (unsigned i = 0; i < 4; ++i) {
      put(s, Patch{static_cast<std::uint16_t>(at + i * 8), 16, static_cast<std::uint8_t>(7 + i)});
      s.append(16, static_cast<char>(i));
    }
    out.push_back(s);
  }
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  InstantGroup group(3, kRing);
  group.config.payload_bytes_max = 256;
  group.start_all();
  group.run_for(100'000'000);
  const int leader = group.leader();
  CRANE_ASSERT(leader >= 0);
  const unsigned id = leader == 0 ? 1 : 0;
  for (int i = 0; i < 24 && !input.empty(); ++i) {
    const auto patch = input.take<Patch>();
    const auto bytes = input.take_bytes(patch.size);
    auto& memory = group.nodes[id].memory;
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      memory[(patch.at + k) % (kRing + sizeof(CommitCell))] = bytes[k];
    }
    if ((patch.then & 1) != 0) mend_cell(group, id);
    group.step(id, LogArrived{});
    if ((patch.then & 2) != 0) (void)group.propose(static_cast<unsigned>(leader), patch.then);
    if ((patch.then & 4) != 0) group.run_for(3'000'000);
  }
  std::uint64_t index = 0;
  for (const Entry& e : group.nodes[id].delivered) CRANE_ASSERT(value(e.at.index) == ++index);
  return 0;
}
