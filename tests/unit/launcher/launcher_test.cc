// SPDX-License-Identifier: Apache-2.0
// The parts of crane-run that need no group: command line, program check, profiles, directories.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dmt/layout.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/options.h"
#include "runtime/launcher/run/hosts.h"
#include "runtime/setup/node_fields.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/program.h"

using namespace crane::launcher;
using namespace crane::setup;
using crane::Done;
using crane::Outcome;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/crane-launcher-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
  std::string file(const std::string& name, const std::string& text, fs::perms mode) const {
    std::ofstream(path + "/" + name) << text;
    fs::permissions(path + "/" + name, mode);
    return path + "/" + name;
  }
};

constexpr auto kProgramMode = fs::perms(0755);

Parsed parse(std::vector<const char*> words, Options& options, Outcome& problem) {
  words.insert(words.begin(), "crane-run");
  return parse_options(static_cast<int>(words.size()), words.data(), options, problem);
}

std::string unique_name(const char* what) {
  return std::string("test-") + what + "-" + std::to_string(getpid());
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("options: everything after -- belongs to the server", "[launcher]") {
  Options o;
  Outcome p = Done{};
  REQUIRE(parse({"-n", "5", "--publish", "8080:80", "--publish", "443", "--mode", "parallel", "--",
                 "apache2", "-n", "7", "--", "-v"},
                o, p) == Parsed::kRun);
  CHECK(o.replicas == 5);
  CHECK(o.mode == "parallel");
  REQUIRE(o.publish.size() == 2);
  CHECK(o.publish[0] == crane::setup::Published{8080, 80});
  CHECK(o.publish[1] == crane::setup::Published{443, 443});
  CHECK(o.program == std::vector<std::string>{"apache2", "-n", "7", "--", "-v"});
  CHECK(o.name == "apache2");
  CHECK(o.container);
  CHECK(Options{}.mode == "serial");
  CHECK_FALSE(o.verbose);
}

TEST_CASE("options: wrong options have different statuses", "[launcher]") {
  struct Row {
    std::vector<const char*> words;
    Status status;
  };
  const Row rows[] = {
      {{"-n", "2", "--", "true"}, Status::kReplicas},
      {{"-n", "0", "--", "true"}, Status::kReplicas},
      {{"-n", "-1", "--", "true"}, Status::kReplicas},
      {{"-n", "11", "--", "true"}, Status::kReplicas},
      {{"-n", "many", "--", "true"}, Status::kUsage},
      {{}, Status::kUsage},
      {{"--"}, Status::kUsage},
      {{"--publish", "80:", "--", "true"}, Status::kUsage},
      {{"--publish", "99999", "--", "true"}, Status::kUsage},
      {{"--publish", "80", "--publish", "8080:80", "--", "true"}, Status::kUsage},
      {{"--publish", "80", "--publish", "80:8080", "--", "true"}, Status::kUsage},
      {{"--mode", "fast", "--", "true"}, Status::kUsage},
      {{"--name", "a/b", "--", "true"}, Status::kUsage},
      {{"--no-such-option", "--", "true"}, Status::kUsage},
  };
  for (const auto& row : rows) {
    Options o;
    Outcome p = Done{};
    CAPTURE(row.words.size(), row.words.empty() ? "" : row.words[0]);
    CHECK(parse(row.words, o, p) == Parsed::kProblem);
    CHECK(status_of(p) == row.status);
    CHECK(p.error().text.find("; ") != std::string::npos);  // it contains the remedy
  }
}

TEST_CASE("options: checkpoints are automatic where they help", "[launcher]") {
  struct Row {
    std::vector<const char*> words;
    std::uint32_t every_s, log_mb;
  };
  const Row rows[] = {
      {{"--", "true"}, 60, 64},
      {{"--checkpoint-every", "5", "--", "true"}, 5, 0},  // only by the clock
      {{"--checkpoint-every", "0", "--", "true"}, 0, 0},  // off
      {{"--checkpoint-log", "7", "--", "true"}, 60, 7},
      {{"--checkpoint-every", "0", "--checkpoint-log", "7", "--", "true"}, 0, 7},
      {{"-n", "1", "--", "true"}, 0, 0},  // its clients would wait, and no other replica needs one
      {{"-n", "1", "--checkpoint-every", "9", "--", "true"}, 9, 0},
      {{"--no-container", "--", "true"}, 0, 0},
      {{"--no-container", "--checkpoint-every", "0", "--", "true"}, 0, 0},
  };
  for (const auto& row : rows) {
    Options o;
    Outcome p = Done{};
    CAPTURE(row.words[0], row.every_s, row.log_mb);
    REQUIRE(parse(row.words, o, p) == Parsed::kRun);
    CHECK(o.checkpoint_every_s == row.every_s);
    CHECK(o.checkpoint_log_mb == row.log_mb);
  }
  for (const char* option : {"--checkpoint-every", "--checkpoint-log"}) {
    Options o;
    Outcome p = Done{};
    CHECK(parse({"--no-container", option, "5", "--", "true"}, o, p) == Parsed::kProblem);
    CHECK(status_of(p) == Status::kUsage);
    CHECK(p.error().text.find(option) != std::string::npos);
  }
}

TEST_CASE("options: the lag limit of the leader's server", "[launcher]") {
  Options o;
  Outcome p = Done{};
  REQUIRE(parse({"--", "true"}, o, p) == Parsed::kRun);
  CHECK(o.lag_ms == 250);
  REQUIRE(parse({"--lag", "0", "--", "true"}, o, p) == Parsed::kRun);
  CHECK(o.lag_ms == 0);
  CHECK(parse({"--lag", "2001", "--", "true"}, o, p) == Parsed::kProblem);
}

TEST_CASE("options: a server is restarted for its files only with permission", "[launcher]") {
  Options o;
  Outcome p = Done{};
  REQUIRE(parse({"--", "true"}, o, p) == Parsed::kRun);
  CHECK_FALSE(o.restart_checkpoints);
  REQUIRE(parse({"--restart-checkpoints", "--restart-every", "900", "--", "true"}, o, p) ==
          Parsed::kRun);
  CHECK(o.restart_checkpoints);
  CHECK(o.restart_every_s == 900);
  for (const std::vector<const char*>& words :
       {std::vector{"--restart-every", "900", "--", "true"},
        std::vector{"--no-container", "--restart-checkpoints", "--", "true"}}) {
    Options wrong;
    CHECK(parse(words, wrong, p) == Parsed::kProblem);
  }
}

TEST_CASE("options: nodes and hosts get the options that were typed", "[launcher]") {
  Options o;
  Outcome p = Done{};
  REQUIRE(parse({"--lag", "7", "--n-clock", "50", "--restart-checkpoints", "--restart-every", "9",
                 "--checkpoint-every", "5", "--admission", "classic", "--record", "here",
                 "--strict", "--", "true"},
                o, p) == Parsed::kRun);
  const Profile profile{.name = "x", .quantum = 5, .spins = true};
  const ProgramPaths parts;
  const crane::supervise::Plan plan;
  const std::string dir = "/d", id = "1", secret;
  const auto json = nlohmann::json::parse(
      node_configuration({o, profile, parts, dir, dir, dir, 0, id, secret, plan}));
  NodeOptions parsed, wanted = o;
  REQUIRE(read_options(json, parsed) == nullptr);
  wanted.quantum = 5;  // the profile's
  wanted.spins = true;
  wanted.record = fs::absolute("here").string();
  const NodeOptions sent = group_file_of(o);
  for (const OptionRow& row : option_rows()) {
    CAPTURE(row.key);
    CHECK(json.contains(row.key));
    CHECK(std::visit([&](auto field) { return parsed.*field == wanted.*field; }, row.field));
    CHECK(std::visit([&](auto field) { return sent.*field == o.*field; }, row.field));
  }
}

TEST_CASE("options: several hosts", "[launcher]") {
  Options options;
  Outcome problem = Done{};
  const std::vector<const char*> good{"--hosts",
                                      "a=10.0.0.1,b=10.0.0.2,c=10.0.0.3",
                                      "--fabric",
                                      "verbs",
                                      "--publish",
                                      "8080:80",
                                      "--virtual-ip",
                                      "192.0.2.9/24",
                                      "--interface",
                                      "eth0",
                                      "--",
                                      "apache2",
                                      "-X"};
  REQUIRE(parse(good, options, problem) == Parsed::kRun);
  CHECK((options.replicas == 3 && options.remote.hosts[2].address == "10.0.0.3"));
  const GroupFile sent = group_file_of(options);
  GroupFile read;
  REQUIRE(parse_group_file(to_toml(sent), "sent", read).ok());
  CHECK((read.fabric == "verbs" && read.replicas.size() == 3 && read.publish == sent.publish));
  CHECK((read.command == options.program && read.container && read.forward));
  CHECK((read.virtual_ip == "192.0.2.9/24" && read.interface == "eth0"));
  const auto status_with = [&problem](std::vector<const char*> words) {
    Options fresh;
    return parse(std::move(words), fresh, problem) == Parsed::kProblem ? status_of(problem)
                                                                       : Status::kOk;
  };
  CHECK(status_with({"--fabric", "tcp", "--", "apache2"}) == Status::kUsage);
  CHECK(status_with({"--hosts", "a,b", "--", "apache2"}) == Status::kReplicas);
  CHECK(status_with({"--hosts", "a,b,c", "-n", "5", "--", "apache2"}) == Status::kReplicas);
  CHECK(status_with({"--hosts", "a,b,c", "--fabric", "shm", "--", "apache2"}) == Status::kUsage);
  CHECK(status_with({"--hosts", "a,b,c", "--perturb", "1", "--", "apache2"}) == Status::kUsage);
  CHECK(status_with({"--hosts", "a,b,c", "--durability", "disk", "--", "apache2"}) ==
        Status::kUsage);
  CHECK(status_with({"--hosts", "a,b,c", "--dir", "here", "--", "apache2"}) == Status::kUsage);
  CHECK(status_with({"--hosts", "a,b,c", "--record", "here", "--", "x"}) == Status::kUsage);
  CHECK(status_with({"--hosts", "a,b,c", "--virtual-ip", "192.0.2.9/24", "--", "x"}) ==
        Status::kUsage);
  for (const char* wrong : {"192.0.2.9", "192.0.2.9/0", "192.0.2.9/33", "fd00::9/64", "192.0/8"}) {
    CAPTURE(wrong);
    CHECK(status_with({"--hosts", "a,b,c", "--virtual-ip", wrong, "--interface", "e", "--", "x"}) ==
          Status::kUsage);
    CHECK(problem.error().text.find(wrong) != std::string::npos);
  }
  CHECK(status_with({"--hosts", "a,b,c", "--stop"}) == Status::kUsage);
  CHECK(status_with({"--hosts", "a,b,c", "--name", "g", "--stop"}) == Status::kOk);
}

TEST_CASE("program: it is found as a shell finds it, also in sbin", "[launcher]") {
  std::string path;
  CHECK(find_program("sh", path).ok());
  CHECK(path[0] == '/');
  setenv("PATH", "/usr/bin:/bin", 1);
  CHECK(find_program("mkswap", path).ok());
  CHECK(status_of(find_program("no-such-program-at-all", path)) == Status::kProgramMissing);
  CHECK(status_of(find_program("/no/such/program", path)) == Status::kProgramMissing);
  Scratch scratch;
  const auto file = scratch.file("server", "text", fs::perms(0644));
  CHECK(status_of(find_program(file, path)) == Status::kNotExecutable);
  const Outcome directory = find_program("/usr", path);
  CHECK(status_of(directory) == Status::kNotExecutable);
  CHECK(directory.error().text.find("it is a directory") != std::string::npos);
}

TEST_CASE("program: a program that cannot be preloaded is refused before it runs", "[launcher]") {
  Scratch scratch;
  std::string shell;
  REQUIRE(find_program("sh", shell).ok());
  CHECK(check_program(shell).ok());
  CHECK(check_program(scratch.file("script", "#!/bin/sh -e\nexit 0\n", kProgramMode)).ok());
  CHECK(check_program(scratch.file("env", "#!/usr/bin/env python3\n", kProgramMode)).ok());
  CHECK(status_of(check_program(scratch.file("text", "just text\n", kProgramMode))) ==
        Status::kUnsuitable);
  const std::string source = scratch.file("s.c", "int main(void) { return 0; }\n", kProgramMode);
  const std::string made = scratch.path + "/static";
  if (std::system(("gcc -static -o " + made + " " + source + " 2>/dev/null").c_str()) == 0) {
    const auto refused = check_program(made);
    CHECK(status_of(refused) == Status::kUnsuitable);
    CHECK(refused.error().text.find("statically linked") != std::string::npos);
  }
  // A program for another machine: the header of a real one with its machine field changed.
  fs::copy_file(shell, scratch.path + "/foreign");
  std::fstream foreign(scratch.path + "/foreign", std::ios::in | std::ios::out | std::ios::binary);
  foreign.seekp(18);
  foreign.put(static_cast<char>(183));  // EM_AARCH64
  foreign.close();
  CHECK(status_of(check_program(scratch.path + "/foreign")) == Status::kUnsuitable);
  if (geteuid() == 0) {
    fs::copy_file(shell, scratch.path + "/setuid");
    REQUIRE(chown((scratch.path + "/setuid").c_str(), 65534, 65534) == 0);
    REQUIRE(chmod((scratch.path + "/setuid").c_str(), 04755) == 0);
    const auto refused = check_program(scratch.path + "/setuid");
    CHECK(status_of(refused) == Status::kUnsuitable);
    CHECK(refused.error().text.find("set-user-id") != std::string::npos);
  }
}

TEST_CASE("profile: stock servers stay in the foreground without an option", "[launcher]") {
  Profile p;
  REQUIRE(find_profile("", "/usr/sbin/apache2", {}, p));
  CHECK(p.name == "apache2");
  CHECK(contains(p.args, "FOREGROUND"));
  REQUIRE(find_profile("", "/usr/sbin/apache2", {"-DFOREGROUND"}, p));
  CHECK(p.args.empty());
  REQUIRE(find_profile("", "/usr/bin/redis-server", {"--port", "7000"}, p));
  CHECK(p.args == std::vector<std::string>{"--daemonize", "no"});
  CHECK_FALSE(p.spins);
  REQUIRE(find_profile("", "/usr/bin/redis-server", {"--io-threads", "4"}, p));
  CHECK(p.spins);
  REQUIRE(find_profile("", "/usr/bin/memcached", {"-u", "daemon"}, p));
  CHECK(p.args.empty());
  REQUIRE(find_profile("", "/usr/sbin/mariadbd", {"--user=somebody"}, p));
  CHECK(p.args.empty());
  REQUIRE(find_profile("", "/usr/sbin/slapd", {"-u", "somebody"}, p));
  CHECK(p.args == std::vector<std::string>{"-d", "0"});
  REQUIRE(find_profile("", "/usr/sbin/slapd", {"-VV"}, p));
  CHECK(p.args.empty());
  REQUIRE(find_profile("", "/usr/sbin/clamd", {"-c", "clamd.conf"}, p));
  CHECK(p.args == std::vector<std::string>{"--foreground=true"});
  REQUIRE(find_profile("", "/usr/sbin/clamd", {"-F"}, p));
  CHECK(p.args.empty());
  REQUIRE(find_profile("", "/usr/bin/anything", {}, p));
  CHECK(p.name == "default");
  REQUIRE(find_profile("redis-server", "/usr/bin/anything", {}, p));
  CHECK(p.name == "redis-server");
  CHECK_FALSE(find_profile("no-such", "/usr/bin/anything", {}, p));
}

TEST_CASE("profile: nginx stays in the foreground, and keeps the user's directives", "[launcher]") {
  Scratch scratch;
  scratch.file("off.conf", "user nobody;\n daemon off;\n", fs::perms(0644));
  scratch.file("on.conf", "# no daemon here\nuser nobody;\n", fs::perms(0644));
  scratch.file("includes.conf", "user nobody;\ninclude\tof*.conf;\n", fs::perms(0644));
  const std::string off = scratch.path + "/off.conf", on = scratch.path + "/on.conf",
                    includes = scratch.path + "/includes.conf";
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> rows = {
      {{"-c", on}, {"-g", "daemon off;"}},
      {{"-c", off}, {}},
      {{"-c", includes}, {}},
      {{"-c", scratch.path + "/absent.conf"}, {"-g", "daemon off;"}},
      {{"-p", scratch.path, "-c", "off.conf"}, {}},  // below the prefix
      {{"-p" + scratch.path + "/", "-coff.conf"}, {}},
      {{"-p", scratch.path, "-c", off}, {}},
      {{"-p", scratch.path, "-c", "absent.conf"}, {"-g", "daemon off;"}},
      {{"-c", on, "-g", "pid /x;"}, {"-g", "pid /x; daemon off;"}},
      {{"-c", on, "-g", "pid /x; daemon off;"}, {}},
      {{"-c", on, "-t"}, {}}};
  for (const auto& [given, added] : rows) {
    Profile p;
    REQUIRE(find_profile("", "/usr/sbin/nginx", given, p));
    CHECK(p.args == added);
  }
}

TEST_CASE("options: soft barrier points are parsed, and wrong ones refused", "[launcher]") {
  Options o, wrong;
  Outcome p = Done{};
  REQUIRE(parse({"--soft-barrier", "f:8:5000", "--soft-barrier", "g:2:0", "--", "true"}, o, p) ==
          Parsed::kRun);
  CHECK(o.soft_barriers == std::vector<std::string>{"f:8:5000", "g:2:0"});
  CHECK(o.program == std::vector<std::string>{"true"});
  REQUIRE(parse({"--soft-barrier", "f:8", "--", "true"}, wrong, p) == Parsed::kProblem);
  CHECK(status_of(p) == Status::kUsage);
  CHECK(p.error().text.find("f:8") != std::string::npos);
}

TEST_CASE("profile: PHP's entry function is a soft barrier point of servers that run PHP",
          "[launcher]") {
  Profile p;
  for (const char* program : {"apache2", "php-fpm8.2", "civetweb"}) {
    CAPTURE(program);
    REQUIRE(find_profile("", program, {"-v"}, p));
    REQUIRE(p.soft_barriers.size() == 1);
    CHECK(p.soft_barriers[0].function == "php_execute_script");
  }
  REQUIRE(find_profile("", "redis-server", {}, p));
  CHECK(p.soft_barriers.empty());
}

TEST_CASE("profile: php-fpm stays in the foreground", "[launcher]") {
  Profile p;
  REQUIRE(find_profile("", "/usr/sbin/php-fpm8.2", {}, p));
  CHECK(p.args == std::vector<std::string>{"--nodaemonize"});
  REQUIRE(find_profile("", "/usr/sbin/php-fpm8.2", {"-F"}, p));
  CHECK(p.args.empty());
  REQUIRE(find_profile("", "/usr/bin/civetweb", {}, p));
  CHECK(p.name == "civetweb");
}

TEST_CASE("profile: a server that refuses to be root starts as another user", "[launcher]") {
  Profile p;
  REQUIRE(find_profile("", "/usr/lib/postgresql/15/bin/postgres", {}, p));
  CHECK(p.name == "postgres");
  CHECK(p.user == "postgres");
  p.user = "mail";
  std::string program = "/bin/server";
  std::vector<std::string> args{"-D", "data"};
  become_user(p, program, args);
  if (geteuid() != 0) {
    CHECK(program == "/bin/server");
    return;
  }
  CHECK(program == "/usr/bin/setpriv");
  CHECK(args == std::vector<std::string>{"--reuid=mail", "--regid=mail", "--init-groups", "--",
                                         "/bin/server", "-D", "data"});
  p.user = "no-such-user";
  program = "/bin/server";
  become_user(p, program, args);
  CHECK(program == "/bin/server");
}

TEST_CASE("profile: apache2 gets the values of envvars, with links resolved", "[launcher]") {
  Scratch scratch;
  scratch.file("envvars",
               "unset HOME\nexport APACHE_RUN_USER=somebody\n" +
                   ("APACHE_LOG_DIR=" + scratch.path) + "/link/log\n",
               fs::perms(0644));
  fs::create_directory(scratch.path + "/real");
  fs::create_symlink(scratch.path + "/real", scratch.path + "/link");
  setenv("APACHE_CONFDIR", scratch.path.c_str(), 1);
  Profile p;
  REQUIRE(find_profile("apache2", "/usr/sbin/apache2", {}, p));
  unsetenv("APACHE_CONFDIR");
  CHECK(contains(p.environment, "APACHE_RUN_USER=somebody"));
  CHECK(p.directories == std::vector<std::string>{scratch.path + "/real/log"});
}

TEST_CASE("directories: locked while the group runs, removed afterwards", "[launcher]") {
  Scratch scratch;
  Options o;
  o.name = unique_name("dirs");
  o.dir = scratch.path + "/deep/er";
  o.replicas = 3;
  const std::string dir = o.dir + "/" + o.name, shm = "/dev/shm/crane." + o.name;
  {
    GroupDirectories first;
    REQUIRE(first.create(o.place()).ok());
    CHECK(fs::is_directory(dir + "/r2"));
    CHECK(fs::is_directory(shm + "/r2"));
    CHECK((fs::status(shm).permissions() & fs::perms(0777)) == fs::perms(0700));
    GroupDirectories second;
    CHECK(status_of(second.create(o.place())) == Status::kGroupExists);
    Options elsewhere = o;  // the name is in use on the whole machine
    elsewhere.dir = scratch.path + "/other";
    GroupDirectories third;
    CHECK(status_of(third.create(elsewhere.place())) == Status::kGroupExists);
  }
  CHECK_FALSE(fs::exists(dir));
  CHECK_FALSE(fs::exists(shm));
}

TEST_CASE("directories: remains of a killed group are removed, unless of another version",
          "[launcher]") {
  Scratch scratch;
  Options o;
  o.name = unique_name("stale");
  o.dir = scratch.path;
  o.replicas = 1;
  const std::string shm = "/dev/shm/crane." + o.name;
  fs::create_directories(shm + "/r0");
  const auto leave = [&](std::uint64_t magic, std::uint32_t version) {
    std::ofstream segment(shm + "/r0/segment", std::ios::binary);
    segment.write(reinterpret_cast<const char*>(&magic), sizeof magic);
    segment.write(reinterpret_cast<const char*>(&version), sizeof version);
    segment.write("\0\0\0\0\0\0\0\0", 8);
  };
  leave(crane::dmt::kSegmentMagic, crane::dmt::kLayoutVersion + 1);
  {
    GroupDirectories d;
    const auto refused = d.create(o.place());
    CHECK(status_of(refused) == Status::kSharedVersion);
    CHECK(refused.error().text.find(shm) != std::string::npos);
  }
  CHECK(fs::exists(shm + "/r0/segment"));
  leave(crane::dmt::kSegmentMagic, crane::dmt::kLayoutVersion);
  {
    GroupDirectories d;
    CHECK(d.create(o.place()).ok());
    CHECK_FALSE(fs::exists(shm + "/r0/segment"));
  }
  CHECK_FALSE(fs::exists(shm));
}

TEST_CASE("directories: clients of a killed group wait for one that continues its log",
          "[launcher][KEEPER-1]") {
  Scratch scratch;
  Options o;
  o.name = unique_name("clients");
  o.dir = scratch.path;
  const bool lasts = GENERATE(false, true);
  if (lasts) o.durability = "disk";
  const std::string shm = shared_directory(o.name), connections = shm + "/" + kConnections;
  fs::create_directories(shm);
  std::ofstream{connections}.put('x');
  {
    GroupDirectories next;
    REQUIRE(next.create(o.place()).ok());
    CHECK(fs::exists(connections) == lasts);
  }
  CHECK_FALSE(fs::exists(connections));
}

TEST_CASE("directories: an agent removes its own, but never those of another node", "[launcher]") {
  Scratch scratch;
  using Removal = GroupDirectories::Removal;
  const std::string name = unique_name("agent"), shm = "/dev/shm/crane." + name;
  const std::string group = scratch.path + "/" + name;
  const GroupPlace place{name, scratch.path, 3, ""};
  {
    GroupDirectories agent, twin;
    REQUIRE(agent.create_host(place, 1).ok());
    CHECK(status_of(twin.create_host(place, 1)) == Status::kGroupExists);
    CHECK(fs::status(agent.host_dir()).permissions() == fs::perms(0700));
    GroupDirectories node;  // a node that the agent did not start
    REQUIRE(node.create_replica(place, 1).ok());
    agent.remove_host(Removal::kAll);
    CHECK((fs::exists(group + "/r1") && fs::exists(shm + "/r1") && !fs::exists(group + "/h1")));
    CHECK(status_of(twin.create_host(place, 1)) == Status::kGroupExists);
    CHECK(twin.create_host(place, 2).ok());
  }
  GroupDirectories last;
  REQUIRE(last.create_host(place, 1).ok());
  last.remove_host(Removal::kAllButLogs);
  CHECK((fs::exists(group + "/r1") && !fs::exists(shm + "/r1")));
  GroupDirectories again;
  REQUIRE(again.create_host(place, 1).ok());
  again.remove_host(Removal::kAll);
  CHECK(!fs::exists(group + "/r1"));
  fs::remove_all(shm);
}

TEST_CASE("directories: notes of a node for its next process survive", "[launcher]") {
  Scratch scratch;
  const std::string name = unique_name("notes");
  const GroupPlace place{name, scratch.path, 3, ""};
  const std::string own = scratch.path + "/" + name + "/r1/";
  {
    GroupDirectories node;
    REQUIRE(node.create_replica(place, 1).ok());
    for (const char* note : {kEarlyPoints, kLogGone, "other"}) std::ofstream(own + note) << "1";
  }
  GroupDirectories next;
  REQUIRE(next.create_replica(place, 1).ok());
  CHECK(fs::exists(own + kEarlyPoints));
  CHECK(fs::exists(own + kLogGone));
  CHECK_FALSE(fs::exists(own + "other"));
  fs::remove_all("/dev/shm/crane." + name);
}

TEST_CASE("directories: an unusable --dir is reported", "[launcher]") {
  Scratch scratch;
  Options o;
  o.name = unique_name("bad");
  o.dir = scratch.file("file", "", fs::perms(0644));
  GroupDirectories d;
  CHECK(status_of(d.create(o.place())) == Status::kDirectory);
  CHECK_FALSE(fs::exists("/dev/shm/crane." + o.name));
}
