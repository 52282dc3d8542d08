// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/profile.h"

#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <initializer_list>

#include "dmt/base/read_text.h"
#include "runtime/setup/run_directories.h"

namespace crane::setup {
namespace {

using Words = std::vector<std::string>;  // the user's arguments for the program

// Whether `args` contains one of `words`.
bool has(const Words& args, std::initializer_list<const char*> words) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) { return arg == w; });
  });
}

// Whether one of `args` begins with one of `starts`.
bool any_begins(const Words& args, std::initializer_list<const char*> starts) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(starts.begin(), starts.end(),
                       [&](const char* start) { return arg.rfind(start, 0) == 0; });
  });
}

// The function with which PHP begins to run a page, in any program.
std::vector<SoftBarrier> php_pages() {
  return {{.function = "php_execute_script", .count = 8, .timeout_us = 5000}};
}

std::string value_of(const Words& environment, const std::string& name) {
  for (const auto& variable : environment) {
    if (variable.compare(0, name.size() + 1, name + "=") == 0) {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
}

// The words of each nginx directive, without comments; blocks are not distinguished.
std::vector<Words> statements_of(const std::string& text) {
  std::vector<Words> statements(1);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) statements.back().push_back(word);
    word.clear();
  };
  bool comment = false;
  for (const char c : text) {
    comment = c != '\n' && (comment || c == '#');
    if (comment) continue;
    const bool ends = c == ';' || c == '{' || c == '}';
    if (!ends && std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
      continue;
    }
    end_word();
    if (ends && !statements.back().empty()) statements.emplace_back();
  }
  end_word();
  return statements;
}

bool sets_daemon(const std::string& directives) {
  const auto all = statements_of(directives);
  return std::any_of(all.begin(), all.end(),
                     [](const Words& s) { return s.size() > 1 && s[0] == "daemon"; });
}

// Debian's apache2 needs the variables that apache2ctl reads for it.  It goes to the background
// unless an argument prevents that: "-D FOREGROUND", "-DFOREGROUND", "-X" (one process), or a query
// like "-v".  Serial mode, because the children write their state to shared memory without a call,
// and the parent reads it to decide how many children there are.  "computation" is detached because
// CGI programs share nothing, so no other thread needs to wait for them.
Profile apache2(const Words& args) {
  Profile p{.name = "apache2", .detach = {"computation"}, .soft_barriers = php_pages()};
  const char* confdir = getenv("APACHE_CONFDIR");
  const std::string directory = confdir != nullptr ? confdir : "/etc/apache2";
  for (const auto& variable : environment_of_script(directory + "/envvars")) {
    if (variable.compare(0, 7, "APACHE_") == 0 || variable.compare(0, 5, "LANG=") == 0) {
      p.environment.push_back(variable);
    }
  }
  for (const char* name : {"APACHE_RUN_DIR", "APACHE_LOCK_DIR", "APACHE_LOG_DIR"}) {
    const std::string path = value_of(p.environment, name);
    if (path.empty()) continue;
    std::error_code unresolved;
    const auto real = std::filesystem::weakly_canonical(path, unresolved);
    p.directories.push_back(unresolved ? path : real.string());
    // The directory for the socket of mod_cgid's daemon; apache2ctl makes it, too.
    if (std::string(name) == "APACHE_RUN_DIR") {
      p.directories.push_back(p.directories.back() + "/socks");
    }
  }
  if (!has(args, {"-DFOREGROUND", "FOREGROUND", "-X", "-v", "-V", "-t", "-l", "-L", "-S"})) {
    p.args = {"-D", "FOREGROUND"};
  }
  return p;
}

// Debian's redis.conf has "daemonize yes"; the last argument wins.
Profile redis_server(const Words& args) {
  Profile p{.name = "redis-server"};
  if (!has(args, {"--daemonize", "-v", "--version", "-h", "--help", "--test-memory"})) {
    p.args = {"--daemonize", "no"};
  }
  // The main thread and the I/O threads wait for each other in loops.
  p.spins = has(args, {"--io-threads"});
  return p;
}

// memcached refuses to run as root without a user to switch to.
Profile memcached(const Words& args) {
  Profile p{.name = "memcached"};
  if (geteuid() == 0 && !any_begins(args, {"-u", "--user"})) {
    p.args = {"-u", getpwnam("memcache") != nullptr ? "memcache" : "nobody"};
  }
  return p;
}

// The argument of nginx's option, in the same word or in the next one; "" if the option is absent.
std::string nginx_value(const Words& args, const std::string& option) {
  for (auto word = args.begin(); word != args.end(); ++word) {
    if (!word->starts_with(option)) continue;
    if (word->size() > option.size()) return word->substr(option.size());
    return word + 1 == args.end() ? "" : *(word + 1);
  }
  return {};
}

// nginx's configuration file; default: Debian's.  The file of -c is relative to the prefix of -p.
std::string nginx_file(const Words& args) {
  const std::string file = nginx_value(args, "-c"), prefix = nginx_value(args, "-p");
  if (file.empty()) return "/etc/nginx/nginx.conf";
  const std::filesystem::path below = prefix.empty() ? "/usr/share/nginx" : prefix;
  return below / file;
}

constexpr int kIncludesMax = 8;  // depth of nested includes

// The text that nginx reads: the file and all files that it includes.
std::string nginx_text(const std::string& path, int depth = 0) {
  if (depth > kIncludesMax) return {};
  std::string all = text_of_file(path);
  for (const Words& statement : statements_of(all)) {
    if (statement.size() < 2 || statement[0] != "include") continue;
    const std::filesystem::path named(statement[1]);
    const auto whole =
        named.is_absolute() ? named : std::filesystem::path(path).parent_path() / named;
    glob_t found{};
    if (glob(whole.c_str(), GLOB_NOMAGIC, nullptr, &found) == 0) {
      for (std::size_t n = 0; n < found.gl_pathc; ++n) {
        all += "\n" + nginx_text(found.gl_pathv[n], depth + 1);
      }
    }
    globfree(&found);
  }
  return all;
}

// nginx goes to the background unless a directive prevents that.  Only the last -g counts.
Profile nginx(const Words& args) {
  Profile p{.name = "nginx"};
  std::string nginx_directives = nginx_value(args, "-g");
  if (!nginx_directives.empty()) nginx_directives += " ";
  const std::string text = nginx_text(nginx_file(args));
  const bool configured = sets_daemon(nginx_directives) || sets_daemon(text);
  if (!configured && !has(args, {"-v", "-V", "-t", "-T", "-h", "-?", "-s"})) {
    p.args = {"-g", nginx_directives + "daemon off;"};
  }
  return p;
}

// The master of php-fpm's pools; Debian's php-fpm.conf lets it go to the background.
Profile php_fpm(const Words& args) {
  Profile p{.name = "php-fpm", .directories = {"/run/php"}, .soft_barriers = php_pages()};
  if (!has(args, {"-F", "--nodaemonize", "-D", "--daemonize", "-t", "--test", "-tt", "-v", "-i",
                  "-h", "-m"})) {
    p.args = {"--nodaemonize"};
  }
  return p;
}

// civetweb stays in the foreground without an option.
Profile civetweb(const Words&) {
  return Profile{.name = "civetweb", .detach = {"computation"}, .soft_barriers = php_pages()};
}

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

Profile plain(const Words&) { return Profile{.name = "default"}; }

struct Row {
  const char* name;
  std::array<const char*, 3> programs;
  Profile (*make)(const Words& args);
};

constexpr Row kProfiles[] = {
    {"apache2", {"apache2", "httpd", ""}, apache2},
    {"redis-server", {"redis-server", "redis", "valkey-server"}, redis_server},
    {"memcached", {"memcached", "", ""}, memcached},
    {"nginx", {"nginx", "", ""}, nginx},
    {"php-fpm", {"php-fpm8.2", "php-fpm", "php-fpm8.4"}, php_fpm},
    {"civetweb", {"civetweb", "", ""}, civetweb},
    {"slapd", {"slapd", "", ""}, slapd},
    {"postgres", {"postgres", "postmaster", ""}, postgres},
    {"mariadbd", {"mariadbd", "mysqld", ""}, mariadbd},
    {"clamd", {"clamd", "", ""}, clamd},
    {"gerbera", {"gerbera", "", ""}, gerbera},
    {"default", {"", "", ""}, plain},
};

}  // namespace

std::vector<std::string> detach_names() { return {"fsync", "computation", "any-computation"}; }

NodeOptions with_profile(NodeOptions options, const Profile& profile) {
  if (options.quantum == 0) options.quantum = profile.quantum;
  options.spins = options.spins || profile.spins;
  return options;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& row : kProfiles) names.emplace_back(row.name);
  return names;
}

bool find_profile(const std::string& name, const std::string& program,
                  const std::vector<std::string>& args, Profile& profile) {
  const std::string base = std::filesystem::path(program).filename().string();
  for (const auto& row : kProfiles) {
    const bool fits = std::any_of(row.programs.begin(), row.programs.end(),
                                  [&](const char* p) { return base == p; });
    if (name == row.name || (name.empty() && (fits || row.make == plain))) {
      profile = row.make(args);
      for (std::string& directory : run_directories_of(program)) {
        profile.directories.push_back(std::move(directory));
      }
      return true;
    }
  }
  return false;
}

void become_user(const Profile& profile, std::string& program, std::vector<std::string>& args) {
  if (profile.user.empty() || geteuid() != 0 || getpwnam(profile.user.c_str()) == nullptr) return;
  std::vector<std::string> words{"--reuid=" + profile.user, "--regid=" + profile.user,
                                 "--init-groups", "--", program};
  words.insert(words.end(), args.begin(), args.end());
  args = std::move(words);
  program = "/usr/bin/setpriv";
}

std::vector<std::string> environment_of_script(const std::string& script) {
  std::vector<std::string> found;
  int ends[2];
  if (access(script.c_str(), R_OK) != 0 || pipe2(ends, O_CLOEXEC) != 0) return found;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", "set -a; . \"$0\" >/dev/null 2>&1; env -0", script.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    found.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

}  // namespace crane::setup
