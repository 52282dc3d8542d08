// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/profile_databases.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>

namespace crane::setup {
namespace {

using Words = std::vector<std::string>;

bool has(const Words& args, std::initializer_list<const char*> words) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) { return arg == w; });
  });
}

bool any_begins(const Words& args, const std::string& start) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return arg.compare(0, start.size(), start) == 0;
  });
}

}  // namespace

// It refuses to run as root without a user to become.
Profile mariadbd(const Words& args) {
  Profile p{.name = "mariadbd", .directories = {"mysql:/run/mysqld"}};
  const bool asked = has(args, {"-V", "--version", "-?", "-I", "--help"});
  if (geteuid() == 0 && !asked && !any_begins(args, "-u") && !any_begins(args, "--user")) {
    p.args = {"--user=mysql"};
  }
  return p;
}

// It refuses to run as root. Debian's own pg_ctlcluster becomes the owner of the data, postgres.
Profile postgres(const Words&) {
  return Profile{
      .name = "postgres", .directories = {"postgres:/run/postgresql"}, .user = "postgres"};
}

// It stays in the foreground only with a debug level; Debian's script gives it user and group.
Profile slapd(const Words& args) {
  Profile p{.name = "slapd", .directories = {"openldap:/run/slapd"}};
  if (any_begins(args, "-V") || any_begins(args, "-T")) return p;
  if (!any_begins(args, "-d")) p.args = {"-d", "0"};
  if (geteuid() == 0 && !any_begins(args, "-u") && getpwnam("openldap") != nullptr) {
    for (const char* word : {"-u", "openldap", "-g", "openldap"}) p.args.emplace_back(word);
  }
  return p;
}

}  // namespace crane::setup
