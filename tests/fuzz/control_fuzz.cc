// SPDX-License-Identifier: Apache-2.0
// What crane-run tells a node: any text is a command or none.

#include "dmt/base/assert.h"
#include "proxy/node/control.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {

std::vector<std::string> seeds() {
  return {R"({"t":"listener","port":80})",
          R"({"t":"listen_failed","port":80,"message":"address in use"})",
          R"({"t":"stop"})",
          R"({"t":"status"})",
          R"({"t":"signal","signo":15,"pid":2})",
          R"({"t":3,"port":"x"})",
          "[1,2",
          ""};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const crane::node::Command command = crane::node::parse_command(text);
  CRANE_ASSERT(command.type.size() <= size && command.signo <= 64);
  return 0;
}
