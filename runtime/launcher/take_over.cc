// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/take_over.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dmt/base/read_text.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/run_files.h"
#include "runtime/setup/version.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kAnswerMs = 1'000;

std::string file_of(const std::string& directory) { return directory + "/running.json"; }

// Builds with the same versions can continue each other's group, including its living nodes.
std::string versions() {
  return setup::agreed_versions_text() + ", control " + std::to_string(control::kVersion);
}

// Words that do not change the group.
bool is_about_this_run(const std::string& word) {
  return word == "-v" || word == "--verbose" || word == "--force-new-group" ||
         word == "--background";
}

std::vector<std::string> of_the_group(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  bool ours = true;
  for (const auto& word : words) {
    ours = ours && word != "--";
    if (!ours || !is_about_this_run(word)) kept.push_back(word);
  }
  return kept;
}

// Describes the first word that differs.
std::string first_difference(const std::vector<std::string>& before,
                             const std::vector<std::string>& now) {
  const auto [a, b] = std::mismatch(before.begin(), before.end(), now.begin(), now.end());
  if (b == now.end()) return "\"" + *a + "\" is missing now";
  return a == before.end() ? "\"" + *b + "\" is new" : "\"" + *b + "\" was \"" + *a + "\"";
}

bool answers_well(int fd) {
  pollfd there{fd, POLLIN, 0};
  char text[512];
  if (poll(&there, 1, kAnswerMs) <= 0) return false;
  const ssize_t got = recv(fd, text, sizeof text, MSG_DONTWAIT);
  const Json answer = got > 0 ? Json::parse(text, text + got, nullptr, false) : Json();
  return answer.is_object() && answer.value("ok", false);
}

}  // namespace

// to_json() and from_json(), which throws if a field is missing.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GroupRecord, words, environment, directory, build, log_id,
                                   secret)

GroupRecord new_record(const Options& options) {
  GroupRecord record;
  record.words = options.words;
  record.environment = environment_of_process();
  std::error_code ignored;
  record.directory = fs::current_path(ignored).string();
  record.build = versions();
  record.log_id = random_log_id();
  record.secret = random_secret();
  return record;
}

Outcome write_record(const std::string& directory, const GroupRecord& record) {
  return write_file(file_of(directory),
                    Json(record).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<GroupRecord> read_record(const std::string& directory) {
  std::ifstream in(file_of(directory));
  if (!in) return {};
  try {
    return Json::parse(rest_of(in)).get<GroupRecord>();
  } catch (const Json::exception&) {
    return {};
  }
}

void remove_record(const std::string& directory) { (void)unlink(file_of(directory).c_str()); }

std::string find_base(setup::GroupPlace place) {
  if (!place.dir.empty()) return place.dir;
  for (const bool lasts : {false, true}) {
    place.lasts = lasts;
    const std::string directory = directory_of(place);
    if (setup::is_held(directory) || read_record(directory)) {
      return fs::path(directory).parent_path().string();
    }
  }
  return {};
}

bool node_lives(const std::string& shm, int replica) {
  return setup::is_held(shm + "/consensus/r" + std::to_string(replica));
}

Remains look_for_remains(const setup::GroupPlace& place) {
  Remains found;
  const std::string directory = directory_of(place), shm = setup::shared_directory(place.name);
  std::error_code unseen;
  if (setup::is_held(directory) || !fs::exists(shm, unseen)) return found;
  found.record = read_record(directory);
  for (int replica = 0; found.record && replica < setup::kPlacesMost; ++replica) {
    found.living += node_lives(shm, replica);
  }
  return found;
}

namespace {

std::string stop_command(const Options& options) {
  return "crane-run --stop --name " + options.name +
         (options.dir.empty() ? "" : " --dir " + options.dir);
}

}  // namespace

Error refuse_to_give_up(const Options& options, int living) {
  return failure(Status::kGroupExists, "cannot start over", options.name,
                 std::to_string(living) + " of its nodes run",
                 "end it with " + stop_command(options));
}

int stop_supervised(const Options& options) {
  const std::string directory = directory_of(options.place());
  const CraneRun run = find_crane_run(directory);
  const std::string process = "crane-run (process " + std::to_string(run.pid) + ")";
  if (run.pid == 0) {
    print_message("no group " + options.name + " runs in " +
                  fs::path(directory).parent_path().string());
    return 0;
  }
  const CraneRunEnd end = end_crane_run(run, [&] {
    print_message("still waits: " + options.name + ": " + process + " ends the server; " +
                  directory + "/" + setup::kGroupLog + " has its messages");
  });
  if (end.refused != 0) {
    const Error p = failure(Status::kSystem, "cannot stop the group", options.name,
                            strerror(end.refused), "run it as the user who started the group");
    print_message(p.text);
    return p.exit_status;
  }
  if (!end.note) {
    const Error p = failure(Status::kSystem, "the group did not end in order", options.name,
                            process + " was killed before", "run the same command again");
    print_message(p.text);
    return p.exit_status;
  }
  print_message("stopped " + options.name);
  return 0;
}

Outcome compare(const GroupRecord& record, const Options& options, int living) {
  const auto before = of_the_group(record.words), now = of_the_group(options.words);
  const bool same_build = record.build == versions();
  if (before == now && same_build) return Done{};
  const std::string stop = stop_command(options);
  const std::string differs = before != now ? "it was started by another command, " +
                                                  first_difference(before, now) + ": " +
                                                  command_text(record.words)
                                            : "another build of Crane started it (" + record.build +
                                                  "; this one is " + versions() + ")";
  const std::string with = same_build ? "" : " with that build";
  const std::string what = living > 0 ? std::to_string(living) +
                                            " of its nodes run, and no "
                                            "crane-run supervises them"
                                      : "none of its nodes runs, but its data are kept";
  return failure(Status::kGroupExists, "cannot continue the group", options.name,
                 what + "; " + differs,
                 living > 0 ? "run that command" + with + " to take it over, or end it with " + stop
                            : "run that command" + with +
                                  " to continue with them, or add --force-new-group, which gives "
                                  "them up");
}

bool adopt_node(const std::string& home, Adopted& adopted) {
  const std::string path = home + "/control.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const std::string request = R"({"do":"supervise"})";
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool asked = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                     send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0;
  const int pidfd = asked ? static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)) : -1;
  if (pidfd >= 0 && answers_well(fd)) {
    adopted = {fd, peer.pid, pidfd};
    return true;
  }
  if (pidfd >= 0) close(pidfd);
  close(fd);
  return false;
}

std::string command_text(const std::vector<std::string>& words) {
  std::string text = "crane-run";
  for (const auto& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$*?;&|<>()") == word.npos;
    text += " ";
    if (plain) {
      text += word;
      continue;
    }
    text += "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

}  // namespace crane::launcher
