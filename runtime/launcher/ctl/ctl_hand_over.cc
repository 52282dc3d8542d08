// SPDX-License-Identifier: Apache-2.0
// crane-ctl upgrade without a command line: this build of Crane takes over a group whose replicas
// have a build with another schedule version.  The server of every replica ends at one log entry,
// and nodes of this build begin with the files that it left (HANDOVER-1).
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "dmt/base/join.h"
#include "dmt/base/versions.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/step_line.h"
#include "runtime/setup/version.h"

namespace crane::launcher {
namespace {

using setup::print_message;
using Json = nlohmann::json;
using control::number_in, control::object_in, control::text_in;

// The names of the agreed versions that differ from this build's.
std::set<std::string> differences(const std::string& theirs) {
  const std::string all = ", " + theirs + ", ";
  std::set<std::string> names;
  for (const AgreedVersion& one : kAgreedVersions) {
    const std::string ours = ", " + std::string(one.name) + " " + std::to_string(one.number) + ", ";
    if (all.find(ours) == std::string::npos) names.insert(one.name);
  }
  return names;
}

// Whether the executable file of the process is gone, because an installer has replaced it.
bool was_replaced(std::uint64_t pid) {
  char path[4096];
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  const std::string_view name(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  constexpr std::string_view kGone = " (deleted)";
  return length < 0 ||
         (name.size() > kGone.size() && name.substr(name.size() - kGone.size()) == kGone);
}

// Checks that a hand-over is possible.  Returns 0, or the exit status after a message.
int check(const std::string& group, const std::map<int, NodeAnswer>& answers) {
  std::set<std::string> differ;
  int not_replaced = -1;
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer) continue;
    differ.merge(differences(versions_of(answer)));
    if (!was_replaced(number_in(answer.status, "pid"))) not_replaced = replica;
  }
  if (differ.erase("schedule") == 0 || !differ.empty()) {
    return refuse(group,
                  "this build cannot read its replicas' data and messages (other versions: " +
                      joined(differ) +
                      "): stop the group and start it with this build; with --data it "
                      "continues with its server's files");
  }
  if (not_replaced < 0) return 0;
  return refuse(group, "replica " + std::to_string(not_replaced) +
                           " would start again with its old build: install this build in its "
                           "place first (make install, apt install)");
}

bool agreed(const Request& request, const std::string& group, const std::string& theirs) {
  print("upgrade of " + group + " to this build of Crane\n  from " + theirs + "\n  to   " +
        setup::agreed_versions_text() +
        "\n"
        "1. a checkpoint is taken, while clients continue\n"
        "2. the server of every replica ends at the same log entry; its clients are disconnected\n"
        "3. every node keeps the files that the server left as a checkpoint, and ends\n"
        "4. nodes of this build begin, with servers on those files; clients wait until then\n"
        "if they do not come up, put the old build's files back: it continues from there\n");
  return confirmed(request);
}

struct Seen {
  int ours = 0;         // replicas of this machine with this build
  int returned = 0;     // replicas of this machine that the old build started from that entry
  bool serves = false;  // a replica with this build accepts clients, or follows another machine's
};

// A follower of this build does not follow a leader of another build for long (HANDOVER-2).
bool is_served(const NodeAnswer& answer, const std::map<int, NodeAnswer>& here) {
  if (control::flag_in(answer.status, "takes_clients")) return true;
  const auto leader = answer.status.find("leader");
  const bool known = leader != answer.status.end() && leader->is_number_unsigned();
  return text_in(answer.status, "role") == "follower" && known &&
         here.count(leader->get<int>()) == 0;
}

Seen look(const Request& request, const std::string& group, std::uint64_t entry) {
  Seen seen;
  const auto answers = ask_all(request, group);
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer) continue;
    const bool is_ours = differences(versions_of(answer)).empty();
    const auto at = number_in(object_in(answer.status, "checkpoint"), "restored_at");
    seen.ours += is_ours;
    seen.returned += !is_ours && at >= entry;
    seen.serves = seen.serves || (is_ours && is_served(answer, answers));
  }
  return seen;
}

int await_this_build(const Request& request, const std::string& group, std::uint64_t entry,
                     int replicas) {
  const auto deadline = now_ms() + request.seconds * 1000 + kOtherStepsMs;
  Seen seen;
  StepLine line("upgrade of " + group);
  for (bool shown = false; now_ms() < deadline; poll(nullptr, 0, kLookEveryMs)) {
    seen = look(request, group, entry);
    if (seen.serves && !shown) {
      line.clear();
      print("clients are let in\n");
    }
    shown = shown || seen.serves;
    line.show((seen.ours == 0 ? "steps 3 and 4 of 4, the old nodes end and new ones start: "
                              : "step 4 of 4, nodes of this build start: ") +
              std::to_string(seen.ours) + " of " + std::to_string(replicas));
    if (seen.serves && seen.ours >= replicas) {
      line.clear();
      print("upgraded: this build runs here: " + std::to_string(seen.ours) + " of " +
            std::to_string(replicas) + " replicas\n");
      return 0;
    }
    if (seen.returned * 2 > replicas) {
      line.clear();
      return refuse(group, "its nodes started again with the old build, from entry " +
                               std::to_string(entry) +
                               ", and continue with it: install this build in place of theirs");
    }
  }
  line.clear();
  print_message(
      "not complete: " + group + ": " + std::to_string(seen.ours) + " of " +
      std::to_string(replicas) + " replicas are of this build, and " +
      (seen.serves
           ? "one of them takes clients; see crane-ctl status " + group
           : "none of them takes clients; see their node.log, or put the old build's files back: "
             "the nodes then start again automatically"));
  return static_cast<int>(seen.serves ? Health::kDegraded : Health::kNoLeader);
}

}  // namespace

bool is_of_this_build(const Request& request, const std::string& group) {
  for (const auto& [replica, answer] : ask_all(request, group)) {
    if (answer.reply == Reply::kAnswer && !differences(versions_of(answer)).empty()) return false;
  }
  return true;
}

int upgrade_crane(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const auto answers = ask_all(request, group);
  std::string theirs;
  int replicas = 0;
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer) continue;
    ++replicas;
    theirs = versions_of(answer);
  }
  if (replicas == 0) {
    print_message("no answer: " + group +
                  ": none of its nodes on this machine; see crane-ctl status");
    return static_cast<int>(Health::kNoLeader);
  }
  if (const int bad = check(group, answers); bad != 0) return bad;
  if (!agreed(request, group, theirs)) return kRefused;
  const Json what{{"do", "hand_over"}, {"to", setup::agreed_versions_text()}};
  std::uint64_t entry = 0;
  const int bad = end_servers(request, group, what, "the files of step 3 are the only ones", entry);
  return bad != 0 ? bad : await_this_build(request, group, entry, replicas);
}

}  // namespace crane::launcher
