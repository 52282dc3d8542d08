// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group outlives its crane-run.  What the next one needs to go on with it stands in running.json
// of the group's directory (mode 0600): the command line, what the first one found around it, and
// the group's secrets.
//
//   crane-run dies        the nodes go on, no crane-run supervises them
//   the same command      takes the group over: listening sockets, living nodes, lost replicas
//   another command       is refused while there is something to lose
//   all nodes died, too   what lies in their memory (/dev/shm) and checkpoints is gone on with;
//                         of a group that lasts (lasting.h), what is on disk
//
// Threads: plain functions.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/launcher/options.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {

struct GroupRecord {
  std::vector<std::string> words;  // the command line behind the program's name, as typed
  std::vector<std::string> environment;
  std::string directory;  // where it was typed
  std::string build;      // the agreed versions of Crane
  std::string log_id, secret;
};

GroupRecord new_record(const Options& options);
Outcome write_record(const std::string& group_directory, const GroupRecord& record);
// Nothing: there is none, or it cannot be read.
std::optional<GroupRecord> read_record(const std::string& group_directory);
void remove_record(const std::string& group_directory);

// What there is of a group that no crane-run holds.
struct Remains {
  std::optional<GroupRecord> record;
  int living = 0;  // nodes
};
std::string directory_of(const setup::GroupPlace& place);
// Where the group's directory is, when the command does not say whether the group lasts.
std::string find_base(setup::GroupPlace place);
Remains look_for_remains(const setup::GroupPlace& place);
// Whether replica's node runs: it holds the lock of its memory.
bool node_lives(const std::string& shm_directory, int replica);

// Whether the command may go on with it; kGroupExists: what differs, and what to do.
Outcome compare(const GroupRecord& record, const Options& options, int living);
Error refuse_to_give_up(const Options& options, int living);
// Tells the crane-run that supervises the group to stop, and waits for its end; its exit status is
// 0, also where there is no such group, which is said.
int stop_supervised(const Options& options);
// The process' environment and directory become those of the first crane-run: they are part of what
// replicas must have in common.
void take_surroundings(const GroupRecord& record);

// The connection to a living node, and its process.
struct Adopted {
  int channel = -1;
  pid_t pid = -1;
  int pidfd = -1;
};
// False: it does not answer, or somebody else supervises it.
bool adopt_node(const std::string& replica_home, Adopted& adopted);

// As typed, for people.
std::string command_text(const std::vector<std::string>& words);

}  // namespace crane::launcher
