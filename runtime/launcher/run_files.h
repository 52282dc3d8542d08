// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files with which a crane-run reports about itself, in its group's directory:
//
//   runtime.log   its messages, with their times, whether or not a terminal shows them, too
//   exit_status   empty while it runs; at its end one JSON object (ExitNote).  It stays empty if
//                 crane-run is killed.
//
// Both disappear with the directory of a group whose data do not last.  Until then a reader that
// has opened exit_status can still read it.
//
// Threads: plain functions; RunFiles: one thread.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/descriptor.h"

namespace crane::launcher {

inline constexpr char kExitStatus[] = "exit_status";

struct ExitNote {
  int status = 0;  // crane-run's exit status
  std::int64_t unix_ms = 0;
};

std::string text_of(const ExitNote& note);
// nullopt: the text is empty or damaged.
std::optional<ExitNote> parse_exit_note(const std::string& text);
// "exit status 3, at 2026-11-30T10:00:00+0000".
std::string description_of(const ExitNote& note);

// Reads exit_status through a descriptor; nullopt: crane-run runs, or it was killed.
std::optional<ExitNote> read_exit_note(int fd);
// The same in a group's directory.
std::optional<ExitNote> read_exit_note(const std::string& home);

// The crane-run that supervises the group with this directory: state.json names it, and it holds
// the directory's lock.  0: there is none, or this user may not look at it.
pid_t crane_run_of(const std::string& home);

// The same, found by descriptors that stay with that process.
struct CraneRun {
  pid_t pid = 0;                       // 0: none
  checkpoint::Descriptor pidfd, note;  // its process; its exit_status, which its end may remove
};
CraneRun find_crane_run(const std::string& home);

struct CraneRunEnd {
  int refused = 0;               // errno: this user may not end it
  std::optional<ExitNote> note;  // nullopt: it was killed before the group had ended
};
// Ends a group through its crane-run, also one that is stopped (SIGSTOP), and waits until it has
// ended, which takes as long as the server's end.  Calls `waits` once if that takes long.
// REQUIRES: run.pid > 0.
CraneRunEnd end_crane_run(const CraneRun& run, const std::function<void()>& waits);

// The files of this process.  The destructor closes them.
class RunFiles {
 public:
  RunFiles() = default;
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  // Opens both files in the group's directory; from now on messages go to runtime.log, too.  A file
  // that cannot be opened is reported, and the group continues without it.
  // REQUIRES: this process holds the directory's lock.
  void open(const std::string& home);
  // This crane-run is about to end.
  void ended(int status) const;

  const std::string& home() const { return home_; }
  int log() const { return log_; }  // descriptor of runtime.log; -1: none

 private:
  std::string home_;
  int log_ = -1, status_ = -1;
};

}  // namespace crane::launcher
