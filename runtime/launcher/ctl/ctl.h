// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl's commands.  Each returns crane-ctl's exit status, and has said what there is to say.
//
// Exit status: 0 done, or all is well; 1 the group serves, but a replica of this host does not
// answer; 2 there is no leader; 3 there is no such group or checkpoint; 4 not permitted; 5 the node
// refused, or a checkpoint is damaged, the message says why; 6 the server does not serve; 7 the
// lead was not transferred in time; 8 an upgrade was rolled back; 100 to 104, 108, 109, 111 and 119
// as crane-run's.
//
// Threads: plain functions; those that wait say for what.

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/control/schema.h"
#include "runtime/launcher/ctl/find_group.h"
#include "runtime/launcher/ctl/status_table.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/messages.h"

namespace crane::launcher {

inline constexpr int kNoSuchGroup = 3, kNoSuchCheckpoint = 3, kNotPermitted = 4, kRefused = 5;
inline constexpr int kDamaged = 5, kNotTransferred = 7, kRolledBack = 8;
// Of an upgrade: besides what the operator gives the next server, for the end of the one before,
// its files, and a roll back.
inline constexpr std::int64_t kOtherStepsMs = 90'000;
inline constexpr int kAskAgainMs = 500;  // what a node refused for now
inline constexpr int kLookEveryMs = 50;  // of commands that wait for what becomes of them

struct Request {
  std::string dir;  // --dir; "": wherever the group is
  std::string group, output = "table", secret, signal, checkpoint, tier;
  std::string schema = "requests";
  std::string file;  // of data and backup; "-": standard input or output
  bool watch = false;
  bool no_wait = false;   // leader transfer: for the new leader
  bool once = false;      // top: one table
  int last = 0;           // events: only so many; 0: all
  bool unpacked = false;  // data export: a directory
  int to = -1;
  int replica = -1;
  int fresh = -1;                    // member replace: who comes
  int seconds = 30;                  // upgrade: for the new server, or build, to serve
  bool yes = false;                  // upgrade: nothing is asked
  std::vector<std::string> command;  // upgrade: behind "--"

  // The directory that the group is in.
  std::string dir_of(const std::string& name) const {
    bool denied = false;
    return directory_of(dir, name, denied);
  }
  std::string home_of(const std::string& name) const { return dir_of(name) + "/" + name; }
};

// What the leader said to a request; `status` is crane-ctl's.
struct RequestResult {
  int status = 0;
  std::string message;
  bool busy = false;        // refused now, maybe not later
  nlohmann::json answer{};  // the whole of it, when status is 0
  std::string error{};      // the kind of a refusal
};

void print(const std::string& text);

// --- whom it is about (ctl.cc); 0, or the exit status after a message
int choose_groups(const Request& request, std::vector<std::string>& groups);
int choose_one(const Request& request, std::string& group);

std::map<int, NodeAnswer> ask_all(const Request& request, const std::string& group);
nlohmann::json summary_of(const Request& request, const std::string& group);
// What an answer of a node, or of an agent, says.
RequestResult result_of(const std::string& group, const std::string& text);
// What one node of this machine says to a request.
RequestResult ask_replica(const Request& request, const std::string& group, int replica,
                          const nlohmann::json& what);
RequestResult request_of_leader(const Request& request, const std::string& group,
                                const nlohmann::json& summary, const nlohmann::json& what);
// Asks the node that leads, and says what it answered.
int ask_leader(const Request& request, const nlohmann::json& what);

// A checkpoint that was taken and published.
struct Taken {
  int replica = -1;
  std::uint64_t index = 0;  // of its entry, or of one before it (tier restart)
  bool here = true;         // that replica is on this machine
};
// Asks for one, by the rest of the request, and waits until it is published; 0, or the exit status
// after a message.  `progress`: is told what goes on.
int take_checkpoint(const Request& request, Taken& taken,
                    const std::function<void(const std::string&)>& progress);

using setup::Command;
using setup::Word;

// --- words that several commands take
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

// --- commands, and what they are called; the request outlives them
Command leader_commands(Request& r);  // ctl_leader.cc
Command member_commands(Request& r);  // ctl_replica.cc
Command replica_commands(Request& r);
Command checkpoint_commands(Request& r);  // ctl_checkpoint.cc
Command data_commands(Request& r);        // ctl_data.cc
Command backup_command(Request& r);       // ctl_backup.cc
Command restore_command(Request& r);
Command top_command(Request& r);  // ctl_watch.cc
Command events_command(Request& r);
Command upgrade_command(Request& r);         // ctl_upgrade.cc
int checkpoint_now(const Request& request);  // ctl_checkpoint.cc
int list_groups(const Request& request);
int status(const Request& request);
int list_members(const Request& request);
// What the servers were started as, by the word of a node here; no command: none answers.
struct Running {
  std::vector<std::string> command;
  std::size_t files = 0;  // generation of the machine's files
};
Running running_in(const nlohmann::json& summary);  // ctl_upgrade.cc
// Whether the agreed versions of all replicas here are those of this build.
bool is_of_this_build(const Request& request, const std::string& group);
int upgrade_crane(const Request& request);  // ctl_hand_over.cc
// Whether the operator wants what was said; `--yes`: nothing is asked.
bool confirmed(const Request& request);
// The beginning of both: a checkpoint, or a line of what there is without; then the leader is told,
// again and again while it is at something else.  `entry`: at which servers end.  0, or the exit
// status after a message.
int end_servers(const Request& request, const std::string& group, const nlohmann::json& what,
                const char* without_checkpoint, std::uint64_t& entry);
// The versions that a replica's build tells; also of a build that tells none.
std::string versions_of(const NodeAnswer& answer);  // ctl_versions.cc
int show_versions(const Request& request);          // ctl_versions.cc
int restore_replica(Request request);
// Exit status: 0 all is well, 1 something is limited, 2 the group cannot run here.
int examine_group(const Request& request);  // ctl_doctor.cc

// The digest of the group's log, which its checkpoints have in common; "": no node tells.
std::string log_digest_of(const Request& request, const std::string& group);
// VIEW.INDEX as a user gave it, in `request.checkpoint` or in place of the group, becomes a name;
// 0, or the exit status after a message.  Empty: none was given.
int name_checkpoint(Request& request);

}  // namespace crane::launcher
