// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/version.h"

#include "dmt/base/version.h"
#include "dmt/base/versions.h"
#include "dmt/layout.h"

namespace crane::setup {
namespace {

// The build defines it only for this file, so that a new commit recompiles nothing else.
#ifndef CRANE_COMMIT
#define CRANE_COMMIT "unknown"
#endif
constexpr char kCommit[] = CRANE_COMMIT;

}  // namespace

const char* commit() { return kCommit; }

std::uint32_t segment_version() { return dmt::kLayoutVersion; }

std::string agreed_versions_text() {
  std::string text;
  for (const AgreedVersion& one : kAgreedVersions) {
    if (!text.empty()) text += ", ";
    text += std::string(one.name) + " " + std::to_string(one.number);
  }
  return text;
}

std::string version_text(std::initializer_list<Format> formats) {
  std::string text = std::string(kVersion) + ", commit " + kCommit + ", " + agreed_versions_text() +
                     ", segment " + std::to_string(segment_version());
  for (const Format& format : formats) {
    text += std::string(", ") + format.name + " " + std::to_string(format.version);
  }
  return text;
}

}  // namespace crane::setup
