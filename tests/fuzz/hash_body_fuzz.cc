// SPDX-License-Identifier: Apache-2.0
// HASH entries: every node can judge and compare any payload of a leader.

#include "dmt/base/assert.h"
#include "proxy/record/first_turn.h"
#include "proxy/record/verification.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {

// The evidence of a replica with three turns up to its second entry, the third by operation
// `third`.
proxy::Evidence some_evidence(std::uint32_t third) {
  proxy::Evidence e{{{1, 2, 3}}, {{4, 1, 5}, {5, 4, 0}}, true, 0};
  e.first_turn = 1;
  e.turns = {{0, 0, 0, 1, 1, 1}, {1, 0, 0, 2, 1, 1}, {2, 0, 0, third, 2, 1}, {3, 0, 0, 4, 1, 1}};
  std::uint64_t& hash = e.points[1].hash = e.points[0].hash;
  for (std::size_t i = 1; i < 4; ++i) {
    hash = fold_turn(hash, e.turns[i].slot, e.turns[i].operation, e.turns[i].result);
  }
  hash = fold_admission(hash, 5, 4);
  e.cut = e.points[1];
  return e;
}

std::vector<std::string> seeds() {
  proxy::HashBody body;
  body.cut = true;
  body.digests = {proxy::Digest{1, {5, 6, 7}, 8}, std::nullopt, proxy::Digest{1, {5, 6, 7}, 9}};
  std::vector<std::string> out;
  for (const bool evidence : {false, true}) {
    if (evidence) body.evidence = some_evidence(9);
    const auto bytes = proxy::encode(body);
    out.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace crane::proxy;
  HashBody body;
  if (!decode(std::as_bytes(std::span(data, size)), body)) return 0;
  if (!body.digests.empty()) {
    const Evaluation j = evaluate(body.digests, 3);
    CRANE_ASSERT(j.replicas.size() == body.digests.size());
  }
  if (!body.evidence) return 0;
  const Evidence own = crane::fuzz::some_evidence(3);
  (void)difference(own, *body.evidence);
  const FirstTurn turn = first_turn(own, *body.evidence);
  CRANE_ASSERT(turn.answer != FirstTurn::Answer::kFound || turn.own || turn.theirs);
  return 0;
}
