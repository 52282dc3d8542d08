// SPDX-License-Identifier: Apache-2.0
// Manifests of checkpoints: any JSON with a valid checksum is refused or understood, and no file
// name in it leaves the checkpoint's directory.

#include "checkpoint/manifest.h"
#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "tests/fuzz/fuzz.h"

using namespace crane;
using namespace crane::checkpoint;

namespace {

constexpr std::size_t kSeal = 26;  // bytes of the checksum's line and what follows

std::string sealed(const std::string& body) {
  char seal[64];
  std::snprintf(seal, sizeof seal, ",\n \"crc32c\": \"%08x\"\n}\n",
                crc32c(body.data(), body.size()));
  return body + seal;
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  Manifest m;
  m.group = "web";
  m.log_digest = digest_of_log("web", 1);
  m.at = {make_view(3, ReplicaId{1}), Index{77}};
  m.node_state = R"({"a":[1,2]})";
  m.files = {{"upper.pack", 12, 34, 56}, {"segment.pack", 1, 2, 3}};
  std::vector<std::string> all;
  for (const Tier tier : {Tier::kCriu, Tier::kRestart}) {
    m.tier = tier;
    const std::string text = to_text(m);
    all.push_back(text.substr(0, text.size() - kSeal));
    CRANE_ASSERT(sealed(all.back()) == text);
  }
  return all;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  // Unsealed: it is refused, or it is a manifest from the real writer.
  (void)parse_manifest(body, "fuzzed");
  const auto read = parse_manifest(sealed(body), "fuzzed");
  if (!read) {
    CRANE_ASSERT(!read.error().text.empty());
    return 0;
  }
  for (const PackedFile& file : read.value().files) {
    CRANE_ASSERT(file.name.find('/') == std::string::npos && file.name[0] != '.');
    CRANE_ASSERT(!file.part().empty());
  }
  const auto again = parse_manifest(to_text(read.value()), "again");
  CRANE_ASSERT(again.ok());
  CRANE_ASSERT(to_text(again.value()) == to_text(read.value()));
  return 0;
}
