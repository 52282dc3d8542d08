// SPDX-License-Identifier: Apache-2.0
// A node's configuration: any text is read or refused.

#include "dmt/base/assert.h"
#include "proxy/host/config.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {

std::vector<std::string> seeds() {
  return {
      R"({"group":"g","replica":1,"replicas":3,"dir":"/run/g","shm_dir":"/dev/shm/g",
"program":"/bin/true","args":["-x"],"env":["A=1"],"dirs":["/tmp"],"mode":"parallel",
"admission":"classic","quantum":5,"record":"/r","container":false,
"binds":["/a","/b:/c",["/d","/e"],{"source":"/f","target":"/g"}],"libcrane":"/l.so","perturb":1,
"cpu":2,"log_id":77,"send_buffer":9,"working_directory":"/w",
"secret":"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"})",
      R"({"dir":"/d","shm_dir":"/s","program":"p","libcrane":"l","env":{"A":"1"},"binds":null})",
      R"({"replica":3,"replicas":3})",
      "[]",
      "",
      "null",
      "{\"env\":3,\"binds\":{\"x\":[]}}"};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = crane::node::parse_config(text);
  if (config.ok()) {
    CRANE_ASSERT(config.value().replica < config.value().replicas);
    CRANE_ASSERT(config.value().dir[0] == '/' && config.value().shm_dir[0] == '/');
  }
  return 0;
}
