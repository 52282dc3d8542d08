// SPDX-License-Identifier: Apache-2.0
// The core's messages: any fields, from any peer, in any order, at a leader, a follower and a
// learner. A step ends, breaks no invariant and touches no foreign memory.

#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/consensus/core_harness.h"

namespace {

using namespace crane;
using namespace crane::consensus::core;

struct Letter {
  std::uint8_t to;
  std::uint8_t from;
  std::uint8_t mend;  // corrects fields that a foreign sender cannot know
  std::uint8_t then;  // events after it
  Message message;
};

void deliver(InstantGroup& group, Letter letter) {
  const unsigned to = letter.to % 3;
  const ReplicaId from{static_cast<std::uint8_t>(letter.from % 4)};
  Message& m = letter.message;
  if ((letter.mend & 1) != 0) {
    m.log_id = group.config.log_id;
    m.incarnation = 0;
    m.from = value(from);
  }
  if ((letter.mend & 2) != 0) m.view = make_view(value(m.view) % 64, from);
  if ((letter.mend & 4) != 0) m.view = group.nodes[to].core->promised_view();
  if ((letter.mend & 8) != 0) m.promised = View{value(m.promised) % 4096};
  group.step(to, MessageArrived{from, std::as_bytes(std::span(&m, 1))});
  if ((letter.then & 1) != 0) group.settle();
  if ((letter.then & 2) != 0) group.step(to, LogArrived{});
  if ((letter.then & 4) != 0) group.run_for(3'000'000);
  if ((letter.then & 8) != 0) (void)group.propose(to, letter.then);
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (std::uint8_t type = 1; type <= static_cast<std::uint8_t>(MessageType::kProgress); ++type) {
    std::string s;
    for (std::uint8_t to = 0; to < 3; ++to) {
      Letter letter{};
      letter.to = to;
      letter.from = static_cast<std::uint8_t>(to + 1);
      letter.mend = static_cast<std::uint8_t>(1 + 2 * (type % 3));
      letter.then = 15;
      letter.message.type = static_cast<MessageType>(type);
      letter.message.view = make_view(5, ReplicaId{letter.from});
      letter.message.last = {View{256}, Index{4}};
      letter.message.end_pos = 400;
      letter.message.commit = {View{256}, Index{2}};
      letter.message.commit_pos = 160;
      put(s, letter);
    }
    out.push_back(s);
  }
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  InstantGroup group(3, 4096);
  group.config.payload_bytes_max = 256;
  group.start_all();
  group.run_for(100'000'000);
  if (const int leader = group.leader(); leader >= 0) {
    for (int i = 0; i < 4; ++i) (void)group.propose(static_cast<unsigned>(leader));
  }
  for (int i = 0; i < 24 && !input.empty(); ++i) deliver(group, input.take<Letter>());
  group.run_for(20'000'000);
  return 0;
}
