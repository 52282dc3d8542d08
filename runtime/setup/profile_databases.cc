// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/profile_databases.h"

#include <pwd.h>
#include <unistd.h>

#include "runtime/setup/words.h"

namespace crane::setup {

// mariadbd refuses to run as root without a user to switch to.
Profile mariadbd(const Words& args) {
  Profile p{.name = "mariadbd", .directories = {"mysql:/run/mysqld"}};
  const bool asked = has(args, {"-V", "--version", "-?", "-I", "--help"});
  if (geteuid() == 0 && !asked && !any_begins(args, {"-u", "--user"})) {
    p.args = {"--user=mysql"};
  }
  return p;
}

// postgres refuses to run as root.  Debian's pg_ctlcluster runs it as the owner of the data, the
// user postgres.
Profile postgres(const Words&) {
  return Profile{.name = "postgres",
                 .directories = {"postgres:/run/postgresql"},
                 .stop_signal = SIGINT,  // SIGTERM waits for all clients to leave
                 .user = "postgres"};
}

// slapd stays in the foreground only with a debug level; Debian's script sets its user and group.
Profile slapd(const Words& args) {
  Profile p{.name = "slapd", .directories = {"openldap:/run/slapd"}};
  if (any_begins(args, {"-V", "-T"})) return p;
  if (!any_begins(args, {"-d"})) p.args = {"-d", "0"};
  if (geteuid() == 0 && !any_begins(args, {"-u"}) && getpwnam("openldap") != nullptr) {
    for (const char* word : {"-u", "openldap", "-g", "openldap"}) p.args.emplace_back(word);
  }
  return p;
}

}  // namespace crane::setup
