// SPDX-License-Identifier: Apache-2.0
#pragma once
// CRIU as a program: where it is, how it is called, why it refused, how long it took.
//
// A keeper (container_keeper.h) runs it as a child, for a server whose processes all live in
// namespaces of their own. What belongs to the machine, not to the server, is *external*: CRIU
// notes only that it was there, and gets another one when the server comes back.
//   mounts    the directories bound into the container, by the path the server sees
//   network   the namespace holds only lo, so a new one does; nothing of it is dumped
//   files     standard input, output and error; their keys are kept among the images (crane.stdio)
// Control groups are not dumped: a restored server lives in its keeper's.
//
// Threads: any; start_criu() forks, so its caller must be single-threaded.

#include <sys/types.h>

#include <string>
#include <vector>

#include "checkpoint/container.h"
#include "dmt/base/result.h"

namespace crane::checkpoint {

// The program to run: the environment's CRANE_CRIU, else criu/criu beside the running program
// (where get_criu.sh puts it), else "criu" of PATH. kNotFound: there is none.
Result<std::string> find_criu();
// As `criu --version` says it, e.g. "4.1.1". kSystem: it does not run.
Result<std::string> criu_version(const std::string& program);

struct CriuCall {
  enum class Kind { kDump, kRestore } kind = Kind::kDump;
  pid_t first = -1;        // dump: the server's first process
  std::string root;        // restore: where the server's root is mounted
  std::string images;      // directory; exists
  std::string work;        // directory for the log and the like; exists
  std::string after_dump;  // program, run when all is dumped and nothing runs yet; "": none
  std::vector<std::string> externals;
  struct Inherited {
    int fd;
    std::string key;
  };
  std::vector<Inherited> inherited;  // restore: what takes the place of an external file
};

// Its child, in a process group of its own; dies with the caller.
Result<pid_t> start_criu(const std::string& program, const CriuCall& call);

// After it ended with an error: why, in one line, for people. Never empty.
std::string criu_refusal(const std::string& work);
// How long the processes did not run, as CRIU itself measured it; -1 if it did not say.
int criu_frozen_ms(const std::string& work);

// The key of an open file that is not the server's own: a file or device by its mount and inode, a
// pipe by its number. "": a kind of file that nothing can take the place of.
std::string external_key(int fd);

}  // namespace crane::checkpoint
