// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that can go wrong in crane-run, and before a node that runs by itself is up, with its
// exit status. The server's own status is passed through, so ours lie where servers
// have none.
//
//   status  what happened                                  what to do
//   0..99   the server's own exit status (128 + n: it died of signal n)
//   100     the command line cannot be understood          crane-run --help
//   101     an even number of replicas, or none            use 1, 3, 5, ...
//   102     the program does not exist                     check the name, install it
//   103     the program may not be executed                chmod +x, or name the right file
//   104     the program cannot load libcrane.so            static, setuid or of another machine:
//                                                          use a dynamic build for this machine
//   105     a port is taken                                stop its owner, or --publish OTHER:PORT
//   106     no root privilege for containers               run as root, or --no-container
//   107     LXC is not installed                           install lxc, or --no-container
//   108     a directory cannot be made or written          name another with --dir
//   109     no room on a file system                       free space, or --dir elsewhere
//   110     shared memory of another version lies there    remove the directory that is named
//   111     a group of this name runs already              stop it, or choose another --name
//   112     a part of Crane is missing                     run crane-run from its own directory
//   113     a node could not start                         see its log, which is named
//   114     the server never checked in                    libcrane.so was not loaded: see the log
//   115     a majority of the replicas is lost             start the group again
//   116     the system refused something else              the message says what
//   117     a replica stopped itself                       see its log, which is named
//   118     the group's file cannot be used                mend the line that is named
//   119     the secret file is missing, short or readable  crane-ctl secret new FILE; chmod 600
//           by others
//   120     a host cannot be reached, or no longer         see what the remote shell says
//   121     a host has no Crane, or another; or another    install the same on all hosts
//           build of the server
//   123     a replica diverged from the majority           see its log; start the group again
//   124     a replica lacks what left the others' logs    start the group again
//   125     the server went to the background              run it in the foreground
//   126     --branch-counter cannot be had                 the message says why; leave it out
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
};

// Why crane-run ends before or instead of the server: an Error whose exit status is `status` and
// whose text is "<what>: <object>: <cause>; <advice>".  The status tells such errors apart; the
// code is kSystem.
Error failure(Status status, const std::string& what, const std::string& object,
              const std::string& cause, const std::string& advice);
// With a text that was made elsewhere.
Error failure(Status status, std::string text);
// kOk: nothing failed.  REQUIRES: the error is one of the two above.
Status status_of(const Outcome& outcome);

// Whose messages these are (static text); crane-run unless set.
void set_program(const char* name);
// How grave, as syslog counts (sd-daemon(3)).
enum class Level : int { kError = 3, kWarning = 4, kInfo = 6 };
// One line on stderr, with the prefix.
void say(const std::string& text, Level level = Level::kInfo);
// From here on say() does not wait for the reader of stderr, which may be stopped: lines are kept,
// up to a bound, and flush_said() writes them when there is room.
void say_without_waiting();
bool said_waits();
void flush_said();
// Before the program ends: waits for the reader, not for ever.
void finish_said();
// This program runs for long: its lines have the time, in ISO 8601 with the zone, unless a terminal
// shows them; systemd's journal gets the level in its place.
void keep_log();
// What say() writes before the program's name.
std::string head_of(Level level);
// The program-wide switch of --verbose; detail() says nothing without it.
void set_verbose(bool on);
void detail(const std::string& text);

}  // namespace crane::setup
