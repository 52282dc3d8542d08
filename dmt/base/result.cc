// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/result.h"

#include <cstring>

namespace crane {

std::string Error::message() const {
  if (!text.empty()) return text;
  return detail == 0 ? std::string(what) : std::string(what) + ": " + std::strerror(detail);
}

}  // namespace crane
