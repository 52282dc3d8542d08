// SPDX-License-Identifier: Apache-2.0
// crane-ctl upgrade: the server of every replica ends at one entry of the log, and begins again
// with another command line; one that does not come up is rolled back.
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>

#include "runtime/launcher/child.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/program.h"

namespace crane::launcher {
namespace {

using setup::say;
using Json = nlohmann::json;
using control::number_in, control::object_in, control::text_in;

// As crane-run makes it of the same words.
Outcome command_of(const std::vector<std::string>& typed, std::vector<std::string>& words) {
  std::string program;
  if (auto p = setup::find_program(typed[0], program); !p) return p;
  if (auto p = setup::check_program(program); !p) return p;
  std::vector<std::string> args(typed.begin() + 1, typed.end());
  setup::Profile profile;
  (void)setup::find_profile("", program, args, profile);
  args.insert(args.end(), profile.args.begin(), profile.args.end());
  setup::become_user(profile, program, args);
  words = {program};
  words.insert(words.end(), args.begin(), args.end());
  return Done{};
}

std::string shown(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Says what happens before it does; false: the operator does not want it.
bool agreed(const Request& request, const std::string& group, const Json& summary,
            const std::vector<std::string>& words) {
  std::string now;
  for (const Json& row : control::list_in(summary, "replicas")) {
    const Json list = Json::parse(text_in(object_in(row, "upgrade"), "command"), nullptr, false);
    if (now.empty() && list.is_array()) now = shown(list.get<std::vector<std::string>>());
  }
  print(
      "upgrade of " + group + "\n  from " + now + "\n  to   " + shown(words) +
      "\n"
      "1. a checkpoint is taken, while clients go on\n"
      "2. the server of every replica ends at one entry of the log; its clients are disconnected\n"
      "3. the new one begins on the files that it left, everywhere alike\n"
      "4. when it has listened for 2 s clients are let in; when it ends before, or does not "
      "listen within " +
      std::to_string(request.seconds) +
      " s, the old command line begins again on the files of step 2\n");
  return confirmed(request);
}

// What became of the upgrade of this entry, by the word of the leader.
int await_verdict(const Request& request, const std::string& group, std::uint64_t entry) {
  const auto deadline = now_ms() + request.seconds * 1000 + kOtherStepsMs;
  std::string told;
  for (; now_ms() < deadline; poll(nullptr, 0, kLookEveryMs)) {
    for (const auto& [replica, answer] : ask_all(request, group)) {
      if (text_in(answer.status, "role") != "leader") continue;
      const Json upgrade = object_in(answer.status, "upgrade");
      if (number_in(upgrade, "entry") != entry) continue;
      const std::string state = text_in(upgrade, "state");
      if (state == "trial" && told != state) print((told = state) + ": the new server begins\n");
      if (state == "kept") {
        print(
            "upgraded: clients are let in.  The group is known by the command that started it:\n"
            "keep the old program where it is until the group was stopped; start it then with "
            "the new one\n");
        return 0;
      }
      if (state != "rolled back") continue;
      say("rolled back: " + group + ": the new server did not come up: " + text_in(upgrade, "why") +
          "; the old one serves on the files of before");
      return kRolledBack;
    }
  }
  say("no verdict: " + group + ": the upgrade at entry " + std::to_string(entry) +
      " is not decided; see crane-ctl status " + group + " and node.log");
  return static_cast<int>(Health::kDegraded);
}

}  // namespace

int end_servers(const Request& request, const std::string& group, const Json& what,
                const char* without_checkpoint, std::uint64_t& entry) {
  Request now = request;
  now.group = group;
  if (checkpoint_now(now) != 0) print(std::string("no checkpoint: ") + without_checkpoint + "\n");
  const auto deadline = now_ms() + kOtherStepsMs;
  Told told = tell_leader(request, group, summary_of(request, group), what);
  for (; told.busy && now_ms() < deadline; poll(nullptr, 0, kLookEveryMs)) {
    told = tell_leader(request, group, summary_of(request, group), what);
  }
  if (told.status != 0) {
    say(told.message);
    return told.status;
  }
  print(told.message + "\n");
  entry = number_in(told.answer, "index");
  return 0;
}

bool confirmed(const Request& request) {
  if (request.yes) return true;
  if (isatty(STDIN_FILENO) == 0) {
    say("not asked: standard input is no terminal; add --yes");
    return false;
  }
  print("go on? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

namespace {

int upgrade_server(const Request& request) {
  if (request.command.empty()) return upgrade_crane(request);
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  std::vector<std::string> words;
  if (const auto found = command_of(request.command, words); !found) {
    say(found.error().text);
    return found.error().exit_status;
  }
  const std::string text = Json(words).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(text) != Json(words)) {
    say("command line: crane-ctl: the new command line is no UTF-8, as which it stands in the log");
    return static_cast<int>(setup::Status::kUsage);
  }
  if (!agreed(request, group, summary_of(request, group), words)) return kRefused;
  const Json what{{"do", "upgrade"}, {"command", text}, {"seconds", request.seconds}};
  std::uint64_t entry = 0;
  const int bad = end_servers(request, group, what, "the files of step 2 are the way back", entry);
  return bad != 0 ? bad : await_verdict(request, group, entry);
}

}  // namespace

Command upgrade_command(Request& r) {
  return {
      "upgrade",
      "the server with another command line, behind --: ended and begun at one entry of the log, "
      "rolled back if it does not come up; without one: this build of Crane in place of the "
      "replicas', where their schedules differ",
      {group_word(r),
       {"--seconds",
        &r.seconds,
        "within which it listens, or the build leads (default {})",
        {.bounds = {{1, 86'400}}}},
       {"--yes", Word::Flag{&r.yes}, "do not ask"}},
      {},
      [&r] { return upgrade_server(r); }};
}

}  // namespace crane::launcher
