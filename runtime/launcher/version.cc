// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/version.h"

#include "dmt/sequence/entry.h"
#include "runtime/control/schema.h"
#include "runtime/setup/version.h"

namespace crane::launcher {

std::string version_of_launcher() {
  return setup::version_text({{"entry", kEntryFormatVersion}, {"control", control::kVersion}});
}

}  // namespace crane::launcher
