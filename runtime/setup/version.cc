// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/version.h"

#include "dmt/base/version.h"
#include "dmt/layout.h"

namespace crane::setup {
namespace {

// The Makefile defines it for this file alone, so that a new commit compiles nothing else.
#ifndef CRANE_COMMIT
#define CRANE_COMMIT "unknown"
#endif
constexpr char kCommit[] = CRANE_COMMIT;

}  // namespace

std::string version_text(std::initializer_list<Format> formats) {
  std::string text = std::string(kVersion) + ", commit " + kCommit + ", layout " +
                     std::to_string(dmt::kLayoutVersion);
  for (const Format& format : formats) {
    text += std::string(", ") + format.name + " " + std::to_string(format.version);
  }
  return text;
}

}  // namespace crane::setup
