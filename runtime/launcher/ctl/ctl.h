// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl's commands.  Each prints its messages and returns crane-ctl's exit status.
//
// Exit status: 0 done, or all is well; 1 the group serves, but a replica is missing, or one
// more loss stops it; 2 there is no leader; 3 there is no such group or checkpoint; 4 not
// permitted; 5 the node refused, or a checkpoint is damaged (the message gives the reason); 6 the
// server does not serve; 7 the lead was not transferred in time; 8 an upgrade was rolled back; 12
// a node ended before it answered, and may have carried out the request; 100 to 104, 108, 109, 111,
// 112, 118 and 119 as crane-run's; no command returns 193 or 194.
//
// Threads: plain functions; a function that waits has a comment that names the event.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dmt/base/assert.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/ctl/context.h"
#include "runtime/launcher/ctl/find_group.h"
#include "runtime/launcher/ctl/reach.h"
#include "runtime/launcher/ctl/status_table.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/messages.h"

namespace crane::launcher {

inline constexpr int kNoSuchGroup = 3, kNoSuchCheckpoint = 3, kNotPermitted = 4, kRefused = 5;
inline constexpr int kDamaged = 5, kNotTransferred = 7, kRolledBack = 8, kNoAnswer = 12;
// Time for the other steps of an upgrade: the end of the old server, its files, and a rollback.
// The operator's limit for the new server comes on top.
inline constexpr std::int64_t kOtherStepsMs = 90'000;
inline constexpr int kAskAgainMs = 500;  // pause after a temporary refusal
inline constexpr int kLookEveryMs = 50;  // polling interval of commands that wait

struct Request {
  std::string dir;  // --dir; "": search all places
  std::string group, output = "table", secret, signal, checkpoint, tier;
  std::string schema = "requests";
  std::string file;  // data, backup: the archive; "-": standard input or output
  bool watch = false;
  int wait_s = 0;         // status: the longest time until all is well
  bool quiet = false;     // no progress on standard error
  bool no_wait = false;   // leader transfer: do not wait for the new leader
  bool follow = false;    // logs: also what is written later
  bool once = false;      // top: print one table
  int last = 0;           // events: maximal number; 0: all
  bool unpacked = false;  // data export: write a directory
  bool verify = false;    // restore: only into a directory that is removed afterwards
  int to = -1;
  int replica = -1;
  int fresh = -1;                    // member replace: the new replica
  int seconds = 30;                  // upgrade: time limit for the new server or build
  bool yes = false;                  // upgrade: do not ask for confirmation
  std::vector<std::string> command;  // upgrade: the words after "--"
  // --hosts, --config: the group is controlled over links only.  nullptr: see reach.h.
  std::shared_ptr<const Context> context;

  // The directory that contains the group's directory.
  // REQUIRES: !context, because a group of that name on this machine may be another one.
  std::string dir_of(const std::string& name) const {
    CRANE_ASSERT(context == nullptr);
    bool denied = false;
    return directory_of(dir, name, denied);
  }
  std::string home_of(const std::string& name) const { return dir_of(name) + "/" + name; }
};

// The answer to a request; `status` is crane-ctl's exit status.
struct RequestResult {
  int status = 0;
  std::string message;
  bool busy = false;        // a later attempt may succeed
  nlohmann::json answer{};  // the complete answer if status is 0
  std::string error{};      // kind of the refusal
};

void print(const std::string& text);
// Whether a word is digits only, as a replica's number is.
bool is_number(const std::string& word);
// Prints "refused: GROUP: WHY" and returns the exit status for it.
int refuse(const std::string& group, const std::string& why);

// --- choice of groups (ctl.cc): 0, or the exit status after a message
int choose_groups(const Request& request, std::vector<std::string>& groups);
int choose_one(const Request& request, std::string& group);

std::map<int, NodeAnswer> ask_all(const Request& request, const std::string& group);
nlohmann::json summary_of(const Request& request, const std::string& group);
// Parses the answer of a node or of an agent.
RequestResult result_of(const std::string& group, const std::string& text);
// The same of an answer through a Reach, which may be missing.
RequestResult answer_of(const std::string& group, int replica, const Reach::Answer& got);
// Sends a request to one node.
RequestResult ask_replica(const Request& request, const std::string& group, int replica,
                          const nlohmann::json& what);
RequestResult request_of_leader(const Request& request, const std::string& group,
                                const nlohmann::json& summary, const nlohmann::json& what);
// Sends a request to the leader's node and prints its answer.
int ask_leader(const Request& request, const nlohmann::json& what);

// A checkpoint that was taken and published.
struct Taken {
  int replica = -1;
  std::uint64_t index = 0;  // index of its entry, or of an earlier one (tier restart)
  bool here = true;         // that replica is on this machine
};
// Requests a checkpoint with the options of `request` and waits until it is published.  Returns 0,
// or the exit status after a message.  Calls `progress` with each step.
int take_checkpoint(const Request& request, Taken& taken,
                    const std::function<void(const std::string&)>& progress);

using setup::Command;
using setup::Word;

// --- words of several commands
inline constexpr int kReplicaMost = 126;
inline Word group_word(Request& r) {
  return {"group", &r.group, "the group's name (default: the only one)"};
}
inline Word all_groups_word(Request& r) {
  return {"group", &r.group, "the group's name (default: all)"};
}
inline Word output_word(Request& r, const char* help = "table or json") {
  return {"-o,--output", &r.output, help, {.choices = {"table", "json"}}};
}
inline Word number_word(const char* name, int& number, const char* help) {
  return {name, &number, help, {.bounds = {{0, kReplicaMost}}, .required = true}};
}
inline Word file_word(Request& r, const char* help) {
  return {"file", &r.file, help, {.required = true}};
}
inline Word tier_word(Request& r, const char* help) {
  return {"--tier", &r.tier, help, {.choices = {"criu", "restart"}}};
}

// --- the commands and their names; the request must outlive them
Command leader_commands(Request& r);  // ctl_leader.cc
Command member_commands(Request& r);  // ctl_replica.cc
Command replica_commands(Request& r);
Command checkpoint_commands(Request& r);  // ctl_checkpoint.cc
Command data_commands(Request& r);        // ctl_data.cc
Command backup_command(Request& r);       // ctl_backup.cc
Command restore_command(Request& r);
Command top_command(Request& r);  // ctl_watch.cc
Command events_command(Request& r);
Command logs_command(Request& r);  // ctl_life.cc
Command attach_command(Request& r);
Command stop_command(Request& r);
Command upgrade_command(Request& r);         // ctl_upgrade.cc
int checkpoint_now(const Request& request);  // ctl_checkpoint.cc
int list_groups(const Request& request);
int status(const Request& request);
int list_members(const Request& request);
// How the servers were started, as a node of this machine reports; no command: no node answers.
struct Running {
  std::vector<std::string> command;
  std::size_t files = 0;  // generation of the machine's files
};
Running running_in(const nlohmann::json& summary);  // ctl_upgrade.cc
// The step that an upgrade of the server waits for; `state`: a node's `upgrade.state`.  "": none.
const char* upgrade_step(const std::string& state);  // ctl_upgrade.cc
// Whether all replicas of this machine have this build's agreed versions.
bool is_of_this_build(const Request& request, const std::string& group);
int upgrade_crane(const Request& request);  // ctl_hand_over.cc
// Asks the operator for confirmation; with `--yes`, returns true at once.
bool confirmed(const Request& request);
// The first steps of both upgrades: takes a checkpoint, or prints `without_checkpoint` if it
// cannot; then sends the request to the leader, and repeats it while the leader is busy.  Sets
// `entry` to the entry at which the servers end.  Returns 0, or the exit status after a message.
int end_servers(const Request& request, const std::string& group, const nlohmann::json& what,
                const char* without_checkpoint, std::uint64_t& entry);
// The versions that a replica's build reports, or a text if it reports none.
std::string versions_of(const NodeAnswer& answer);  // ctl_versions.cc
int show_versions(const Request& request);          // ctl_versions.cc
int restore_replica(Request request);
// Exit status: 0 all is well, 1 something is limited, 2 the group cannot run here.
int examine_group(const Request& request);  // ctl_doctor.cc

// The digest of the group's log, which all its checkpoints share; "": no node reports it.
std::string log_digest_of(const Request& request, const std::string& group);
// Turns a user's VIEW.INDEX, in `request.checkpoint` or in place of the group, into a checkpoint's
// name.  Leaves it empty if there is none.  Returns 0, or the exit status after a message.
int name_checkpoint(Request& request);

}  // namespace crane::launcher
