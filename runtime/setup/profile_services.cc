// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/profile_services.h"

#include "runtime/setup/words.h"

namespace crane::setup {

// A clamd.conf of Debian says "Foreground false" and "User clamav"; its unit says --foreground.
Profile clamd(const Words& args) {
  Profile p{.name = "clamd", .directories = {"clamav:/run/clamav"}};
  if (!any_begins(args, {"-F", "--foreground", "-V", "--version", "-h", "--help"})) {
    p.args = {"--foreground=true"};
  }
  return p;
}

// Stays in the foreground by itself; user and configuration as Debian's unit has them.
Profile gerbera(const Words& args) {
  Profile p{.name = "gerbera", .directories = {"gerbera:/var/lib/gerbera"}, .user = "gerbera"};
  if (!any_begins(args, {"-c", "--config", "-m", "--home", "-v", "--version", "-h", "--help",
                         "--compile-info"})) {
    p.args = {"-c", "/etc/gerbera/config.xml"};
  }
  return p;
}

}  // namespace crane::setup
