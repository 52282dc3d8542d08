// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process between a node and its server (container.h says why), and the file-system steps both
// kinds of server share.
//
// Processes: a keeper is a fork of the node that never executes another program, so pointers to
// static text mean the same in both and may travel in a report.

#include <climits>
#include <string>

#include "checkpoint/container.h"

namespace crane::checkpoint {

constexpr std::size_t kReasonMax = 400;

// What the keeper tells the node, one datagram each.
struct Report {
  enum class Kind : int { kStarted, kFailed, kEnded, kDumped } kind;
  pid_t pid = -1;                // kStarted
  int status = 0;                // kEnded: as wait(2) gives it
  Error error = {};              // kFailed; kDumped, unless it is kOk
  CheckpointTimes times = {};    // kDumped; kStarted of a restored server
  char reason[kReasonMax] = "";  // of the error, if there is more to say
};

// What the node asks of the keeper, one datagram.
struct Request {
  char images[PATH_MAX], upper[PATH_MAX];
};

class Keeper {
 public:
  Keeper(Server& server, int channel) : server_(server), channel_(channel) {}
  [[noreturn]] void run();

 private:
  void detach_from_node();
  Outcome start();
  Outcome wait_for_first();
  void wait_for_end();
  int finish();
  void report(const Report& report);

  // container_dump.cc
  bool take_request();
  Outcome dump(const Request& request);
  Outcome restore();
  Outcome run_criu(CriuCall& call);

  Server& server_;
  int channel_;
  int child_status_ = 0;
  bool child_gone_ = false;
  bool server_spoilt_ = false;  // CRIU was stopped while it had the server in its hands
  CheckpointTimes times_;
  std::string reason_;
};

bool is_root() noexcept;
std::int64_t now_ms() noexcept;  // monotonic
// mkdir -p with mode 0755.
Outcome make_directories(const std::string& path);
// A word of ServerOptions::make_directories, and what it stands for.
struct OwnedDirectory {
  explicit OwnedDirectory(const std::string& word);
  std::string path;
  std::string user;  // "": ours
};
// Gives `place`, where the directory was made, to its user and the user's group, if there are any.
Outcome give_to_user(const OwnedDirectory& directory, const std::string& place);
// rm -rf that never crosses into another file system.
void remove_tree(const std::string& path) noexcept;
// Puts stdin, stdout and stderr of the calling process in place, for the server to inherit.
void set_standard_fds(int stdout_fd, int stderr_fd) noexcept;
// Own mount namespace from which nothing propagates to the machine's (INVARIANT K2).
Outcome enter_private_mounts();
Outcome bind_mount(const std::string& source, const std::string& target);

}  // namespace crane::checkpoint
