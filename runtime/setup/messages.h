// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every failure of crane-run, and of a node without crane-run before it is up, with its exit
// status.  crane-run passes the server's own status through, so its own statuses are numbers that
// servers do not use.
//
//   status  what happened                                  what to do
//   0..99   the server's own exit status (128 + n: it died of signal n)
//   100     the command line is not valid                  crane-run --help
//   101     an even number of replicas, or none            use 1, 3, 5, ...
//   102     the program does not exist                     check the name, install it
//   103     the program may not be executed                chmod +x, or name the right file
//   104     the program cannot load libcrane.so            static, setuid or of another machine:
//                                                          use a dynamic build for this machine
//   105     a port is taken                                stop its owner, or --publish OTHER:PORT
//   106     no root privilege for containers               run as root, or --no-container
//   107     LXC is not installed                           install lxc, or --no-container
//   108     a directory cannot be made or written          name another one with --dir
//   109     no room on a file system                       free space, or --dir elsewhere
//   110     there is shared memory of another version      remove the named directory
//   111     a group of this name runs already              stop it, or choose another --name
//   112     a part of Crane is missing                     run crane-run from its own directory
//   113     a node could not start                         see the named log
//   114     the server never checked in                    libcrane.so was not loaded: see the log
//   115     a majority of the replicas is lost             start the group again
//   116     the system refused another operation           see the message
//   117     a replica stopped itself                       see the named log
//   118     the group's file cannot be used                correct the named line
//   119     the secret file is missing, short or readable  crane-ctl secret new FILE; chmod 600
//           by others
//   120     a host cannot be reached, or no longer         see the remote shell's message
//   121     a host has no Crane, or another build of       install the same on all hosts
//           Crane or of the server
//   122     --strict: the server made a system call that   see the message, which names the call
//           libcrane.so did not see
//   123     a replica diverged from the majority           see its log; start the group again
//   124     a replica needs entries that left all logs     start the group again
//   125     the server went to the background              run it in the foreground
//   126     --branch-counter does not work                 see the message; leave it out
//   193     another process writes to a directory of       stop the named process
//           --data
//   194     the group's data belong to another command     run that command, or crane-ctl upgrade
//   195     the certificate, the key or the users of HTTP  see the message, which names the file
//           cannot be used                                 and the line
//
// The last three are larger than 128 + n for every signal n, and smaller than systemd's own.
//
// Form of a message: `crane-run: <what>: <object>: <cause>; <what to do>`.

#include <string>

#include "dmt/base/result.h"

namespace crane::setup {

enum class Status : int {
  kOk = 0,
  kUsage = 100,
  kReplicas = 101,
  kProgramMissing = 102,
  kNotExecutable = 103,
  kUnsuitable = 104,
  kPortTaken = 105,
  kNoRoot = 106,
  kNoLxc = 107,
  kDirectory = 108,
  kDiskFull = 109,
  kSharedVersion = 110,
  kGroupExists = 111,
  kPartMissing = 112,
  kNodeFailed = 113,
  kNeverCheckedIn = 114,
  kMajorityLost = 115,
  kSystem = 116,
  kReplicaStopped = 117,
  kGroupFile = 118,
  kSecret = 119,
  kHost = 120,
  kHostDiffers = 121,
  kUnhooked = 122,
  kReplicaDiverged = 123,
  kTooFarBehind = 124,
  kInBackground = 125,
  kNoBranchCounter = 126,
  kDataInUse = 193,
  kOtherCommand = 194,
  kHttpFiles = 195,
};

// The reason why crane-run ends before or instead of the server: an Error with the exit status
// `status` and the text "<what>: <object>: <cause>; <advice>".  The code is always kSystem; use the
// status to distinguish these errors.
Error failure(Status status, const std::string& what, const std::string& object,
              const std::string& cause, const std::string& advice);
// failure() with a complete text.
Error failure(Status status, std::string text);
// kOk: no failure.  REQUIRES: an error comes from one of the two functions above.
Status status_of(const Outcome& outcome);

// Sets the program's name in messages (a static text); default crane-run.
void set_program(const char* name);
// The severity, as in syslog (sd-daemon(3)).
enum class Level : int { kError = 3, kWarning = 4, kInfo = 6 };
// Writes one line to stderr, with the prefix.
void print_message(const std::string& text, Level level = Level::kInfo);
// From now on print_message() does not wait for the reader of stderr, which may be stopped.  It
// keeps lines, up to a bound, and flush_messages() writes them when there is room.
// has_kept_messages(): whether lines are kept.
void print_without_waiting();
bool has_kept_messages();
void flush_messages();
// Also writes each line to the end of this file, with the time; the caller owns it.  -1: to none.
void copy_messages_to(int file);
// From now on lines go only to that file, and lines that stderr's reader has not taken are dropped.
void print_only_to_copy();
// Call before the program ends: writes the kept lines, and waits for the reader for a limited time.
void finish_messages();
// For programs that run for long: each line begins with the time, in ISO 8601 with the zone, unless
// stderr is a terminal.  For systemd's journal it begins with the level instead.
void keep_log();
// The text that print_message() writes before the program's name.
std::string head_of(Level level);
// A line of another Crane program without the time at its beginning, to be passed on by
// print_message().
std::string without_time(const std::string& line);
// The program-wide switch of --verbose; without it detail() does nothing.
void set_verbose(bool on);
void detail(const std::string& text);

}  // namespace crane::setup
