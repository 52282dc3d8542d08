// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/profile_services.h"

#include "runtime/setup/words.h"

namespace crane::setup {

// Debian's clamd.conf has "Foreground false" and "User clamav"; its unit has --foreground.
Profile clamd(const Words& args) {
  Profile p{.name = "clamd", .directories = {"clamav:/run/clamav"}};
  if (!any_begins(args, {"-F", "--foreground", "-V", "--version", "-h", "--help"})) {
    p.args = {"--foreground=true"};
  }
  return p;
}

// gerbera stays in the foreground without an option.  User and configuration are those of Debian's
// unit.
Profile gerbera(const Words& args) {
  Profile p{.name = "gerbera", .directories = {"gerbera:/var/lib/gerbera"}, .user = "gerbera"};
  if (!any_begins(args, {"-c", "--config", "-m", "--home", "-v", "--version", "-h", "--help",
                         "--compile-info"})) {
    p.args = {"-c", "/etc/gerbera/config.xml"};
  }
  return p;
}

}  // namespace crane::setup
