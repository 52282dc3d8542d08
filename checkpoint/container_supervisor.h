// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process between a node and its server (container.h explains it), and the file-system steps
// that both kinds of server share.
//
// Processes: a supervisor is a fork of the node and never executes another program.  So pointers to
// static text are valid in both processes, and a report may contain them.

#include <sched.h>

#include <climits>
#include <optional>
#include <string>
#include <type_traits>

#include "checkpoint/background.h"
#include "checkpoint/container.h"

namespace crane::checkpoint {

constexpr std::size_t kReasonMax = 400;

// An Error as bytes of a datagram.  `what` is static text, at the same address in both processes.
struct SentError {
  Code code = Code::kOk;
  int detail = 0;
  const char* what = "";
  char text[kReasonMax] = "";

  void take(const Error& error) {
    code = error.code;
    detail = error.detail;
    what = error.what;
    error.text.copy(text, kReasonMax - 1);
  }
  Error error() const { return {code, detail, what, text}; }
};

// A datagram from the supervisor to the node.
struct Report {
  enum class Kind : int { kStarted, kFailed, kEnded, kPrepared, kDumped } kind;
  pid_t pid = -1;                // kStarted
  int status = 0;                // kEnded: as in wait(2)
  SentError error = {};          // kFailed; kDumped, kOk on success; kEnded: result of keep_files()
  CheckpointTimes times = {};    // kDumped; kStarted for a restored server
  char reason[kReasonMax] = "";  // more about the error; may be empty
};
static_assert(std::is_trivially_copyable_v<Report>);

// A datagram from the node to the supervisor (container.h: the steps of a checkpoint).
struct Request {
  enum What : int { kPrepare, kFreeze, kThaw, kGiveUp, kCancel, kAllAtOnce, kKeep, kEnd } what;
  bool boost;                              // kFreeze
  char images[PATH_MAX], upper[PATH_MAX];  // kPrepare, kAllAtOnce; kKeep: upper
};

class ContainerSupervisor {
 public:
  ContainerSupervisor(Server& server, int channel) : server_(server), channel_(channel) {}
  [[noreturn]] void run();

 private:
  void detach_from_node();
  Outcome start();
  Outcome wait_for_first();
  void wait_for_end();
  int finish();
  void report(const Report& report);

  // container_dump.cc
  Outcome restore();
  Outcome run_criu(CriuCall& call);
  Error explain_failure(bool died, const Error& refusal);

  // supervisor_dump.cc: the dump that is under way, if there is one
  enum class Pace { kSmall, kCommon, kBoost };
  void take_requests();
  void take_request(const Request& request);
  Outcome begin_dump(const Request& request);
  void read_criu_messages();
  void set_criu_deadline();
  void answer_criu(bool go_on);
  void start_next_step();
  void set_pace(Pace pace);
  void boost();
  void leave_boost();
  Outcome copy_upper();
  void end_dump(bool said_well);
  void leave_dump();
  int dump_timeout_ms();

  Server& server_;
  int channel_;
  int child_status_ = 0;
  bool child_ended_ = false;
  bool node_lost_ = false;
  bool end_requested_ = false;
  std::string kept_;  // where to keep the upper directory; "": nowhere
  Error keep_error_;
  bool server_lost_ = false;  // CRIU was stopped while it controlled the server
  struct Dump {
    enum class Place { kStarting, kReady, kWorking, kDumped } place = Place::kStarting;
    pid_t criu = -1;
    Background background;  // for CRIU
    int channel = -1;       // the conversation with CRIU
    int images = -1, work = -1;
    std::string upper;
    bool freeze = false, thaw = false;  // requests that the node has sent already
    bool may_boost = false;
    Pace pace = Pace::kCommon;
    std::int64_t faster_at_ms = 0;  // when the pace goes up; 0: never
    bool well = true;               // the copies of the node and the supervisor succeeded
    std::int64_t since_us = 0;      // start of the current step
    std::int64_t deadline_ms = 0;  // until when CRIU must send a message; 0: it waits for an answer
    // Whether CRIU controls the server's processes.
    bool touches_server() const { return place == Place::kWorking || place == Place::kDumped; }
  };
  std::optional<Dump> dump_;
  int policy_ = 0;  // the supervisor's, before and after a boost
  cpu_set_t processors_;
  CheckpointTimes times_;
  std::string reason_;
};

// The directory of CRIU's log and the like, and the name that the log of a failure gets.
std::string work_directory(const std::string& directory);
std::string log_of_failure(const std::string& directory);
// How long CRIU may continue when the node is gone: a killed CRIU leaves files behind.
constexpr int kOrphanTimeoutMs = 2'000;

bool is_root() noexcept;
std::int64_t now_ms() noexcept;  // monotonic
std::int64_t now_us() noexcept;  // monotonic
int open_pidfd(pid_t pid) noexcept;
// Whether the file system there is an overlay, which cannot be another one's upper directory.
bool is_on_overlay(const std::string& path) noexcept;
// mkdir -p with mode 0755.
Outcome make_directories(const std::string& path);
// A parsed word of ServerOptions::make_directories.
struct OwnedDirectory {
  explicit OwnedDirectory(const std::string& word);
  std::string path;
  std::string user;  // "": the caller's
};
// Gives `place`, the directory made for it, to its user and the user's group, if there are any.
Outcome change_owner(const OwnedDirectory& directory, const std::string& place);
// rm -rf that never crosses into another file system.
void remove_tree(const std::string& path) noexcept;
// Sets stdin, stdout and stderr of the calling process, for the server to inherit.
void set_standard_fds(int stdout_fd, int stderr_fd) noexcept;
// Enters a new mount namespace from which nothing propagates to the machine's (CONTAINER-2).
Outcome enter_private_mounts();
Outcome bind_mount(const std::string& source, const std::string& target);

}  // namespace crane::checkpoint
