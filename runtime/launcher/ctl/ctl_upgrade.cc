// SPDX-License-Identifier: Apache-2.0
// crane-ctl upgrade: ends the server of every replica at one log entry and starts it again with
// another command line and with the present files of this machine (checkpoint/machine_files.h).  If
// the new server does not come up, the upgrade is rolled back.
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>

#include "checkpoint/machine_files.h"
#include "dmt/base/join.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/step_line.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/program.h"

namespace crane::launcher {
namespace {

using setup::print_message;
using Json = nlohmann::json;
using control::number_in, control::object_in, control::text_in;

// The server's command line; crane-run derives the same one from these words.
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

// The differences between the state of the machine's files that the servers read and the newest.
std::string changed_text(const checkpoint::GroupFiles& before,
                         const checkpoint::GroupFiles& after) {
  constexpr std::size_t kShown = 8;
  const checkpoint::ChangedFiles all = checkpoint::compare_files(before, after, kShown);
  std::string text = "files of this machine: " + std::to_string(all.all) + " changed\n";
  const auto list = [&text](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) text += std::string("  ") + what + " " + joined(names) + "\n";
  };
  list("other", all.changed);
  list("new", all.added);
  list("gone", all.removed);
  if (all.all > all.changed.size() + all.added.size() + all.removed.size()) text += "  ..\n";
  return text;
}

// Chooses the generation of the machine's files for the next server, and describes its changes.
Outcome choose_files(const std::string& record, std::size_t now, std::size_t& next,
                     std::string& changed) {
  next = now;
  if (access(record.c_str(), F_OK) != 0) return Done{};  // no container: servers read live files
  const auto before = checkpoint::recorded_files(record, now);
  const auto found = checkpoint::next_files(record, now);
  if (!found.ok()) return found.error();
  next = found.value().generation;
  if (next != now && before.ok()) changed = changed_text(before.value(), found.value().files);
  return Done{};
}

// Describes the steps and asks for confirmation.
bool agreed(const Request& request, const std::string& group, const Running& now,
            const std::vector<std::string>& words, const std::string& changed) {
  print(
      "upgrade of " + group + "\n  from " + shown(now.command) + "\n  to   " + shown(words) + "\n" +
      changed +
      "1. a checkpoint is taken, while clients continue\n"
      "2. the server of every replica ends at the same log entry; its clients are disconnected\n"
      "3. every replica starts the new server on the files that the old one left\n"
      "4. when it has listened for 2 s, clients are let in; if it ends earlier, or does not listen "
      "within " +
      std::to_string(request.seconds) + " s, the old server starts again on the files of step 2\n");
  return confirmed(request);
}

// Waits until the leader reports the result of the upgrade at this entry.
int await_verdict(const Request& request, const std::string& group, std::uint64_t entry) {
  const auto deadline = now_ms() + request.seconds * 1000 + kOtherStepsMs;
  StepLine line("upgrade of " + group);
  line.show(upgrade_step("asked"));
  std::string printed;
  for (; now_ms() < deadline; poll(nullptr, 0, kLookEveryMs)) {
    for (const auto& [replica, answer] : ask_all(request, group)) {
      if (text_in(answer.status, "role") != "leader") continue;
      const Json upgrade = object_in(answer.status, "upgrade");
      if (number_in(upgrade, "entry") != entry) continue;
      const std::string state = text_in(upgrade, "state");
      if (state == "trial" && printed != state) {
        line.clear();
        print((printed = state) + ": the new server starts\n");
      }
      if (const char* step = upgrade_step(state); *step != '\0') line.show(step);
      if (state == "kept") {
        line.clear();
        print(
            "upgraded: clients are let in.  The command that started the group still identifies "
            "it:\n"
            "keep the old program in place until the group is stopped, then start it with the new "
            "one\n");
        return 0;
      }
      if (state != "rolled back") continue;
      line.clear();
      print_message("rolled back: " + group + ": the new server did not come up: " +
                    text_in(upgrade, "why") + "; the old one serves again on its own files");
      return kRolledBack;
    }
  }
  line.clear();
  print_message("no verdict: " + group + ": the upgrade at entry " + std::to_string(entry) +
                " is not decided; see crane-ctl status " + group + " and node.log");
  return static_cast<int>(Health::kDegraded);
}

}  // namespace

const char* upgrade_step(const std::string& state) {
  if (state == "asked") return "step 2 of 4, the old servers end";
  if (state == "trial") return "steps 3 and 4 of 4, the new servers start and listen";
  if (state == "failed") return "it is rolled back, the old servers start again";
  return "";
}

Running running_in(const Json& summary) {
  Running now;
  for (const Json& row : control::list_in(summary, "replicas")) {
    const Json upgrade = object_in(row, "upgrade");
    const Json list = Json::parse(text_in(upgrade, "command"), nullptr, false);
    if (!now.command.empty() || !list.is_array()) continue;
    now = {list.get<std::vector<std::string>>(), number_in(upgrade, "files")};
  }
  return now;
}

int end_servers(const Request& request, const std::string& group, const Json& what,
                const char* without_checkpoint, std::uint64_t& entry) {
  Request now = request;
  now.group = group;
  if (checkpoint_now(now) != 0) print(std::string("no checkpoint: ") + without_checkpoint + "\n");
  const auto deadline = now_ms() + kOtherStepsMs;
  StepLine line("upgrade of " + group);
  RequestResult result = request_of_leader(request, group, summary_of(request, group), what);
  for (; result.busy && now_ms() < deadline; poll(nullptr, 0, kLookEveryMs)) {
    line.show("step 2 of 4, the leader is busy: it is asked again");
    result = request_of_leader(request, group, summary_of(request, group), what);
  }
  line.clear();
  if (result.status != 0) {
    print_message(result.message);
    return result.status;
  }
  print(result.message + "\n");
  entry = number_in(result.answer, "index");
  return 0;
}

bool confirmed(const Request& request) {
  if (request.yes) return true;
  if (isatty(STDIN_FILENO) == 0) {
    print_message("cannot ask: standard input is not a terminal; add --yes");
    return false;
  }
  print("continue? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

namespace {

int upgrade_server(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  if (request.command.empty() && !is_of_this_build(request, group)) return upgrade_crane(request);
  const Running now = running_in(summary_of(request, group));
  std::vector<std::string> words = now.command;
  if (!request.command.empty()) {
    if (const auto found = command_of(request.command, words); !found) {
      print_message(found.error().text);
      return found.error().exit_status;
    }
  }
  std::size_t files = 0;
  std::string changed;
  if (auto p = choose_files(request.home_of(group) + "/" + setup::kFilesRecord, now.files, files,
                            changed);
      !p) {
    print_message("no state of this machine's files: " + group + ": " + p.error().message());
    return kRefused;
  }
  if (request.command.empty() && files == now.files) {
    return refuse(
        group,
        "nothing has to end at once: its servers read this machine's present programs and /etc, "
        "and this build of Crane can run beside those of its replicas; replace one replica after "
        "the other, the leader last, with crane-ctl replica drain N and resume N, or give another "
        "command line after --");
  }
  const std::string text = Json(words).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(text) != Json(words)) {
    print_message(
        "command line: crane-ctl: the new command line is not UTF-8, but the log stores it as "
        "UTF-8");
    return static_cast<int>(setup::Status::kUsage);
  }
  if (!agreed(request, group, now, words, changed)) return kRefused;
  const Json what{
      {"do", "upgrade"}, {"command", text}, {"seconds", request.seconds}, {"files", files}};
  std::uint64_t entry = 0;
  const int bad = end_servers(request, group, what, "a rollback uses the files of step 2", entry);
  return bad != 0 ? bad : await_verdict(request, group, entry);
}

}  // namespace

Command upgrade_command(Request& r) {
  return {
      "upgrade",
      "restarts the servers at one log entry with another command line (after --) and with this "
      "machine's present programs and /etc, and rolls back if the new server does not come up; "
      "without a command line: with the present files only, or with this build of Crane if its "
      "schedule version differs",
      {group_word(r),
       {"--seconds",
        &r.seconds,
        "time until the server listens, or the build leads (default {})",
        {.bounds = {{1, 86'400}}}},
       {"--yes", Word::Flag{&r.yes}, "do not ask"}},
      {},
      [&r] { return upgrade_server(r); }};
}

}  // namespace crane::launcher
