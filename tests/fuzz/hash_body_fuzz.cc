// SPDX-License-Identifier: Apache-2.0
// HASH entries: what a leader's payload says is judged and compared by every node, whatever it is.

#include "dmt/base/assert.h"
#include "proxy/verification.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {

std::vector<std::string> seeds() {
  proxy::HashBody body;
  body.cut = true;
  body.digests = {proxy::Digest{1, {5, 6, 7}, 8}, std::nullopt, proxy::Digest{1, {5, 6, 7}, 9}};
  std::vector<std::string> out;
  for (const bool evidence : {false, true}) {
    if (evidence) body.evidence = proxy::Evidence{{{1, 2, 3}}, {{4, 5, 6}}, true, 0};
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
    const Judgement j = judge(body.digests, 3);
    CRANE_ASSERT(j.replicas.size() == body.digests.size());
  }
  if (body.evidence) (void)difference(*body.evidence, {{{1, 2, 3}}, {{4, 5, 6}}, true, 0});
  return 0;
}
