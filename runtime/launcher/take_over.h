// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group outlives its crane-run.  running.json in the group's directory (mode 0600) contains what
// the next crane-run needs to continue: the command line, the environment of the first crane-run,
// and the group's secrets.
//
//   crane-run dies        the nodes continue, no crane-run supervises them
//   the same command      takes the group over: listening sockets, living nodes, lost replicas
//   another command       is refused while there is something to lose
//   all nodes died, too   the same command continues from their memory (/dev/shm) and checkpoints,
//                         or from the disk if the group's data last (lasting.h)
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
  std::vector<std::string> words;  // the command line after the program's name, as typed
  std::vector<std::string> environment;
  std::string directory;  // its working directory
  std::string build;      // the agreed versions of Crane
  std::string log_id, secret;
};

GroupRecord new_record(const Options& options);
Outcome write_record(const std::string& group_directory, const GroupRecord& record);
// nullopt: there is no record, or it cannot be read.
std::optional<GroupRecord> read_record(const std::string& group_directory);
void remove_record(const std::string& group_directory);

// The remains of a group that no crane-run supervises.
struct Remains {
  std::optional<GroupRecord> record;
  int living = 0;  // number of living nodes
};
// The parent of the group's directory, for commands that do not say whether the group's data last.
std::string find_base(setup::GroupPlace place);
Remains look_for_remains(const setup::GroupPlace& place);
// Whether the replica's node runs: then it holds the lock of its memory.
bool node_lives(const std::string& shm_directory, int replica);

// Checks that the command may continue the group.  kGroupExists: the message names the difference
// and what to do.
Outcome compare(const GroupRecord& record, const Options& options, int living);
Error refuse_to_give_up(const Options& options, int living);
// Stops the crane-run that supervises the group and waits for its end.  Returns the exit status: 0,
// also if there is no such group, which it reports.
int stop_supervised(const Options& options);

// The connection to a living node, and its process.
struct Adopted {
  int channel = -1;
  pid_t pid = -1;
  int pidfd = -1;
};
// False: the node does not answer, or another process supervises it.
bool adopt_node(const std::string& replica_home, Adopted& adopted);

// The command line as typed, with quotes where needed.
std::string command_text(const std::vector<std::string>& words);

}  // namespace crane::launcher
